// Copies that come after a buffer's work by going into its own stream (Streams::in_order), without asking the stream first.
#include "cuda_support.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kSize = 5000;

class CudaInOrder : public CudaTest {
 protected:
  Piece piece_in(CUstream stream) {
    Piece piece = must(kind->allocate(0, Bytes{kSize}));
    pieces_.push_back(piece);
    piece.queue = reinterpret_cast<std::uint64_t>(stream);
    return piece;
  }
  void TearDown() override {
    for (const Piece& piece : pieces_) EXPECT_TRUE(kind->release(piece).ok());
    CudaTest::TearDown();
  }

 private:
  std::vector<Piece> pieces_;
};

TEST_F(CudaInOrder, the_copy_waits_for_the_work_and_later_work_does_not_change_what_it_reads) {
  CUstream stream = make_stream(primary());
  const Piece piece = piece_in(stream);
  for (const bool busy : {false, true}) {
    const auto value = static_cast<unsigned char>(busy ? 7 : 3);
    Gate gate;
    if (!busy) gate.open();
    fill_behind(gate, stream, piece.object, kSize, value);
    if (!busy) synchronise(stream);
    Ticket after = must(kind->streams()->in_order(piece));
    EXPECT_FALSE(after.empty());  // nobody has asked yet
    Data back(kSize, 0xEE);
    Ticket copied;
    if (busy) {
      // Of page-locked memory, as a driver may hold the thread where it is pageable.
      Piece target = piece_in(nullptr);
      copied = must(kind->copy(target, piece, after));
      Ticket asked = must(kind->streams()->ready(piece));
      EXPECT_FALSE(must(kind->finished(asked)));
      EXPECT_FALSE(must(kind->finished(copied)));
      gate.open();
      must(finish(copied));
      must(finish(asked));
      Ticket out = must(kind->copy(host_piece(back.data(), Bytes{kSize}), target, {}));
      must(finish(out));
    } else {
      copied = must(kind->copy(host_piece(back.data(), Bytes{kSize}), piece, after));
      must(finish(copied));
    }
    EXPECT_EQ(Data(kSize, value), back);
  }
}

TEST_F(CudaInOrder, who_asks_is_told_when_that_work_is_over_whatever_came_later) {
  CUstream stream = make_stream(primary());
  const Piece piece = piece_in(stream);
  Ticket idle = must(kind->streams()->in_order(piece));
  EXPECT_TRUE(must(kind->finished(idle)));
  EXPECT_TRUE(idle.empty());
  Gate first;
  fill_behind(first, stream, piece.object, kSize, 1);
  Ticket busy = must(kind->streams()->in_order(piece));
  EXPECT_FALSE(must(kind->finished(busy)));  // from here on it knows of this work alone
  Gate second;
  fill_behind(second, stream, piece.object, kSize, 2);
  first.open();
  must(finish(busy));
  EXPECT_TRUE(busy.empty());
  second.open();
  synchronise(stream);
}

TEST_F(CudaInOrder, a_copy_in_another_context_waits_all_the_same) {
  CUstream stream = make_stream(primary());
  const Piece piece = piece_in(stream);
  CUcontext context = make_context();
  CUdeviceptr other = 0;
  {
    const Current scope(api, context);
    must(api, api.cuMemAlloc_v2(&other, kSize), "cuMemAlloc");
  }
  Gate gate;
  fill_behind(gate, stream, piece.object, kSize, 9);
  Ticket after = must(kind->streams()->in_order(piece));
  Data bytes = random_bytes(kSize);
  const Piece far = device_piece(other, kSize);
  Ticket copied = must(kind->copy(far, piece_in(nullptr), after));  // from the first context: in that stream
  Ticket second = must(kind->copy(piece_in(nullptr), far, after));  // from the other one: behind its event
  EXPECT_FALSE(must(kind->finished(copied)));
  EXPECT_FALSE(must(kind->finished(second)));
  gate.open();
  must(finish(copied));
  must(finish(second));
  const Current scope(api, context);
  must(api, api.cuMemFree_v2(other), "cuMemFree");
}

TEST_F(CudaInOrder, tickets_that_are_dropped_give_their_events_back_at_once) {
  CUstream stream = make_stream(primary());
  const Piece piece = piece_in(stream);
  Gate gate;
  fill_behind(gate, stream, piece.object, kSize, 1);
  { const Ticket dropped = must(kind->streams()->in_order(piece)); }
  const std::size_t events = cuda().events();
  for (int n = 0; n < 100; ++n) const Ticket dropped = must(kind->streams()->in_order(piece));
  EXPECT_EQ(events, cuda().events());
  gate.open();
  synchronise(stream);
}

TEST_F(CudaInOrder, nothing_waits_for_an_empty_piece_and_a_capture_is_refused) {
  CUstream stream = make_stream(primary());
  Piece piece = piece_in(stream);
  EXPECT_TRUE(must(kind->streams()->in_order(piece.part(Offset{0}, Bytes{0}))).empty());
  const Current scope(api, primary());
  must(api, api.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  const Result<Ticket> ready = kind->streams()->in_order(piece);
  ASSERT_FALSE(ready.ok());
  EXPECT_EQ(ready.status().code(), IST_ERR_NOT_CAPTURABLE);
  EXPECT_NE(ready.status().text().find("is being captured into a graph"), std::string::npos) << ready.status().text();
  CUgraph graph = nullptr;
  EXPECT_EQ(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

}  // namespace
}  // namespace ist::test
