// Wrong uses of the C interface: an error that says what is wrong, never a crash. Run on 1 and 2 ranks.
#include <climits>
#include <cstdlib>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

::testing::AssertionResult fails(int code, int expected, const std::string& word) {
  if (code != expected)
    return ::testing::AssertionFailure() << ist_code_name(code) << " instead of " << ist_code_name(expected);
  if (std::string(ist_error_text()).find(word) == std::string::npos)
    return ::testing::AssertionFailure() << "\"" << ist_error_text() << "\" does not say \"" << word << "\"";
  return ::testing::AssertionSuccess();
}

// A value no enumerator has, as a C program could pass it.
template <class E>
E made_up(int value) {
  E result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

int send(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag) {
  return ist_send(buffer, count, type, dest, tag, comm());
}

TEST(Misuse, BadArgumentsAreNamed) {
  int value = 1;
  EXPECT_TRUE(fails(send(ist_host(&value), -1, IST_INT, 0, 0), IST_ERR_ARGUMENT, "count is -1"));
  EXPECT_TRUE(fails(send(ist_host(&value), 1, made_up<ist_type>(99), 0, 0), IST_ERR_ARGUMENT, "type 99"));
  EXPECT_TRUE(fails(send(ist_host(nullptr), 1, IST_INT, 0, 0), IST_ERR_ARGUMENT, "null"));
  EXPECT_TRUE(fails(send(ist_host(&value), INT64_MAX, IST_DOUBLE, 0, 0), IST_ERR_OVERFLOW, "9223372036854775807 elements"));
  EXPECT_TRUE(fails(send(ist_host(&value), 1, IST_INT, size(), 0), IST_ERR_RANK, "dest is " + std::to_string(size())));
  EXPECT_TRUE(fails(send(ist_host(&value), 1, IST_INT, -7, 0), IST_ERR_RANK, "dest is -7"));
  EXPECT_TRUE(fails(send(ist_host(&value), 1, IST_INT, IST_ANY_SOURCE, 0), IST_ERR_RANK, "dest is -1"));
  EXPECT_TRUE(fails(send(ist_host(&value), 1, IST_INT, 0, -1), IST_ERR_ARGUMENT, "tag is -1"));
  EXPECT_TRUE(fails(ist_recv(ist_host(&value), 1, IST_INT, size(), 0, comm(), nullptr), IST_ERR_RANK, "source"));
  EXPECT_TRUE(fails(ist_recv(ist_host(&value), 1, IST_INT, 0, -5, comm(), nullptr), IST_ERR_ARGUMENT, "tag is -5"));
  EXPECT_TRUE(fails(ist_isend(ist_host(&value), 1, IST_INT, 0, 0, comm(), nullptr), IST_ERR_ARGUMENT, "request"));
  EXPECT_TRUE(fails(ist_irecv(ist_host(&value), 1, IST_INT, 0, 0, comm(), nullptr), IST_ERR_ARGUMENT, "request"));
}

TEST(Misuse, KindsThatDoNotExistAreNamed) {
  int value = 1;
  ist_buffer strange = ist_host(&value);
  strange.kind = 77;
  EXPECT_TRUE(fails(send(strange, 1, IST_INT, 0, 0), IST_ERR_KIND, "77"));
  strange.kind = IST_KIND_GL;
  EXPECT_EQ(IST_ERR_KIND, send(strange, 1, IST_INT, 0, 0));
  ist_buffer memory{};
  int devices = 55;
  // 257 is 1 in eight bits, and 1 is host memory.
  for (const int kind : {5, 55, 255, 256, 257, 258, 259, 65537}) {
    const std::string number = std::to_string(kind);
    EXPECT_TRUE(fails(ist_memory_alloc(world(), made_up<ist_kind>(kind), 0, 10, &memory), IST_ERR_KIND, number));
    EXPECT_TRUE(fails(ist_kind_devices(world(), made_up<ist_kind>(kind), &devices), IST_ERR_KIND, number));
    EXPECT_EQ(0, devices);
    strange.kind = static_cast<uint32_t>(kind);
    EXPECT_TRUE(fails(ist_memory_free(world(), strange), IST_ERR_KIND, number));
    EXPECT_TRUE(fails(ist_memory_copy(world(), strange, ist_host(&value), 1), IST_ERR_KIND, number));
  }
  for (const int kind : {INT_MIN, -255, -1, 0}) {
    EXPECT_EQ(IST_ERR_KIND, ist_memory_alloc(world(), made_up<ist_kind>(kind), 0, 10, &memory));
    EXPECT_EQ(IST_ERR_KIND, ist_kind_devices(world(), made_up<ist_kind>(kind), &devices));
  }
  EXPECT_EQ(IST_OK, ist_kind_devices(world(), IST_KIND_GL, &devices)) << "it is known, and not there";
  EXPECT_EQ(0, devices);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_memory_alloc(world(), IST_KIND_HOST, 0, 10, nullptr));
}

TEST(Misuse, DevicesThatDoNotExistAreNamed) {
  ist_buffer memory{};
  for (const KindName& kind : usable_kinds())
    for (const int device : {-7, 99, INT_MIN, INT_MAX}) {
      EXPECT_TRUE(fails(ist_memory_alloc(world(), kind.kind, device, 10, &memory), IST_ERR_ARGUMENT, std::to_string(device)))
          << kind.name;
      EXPECT_EQ(0U, memory.object);
    }
}

TEST(Misuse, OnlyWhatWasAllocatedIsFreedAndOnlyOnce) {
  for (const KindName& kind : usable_kinds()) {
    ist_buffer memory{};
    IST_OK_OR_FAIL(ist_memory_alloc(world(), kind.kind, 0, 100, &memory));
    const auto bytes = random_bytes(100, 4711);
    IST_OK_OR_FAIL(ist_memory_copy(world(), memory, ist_host(bytes.data()), 100));
    EXPECT_TRUE(fails(ist_memory_free(world(), ist_buffer_at(memory, 16)), IST_ERR_ARGUMENT, "16 bytes inside"));
    ist_buffer middle = memory;
    middle.object += 16;
    EXPECT_TRUE(fails(ist_memory_free(world(), middle), IST_ERR_ARGUMENT, "allocated here"));
    for (const KindName& other : usable_kinds()) {
      if (other.kind == kind.kind) continue;
      ist_buffer disguised = memory;
      disguised.kind = static_cast<std::uint32_t>(other.kind);
      EXPECT_TRUE(fails(ist_memory_free(world(), disguised), IST_ERR_ARGUMENT, "allocated here")) << other.name;
    }
    std::vector<unsigned char> back(100, 0xa5);
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(back.data()), memory, 100));
    EXPECT_EQ(-1, first_difference(bytes, back)) << kind.name;
    IST_OK_OR_FAIL(ist_memory_free(world(), memory));
    EXPECT_TRUE(fails(ist_memory_free(world(), memory), IST_ERR_ARGUMENT, "freed")) << kind.name;
  }
  std::vector<unsigned char> mine(100);
  EXPECT_TRUE(fails(ist_memory_free(world(), ist_host(mine.data())), IST_ERR_ARGUMENT, "allocated here"));
  EXPECT_EQ(IST_OK, ist_memory_free(world(), ist_host(nullptr)));
}

TEST(Misuse, RanksOfOneHostTakeItsDevicesInTurn) {
  for (const KindName& kind : usable_kinds()) {
    int devices = 0;
    int local = 0;
    IST_OK_OR_FAIL(ist_kind_devices(world(), kind.kind, &devices));
    IST_OK_OR_FAIL(ist_comm_local_rank(comm(), &local));
    ist_buffer memory{};
    IST_OK_OR_FAIL(ist_memory_alloc(world(), kind.kind, IST_OWN_DEVICE, 100, &memory));
    EXPECT_EQ(local % devices, memory.device) << kind.name;
    IST_OK_OR_FAIL(ist_memory_free(world(), memory));
  }
}

TEST(Misuse, HostMemoryNamedAsDeviceMemoryIsRefused) {
  for (const KindName& kind : usable_kinds()) {
    if (kind.kind != IST_KIND_CUDA) continue;
    int value = 1;
    EXPECT_NE(IST_OK, send(ist_cuda(&value, nullptr), 1, IST_INT, 0, 0));
  }
}

TEST(Misuse, ReleasedAndForeignHandlesAreErrors) {
  int value = 0;
  int number = 0;
  EXPECT_TRUE(fails(ist_comm_rank(IST_COMM_NULL, &number), IST_ERR_HANDLE, "null"));
  EXPECT_TRUE(fails(ist_comm_rank(reinterpret_cast<ist_comm>(0x1234), &number), IST_ERR_HANDLE, "0x1234"));
  EXPECT_TRUE(fails(ist_comm_rank(reinterpret_cast<ist_comm>(world()), &number), IST_ERR_HANDLE, "communicator"));
  ist_comm out = IST_COMM_NULL;
  EXPECT_TRUE(fails(ist_world_comm(reinterpret_cast<ist_world>(comm()), &out), IST_ERR_HANDLE, "world"));
  EXPECT_EQ(IST_ERR_HANDLE, ist_send(ist_host(&value), 1, IST_INT, 0, 0, reinterpret_cast<ist_comm>(&value)));
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_irecv(ist_host(&value), 1, IST_INT, rank(), 3, comm(), &request));
  ist_request copy = request;
  IST_OK_OR_FAIL(ist_send(ist_host(&number), 1, IST_INT, rank(), 3, comm()));
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  EXPECT_TRUE(fails(ist_wait(&copy, IST_STATUS_IGNORE), IST_ERR_HANDLE, "released"));
  int completed = 0;
  EXPECT_TRUE(fails(ist_test(&copy, &completed, IST_STATUS_IGNORE), IST_ERR_HANDLE, "released"));
  ist_request foreign = reinterpret_cast<ist_request>(&value);
  EXPECT_EQ(IST_ERR_HANDLE, ist_wait(&foreign, IST_STATUS_IGNORE));
  foreign = reinterpret_cast<ist_request>(world());
  EXPECT_EQ(IST_ERR_HANDLE, ist_wait(&foreign, IST_STATUS_IGNORE));
}

TEST(Misuse, HandlesOfADestroyedWorldAreErrorsAlsoWhenAnotherTookItsPlace) {
  ist_world second = IST_WORLD_NULL;
  IST_OK_OR_FAIL(ist_world_create(&second));
  ist_comm there = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_world_comm(second, &there));
  int value = 0;
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_irecv(ist_host(&value), 1, IST_INT, rank(), 3, there, &request));
  ist_world old = second;
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_world_destroy(&second));
  EXPECT_EQ(IST_ERR_HANDLE, ist_world_destroy(&second));
  EXPECT_EQ(IST_ERR_HANDLE, ist_world_destroy(&old));
  ist_world third = IST_WORLD_NULL;
  IST_OK_OR_FAIL(ist_world_create(&third));
  EXPECT_EQ(IST_ERR_HANDLE, ist_barrier(there));
  EXPECT_EQ(IST_ERR_HANDLE, ist_wait(&request, IST_STATUS_IGNORE));
  EXPECT_EQ(IST_ERR_HANDLE, ist_world_destroy(&old));
  IST_OK_OR_FAIL(ist_world_destroy(&third));
}

TEST(Misuse, WaitallReportsEachFailureAndCompletesTheRest) {
  int in[2] = {0, 0};
  const int out = 5;
  ist_request requests[3];
  ist_status statuses[3];
  IST_OK_OR_FAIL(ist_irecv(ist_host(&in[0]), 1, IST_BYTE, rank(), 1, comm(), &requests[0]));
  IST_OK_OR_FAIL(ist_irecv(ist_host(&in[1]), 1, IST_INT, rank(), 2, comm(), &requests[1]));
  requests[2] = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_send(ist_host(&out), 1, IST_INT, rank(), 1, comm()));
  IST_OK_OR_FAIL(ist_send(ist_host(&out), 1, IST_INT, rank(), 2, comm()));
  EXPECT_TRUE(fails(ist_waitall(3, requests, statuses), IST_ERR_IN_STATUS, "request 0"));
  EXPECT_EQ(IST_ERR_TRUNCATE, statuses[0].code);
  EXPECT_EQ(IST_OK, statuses[1].code);
  EXPECT_EQ(5, in[1]);
  EXPECT_EQ(IST_OK, statuses[2].code);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_waitall(-1, requests, statuses));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_waitall(1, nullptr, statuses));
  EXPECT_EQ(IST_OK, ist_waitall(0, nullptr, nullptr));
}

TEST(Misuse, ASettingThatCannotBeReadIsNamedWithItsValue) {
  ASSERT_EQ(0, setenv("ISTHMUS_EAGER_LIMIT", "lots", 1));
  ist_world second = IST_WORLD_NULL;
  EXPECT_TRUE(fails(ist_world_create(&second), IST_ERR_SETTING, "ISTHMUS_EAGER_LIMIT=\"lots\""));
  EXPECT_EQ(IST_WORLD_NULL, second);
  ASSERT_EQ(0, unsetenv("ISTHMUS_EAGER_LIMIT"));
}

TEST(Misuse, NamesOfCodesAndCarriersAreKnown) {
  EXPECT_STREQ("IST_OK", ist_code_name(0));
  EXPECT_STREQ("IST_ERR_INTERNAL", ist_code_name(IST_ERR_INTERNAL));
  EXPECT_STREQ("unknown code", ist_code_name(-1));
  EXPECT_STREQ("unknown code", ist_code_name(1000));
  EXPECT_STREQ("ring", ist_carrier_name(IST_CARRIER_RING));
  EXPECT_STREQ("none", ist_carrier_name(99));
  EXPECT_STREQ("0.1.0", ist_version());
}

}  // namespace
