// Reductions by kernels: modules come and go with their context, errors leave the kind usable.
#include "cuda_support.hpp"
#include "operands.hpp"

namespace ist::test {
namespace {

class CudaArithmetic : public CudaTest {
 protected:
  // Two pieces of this many ints, filled.
  void fill(std::int64_t count) {
    const Bytes size{static_cast<std::uint64_t>(count) * 4};
    a_ = random_elements(IST_INT, count);
    b_ = random_elements(IST_INT, count);
    into_ = must(kind->allocate(0, size));
    with_ = must(kind->allocate(0, size));
    for (const auto& [piece, bytes] : {std::pair{&into_, &a_}, {&with_, &b_}}) {
      Ticket ticket = must(kind->copy(*piece, host_piece(bytes->data(), size), {}));
      must(finish(ticket));
    }
  }
  void TearDown() override {
    for (const Piece& each : {into_, with_})
      if (each.object != 0) must(kind->release(each));
    CudaTest::TearDown();
  }
  Result<Ticket> sum(const Ticket& after = {}) {
    return kind->arithmetic()->combine(Reduction::sum, IST_INT, into_, with_, after);
  }
  void expect_sum() {
    Ticket ticket = must(sum());
    must(finish(ticket));
    combine_on_host(Reduction::sum, IST_INT, a_.data(), b_.data(), static_cast<std::int64_t>(a_.size() / 4));
    expect_bytes();
  }
  void expect_bytes() {
    Data found(a_.size(), 0xEE);
    Ticket ticket = must(kind->copy(host_piece(found.data(), into_.size), into_, {}));
    must(finish(ticket));
    EXPECT_EQ(found, a_);
  }

  Elements a_;
  Elements b_;
  Piece into_;
  Piece with_;
};

TEST_F(CudaArithmetic, the_kernels_are_loaded_once_and_only_where_something_is_combined) {
  fill(1000);
  if (is_fake()) {
    EXPECT_EQ(fake_calls("cuModuleLoadData"), 0U) << "loaded before anything was combined";
  }
  for (int i = 0; i < 3; ++i) expect_sum();
  if (is_fake()) {
    EXPECT_EQ(fake_calls("cuModuleLoadData"), 1U);
    EXPECT_EQ(fake_calls("cuModuleGetFunction"), 1U);
  }
  for (const Piece& each : {into_, with_}) must(kind->release(each));
  into_ = with_ = {};
  kind.reset();
  if (is_fake()) {
    EXPECT_EQ(fake_calls("cuModuleUnload"), 1U);
  }
  kind = must(make_cuda_kind(api));
}

TEST_F(CudaArithmetic, begins_only_after_the_work_of_the_user_that_its_ticket_stands_for) {
  CUstream stream = make_stream(primary());
  fill(1000);
  expect_sum();  // a driver may wait for everything while it loads a kernel
  Gate gate;
  fill_behind(gate, stream, into_.object, into_.size.value, 7);
  Piece busy = into_;
  busy.queue = reinterpret_cast<std::uint64_t>(stream);
  Ticket ready = must(kind->streams()->ready(busy));
  Ticket ticket = must(sum(ready));
  EXPECT_FALSE(must(kind->finished(ticket)));
  gate.open();
  must(finish(ticket));
  must(finish(ready));
  std::fill(a_.begin(), a_.end(), std::uint8_t{7});
  combine_on_host(Reduction::sum, IST_INT, a_.data(), b_.data(), 1000);
  expect_bytes();
}

TEST_F(CudaArithmetic, any_of_its_calls_may_fail_and_the_next_reduction_is_right) {
  NEEDS_FAKE("inject errors");
  fill(1000);
  // The last two only after the kernel is known.
  for (const char* call : {"cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuEventRecord"}) {
    const std::size_t events = cuda().events();
    for (int i = 0; i < 3; ++i) {
      fake_fail(call, 0, CUDA_ERROR_UNKNOWN);
      const auto failed = sum();
      ASSERT_FALSE(failed.ok()) << call;
      EXPECT_EQ(failed.status().code(), IST_ERR_DEVICE);
      EXPECT_NE(failed.status().text().find(call), std::string::npos) << failed.status().text();
    }
    EXPECT_LE(cuda().events(), events + 1) << "tickets were lost";
    // Where only its event was refused the reduction itself has run.
    if (std::string_view{call} == "cuEventRecord")
      for (int i = 0; i < 3; ++i) combine_on_host(Reduction::sum, IST_INT, a_.data(), b_.data(), 1000);
    expect_bytes();
    if (std::string_view{call} != "cuModuleLoadData") expect_sum();
  }
  expect_sum();
}

TEST_F(CudaArithmetic, memory_of_two_contexts_or_devices_is_refused_in_words) {
  fill(1000);
  CUcontext mine = make_context();
  CUdeviceptr address = 0;
  {
    const Current scope(api, mine);
    must(api, api.cuMemAlloc_v2(&address, 4000), "cuMemAlloc");
  }
  const auto expect_refused = [&](const Piece& with) {
    const auto refused = kind->arithmetic()->combine(Reduction::sum, IST_INT, into_, with, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), IST_ERR_KIND);
    EXPECT_NE(refused.status().text().find("two contexts"), std::string::npos) << refused.status().text();
  };
  expect_refused(device_piece(address, 4000));
  if (kind->devices().size() > 1) {
    const Piece far = must(kind->allocate(1, Bytes{4000}));
    expect_refused(far);
    must(kind->release(far));
  }
  expect_bytes();
  const Current scope(api, mine);
  must(api, api.cuMemFree_v2(address), "cuMemFree");
}

TEST_F(CudaArithmetic, works_in_a_context_of_the_users_and_outlives_it) {
  fill(1000);
  for (int round = 0; round < 2; ++round) {
    CUcontext mine = make_context();
    CUdeviceptr address[2] = {0, 0};
    {
      const Current scope(api, mine);
      for (CUdeviceptr& each : address) must(api, api.cuMemAlloc_v2(&each, 4000), "cuMemAlloc");
    }
    const Piece into = device_piece(address[0], 4000);
    const Piece with = device_piece(address[1], 4000);
    Ticket first = must(kind->copy(into, host_piece(a_.data(), Bytes{4000}), {}));
    Ticket second = must(kind->copy(with, host_piece(b_.data(), Bytes{4000}), first));
    Ticket third = must(kind->arithmetic()->combine(Reduction::sum, IST_INT, into, with, second));
    Data found(4000, 0xEE);
    Ticket last = must(kind->copy(host_piece(found.data(), Bytes{4000}), into, third));
    for (Ticket* each : {&first, &second, &third, &last}) must(finish(*each));
    Elements expected = a_;
    combine_on_host(Reduction::sum, IST_INT, expected.data(), b_.data(), 1000);
    EXPECT_EQ(found, expected);
    destroy_context(mine);
  }
  expect_sum();
}

}  // namespace
}  // namespace ist::test
