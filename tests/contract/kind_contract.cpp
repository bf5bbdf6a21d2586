// What every kind of memory promises, tried on each device of each kind that loads on this machine.
#include <algorithm>
#include <chrono>
#include <climits>
#include <random>
#include <thread>

#include "support.hpp"

namespace ist::test {
namespace {

// Zero, one, odd, around a page, one past powers of two.
const std::vector<std::uint64_t> kSizes{0, 1, 3, 4095, 4096, 4097, (64 << 10) + 1, (1 << 20) + 3};

class KindContract : public testing::TestWithParam<Place> {
 protected:
  MemoryKind& kind() const { return GetParam().get(); }
};

TEST_P(KindContract, allocates_memory_of_any_size_that_holds_every_byte) {
  for (const std::uint64_t size : kSizes) {
    const Memory memory{GetParam(), size};
    EXPECT_EQ(memory.piece().kind, GetParam().kind);
    EXPECT_EQ(memory.piece().device, GetParam().device);
    EXPECT_EQ(memory.piece().size.value, size);
    const Data bytes = random_bytes(size);
    write(memory.piece(), bytes);
    EXPECT_EQ(read(memory.piece()), bytes) << size << " bytes";
  }
}

TEST_P(KindContract, releasing_twice_or_what_was_never_allocated_is_an_error) {
  const Piece piece = must(kind().allocate(GetParam().device, Bytes{4096}));
  const Data bytes = random_bytes(4096);
  write(piece, bytes);
  Piece other = piece;
  for (const std::uint64_t object : {piece.object + 16, piece.object + 4096, piece.object - 1, std::uint64_t{16}}) {
    other.object = object;
    EXPECT_EQ(kind().release(other).code(), IST_ERR_ARGUMENT);
  }
  EXPECT_EQ(read(piece), bytes);
  EXPECT_TRUE(kind().release(piece).ok());
  const Status again = kind().release(piece);
  EXPECT_EQ(again.code(), IST_ERR_ARGUMENT);
  EXPECT_NE(again.text().find("freed"), std::string::npos) << again.text();
}

TEST_P(KindContract, refuses_a_device_that_does_not_exist_and_more_memory_than_there_is) {
  for (const int device : {1000, -1, -7, INT_MIN}) {
    const auto nowhere = kind().allocate(device, Bytes{16});
    ASSERT_FALSE(nowhere.ok());
    EXPECT_EQ(nowhere.status().code(), IST_ERR_ARGUMENT);
    EXPECT_NE(nowhere.status().text().find(std::to_string(device)), std::string::npos) << nowhere.status().text();
  }
  const auto huge = kind().allocate(GetParam().device, Bytes{std::uint64_t{1} << 60});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.status().code(), IST_ERR_MEMORY) << huge.status().text();
  EXPECT_NE(huge.status().text().find(std::to_string(std::uint64_t{1} << 60)), std::string::npos) << huge.status().text();
}

TEST_P(KindContract, a_buffer_of_it_resolves_to_its_kind_and_device) {
  const Memory memory{GetParam(), 8192};
  ist_buffer buffer =
      ist_make_buffer(static_cast<std::uint32_t>(GetParam().kind), memory.piece().object, 100, memory.piece().queue);
  const Piece piece = must(kinds().resolve(buffer, Bytes{8000}));
  EXPECT_EQ(piece.kind, GetParam().kind);
  EXPECT_EQ(piece.device, GetParam().device);
  EXPECT_EQ(piece.offset.value, 100U);
  EXPECT_EQ(piece.size.value, 8000U);
  EXPECT_EQ(must(kinds().resolve(buffer, Bytes{8092})).size.value, 8092U);
}

TEST_P(KindContract, its_addresses_are_recognised_from_the_first_byte_to_the_last) {
  const Memory memory{GetParam(), 4096};
  if (GetParam().kind == KindId::opencl) {
    EXPECT_FALSE(kind().recognise(memory.piece().address()).has_value()) << "an OpenCL buffer has no address";
    return;
  }
  for (const std::uint64_t offset : {0U, 1U, 2048U, 4095U}) {
    const Recognised found = kinds().recognise(memory.part(offset, 1).address());
    EXPECT_EQ(found.kind, GetParam().kind) << "at " << offset;
    const ist_buffer buffer = ist_buffer_at(ist_auto(memory.piece().address()), offset);
    const Piece piece = must(kinds().resolve(buffer, Bytes{1}));
    EXPECT_EQ(piece.kind, GetParam().kind);
    EXPECT_EQ(piece.device, GetParam().device);
  }
}

TEST_P(KindContract, host_memory_is_not_taken_for_its_own) {
  if (GetParam().kind == KindId::host) return;
  const Data bytes(4096);
  int local = 0;
  EXPECT_FALSE(kind().recognise(bytes.data()).has_value());
  EXPECT_FALSE(kind().recognise(&local).has_value());
  EXPECT_FALSE(kind().recognise(nullptr).has_value());
}

// Copies `size` bytes between two places at odd offsets, and looks at every byte of both buffers afterwards.
void expect_exact_copy(const Place& to_place, const Place& from_place, std::uint64_t size, std::uint64_t to_at,
                       std::uint64_t from_at) {
  constexpr std::uint64_t kGuard = 64;
  const Memory to{to_place, to_at + size + kGuard};
  const Memory from{from_place, from_at + size + kGuard};
  const Piece to_piece = to.part(to_at, size);
  const Piece from_piece = from.part(from_at, size);
  MemoryKind* copier = kinds().copier(to_piece, from_piece);
  if (!copier) return;
  const Data source = random_bytes(from.piece().size.value);
  Data expected = random_bytes(to.piece().size.value);
  write(from.piece(), source);
  write(to.piece(), expected);
  wait(must(copier->copy(to_piece, from_piece, Ticket{})));
  std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from_at), size,
              expected.begin() + static_cast<std::ptrdiff_t>(to_at));
  EXPECT_EQ(read(to.piece()), expected) << size << " bytes from " << from_place << " at " << from_at << " to " << to_place
                                        << " at " << to_at;
  EXPECT_EQ(read(from.piece()), source) << "the source changed";
}

TEST_P(KindContract, copies_exactly_the_bytes_asked_for_with_every_kind_it_claims) {
  constexpr std::pair<std::uint64_t, std::uint64_t> kOffsets[] = {{0, 0}, {1, 3}, {4097, 0}, {0, 63}};
  for (const Place& other : all_places())
    for (const std::uint64_t size : kSizes)
      for (const auto& [to_at, from_at] : kOffsets) {
        expect_exact_copy(GetParam(), other, size, to_at, from_at);
        expect_exact_copy(other, GetParam(), size, to_at, from_at);
      }
}

TEST_P(KindContract, copies_inside_one_buffer_between_parts_that_do_not_overlap) {
  const Memory memory{GetParam(), 10001};
  Data expected = random_bytes(10001);
  write(memory.piece(), expected);
  wait(must(kind().copy(memory.part(5001, 5000), memory.part(1, 5000), Ticket{})));
  std::copy_n(expected.begin() + 1, 5000, expected.begin() + 5001);
  EXPECT_EQ(read(memory.piece()), expected);
}

TEST_P(KindContract, copies_given_the_ticket_before_run_in_order) {
  constexpr std::uint64_t kSize = (256 << 10) + 1;
  const Memory b{GetParam(), kSize};
  const Memory c{GetParam(), kSize};
  for (int round = 0; round < (long_tests() ? 200 : 20); ++round) {
    const Data a = random_bytes(kSize);
    Data d(kSize, 0xEE);
    const Piece source = host_piece(a.data(), Bytes{kSize});
    const Piece end = host_piece(d.data(), Bytes{kSize});
    const Ticket first = must(kind().copy(b.piece(), source, Ticket{}));
    const Ticket empty = must(kind().copy(b.part(0, 0), c.part(0, 0), first));
    const Ticket second = must(kind().copy(c.piece(), b.piece(), empty));
    Ticket last = must(kind().copy(end, c.piece(), second));
    wait(last);
    ASSERT_EQ(d, a) << "round " << round;
  }
}

TEST_P(KindContract, finished_is_true_once_and_leaves_an_empty_ticket) {
  const Memory memory{GetParam(), 1 << 20};
  const Data bytes = random_bytes(1 << 20);
  Ticket ticket = must(kind().copy(memory.piece(), host_piece(bytes.data(), Bytes{1 << 20}), Ticket{}));
  if (GetParam().kind == KindId::host) {
    EXPECT_TRUE(ticket.empty()) << "host copies are done when they return";
    return;
  }
  ASSERT_FALSE(ticket.empty());
  const std::uint64_t id = ticket.id();
  wait(ticket);
  EXPECT_TRUE(ticket.empty());
  EXPECT_EQ(ticket.kind(), nullptr);
  // The name of a finished ticket is not the name of a later one.
  Ticket later = must(kind().copy(memory.piece(), host_piece(bytes.data(), Bytes{1 << 20}), Ticket{}));
  EXPECT_NE(later.id(), id);
  wait(later);
}

TEST_P(KindContract, many_copies_in_flight_all_arrive_in_whatever_order_they_are_asked_for) {
  constexpr std::uint64_t kCopies = 256;
  constexpr std::uint64_t kEach = 4097;
  const Memory memory{GetParam(), kCopies * kEach};
  const Data bytes = random_bytes(kCopies * kEach);
  std::vector<Ticket> tickets;
  for (std::uint64_t i = 0; i < kCopies; ++i)
    tickets.push_back(
        must(kind().copy(memory.part(i * kEach, kEach), host_piece(&bytes[i * kEach], Bytes{kEach}), Ticket{})));
  std::shuffle(tickets.begin(), tickets.end(), std::mt19937_64{std::random_device{}()});
  for (Ticket& each : tickets) wait(each);
  tickets.clear();
  Data back(bytes.size(), 0xEE);
  for (std::uint64_t i = 0; i < kCopies; ++i)
    tickets.push_back(
        must(kind().copy(host_piece(&back[i * kEach], Bytes{kEach}), memory.part(i * kEach, kEach), Ticket{})));
  std::shuffle(tickets.begin(), tickets.end(), std::mt19937_64{std::random_device{}()});
  for (Ticket& each : tickets) wait(each);
  EXPECT_EQ(back, bytes);
}

TEST_P(KindContract, four_threads_copy_at_once_without_disturbing_each_other) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (std::size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&, t] {
      try {
        for (int round = 0; round < (long_tests() ? 1000 : 30); ++round) {
          const std::uint64_t size = 1 + random_bytes(2)[0] * std::uint64_t{257};
          const Memory memory{GetParam(), size};
          const Data bytes = random_bytes(size);
          Data back(size, 0xEE);
          const Ticket in = must(kind().copy(memory.piece(), host_piece(bytes.data(), Bytes{size}), Ticket{}));
          wait(must(kind().copy(host_piece(back.data(), Bytes{size}), memory.piece(), in)));
          if (back != bytes) throw std::runtime_error("bytes differ in round " + std::to_string(round));
        }
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  for (auto& each : threads) each.join();
  for (const auto& each : errors) EXPECT_EQ(each, "");
}

TEST_P(KindContract, tickets_may_be_dropped_unfinished) {
  constexpr std::uint64_t kSize = 64 << 10;
  const Memory memory{GetParam(), kSize};
  std::vector<Data> sources;
  for (int i = 0; i < 50; ++i) sources.push_back(random_bytes(kSize));
  Ticket before;
  for (const Data& each : sources) {
    // The one before is dropped as soon as the next is ordered behind it.
    before = must(kind().copy(memory.piece(), host_piece(each.data(), Bytes{kSize}), before));
  }
  wait(before);
  EXPECT_EQ(read(memory.piece()), sources.back());
}

TEST_P(KindContract, an_idle_queue_is_ready_at_once_or_soon) {
  const Memory memory{GetParam(), 64};
  wait(must(kinds().ready(memory.piece())));
}

TEST_P(KindContract, a_transfer_brings_bytes_from_every_place) {
  for (const Place& other : all_places()) {
    const Memory to{GetParam(), 100003};
    const Memory from{other, 100003};
    const Data bytes = random_bytes(100003);
    write(from.piece(), bytes);
    transfer(to.piece(), from.piece());
    EXPECT_EQ(read(to.piece()), bytes) << "from " << other;
  }
}

TEST_P(KindContract, says_of_its_devices_what_info_prints) {
  const DeviceInfo& device = kind().devices()[static_cast<std::size_t>(GetParam().device)];
  EXPECT_EQ(device.ordinal, GetParam().device);
  EXPECT_FALSE(device.name.empty());
  EXPECT_GT(device.memory.value, 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, KindContract, testing::ValuesIn(all_places()),
                         [](const auto& each) { return name_of(each.param); });

struct MissingKind : Kinds::Missing {};
std::ostream& operator<<(std::ostream& out, const MissingKind& missing) { return out << missing.name; }

std::vector<MissingKind> missing_kinds() {
  std::vector<MissingKind> all;
  for (const Kinds::Missing& each : kinds().missing()) all.push_back({each});
  return all;
}

// One skipped test for each kind that is missing here, so that the log names what was not tried.
class NotLoaded : public testing::TestWithParam<MissingKind> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NotLoaded);

TEST_P(NotLoaded, contract_was_not_tried) {
  EXPECT_FALSE(GetParam().reason.empty());
  EXPECT_EQ(GetParam().reason.find('\n'), std::string::npos) << "a reason is one line";
  GTEST_SKIP() << "SKIPPED: kind " << GetParam().name << ": " << GetParam().reason;
}

INSTANTIATE_TEST_SUITE_P(Each, NotLoaded, testing::ValuesIn(missing_kinds()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace ist::test
