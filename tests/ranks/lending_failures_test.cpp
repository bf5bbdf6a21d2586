// One copy between page-locked memory and another rank's device that fails: at its start, and the message goes through the ring; or
// later, and it is the error of whoever copied, and where that is the sender of both. The next message arrives.
#include <isthmus/heap.h>

#include <csignal>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 300001;

// Rank `host`, who copies, has page-locked memory, and the other one a device's.
class Pair {
 public:
  Pair(const Here& here, Checks& check, int host)
      : here_(here), check_(check), on_host_(here.rank == host), memory_(kBytes), buffer_(here, kBytes) {
    if (on_host_) check_.ok(ist_register(here.world, memory_.data(), kBytes), "register");
  }
  ~Pair() {
    if (on_host_) check_.ok(ist_unregister(here_.world, memory_.data()), "unregister");
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  struct Carried {
    int code = IST_OK;  // of this side
    int carrier = IST_CARRIER_NONE;
  };
  // From rank 0 to rank 1, which tells what carried it, and whether the bytes are right.
  Carried carry(std::uint64_t seed) {
    const Data data = random_bytes(kBytes, seed);
    Carried carried;
    std::int32_t told[2] = {IST_CARRIER_NONE, 1};
    if (here_.rank == 0) {
      set(data);
      carried.code = ist_send(place(), count(kBytes), IST_BYTE, 1, 7, here_.comm);
      check_.ok(ist_recv(ist_host(told), 2, IST_INT32, 1, 8, here_.comm, IST_STATUS_IGNORE), "what carried it");
    } else {
      set(Data(kBytes, 0xa5));
      ist_status status{};
      carried.code = ist_recv(place(), count(kBytes), IST_BYTE, 0, 7, here_.comm, &status);
      told[0] = status.carrier;
      told[1] = carried.code != IST_OK || holds(data) ? 1 : 0;
      check_.ok(ist_send(ist_host(told), 2, IST_INT32, 0, 8, here_.comm), "what carried it");
    }
    check_.that(told[1] == 1, "the bytes of message " + std::to_string(seed));
    carried.carrier = told[0];
    return carried;
  }
  // Until the memory is open, others carry the messages.
  bool open() {
    for (std::uint64_t n = 0; n < 2000; ++n) {
      if (carry(n).carrier == IST_CARRIER_DEVICE) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return false;
  }

 private:
  ist_buffer place() { return on_host_ ? ist_host(memory_.data()) : buffer_.get(); }
  void set(const Data& data) {
    if (on_host_) {
      memory_ = data;
    } else {
      buffer_.fill(data);
    }
  }
  bool holds(const Data& data) { return on_host_ ? memory_ == data : buffer_.holds(data); }

  const Here& here_;
  Checks& check_;
  const bool on_host_;
  Data memory_;
  Buffer buffer_;
};

int copies_that_fail(const Here& here, int host) {
  Checks check(here);
  Pair pair(here, check, host);
  check.that(pair.open(), "the other rank's memory is opened");
  const bool copies = here.rank == host;

  if (copies) break_call("cuMemcpyAsync", 0);
  const Pair::Carried other_way = pair.carry(5000);
  heal();
  // Into a receive that was shown to its sender the copy is tried once more when the message has been announced.
  check.that(other_way.code == IST_OK &&
                 (other_way.carrier == IST_CARRIER_RING || (host == 0 && other_way.carrier == IST_CARRIER_DEVICE)),
             "a copy that does not start");
  check.that(pair.carry(5001).carrier == IST_CARRIER_DEVICE || pair.open(), "after a copy that did not start");

  if (copies) break_call("cuEventQuery", 0);
  const Pair::Carried failed = pair.carry(5002);
  heal();
  const bool hears = copies || host == 0;
  check.that(failed.code == (hears ? IST_ERR_DEVICE : IST_OK), "a copy that fails");
  const Pair::Carried next = pair.carry(5003);
  check.that(next.code == IST_OK && next.carrier == IST_CARRIER_DEVICE, "after a copy that failed");
  return check.wrong();
}

TEST(LendingFailures, OfACopyIntoTheReceiversDevice) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) { return copies_that_fail(here, 0); }));
}

TEST(LendingFailures, OfACopyOutOfTheSendersDevice) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) { return copies_that_fail(here, 1); }));
}

// From rank 0 to rank 1; what carried it.
int carry(const Here& here, Checks& check, const ist_buffer& place) {
  std::int32_t carrier = IST_CARRIER_NONE;
  if (here.rank == 0) {
    check.ok(ist_send(place, count(kBytes), IST_BYTE, 1, 7, here.comm), "send");
    check.ok(ist_recv(ist_host(&carrier), 1, IST_INT32, 1, 8, here.comm, IST_STATUS_IGNORE), "what carried it");
  } else {
    ist_status status{};
    check.ok(ist_recv(place, count(kBytes), IST_BYTE, 0, 7, here.comm, &status), "receive");
    carrier = status.carrier;
    check.ok(ist_send(ist_host(&carrier), 1, IST_INT32, 0, 8, here.comm), "what carried it");
  }
  return carrier;
}

int allocations() { return driver_call<decltype(&::fake_cuda_count)>("fake_cuda_count")("allocations"); }

// Rank 0 holds rank 1's memory open. Once that is freed, loans that rank 0 has no use for tell it so all the same.
TEST(LendingFailures, AreNoneWhereMemoryIsFreedAndOnlyOrdinaryHostMessagesFollow) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Data ordinary(kBytes, 1);
    Buffer kept(here, kBytes, IST_KIND_CUDA, here.rank);
    auto freed = std::make_unique<Buffer>(here, kBytes, IST_KIND_CUDA, here.rank);
    carry(here, check, here.rank == 0 ? ist_host(ordinary.data()) : kept.get());  // makes the ring
    bool open = false;
    for (int n = 0; n < 2000 && !open; ++n) {
      open = carry(here, check, freed->get()) == IST_CARRIER_DEVICE;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    check.that(open, "the memory is opened");
    const int before = allocations();
    if (here.rank == 1) freed.reset();
    std::int32_t closed = 0;
    for (int n = 0; n < 1000 && closed == 0; ++n) {
      const Buffer fresh(here, kBytes, IST_KIND_CUDA, here.rank);  // with a loan of new memory those that ended are told
      carry(here, check, here.rank == 0 ? ist_host(ordinary.data()) : fresh.get());
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      closed = here.rank == 0 && allocations() <= before ? 1 : 0;  // with `fresh`, and without the mapping
      check.ok(here.rank == 0 ? ist_send(ist_host(&closed), 1, IST_INT32, 1, 9, here.comm)
                              : ist_recv(ist_host(&closed), 1, IST_INT32, 0, 9, here.comm, IST_STATUS_IGNORE),
               "whether it is closed");
    }
    check.that(closed == 1, "freed memory is let go of");
    return check.wrong();
  }));
}

// Nobody calls the library meanwhile.
bool come_down_to(int few) {
  const auto limit = Clock::now() + std::chrono::seconds{20};
  while (allocations() > few && Clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  return allocations() <= few;
}

// Rank 0 opens `memory` of rank 1.
void open_by_messages(const Here& here, Checks& check, const Buffer& memory) {
  bool open = false;
  for (int n = 0; n < 2000 && !open; ++n) {
    open = carry(here, check, memory.get()) == IST_CARRIER_DEVICE;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  check.that(open, "the memory is opened");
}

TEST(LendingFailures, AreNoneWhereMemoryIsFreedAndNothingFollows) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Buffer kept(here, kBytes, IST_KIND_CUDA, here.rank);
    auto freed = std::make_unique<Buffer>(here, kBytes, IST_KIND_CUDA, here.rank);
    open_by_messages(here, check, kept);
    const int before = allocations();
    open_by_messages(here, check, *freed);
    check.that(here.rank == 1 || allocations() == before + 1, "it stays open");
    if (here.rank == 1) freed.reset();
    if (here.rank == 0) check.that(come_down_to(before), "freed memory is let go of");
    std::this_thread::sleep_for(std::chrono::milliseconds{2500});
    check.that(here.rank == 1 || allocations() == before, "what is not freed stays open");
    check.that(carry(here, check, kept.get()) == IST_CARRIER_DEVICE, "and is used");
    return check.wrong();
  }));
}

// A handle is closed when the device is done with all, also with a kernel that waits for another rank, which may wait for a launch of this one:
// such memory stays open until more is lent.
TEST(LendingFailures, AreNoneWhereKernelsMayWaitForOtherRanks) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    ist_heap heap = IST_HEAP_NULL;
    ist_team_view view{};
    check.ok(ist_heap_create(here.comm, IST_KIND_CUDA, here.rank, 1 << 20, 0, &heap), "heap");
    check.ok(ist_heap_view(heap, &view), "view");
    const Buffer kept(here, kBytes, IST_KIND_CUDA, here.rank);
    auto freed = std::make_unique<Buffer>(here, kBytes, IST_KIND_CUDA, here.rank);
    open_by_messages(here, check, kept);
    const int before = allocations();
    open_by_messages(here, check, *freed);
    if (here.rank == 1) freed.reset();
    check.ok(ist_barrier(here.comm), "freed");
    std::this_thread::sleep_for(std::chrono::milliseconds{3500});
    check.that(here.rank == 1 || allocations() == before + 1, "nothing is closed beside kernels that may wait");
    const Buffer more(here, kBytes, IST_KIND_CUDA, here.rank);
    open_by_messages(here, check, more);
    if (here.rank == 0)
      check.that(come_down_to(before + 2), "what is lent next brings it along");  // this one and its mapping are new
    check.ok(ist_heap_destroy(&heap), "heap");
    return check.wrong();
  }));
}

// The same of an owner that ends, with all that it had lent.
TEST(LendingFailures, AreNoneWhereTheOwnerLeaves) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Buffer memory(here, kBytes, IST_KIND_CUDA, here.rank);
    open_by_messages(here, check, memory);
    if (here.rank == 0) check.that(come_down_to(allocations() - 1), "the memory of one that has left is let go of");
    return check.wrong();
  }));
}

// Managed memory on this rank's device, as a program gets it from the driver.
class Managed {
 public:
  explicit Managed(int device) {
    driver_call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_, device);
    inside([this] {
      driver_call<decltype(&::cuMemAllocManaged)>("cuMemAllocManaged")(&address_, kBytes, CU_MEM_ATTACH_GLOBAL);
    });
  }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;
  ~Managed() {
    inside([this] { driver_call<CUresult (*)(CUdeviceptr)>("cuMemFree_v2")(address_); });
  }
  ist_buffer get() const { return ist_cuda(reinterpret_cast<void*>(address_), nullptr); }

 private:
  template <class Call>
  void inside(Call call) {
    CUcontext popped = nullptr;
    driver_call<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(context_);
    call();
    driver_call<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(&popped);
  }
  CUcontext context_ = nullptr;
  CUdeviceptr address_ = 0;
};

// What comes in parts, and whose second part fails on the side of `who`: its error, and where that is the sender the receiver's, too.
int parts_that_fail(const Here& here, int who, const char* call) {
  Checks check(here);
  const Managed memory(here.rank);
  const auto carry_bytes = [&](std::uint64_t seed, bool fails) {
    const Data data = random_bytes(kBytes, seed);
    const Data before(kBytes, 0xa5);
    const bool sends = here.rank == 0;
    check.ok(ist_memory_copy(here.world, memory.get(), ist_host((sends ? data : before).data()), kBytes), "fill");
    check.ok(ist_barrier(here.comm), "filled");
    ist_status status{};
    if (fails && here.rank == who) break_call(call, 1);
    const int code = sends ? ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm)
                           : ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, &status);
    heal();
    const bool hears = fails && (here.rank == who || who == 0);
    check.that(code == (hears ? IST_ERR_DEVICE : IST_OK), std::string{call} + ": " + ist_code_name(code));
    std::int32_t carrier = status.carrier;
    if (sends)
      check.ok(ist_recv(ist_host(&carrier), 1, IST_INT32, 1, 8, here.comm, IST_STATUS_IGNORE), "what carried it");
    else
      check.ok(ist_send(ist_host(&carrier), 1, IST_INT32, 0, 8, here.comm), "what carried it");
    Data found(kBytes);
    check.ok(ist_memory_copy(here.world, ist_host(found.data()), memory.get(), kBytes), "read");
    if (!fails) check.that(found == data, "the bytes of message " + std::to_string(seed));
    return carrier;
  };
  bool open = false;
  for (std::uint64_t n = 0; n < 2000 && !open; ++n) {
    open = carry_bytes(n, false) == IST_CARRIER_DEVICE;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  check.that(open, "the block is opened");
  carry_bytes(5000, true);
  carry_bytes(5001, false);
  check.that(carry_bytes(5002, false) == IST_CARRIER_DEVICE, "after what failed");
  return check.wrong();
}

TEST(LendingFailures, OfAPartOfWhatComesThroughABlock) {
  NEEDS_FAKE_DRIVER();
  ::setenv("ISTHMUS_BOUNCE_LIMIT", "256KiB", 1);
  for (const int who : {0, 1})
    for (const char* call : {"cuMemcpyAsync", "cuEventRecord"})
      expect_all(run_ranks(2, "host,cuda", [&](const Here& here) { return parts_that_fail(here, who, call); }));
  ::unsetenv("ISTHMUS_BOUNCE_LIMIT");
}

// The receiver of the parts is killed in the middle, and so is their sender: whoever is left hears of it.
TEST(LendingFailures, OfAPeerThatDiesBetweenTheParts) {
  NEEDS_FAKE_DRIVER();
  ::setenv("ISTHMUS_BOUNCE_LIMIT", "64KiB", 1);
  for (const int victim : {0, 1}) {
    const auto ended = run_ranks(2, "host,cuda", [&](const Here& here) {
      Checks check(here);
      const Managed memory(here.rank);
      std::thread killer;
      if (here.rank == victim) {
        killer = std::thread([] {
          std::this_thread::sleep_for(std::chrono::milliseconds{150});
          ::kill(::getpid(), SIGKILL);
        });
      }
      int code = IST_OK;
      while (code == IST_OK)
        code = here.rank == 0 ? ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm)
                              : ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, IST_STATUS_IGNORE);
      check.that(code == IST_ERR_PEER_DEAD, ist_code_name(code));
      if (killer.joinable()) killer.join();
      return check.wrong();
    });
    expect_all_but(ended, victim);
  }
  ::unsetenv("ISTHMUS_BOUNCE_LIMIT");
}

}  // namespace
