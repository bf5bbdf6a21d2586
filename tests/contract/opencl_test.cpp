// What only OpenCL has: buffers of a user's own contexts, sub-buffers, queues of any sort, several devices and platforms.
#include <algorithm>
#include <chrono>

#include "base/dynamic_library.hpp"
#include "memory/opencl/opencl_kind.hpp"
#include "memory/transfer.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

const OpenclApi& api() { return *must(OpenclApi::get()); }

void ok(cl_int error) { must(opencl_status(error, "a call of the test")); }

template <class Handle, cl_int (CL_API_CALL* OpenclApi::*Release)(Handle)>
class Owner {
 public:
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { reset(); }
  Handle get() const { return handle_; }
  void reset() {
    if (handle_) (api().*Release)(std::exchange(handle_, nullptr));
  }

 private:
  Handle handle_;
};
using Context = Owner<cl_context, &OpenclApi::clReleaseContext>;
using Queue = Owner<cl_command_queue, &OpenclApi::clReleaseCommandQueue>;
using Buffer = Owner<cl_mem, &OpenclApi::clReleaseMemObject>;
using Event = Owner<cl_event, &OpenclApi::clReleaseEvent>;

// A program that uses OpenCL by itself, as users of the library do.
class Opencl : public testing::Test {
 protected:
  void SetUp() override {
    kind_ = kinds().find(KindId::opencl);
    if (!kind_) GTEST_SKIP() << "SKIPPED: opencl is not loaded here: " << must_be_missing();
    device_ = device_of(0);
  }
  static std::string must_be_missing() {
    for (const auto& each : kinds().missing())
      if (each.name == "opencl") return each.reason;
    return "and nobody says why";
  }
  // The device behind an ordinal of the kind: the one its own queue is of.
  cl_device_id device_of(int ordinal) const {
    const Memory memory{{KindId::opencl, ordinal}, 1};
    cl_device_id device = nullptr;
    ok(api().clGetCommandQueueInfo(queue_of(memory.piece()), CL_QUEUE_DEVICE, sizeof device, &device, nullptr));
    return device;
  }
  Context make_context() const { return make_context({device_}); }
  Context make_context(const std::vector<cl_device_id>& devices) const {
    cl_int error = CL_SUCCESS;
    Context made{
        api().clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &error)};
    ok(error);
    return made;
  }
  Queue make_queue(const Context& context, cl_command_queue_properties properties = 0) const {
    cl_int error = CL_SUCCESS;
    Queue made{api().clCreateCommandQueue(context.get(), device_, properties, &error)};
    ok(error);
    return made;
  }
  static Buffer make_buffer(const Context& context, std::size_t size, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_int error = CL_SUCCESS;
    Buffer made{api().clCreateBuffer(context.get(), flags, size, nullptr, &error)};
    ok(error);
    return made;
  }
  static Buffer make_part(const Buffer& buffer, std::size_t from, std::size_t size) {
    const cl_buffer_region region{from, size};
    cl_int error = CL_SUCCESS;
    Buffer made{api().clCreateSubBuffer(buffer.get(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error)};
    ok(error);
    return made;
  }
  static Piece resolve(const Buffer& buffer, std::size_t offset, std::uint64_t size, cl_command_queue queue = nullptr) {
    return must(kinds().resolve(ist_opencl(buffer.get(), offset, queue), Bytes{size}));
  }
  static void expect_error(const ist_buffer& buffer, std::uint64_t size, Code code, std::string_view words) {
    const auto result = kinds().resolve(buffer, Bytes{size});
    ASSERT_FALSE(result.ok()) << words;
    EXPECT_EQ(result.status().code(), code) << result.status().text();
    EXPECT_NE(result.status().text().find(words), std::string::npos) << result.status().text();
  }

  MemoryKind* kind_ = nullptr;
  cl_device_id device_ = nullptr;
};

TEST_F(Opencl, buffers_of_a_users_context_are_copied_with_and_without_a_queue) {
  const Context context = make_context();
  const Queue queue = make_queue(context);
  const Buffer buffer = make_buffer(context, 10000);
  for (cl_command_queue each : {queue.get(), cl_command_queue{nullptr}}) {
    const Piece piece = resolve(buffer, 17, 9000, each);
    EXPECT_EQ(piece.device, 0);
    const Data bytes = random_bytes(9000);
    write(piece, bytes);
    EXPECT_EQ(read(piece), bytes);
  }
}

TEST_F(Opencl, a_sub_buffer_counts_from_its_own_start_and_ends_at_its_own_end) {
  const Context context = make_context();
  const Buffer whole = make_buffer(context, 16384);
  const Data before = random_bytes(16384);
  write(resolve(whole, 0, 16384), before);
  const Data bytes = random_bytes(4000);
  {
    const Buffer part = make_part(whole, 8192, 4096);
    write(resolve(part, 96, 4000), bytes);
    expect_error(ist_opencl(part.get(), 97, nullptr), 4000, IST_ERR_ARGUMENT,
                 "asked 4000 bytes at offset 97 of an OpenCL buffer of 4096 bytes");
  }
  Data expected = before;
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 8192 + 96);
  EXPECT_EQ(read(resolve(whole, 0, 16384)), expected);
}

TEST_F(Opencl, what_lies_outside_the_buffer_is_refused_with_all_three_numbers) {
  const Context context = make_context();
  const Buffer buffer = make_buffer(context, 4096);
  EXPECT_EQ(resolve(buffer, 0, 4096).size.value, 4096U);
  EXPECT_EQ(resolve(buffer, 4095, 1).size.value, 1U);
  expect_error(ist_opencl(buffer.get(), 8, nullptr), 4096, IST_ERR_ARGUMENT,
               "asked 4096 bytes at offset 8 of an OpenCL buffer of 4096 bytes");
  expect_error(ist_opencl(buffer.get(), 4096, nullptr), 1, IST_ERR_ARGUMENT, "4096");
  expect_error(ist_opencl(buffer.get(), ~std::size_t{0}, nullptr), 2, IST_ERR_ARGUMENT, "offset");
  expect_error(ist_opencl(buffer.get(), 1, nullptr), ~std::uint64_t{0}, IST_ERR_ARGUMENT, "offset");
}

TEST_F(Opencl, a_queue_of_another_context_is_refused) {
  const Context context = make_context();
  const Context other = make_context();
  const Queue queue = make_queue(other);
  const Buffer buffer = make_buffer(context, 64);
  expect_error(ist_opencl(buffer.get(), 0, queue.get()), 64, IST_ERR_ARGUMENT, "another context");
}

TEST_F(Opencl, an_image_is_refused_by_what_it_is) {
  const Context context = make_context();
  auto create =
      reinterpret_cast<decltype(&::clCreateImage)>(must(DynamicLibrary::open("libOpenCL.so.1")).find("clCreateImage"));
  const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = description.image_height = 16;
  cl_int error = CL_SUCCESS;
  const Buffer image{create(context.get(), CL_MEM_READ_WRITE, &format, &description, nullptr, &error)};
  if (error != CL_SUCCESS) GTEST_SKIP() << "SKIPPED: this device has no images: " << opencl_error_name(error);
  expect_error(ist_opencl(image.get(), 0, nullptr), 64, IST_ERR_ARGUMENT, "buffer is needed");
}

TEST_F(Opencl, a_device_the_context_does_not_have_is_refused) {
  const Context context = make_context();
  const Buffer buffer = make_buffer(context, 64);
  ist_buffer named = ist_opencl(buffer.get(), 0, nullptr);
  named.device = 0;
  EXPECT_TRUE(kinds().resolve(named, Bytes{64}).ok());
  named.device = 77;
  expect_error(named, 64, IST_ERR_ARGUMENT, "77");
  const Queue queue = make_queue(context);
  named.queue = reinterpret_cast<std::uint64_t>(queue.get());
  expect_error(named, 64, IST_ERR_ARGUMENT, "77");
}

TEST_F(Opencl, a_buffer_the_host_must_not_touch_gives_an_error_that_says_so) {
  const Context context = make_context();
  const Buffer buffer = make_buffer(context, 64, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
  Data bytes(64);
  const auto result = kind_->copy(host_piece(bytes.data(), Bytes{64}), resolve(buffer, 0, 64), Ticket{});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().text().find("CL_MEM_HOST_NO_ACCESS"), std::string::npos) << result.status().text();
}

TEST_F(Opencl, overlapping_parts_of_one_buffer_are_an_error) {
  const Memory memory{{KindId::opencl, 0}, 1000};
  const auto result = kind_->copy(memory.part(0, 600), memory.part(400, 600), Ticket{});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), IST_ERR_ARGUMENT) << result.status().text();
  EXPECT_NE(result.status().text().find("overlap"), std::string::npos) << result.status().text();
}

TEST_F(Opencl, between_two_contexts_nothing_is_direct_and_transfers_go_through_staging) {
  const Context first = make_context();
  const Context second = make_context();
  constexpr std::uint64_t kSize = (3 << 20) + 1;
  const Buffer source = make_buffer(first, kSize);
  const Buffer target = make_buffer(second, kSize);
  const Piece from = resolve(source, 0, kSize);
  const Piece to = resolve(target, 0, kSize);
  EXPECT_EQ(kinds().copier(to, from), nullptr);
  EXPECT_FALSE(kind_->copy(to, from, Ticket{}).ok());
  const Data bytes = random_bytes(kSize);
  write(from, bytes);
  transfer(to, from);
  EXPECT_EQ(read(to), bytes);
}

TEST_F(Opencl, a_copy_can_be_ordered_behind_one_of_another_context) {
  const Context first = make_context();
  const Context second = make_context();
  constexpr std::uint64_t kSize = (1 << 20) + 1;
  const Buffer source = make_buffer(first, kSize);
  const Buffer target = make_buffer(second, kSize);
  for (int round = 0; round < 20; ++round) {
    const Data bytes = random_bytes(kSize);
    write(resolve(source, 0, kSize), bytes);
    Data middle(kSize, 0xEE);
    const Piece block = host_piece(middle.data(), Bytes{kSize});
    const Ticket in = must(kind_->copy(block, resolve(source, 0, kSize), Ticket{}));
    wait(must(kind_->copy(resolve(target, 0, kSize), block, in)));
    ASSERT_EQ(read(resolve(target, 0, kSize)), bytes) << "round " << round;
  }
}

// A user event holds the queue for as long as the test likes: nothing is left to speed.
TEST_F(Opencl, a_queue_held_by_a_user_event_is_not_ready_until_the_event_is_set) {
  const Context context = make_context();
  for (const cl_command_queue_properties properties :
       {cl_command_queue_properties{0}, cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const Queue queue = make_queue(context, properties);
    const Buffer source = make_buffer(context, 4096);
    const Buffer target = make_buffer(context, 4096);
    const Data fresh = random_bytes(4096);
    write(resolve(source, 0, 4096), fresh);
    write(resolve(target, 0, 4096), random_bytes(4096));
    cl_int error = CL_SUCCESS;
    const Event gate{api().clCreateUserEvent(context.get(), &error)};
    ok(error);
    cl_event waited = gate.get();
    ok(api().clEnqueueCopyBuffer(queue.get(), source.get(), target.get(), 0, 0, 4096, 1, &waited, nullptr));
    const Piece piece = resolve(target, 0, 4096, queue.get());
    Ticket ready = must(kinds().ready(piece));
    Data seen(4096, 0xEE);
    Ticket copied = must(kind_->copy(host_piece(seen.data(), Bytes{4096}), piece, ready));
    // A copy of something else is not held up meanwhile.
    EXPECT_EQ(read(resolve(source, 0, 4096)), fresh);
    for (int i = 0; i < 100; ++i) {
      ASSERT_FALSE(must(kind_->finished(ready)));
      ASSERT_FALSE(must(kind_->finished(copied)));
    }
    ok(api().clSetUserEventStatus(gate.get(), CL_COMPLETE));
    wait(ready);
    wait(copied);
    EXPECT_EQ(seen, fresh);
  }
}

TEST_F(Opencl, an_error_of_the_work_before_comes_out_of_the_copy_after_it) {
  const Context context = make_context();
  const Queue queue = make_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Buffer source = make_buffer(context, 64);
  const Buffer target = make_buffer(context, 64);
  cl_int error = CL_SUCCESS;
  const Event gate{api().clCreateUserEvent(context.get(), &error)};
  ok(error);
  cl_event waited = gate.get();
  ok(api().clEnqueueCopyBuffer(queue.get(), source.get(), target.get(), 0, 0, 64, 1, &waited, nullptr));
  const Piece piece = resolve(target, 0, 64, queue.get());
  Ticket ready = must(kinds().ready(piece));
  ok(api().clSetUserEventStatus(gate.get(), -14));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  Result<bool> result = false;
  while (result.ok() && !*result && std::chrono::steady_clock::now() < end) result = kind_->finished(ready);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), IST_ERR_DEVICE);
  EXPECT_NE(result.status().text().find("failed on the device"), std::string::npos) << result.status().text();
  EXPECT_TRUE(ready.empty());
}

TEST_F(Opencl, a_buffer_released_by_its_user_lives_until_its_copy_is_over) {
  const Context context = make_context();
  const Data bytes = random_bytes(1 << 20);
  for (int round = 0; round < 20; ++round) {
    Data back(bytes.size(), 0xEE);
    Ticket ticket;
    {
      const Buffer buffer = make_buffer(context, bytes.size());
      const Piece piece = resolve(buffer, 0, bytes.size());
      const Ticket in = must(kind_->copy(piece, host_piece(bytes.data(), piece.size), Ticket{}));
      ticket = must(kind_->copy(host_piece(back.data(), piece.size), piece, in));
    }
    wait(ticket);
    ASSERT_EQ(back, bytes);
  }
}

TEST_F(Opencl, contexts_of_users_come_and_go_without_being_mistaken_for_each_other) {
  for (int round = 0; round < 20; ++round) {
    const Context context = make_context();
    const Queue queue = make_queue(context);
    const Buffer buffer = make_buffer(context, 5000);
    const Piece piece = resolve(buffer, 0, 5000, queue.get());
    const Data bytes = random_bytes(5000);
    write(piece, bytes);
    wait(must(kinds().ready(piece)));
    ASSERT_EQ(read(piece), bytes);
  }
}

TEST_F(Opencl, every_device_takes_part_in_a_round_trip_through_all_of_them) {
  const std::size_t count = kind_->devices().size();
  if (count < 2) GTEST_SKIP() << "SKIPPED: one OpenCL device only; with PoCL, POCL_DEVICES=\"pthread pthread\" gives two";
  const Data bytes = random_bytes((1 << 20) + 5);
  std::vector<Memory> stations;
  for (std::size_t i = 0; i < count; ++i) stations.emplace_back(Place{KindId::opencl, static_cast<int>(i)}, bytes.size());
  write(stations.front().piece(), bytes);
  for (std::size_t i = 0; i < count; ++i) {
    transfer(stations[(i + 1) % count].piece(), stations[i].piece());
    EXPECT_EQ(read(stations[(i + 1) % count].piece()), bytes) << "from device " << i;
  }
}

TEST_F(Opencl, a_context_of_several_devices_copies_directly_within_itself) {
  if (kind_->devices().size() < 2) GTEST_SKIP() << "SKIPPED: one OpenCL device only";
  cl_platform_id platforms[2] = {};
  for (int i = 0; i < 2; ++i)
    ok(api().clGetDeviceInfo(device_of(i), CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platforms[i], nullptr));
  if (platforms[0] != platforms[1]) GTEST_SKIP() << "SKIPPED: the first two OpenCL devices are of different platforms";
  const Context context = make_context({device_of(0), device_of(1)});
  const Buffer source = make_buffer(context, 100001);
  const Buffer target = make_buffer(context, 100001);
  ist_buffer on_second = ist_opencl(target.get(), 0, nullptr);
  on_second.device = 1;
  const Piece to = must(kinds().resolve(on_second, Bytes{100001}));
  EXPECT_EQ(to.device, 1);
  const Piece from = resolve(source, 0, 100001);
  const Data bytes = random_bytes(100001);
  write(from, bytes);
  EXPECT_EQ(kinds().copier(to, from), kind_);
  wait(must(kind_->copy(to, from, Ticket{})));
  EXPECT_EQ(read(to), bytes);
}

TEST_F(Opencl, several_platforms_serve_one_program_at_once) {
  std::vector<int> firsts;
  std::vector<cl_platform_id> seen;
  for (const DeviceInfo& device : kind_->devices()) {
    cl_platform_id platform = nullptr;
    ok(api().clGetDeviceInfo(device_of(device.ordinal), CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr));
    if (std::find(seen.begin(), seen.end(), platform) != seen.end()) continue;
    seen.push_back(platform);
    firsts.push_back(device.ordinal);
  }
  if (firsts.size() < 2) GTEST_SKIP() << "SKIPPED: one OpenCL platform only: " << kind_->devices().front().detail;
  const Memory from{{KindId::opencl, firsts[0]}, (2 << 20) + 3};
  const Memory to{{KindId::opencl, firsts[1]}, (2 << 20) + 3};
  const Data bytes = random_bytes((2 << 20) + 3);
  write(from.piece(), bytes);
  transfer(to.piece(), from.piece());
  EXPECT_EQ(read(to.piece()), bytes);
}

TEST(OpenclApiTable, errors_have_their_names) {
  EXPECT_EQ(opencl_error_name(CL_INVALID_MEM_OBJECT), "CL_INVALID_MEM_OBJECT (-38)");
  EXPECT_EQ(opencl_error_name(-12345), "OpenCL error -12345");
  EXPECT_TRUE(opencl_status(CL_SUCCESS, "x").ok());
}

}  // namespace
}  // namespace ist::test
