// Contexts: the pointer's own is worked in, the caller's stays as it was.
#include <cstdlib>
#include <thread>

#include "cuda_support.hpp"

namespace ist::test {
namespace {

class CudaContextTest : public CudaTest {
 protected:
  // Every call of the kind, errors among them; true bytes are compared.
  void use_everything(int device) {
    const Data bytes = random_bytes(5001);
    Data back(5001, 0xEE);
    const Piece piece = must(kind->allocate(device, Bytes{5001}));
    Piece checked = piece;
    must(kind->check(checked));
    EXPECT_TRUE(kind->recognise(piece.address()).has_value());
    Ticket ready = must(kind->streams()->ready(piece));
    Ticket in = must(kind->copy(piece, host_piece(bytes.data(), Bytes{5001}), ready));
    Ticket out = must(kind->copy(host_piece(back.data(), Bytes{5001}), piece, in));
    { const Ticket dropped = must(kind->copy(piece.part(Offset{0}, Bytes{1}), piece.part(Offset{9}, Bytes{1}), out)); }
    must(finish(ready));
    must(finish(in));
    must(finish(out));
    EXPECT_EQ(back, bytes);
    EXPECT_FALSE(kind->allocate(device, Bytes{std::uint64_t{1} << 60}).ok());
    EXPECT_FALSE(kind->copy(device_piece(0x1000, 16), host_piece(bytes.data(), Bytes{16}), {}).ok());
    EXPECT_FALSE(kind->streams()->ready(device_piece(0x1000, 16)).ok());
    void* memory = std::aligned_alloc(4096, 4096);
    must(kind->pins()->pin(memory, Bytes{4096}));
    kind->pins()->unpin(memory);
    std::free(memory);
    must(kind->release(piece));
    EXPECT_FALSE(kind->release(piece).ok());
  }
};

TEST_F(CudaContextTest, a_caller_without_a_context_still_has_none_after_every_call) {
  for (const DeviceInfo& device : kind->devices()) {
    use_everything(device.ordinal);
    EXPECT_EQ(current(), nullptr);
  }
  std::thread([&] {
    use_everything(0);
    EXPECT_EQ(current(), nullptr);
  }).join();
}

TEST_F(CudaContextTest, a_caller_with_another_context_finds_it_current_after_every_call) {
  CUcontext mine = make_context();
  {
    const Current scope(api, mine);
    for (const DeviceInfo& device : kind->devices()) {
      use_everything(device.ordinal);
      EXPECT_EQ(current(), mine);
    }
  }
  EXPECT_EQ(current(), nullptr) << "something was left below";
  kind.reset();
  destroy_context(mine);
}

TEST_F(CudaContextTest, memory_and_streams_of_a_users_own_context_are_worked_with_in_it) {
  CUcontext mine = make_context();
  CUstream stream = make_stream(mine);
  CUdeviceptr memory = 0;
  {
    const Current scope(api, mine);
    must(api, api.cuMemAlloc_v2(&memory, 4096), "cuMemAlloc");
  }
  Gate gate;
  {
    const Current scope(api, mine);
    fill_behind(gate, stream, memory, 4096, 7);
  }
  const Piece piece = device_piece(memory, 4096, stream);
  Data back(4096, 0xEE);
  Ticket ready = must(kind->streams()->ready(piece));
  EXPECT_FALSE(ready.empty());
  EXPECT_FALSE(must(kind->finished(ready)));
  gate.open();
  must(finish(ready));
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{4096}), piece, {}));
  must(finish(out));
  EXPECT_EQ(back, Data(4096, 7));
  // Between this context and the primary one, both ways.
  const Piece other = must(kind->allocate(0, Bytes{4096}));
  const Data bytes = random_bytes(4096);
  Ticket a = must(kind->copy(other, host_piece(bytes.data(), Bytes{4096}), {}));
  Ticket b = must(kind->copy(piece, other, a));
  Ticket c = must(kind->copy(other.part(Offset{1}, Bytes{4095}), piece.part(Offset{1}, Bytes{4095}), b));
  Ticket d = must(kind->copy(host_piece(back.data(), Bytes{4096}), other, c));
  for (Ticket* each : {&a, &b, &c, &d}) must(finish(*each));
  EXPECT_EQ(back, bytes);
  must(kind->release(other));
  EXPECT_EQ(kind->release(piece).code(), IST_ERR_ARGUMENT) << "it is the user's";
  EXPECT_EQ(current(), nullptr);
}

TEST_F(CudaContextTest, the_default_stream_means_that_of_the_buffers_own_context) {
  CUcontext mine = make_context();
  CUdeviceptr memory = 0;
  Gate gate;
  {
    const Current scope(api, mine);
    must(api, api.cuMemAlloc_v2(&memory, 4096), "cuMemAlloc");
    fill_behind(gate, nullptr, memory, 4096, 9);
  }
  Ticket ready = must(kind->streams()->ready(device_piece(memory, 4096)));
  EXPECT_FALSE(ready.empty()) << "the work is in the default stream of the user's context";
  gate.open();
  must(finish(ready));
  Data back(4096, 0xEE);
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{4096}), device_piece(memory, 4096), {}));
  must(finish(out));
  EXPECT_EQ(back, Data(4096, 9));
  kind.reset();
  destroy_context(mine);
}

TEST_F(CudaContextTest, a_destroyed_context_is_an_error_for_its_tickets_and_its_successor_works) {
  for (int round = 0; round < 3; ++round) {
    CUcontext mine = make_context();
    CUdeviceptr memory = 0;
    {
      const Current scope(api, mine);
      must(api, api.cuMemAlloc_v2(&memory, 4096), "cuMemAlloc");
    }
    const Piece piece = device_piece(memory, 4096);
    const Data bytes = random_bytes(4096);
    Data back(4096, 0xEE);
    Ticket in = must(kind->copy(piece, host_piece(bytes.data(), Bytes{4096}), {}));
    Ticket out = must(kind->copy(host_piece(back.data(), Bytes{4096}), piece, in));
    must(finish(in));
    must(finish(out));
    EXPECT_EQ(back, bytes);
    Ticket orphan = must(kind->copy(piece, host_piece(bytes.data(), Bytes{4096}), {}));
    const Ticket second = must(kind->copy(piece, host_piece(bytes.data(), Bytes{4096}), {}));
    destroy_context(mine);
    const Status lost = finish(orphan);
    EXPECT_EQ(lost.code(), IST_ERR_DEVICE);
    EXPECT_NE(lost.text().find("CUDA_ERROR_CONTEXT_IS_DESTROYED"), std::string::npos) << lost.text();
    EXPECT_FALSE(kind->copy(piece, host_piece(bytes.data(), Bytes{4096}), {}).ok());
    const Piece other = must(kind->allocate(0, Bytes{4096}));
    EXPECT_FALSE(kind->copy(other, host_piece(bytes.data(), Bytes{4096}), second).ok()) << "after lost work";
    EXPECT_FALSE(kind->copy(other.part(Offset{0}, Bytes{0}), host_piece(nullptr, Bytes{0}), second).ok());
    must(kind->release(other));
    use_everything(0);
  }
}

TEST_F(CudaContextTest, the_kind_holds_one_primary_context_per_used_device_and_gives_it_back) {
  const auto active = [&](int device) {
    unsigned flags = 0;
    int value = 0;
    must(api, api.cuDevicePrimaryCtxGetState(device, &flags, &value), "cuDevicePrimaryCtxGetState");
    return value != 0;
  };
  const int last = static_cast<int>(kind->devices().size()) - 1;
  use_everything(last);
  for (int device = 0; device < last; ++device) EXPECT_FALSE(active(device)) << "device " << device << " was not used";
  EXPECT_TRUE(active(last));
  EXPECT_TRUE(!is_fake() || fake_count("contexts") == 1);
  kind.reset();
  EXPECT_FALSE(active(last));
  if (is_fake()) {
    EXPECT_EQ(fake_count("contexts"), 0);
    EXPECT_EQ(fake_count("events"), 0);
    EXPECT_EQ(fake_count("allocations"), 0);
  }
}

TEST_F(CudaContextTest, devices_copy_to_each_other_directly) {
  if (kind->devices().size() < 2) GTEST_SKIP() << "SKIPPED: one device only";
  const Piece a = must(kind->allocate(0, Bytes{100001}));
  const Piece b = must(kind->allocate(1, Bytes{100001}));
  const Data bytes = random_bytes(100001);
  Data back(100001, 0xEE);
  Ticket in = must(kind->copy(a, host_piece(bytes.data(), Bytes{100001}), {}));
  Ticket over = must(kind->copy(b, a, in));
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{100001}), b, over));
  for (Ticket* each : {&in, &over, &out}) must(finish(*each));
  EXPECT_EQ(back, bytes);
  must(kind->release(a));
  must(kind->release(b));
}

}  // namespace
}  // namespace ist::test
