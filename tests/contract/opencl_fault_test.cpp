// A driver that refuses a call after it has taken the copy, buffers that are not the kind's to free, and buffers already freed.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "memory/opencl/opencl_kind.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

std::atomic<bool> flush_fails{false};
cl_int CL_API_CALL flush_or_fail(cl_command_queue queue) {
  return flush_fails ? CL_OUT_OF_RESOURCES : (*OpenclApi::get())->clFlush(queue);
}

class OpenclFault : public testing::Test {
 protected:
  void SetUp() override {
    if (!kinds().find(KindId::opencl)) GTEST_SKIP() << "SKIPPED: opencl is not loaded here";
    api_ = *must(OpenclApi::get());
    api_.clFlush = flush_or_fail;
    kind_ = std::make_unique<OpenclKind>(api_);
    must(kind_->list_devices());
  }
  // Nothing of the queue runs until the event is set.
  cl_event close(const Piece& piece) const {
    cl_context context = nullptr;
    cl_int error = api_.clGetMemObjectInfo(memory_of(piece), CL_MEM_CONTEXT, sizeof context, &context, nullptr);
    must(opencl_status(error, "clGetMemObjectInfo"));
    cl_event gate = api_.clCreateUserEvent(context, &error);
    must(opencl_status(error, "clCreateUserEvent"));
    must(opencl_status(api_.clEnqueueMarkerWithWaitList(queue_of(piece), 1, &gate, nullptr), "clEnqueueMarkerWithWaitList"));
    return gate;
  }

  OpenclApi api_;
  std::unique_ptr<OpenclKind> kind_;
};

// Whoever hears the error may free both pieces.
TEST_F(OpenclFault, a_copy_whose_flush_fails_is_over_when_the_error_comes) {
  const Piece piece = must(kind_->allocate(0, Bytes{4097}));
  const Data bytes = random_bytes(4097);
  write(piece, bytes);
  cl_event gate = close(piece);
  Ticket ready = must(kind_->ready(piece));
  Data seen(4097, 0xEE);
  std::atomic<bool> opened{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    opened = true;
    api_.clSetUserEventStatus(gate, CL_COMPLETE);
  });
  flush_fails = true;
  const auto copied = kind_->copy(host_piece(seen.data(), Bytes{4097}), piece, ready);
  flush_fails = false;
  EXPECT_TRUE(opened) << "the copy still waits for the work before it";
  EXPECT_FALSE(copied.ok());
  EXPECT_EQ(copied.status().text(), "clFlush: CL_OUT_OF_RESOURCES (-5)");
  EXPECT_EQ(seen, bytes);
  opener.join();
  wait(ready);
  api_.clReleaseEvent(gate);
  must(kind_->release(piece));
}

TEST_F(OpenclFault, a_buffer_of_the_users_own_is_not_freed) {
  const Piece ours = must(kind_->allocate(0, Bytes{64}));
  cl_context context = nullptr;
  api_.clGetMemObjectInfo(memory_of(ours), CL_MEM_CONTEXT, sizeof context, &context, nullptr);
  cl_int error = CL_SUCCESS;
  cl_mem users = api_.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &error);
  must(opencl_status(error, "clCreateBuffer"));
  Piece piece = ours;
  piece.object = reinterpret_cast<std::uint64_t>(users);
  const Data bytes = random_bytes(64);
  write(piece, bytes);
  const Status refused = kind_->release(piece);
  EXPECT_EQ(refused.code(), IST_ERR_ARGUMENT);
  EXPECT_NE(refused.text().find("not allocated here"), std::string::npos) << refused.text();
  EXPECT_EQ(read(piece), bytes);
  EXPECT_EQ(api_.clReleaseMemObject(users), CL_SUCCESS);
  must(kind_->release(ours));
}

// Many, because a driver hands some numbers out again at once and leaves the remains of others as they were.
TEST_F(OpenclFault, a_buffer_of_the_librarys_own_is_refused_after_its_release) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Piece> pieces;
    for (int i = 0; i < 16; ++i) pieces.push_back(must(kind_->allocate(0, Bytes{4096})));
    for (const Piece& piece : pieces) must(kind_->release(piece));
    Data back(64, 0xEE);
    for (const Piece& piece : pieces) {
      Piece part = piece.part(Offset{0}, Bytes{64});
      const Status refused = kind_->check(part);
      EXPECT_EQ(refused.code(), IST_ERR_HANDLE);
      EXPECT_NE(refused.text().find("ist_memory_free has released"), std::string::npos) << refused.text();
      EXPECT_EQ(kind_->copy(host_piece(back.data(), Bytes{64}), part, Ticket{}).status().code(), IST_ERR_HANDLE);
      EXPECT_FALSE(kind_->reaches(part, part));
      EXPECT_EQ(kind_->release(piece).code(), IST_ERR_ARGUMENT);
    }
    EXPECT_EQ(back, Data(64, 0xEE));
  }
}

// Whoever is given the number of a released buffer is not refused for it, be it the library or its user.
TEST_F(OpenclFault, a_number_that_is_handed_out_again_names_the_new_buffer) {
  const Piece kept = must(kind_->allocate(0, Bytes{64}));
  cl_context context = nullptr;
  api_.clGetMemObjectInfo(memory_of(kept), CL_MEM_CONTEXT, sizeof context, &context, nullptr);
  std::set<std::uint64_t> released;
  std::vector<Piece> ours(16);
  for (Piece& piece : ours) piece = must(kind_->allocate(0, Bytes{4096}));
  for (const Piece& piece : ours) {
    must(kind_->release(piece));
    released.insert(piece.object);
  }
  std::vector<Piece> users(16, kept);
  std::size_t again = 0;
  const auto use = [&](Piece& piece) {
    again += released.count(piece.object);
    const Data bytes = random_bytes(4096);
    piece.size = Bytes{4096};
    must(kind_->check(piece));
    write(piece, bytes);
    EXPECT_EQ(read(piece), bytes);
  };
  for (std::size_t i = 0; i < users.size(); ++i) {
    cl_int error = CL_SUCCESS;
    users[i].object =
        reinterpret_cast<std::uint64_t>(api_.clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, nullptr, &error));
    must(opencl_status(error, "clCreateBuffer"));
    use(users[i]);
    ours[i] = must(kind_->allocate(0, Bytes{4096}));
    use(ours[i]);
  }
  std::printf("%zu of 32 buffers were given the number of a released one\n", again);
  for (const Piece& piece : users) EXPECT_EQ(api_.clReleaseMemObject(memory_of(piece)), CL_SUCCESS);
  for (const Piece& piece : ours) must(kind_->release(piece));
  must(kind_->release(kept));
}

}  // namespace
}  // namespace ist::test
