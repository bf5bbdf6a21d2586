// The kernels of bench_one_sided_work.hpp on this rank's device, and copies in their stream.
//
// Who calls this : bench_one_sided_device and bench_one_sided_kernel, where CUDA was compiled in.
// Threads        : one; the device's context is current in it while the object lives.
// Ownership      : the stream and the module, which go with the object.
// Errors         : a Failure that names the driver's call.
#pragma once

#include <array>
#include <iterator>

#include "cli/bench_one_sided_work.hpp"
#include "cli/bench_stream_device.hpp"

namespace ist::cli {

enum class OneSidedKernel : std::uint8_t {
  empty,
  words,
  words_bare,
  put_by_thread,
  put_by_warp,
  put_by_block,
  flag_bare,
  packets_by_warp,
  packets_by_block,
  packets_bare,
  meet_by_warp,
  meet_by_block,
  meet_by_grid,
  meet_bare,
  put,
  get,
  put_bulk,
  get_bulk,
  store,
  store_bare,
  fetch_add,
  add,
  load_bare,
  small_by_thread,
  small_by_warp,
  small_by_block,
  small_bare
};
inline constexpr std::size_t kOneSidedKernels = std::size(one_sided::kKernelNames);
static_assert(kOneSidedKernels == static_cast<std::size_t>(OneSidedKernel::small_bare) + 1);
const char* name_of_kernel(OneSidedKernel kernel);

class OneSidedKernels {
 public:
  // Every kernel has run once, without work, when this is over: the code of none is loaded while another one waits.
  explicit OneSidedKernels(int device);
  OneSidedKernels(const OneSidedKernels&) = delete;
  OneSidedKernels& operator=(const OneSidedKernels&) = delete;
  ~OneSidedKernels();

  void launch(OneSidedKernel kernel, const one_sided::Work& work, unsigned blocks, unsigned threads) const;
  void copy(void* to, const void* from, std::uint64_t bytes) const;
  // By the driver's own calls in the stream, if it has them. The second one holds the stream until the word is at least that.
  bool has_words() const {
    return device_.api.cuStreamWriteValue64_v2 != nullptr && device_.api.cuStreamWaitValue64_v2 != nullptr;
  }
  void write(std::uint64_t* word, std::uint64_t value) const;
  void await(const std::uint64_t* word, std::uint64_t value) const;
  void wait() const { device_.wait(); }
  CUstream stream() const { return device_.stream; }
  const CUuuid& uuid() const { return device_.uuid; }
  unsigned multiprocessors() const;
  // What the blocks leave behind: kMostBlocks of them.
  one_sided::BlockEnd* ends() const { return ends_; }

 private:
  StreamDevice device_;
  int number_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, kOneSidedKernels> functions_{};
  one_sided::BlockEnd* ends_ = nullptr;
};

}  // namespace ist::cli
