#include "exchange.hpp"

#include <array>
#include <vector>

#include "exchange_parts.hpp"

namespace stencil {
namespace {

// A strip that goes south arrives from the north: the tag is the side of the sender.
int tag_of(Side side) { return static_cast<int>(side); }

// The buffers name the queue in which the kernels run. Isthmus waits for what is queued there, so nothing here waits
// between a step, a packing kernel and a send.
class IsthmusExchange final : public Exchange {
 public:
  explicit IsthmusExchange(const Parts& parts) : parts_(parts) {}

  void fill_halos() override {
    fill_halos_by(parts_, [this](const Pair& pair) { transfer(pair); });
  }

 private:
  void transfer(const Pair& pair) {
    std::vector<isthmus::Request> requests;
    parts_.for_neighbours(pair, [&](Side side, int neighbour) {
      const Place in = parts_.layout.strip(side, Direction::in);
      requests.push_back(
          parts_.comm.irecv(parts_.backend.at(in), parts_.count(in), parts_.type(), neighbour, tag_of(opposite(side))));
    });
    parts_.for_neighbours(pair, [&](Side side, int neighbour) {
      const Place out = parts_.layout.strip(side, Direction::out);
      requests.push_back(
          parts_.comm.isend(parts_.backend.at(out), parts_.count(out), parts_.type(), neighbour, tag_of(side)));
    });
    wait_all(requests);
  }

  Parts parts_;
};

// What one writes without a runtime that knows device memory (Listing 1 of the MPIGPU paper): copy to the host and wait,
// send host memory, receive host memory, copy to the device.
class StagedExchange final : public Exchange {
 public:
  explicit StagedExchange(const Parts& parts) : parts_(parts) {
    for (const Side side : sides)
      for (const Direction direction : {Direction::out, Direction::in})
        staging(side, direction) = parts_.backend.staging(parts_.layout.strip(side, direction).bytes);
  }

  void fill_halos() override {
    fill_halos_by(parts_, [this](const Pair& pair) { transfer(pair); });
  }

 private:
  void transfer(const Pair& pair) {
    std::vector<isthmus::Request> requests;
    parts_.for_neighbours(pair, [&](Side side, int neighbour) {
      requests.push_back(parts_.comm.irecv(host(side, Direction::in), neighbour, tag_of(opposite(side))));
    });
    parts_.for_neighbours(pair, [&](Side side, int neighbour) {
      parts_.backend.read(parts_.layout.strip(side, Direction::out), staging(side, Direction::out).get());
      requests.push_back(parts_.comm.isend(host(side, Direction::out), neighbour, tag_of(side)));
    });
    wait_all(requests);
    parts_.for_neighbours(pair, [&](Side side, int) {
      parts_.backend.write(parts_.layout.strip(side, Direction::in), staging(side, Direction::in).get());
    });
  }
  std::shared_ptr<std::byte>& staging(Side side, Direction direction) {
    return staging_[static_cast<std::size_t>(side) * 2 + (direction == Direction::in ? 1 : 0)];
  }
  std::span<std::byte> host(Side side, Direction direction) {
    return {staging(side, direction).get(), parts_.layout.strip(side, direction).bytes};
  }

  Parts parts_;
  std::array<std::shared_ptr<std::byte>, 8> staging_;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(const std::string& name, const isthmus::Comm& comm, const Tile& tile,
                                        const Layout& layout, Backend& backend) {
  const Parts parts{comm, tile, layout, backend};
  if (name == "staged") return std::make_unique<StagedExchange>(parts);
  if (name == "halo") return make_halo_exchange(parts);
  if (name == "one-sided") return make_one_sided_exchange(parts);
  return std::make_unique<IsthmusExchange>(parts);
}

}  // namespace stencil
