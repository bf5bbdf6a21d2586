// Contexts of the user's own on one device: what ended with one is not used or released for other memory that is at its address, and
// default streams of two are two.
#include <isthmus/halo.h>
#include <isthmus/layout.h>

#include <array>
#include <memory>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

class OwnContext {
 public:
  explicit OwnContext(Checks& check) : check_(check) {
    done(driver_call<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context_, 0, 0));
    pop();
  }
  ~OwnContext() { done(driver_call<CUresult (*)(CUcontext)>("cuCtxDestroy_v2")(context_)); }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;

  // Ends with the context.
  ist_buffer take(std::size_t bytes) {
    CUdeviceptr address = 0;
    within([&] { return driver_call<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&address, bytes); });
    return ist_cuda(reinterpret_cast<void*>(address), nullptr);
  }
  template <class Calls>
  void within(const Calls& calls) {
    done(driver_call<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(context_));
    done(calls());
    pop();
  }

 private:
  void done(CUresult result) { check_.that(result == CUDA_SUCCESS, "the driver gives " + std::to_string(result)); }
  void pop() {
    CUcontext popped = nullptr;
    done(driver_call<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(&popped));
  }
  Checks& check_;
  CUcontext context_ = nullptr;
};

// Memory of the user's, every byte of which is a seven.
class Sevens {
 public:
  Sevens(const Here& here, Checks& check, OwnContext& context, std::size_t bytes)
      : here_(here), check_(check), sevens_(bytes, 7) {
    for (ist_buffer& each : all_) {
      each = context.take(bytes);
      check.ok(ist_memory_copy(here.world, each, ist_host(sevens_.data()), bytes), "fill");
    }
  }
  void expect(const std::string& after) {
    for (const ist_buffer& each : all_) {
      Data found(sevens_.size());
      check_.ok(ist_memory_copy(here_.world, ist_host(found.data()), each, found.size()), "read after " + after);
      check_.that(found == sevens_, "sevens after " + after);
    }
  }

 private:
  const Here& here_;
  Checks& check_;
  const Data sevens_;
  std::array<ist_buffer, 16> all_{};
};

TEST(ContextFailures, OfAnEndedOneLeaveNoScratchMemoryToTheNext) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 400000;
    Checks check(here);
    ist_layout layout = IST_LAYOUT_NULL;
    check.ok(ist_layout_vector(5000, 8, 16, ist_layout_of(IST_BYTE), &layout), "layout");
    check.ok(ist_layout_commit(layout), "commit");
    const auto message = [&](const ist_buffer& memory) {
      ist_request request = IST_REQUEST_NULL;
      check.ok(ist_irecv_layout(ist_buffer_at(memory, kBytes / 2), 1, layout, 0, 1, here.comm, &request), "receive");
      check.ok(ist_send_layout(memory, 1, layout, 0, 1, here.comm), "send");
      check.ok(ist_wait(&request, IST_STATUS_IGNORE), "wait");
    };
    {
      OwnContext first(check);
      message(first.take(kBytes));
    }
    OwnContext next(check);
    const ist_buffer memory = next.take(kBytes);
    Sevens sevens(here, check, next, 65536);
    const Data ones(kBytes, 1);
    check.ok(ist_memory_copy(here.world, memory, ist_host(ones.data()), kBytes), "fill");
    message(memory);
    sevens.expect("a message");
    check.ok(ist_layout_free(&layout), "free");
    return check.wrong();
  }));
}

TEST(ContextFailures, OfAnEndedOneLeaveNoListsOfRunsToRelease) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    constexpr int kRuns = 8192;
    constexpr std::size_t kBytes = 32 * kRuns;
    Checks check(here);
    std::vector<std::int64_t> lengths(kRuns), places(kRuns);
    for (int i = 0; i < kRuns; ++i)
      lengths[static_cast<std::size_t>(i)] = 1 + i % 3, places[static_cast<std::size_t>(i)] = 4 * i;
    ist_layout layout = IST_LAYOUT_NULL;
    const auto message = [&](const ist_buffer& memory) {
      check.ok(ist_layout_indexed(kRuns, lengths.data(), places.data(), ist_layout_of(IST_INT32), &layout), "layout");
      check.ok(ist_layout_commit(layout), "commit");
      Data host(16 * kRuns);
      ist_request request = IST_REQUEST_NULL;
      check.ok(ist_irecv(ist_host(host.data()), count(host.size()), IST_BYTE, 0, 1, here.comm, &request), "receive");
      check.ok(ist_send_layout(memory, 1, layout, 0, 1, here.comm), "send");
      check.ok(ist_wait(&request, IST_STATUS_IGNORE), "wait");
    };
    {
      OwnContext first(check);
      message(first.take(4 * kBytes));
    }
    check.ok(ist_layout_free(&layout), "free");
    const Buffer memory(here, 4 * kBytes);
    std::array<std::unique_ptr<Buffer>, 16> later;
    for (auto& each : later) each = std::make_unique<Buffer>(here, 4096);
    message(memory.get());  // what lists of freed layouts had is released
    check.ok(ist_layout_free(&layout), "free");
    message(memory.get());
    for (const auto& each : later) check.that(each->holds({}), "memory that was allocated later");
    check.ok(ist_layout_free(&layout), "free");
    return check.wrong();
  }));
}

TEST(ContextFailures, OfAnEndedOneLeaveNoBuffersOfAnExchangeToRelease) {
  NEEDS_FAKE_DRIVER();
  for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED})
    expect_all(run_ranks(1, "host,cuda", [way](const Here& here) {
      constexpr int dims[] = {1}, periods[] = {1};
      Checks check(here);
      ist_halo_grid grid = IST_HALO_GRID_NULL;
      ist_halo halo = IST_HALO_NULL;
      {
        OwnContext first(check);
        const ist_halo_range range{1, 1, 1, 100, 102};
        const ist_halo_field field{first.take(1 << 20), 8, &range, nullptr};
        const ist_halo_options options{sizeof options, 0, IST_HALO_AUTO, way, 0};
        check.ok(ist_halo_grid_create(here.comm, 1, dims, periods, nullptr, &grid), "grid");
        check.ok(ist_halo_create(grid, 1, &field, &options, &halo), "create");
        check.ok(ist_halo_pack(halo), "pack");
        check.ok(ist_halo_exchange(halo), "exchange");
        check.ok(ist_halo_unpack(halo), "unpack");
      }
      std::vector<ist_buffer> later(12);
      const Data sevens(4096, 7);
      for (ist_buffer& each : later) {
        check.ok(ist_memory_alloc(here.world, IST_KIND_CUDA, 0, sevens.size(), &each), "allocate");
        check.ok(ist_memory_copy(here.world, each, ist_host(sevens.data()), sevens.size()), "fill");
      }
      check.ok(ist_halo_free(&halo), "free");
      for (const ist_buffer& each : later) {
        Data found(sevens.size());
        check.ok(ist_memory_copy(here.world, ist_host(found.data()), each, found.size()), "read");
        check.that(found == sevens, "its bytes");
        check.ok(ist_memory_free(here.world, each), "release");
      }
      check.ok(ist_halo_grid_free(&grid), "free the grid");
      return check.wrong();
    }));
}

TEST(ContextFailures, AreNoneWhereDefaultStreamsOfTwoHavePendingWork) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 4096;
    Checks check(here);
    OwnContext one(check), other(check);
    const ist_buffer from = one.take(kBytes), to = other.take(kBytes);
    const Data data = random_bytes(kBytes, 1);
    check.ok(ist_memory_copy(here.world, from, ist_host(data.data()), kBytes), "fill");
    const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{100}); };
    other.within(
        [&] { return driver_call<CUresult (*)(CUstream, CUhostFn, void*)>("cuLaunchHostFunc")(nullptr, sleep, nullptr); });
    other.within(
        [&] { return driver_call<decltype(&::cuMemsetD8Async)>("cuMemsetD8Async")(to.object, 7, kBytes, nullptr); });
    check.ok(ist_memory_copy(here.world, to, from, kBytes), "copy");
    other.within([] { return driver_call<decltype(&::cuStreamSynchronize)>("cuStreamSynchronize")(nullptr); });
    Data found(kBytes);
    check.ok(ist_memory_copy(here.world, ist_host(found.data()), to, kBytes), "read");
    check.that(found == data, "the copy comes behind what was pending at its destination");
    return check.wrong();
  }));
}

// Its driver does not say whose the memory is.
TEST(ContextFailures, OfADeviceAreNotTakenForTheHosts) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Buffer buffer(here, 4096);
    auto* const memory = reinterpret_cast<void*>(buffer.get().object);
    Data found(64);
    for (int skip = 0; skip < 3; ++skip) {
      break_call("cuPointerGetAttributes", skip, CUDA_ERROR_ILLEGAL_ADDRESS);
      const int code = ist_memory_copy(here.world, ist_host(found.data()), ist_auto(memory), found.size());
      check.that(code == IST_OK || code == IST_ERR_DEVICE || code == IST_ERR_ARGUMENT, ist_code_name(code));
      heal();
    }
    check.ok(ist_memory_copy(here.world, ist_host(found.data()), ist_auto(memory), found.size()), "once more");
    check.that(found == Data(64, 0xa5), "its bytes");
    return check.wrong();
  }));
}

// Whatever question of rank 0's driver is not answered while an exchange is made: the ranks agree on whether there is one.
TEST(HaloFailures, OfOneRanksDriverAreToldToAll) {
  NEEDS_FAKE_DRIVER();
  for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED})
    expect_all(run_ranks(2, "host,cuda", [way](const Here& here) {
      constexpr int dims[] = {2}, periods[] = {1};
      ::alarm(kSanitized ? 100 : 30);
      Checks check(here);
      const Buffer buffer(here, 1 << 20, IST_KIND_CUDA, here.rank);
      const ist_halo_range range{1, 1, 1, 100, 102};
      const ist_halo_field field{buffer.get(), 8, &range, nullptr};
      const ist_halo_options options{sizeof options, 0, IST_HALO_LOOPS, way, 0};
      ist_halo_grid grid = IST_HALO_GRID_NULL;
      check.ok(ist_halo_grid_create(here.comm, 1, dims, periods, nullptr, &grid), "grid");
      for (int skip = 0; skip < 6; ++skip) {
        ist_halo halo = IST_HALO_NULL;
        if (here.rank == 0) break_call("cuPointerGetAttributes", skip);
        const std::int32_t made = ist_halo_create(grid, 1, &field, &options, &halo) == IST_OK ? 1 : 0;
        heal();
        std::int32_t other = -1;
        check.ok(ist_sendrecv(ist_host(&made), 1, IST_INT32, 1 - here.rank, 9, ist_host(&other), 1, IST_INT32, 1 - here.rank,
                              9, here.comm, IST_STATUS_IGNORE),
                 "what the other one has");
        check.that(other == made, "all or none with " + std::to_string(skip) + " answers");
        if (made == 1) check.ok(ist_halo_free(&halo), "free");
      }
      check.ok(ist_halo_grid_free(&grid), "free the grid");
      return check.wrong();
    }));
}

}  // namespace
