// A driver that refuses a call after it has taken the copy, or cannot compile, or lacks doubles; buffers that are not the
// kind's to free, and buffers already freed.
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

std::atomic<bool> build_fails{false};
cl_int CL_API_CALL build_or_fail(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                                 void(CL_CALLBACK* done)(cl_program, void*), void* data) {
  // What no compiler takes, so that there is a log.
  return (*OpenclApi::get())
      ->clBuildProgram(program, count, devices, build_fails ? "-DINTEGER -DVALUE=no_type" : options, done, data);
}

std::atomic<bool> no_double{false};
std::atomic<bool> no_small_floats{false};
cl_int CL_API_CALL describe(cl_device_id device, cl_device_info what, std::size_t size, void* answer, std::size_t* length) {
  const cl_int error = (*OpenclApi::get())->clGetDeviceInfo(device, what, size, answer, length);
  auto* numbers = static_cast<cl_device_fp_config*>(answer);
  if (what == CL_DEVICE_DOUBLE_FP_CONFIG && answer && no_double) *numbers = 0;
  if (what == CL_DEVICE_SINGLE_FP_CONFIG && answer && no_small_floats) *numbers &= ~cl_device_fp_config{CL_FP_DENORM};
  return error;
}

std::atomic<int> rows_refused{0};
std::atomic<cl_int> rows_error{CL_INVALID_OPERATION};
cl_int CL_API_CALL read_rows_or_fail(cl_command_queue queue, cl_mem memory, cl_bool blocks, const std::size_t* at,
                                     const std::size_t* to, const std::size_t* region, std::size_t row, std::size_t plane,
                                     std::size_t to_row, std::size_t to_plane, void* host, cl_uint waits,
                                     const cl_event* list, cl_event* done) {
  if (rows_refused > 0) return ++rows_refused, rows_error.load();
  return (*OpenclApi::get())
      ->clEnqueueReadBufferRect(queue, memory, blocks, at, to, region, row, plane, to_row, to_plane, host, waits, list,
                                done);
}
cl_int CL_API_CALL write_rows_or_fail(cl_command_queue queue, cl_mem memory, cl_bool blocks, const std::size_t* at,
                                      const std::size_t* from, const std::size_t* region, std::size_t row, std::size_t plane,
                                      std::size_t from_row, std::size_t from_plane, const void* host, cl_uint waits,
                                      const cl_event* list, cl_event* done) {
  if (rows_refused > 0) return ++rows_refused, rows_error.load();
  return (*OpenclApi::get())
      ->clEnqueueWriteBufferRect(queue, memory, blocks, at, from, region, row, plane, from_row, from_plane, host, waits,
                                 list, done);
}

class OpenclFault : public testing::Test {
 protected:
  void SetUp() override {
    if (!kinds().find(KindId::opencl)) GTEST_SKIP() << "SKIPPED: opencl is not loaded here";
    api_ = *must(OpenclApi::get());
    api_.clFlush = flush_or_fail;
    api_.clBuildProgram = build_or_fail;
    api_.clGetDeviceInfo = describe;
    api_.clEnqueueReadBufferRect = read_rows_or_fail;
    api_.clEnqueueWriteBufferRect = write_rows_or_fail;
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

TEST_F(OpenclFault, a_kernel_that_does_not_compile_is_an_error_with_the_compilers_words_and_is_tried_again) {
  const Piece piece = must(kind_->allocate(0, Bytes{64}));
  const Data bytes = random_bytes(64);
  write(piece, bytes);
  const Piece into = piece.part(Offset{0}, Bytes{32});
  const Piece with = piece.part(Offset{32}, Bytes{32});
  build_fails = true;
  const auto failed = kind_->arithmetic()->combine(Reduction::sum, IST_INT, into, with, {});
  build_fails = false;
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), IST_ERR_DEVICE);
  EXPECT_NE(failed.status().text().find("clBuildProgram"), std::string::npos) << failed.status().text();
  EXPECT_EQ(read(piece), bytes);
  wait(must(kind_->arithmetic()->combine(Reduction::sum, IST_INT, into, with, {})));
  Data expected = bytes;
  combine_on_host(Reduction::sum, IST_INT, expected.data(), &expected[32], 8);
  EXPECT_EQ(read(piece), expected) << "two parts of one buffer";
  must(kind_->release(piece));
}

// Of the device's rows by a block and a kernel, which is not tried by rectangles again; rows of the host's are its processor's.
TEST_F(OpenclFault, rows_that_the_driver_refuses_go_by_a_block) {
  Form form;
  form.offset = 3;
  form.block = 50;
  form.dimensions = 2;
  form.dimension[0] = {11, 64};
  form.dimension[1] = {9, 1280};
  form.size = 4950;
  const auto there = [](std::size_t i) { return 3 + i / 550 * 1280 + i / 50 % 11 * 64 + i % 50; };
  constexpr std::size_t kFrom = 49, kTo = 4950;
  const Piece device = must(kind_->allocate(0, Bytes{12000}));
  for (const bool unpacks : {false, true}) {
    const Data rows = random_bytes(12000), in_a_row = random_bytes(kTo - kFrom);
    write(device, rows);
    Data host = in_a_row;
    const PackWork work{std::make_shared<const Form>(form),
                        device,
                        0,
                        host_piece(host.data(), Bytes{host.size()}),
                        kFrom,
                        kTo,
                        unpacks,
                        true};
    ASSERT_EQ(kind_->refuses_rows(work) == nullptr, !unpacks);
    rows_refused = 1;
    if (!unpacks) {
      rows_error = CL_OUT_OF_RESOURCES;
      const auto failed = kind_->pack_bytes(work, Ticket{});
      EXPECT_FALSE(failed.ok());
      EXPECT_NE(failed.status().text().find("CL_OUT_OF_RESOURCES"), std::string::npos) << failed.status().text();
      EXPECT_EQ(kind_->refuses_rows(work), nullptr) << "that was no refusal";
      rows_error = CL_INVALID_OPERATION;
      rows_refused = 1;
    }
    wait(must(kind_->pack_bytes(work, Ticket{})));
    EXPECT_EQ(rows_refused, unpacks ? 1 : 2) << "refused once, and not asked again";
    rows_refused = 0;
    Data laid = rows, packed = in_a_row;
    for (std::size_t i = kFrom; i < kTo; ++i)
      unpacks ? laid[there(i)] = in_a_row[i - kFrom] : packed[i - kFrom] = rows[there(i)];
    EXPECT_EQ(read(device), laid);
    EXPECT_EQ(host, packed);
    ASSERT_NE(kind_->refuses_rows(work), nullptr);
    EXPECT_NE(std::string{kind_->refuses_rows(work)}.find("the driver refused copies of rows"), std::string::npos);
  }
  must(kind_->release(device));
}

TEST_F(OpenclFault, a_device_without_doubles_or_small_floats_says_so_before_anything_is_combined) {
  Arithmetic& arithmetic = *kind_->arithmetic();
  no_double = no_small_floats = true;
  for (const ist_type type : {IST_DOUBLE, IST_COMPLEX_DOUBLE}) {
    const Status status = arithmetic.can(Reduction::sum, type, 0);
    EXPECT_EQ(status.code(), IST_ERR_KIND);
    EXPECT_NE(status.text().find("double precision"), std::string::npos) << status.text();
  }
  EXPECT_FALSE(arithmetic.can(Reduction::minloc, IST_DOUBLE_INT, 0).ok());
  EXPECT_NE(arithmetic.can(Reduction::sum, IST_FLOAT, 0).text().find("zero"), std::string::npos);
  EXPECT_TRUE(arithmetic.can(Reduction::sum, IST_HALF, 0).ok());
  EXPECT_TRUE(arithmetic.can(Reduction::bitwise_or, IST_INT64, 0).ok());
  no_double = no_small_floats = false;
}

TEST_F(OpenclFault, buffers_of_two_contexts_are_not_combined) {
  const Piece mine = must(kind_->allocate(0, Bytes{64}));
  const Memory other{{KindId::opencl, 0}, 64};
  const auto refused = kind_->arithmetic()->combine(Reduction::sum, IST_INT, mine, other.piece(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), IST_ERR_KIND);
  EXPECT_NE(refused.status().text().find("two contexts"), std::string::npos) << refused.status().text();
  must(kind_->release(mine));
}

}  // namespace
}  // namespace ist::test
