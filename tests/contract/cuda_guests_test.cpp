// Streams for other libraries: which memory they may have, and what comes before and after their work.
#include "cuda_support.hpp"
#include "memory/guests.hpp"

namespace ist::test {
namespace {

using CudaGuestsTest = CudaTest;

TEST_F(CudaGuestsTest, device_memory_of_the_primary_context_is_for_them_and_no_other) {
  Guests& guests = *kind->guests();
  const Piece own = must(kind->allocate(0, Bytes{4096}));
  EXPECT_TRUE(guests.admits(own).ok());
  EXPECT_TRUE(guests.admits(own.part(Offset{100}, Bytes{16})).ok());
  std::uint64_t managed = 0;
  std::uint64_t foreign = 0;
  {
    const Current now(api, primary());
    must(api, api.cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(&managed), 4096, CU_MEM_ATTACH_GLOBAL), "managed");
  }
  const CUcontext context = make_context();
  {
    const Current now(api, context);
    must(api, api.cuMemAlloc_v2(reinterpret_cast<CUdeviceptr*>(&foreign), 4096), "cuMemAlloc");
  }
  EXPECT_NE(guests.admits(device_piece(managed, 4096)).text().find("managed"), std::string::npos);
  EXPECT_NE(guests.admits(device_piece(foreign, 4096)).text().find("primary"), std::string::npos);
  const Data host(4096);
  EXPECT_FALSE(guests.admits(device_piece(reinterpret_cast<std::uint64_t>(host.data()), 4096)).ok());
  {
    const Current now(api, context);
    must(api, api.cuMemFree_v2(foreign), "cuMemFree");
  }
  {
    const Current now(api, primary());
    must(api, api.cuMemFree_v2(managed), "cuMemFree");
  }
  must(kind->release(own));
}

TEST_F(CudaGuestsTest, their_work_comes_after_what_it_follows_and_the_mark_after_their_work) {
  const Data ones(4096, 1);
  Data back(4096, 0xEE);
  Piece piece = must(kind->allocate(0, Bytes{4096}));
  const CUstream user = make_stream(primary());
  piece.queue = reinterpret_cast<std::uint64_t>(user);
  Gate gate;
  fill_behind(gate, user, piece.object, 4096, 2);
  Ticket pending = must(kind->streams()->ready(piece));
  ASSERT_FALSE(pending.empty());
  {
    const auto stream = must(kind->guests()->open_stream(0));
    EXPECT_EQ(stream->device(), 0);
    must(stream->follow(pending));
    must(stream->follow(Ticket{}));
    CUcontext inside = nullptr;
    must(stream->within([&] {
      api.cuCtxGetCurrent(&inside);
      api.cuMemsetD8Async(piece.object, 3, 100, reinterpret_cast<CUstream>(stream->handle()));
    }));
    EXPECT_EQ(inside, primary());
    EXPECT_EQ(current(), nullptr);
    Ticket done = must(stream->mark());
    for (int looks = 0; looks < 50; ++looks) EXPECT_FALSE(must(kind->finished(done)));
    gate.open();
    must(finish(done));
    EXPECT_TRUE(must(kind->finished(pending)));
  }
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{4096}), piece, {}));
  must(finish(out));
  Data expected(4096, 2);
  std::fill_n(expected.begin(), 100, 3);
  EXPECT_EQ(back, expected);
  must(kind->release(piece));
}

TEST_F(CudaGuestsTest, a_ticket_that_is_over_is_refused_and_a_stream_that_cannot_be_made_is_an_error) {
  NEEDS_FAKE("be broken");
  const auto stream = must(kind->guests()->open_stream(1));
  EXPECT_FALSE(stream->follow(Ticket{kind.get(), 0xfffffffffULL}).ok());
  fake_fail("cuEventRecord", 0, CUDA_ERROR_UNKNOWN);
  EXPECT_NE(stream->mark().status().text().find("cuEventRecord"), std::string::npos);
  fake_fail("cuStreamCreate", 0, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kind->guests()->open_stream(1).status().code(), IST_ERR_MEMORY);
  EXPECT_EQ(kind->guests()->open_stream(99).status().code(), IST_ERR_ARGUMENT);
}

}  // namespace
}  // namespace ist::test
