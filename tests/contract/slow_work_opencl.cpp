// A kernel that loops, followed by a copy, in a queue of a user.
#include <map>
#include <mutex>

#include "memory/opencl/opencl_api.hpp"
#include "slow_work.hpp"

namespace ist::test {
namespace {

// The result is stored, so that no compiler may drop the loop; the recurrence has no short form it would find.
constexpr const char* kSource =
    "kernel void spin(global uint* cell, uint rounds) {\n"
    "  uint x = cell[0] | 1u;\n"
    "  for (uint i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }\n"
    "  cell[0] = x;\n"
    "}\n";
constexpr cl_uint kRounds = 20'000'000;  // a few tens of milliseconds on a processor, more on a GPU

class OpenclSlowWork final : public SlowWork {
 public:
  OpenclSlowWork() : api_(*must(OpenclApi::get())) {}

  Piece in_new_queue(const Piece& piece, bool out_of_order) override {
    cl_int error = CL_SUCCESS;
    Piece result = piece;
    result.queue = reinterpret_cast<std::uint64_t>(api_.clCreateCommandQueue(
        context_of(piece), device_of(piece), out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &error));
    must(opencl_status(error, "clCreateCommandQueue"));
    queues_.push_back(result.queue);
    return result;
  }

  // In an out-of-order queue only the event puts the copy behind the kernel.
  void copy_later(const Piece& to, const Piece& from, std::uint64_t queue_bits) override {
    const auto queue = reinterpret_cast<cl_command_queue>(queue_bits);
    const Program& program = program_for(context_of(to), device_of(to));
    const std::size_t one = 1;
    cl_event slow = nullptr;
    if (last_) api_.clReleaseEvent(last_);
    {
      const std::lock_guard lock(mutex_);
      must(opencl_status(api_.clSetKernelArg(program.kernel, 0, sizeof(cl_mem), &program.cell), "clSetKernelArg"));
      must(opencl_status(api_.clSetKernelArg(program.kernel, 1, sizeof kRounds, &kRounds), "clSetKernelArg"));
      must(opencl_status(api_.clEnqueueNDRangeKernel(queue, program.kernel, 1, nullptr, &one, &one, 0, nullptr, &slow),
                         "clEnqueueNDRangeKernel"));
    }
    must(opencl_status(api_.clEnqueueCopyBuffer(queue, memory_of(from), memory_of(to), from.offset.value, to.offset.value,
                                                to.size.value, 1, &slow, &last_),
                       "clEnqueueCopyBuffer"));
    api_.clReleaseEvent(slow);
    api_.clFlush(queue);
  }

  void finish(std::uint64_t queue) override {
    must(opencl_status(api_.clFinish(reinterpret_cast<cl_command_queue>(queue)), "clFinish"));
  }
  bool pending() override {
    cl_int status = CL_COMPLETE;
    must(opencl_status(api_.clGetEventInfo(last_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                       "event"));
    return status > CL_COMPLETE;
  }
  bool has_out_of_order() const override { return true; }

 private:
  struct Program {
    cl_kernel kernel = nullptr;
    cl_mem cell = nullptr;
  };

  cl_context context_of(const Piece& piece) const {
    cl_context context = nullptr;
    must(opencl_status(api_.clGetMemObjectInfo(memory_of(piece), CL_MEM_CONTEXT, sizeof context, &context, nullptr),
                       "context"));
    return context;
  }
  cl_device_id device_of(const Piece& piece) const {
    cl_device_id device = nullptr;
    must(opencl_status(api_.clGetCommandQueueInfo(queue_of(piece), CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
                       "device"));
    return device;
  }

  const Program& program_for(cl_context context, cl_device_id device) {
    const std::lock_guard lock(mutex_);
    Program& program = programs_[context];
    if (program.kernel) return program;
    cl_int error = CL_SUCCESS;
    const char* source = kSource;
    cl_program built = api_.clCreateProgramWithSource(context, 1, &source, nullptr, &error);
    must(opencl_status(error, "clCreateProgramWithSource"));
    must(opencl_status(api_.clBuildProgram(built, 1, &device, "", nullptr, nullptr), "clBuildProgram"));
    program.kernel = api_.clCreateKernel(built, "spin", &error);
    must(opencl_status(error, "clCreateKernel"));
    program.cell = api_.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &error);
    must(opencl_status(error, "clCreateBuffer"));
    return program;
  }

  const OpenclApi& api_;
  std::mutex mutex_;
  std::map<cl_context, Program> programs_;
  cl_event last_ = nullptr;
  std::vector<std::uint64_t> queues_;  // kept, so that a leak checker does not take them for lost
};

}  // namespace

std::unique_ptr<SlowWork> make_opencl_slow_work() { return std::make_unique<OpenclSlowWork>(); }

}  // namespace ist::test
