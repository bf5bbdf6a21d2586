// Puts with a signal into memory of devices, call by call of the driver: the word changes behind the bytes in their stream, and the two are
// waited for together. Run as messages_test.cpp is; what counts is in the driver that needs no GPU.
#include <set>

#include "../fake_cuda/fake_cuda.h"
#include "driver_memory.hpp"
#include "one_sided_support.hpp"

namespace {

using namespace rank_test;

struct Noted {
  std::string call;
  const void* of;
};

bool notes() { return DRIVER(fake_cuda_note) != nullptr; }

std::vector<Noted> noted_in(const std::function<void()>& work) {
  DRIVER(fake_cuda_note)(1);
  work();
  std::vector<Noted> all;
  const char* call = nullptr;
  const void* of = nullptr;
  while (DRIVER(fake_cuda_noted)(static_cast<int>(all.size()), &call, &of) != 0) all.push_back({call, of});
  DRIVER(fake_cuda_note)(0);
  return all;
}

std::string text_of(const std::vector<Noted>& all) {
  std::string text;
  for (const Noted& each : all) text += each.call + " ";
  return text;
}

// The bytes, and at once in their stream the word; then one event alone is asked after, as often as it takes.
void expect_one_wait(const std::vector<Noted>& all, const std::string& changes) {
  ASSERT_GE(all.size(), 3U) << text_of(all);
  EXPECT_EQ("cuMemcpyAsync", all[0].call) << text_of(all);
  EXPECT_EQ(changes, all[1].call) << text_of(all);
  EXPECT_EQ(all[0].of, all[1].of) << "another stream";
  std::set<const void*> events;
  for (std::size_t i = 2; i < all.size(); ++i) {
    EXPECT_EQ("cuEventQuery", all[i].call) << text_of(all);
    events.insert(all[i].of);
  }
  EXPECT_EQ(1U, events.size()) << "more than one wait: " << text_of(all);
}

class OneSidedOrder : public testing::Test {
 protected:
  void SetUp() override {
    if (!notes()) GTEST_SKIP() << "not covered here: this is not the driver that notes its calls";
    heap_ = std::make_unique<TestHeap>(IST_KIND_CUDA);
    part_ = heap_->alloc(kBytes);
    void* zeroed = nullptr;
    ASSERT_EQ(IST_OK, ist_heap_calloc(*heap_, 1, 8, &zeroed)) << ist_error_text();
    word_ = static_cast<std::uint64_t*>(zeroed);
    source_ = std::make_unique<GuardedBuffer>(IST_KIND_CUDA, kBytes);
    source_->fill(random_bytes(kBytes, seed(rank())));
  }
  void TearDown() override {
    source_.reset();
    if (heap_) heap_->barrier();
    heap_.reset();
  }
  static std::uint64_t seed(int pe) { return 50 + static_cast<std::uint64_t>(pe); }
  void put(std::uint64_t value, ist_signal operation) {
    EXPECT_EQ(IST_OK, ist_heap_put_signal(*heap_, part_, source_->get(), kBytes, word_, value, operation, right()))
        << ist_error_text();
  }
  void expect_signalled(std::uint64_t value) {
    EXPECT_EQ(IST_OK, ist_heap_wait_until(*heap_, word_, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(value)))
        << ist_error_text();
    EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed(left())), heap_->load(part_, kBytes)));
    heap_->barrier();
  }

  static constexpr std::size_t kBytes = 20000;
  std::unique_ptr<TestHeap> heap_;
  unsigned char* part_ = nullptr;
  std::uint64_t* word_ = nullptr;
  std::unique_ptr<GuardedBuffer> source_;
};

TEST_F(OneSidedOrder, ASignalIsStoredBehindTheBytesInTheirStreamAndBothAreWaitedForAtOnce) {
  put(1, IST_SIGNAL_SET);  // lanes and events are there from now on
  expect_signalled(1);
  expect_one_wait(noted_in([&] { put(2, IST_SIGNAL_SET); }), "cuStreamWriteValue64");
  expect_signalled(2);
}

TEST_F(OneSidedOrder, ASignalIsAddedBehindTheBytesInTheirStreamAndBothAreWaitedForAtOnce) {
  put(1, IST_SIGNAL_ADD);
  expect_signalled(1);
  expect_one_wait(noted_in([&] { put(2, IST_SIGNAL_ADD); }), "cuLaunchKernel");
  expect_signalled(3);
}

// From host memory the lane is another one.
TEST_F(OneSidedOrder, TheStreamIsThatOfTheBytesWhereverTheyComeFrom) {
  const auto bytes = random_bytes(kBytes, seed(rank()));
  for (const ist_signal operation : {IST_SIGNAL_SET, IST_SIGNAL_ADD}) {
    const auto send = [&](std::uint64_t value) {
      EXPECT_EQ(IST_OK, ist_heap_put_signal(*heap_, part_, ist_host(bytes.data()), kBytes, word_, value, operation, right()))
          << ist_error_text();
    };
    const std::uint64_t before = operation == IST_SIGNAL_SET ? 0 : 2;
    send(1);
    expect_signalled(before + 1);
    const auto all = noted_in([&] { send(operation == IST_SIGNAL_SET ? 2 : 1); });
    expect_signalled(before + 2);
    std::set<const void*> streams;
    for (const Noted& each : all)
      if (each.call != "cuEventQuery") streams.insert(each.of);
    EXPECT_EQ(1U, streams.size()) << text_of(all);
  }
}

// Bytes and word go on by themselves: nobody calls anything of the heap's on the putting side.
TEST_F(OneSidedOrder, ASignalThatIsNotWaitedForNeedsNoFurtherCall) {
  put(1, IST_SIGNAL_SET);
  expect_signalled(1);
  const auto all = noted_in([&] {
    EXPECT_EQ(IST_OK, ist_heap_put_signal_nbi(*heap_, part_, source_->get(), kBytes, word_, 2, IST_SIGNAL_SET, right()))
        << ist_error_text();
  });
  ASSERT_GE(all.size(), 2U) << text_of(all);
  EXPECT_EQ("cuStreamWriteValue64", all[1].call) << text_of(all);
  EXPECT_LE(all.size(), 4U) << "it waited: " << text_of(all);
  expect_signalled(2);
}

// A driver that has no such call: waited for in between, and the signal comes all the same, once.
TEST_F(OneSidedOrder, WithoutSuchACallTheSignalFollowsTheWait) {
  put(1, IST_SIGNAL_SET);
  expect_signalled(1);
  DRIVER(fake_cuda_fail)("cuStreamWriteValue64_v2", 0, CUDA_ERROR_NOT_SUPPORTED);
  const auto all = noted_in([&] { put(2, IST_SIGNAL_SET); });
  DRIVER(fake_cuda_heal)();
  std::size_t copies = 0;
  for (const Noted& each : all) copies += each.call == "cuMemcpyAsync" || each.call == "cuStreamBatchMemOp" ? 1 : 0;
  EXPECT_EQ(2U, copies) << text_of(all);
  expect_signalled(2);
}

// What fails behind the bytes is told, and the word stays.
TEST_F(OneSidedOrder, WhereTheChangeFailsTheWordStays) {
  DRIVER(fake_cuda_fail)("cuLaunchKernel", 0, CUDA_ERROR_UNKNOWN);
  expect_error(IST_ERR_DEVICE, "cuLaunchKernel",
               ist_heap_put_signal(*heap_, part_, source_->get(), kBytes, word_, 1, IST_SIGNAL_ADD, right()));
  DRIVER(fake_cuda_heal)();
  heap_->barrier();
  std::uint64_t found = 7;
  EXPECT_EQ(IST_OK, ist_heap_signal_fetch(*heap_, word_, &found));
  EXPECT_EQ(0U, found);
  heap_->barrier();
}

}  // namespace
