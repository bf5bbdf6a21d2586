// How many blocks of a grid that meets are launched, by the numbers of invented devices (isthmus/launch.cuh).
#include <gtest/gtest.h>

#ifdef ISTHMUS_HAVE_CUDA
#include <isthmus/launch.cuh>

using namespace ist::device;

namespace {

TEST(InKernelLaunch, OfMoreBlocksThanFitIsRefusedWithTheNumbers) {
  const Room room{2, 132, 4};
  EXPECT_EQ(256, room.blocks());
  EXPECT_EQ("", refusal_of(room, 1, 512));
  EXPECT_EQ("", refusal_of(room, 256, 512));
  const std::string why = refusal_of(room, 257, 512);
  for (const char* part :
       {"257 blocks of 512 threads", "only 256", "2 on each of 132", "4 of which are kept free", "1 to 256 blocks"})
    EXPECT_NE(std::string::npos, why.find(part)) << part << " in: " << why;
  EXPECT_NE("", refusal_of(room, 0, 512));
  EXPECT_EQ(0, (Room{2, 132, 132}.blocks()));
  EXPECT_NE(std::string::npos, refusal_of({2, 132, 132}, 1, 32).find("Keep fewer multiprocessors free"));
}

// A grid as large as is allowed leaves a multiprocessor's worth to what calls of the host start, unless its caller wants none.
TEST(InKernelLaunch, KeepsRoomForCallsOfTheHost) {
  const auto room = [](int reserved) { return Room{2, 132, kept_beside(reserved)}; };
  EXPECT_EQ(2 * 131, room(0).blocks());
  EXPECT_EQ(2 * 128, room(3).blocks());
  EXPECT_EQ(2 * 132, room(kReserveNone).blocks());
  EXPECT_EQ("", refusal_of(room(0), 262, 1024));
  EXPECT_EQ("", refusal_of(room(kReserveNone), 264, 1024));
  const std::string why = refusal_of(room(0), 264, 1024);
  for (const char* part : {"264 blocks of 1024 threads", "only 262", "1 of which are kept free", "calls of the host"})
    EXPECT_NE(std::string::npos, why.find(part)) << part << " in: " << why;
  const std::string none = refusal_of({2, 1, kept_beside(0)}, 1, 32);
  EXPECT_NE(std::string::npos, none.find("kReserveNone")) << none;
}

// Of an H100: blocks of the grid lose what the worker's block takes of one multiprocessor, whichever of its resources is short.
TEST(InKernelLaunch, LosesWhatAWorkerTakesOfOneMultiprocessor) {
  constexpr Multiprocessor kHas{2048, 65536, 233472, 32};
  constexpr BlockNeeds kWorker{256, 72, 640};
  static_assert(registers_of(kWorker) == 8 * 72 * 32);
  EXPECT_EQ(1, lost_to(kWorker, {1024, 32, 0}, kHas, 2)) << "1792 threads are left";
  EXPECT_EQ(2, lost_to(kWorker, {128, 16, 0}, kHas, 16)) << "as many threads as two blocks";
  EXPECT_EQ(5, lost_to(kWorker, {128, 32, 0}, kHas, 16)) << "registers of four blocks and a half";
  EXPECT_EQ(0, lost_to(kWorker, {1024, 40, 0}, kHas, 1)) << "registers of one block, and room for the worker beside it";
  EXPECT_EQ(1, lost_to(kWorker, {1024, 64, 0}, kHas, 1)) << "all registers";
  EXPECT_EQ(1, lost_to(kWorker, {256, 128, 0}, kHas, 2)) << "registers";
  EXPECT_EQ(1, lost_to(kWorker, {256, 32, 232448}, kHas, 1)) << "shared memory";
  EXPECT_EQ(1, lost_to(kWorker, {32, 32, 0}, kHas, 32)) << "the number of blocks";
  EXPECT_EQ(0, lost_to(kWorker, {256, 32, 0}, kHas, 4)) << "what is there already is fewer";
  EXPECT_EQ(2, lost_to({2048, 32, 0}, {1024, 32, 0}, kHas, 2)) << "no more than there are";
}

TEST(InKernelLaunch, BesideWorkersIsRefusedWithWhatIsTakenByWhom) {
  Room room{2, 132, kept_beside(0)};
  EXPECT_EQ(262, room.blocks());
  EXPECT_EQ(std::string::npos, refusal_of(room, 263, 1024).find("ISTHMUS_WORKER"));
  room.worker = {256, 72, 640};
  room.lost_to_each = 1;
  room.workers = 1;
  EXPECT_EQ(261, room.blocks());
  EXPECT_EQ("", refusal_of(room, 261, 1024));
  const std::string why = refusal_of(room, 262, 1024);
  for (const char* part :
       {"262 blocks of 1024 threads", "only 261", "1 of which are kept free",
        "1 fewer beside 1 worker of this process (ISTHMUS_WORKER), of 256 threads with 72 registers and 640 "
        "bytes",
        "Launch 1 to 261 blocks"})
    EXPECT_NE(std::string::npos, why.find(part)) << part << " in: " << why;
  room.workers = 2;
  EXPECT_EQ(260, room.blocks());
  EXPECT_NE(std::string::npos, refusal_of(room, 261, 1024).find("2 fewer beside 2 workers"));
  EXPECT_EQ(0, (Room{1, 1, 0, 2, {256, 72, 640}, 1}.blocks()));
}

// This test links nothing of the library: the call that tells of workers is not there.
TEST(InKernelLaunch, NeedsNothingOfTheLibrary) { EXPECT_TRUE(&ist_worker_blocks_on == nullptr); }

}  // namespace
#endif
