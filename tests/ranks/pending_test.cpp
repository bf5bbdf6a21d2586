// A message whose buffer has work pending in its stream or queue: Isthmus waits for that work, the user does not.
#include <chrono>
#include <memory>
#include <thread>

#include "../contract/slow_work.hpp"
#include "rank_test.hpp"

namespace {

using namespace rank_test;
using ist::Piece;
using ist::test::Memory;
using ist::test::Place;
using ist::test::SlowWork;

// Carried by a cell, or by the ring; what is not ready is announced, whatever its size.
constexpr std::size_t kSizes[] = {8, 5000, 16384, 300001};

ist_buffer to_buffer(const Piece& piece) {
  ist_buffer buffer = ist_make_buffer(static_cast<std::uint32_t>(piece.kind), piece.object, piece.offset.value, piece.queue);
  buffer.device = piece.device;
  return buffer;
}

void write(const Memory& memory, const std::vector<unsigned char>& bytes) {
  Piece piece = memory.piece();
  ASSERT_EQ(IST_OK, ist_memory_copy(world(), to_buffer(piece), ist_host(bytes.data()), bytes.size())) << ist_error_text();
}

std::vector<unsigned char> read(const Memory& memory, std::size_t bytes) {
  std::vector<unsigned char> found(bytes);
  EXPECT_EQ(IST_OK, ist_memory_copy(world(), ist_host(found.data()), to_buffer(memory.piece()), bytes)) << ist_error_text();
  return found;
}

std::vector<Place> queued_places() {
  std::vector<Place> places;
  for (const Place& place : ist::test::all_places())
    if (SlowWork::of(place.kind) != nullptr) places.push_back(place);
  if (places.empty() && rank() == 0) std::printf("not covered here: no kind with queues has a device on this machine\n");
  return places;
}

TEST(PendingWork, ASendRightAfterASlowKernelCarriesWhatTheKernelWrites) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  for (const Place& place : queued_places()) {
    for (const std::size_t bytes : kSizes) {
      for (const bool out_of_order : {false, true}) {
        SlowWork& slow = *SlowWork::of(place.kind);
        if (out_of_order && !slow.has_out_of_order()) continue;
        const auto fresh = random_bytes(bytes, bytes + 1);
        if (rank() == 0) {
          const Memory source{place, bytes};
          const Memory shadow{place, bytes};
          write(shadow, fresh);
          write(source, random_bytes(bytes, bytes + 2));
          const Piece piece = slow.in_new_queue(source.piece(), out_of_order);
          slow.copy_later(piece, shadow.piece(), piece.queue);
          // A later message of another buffer must not be held up for ever, and not overtake in matching order.
          IST_OK_OR_FAIL(ist_send(to_buffer(piece), static_cast<int64_t>(bytes), IST_BYTE, 1, 6, comm()));
          slow.finish(piece.queue);
        } else if (rank() == 1) {
          std::vector<unsigned char> in(bytes, 0xa5);
          IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), static_cast<int64_t>(bytes), IST_BYTE, 0, 6, comm(), nullptr));
          EXPECT_EQ(-1, first_difference(fresh, in)) << place << ", " << bytes << " bytes";
        }
        IST_OK_OR_FAIL(ist_barrier(comm()));
      }
    }
  }
}

TEST(PendingWork, AReceiveDoesNotOverwriteWhatASlowKernelStillReads) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  for (const Place& place : queued_places()) {
    for (const std::size_t bytes : kSizes) {
      const auto before = random_bytes(bytes, bytes + 3);
      const auto fresh = random_bytes(bytes, bytes + 4);
      if (rank() == 0) {
        IST_OK_OR_FAIL(ist_send(ist_host(fresh.data()), static_cast<int64_t>(bytes), IST_BYTE, 1, 6, comm()));
      } else if (rank() == 1) {
        SlowWork& slow = *SlowWork::of(place.kind);
        const Memory target{place, bytes};
        const Memory reader{place, bytes};
        write(target, before);
        const Piece piece = slow.in_new_queue(target.piece(), false);
        slow.copy_later(reader.piece(), piece, piece.queue);
        IST_OK_OR_FAIL(ist_recv(to_buffer(piece), static_cast<int64_t>(bytes), IST_BYTE, 0, 6, comm(), nullptr));
        slow.finish(piece.queue);
        EXPECT_EQ(-1, first_difference(before, read(reader, bytes))) << place << ", " << bytes << ": overwritten too early";
        EXPECT_EQ(-1, first_difference(fresh, read(target, bytes))) << place << ", " << bytes;
      }
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
  }
}

constexpr int kSends = 12;

// More than there are cells, where ISTHMUS_CELLS is 4.
constexpr int kFirst = 5;

// The other device, where there are two: whose memory takes messages in one copy, once it is open.
Place beside(const Place& place) {
  for (const Place& other : queued_places())
    if (other.kind == place.kind && other.device != place.device) return other;
  return place;
}

// Afterwards the sender has the receiver's memory open, but believes that the receiver lends nothing, so that what is short goes in cells.
void open_memory(const Place& place, const Memory* into) {
  constexpr std::size_t kLong = 100000;
  if (rank() == 0) {
    const Memory source{place, kLong};
    for (int i = 0; i < 21; ++i) IST_OK_OR_FAIL(ist_send(to_buffer(source.piece()), kLong, IST_BYTE, 1, 3, comm()));
    return;
  }
  for (int i = 0; i < 20; ++i) {
    IST_OK_OR_FAIL(ist_recv(to_buffer(into->piece()), kLong, IST_BYTE, 0, 3, comm(), nullptr));
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  const Memory fresh{beside(place), kLong};
  IST_OK_OR_FAIL(ist_recv(to_buffer(fresh.piece()), kLong, IST_BYTE, 0, 3, comm(), nullptr));
}

void send_and_free(const Place& place) {
  const Memory before{place, 8};
  const Memory other{place, 8};
  write(other, random_bytes(8, 1));
  write(before, random_bytes(8, 2));
  ist_request first[kFirst];
  for (ist_request& request : first)
    IST_OK_OR_FAIL(ist_isend(to_buffer(before.piece()), 8, IST_BYTE, 1, 5, comm(), &request));
  SlowWork& slow = *SlowWork::of(place.kind);
  std::vector<std::unique_ptr<Memory>> sources;
  ist_request requests[kSends];
  std::uint64_t queue = 0;
  for (ist_request& request : requests) {
    sources.push_back(std::make_unique<Memory>(place, 8));
    const Piece piece = slow.in_new_queue(sources.back()->piece(), false);
    queue = piece.queue;
    slow.copy_later(piece, other.piece(), queue);
    IST_OK_OR_FAIL(ist_isend(to_buffer(piece), 8, IST_BYTE, 1, 6, comm(), &request));
  }
  for (int left = kSends; left > 0; --left) {
    int which = 0;
    IST_OK_OR_FAIL(ist_waitany(kSends, requests, &which, IST_STATUS_IGNORE));
    sources[static_cast<std::size_t>(which)].reset();
  }
  slow.finish(queue);
  IST_OK_OR_FAIL(ist_waitall(kFirst, first, IST_STATUSES_IGNORE));
}

void receive_all(const Place& place, const Memory& into) {
  std::vector<unsigned char> in(8, 0xa5);
  // Within a call it would make room for what comes.
  std::this_thread::sleep_for(std::chrono::milliseconds{25});
  for (int i = 0; i < kFirst; ++i) IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), 8, IST_BYTE, 0, 5, comm(), nullptr));
  EXPECT_EQ(-1, first_difference(random_bytes(8, 2), in)) << place;
  for (int i = 0; i < kSends; ++i) {
    IST_OK_OR_FAIL(ist_recv(to_buffer(into.piece()), 8, IST_BYTE, 0, 6, comm(), nullptr));
    ASSERT_EQ(-1, first_difference(random_bytes(8, 1), read(into, 8))) << place << ", message " << i;
  }
}

// What found no cell before its buffer was ready gets one later, and where the kernel takes long the copy into that is given up and the
// bytes go another way. The fake driver ends a process that frees what such a copy still reads.
TEST(PendingWork, WhatWasSentCanBeFreedAsSoonAsTheSendIsOver) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  for (const Place& place : queued_places()) {
    const Memory into{beside(place), 100000};
    if (rank() < 2) open_memory(place, &into);
    if (rank() == 0) send_and_free(place);
    if (rank() == 1) receive_all(place, into);
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

// A buffer that is not ready keeps its place in the order, but other messages of the pair do not wait for its kernel.
TEST(PendingWork, AMessageThatIsNotReadyKeepsItsPlaceAndHoldsUpNoOther) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  constexpr std::size_t kBytes = 200000;
  for (const Place& place : queued_places()) {
    const auto first = random_bytes(kBytes, 1);
    const auto second = random_bytes(kBytes, 2);
    if (rank() == 0) {
      SlowWork& slow = *SlowWork::of(place.kind);
      const Memory source{place, kBytes};
      const Memory shadow{place, kBytes};
      write(shadow, first);
      write(source, second);
      const Piece piece = slow.in_new_queue(source.piece(), false);
      slow.copy_later(piece, shadow.piece(), piece.queue);
      ist_request requests[3];
      IST_OK_OR_FAIL(ist_isend(to_buffer(piece), kBytes, IST_BYTE, 1, 6, comm(), &requests[0]));
      IST_OK_OR_FAIL(ist_isend(ist_host(second.data()), kBytes, IST_BYTE, 1, 6, comm(), &requests[1]));
      IST_OK_OR_FAIL(ist_isend(ist_host(second.data()), 100, IST_BYTE, 1, 7, comm(), &requests[2]));
      IST_OK_OR_FAIL(ist_waitall(3, requests, IST_STATUSES_IGNORE));
      slow.finish(piece.queue);
    } else if (rank() == 1) {
      std::vector<unsigned char> in(kBytes, 0xa5);
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), 100, IST_BYTE, 0, 7, comm(), nullptr));
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), kBytes, IST_BYTE, 0, 6, comm(), nullptr));
      EXPECT_EQ(-1, first_difference(first, in)) << place << ": the first message sent comes first";
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), kBytes, IST_BYTE, 0, 6, comm(), nullptr));
      EXPECT_EQ(-1, first_difference(second, in)) << place;
    }
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

}  // namespace
