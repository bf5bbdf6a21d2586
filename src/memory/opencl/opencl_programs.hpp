// The kernels of reductions as programs of a context, built when they are first used there.
//
// Who calls this : opencl_arithmetic.cpp.
// Threads        : any; one lock, held while a program is built and while a kernel is given its arguments.
// Ownership      : owns programs and kernels; contexts are kept by opencl_contexts, which must outlive this.
// Errors         : returned, naming the call; of a failed build the compiler's first words.
#pragma once

#include <map>
#include <mutex>
#include <tuple>

#include "memory/opencl/opencl_api.hpp"
#include "memory/reduction.hpp"

namespace ist {

// So many items of a kernel that has its arguments; each takes one, and then the one that is as many as all further on.
struct Items {
  cl_command_queue queue = nullptr;
  cl_kernel kernel = nullptr;
  cl_device_id device = nullptr;
  std::uint64_t count = 0;
};
Status enqueue_items(const OpenclApi& api, const Items& what, cl_event after, cl_event* done, const std::string& purpose);

class OpenclPrograms {
 public:
  // A kernel and what it is to work on; offsets are in the pieces.
  struct Work {
    cl_kernel kernel = nullptr;
    cl_device_id device = nullptr;
    const Piece& into;
    const Piece& with;
    std::uint64_t count = 0;
  };

  explicit OpenclPrograms(const OpenclApi& api) : api_(api) {}
  ~OpenclPrograms();
  OpenclPrograms(const OpenclPrograms&) = delete;
  OpenclPrograms& operator=(const OpenclPrograms&) = delete;

  Result<cl_kernel> find(cl_context context, cl_device_id device, Reduction reduction, Element element);
  // Starts it in the queue behind `after`, if that is not null.
  Status launch(cl_command_queue queue, const Work& work, cl_event after, cl_event* done);

 private:
  Result<cl_program> build(cl_context context, cl_device_id device, Element element) const;

  const OpenclApi& api_;
  std::mutex mutex_;
  std::map<std::tuple<cl_context, cl_device_id, Element>, cl_program> programs_;
  std::map<std::tuple<cl_context, cl_device_id, Element, Reduction>, cl_kernel> kernels_;
};

}  // namespace ist
