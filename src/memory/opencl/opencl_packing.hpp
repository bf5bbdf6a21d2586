// The kernels that pack, as programs of a context, and lists of runs in its buffers: made when they are first used there.
//
// Who calls this : opencl_pack_bytes.cpp.
// Threads        : any; one lock, held while a program is built, a list is written, and a kernel is given its arguments.
// Ownership      : owns programs, kernels and lists. A list goes after its form did, when the next one is made: what is enqueued keeps it.
// Errors         : returned, naming the call; of a failed build the compiler's first words.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "memory/opencl/opencl_api.hpp"
#include "memory/packing.hpp"

namespace ist {

class OpenclPacks {
 public:
  explicit OpenclPacks(const OpenclApi& api) : api_(api) {}
  ~OpenclPacks();
  OpenclPacks(const OpenclPacks&) = delete;
  OpenclPacks& operator=(const OpenclPacks&) = delete;

  // Starts it in the queue, which is one of that context and device, behind `after`, if that is not null.
  struct Where {
    cl_context context = nullptr;
    cl_device_id device = nullptr;
    cl_command_queue queue = nullptr;
  };
  Status launch(const Where& where, const PackWork& work, cl_event after, cl_event* done);

 private:
  struct List {
    std::weak_ptr<const Form> form;
    cl_context context;
    cl_mem memory;
    std::uint64_t runs;
    std::int64_t each;   // bytes of every run, if all are as long
    std::int64_t width;  // pack_width() of the form alone
  };
  std::uint64_t numbers_of(const PackWork& work) const;
  // All under the lock.
  Status set_arguments(cl_kernel kernel, const PackWork& work, std::int64_t width, const List& list) const;
  Result<cl_kernel> find(const Where& where, const PackWork& work, std::int64_t width);
  Result<cl_program> build(const Where& where, std::int64_t width) const;
  Result<List> list_of(const Where& where, const SharedForm& form);

  const OpenclApi& api_;
  std::mutex mutex_;
  std::map<std::tuple<cl_context, cl_device_id, std::int64_t>, cl_program> programs_;
  std::map<std::tuple<cl_context, cl_device_id, std::int64_t, int>, cl_kernel> kernels_;
  std::vector<List> lists_;
};

}  // namespace ist
