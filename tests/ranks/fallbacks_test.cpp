// What is said where the quickest way is closed: once for each cause, with what would open it. And what is said of each pair of
// ranks at start. Ranks are forked, each with the fake CUDA driver.
#include <isthmus/collective.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

#include "fallbacks_support.hpp"

namespace {

using namespace forked_ranks;

Body between_devices(std::size_t bytes) {
  return [bytes](const Here& here) {
    const Buffer buffer(here, bytes, IST_KIND_CUDA, here.rank);
    const int wrong = carry(here, buffer.get(), bytes);
    // Or it would be gone while the other rank's thread opens it, which is said, too.
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    return wrong;
  };
}

TEST(Fallbacks, NothingIsSaidWhereEveryWayIsOpen) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_by("host,cuda", between_devices(kBytes));
  EXPECT_EQ("", said);
}

TEST(Fallbacks, ThatTheSettingKeepsDevicesApartIsSaidOfLongMessages) {
  NEEDS_FAKE_DRIVER();
  const Variables never{{"ISTHMUS_DEVICE_IPC", "never"}};
  expect_once(said_by("host,cuda", between_devices(kBytes)), 0, "ISTHMUS_DEVICE_IPC is never", "leave it out");
  EXPECT_EQ("", said_by("host,cuda", between_devices(8)));
  EXPECT_EQ("", said_by("host", [](const Here& here) {
              Data data(kBytes);
              return carry(here, ist_host(data.data()), kBytes);
            }));
}

TEST(Fallbacks, ThatTheDriverLendsNoMemoryIsSaid) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_by("host,cuda", [](const Here& here) {
    break_call("cuIpcGetMemHandle", 0);
    return between_devices(kBytes)(here);
  });
  expect_once(said, 1, "cuIpcGetMemHandle", "one IPC, one PID and one network namespace");
}

TEST(Fallbacks, ThatTheDriverOpensNoMemoryIsSaidOnceForAllAllocations) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_by("host,cuda", [](const Here& here) {
    for (int n = 0; n < 20; ++n) break_call("cuIpcOpenMemHandle_v2", 0);
    int wrong = 0;
    for (int n = 0; n < 3; ++n) {
      const Buffer buffer(here, kBytes, IST_KIND_CUDA, here.rank);
      wrong += carry(here, buffer.get(), kBytes, 2);
      std::this_thread::sleep_for(std::chrono::milliseconds{20});  // a thread of its own opens it
    }
    return wrong;
  });
  expect_once(said, 0, "cuIpcOpenMemHandle", "one IPC, one PID and one network namespace");
}

// As where it was freed right after its message. What is lent again, and cannot be opened then either, is said.
TEST(Fallbacks, ThatMemoryIsGoneIsNotSaidUnlessItIsLentAgain) {
  NEEDS_FAKE_DRIVER();
  for (const auto& [in_vain, why] : {std::pair{1, CUDA_ERROR_INVALID_HANDLE}, std::pair{2, CUDA_ERROR_INVALID_HANDLE},
                                     std::pair{1, CUDA_ERROR_NOT_PERMITTED}, std::pair{2, CUDA_ERROR_NOT_PERMITTED}}) {
    const std::string said = said_by("host,cuda", [in_vain = in_vain, why = why](const Here& here) {
      Checks check(here);
      const Buffer buffer(here, kBytes, IST_KIND_CUDA, here.rank);
      // The first opening tries the link.
      for (int n = 0; n < in_vain; ++n) break_call("cuIpcOpenMemHandle_v2", 1, why);
      int wrong = 0;
      for (int n = 0; n < 6; ++n) {
        wrong += carry(here, buffer.get(), kBytes, 1);
        std::this_thread::sleep_for(std::chrono::milliseconds{20});  // a thread of its own opens it
      }
      ist_traffic traffic{};
      traffic.size = sizeof traffic;
      check.ok(ist_world_traffic(here.world, 1 - here.rank, IST_CARRIER_DEVICE, &traffic), "traffic");
      check.that((traffic.messages_sent + traffic.messages_received > 0) == (in_vain == 1), "carried by the device");
      return wrong + check.wrong();
    });
    if (in_vain == 1)
      EXPECT_EQ("", said);
    else
      expect_once(said, 0, "cuIpcOpenMemHandle", "go through host memory");
  }
}

TEST(Fallbacks, ThatAnAllocationIsLongerThanTheLimitIsSaid) {
  NEEDS_FAKE_DRIVER();
  const Variables little{{"ISTHMUS_MAPPED_LIMIT", "1MiB"}};
  expect_once(said_by("host,cuda", between_devices((std::size_t{1} << 20) + 1)), 0, "ISTHMUS_MAPPED_LIMIT is 1048576",
              "raise it");
}

TEST(Fallbacks, ThatThereIsNoBlockIsSaid) {
  NEEDS_FAKE_DRIVER();
  const Variables none{{"ISTHMUS_BOUNCE_LIMIT", "0"}};
  const std::string said = said_by("host,cuda", [](const Here& here) { return carry(here, managed(here, kBytes), kBytes); });
  expect_once(said, 1, "ISTHMUS_BOUNCE_LIMIT is 0", "64KiB or more");
}

// A block that was lent and never opened carries nothing, and is not counted.
TEST(Fallbacks, OfABlockThatIsNotOpenedTheRingCountsTheMessages) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_by("host,cuda", [](const Here& here) {
    for (int n = 0; n < 20; ++n) break_call("cuIpcOpenMemHandle_v2", 0);
    Checks check(here);
    const int found = carry(here, managed(here, kBytes), kBytes);
    const auto counted = [&](ist_carrier carrier) {
      ist_traffic traffic{};
      traffic.size = sizeof traffic;
      check.ok(ist_world_traffic(here.world, 1 - here.rank, carrier, &traffic), "traffic");
      return here.rank == 0 ? traffic.messages_sent : traffic.messages_received;
    };
    check.that(counted(IST_CARRIER_RING) == kMessages, "the ring's");
    check.that(counted(IST_CARRIER_BLOCK) == 0 && counted(IST_CARRIER_DEVICE) == 0, "the block's");
    return found + check.wrong();
  });
  EXPECT_EQ(1U, lines(said, 0, "cuIpcOpenMemHandle").size()) << said;
}

// As a container's filter, or kernel.yama.ptrace_scope for who is not root.
void forbid_reading_of_others() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST(Fallbacks, ThatTheKernelKeepsHostMemoryApartIsSaid) {
  const auto long_host_messages = [](const Here& here) {
    forbid_reading_of_others();
    Data data(kBytes);
    return carry(here, ist_host(data.data()), kBytes);
  };
  expect_once(said_by("host", long_host_messages), 1, "take two copies instead of one", "kernel.yama.ptrace_scope=0");
  const Variables never{{"ISTHMUS_SINGLE_COPY", "never"}};
  EXPECT_EQ("", said_by("host", long_host_messages));
}

Body sum_of(std::int64_t floats, ist_kind kind) {
  return [floats, kind](const Here& here) {
    Checks check(here);
    const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
    const Buffer send(here, bytes, kind, kind == IST_KIND_CUDA ? here.rank : 0);
    Buffer recv(here, bytes, kind, kind == IST_KIND_CUDA ? here.rank : 0);
    Data in(bytes);
    Data out(bytes);
    for (std::size_t i = 0; i < bytes; i += sizeof(float)) {
      const float one = 1;
      const float two = 2;
      std::memcpy(&in[i], &one, sizeof one);
      std::memcpy(&out[i], &two, sizeof two);
    }
    ist_memory_copy(here.world, send.get(), ist_host(in.data()), bytes);
    for (int n = 0; n < 2; ++n) {
      recv.fill(Data(bytes, 0xa5));
      check.ok(ist_allreduce(send.get(), recv.get(), floats, IST_FLOAT, IST_SUM, here.comm), "allreduce");
      check.that(recv.read() == out, "the sum");
    }
    return check.wrong();
  };
}

TEST(Fallbacks, ThatNcclIsNotThereIsSaidOfLongCallsOnDevices) {
  NEEDS_FAKE_DRIVER();
  constexpr std::int64_t kLong = 1 << 20;
  for (const auto& [name, value, words, remedy] :
       {std::array{"ISTHMUS_NCCL", "never", "ISTHMUS_NCCL is never", "messages"},
        std::array{"ISTHMUS_NCCL", "/nowhere/libnccl.so.2", "/nowhere/libnccl.so.2", "install NCCL 2.18 or newer"}}) {
    const Variables off{{name, value}};
    const std::string said = said_by("host,cuda", sum_of(kLong, IST_KIND_CUDA));
    for (const int rank : {0, 1}) {
      const auto found = lines(said, rank, "long collective calls on CUDA memory go by messages");
      ASSERT_EQ(1U, found.size()) << said;
      EXPECT_NE(std::string::npos, found[0].find("] warning: ")) << found[0];
      EXPECT_NE(std::string::npos, found[0].find(words)) << found[0];
      EXPECT_NE(std::string::npos, found[0].find(remedy)) << found[0];
    }
    EXPECT_EQ("", said_by("host,cuda", sum_of(2, IST_KIND_CUDA)));
    EXPECT_EQ("", said_by("host,cuda", sum_of(kLong, IST_KIND_HOST)));
  }
}

// It would want a GPU for each.
TEST(Fallbacks, ThatNcclIsNotThereIsNotSaidOfRanksThatShareAGpu) {
  NEEDS_FAKE_DRIVER();
  const Variables off{{"ISTHMUS_NCCL", "never"}, {"FAKE_CUDA_DEVICES", "1"}};
  EXPECT_EQ("", said_by("host,cuda", [](const Here& here) {
              Checks check(here);
              constexpr std::int64_t kFloats = 1 << 20;
              const Buffer send(here, kFloats * sizeof(float));
              const Buffer recv(here, kFloats * sizeof(float));
              check.ok(ist_allreduce(send.get(), recv.get(), kFloats, IST_FLOAT, IST_MAX, here.comm), "allreduce");
              return check.wrong();
            }));
}

// The driver says that its GPU is too old for the kernels.
TEST(Fallbacks, ThatReductionsAreComputedOnTheHostIsSaid) {
  NEEDS_FAKE_DRIVER();
  const Variables never{{"ISTHMUS_NCCL", "never"}};
  const std::string said = said_by("host,cuda", [](const Here& here) {
    for (int n = 0; n < 1000; ++n) break_call("cuDriverGetVersion", 0);
    const int wrong = sum_of(1 << 18, IST_KIND_CUDA)(here);
    heal();
    return wrong;
  });
  for (const int rank : {0, 1}) {
    const auto found = lines(said, rank, "long reductions of device memory are computed on the host");
    ASSERT_EQ(1U, found.size()) << said;
    EXPECT_NE(std::string::npos, found[0].find("cuDriverGetVersion")) << found[0];
  }
}

const Body kNothing = [](const Here&) { return 0; };

TEST(Pairs, AreToldAtInfoAndAtNoLevelAbove) {
  const Variables info{{"ISTHMUS_LOG", "info"}};
  const std::string said = said_by("host", kNothing);
  for (const int rank : {0, 1}) {
    const auto found = lines(said, rank, "info: rank ");
    ASSERT_EQ(1U, found.size()) << said;
    for (const std::string& words :
         {"rank " + std::to_string(1 - rank) + " (process ", std::string{" on host "},
          std::string{"): path shm; devices: none; host memory: 8 B by slot ("}, std::string{", 4 MiB by ring"}})
      EXPECT_NE(std::string::npos, found[0].find(words)) << words << " in " << found[0];
    EXPECT_EQ(std::string::npos, found[0].find("device memory")) << found[0];
  }
  for (const char* level : {"warning", "error", "off"}) {
    const Variables quiet{{"ISTHMUS_LOG", level}};
    EXPECT_EQ("", said_by("host", kNothing)) << level;
  }
}

TEST(Pairs, SayWhetherTheirDevicesMeetAndWhyNot) {
  NEEDS_FAKE_DRIVER();
  const auto told = [](std::initializer_list<std::pair<const char*, const char*>> variables) {
    const Variables set(variables);
    const Variables info{{"ISTHMUS_LOG", "info"}};
    const std::string said = said_by("host,cuda", kNothing);
    const auto found = lines(said, 0, "info: rank 1 (process ");
    EXPECT_EQ(1U, found.size()) << said;
    return found.empty() ? std::string{} : found[0];
  };
  const auto expect = [](const std::string& line, std::initializer_list<const char*> all) {
    for (const char* words : all) EXPECT_NE(std::string::npos, line.find(words)) << words << " in " << line;
  };
  expect(told({}), {"a00 here, GPU-", "a01 there, each opens the other's memory by IPC", "device memory: 8 B by device (",
                    ", 4 MiB by device ("});
  expect(told({{"FAKE_CUDA_DEVICES", "1"}}),
         {"devices: both on GPU-", "8 B by cell (", "take turns", ", 4 MiB by device ("});
  expect(told({{"ISTHMUS_DEVICE", "1"}}), {"devices: both on GPU-", "a01; "});
  expect(told({{"ISTHMUS_DEVICE_IPC", "never"}}), {"apart: ISTHMUS_DEVICE_IPC is never", "8 B by cell (",
                                                   "not by device: ISTHMUS_DEVICE_IPC is never", "4 MiB by ring ("});
  expect(told({{"ISTHMUS_SINGLE_COPY", "never"}}), {"4 MiB by ring (", "not by single copy: ISTHMUS_SINGLE_COPY is never"});
}

}  // namespace
