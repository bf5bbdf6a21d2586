// The resident workers of this process's devices: started by the first order, ended by themselves, started again where orders wait.
//
// Who calls this : CudaKind owns one; face/ and cli/ through Workers.
// Threads        : any; one lock per worker.
// Ownership      : owns boards, streams and modules; the contexts outlive it.
// Errors         : a worker that cannot be started is off from then on, says why once, and its copies go by the driver, those that
//                  it had orders for, too. Of one that died the orders under way fail with the driver's words.
//
// A worker runs for at most `most`, and for `idle` without an order, whatever this process does. So whoever waits for all of the device
// (cuCtxSynchronize, cuMemFree, the first launch of a kernel that is loaded lazily) waits for it no longer than that.
// Orders go only to a worker that is known to be on the device and to stay there for as long as an order takes. Else the driver copies,
// and behind the third copy in a while a worker is launched for the next ones: so no message waits until a user's kernel leaves room for a worker.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_kernels.hpp"
#include "memory/cuda/worker_orders.hpp"
#include "memory/memory_kind.hpp"
#include "memory/workers.hpp"

namespace ist {

// Of cuda_worker_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_cuda_worker_kernels[];

class CudaWorkers : public Workers {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    std::chrono::nanoseconds idle = std::chrono::microseconds{100};
    std::chrono::nanoseconds most = std::chrono::microseconds{1000};
    std::chrono::nanoseconds wait = std::chrono::microseconds{50};  // for what is on its way into a mailbox
  };

  CudaWorkers(const CudaApi& api, CudaContexts& contexts, const CudaKernels& kernels);
  ~CudaWorkers() override;
  CudaWorkers(const CudaWorkers&) = delete;
  CudaWorkers& operator=(const CudaWorkers&) = delete;

  // What the driver reads when it starts. Does nothing where somebody has started it already.
  static void before_start(const CudaApi& api);

  Status allow(int device, const Status& known) override;
  Status against(int device) override;
  Bytes limit(int device) const override;

  bool copies(const Piece& piece) const override { return takes(piece) && runs(piece.device) && reaches(piece).ok(); }
  // Is there one that would take an order now?
  bool runs(int device) const;
  // Is that piece of a device small enough, and on a device that has a worker?
  bool takes(const Piece& piece) const;
  // Gives the order for a copy between host memory and such a piece, in the context of its memory. None: the driver is to copy it.
  std::optional<std::uint64_t> copy(const Piece& to, const Piece& from);
  // Would it take such a piece, if it ran?
  bool fits(const Piece& piece) const { return takes(piece) && reaches(piece).ok(); }
  // Gives the order to store such a piece into a place of another device's mailbox, at that address here, or what comes into one of its own
  // into such a piece (worker_protocol.hpp). None: it is asleep, has enough to do, or is not to touch the piece.
  struct Mail {
    std::uint64_t place;
    std::uint32_t number;
    bool cleans;
  };
  std::optional<std::uint64_t> post(const Piece& from, const Mail& mail);
  std::optional<std::uint64_t> take(const Piece& to, const Mail& mail);
  // As finished(), of an order to take: none while it is not over, then whether it was there.
  Result<std::optional<bool>> taken(std::uint64_t ticket);
  // That which was allowed one; -1: none.
  int allowed_device() const { return allowed_.load(std::memory_order_relaxed); }
  // The driver has begun to copy so much in that device's context: where a worker could have, and for the third time in Times::most,
  // there is to be one for the next. One message may be two such copies.
  void wake(const CudaContext& context, Bytes size);
  // Loads its kernel, if it is to have one: before kernels wait that the loading would wait for.
  void prepare(int device);

  // Numbers of tickets that are orders, and of no event.
  static bool owns(std::uint64_t ticket) { return (ticket & kOwn) != 0; }
  Result<bool> finished(std::uint64_t ticket);
  // Until it has.
  Status wait(std::uint64_t ticket);
  void drop(std::uint64_t ticket);
  // For tests: launches so far; other times, for launches to come.
  std::uint64_t launches(int device);
  void set_times(const Times& times) { times_ = times; }

 private:
  static constexpr std::uint64_t kOwn = 0x80000000U;
  struct Worker {
    std::mutex mutex;
    std::atomic<bool> allowed{false};
    bool prepared = false;
    bool counted = false;  // among what workers take of the device (worker_blocks.hpp)
    CudaContext* context = nullptr;
    CUstream stream = nullptr;
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    worker::Board* board = nullptr;
    std::unique_ptr<WorkerOrders> orders;
    std::uint64_t launches = 0;
    bool running = false;  // the last launch has not said that it left
    Clock::time_point launched{};
    Clock::time_point given{};                     // the last order, or the launch
    std::array<Clock::time_point, 2> by_driver{};  // the last copies that could have been orders, the latest first
    std::uint64_t begin = 0;                       // the next launch's first order
    unsigned looks = 0;                            // in vain, since the driver was asked
    Status broken;
  };
  using Give = std::optional<WorkerOrders::Name> (*)(WorkerOrders& orders, std::uint64_t address, std::uint32_t bytes,
                                                     const Mail& mail);
  std::optional<std::uint64_t> give(const Piece& own, const Mail& mail, Give order);
  Worker* find(std::uint64_t ticket) const;
  Status reaches(const Piece& piece) const;
  // With the worker's lock held. May it have an order about that piece of its device?
  bool may_have(const Worker& worker, const Piece& own) const;
  bool stays(const Worker& worker) const;
  bool has_left(Worker& worker) const;
  Status start(Worker& worker, int device) const;
  Status load(Worker& worker, int device) const;
  Status launch(Worker& worker, worker::Board* board) const;
  bool begin(Worker& worker) const;
  void close(Worker& worker) const;
  Status count(Worker& worker) const;
  bool keeps_running(Worker& worker) const;
  void look_at_stream(Worker& worker) const;
  void fail(Worker& worker, const Status& why) const;
  void copy_by_driver(Worker& worker) const;
  Result<bool> look(Worker& worker, WorkerOrders::Name name);

  const CudaApi& api_;
  CudaContexts& contexts_;
  const CudaKernels& kernels_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by device
  std::atomic<int> allowed_{-1};                  // one that is allowed
  Times times_;
};

}  // namespace ist
