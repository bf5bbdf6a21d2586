// Collective calls that NCCL carries: on CUDA memory, each rank on a GPU of its own. Run on 1 to 5 ranks, with the fake CUDA driver
// and the fake NCCL, or with real ones where there is a GPU for each rank.
//
// ISTHMUS_TEST_NCCL says what must carry them: nccl, or messages.
#include <array>
#include <cstdlib>

#include "reduction_cases.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

constexpr std::size_t kLong = 131072;  // numbers of 8 bytes: worth NCCL's while on any number of ranks

bool nccl_expected() {
  const char* text = std::getenv("ISTHMUS_TEST_NCCL");
  return text != nullptr && std::string{text} == "nccl" && size() > 1;
}

#define NEEDS_CUDA()                                                                    \
  do {                                                                                  \
    int cuda_devices = 0;                                                               \
    IST_OK_OR_FAIL(ist_kind_devices(world(), IST_KIND_CUDA, &cuda_devices));            \
    if (cuda_devices < size()) GTEST_SKIP() << "SKIPPED: no CUDA device for each rank"; \
  } while (0)

// Waits, and asks what carried the call.
void wait_for(ist_request request, bool by_nccl, const std::string& what) {
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&request, &status));
  if (std::getenv("ISTHMUS_TEST_NCCL") == nullptr) return;
  EXPECT_STREQ(by_nccl && nccl_expected() ? "nccl" : "none", ist_carrier_name(status.carrier)) << what;
}

std::int64_t number(std::size_t count) { return static_cast<std::int64_t>(count); }

bool known_to_nccl(const OperationCase& operation, const TypeCase& type) {
  const std::string name = operation.name;
  const bool numbers =
      name == "sum" || name == "product" || name == "minimum" || name == "maximum" || name == "min" || name == "max";
  if (type.family == TypeCase::complex) return name == "sum";
  return numbers && type.family != TypeCase::located && (type.family == TypeCase::floating || type.size != 2);
}

Value value_of(int r, std::size_t i, bool parts) {
  const auto mixed = static_cast<unsigned>(i * 7 + static_cast<std::size_t>(r) * 3 + i / 5);
  return {static_cast<int>(mixed % 3), parts ? static_cast<int>((mixed / 3) % 2) : 0};
}

void check_operation(const OperationCase& operation, const TypeCase& type) {
  const std::size_t count = kLong * 8 / type.size;
  const std::string what = std::string{operation.name} + " of " + type.name;
  const bool two = type.family == TypeCase::complex || type.family == TypeCase::located;
  // Computed once for so many elements, a prime number, after which they come again.
  const std::size_t period = std::min<std::size_t>(count, 10007);
  Bytes mine(count * type.size, 0);
  Bytes expected(count * type.size, 0);
  for (std::size_t i = 0; i < period; ++i) {
    const Value value = value_of(rank(), i, two);
    type.write(value.first, value.second, &mine[i * type.size]);
    Value result = value_of(0, i, two);
    for (int r = 1; r < size(); ++r) result = operation.of(result, value_of(r, i, two));
    type.write(result.first, result.second, &expected[i * type.size]);
  }
  for (Bytes* const each : {&mine, &expected})
    for (std::size_t at = period * type.size; at < each->size(); ++at) (*each)[at] = (*each)[at - period * type.size];
  const Numbers send{IST_KIND_CUDA, mine};
  const Numbers recv{IST_KIND_CUDA, mine.size() / 8};
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(send.get(), recv.get(), number(count), type.type, operation.op, comm(), &request));
  wait_for(request, known_to_nccl(operation, type), what);
  recv.expect(expected, what);
}

TEST(Nccl, EveryOperationOnEveryTypeIsTheSerialResultAndNcclsWhereItKnowsThem) {
  NEEDS_CUDA();
  for (const OperationCase& operation : operations())
    for (const TypeCase& type : types()) {
      if (std::count(operation.families.begin(), operation.families.end(), type.family) == 0) continue;
      // A complex product's zeros have either sign; by messages it is the reductions' test that compares them.
      if (type.family == TypeCase::complex && std::string{operation.name} != "sum") continue;
      if (size() == 1) continue;
      check_operation(operation, type);
      if (testing::Test::HasFatalFailure()) return;
    }
}

void check_reductions(const Member& here, std::size_t count) {
  const Bytes sum = sum_of(0, here.size, count, 31);
  const Numbers send{IST_KIND_CUDA, input_of(here.rank, count, 31)};
  const Numbers recv{IST_KIND_CUDA, count};
  IST_OK_OR_FAIL(ist_allreduce(send.get(), recv.get(), number(count), IST_UINT64, IST_SUM, here.comm));
  recv.expect(sum, "allreduce");
  const Numbers both{IST_KIND_CUDA, input_of(here.rank, count, 31)};
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, both.get(), number(count), IST_UINT64, IST_SUM, here.comm, &request));
  wait_for(request, here.size > 1 && count >= kLong, "allreduce in place");
  both.expect(sum, "allreduce in place");
  for (int root = 0; root < here.size; ++root) {
    const Numbers result{IST_KIND_CUDA, count};
    IST_OK_OR_FAIL(ist_ireduce(send.get(), result.get(), number(count), IST_UINT64, IST_SUM, root, here.comm, &request));
    wait_for(request, here.size > 1 && count >= kLong, "reduce");
    result.expect(here.rank == root ? sum : Bytes{}, "reduce to " + std::to_string(root));
  }
  const std::size_t each = count / static_cast<std::size_t>(here.size);
  const std::size_t all = each * static_cast<std::size_t>(here.size);
  const Numbers mine{IST_KIND_CUDA, each};
  IST_OK_OR_FAIL(ist_ireduce_scatter_block(send.get(), mine.get(), number(each), IST_UINT64, IST_SUM, here.comm, &request));
  wait_for(request, here.size > 1 && count >= kLong, "reduce_scatter_block");
  mine.expect(part(sum_of(0, here.size, count, 31), each * static_cast<std::size_t>(here.rank), each),
              "reduce_scatter_block");
  const Numbers whole{IST_KIND_CUDA, part(input_of(here.rank, count, 31), 0, all)};
  IST_OK_OR_FAIL(
      ist_ireduce_scatter_block(IST_IN_PLACE, whole.get(), number(each), IST_UINT64, IST_SUM, here.comm, &request));
  wait_for(request, false, "reduce_scatter_block in place");
}

void check_moves(const Member& here, std::size_t count) {
  ist_request request = IST_REQUEST_NULL;
  for (int root = 0; root < here.size; ++root) {
    const Numbers buffer{IST_KIND_CUDA, input_of(here.rank, count, 41)};
    IST_OK_OR_FAIL(ist_ibcast(buffer.get(), number(count), IST_UINT64, root, here.comm, &request));
    wait_for(request, here.size > 1 && count >= kLong, "bcast");
    buffer.expect(input_of(root, count, 41), "bcast from " + std::to_string(root));
  }
  std::vector<Bytes> parts;
  for (int r = 0; r < here.size; ++r) parts.push_back(input_of(r, count, 42));
  const Numbers own{IST_KIND_CUDA, parts[at(here.rank)]};
  const Numbers all{IST_KIND_CUDA, count * at(here.size)};
  IST_OK_OR_FAIL(ist_allgather(own.get(), number(count), all.get(), number(count), IST_UINT64, here.comm));
  all.expect(joined(parts), "allgather");
  Numbers placed{IST_KIND_CUDA, count * at(here.size)};
  placed.fill(parts[at(here.rank)], at(here.rank) * count * 8);
  IST_OK_OR_FAIL(ist_iallgather(IST_IN_PLACE, 0, placed.get(), number(count), IST_UINT64, here.comm, &request));
  wait_for(request, here.size > 1 && count >= kLong, "allgather in place");
  placed.expect(joined(parts), "allgather in place");
  // Of rank r's input, part s is for rank s.
  std::vector<Bytes> mine;
  for (int r = 0; r < here.size; ++r)
    mine.push_back(part(input_of(r, count * at(here.size), 43), count * at(here.rank), count));
  const Numbers from{IST_KIND_CUDA, input_of(here.rank, count * at(here.size), 43)};
  const Numbers into{IST_KIND_CUDA, count * at(here.size)};
  IST_OK_OR_FAIL(ist_ialltoall(from.get(), into.get(), number(count), IST_UINT64, here.comm, &request));
  wait_for(request, here.size > 1 && count >= kLong, "alltoall");
  into.expect(joined(mine), "alltoall");
  IST_OK_OR_FAIL(ist_ialltoall(IST_IN_PLACE, from.get(), number(count), IST_UINT64, here.comm, &request));
  wait_for(request, false, "alltoall in place");
  from.expect(joined(mine), "alltoall in place");
}

TEST(Nccl, EveryCallOnEveryCommunicatorIsTheSerialResult) {
  NEEDS_CUDA();
  on_communicators(Form::blocking, [](const Member& here) {
    check_reductions(here, kLong);
    check_moves(here, kLong);
    // Below the size where asking for it pays, and odd ones above.
    check_reductions(here, 101);
    check_moves(here, kLong + 3);
  });
}

TEST(Nccl, SeveralCallsUnderWayEndRightInWhateverOrderTheyAreWaitedFor) {
  NEEDS_CUDA();
  constexpr int kCalls = 6;
  std::vector<std::unique_ptr<Numbers>> send;
  std::vector<std::unique_ptr<Numbers>> recv;
  std::array<ist_request, kCalls> requests{};
  for (int call = 0; call < kCalls; ++call) {
    const auto seed = static_cast<std::uint64_t>(50 + call);
    // Every third goes by messages: a rank's buffer is on the host.
    const ist_kind kind = call % 3 == 2 && rank() == 0 ? IST_KIND_HOST : IST_KIND_CUDA;
    send.push_back(std::make_unique<Numbers>(kind, input_of(rank(), kLong + at(call), seed)));
    recv.push_back(std::make_unique<Numbers>(kind, kLong + at(call)));
    IST_OK_OR_FAIL(ist_iallreduce(send.back()->get(), recv.back()->get(), number(kLong + at(call)), IST_UINT64, IST_SUM,
                                  comm(), &requests[at(call)]));
  }
  for (int call = kCalls - 1; call >= 0; --call) {
    wait_for(requests[at(call)], size() > 1 && call % 3 != 2, "call " + std::to_string(call));
    recv[at(call)]->expect(sum_of(0, size(), kLong + at(call), static_cast<std::uint64_t>(50 + call)),
                           "call " + std::to_string(call));
  }
}

TEST(Nccl, AnyBufferThatIsNotCudaMemoryMakesAllRanksUseMessages) {
  NEEDS_CUDA();
  for (int odd_one = 0; odd_one < size(); ++odd_one)
    for (const bool recv_too : {false, true}) {
      const bool odd = rank() == odd_one;
      const Numbers send{odd ? IST_KIND_HOST : IST_KIND_CUDA, input_of(rank(), kLong, 61)};
      const Numbers recv{odd && recv_too ? IST_KIND_HOST : IST_KIND_CUDA, kLong};
      ist_request request = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_iallreduce(send.get(), recv.get(), number(kLong), IST_UINT64, IST_SUM, comm(), &request));
      wait_for(request, false, "one rank's buffer is on the host");
      recv.expect(sum_of(0, size(), kLong, 61), "one rank's buffer is on the host");
    }
}

// Ranks with host memory and blocking calls refuse at once, the others ask in a schedule, and find the same messages behind that.
TEST(Nccl, RanksThatRefuseAtOnceFitTogetherWithThoseThatAskInASchedule) {
  NEEDS_CUDA();
  // Few enough for a walk, and more.
  for (const std::size_t count : {std::size_t{6000}, kLong})
    for (int waits = 0; waits < size(); ++waits)
      for (const bool only : {false, true}) {
        // One rank waits and the others do not, or the other way round; those that wait have host memory.
        const bool waiting = (rank() == waits) != only;
        SCOPED_TRACE(std::to_string(count) + " numbers, rank " + std::to_string(waits) +
                     (only ? " alone does not wait" : " waits"));
        const ist_kind kind = waiting || count < kLong ? IST_KIND_HOST : IST_KIND_CUDA;
        const Numbers send{kind, input_of(rank(), count, 64)};
        const Numbers recv{kind, count};
        const Numbers both{kind, input_of(rank(), count, 65)};
        ist_request requests[] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
        if (waiting) {
          IST_OK_OR_FAIL(ist_allreduce(send.get(), recv.get(), number(count), IST_UINT64, IST_SUM, comm()));
          IST_OK_OR_FAIL(ist_bcast(both.get(), number(count), IST_UINT64, waits, comm()));
        } else {
          IST_OK_OR_FAIL(ist_iallreduce(send.get(), recv.get(), number(count), IST_UINT64, IST_SUM, comm(), &requests[0]));
          IST_OK_OR_FAIL(ist_ibcast(both.get(), number(count), IST_UINT64, waits, comm(), &requests[1]));
          IST_OK_OR_FAIL(ist_waitall(2, requests, IST_STATUSES_IGNORE));
        }
        recv.expect(sum_of(0, size(), count, 64), "allreduce");
        both.expect(input_of(waits, count, 65), "bcast");
      }
}

TEST(Nccl, RanksThatShareAGpuUseMessages) {
  NEEDS_CUDA();
  if (size() == 1) return;
  ist_buffer buffer{};
  IST_OK_OR_FAIL(ist_memory_alloc(world(), IST_KIND_CUDA, 0, kLong * 8, &buffer));
  const Bytes mine = input_of(rank(), kLong, 71);
  IST_OK_OR_FAIL(ist_memory_copy(world(), buffer, ist_host(mine.data()), mine.size()));
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, buffer, number(kLong), IST_UINT64, IST_SUM, comm(), &request));
  wait_for(request, false, "all on one GPU");
  Bytes found(kLong * 8);
  IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), buffer, found.size()));
  EXPECT_EQ(-1, first_difference(sum_of(0, size(), kLong, 71), found));
  IST_OK_OR_FAIL(ist_memory_free(world(), buffer));
}

TEST(Nccl, ABufferOfOneRankThatIsNoneIsAnErrorOnAllAndTheNextCallWorks) {
  NEEDS_CUDA();
  if (size() == 1) return;
  const Numbers send{IST_KIND_CUDA, input_of(rank(), kLong, 81)};
  const Numbers recv{IST_KIND_CUDA, kLong};
  ist_buffer given = send.get();
  if (rank() == 1) given.object = 0;
  EXPECT_NE(IST_OK, ist_allreduce(given, recv.get(), number(kLong), IST_UINT64, IST_SUM, comm()));
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(send.get(), recv.get(), number(kLong), IST_UINT64, IST_SUM, comm(), &request));
  wait_for(request, true, "the next call");
  recv.expect(sum_of(0, size(), kLong, 81), "the next call");
}

TEST(Nccl, TheSameInputsGiveTheSameBits) {
  NEEDS_CUDA();
  std::mt19937 generator(static_cast<unsigned>(rank()) * 101 + 7);
  std::uniform_real_distribution<float> values(-1e3F, 1e3F);
  std::vector<float> floats(2 * kLong);
  for (float& value : floats) value = values(generator);
  Bytes bytes(kLong * 8);
  std::memcpy(bytes.data(), floats.data(), bytes.size());
  const Numbers send{IST_KIND_CUDA, bytes};
  Bytes first;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Numbers recv{IST_KIND_CUDA, kLong};
    IST_OK_OR_FAIL(ist_allreduce(send.get(), recv.get(), number(2 * kLong), IST_FLOAT, IST_SUM, comm()));
    Bytes found(kLong * 8);
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), recv.get(), found.size()));
    if (first.empty()) first = found;
    EXPECT_EQ(first, found) << "repeat " << repeat;
  }
}

}  // namespace
