// Device memory that two ranks open ahead: the first message takes the way of all later ones, and opens nothing. What needs CUDA devices
// says so; the environment says whether memory is opened at all, and whether each rank sees a device of its own alone.
#include <isthmus/collective.h>

#include <cstdlib>
#include <functional>
#include <optional>

#include "../fake_cuda/fake_cuda.h"
#include "device_ranks.hpp"
#include "driver_memory.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 3;

bool off() { return ipc_is_off(); }

bool has_blocks() {
  const char* setting = std::getenv("ISTHMUS_BOUNCE_LIMIT");
  return setting == nullptr || std::strtoull(setting, nullptr, 10) > 0;
}

// All ranks on one device: less than this is not copied by it there.
std::size_t enough(std::size_t bytes) {
  const bool one = own_devices() == 1 && std::getenv("ISTHMUS_TEST_OWN_DEVICES") == nullptr;
  return one ? std::max(bytes, std::size_t{2} << 20) : bytes;
}

// What opens memory of others, where the driver counts its calls.
std::uint64_t openings() {
  auto* const calls = DRIVER(fake_cuda_calls);
  if (calls == nullptr) return 0;
  std::uint64_t sum = 0;
  for (const char* call :
       {"cuIpcOpenMemHandle_v2", "cuMemImportFromShareableHandle", "cuMemMap", "cuMemPoolImportFromShareableHandle"})
    sum += calls(call);
  return sum;
}

// Memory of rank 0 or 1, whatever it is.
struct Place {
  ist_buffer buffer;
  std::function<void(const std::vector<unsigned char>&)> fill;
  std::function<std::vector<unsigned char>(std::size_t)> read;
};

Place place_of(const Memory& memory) {
  return {memory.get(), [&](const auto& bytes) { memory.fill(bytes); },
          [&](std::size_t bytes) { return memory.read(bytes); }};
}

Place place_of(std::vector<unsigned char>& memory) {
  return {ist_host(memory.data()), [&](const auto& bytes) { std::copy(bytes.begin(), bytes.end(), memory.begin()); },
          [&](std::size_t bytes) {
            return std::vector<unsigned char>(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(bytes));
          }};
}

// From rank 0 to rank 1; what carried it, on every rank.
int carry(const Place& place, std::size_t bytes, std::uint64_t seed) {
  const auto wanted = random_bytes(bytes, seed);
  const auto count = static_cast<std::int64_t>(bytes);
  ist_status status{};
  if (rank() == 0) {
    place.fill(wanted);
    EXPECT_EQ(IST_OK, ist_send(place.buffer, count, IST_BYTE, 1, kTag, comm())) << ist_error_text();
  } else if (rank() == 1) {
    place.fill(std::vector<unsigned char>(bytes, 0x5a));
    EXPECT_EQ(IST_OK, ist_recv(place.buffer, count, IST_BYTE, 0, kTag, comm(), &status)) << ist_error_text();
    EXPECT_EQ(-1, first_difference(wanted, place.read(bytes)));
  }
  std::int32_t carrier = status.carrier;
  EXPECT_EQ(IST_OK, ist_bcast(ist_host(&carrier), 1, IST_INT32, 1, comm())) << ist_error_text();
  return carrier;
}

void prepare(const ist_buffer& buffer, std::size_t bytes) {
  if (rank() > 1) return;
  EXPECT_EQ(IST_OK, ist_prepare(buffer, static_cast<std::int64_t>(bytes), IST_BYTE, 1 - rank(), comm())) << ist_error_text();
}

class PreparedMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(PreparedMemory, TheFirstMessageIsCarriedByTheDeviceAndOpensNothing) {
  NEEDS_DEVICES();
  const std::string word = GetParam();
  const bool by_block = word == "managed" || word == "pool" || word == "vmm";
  for (const std::size_t bytes : {enough(300001), enough(by_block ? 20000 : 1000)})
    for (std::uint64_t n = 0; n < 5; ++n) {
      const Memory memory(word, bytes);
      const Place place = place_of(memory);
      prepare(memory.get(), bytes);
      const std::uint64_t before = openings();
      const int carrier = carry(place, bytes, n);
      const bool by_device = !off() && (!by_block || has_blocks());
      EXPECT_EQ(by_device, carrier == IST_CARRIER_DEVICE) << ist_carrier_name(carrier);
      EXPECT_EQ(before, openings());
      carry(place, bytes, n + 10);
    }
}

INSTANTIATE_TEST_SUITE_P(Of, PreparedMemory,
                         ::testing::Values("cuda", "shared_vmm", "shared_pool", "own_pool", "managed", "pool", "vmm"),
                         [](const auto& each) { return each.param; });

// The device side lends, whichever way the message goes.
TEST(Preparing, PageLockedMemoryOfOneSideIsServedAtOnce) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 300001;
  for (const int host : {0, 1}) {
    std::vector<unsigned char> bytes(kBytes);
    if (rank() == host) {
      EXPECT_EQ(IST_OK, ist_register(world(), bytes.data(), kBytes)) << ist_error_text();
    }
    const Memory memory("cuda", kBytes);
    const Place place = rank() == host ? place_of(bytes) : place_of(memory);
    prepare(place.buffer, kBytes);
    const int carrier = carry(place, kBytes, 4);
    EXPECT_EQ(!off(), carrier == IST_CARRIER_DEVICE) << ist_carrier_name(carrier);
    if (rank() == host) {
      EXPECT_EQ(IST_OK, ist_unregister(world(), bytes.data()));
    }
  }
}

TEST(Preparing, OrdinaryMemoryOfTheHostAndNothingAtAllArePreparedInVain) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr std::size_t kBytes = 300001;
  std::vector<unsigned char> bytes(kBytes);
  prepare(ist_host(bytes.data()), kBytes);
  prepare(ist_host(nullptr), 0);
  carry(place_of(bytes), kBytes, 4);
  std::optional<Memory> memory;
  if (devices_everywhere() && rank() == 1) memory.emplace("cuda", kBytes);
  const Place place = memory ? place_of(*memory) : place_of(bytes);
  prepare(place.buffer, kBytes);
  carry(place, kBytes, 5);
}

// Each with each other, and some of them twice; a blocking call in any other order would wait for ever.
TEST(Preparing, SeveralAtATimeInAnyOrder) {
  NEEDS_DEVICES();
  const std::size_t bytes = enough(20000);
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<ist_request> requests;
  for (int step = 0; step < 2 * size(); ++step) {
    const int peer = (rank() + 1 + step) % size();
    memories.push_back(std::make_unique<Memory>("cuda", bytes));
    IST_OK_OR_FAIL(ist_iprepare(memories.back()->get(), static_cast<std::int64_t>(bytes), IST_BYTE, peer, comm(),
                                &requests.emplace_back()));
  }
  EXPECT_EQ(IST_OK, ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE))
      << ist_error_text();
  // Those of rank 0 with rank 1, and the other way round: the first of each.
  const std::size_t with = rank() == 0 ? 0 : static_cast<std::size_t>(size() - 2);
  const int carrier = carry(place_of(*memories[rank() < 2 ? with : 0]), bytes, 7);
  EXPECT_EQ(!off(), carrier == IST_CARRIER_DEVICE) << ist_carrier_name(carrier);
}

TEST(Preparing, WithItselfAndWithNobodyThereIsNothingToDo) {
  int number = 0;
  for (const int peer : {rank(), IST_PROC_NULL}) {
    EXPECT_EQ(IST_OK, ist_prepare(ist_host(&number), 1, IST_INT32, peer, comm())) << ist_error_text();
    ist_request request = reinterpret_cast<ist_request>(1);
    EXPECT_EQ(IST_OK, ist_iprepare(ist_host(&number), 1, IST_INT32, peer, comm(), &request)) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_wait(&request, IST_STATUS_IGNORE));
  }
}

TEST(Preparing, WrongArgumentsAreErrorsThatNameThem) {
  int number = 0;
  const ist_buffer buffer = ist_host(&number);
  const auto fails = [](int code, int wanted, const std::string& words) {
    EXPECT_EQ(wanted, code);
    EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find(words)) << ist_error_text();
  };
  fails(ist_prepare(buffer, 1, IST_INT32, size(), comm()), IST_ERR_RANK, "ist_prepare: peer is " + std::to_string(size()));
  fails(ist_prepare(buffer, 1, IST_INT32, IST_ANY_SOURCE, comm()), IST_ERR_RANK, "peer is -1");
  fails(ist_prepare(buffer, -1, IST_INT32, rank(), comm()), IST_ERR_ARGUMENT, "-1");
  fails(ist_prepare(ist_host(nullptr), 1, IST_INT32, rank(), comm()), IST_ERR_ARGUMENT, "null");
  fails(ist_prepare(buffer, 1, IST_INT32, rank(), IST_COMM_NULL), IST_ERR_HANDLE, "ist_prepare");
  fails(ist_iprepare(buffer, 1, IST_INT32, rank(), comm(), nullptr), IST_ERR_ARGUMENT, "request is null");
}

}  // namespace
