// Memory that is lent by descriptors, and links that cannot be believed, where something goes wrong: the message arrives another way,
// the lender hears that it is no use, what died is an error that names it, and nothing stays behind.
#include <csignal>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 300001;

int allocations() { return driver_call<decltype(&::fake_cuda_count)>("fake_cuda_count")("allocations"); }
int pools() { return driver_call<decltype(&::fake_cuda_count)>("fake_cuda_count")("pools"); }

enum class Class { mapped, pool, allocated };

// Memory on this rank's device that other processes can open.
class Shared {
 public:
  Shared(Class what, int device) : what_(what) {
    driver_call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_, device);
    push();
    if (what == Class::mapped) map(device);
    if (what == Class::pool) from_pool(device);
    if (what == Class::allocated) driver_call<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&address_, kBytes);
    pop();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    push();
    if (what_ == Class::mapped) {
      driver_call<decltype(&::cuMemUnmap)>("cuMemUnmap")(address_, kBlock);
      driver_call<decltype(&::cuMemAddressFree)>("cuMemAddressFree")(address_, kBlock);
    } else {
      driver_call<CUresult (*)(CUdeviceptr)>("cuMemFree_v2")(address_);
    }
    if (what_ == Class::pool) driver_call<decltype(&::cuMemPoolDestroy)>("cuMemPoolDestroy")(pool_);
    pop();
  }
  ist_buffer get() const { return ist_cuda(reinterpret_cast<void*>(address_), nullptr); }

 private:
  static constexpr std::size_t kBlock = 2 << 20;
  void push() { driver_call<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(context_); }
  static void pop() {
    CUcontext popped = nullptr;
    driver_call<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(&popped);
  }
  void map(int device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    CUmemGenericAllocationHandle handle = 0;
    driver_call<decltype(&::cuMemCreate)>("cuMemCreate")(&handle, kBlock, &properties, 0);
    driver_call<decltype(&::cuMemAddressReserve)>("cuMemAddressReserve")(&address_, kBlock, 0, 0, 0);
    driver_call<decltype(&::cuMemMap)>("cuMemMap")(address_, kBlock, 0, handle, 0);
    driver_call<decltype(&::cuMemRelease)>("cuMemRelease")(handle);
  }
  void from_pool(int device) {
    CUmemPoolProps properties{};
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    driver_call<decltype(&::cuMemPoolCreate)>("cuMemPoolCreate")(&pool_, &properties);
    driver_call<decltype(&::cuMemAllocFromPoolAsync)>("cuMemAllocFromPoolAsync")(&address_, kBytes, pool_, nullptr);
  }
  const Class what_;
  CUcontext context_ = nullptr;
  CUdeviceptr address_ = 0;
  CUmemoryPool pool_ = nullptr;
};

// From rank 0 to rank 1, whose memory was poisoned; what carried it, on both.
int carry(const Here& here, Checks& check, const Shared& memory, std::uint64_t seed) {
  const Data data = random_bytes(kBytes, seed);
  const bool sends = here.rank == 0;
  check.ok(ist_memory_copy(here.world, memory.get(), ist_host((sends ? data : Data(kBytes, 0xa5)).data()), kBytes), "fill");
  ist_status status{};
  check.ok(sends ? ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm)
                 : ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, &status),
           "message " + std::to_string(seed));
  Data found(kBytes);
  check.ok(ist_memory_copy(here.world, ist_host(found.data()), memory.get(), kBytes), "read");
  check.that(found == data, "the bytes of message " + std::to_string(seed));
  std::int32_t carrier = status.carrier;
  check.ok(sends ? ist_recv(ist_host(&carrier), 1, IST_INT32, 1, 8, here.comm, IST_STATUS_IGNORE)
                 : ist_send(ist_host(&carrier), 1, IST_INT32, 0, 8, here.comm),
           "what carried it");
  return carrier;
}

bool opens(const Here& here, Checks& check, const Shared& memory) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    if (carry(here, check, memory, n) == IST_CARRIER_DEVICE) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

// Only one of the borrower's calls fails, once. The lender hears it, and lends a block instead; other memory is opened as ever.
int call_that_fails(const Here& here, Class what, const char* call) {
  Checks check(here);
  const Shared first(Class::allocated, here.rank);
  check.that(opens(here, check, first), "the link is tried");
  const int before = allocations();
  {
    const Shared memory(what, here.rank);
    if (here.rank == 0) break_call(call, 0);
    const bool by_block = opens(here, check, memory);
    check.that(by_block, std::string{call} + " failed, and nothing goes through a block");
    heal();
    const Shared other(what, here.rank);
    check.that(opens(here, check, other), "other memory after a failure");
  }
  // A block and its mapping may be there, and the last two mappings, which nobody has been told to close.
  check.that(allocations() <= before + 3, std::to_string(allocations() - before) + " mappings stay");
  return check.wrong();
}

TEST(SharingFailures, OfACallThatOpensItTheLenderHearsAndLendsABlock) {
  NEEDS_FAKE_DRIVER();
  for (const char* call : {"cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"})
    expect_all(run_ranks(2, "host,cuda", [&](const Here& here) { return call_that_fails(here, Class::mapped, call); }));
  for (const char* call : {"cuMemPoolImportFromShareableHandle", "cuMemPoolSetAccess"})
    expect_all(run_ranks(2, "host,cuda", [&](const Here& here) { return call_that_fails(here, Class::pool, call); }));
}

// The lender's own calls: none is exported, and the borrower says that it got nothing.
TEST(SharingFailures, OfTheLendersOwnCallsAreNoErrorOfAMessage) {
  NEEDS_FAKE_DRIVER();
  for (const auto& [what, call] : {std::pair{Class::mapped, "cuMemExportToShareableHandle"},
                                   {Class::mapped, "cuMemRetainAllocationHandle"},
                                   {Class::mapped, "cuMemGetAllocationPropertiesFromHandle"},
                                   {Class::pool, "cuMemPoolExportToShareableHandle"},
                                   {Class::pool, "cuMemPoolExportPointer"}})
    for (const int skip : {0, 1})
      expect_all(run_ranks(2, "host,cuda", [&, what = what, call = call](const Here& here) {
        Checks check(here);
        const Shared first(Class::allocated, here.rank);
        check.that(opens(here, check, first), "the link is tried");
        if (here.rank == 1) break_call(call, skip);
        for (std::uint64_t n = 0; n < 3; ++n) {
          const Shared memory(what, here.rank);
          check.that(opens(here, check, memory), std::string{call} + ": neither it nor a block");
        }
        return check.wrong();
      }));
}

TEST(SharingFailures, OfAPieceOfAPoolTheMessageTakesTheRingAndTheNextOneDoesNot) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Shared memory(Class::pool, here.rank);
    check.that(opens(here, check, memory), "the pool is opened");
    if (here.rank == 0) break_call("cuMemPoolImportPointer", 0);
    check.that(carry(here, check, memory, 5000) == IST_CARRIER_RING, "a piece that cannot be imported");
    heal();
    check.that(carry(here, check, memory, 5001) == IST_CARRIER_DEVICE, "after a piece that could not be imported");
    // A copy that fails lets go of the piece all the same, before its owner frees it.
    if (here.rank == 0) break_call("cuEventQuery", 0);
    const int code = here.rank == 0 ? ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm)
                                    : ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, IST_STATUS_IGNORE);
    check.that(code == IST_ERR_DEVICE, ist_code_name(code));
    heal();
    return check.wrong();
  }));
}

// What its owner has freed goes, where only the owner's next loan tells it.
TEST(SharingFailures, AreNoneWhereMemoryIsFreedAndItReturns) {
  NEEDS_FAKE_DRIVER();
  for (const Class what : {Class::mapped, Class::pool})
    expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
      Checks check(here);
      const Shared kept(Class::allocated, here.rank);
      check.that(opens(here, check, kept), "the link is tried");
      const int mapped_before = allocations();
      const int pools_before = pools();
      for (int round = 0; round < 5; ++round) {
        const Shared memory(what, here.rank);
        check.that(opens(here, check, memory), "memory is opened");
      }
      std::int32_t gone = 0;
      for (int n = 0; n < 1000 && gone == 0; ++n) {
        const Shared fresh(Class::allocated, here.rank);  // with a loan of new memory those that ended are told
        carry(here, check, fresh, static_cast<std::uint64_t>(n));
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        // `fresh`, the mapping of it, and of the ones before perhaps one.
        gone = here.rank == 0 && allocations() <= mapped_before + 3 && pools() <= pools_before ? 1 : 0;
        check.ok(here.rank == 0 ? ist_send(ist_host(&gone), 1, IST_INT32, 1, 9, here.comm)
                                : ist_recv(ist_host(&gone), 1, IST_INT32, 0, 9, here.comm, IST_STATUS_IGNORE),
                 "whether they are closed");
      }
      check.that(gone == 1, "freed memory is let go of");
      return check.wrong();
    }));
}

TEST(SharingFailures, OfARankThatDiesAmidMessages) {
  NEEDS_FAKE_DRIVER();
  for (const Class what : {Class::mapped, Class::pool})
    for (const int victim : {0, 1}) {
      const auto ended = run_ranks(3, "host,cuda", [&](const Here& here) {
        Checks check(here);
        std::thread killer;
        if (here.rank == victim) {
          killer = std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds{150});
            ::kill(::getpid(), SIGKILL);
          });
        }
        // From rank 0 to rank 1, and rank 2 waits for whoever is killed. New memory all the time: whatever opens it is under way.
        int code = IST_OK;
        while (code == IST_OK) {
          const Shared memory(what, here.rank % 2);
          for (int n = 0; n < 3 && code == IST_OK; ++n) {
            if (here.rank == 0) code = ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm);
            if (here.rank == 1) code = ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, IST_STATUS_IGNORE);
            if (here.rank == 2)
              code = ist_recv(memory.get(), count(kBytes), IST_BYTE, victim, 7, here.comm, IST_STATUS_IGNORE);
          }
        }
        check.that(code == IST_ERR_PEER_DEAD, ist_code_name(code));
        if (killer.joinable()) killer.join();
        return check.wrong();
      });
      expect_all_but(ended, victim);
    }
}

// What both ranks say on stderr, and never a message by the device.
std::string said_where_a_link_is(const char* how) {
  ::setenv("FAKE_CUDA_LINKS", how, 1);
  testing::internal::CaptureStderr();
  const auto ended = run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    for (const Class what : {Class::allocated, Class::mapped, Class::pool})
      for (std::uint64_t round = 0; round < 3; ++round) {
        const Shared memory(what, here.rank);
        for (std::uint64_t n = 0; n < 4; ++n) {
          check.that(carry(here, check, memory, 10 * round + n) != IST_CARRIER_DEVICE, "by a link that is off");
          std::this_thread::sleep_for(std::chrono::milliseconds{4});
        }
      }
    return check.wrong();
  });
  ::unsetenv("FAKE_CUDA_LINKS");
  const std::string said = testing::internal::GetCapturedStderr();
  expect_all(ended);
  return said;
}

std::size_t times(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

TEST(SharingFailures, OfALinkThatSpoilsWhatGoesOverItNothingGoesOverIt) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_where_a_link_is("0-1:spoiled");
  EXPECT_EQ(1U, times(said, "is off, and messages go through host memory")) << said;
  for (const char* words : {"the link between cuda device 0 and the GPU whose UUID begins with fafafafa, of rank 1",
                            "byte 131072 came as ", "turn both off for these devices"})
    EXPECT_EQ(1U, times(said, words)) << words << " in:\n" << said;
}

TEST(SharingFailures, OfALinkThatTheDriverRefusesNothingIsTriedAgain) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_where_a_link_is("0-1:refused");
  EXPECT_EQ(1U, times(said, "is off, and messages go through host memory")) << said;
  EXPECT_EQ(1U, times(said, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED")) << said;
}

// A message finds that out, and copies from one of a rank's devices to the other do not go there either.
TEST(SharingFailures, OfALinkThatSpoilsConcernsCopiesWithinOneRank) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_LINKS", "0-1:spoiled"}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Shared memory(Class::allocated, here.rank), other(Class::allocated, here.rank);
    for (int n = 0; n < 3; ++n) {
      check.ok(ist_prepare(memory.get(), count(kBytes), IST_BYTE, 1 - here.rank, here.comm), "prepare");
      check.ok(ist_sendrecv(other.get(), count(kBytes), IST_BYTE, 1 - here.rank, 7, memory.get(), count(kBytes), IST_BYTE,
                            1 - here.rank, 7, here.comm, IST_STATUS_IGNORE),
               "exchange");
    }
    for (const int to : {0, 1}) {
      Buffer source(here, kBytes, IST_KIND_CUDA, 1 - to), copied(here, kBytes, IST_KIND_CUDA, to),
          sent(here, kBytes, IST_KIND_CUDA, to);
      const Data data = random_bytes(kBytes, static_cast<std::uint64_t>(to));
      source.fill(data);
      check.ok(ist_memory_copy(here.world, copied.get(), source.get(), kBytes), "copy");
      check.that(copied.holds(data), "the bytes of a copy");
      check.ok(ist_sendrecv(source.get(), count(kBytes), IST_BYTE, here.rank, 8, sent.get(), count(kBytes), IST_BYTE,
                            here.rank, 8, here.comm, IST_STATUS_IGNORE),
               "a message to itself");
      check.that(sent.holds(data), "its bytes");
    }
    return check.wrong();
  }));
}

// Both ranks on device 0, and the link between two others is of no interest; one within a device is.
TEST(SharingFailures, OfOtherLinksDoNotConcernARank) {
  NEEDS_FAKE_DRIVER();
  for (const char* how : {"1-0:spoiled", "0-0:spoiled"}) {
    ::setenv("FAKE_CUDA_LINKS", how, 1);
    const bool whole = std::string{how} == "1-0:spoiled";
    const auto ended = run_ranks(2, "host,cuda", [&](const Here& here) {
      constexpr std::size_t kLong = 3 << 20;  // what is shorter is not copied within one device
      Checks check(here);
      const Buffer memory(here, kLong, IST_KIND_CUDA, 0);
      bool by_device = false;
      for (std::uint64_t n = 0; n < 60; ++n) {
        const Data data = random_bytes(kLong, n);
        ist_status status{};
        if (here.rank == 0) {
          Buffer from(here, kLong, IST_KIND_CUDA, 0);
          from.fill(data);
          check.ok(ist_send(from.get(), count(kLong), IST_BYTE, 1, 7, here.comm), "send");
        } else {
          check.ok(ist_recv(memory.get(), count(kLong), IST_BYTE, 0, 7, here.comm, &status), "receive");
          check.that(memory.holds(data), "the bytes");
          by_device |= status.carrier == IST_CARRIER_DEVICE;
        }
      }
      if (here.rank == 1) check.that(by_device == whole, "within one device");
      return check.wrong();
    });
    ::unsetenv("FAKE_CUDA_LINKS");
    expect_all(ended);
  }
}

// Whatever step of the trial fails, the link is not believed from then on, or it is tried again: the bytes are right.
TEST(SharingFailures, OfTheTrialItself) {
  NEEDS_FAKE_DRIVER();
  for (const int who : {0, 1})
    for (const char* call : {"cuMemAlloc_v2", "cuStreamCreate", "cuMemcpyAsync", "cuStreamSynchronize", "cuIpcGetMemHandle",
                             "cuIpcOpenMemHandle_v2"})
      for (const int skip : {0, 1, 2})
        expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
          Checks check(here);
          const Shared memory(Class::mapped, here.rank);
          for (std::uint64_t n = 0; n < 12; ++n) {
            const Data data = random_bytes(kBytes, n);
            // Until it is healed, it may be this call that fails.
            const int filled =
                here.rank == 0 ? ist_memory_copy(here.world, memory.get(), ist_host(data.data()), kBytes) : IST_OK;
            if (n == 0 || n > 5) check.ok(filled, "fill");
            check.ok(ist_barrier(here.comm), "barrier");
            // From here on only the trial, and the messages, which may fail by it.
            if (n == 0 && here.rank == who) break_call(call, skip);
            ist_status status{};
            const int code = here.rank == 0 ? ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm)
                                            : ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, &status);
            check.that(code == IST_OK || code == IST_ERR_DEVICE, ist_code_name(code));
            check.ok(ist_barrier(here.comm), "barrier");
            if (n == 3) std::this_thread::sleep_for(std::chrono::milliseconds{15});
            if (n == 5) heal();
            if (here.rank == 0 || n <= 5) continue;
            check.ok(code, "after the failure");
            Data found(kBytes);
            check.ok(ist_memory_copy(here.world, ist_host(found.data()), memory.get(), kBytes), "read");
            check.that(found == data, std::string{call} + ": the bytes of message " + std::to_string(n));
          }
          return check.wrong();
        }));
}

}  // namespace
