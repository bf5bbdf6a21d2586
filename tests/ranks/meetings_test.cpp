// Collective calls in streams against what one process computes: plain, captured, and each against the other; with a device for each rank,
// where kernels meet, and with fewer, where all goes through rank 0.
#include <chrono>
#include <optional>
#include <thread>

#include "reduction_cases.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;
using Clock = std::chrono::steady_clock;

#define NEEDS_A_DEVICE()                                                              \
  if (::rank_test::devices() == 0)                                                    \
  GTEST_SKIP() << "not covered here: collective calls in streams, which take a CUDA " \
                  "device"

// Bytes: none, one, odd, around a unit, what one block carries, one kernel, and what goes through rank 0 at once.
const std::vector<std::size_t>& lengths() {
  static const std::vector<std::size_t> all{0,     1,     7,      8,      15,     16,     17,     511,
                                            512,   513,   4093,   8191,   8192,   8193,   16385,  65535,
                                            65536, 65537, 131071, 262144, 262145, 524288, 2097153};
  return all;
}

std::uint64_t seed_of(std::size_t bytes, int root, int shift) { return bytes * 64 + at(root) * 8 + at(shift); }

void check_bcast(const Stream& stream, const Member& here, std::size_t bytes, int root, int shift) {
  GuardedBuffer buffer(IST_KIND_CUDA, bytes + 16);
  auto wanted = random_bytes(bytes, seed_of(bytes, root, shift));
  wanted.insert(wanted.begin(), at(shift), 0xa5);
  if (here.rank == root) buffer.fill(wanted);
  EXPECT_EQ(IST_OK,
            ist_bcast_on(stream.get(), ist_buffer_at(buffer.get(), at(shift)), count(bytes), IST_BYTE, root, here.comm))
      << ist_error_text();
  stream.wait();
  buffer.expect(
      wanted, std::to_string(bytes) + " bytes from root " + std::to_string(root) + ", shifted by " + std::to_string(shift));
}

// Exclusive or of bytes wherever they lie; root -1: allreduce.
void check_reduce(const Stream& stream, const Member& here, std::size_t bytes, int root, int shift, bool in_place) {
  GuardedBuffer send(IST_KIND_CUDA, bytes + 16);
  GuardedBuffer recv(IST_KIND_CUDA, bytes + 16);
  const std::uint64_t seed = seed_of(bytes, root + 1, shift) * 16;
  std::vector<unsigned char> wanted(bytes, 0);
  for (int r = 0; r < here.size; ++r) {
    const auto theirs = random_bytes(bytes, seed + at(r));
    for (std::size_t i = 0; i < bytes; ++i) wanted[i] ^= theirs[i];
  }
  auto mine = random_bytes(bytes, seed + at(here.rank));
  mine.insert(mine.begin(), at(shift), 0xa5);
  wanted.insert(wanted.begin(), at(shift), 0xa5);
  const bool gets = root < 0 || here.rank == root;
  const bool place = in_place && gets;
  (place ? recv : send).fill(mine);
  const ist_buffer from = place ? IST_IN_PLACE : ist_buffer_at(send.get(), at(shift));
  const ist_buffer to = ist_buffer_at(recv.get(), at(shift));
  const int code = root < 0 ? ist_allreduce_on(stream.get(), from, to, count(bytes), IST_BYTE, IST_BXOR, here.comm)
                            : ist_reduce_on(stream.get(), from, to, count(bytes), IST_BYTE, IST_BXOR, root, here.comm);
  EXPECT_EQ(IST_OK, code) << ist_error_text();
  stream.wait();
  const std::string what =
      std::to_string(bytes) + " bytes to " + std::to_string(root) + ", shifted by " + std::to_string(shift);
  recv.expect(gets ? wanted : std::vector<unsigned char>{}, what);
  if (!place) send.expect(mine, what + ", what was given");
}

TEST(Meetings, EverySizeIsTheSerialResultOnEveryCommunicatorAndRoot) {
  NEEDS_A_DEVICE();
  const Stream stream;
  on_communicators(Form::blocking, [&](const Member& here) {
    int turn = 0;
    for (const std::size_t bytes : lengths()) {
      const int root = turn % here.size;
      const int shift = turn % 3 == 0 ? 0 : turn % 3 == 1 ? 3 : 8;
      check_bcast(stream, here, bytes, root, shift);
      check_reduce(stream, here, bytes, root, shift, turn % 2 == 0);
      check_reduce(stream, here, bytes, -1, shift, turn % 2 == 1);
      EXPECT_EQ(IST_OK, ist_barrier_on(stream.get(), here.comm)) << ist_error_text();
      ++turn;
    }
    stream.wait();
    EXPECT_EQ(IST_OK, ist_barrier(here.comm));
  });
}

Value value_of(int r, std::size_t i, bool parts) {
  const auto mixed = static_cast<unsigned>(i * 7 + at(r) * 3 + i / 5);
  return {static_cast<int>(mixed % 3), parts ? static_cast<int>((mixed / 3) % 2) : 0};
}

void check_operation(const Stream& stream, const OperationCase& operation, const TypeCase& type, std::size_t elements,
                     int root) {
  const Member here{comm()};
  const bool two = type.family == TypeCase::complex || type.family == TypeCase::located;
  Bytes mine(elements * type.size);
  Bytes expected(elements * type.size, 0);
  for (std::size_t i = 0; i < elements; ++i) {
    const Value own = value_of(here.rank, i, two);
    type.write(own.first, own.second, &mine[i * type.size]);
    Value result = value_of(0, i, two);
    for (int r = 1; r < here.size; ++r) result = operation.of(result, value_of(r, i, two));
    type.write(result.first, result.second, &expected[i * type.size]);
  }
  GuardedBuffer send(IST_KIND_CUDA, mine.size());
  GuardedBuffer recv(IST_KIND_CUDA, mine.size());
  send.fill(mine);
  const auto n = static_cast<std::int64_t>(elements);
  const int code = root < 0
                       ? ist_allreduce_on(stream.get(), send.get(), recv.get(), n, type.type, operation.op, here.comm)
                       : ist_reduce_on(stream.get(), send.get(), recv.get(), n, type.type, operation.op, root, here.comm);
  const std::string what = std::string{operation.name} + " of " + std::to_string(elements) + " elements of " + type.name;
  ASSERT_EQ(IST_OK, code) << what << ": " << ist_error_text();
  stream.wait();
  if (root >= 0 && here.rank != root) return recv.expect({}, what);
  if (type.family == TypeCase::complex) {  // a zero of a complex product may have either sign
    Bytes found(expected.size());
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), recv.get(), found.size()));
    for (std::size_t i = 0; i < elements; ++i)
      ASSERT_EQ(type.read(&expected[i * type.size]), type.read(&found[i * type.size])) << what << ", element " << i;
    return;
  }
  recv.expect(expected, what);
}

TEST(Meetings, EveryOperationOnEveryTypeIsTheSerialResultOrAnErrorThatNamesBoth) {
  NEEDS_A_DEVICE();
  if (size() == 1) GTEST_SKIP() << "not covered here: reductions of several ranks; there is one";
  const Stream stream;
  int turn = 0;
  for (const OperationCase& operation : operations()) {
    for (const TypeCase& type : types()) {
      if (std::count(operation.families.begin(), operation.families.end(), type.family) > 0) {
        check_operation(stream, operation, type, 37, -1);
        check_operation(stream, operation, type, 5, turn++ % size());
        if (testing::Test::HasFatalFailure()) return;
        continue;
      }
      const GuardedBuffer buffer(IST_KIND_CUDA, 32);
      EXPECT_EQ(IST_ERR_ARGUMENT,
                ist_allreduce_on(stream.get(), buffer.get(), buffer.get(), 1, type.type, operation.op, comm()))
          << operation.name << " of " << type.name;
    }
  }
}

// Where every order gives other bits: from left to right, in the order of ranks.
TEST(Meetings, FloatsAreAddedFromLeftToRight) {
  NEEDS_A_DEVICE();
  const Stream stream;
  on_communicators(Form::blocking, [&](const Member& here) {
    for (const std::size_t elements : {std::size_t{1}, std::size_t{1003}, std::size_t{40001}}) {
      std::vector<float> sum;
      Bytes mine(elements * 4);
      for (int r = 0; r < here.size; ++r) {
        std::mt19937 generator(static_cast<unsigned>(r) * 101 + 7);
        std::uniform_real_distribution<float> values(-1.0F, 1.0F);
        std::vector<float> floats(elements);
        for (float& value : floats) value = values(generator) * std::pow(10.0F, static_cast<float>(generator() % 8));
        if (r == here.rank) std::memcpy(mine.data(), floats.data(), mine.size());
        if (r == 0) sum = floats;
        for (std::size_t i = 0; r > 0 && i < elements; ++i) sum[i] = sum[i] + floats[i];
      }
      Bytes wanted(mine.size());
      std::memcpy(wanted.data(), sum.data(), wanted.size());
      GuardedBuffer buffer(IST_KIND_CUDA, mine.size());
      for (int round = 0; round < 3; ++round) {
        buffer.fill(mine);
        EXPECT_EQ(IST_OK, ist_allreduce_on(stream.get(), IST_IN_PLACE, buffer.get(), static_cast<std::int64_t>(elements),
                                           IST_FLOAT, IST_SUM, here.comm))
            << ist_error_text();
        stream.wait();
        buffer.expect(wanted, std::to_string(elements) + " floats");
      }
    }
  });
}

TEST(Meetings, NobodysStreamPassesABarrierBeforeEverybodysHasComeToIt) {
  NEEDS_A_DEVICE();
  const Stream stream;
  constexpr auto kBefore = std::chrono::milliseconds(40);
  IST_OK_OR_FAIL(ist_prepare_collectives_on(stream.get(), comm()));
  for (int late = 0; late < size(); ++late) {
    together();
    const auto start = Clock::now();
    if (rank() == late) std::this_thread::sleep_for(kBefore);
    IST_OK_OR_FAIL(ist_barrier_on(stream.get(), comm()));
    stream.wait();
    // Of when the late one begins the others know no more than that it left ist_barrier about when they did.
    EXPECT_GE(Clock::now() - start, kBefore / 2) << "rank " << late << " was late";
  }
}

TEST(Meetings, ARootThatIsAheadDoesNotWaitOnTheProcessorAndNothingIsLost) {
  NEEDS_A_DEVICE();
  const Stream stream;
  IST_OK_OR_FAIL(ist_prepare_collectives_on(stream.get(), comm()));
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{9001}}) {
    constexpr std::size_t kCalls = 30;
    GuardedBuffer buffer(IST_KIND_CUDA, bytes * kCalls);
    const auto wanted = random_bytes(bytes * kCalls, bytes);
    if (rank() == 0) buffer.fill(wanted);
    const auto all = [&] {
      for (std::size_t n = 0; n < kCalls; ++n)
        EXPECT_EQ(IST_OK,
                  ist_bcast_on(stream.get(), ist_buffer_at(buffer.get(), n * bytes), count(bytes), IST_BYTE, 0, comm()))
            << ist_error_text();
    };
    if (rank() == 0) all();
    together();  // rank 0 comes here although nobody has heard anything
    if (rank() != 0) all();
    stream.wait();
    buffer.expect(wanted, std::to_string(kCalls) + " calls of " + std::to_string(bytes) + " bytes");
    together();
  }
}

// Each round with bytes of its own in the same place; `captured`: on this rank.
void replay(bool captured, std::size_t bytes) {
  const Stream stream;
  GuardedBuffer told(IST_KIND_CUDA, bytes);
  GuardedBuffer sums(IST_KIND_CUDA, bytes);
  GuardedBuffer to_last(IST_KIND_CUDA, bytes);
  GuardedBuffer mine(IST_KIND_CUDA, bytes);
  const int last = size() - 1;
  IST_OK_OR_FAIL(ist_prepare_collectives_on(stream.get(), comm()));
  const auto round = [&] {
    const std::int64_t n = count(bytes);
    EXPECT_EQ(IST_OK, ist_bcast_on(stream.get(), told.get(), n, IST_BYTE, 0, comm())) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_allreduce_on(stream.get(), mine.get(), sums.get(), n, IST_UINT8, IST_SUM, comm()))
        << ist_error_text();
    EXPECT_EQ(IST_OK, ist_barrier_on(stream.get(), comm())) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_reduce_on(stream.get(), told.get(), to_last.get(), n, IST_UINT8, IST_MAX, last, comm()))
        << ist_error_text();
  };
  std::optional<Graph> graph;
  if (captured) graph.emplace(stream, round);
  const char* given = std::getenv("ISTHMUS_TEST_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 40;
  for (int n = 0; n < rounds; ++n) {
    const auto of_root = random_bytes(bytes, bytes * 1000 + at(n));
    std::vector<unsigned char> sum(bytes, 0);
    for (int r = 0; r < size(); ++r) {
      const auto theirs = random_bytes(bytes, at(n * 64 + r));
      for (std::size_t i = 0; i < bytes; ++i) sum[i] = static_cast<unsigned char>(sum[i] + theirs[i]);
    }
    told.poison();
    sums.poison();
    to_last.poison();
    if (rank() == 0) told.fill(of_root);
    mine.fill(random_bytes(bytes, at(n * 64 + rank())));
    // Now and then the two change over.
    if (captured && n % 7 != 6)
      graph->launch();
    else
      round();
    stream.wait();
    const std::string what = std::to_string(bytes) + " bytes, round " + std::to_string(n);
    told.expect(of_root, "from the root: " + what);
    sums.expect(sum, "sums: " + what);
    if (rank() == last) to_last.expect(of_root, "to the last: " + what);
  }
  together();
}

TEST(Meetings, ReplaysWithChangingBytesMeetReplaysAndPlainCalls) {
  NEEDS_A_DEVICE();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{8195}, std::size_t{70001}}) {
    replay(true, bytes);
    replay(rank() % 2 == 0, bytes);
    replay(rank() % 2 == 1, bytes);
  }
}

TEST(Meetings, NothingIsPreparedInACaptureAndTheCaptureGoesOn) {
  NEEDS_A_DEVICE();
  const Stream stream;
  ist_comm fresh = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &fresh));
  const GuardedBuffer buffer(IST_KIND_CUDA, 8);
  const Graph graph(stream, [&] {
    const auto refused = [&](int code, const char* call) {
      fails(IST_ERR_NOT_CAPTURABLE, code, {call, "not prepared", "ist_prepare_collectives_on"});
    };
    refused(ist_prepare_collectives_on(stream.get(), fresh), "ist_prepare_collectives_on");
    refused(ist_barrier_on(stream.get(), fresh), "ist_barrier_on");
    refused(ist_bcast_on(stream.get(), buffer.get(), 8, IST_BYTE, 0, fresh), "ist_bcast_on");
    refused(ist_reduce_on(stream.get(), buffer.get(), buffer.get(), 1, IST_INT64, IST_SUM, 0, fresh), "ist_reduce_on");
    refused(ist_allreduce_on(stream.get(), buffer.get(), buffer.get(), 1, IST_INT64, IST_SUM, fresh), "ist_allreduce_on");
  });
  graph.launch();
  stream.wait();
  together();
  IST_OK_OR_FAIL(ist_comm_free(&fresh));
}

TEST(Meetings, PageLockedHostMemoryIsUsedAsItIs) {
  NEEDS_A_DEVICE();
  const Stream stream;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{20001}}) {
    GuardedBuffer buffer(IST_KIND_HOST, bytes);
    const ist_buffer place = buffer.get();
    void* const address = reinterpret_cast<void*>(place.object + place.offset);
    IST_OK_OR_FAIL(ist_register(world(), address, bytes));
    const auto wanted = random_bytes(bytes, bytes);
    if (rank() == 0) buffer.fill(wanted);
    IST_OK_OR_FAIL(ist_bcast_on(stream.get(), place, count(bytes), IST_BYTE, 0, comm()));
    IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), IST_IN_PLACE, place, count(bytes), IST_BYTE, IST_BAND, comm()));
    stream.wait();
    buffer.expect(wanted, "page-locked host memory");
    IST_OK_OR_FAIL(ist_unregister(world(), address));
  }
}

void twice(const void*, void*, std::int64_t, ist_type, void*) {}

TEST(Meetings, WhatCannotBeIsRefusedAtOnceAndTheNextCallMeets) {
  NEEDS_A_DEVICE();
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, 100);
  IST_OK_OR_FAIL(ist_prepare_collectives_on(stream.get(), comm()));
  const auto sum = [&](const ist_buffer& send, const ist_buffer& recv, std::int64_t n, ist_op op) {
    return ist_allreduce_on(stream.get(), send, recv, n, IST_INT64, op, comm());
  };
  std::vector<std::int64_t> pageable(8);
  fails(IST_ERR_ARGUMENT, sum(ist_host(pageable.data()), buffer.get(), 8, IST_SUM),
        {"ist_allreduce_on", "send", "not page-locked", "ist_register"});
  fails(IST_ERR_ARGUMENT, sum(buffer.get(), ist_host(pageable.data()), 8, IST_SUM), {"recv", "not page-locked"});
  fails(IST_ERR_ARGUMENT, sum(buffer.get(), IST_IN_PLACE, 1, IST_SUM), {"recv", "IST_IN_PLACE"});
  fails(IST_ERR_ARGUMENT, sum(buffer.get(), buffer.get(), -1, IST_SUM), {"-1"});
  fails(IST_ERR_HANDLE, sum(buffer.get(), buffer.get(), 1, IST_OP_NULL), {"null"});
  ist_op own = IST_OP_NULL;
  IST_OK_OR_FAIL(ist_op_create(twice, nullptr, 1, &own));
  fails(IST_ERR_ARGUMENT, sum(buffer.get(), buffer.get(), 1, own), {"ist_op_create", "processor", "ist_allreduce"});
  IST_OK_OR_FAIL(ist_op_free(&own));
  for (const int root : {-1, size()}) {
    fails(IST_ERR_RANK, ist_bcast_on(stream.get(), buffer.get(), 1, IST_BYTE, root, comm()),
          {"ist_bcast_on", "root is " + std::to_string(root)});
    fails(IST_ERR_RANK, ist_reduce_on(stream.get(), buffer.get(), buffer.get(), 1, IST_INT, IST_SUM, root, comm()),
          {"ist_reduce_on", "root is " + std::to_string(root)});
  }
  fails(IST_ERR_ARGUMENT, sum(buffer.get(), ist_buffer_at(buffer.get(), 8), 8, IST_SUM),
        {"ist_allreduce_on", "send (64 bytes at 0x", "recv (64 bytes at 0x", "overlap in 56 bytes", "IST_IN_PLACE"});
  fails(IST_ERR_ARGUMENT, sum(ist_buffer_at(buffer.get(), 16), buffer.get(), 3, IST_SUM), {"overlap in 8 bytes"});
  fails(IST_ERR_HANDLE, ist_barrier_on(stream.get(), IST_COMM_NULL), {"ist_barrier_on", "null"});
  if (devices() > 1) {
    ist_buffer far{};
    IST_OK_OR_FAIL(ist_memory_alloc(world(), IST_KIND_CUDA, (rank() + 1) % devices(), 100, &far));
    fails(IST_ERR_ARGUMENT, sum(far, buffer.get(), 1, IST_SUM), {"send", "on device"});
    fails(IST_ERR_ARGUMENT, ist_barrier_on(reinterpret_cast<void*>(far.queue), comm()),
          {"ist_barrier_on", "on cuda device"});
    IST_OK_OR_FAIL(ist_memory_free(world(), far));
  }
  check_reduce(stream, Member{comm()}, 24, -1, 0, false);
  together();
}

}  // namespace
