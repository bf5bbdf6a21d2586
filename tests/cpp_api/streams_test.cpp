// The C++ face of calls in CUDA streams: messages around a ring, and what all ranks do together; against what each must hold then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isthmus/heap.hpp"
#include "isthmus/isthmus.hpp"
#include "isthmus/layout_stream.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Comm;
using isthmus::Kind;
using isthmus::Operation;
using isthmus::World;
using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kCount = 1501;
constexpr std::size_t kBytes = kCount * sizeof(std::int64_t);

#define NEEDS_CUDA(world)                        \
  if ((world).devices(isthmus::Kind::cuda) == 0) \
  GTEST_SKIP() << "not covered here: calls in CUDA streams; there is no CUDA device"

// Device memory of this rank's own, with the stream that comes with it.
class Vector {
 public:
  explicit Vector(const World& world) : world_(world), memory_(world.allocate(Kind::cuda, kBytes)) {}
  Buffer get() const { return memory_.buffer(); }
  Buffer at(std::size_t element) const { return memory_.at(element * sizeof(std::int64_t)); }
  void* stream() const { return reinterpret_cast<void*>(memory_.buffer().c().queue); }
  // The library waits for what is in the stream, as of any buffer's.
  void put(const Numbers& numbers) const { world_.copy(get(), Buffer::host(numbers.data()), kBytes); }
  Numbers take() const {
    Numbers numbers(kCount, -7);
    world_.copy(Buffer::host(numbers.data()), get(), kBytes);
    return numbers;
  }

 private:
  const World& world_;
  isthmus::Memory memory_;
};

Numbers of(int rank) {
  Numbers numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 1000 * (rank + 1));
  return numbers;
}

TEST(Streams, carry_messages_around_a_ring) {
  const World world;
  NEEDS_CUDA(world);
  const Comm comm = world.comm();
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  const Vector out(world);
  const Vector in(world);
  out.put(of(comm.rank()));
  in.put(Numbers(kCount, -1));
  comm.prepare_on(out.stream(), next, 6, IST_SENDS);
  comm.prepare_on(out.stream(), before, 6, IST_RECEIVES);
  comm.send_on(out.stream(), out.get(), kCount, IST_INT64, next, 6);
  comm.recv_on(out.stream(), in.get(), kCount, IST_INT64, before, 6);
  EXPECT_EQ(of(before), in.take());
  comm.barrier();
  comm.sendrecv_on(out.stream(), in.get(), 100, IST_INT64, next, 6, in.at(200), 100, IST_INT64, before, 6);
  comm.sendrecv_on(out.stream(), in.get(), 1, IST_INT64, IST_PROC_NULL, 6, in.get(), 1, IST_INT64, IST_PROC_NULL, 6);
  Numbers wanted = of(before);
  const Numbers theirs = of((before + comm.size() - 1) % comm.size());
  std::copy_n(theirs.begin(), 100, wanted.begin() + 200);
  EXPECT_EQ(wanted, in.take());
  EXPECT_THROW(comm.recv_on(out.stream(), in.get(), 1, IST_INT64, IST_ANY_SOURCE, 6), isthmus::Error);
  comm.barrier();  // nobody leaves before all have received
}

TEST(Streams, carry_layouts_around_a_ring) {
  const World world;
  NEEDS_CUDA(world);
  const Comm comm = world.comm();
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  const Vector out(world), in(world);
  out.put(of(comm.rank()));
  in.put(Numbers(kCount, -1));
  const isthmus::Layout number = isthmus::type_of<std::int64_t>;
  const auto thirds = isthmus::Layout::vector(500, 1, 3, number);
  const isthmus::LayoutStreams streams(comm);
  streams.prepare_on(out.stream(), thirds, 1, next, 7, IST_SENDS);
  streams.send_on(out.stream(), {out.get(), thirds}, next, 7);
  streams.recv_on(out.stream(), {in.get(), isthmus::Layout::vector(250, 2, 4, number)}, before, 7);
  Numbers found = in.take();
  for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ(of(before)[3 * i], found[i / 2 * 4 + i % 2]) << i;
  EXPECT_EQ(-1, found[2]);
  comm.barrier();
  streams.sendrecv_on(out.stream(), {out.get(), thirds}, next, {in.get(), number, 500}, before, 7, 7);
  found = in.take();
  for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ(of(before)[3 * i], found[i]) << i;
  EXPECT_THROW(streams.recv_on(out.stream(), {in.get(), isthmus::Layout::hvector(2, 1, 0, number)}, before, 7),
               isthmus::Error);
  comm.barrier();
}

TEST(Streams, put_into_a_heap_get_out_of_it_and_meet) {
  const World world;
  NEEDS_CUDA(world);
  if (world.devices(isthmus::Kind::cuda) < world.comm().size())
    GTEST_SKIP() << "not covered here: a CUDA device for each rank";
  const Comm comm = world.comm();
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  const Vector out(world), in(world), again(world);
  isthmus::Heap heap(comm, Kind::cuda, 1 << 20);
  auto* const shown = heap.alloc<std::int64_t>(kCount);
  auto* const word = heap.calloc<std::uint64_t>(1);
  out.put(of(comm.rank()));
  void* const stream = out.stream();
  heap.put_signal_on(stream, shown, out.get(), kCount, word, 1, next, isthmus::Signal::add);
  heap.wait_until_on(stream, word, isthmus::Compare::greater_equal, 1);
  heap.get_on(stream, in.get(), shown, kCount, comm.rank());
  heap.barrier_on(stream);
  heap.put_on(stream, shown, out.get(), 100, comm.rank());
  heap.barrier_on(stream);
  const auto row = isthmus::Layout(isthmus::type_of<std::int64_t>);
  const auto spread = isthmus::Layout::vector(kCount / 2, 1, 2, row);
  heap.get_layout_on(stream, again.get(), 1, spread, shown, kCount / 2, row, next);
  heap.barrier_on(stream);
  heap.put_layout_on(stream, shown, kCount / 2, row, again.get(), 1, spread, before);
  heap.barrier_on(stream);
  EXPECT_EQ(of(before), in.take());
  const Numbers found = again.take();
  for (std::size_t i = 0; i < kCount / 2; ++i) {
    const int owner = i < 100 ? next : comm.rank();  // who had put it there last
    ASSERT_EQ(found[2 * i], 1000 * (owner + 1) + static_cast<std::int64_t>(i)) << i;
  }
  Numbers held(kCount);
  heap.get(Buffer::host(held.data()), shown, kCount, comm.rank());
  EXPECT_EQ(held[0], 1000 * ((next + 1) % comm.size() + 1));
  heap.destroy();
}

TEST(Streams, do_what_all_ranks_do_together) {
  const World world;
  NEEDS_CUDA(world);
  const Comm comm = world.comm();
  const int last = comm.size() - 1;
  Numbers sum(kCount, 0);
  for (int rank = 0; rank < comm.size(); ++rank)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += of(rank)[i];
  const Vector send(world);
  const Vector recv(world);
  send.put(of(comm.rank()));
  recv.put(Numbers(kCount, -1));
  comm.prepare_collectives_on(recv.stream());
  comm.barrier_on(recv.stream());
  comm.allreduce_on(recv.stream(), send.get(), recv.get(), kCount, IST_INT64, isthmus::op::sum);
  EXPECT_EQ(sum, recv.take());
  comm.reduce_on(recv.stream(), send.get(), recv.get(), kCount, IST_INT64, isthmus::op::max, last);
  EXPECT_EQ(comm.rank() == last ? of(last) : sum, recv.take());
  comm.bcast_on(recv.stream(), recv.get(), kCount, IST_INT64, last);
  EXPECT_EQ(of(last), recv.take());
  comm.allreduce_on(recv.stream(), Buffer(ist_in_place()), send.get(), kCount, IST_INT64, isthmus::op::min);
  comm.barrier_on(recv.stream());
  EXPECT_EQ(of(0), send.take());
  const auto own = Operation::of<std::int64_t>([](std::int64_t a, std::int64_t) noexcept { return a; });
  EXPECT_THROW(comm.allreduce_on(recv.stream(), send.get(), recv.get(), kCount, IST_INT64, own), isthmus::Error);
  comm.barrier();
}

}  // namespace
