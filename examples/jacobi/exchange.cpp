#include "exchange.hpp"

#include <array>
#include <cstring>
#include <isthmus/halo.hpp>
#include <isthmus/heap.hpp>
#include <utility>

namespace jacobi {
namespace {

struct Ring {
  isthmus::Comm comm;
  int rank, up, down;
  explicit Ring(const isthmus::Comm& of) : comm(of), rank(of.rank()) {
    up = (rank + of.size() - 1) % of.size();
    down = (rank + 1) % of.size();
  }
};

class OfOwnMemory : public Exchange {
 protected:
  OfOwnMemory(const isthmus::World& world, std::int64_t rows, std::int64_t columns) : memory_(world, rows, columns) {
    field_ = memory_.field();
  }

 private:
  example::OwnField memory_;
};

class WithItself : public OfOwnMemory {
 public:
  WithItself(const isthmus::World& world, std::int64_t rows, std::int64_t columns) : OfOwnMemory(world, rows, columns) {}
  void start(int level) override {
    std::memcpy(field_.cells(level, 0), field_.cells(level, field_.rows), field_.row_bytes());
    std::memcpy(field_.cells(level, field_.rows + 1), field_.cells(level, 1), field_.row_bytes());
  }
  void finish() override {}
};

// The two neighbours may be one rank, so that the tag says in which direction a row goes.
class Messages : public OfOwnMemory {
 public:
  Messages(const isthmus::World& world, const isthmus::Comm& comm, std::int64_t rows, std::int64_t columns)
      : OfOwnMemory(world, rows, columns) {
    const Ring ring(comm);
    constexpr int upward = 0, downward = 1;
    for (int level = 0; level < 2; ++level) {
      auto& requests = requests_[static_cast<std::size_t>(level)];
      requests[0] = comm.recv_init(field_.row(level, 0), columns, IST_FLOAT, ring.up, downward);
      requests[1] = comm.recv_init(field_.row(level, rows + 1), columns, IST_FLOAT, ring.down, upward);
      requests[2] = comm.send_init(field_.row(level, 1), columns, IST_FLOAT, ring.up, upward);
      requests[3] = comm.send_init(field_.row(level, rows), columns, IST_FLOAT, ring.down, downward);
    }
  }
  void start(int level) override {
    under_way_ = &requests_[static_cast<std::size_t>(level)];
    isthmus::start_all(*under_way_);
  }
  void finish() override { isthmus::wait_all(*under_way_); }

 private:
  using Requests = std::array<isthmus::PersistentRequest, 4>;
  std::array<Requests, 2> requests_;
  Requests* under_way_ = nullptr;
};

// A grid of one dimension, whose cells are whole rows.
class Halo : public OfOwnMemory {
 public:
  Halo(const isthmus::World& world, const isthmus::Comm& comm, std::int64_t rows, std::int64_t columns, isthmus::HaloWay way)
      : OfOwnMemory(world, rows, columns),
        fields_{of_level(0), of_level(1)},
        halo_(isthmus::HaloGrid(comm, std::array{0}, std::array{1}), std::span(&fields_[0], 1),
              {0, isthmus::HaloPacking::automatic, way}) {}
  void start(int level) override {
    halo_.set_fields(std::span(&fields_[static_cast<std::size_t>(level)], 1));
    halo_.pack();
    halo_.start_exchange();
  }
  void finish() override {
    halo_.wait();
    halo_.unpack();
  }
  void close() override { halo_.destroy(); }

 private:
  isthmus::HaloField of_level(int level) const {
    return {field_.row(level, 0), static_cast<std::int64_t>(field_.row_bytes()),
            std::array{isthmus::HaloRange{1, 1, 1, field_.rows, field_.rows + 2}}};
  }
  std::array<isthmus::HaloField, 2> fields_;
  isthmus::Halo halo_;
};

// Nobody asks whether he may put: who has seen a neighbour's flag of step n knows that it has computed what the rows of step n - 1 were
// for, and the rows of step n + 1 are those of step n - 1.
class Puts : public Exchange {
 public:
  Puts(const isthmus::Comm& comm, std::int64_t all_rows, std::int64_t columns)
      : ring_(comm), heap_(comm, isthmus::Kind::host, bytes_for(all_rows, comm.size(), columns)) {
    const auto rows_of = [&](int rank) { return example::part_of(all_rows, comm.size(), rank).count; };
    field_.rows = rows_of(ring_.rank);
    field_.columns = columns;
    row_behind_up_ = rows_of(ring_.up) + 1;
    const std::int64_t most = (all_rows + comm.size() - 1) / comm.size();
    for (float*& level : field_.levels) level = heap_.alloc<float>(static_cast<std::uint64_t>((most + 2) * columns));
    flags_ = heap_.calloc<std::uint64_t>(2);
  }
  void start(int level) override {
    ++step_;
    float* const rows = field_.cells(level, 0);
    const auto columns = static_cast<std::uint64_t>(field_.columns);
    heap_.put_signal(rows + row_behind_up_ * field_.columns, field_.row(level, 1), columns, &flags_[1], step_, ring_.up);
    heap_.put_signal(rows, field_.row(level, field_.rows), columns, &flags_[0], step_, ring_.down);
  }
  void finish() override {
    for (int side = 0; side < 2; ++side) heap_.wait_until(&flags_[side], isthmus::Compare::greater_equal, step_);
  }
  void close() override { heap_.destroy(); }

 private:
  static std::uint64_t bytes_for(std::int64_t all_rows, int ranks, std::int64_t columns) {
    const std::int64_t most = (all_rows + ranks - 1) / ranks;
    return 2 * static_cast<std::uint64_t>((most + 2) * columns) * sizeof(float) + (std::uint64_t{1} << 20);
  }

  Ring ring_;
  isthmus::Heap heap_;
  std::uint64_t* flags_ = nullptr;  // of the neighbour above, and of the one below
  std::int64_t row_behind_up_ = 0;  // the one that is ours, of the neighbour above
  std::uint64_t step_ = 0;
};

}  // namespace

const std::vector<std::string>& exchange_names() {
  static const std::vector<std::string> names{"messages", "halo", "halo-one-sided", "put"};
  return names;
}

std::unique_ptr<Exchange> make_exchange(const std::string& name, const isthmus::World& world, const isthmus::Comm& comm,
                                        std::int64_t all_rows, std::int64_t columns) {
  const std::int64_t rows = example::part_of(all_rows, comm.size(), comm.rank()).count;
  if (name == "messages") return std::make_unique<Messages>(world, comm, rows, columns);
  if (name == "halo") return std::make_unique<Halo>(world, comm, rows, columns, isthmus::HaloWay::messages);
  if (name == "halo-one-sided") return std::make_unique<Halo>(world, comm, rows, columns, isthmus::HaloWay::one_sided);
  return std::make_unique<Puts>(comm, all_rows, columns);
}

std::unique_ptr<Exchange> make_exchange_with_itself(const isthmus::World& world, std::int64_t rows, std::int64_t columns) {
  return std::make_unique<WithItself>(world, rows, columns);
}

}  // namespace jacobi
