// The C++ face of calls in CUDA streams: messages around a ring, and what all ranks do together; against what each must hold then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "isthmus/isthmus.hpp"

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
