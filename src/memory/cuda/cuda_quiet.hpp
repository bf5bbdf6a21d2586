// When the driver may be asked to take memory back.
//
// cuMemFree, cuMemFreeHost, cuMemHostUnregister, cuIpcCloseMemHandle and cuModuleLoadData wait until all that was put on the device is over,
// and while they wait no thread of the process gets anything onto it: no launch, no copy, no event (docs/measured, driver waits). Where a
// stream waits for another rank, which waits for a message of this one, neither would go on. So what the library itself lets go of
// stays until nothing of the library's that waits for other ranks is in any stream.
//
// Who calls this : CudaKind owns one; cuda_channels.cpp, cuda_meetings.cpp and cuda_guests.cpp, which put such work into streams;
//                  cuda_borrowing.cpp, cuda_pins.cpp and scratch memory, which let go of things.
// Threads        : any; a thread of its own lets go of what had to stay, from the first such thing on.
// Ownership      : sources outlive their watch; what was to be let go of is, at the latest by finish().
// Errors         : none; a thread that cannot be started is logged, and things stay until finish().
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <thread>
#include <vector>

namespace ist {

class CudaQuiet {
 public:
  // Who puts work that waits for other ranks into streams, and can say whether all of it is over.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool over() = 0;
  };
  using Putting = std::shared_lock<std::shared_mutex>;

  CudaQuiet() = default;
  ~CudaQuiet() { finish(); }
  CudaQuiet(const CudaQuiet&) = delete;
  CudaQuiet& operator=(const CudaQuiet&) = delete;

  void watch(Source& source);
  void forget(Source& source);
  // Held while such work is put into a stream, so that nothing is let go of at that moment.
  [[nodiscard]] Putting putting() {
    Putting held(putting_);
    put_.fetch_add(1, std::memory_order_relaxed);
    return held;
  }
  // It becomes part of a graph, which nobody tells when it is launched: nothing is let go of any more until finish().
  void captured() { captured_.store(true); }
  // Kernels of the program itself may wait for other ranks. They are not watched: what need not be let go of at all, as what nobody has asked for, stays.
  void let_kernels_wait() { kernels_wait_.store(true); }
  bool kernels_may_wait() const { return kernels_wait_.load(); }
  // Another library sets itself up while somebody holds this: that waits for devices, too, as long as it likes. Null: streams of this process
  // may wait for other ranks, now or at any time.
  std::shared_ptr<void> begin_setup();
  // From now on they may; first of all once settled(): nobody sets himself up any more.
  void use_streams();
  bool streams_used();
  bool settled();
  // Is all over that was put into streams as it is? Another thread may put in more at once.
  bool over();
  // Calls it if it is quiet; false: it is not, and nothing was done.
  bool now(const std::function<void()>& release) { return let_go({&release, 1}); }
  // The same at once or soon, in whatever thread: the caller holds no lock that it could want.
  void later(std::function<void()> release);
  // Nothing is put in any more: what stayed is let go of now.
  void finish();

 private:
  void work();
  bool let_go(std::span<const std::function<void()>> releases);

  std::shared_mutex putting_;
  std::atomic<std::uint64_t> put_{0};
  std::atomic<bool> captured_{false};
  std::atomic<bool> kernels_wait_{false};
  std::mutex sources_mutex_;
  std::vector<Source*> sources_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<std::function<void()>> waiting_;
  bool ends_ = false;
  int setups_ = 0;
  bool streams_used_ = false;
  std::thread thread_;
};

}  // namespace ist
