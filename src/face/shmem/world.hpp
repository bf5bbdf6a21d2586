// The one world of a process that OpenSHMEM's calls mean: its heaps, and the words by which its PEs tell each other of ends and arrivals.
//
// Who calls this : all of face/shmem.
// Threads        : open() and close() one at a time; the rest any.
// Ownership      : owns the ist_world with its heaps, and a thread that waits for another PE's shmem_global_exit.
// Errors         : by fail().
#pragma once

#include <isthmus/heap.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "face/shmem/globals.hpp"
#include "face/shmem/hot.hpp"
#include "face/shmem/slots.hpp"

namespace ist::shmem {

// Barriers, collectives and active sets each use counters of one slot, so that threads in different teams, or with different pSync arrays,
// do not mix theirs. The first slot of active sets and that of teams are for all that have none of their own.
constexpr int kWorldSlot = 0;
constexpr int kSharedSlot = 1;
constexpr int kFirstActiveSlot = 2;
constexpr int kActiveSlots = SlotBoard::kSets;
constexpr int kFirstTeamSlot = kFirstActiveSlot + kActiveSlots;
constexpr int kTeamSlots = SlotBoard::kTeams;
constexpr int kStreamSlot = kFirstTeamSlot + kTeamSlots;  // barriers in streams, which the driver's threads call
constexpr int kSlots = kStreamSlot + 1;

// Kinds of device memory that programs may ask for, each with a heap of its own once one has.
constexpr std::array kDeviceKinds{IST_KIND_CUDA, IST_KIND_OPENCL};
constexpr std::size_t kOnCuda = 0;  // its number there
// What is said of a kind that is none of them, nor the host's.
std::string no_kind(int kind);

// What a program may have of such a heap, from `begin` on in this PE's part, where addresses may be names.
struct DeviceHeap {
  ist_heap heap = nullptr;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

class World {
 public:
  // Of each PE's device, unless more is asked for, or the environment has asked for some.
  static constexpr std::uint64_t kUsualDeviceBytes = std::uint64_t{64} << 20U;

  void open(const char* call, int threads);
  // Collective: waits for all. Counts: the last of as many as there were open().
  void close(const char* call);
  // At the end of the process, with nobody waiting for anybody. Calls of threads that are inside one may go on.
  void leave();
  // Where another thread is in leave(), what the calling one finds missing is no error, since the process is ending: it does not return.
  void stay_behind() const;
  bool is_open() const { return opened_ > 0; }
  bool was_closed() const { return opened_ == 0 && closed_; }
  int threads() const { return threads_; }
  // How many there were in this process, with this one.
  int number() const { return number_; }

  ist_world handle() const { return world_; }
  ist_heap heap() const { return heap_; }
  // That of kDeviceKinds[number]; one without bytes: there is none.
  DeviceHeap device_heap(std::size_t number) const {
    const std::size_t bytes = device_bytes_[number].load(std::memory_order_acquire);
    if (bytes == 0) return {};
    DeviceHeap now = devices_[number];
    now.bytes = bytes;
    return now;
  }
  const SymmetricGlobals* globals() const { return globals_.get(); }
  // Makes it where there is none. Collective. False: remember() has why.
  bool open_device_heap(const char* call, std::size_t number, std::size_t bytes, std::uint64_t least = kUsualDeviceBytes);
  // All PEs, and none otherwise, meet in streams by kernels on the heap of that kind.
  bool meets_in_streams(std::size_t number) const { return meets_[number]; }
  bool grow_heap(const char* call, std::size_t more);
  bool grow_device_heap(std::size_t number, std::size_t more);

  // Everybody ends, with that status, wherever they are.
  [[noreturn]] void end_job(int status);

  // Whoever finds somebody gone looks whether this is the end of all, which another PE has called for: then it does not return.
  void end_with_the_others() const;

  // Once the world is closed there is nobody.
  bool died() const { return control_ != nullptr && *view_.abort_word != 0; }
  bool left(int pe) const;
  // It has left, or is in shmem_finalize: it writes nothing any more, or has been where all met and comes to no other call of theirs.
  bool writes_no_more(int pe) const;
  bool arrives_no_more(int pe) const;
  // How many times PE `from` has arrived at this one, or this one at PE `at`, in a slot.
  std::atomic_ref<std::uint64_t> arrivals(int at, int from, int slot) const;
  // A word of PE `at`, for each slot, that its owner writes and the others read.
  std::uint64_t& posted(int at, int slot) const;
  SlotBoard& slots() const;

 private:
  struct Control;
  static constexpr std::uint32_t kWritesNoMore = 1;
  static constexpr std::uint32_t kMetTheOthers = 2;
  void make_heap(const char* call);
  void read_view(const char* call);
  static void set_size(std::uint64_t bytes);
  void share_globals(const char* call);
  void open_heaps_asked_for(const char* call);
  bool tell_all(const char* call, std::uint64_t own, const std::function<void(int pe, std::uint64_t word)>& see) const;
  bool all_say(const char* call, bool own) const;
  static void forget_spans();
  // One that was forked is no PE: what it ends is itself alone.
  bool is_child() const;
  void watch();
  Control& control(int pe) const;
  void stop_watching();

  int opened_ = 0;
  bool closed_ = false;  // at least once
  int process_ = 0;
  int number_ = 0;
  std::atomic<int> threads_{SHMEM_THREAD_SINGLE};  // a later shmem_init_thread may ask for more
  ist_world world_ = nullptr;
  ist_comm comm_ = nullptr;
  ist_heap heap_ = nullptr;
  ist_team_view view_{};
  std::array<DeviceHeap, kDeviceKinds.size()> devices_;  // but for their sizes, as they were made
  std::array<std::atomic<std::size_t>, kDeviceKinds.size()>
      device_bytes_{};                             // they grow while other threads are inside calls
  std::array<bool, kDeviceKinds.size()> meets_{};  // set with the heap, before its size
  std::unique_ptr<SymmetricGlobals> globals_;
  std::byte* control_ = nullptr;  // this PE's own
  std::uint64_t most_ = 0;        // bytes of the heap
  std::array<std::uint64_t, kDeviceKinds.size()> device_asked_{};
  std::thread watcher_;
  std::atomic<const void*> leaver_{nullptr};  // the thread that is in leave(), or was
};

World& world();

// Different in each thread, for as long as it runs.
const void* this_thread();

}  // namespace ist::shmem
