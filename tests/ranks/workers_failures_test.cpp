// Resident workers where they cannot be, or stop being: refused with the reason and the remedy, once; a peer that dies; a device that is
// lost; a world destroyed in the middle. Ranks are forked, each with the fake CUDA driver.
#include <isthmus/collective.h>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 100;

int count_in(const std::string& text, const std::string& words) {
  int found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

// There and back, so often, with every byte checked.
int exchange(const Here& here, int rounds) {
  Checks check(here);
  if (here.rank > 1) return 0;
  const int peer = 1 - here.rank;
  // The rank's own device.
  int devices = 1;
  check.ok(ist_kind_devices(here.world, IST_KIND_CUDA, &devices), "devices");
  Buffer buffer(here, kBytes, IST_KIND_CUDA, here.rank % devices);
  for (int n = 0; n < rounds; ++n)
    for (const int sender : {0, 1}) {
      const Data data = random_bytes(kBytes, static_cast<std::uint64_t>(2 * n + sender));
      if (here.rank == sender) {
        buffer.fill(data);
        check.ok(ist_send(buffer.get(), kBytes, IST_BYTE, peer, 7, here.comm), "send");
      } else {
        buffer.fill(Data(kBytes, 0xa5));
        check.ok(ist_recv(buffer.get(), kBytes, IST_BYTE, peer, 7, here.comm, IST_STATUS_IGNORE), "receive");
        check.that(buffer.holds(data), "the bytes of message " + std::to_string(n));
      }
    }
  return check.wrong();
}

std::string said_by(int ranks, const Body& body) {
  testing::internal::CaptureStderr();
  const auto ended = run_ranks(ranks, "host,cuda", body);
  const std::string said = testing::internal::GetCapturedStderr();
  expect_all(ended);
  return said;
}

TEST(WorkersRefused, WhereTwoRanksHaveOneDeviceAndNotTheThirdWhoHasItsOwn) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"ISTHMUS_WORKER", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}, {"FAKE_CUDA_DEVICES", "2"}};
  const std::string said = said_by(3, [](const Here& here) { return exchange(here, 20); });
  EXPECT_EQ(2, count_in(said, "the setting worker is 1, but the driver copies small messages")) << said;
  EXPECT_EQ(1, count_in(said, "rank 2 has the same GPU, GPU-fa")) << said;
  EXPECT_EQ(1, count_in(said, "rank 0 has the same GPU, GPU-fa")) << said;
  EXPECT_EQ(2, count_in(said, "start no more ranks than there are GPUs")) << said;
}

TEST(WorkersRefused, WhereKernelsAreLoadedLazily) {
  NEEDS_FAKE_DRIVER();
  const Variables set{
      {"ISTHMUS_WORKER", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}, {"FAKE_CUDA_LAZY", "1"}, {"CUDA_MODULE_LOADING", "LAZY"}};
  const std::string said = said_by(2, [](const Here& here) { return exchange(here, 20); });
  EXPECT_EQ(2, count_in(said, "set CUDA_MODULE_LOADING=EAGER in the environment")) << said;
}

TEST(WorkersRefused, NowhereElseAndNothingIsSaid) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"ISTHMUS_WORKER", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}, {"FAKE_CUDA_LAZY", "1"}};
  EXPECT_EQ("", said_by(2, [](const Here& here) { return exchange(here, 50); }));
}

// The world that asks for one has it, and the others of the process do not.
TEST(WorkersOfAWorld, AreThereWhereItsSettingsSaySo) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"CUDA_MODULE_LOADING", "EAGER"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    ist_world other = IST_WORLD_NULL;
    check.ok(ist_world_create_configured("worker=1 device_ipc=never", &other), "a world with a worker");
    Here there = here;
    there.world = other;
    check.ok(ist_world_comm(other, &there.comm), "its communicator");
    const auto by_workers = [&](const Here& where) {
      Buffer buffer(where, kBytes, IST_KIND_CUDA, here.rank);
      std::string text(4096, '\0');
      check.ok(ist_explain(buffer.get(), kBytes, IST_BYTE, 1 - here.rank, where.comm, text.data(), text.size(), nullptr),
               "explain");
      return text.find("by workers") != std::string::npos;
    };
    int wrong = exchange(there, 20) + exchange(here, 20);
    check.that(by_workers(there), "the world whose settings say so has a worker");
    check.that(!by_workers(here), "the other one has none");
    check.ok(ist_barrier(there.comm), "nobody leaves before all have asked");
    check.ok(ist_world_destroy(&other), "destroy");
    return wrong + check.wrong() + exchange(here, 5);
  }));
}

TEST(WorkersDeaths, OfAPeerInTheMiddleOfSmallMessages) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"ISTHMUS_WORKER", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  for (const int victim : {0, 1})
    expect_all_but(run_ranks(2, "host,cuda",
                             [victim](const Here& here) {
                               return messages_until_death("small messages", here, victim, kBytes, false);
                             }),
                   victim);
}

TEST(WorkersFailures, ADeviceThatIsLostIsAnErrorAndNobodyHangs) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"ISTHMUS_WORKER", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    check.that(exchange(here, 30) == 0, "before");
    if (here.rank != 0) return check.wrong();
    Buffer buffer(here, kBytes);
    driver_call<decltype(&::fake_cuda_bad_kernel)>("fake_cuda_bad_kernel")(buffer.stream());
    int code = IST_OK;
    for (int i = 0; i < 100000 && code == IST_OK; ++i) {
      std::vector<char> own(kBytes);
      code = ist_memory_copy(here.world, ist_host(own.data()), buffer.get(), kBytes);
    }
    check.fails(code, IST_ERR_DEVICE, {"CUDA_ERROR_ILLEGAL_ADDRESS"}, "a copy out of a device that is lost");
    return check.wrong();
  }));
}

TEST(WorkersFailures, AWorldThatIsDestroyedInTheMiddleLeavesNothingBehind) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"ISTHMUS_WORKER", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    check.that(exchange(here, 30) == 0, "before");
    // Outlives the world, as what is under way asks for.
    static Buffer& buffer = *new Buffer(here, kBytes * 20, IST_KIND_CUDA, here.rank);
    std::vector<ist_request> requests(20);
    // Sends that nobody receives, receives that nobody sends.
    for (int i = 0; i < 20; ++i) {
      const ist_buffer place = ist_buffer_at(buffer.get(), static_cast<std::size_t>(i) * kBytes);
      auto& request = requests[static_cast<std::size_t>(i)];
      if (i % 2 == 0)
        check.ok(ist_isend(place, kBytes, IST_BYTE, 1 - here.rank, 100 + i, here.comm, &request), "isend");
      else
        check.ok(ist_irecv(place, kBytes, IST_BYTE, 1 - here.rank, 200 + i, here.comm, &request), "irecv");
    }
    // Not before both have asked for all that.
    check.ok(ist_barrier(here.comm), "barrier");
    return check.wrong();
  }));
}

}  // namespace
