// Where reductions of OpenCL memory are computed: where the device is the processor by the host, else, or where a profile says so, on the device
// above a size, unless ranks share it. Needs OpenCL's own table of functions, in which kernels are counted.
#include <isthmus/collective.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queues_ranks.hpp"
// After gtest.
#include "held_kernels.hpp"

using namespace rank_test;

namespace {

// In a communicator, of so many bytes on each rank: how many kernels ran here.
int kernels_of_scan(queues::HeldKernels& context, ist_world world, ist_comm comm, std::size_t bytes) {
  const std::size_t count = bytes / 8;
  std::vector<std::int64_t> numbers(count), sums(count, -1), expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<std::int64_t>(i) * (rank() + 1);
    expected[i] = static_cast<std::int64_t>(i) * (rank() + 1) * (rank() + 2) / 2;
  }
  const ist_buffer send = context.buffer(bytes), recv = context.buffer(bytes);
  ok(ist_memory_copy(world, send, ist_host(numbers.data()), static_cast<std::int64_t>(bytes)));
  const int before = queues::HeldKernels::begun();
  // The whole vector is combined at once: by one that each rank hands on to the next. The first rank combines nothing.
  ok(ist_scan(send, recv, static_cast<std::int64_t>(count), IST_INT64, IST_SUM, comm));
  const int begun = queues::HeldKernels::begun() - before;
  ok(ist_memory_copy(world, ist_host(sums.data()), recv, static_cast<std::int64_t>(bytes)));
  EXPECT_EQ(expected, sums) << bytes << " bytes";
  ok(ist_barrier(comm));
  return begun;
}

cl_device_id device_of(const ist_buffer& buffer) {
  cl_device_id device = nullptr;
  ok(queues::api().clGetCommandQueueInfo(reinterpret_cast<cl_command_queue>(buffer.queue), CL_QUEUE_DEVICE, sizeof device,
                                         &device, nullptr));
  return device;
}

bool on_processor(const ist_buffer& buffer) {
  cl_device_type type = 0;
  ok(queues::api().clGetDeviceInfo(device_of(buffer), CL_DEVICE_TYPE, sizeof type, &type, nullptr));
  return (type & CL_DEVICE_TYPE_CPU) != 0;
}

// A buffer on the device that is the processor, whatever other devices there are; none: every rank finds none.
std::optional<ist_buffer> beside_the_processor() {
  for (int device = 0; device < opencl_devices(); ++device) {
    ist_buffer made{};
    ok(ist_memory_alloc(world(), IST_KIND_OPENCL, device, 64, &made));
    if (on_processor(made)) return made;
    ok(ist_memory_free(world(), made));
  }
  return std::nullopt;
}

// While one lives, a device says that it is a GPU to whom asks the loader. Its driver knows better. One thread.
class Pretender {
 public:
  explicit Pretender(cl_device_id device) : device_(device) { queues::Tables::give(device).clGetDeviceInfo = info; }
  Pretender(Pretender&& other) noexcept : device_(std::exchange(other.device_, nullptr)) {}
  ~Pretender() {
    if (device_ != nullptr) queues::Tables::place_of(device_) = queues::Tables::of(device_).driver;
  }
  Pretender(const Pretender&) = delete;
  Pretender& operator=(const Pretender&) = delete;

 private:
  static cl_int CL_API_CALL info(cl_device_id device, cl_device_info what, std::size_t room, void* value,
                                 std::size_t* length) {
    const cl_int error = queues::Tables::of(device).driver->clGetDeviceInfo(device, what, room, value, length);
    constexpr cl_device_type kGpu = CL_DEVICE_TYPE_GPU;
    if (error == CL_SUCCESS && what == CL_DEVICE_TYPE && value != nullptr) std::memcpy(value, &kGpu, sizeof kGpu);
    return error;
  }

  cl_device_id device_;
};

// All of them, as where there are GPUs alone.
std::vector<Pretender> pretenders() {
  std::vector<Pretender> all;
  for (int device = 0; device < opencl_devices(); ++device) {
    ist_buffer beside{};
    ok(ist_memory_alloc(world(), IST_KIND_OPENCL, device, 64, &beside));
    if (on_processor(beside)) all.emplace_back(device_of(beside));
    ok(ist_memory_free(world(), beside));
  }
  return all;
}

TEST(QueueArithmetic, IsOfGpusAbove128KiBUnlessRanksShareThem) {
  NEEDS_QUEUES();
  const std::vector<Pretender> gpus = pretenders();
  ist_world other = IST_WORLD_NULL;
  ist_comm all = IST_COMM_NULL;
  ok(ist_world_create(&other));
  ok(ist_world_comm(other, &all));
  queues::HeldKernels context{anchor()};
  for (const std::size_t bytes : {4096U, 131072U, 131080U, 4U << 20U}) {
    const int kernels = kernels_of_scan(context, other, all, bytes);
    EXPECT_EQ(rank() > 0 && bytes > 131072 && size() <= opencl_devices(), kernels > 0)
        << bytes << " bytes, " << kernels << " kernels";
  }
  ok(ist_world_destroy(&other));
}

TEST(QueueArithmetic, IsTheHostsWhereTheDeviceIsTheProcessorUnlessItsNumbersSayMore) {
  NEEDS_QUEUES();
  const std::optional<ist_buffer> beside = beside_the_processor();
  std::int32_t all_have_one = beside.has_value() ? 1 : 0;
  ok(ist_allreduce(IST_IN_PLACE, ist_host(&all_have_one), 1, IST_INT32, IST_MIN, comm()));
  if (all_have_one == 0) GTEST_SKIP() << "not covered here: an OpenCL device that is the processor";
  queues::HeldKernels context{*beside};
  for (const std::size_t bytes : {4096U, 131072U, 131080U, 4U << 20U})
    EXPECT_EQ(0, kernels_of_scan(context, world(), comm(), bytes)) << bytes << " bytes";
  // Up to 128 KiB, by a profile.
  ist_world other = IST_WORLD_NULL;
  ist_comm all = IST_COMM_NULL;
  ok(ist_world_create_configured("profile=" PROFILES "/processor_computes.json", &other));
  ok(ist_world_comm(other, &all));
  for (const std::size_t bytes : {4096U, 131072U, 131080U, 4U << 20U}) {
    const int kernels = kernels_of_scan(context, other, all, bytes);
    EXPECT_EQ(rank() > 0 && bytes > 131072, kernels > 0) << bytes << " bytes, " << kernels << " kernels";
  }
  ok(ist_world_destroy(&other));
  ok(ist_memory_free(world(), *beside));
}

}  // namespace
