// Channels between CUDA streams (channels.hpp): their halves in device memory, and the kernels that run at their ends.
//
// Who calls this : CudaKind owns one; face/message through Channels.
// Threads        : any; a thread of its own lets go of streams whose peer is gone, since that takes a driver call.
// Ownership      : owns slabs of device memory, what it has opened of other processes, page-locked words, modules; ends are owned by
//                  whoever opened them, and go first. Contexts and driver outlive it.
// Errors         : returned, naming the driver's call.
//
// Between two devices a kernel waits for the other's. The driver loads modules, and may bring a kernel's code to the device when it is first
// launched, and both wait for kernels that run: so all of ours, those of meetings, too, are loaded and launched once, without work, before
// any of them waits for anything.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "memory/channels.hpp"
#include "memory/cuda/channel_layout.hpp"
#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_kernels.hpp"
#include "memory/cuda/cuda_lending.hpp"
#include "memory/cuda/cuda_links.hpp"
#include "memory/cuda/cuda_quiet.hpp"
#include "memory/cuda/cuda_workers.hpp"

namespace ist {

// Of cuda_channel_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_cuda_channel_kernels[];

class CudaChannels;
class CudaMeetings;

// What one device has for channels, and for meetings.
struct CudaChannelHome {
  enum Kernel : std::uint8_t {
    send_small = 0,
    receive_small,
    send,
    receive,
    send_receive,
    put,
    take,
    let_go,
    tell,
    compare,
    tell_meeting,
    compare_meeting
  };
  static constexpr std::array<const char*, 12> kNames{"send_small",   "receive_small", "send",         "receive",
                                                      "send_receive", "put",           "take",         "let_go",
                                                      "tell",         "compare",       "tell_meeting", "compare_meeting"};
  struct Slab {
    CUdeviceptr address = 0;
    std::uint64_t size = 0;
    std::uint64_t used = 0;
    std::uint64_t allocation = 0;
    CUipcMemHandle handle{};
  };
  CudaContext* context = nullptr;
  CUmodule module = nullptr;
  std::array<CUfunction, kNames.size()> kernels{};
  // Of meetings (cuda_meetings.cpp).
  static constexpr std::size_t kMeetingKernels = kReductions * kElements + 2;
  CUmodule meetings = nullptr;
  std::array<CUfunction, kMeetingKernels> meeting_kernels{};
  CUstream stream = nullptr;  // of the library's own
  std::vector<Slab> slabs;
};

// The log of an end or a seat that compares notes, as its host reads it.
class CudaNotes {
 public:
  channel::NoteLog* log = nullptr;  // none: nothing is compared
  // What came into it since it was asked last.
  std::vector<UnlikeNotes> unlike();

 private:
  std::array<std::uint64_t, std::extent_v<decltype(channel::NoteLog::pairs)>> told_{};
};

class CudaChannelEnd : public ChannelEnd {
 public:
  CudaChannelEnd(CudaChannels& channels, CudaChannelHome& home, ChannelSide side, Rank peer, bool same_process)
      : channels_(channels), home_(home), side_(side), peer_rank_(peer), same_process_(same_process) {}
  ~CudaChannelEnd() override;
  CudaChannelEnd(const CudaChannelEnd&) = delete;
  CudaChannelEnd& operator=(const CudaChannelEnd&) = delete;
  const ChannelCard& card() const override { return card_; }
  int device() const override { return home_.context->device; }
  Status connect(const ChannelCard& peers) override;
  Status connect_to_nobody(const ChannelCard& peers) override;
  bool connected() const override { return peer_ != 0; }
  std::uint64_t came() const override { return own_ + offsetof(channel::Inbox, came); }
  std::optional<ChannelTrouble> trouble() override;
  std::vector<UnlikeNotes> unlike() override { return notes_.unlike(); }

 private:
  friend class CudaChannels;
  // The word that a stream of this end waits for, on one device.
  CUdeviceptr waits_for() const;
  channel::SendWork send_work(std::uint64_t address, Bytes size) const;
  channel::ReceiveWork receive_work(std::uint64_t address, Bytes room, bool counted) const;

  CudaChannels& channels_;
  CudaChannelHome& home_;
  const ChannelSide side_;
  const Rank peer_rank_;
  const bool same_process_;  // the peer is this rank
  ChannelCard card_;
  std::uint64_t own_ = 0;   // device addresses of the halves
  std::uint64_t peer_ = 0;  // 0: not connected
  bool one_device_ = false;
  bool let_go_ = false;
  const std::uint32_t* gone_ = nullptr;
  channel::Report* report_ = nullptr;
  CudaNotes notes_;
  std::uint32_t truncations_ = 0;      // that were told
  std::atomic<std::uint64_t> put_{0};  // messages put into streams
  std::uint64_t over_ = 0;             // that are known to have happened; under the channels' lock
};

// Where the device counts what has happened of what was put into streams.
struct CudaLook {
  CUdeviceptr state;  // the count; `broken` lies so many bytes behind it: then nothing is waited for any more
  std::size_t broken;
  std::uint64_t put;
  std::uint64_t* over;
};

class CudaChannels : public Channels, public CudaQuiet::Source {
 public:
  CudaChannels(const CudaApi& api, CudaContexts& contexts, CudaKernels& kernels, CudaWorkers& workers, CudaLinks& links,
               CudaLending& lending, CudaQuiet& quiet);
  ~CudaChannels() override;
  CudaChannels(const CudaChannels&) = delete;
  CudaChannels& operator=(const CudaChannels&) = delete;

  // Does the driver have what they need?
  bool present() const;

  Result<StreamPlace> find_stream(std::uint64_t stream, const Piece* beside, bool look) override;
  Result<std::uint64_t> admit(const Piece& piece, int device) override;
  void use_streams() override { quiet_.use_streams(); }
  bool settled() override { return quiet_.settled(); }
  Result<std::unique_ptr<ChannelEnd>> open(ChannelSide side, int device, Rank own, Rank peer, bool compares) override;
  Status send(ChannelEnd& end, std::uint64_t stream, std::uint64_t address, Bytes size) override;
  Status receive(ChannelEnd& end, std::uint64_t stream, std::uint64_t address, Bytes room, bool counted) override;
  Status send_and_receive(std::uint64_t stream, const Message& out, const Message& in) override;
  Status tell(ChannelEnd& end, std::uint64_t stream, const StreamNote& note) override;
  Status compare(ChannelEnd& end, std::uint64_t stream, const StreamNote& note) override;
  Meetings& meetings() override;
  void interrupt(Rank peer) override;
  Status close_all() override;
  // cuda_channel_quiet.cpp: has all happened that was put into streams, but for graphs?
  bool over() override;

 private:
  friend class CudaChannelEnd;
  friend class CudaMeetings;
  friend class CudaSeat;
  using Kernel = CudaChannelHome::Kernel;
  static constexpr std::size_t kGoneWords = 1024;  // in a block
  static constexpr std::size_t kGoneBlocks = 64;
  // With the lock held.
  Result<CudaChannelHome*> home(int device);
  Status load(CudaChannelHome& home) const;
  Status warm_up(CudaChannelHome& home) const;
  Result<CudaChannelHome::Slab*> slab(CudaChannelHome& home, std::uint64_t size);
  Result<std::uint32_t*> gone_word(Rank peer);
  Result<channel::Report*> report();
  Result<void*> locked_block(std::size_t size);
  Result<channel::NoteLog*> note_log();
  Result<std::uint32_t*> gone_of_seat();
  // Device memory that others may open, and where it is; its side and its rank are the caller's.
  Result<ChannelCard> take_half(CudaChannelHome& home, std::uint64_t size);
  Result<ChannelCard> take_half(CudaChannelHome& home, ChannelSide side);
  // Without the lock: may what is on that card's device be stored to from this one?
  Status believe(Rank peer, const CudaChannelHome& home, const ChannelCard& peers, bool same_process = false);
  Status open_half(CudaChannelEnd& end, CudaChannelHome& home, bool compares);
  Status reach(const CudaChannelHome& home, const ChannelCard& peers);
  // What another rank, or this one where `same_process`, says of its half.
  Result<CUdeviceptr> map(Rank peer, const CudaChannelHome& home, const ChannelCard& peers, bool same_process = false);
  bool over_on(CudaChannelHome& home);
  // Held while what waits for other ranks is put into that stream.
  CudaQuiet::Putting putting(std::uint64_t stream) const;
  Status let_go(CudaChannelEnd& end) const;
  void let_go_of_gone();
  void start_letting_go();

  // cuda_channel_launch.cpp
  // The context of the thread's calls, without the cost of changing it where it is the right one already.
  class Current {
   public:
    Current(const CudaApi& api, CUcontext context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    CUresult result() const { return result_; }

   private:
    const CudaApi& api_;
    CUresult result_ = CUDA_SUCCESS;
    bool pushed_ = false;
  };
  struct Launch {
    Kernel kernel;
    unsigned blocks;
    unsigned threads;
    void* work;
  };
  Status launch(const CudaChannelHome& home, std::uint64_t stream, const Launch& what) const;
  Status launch(CUfunction kernel, std::uint64_t stream, unsigned blocks, unsigned threads, void* work) const;
  Status wait(const CudaChannelEnd& end, std::uint64_t stream, std::uint32_t value) const;
  Status put_part(const CudaChannelEnd& end, std::uint64_t stream, channel::PutWork& work) const;
  Status take_part(const CudaChannelEnd& end, std::uint64_t stream, channel::TakeWork& work) const;
  Status through_parts(const CudaChannelEnd* sends, const channel::SendWork* out, const CudaChannelEnd* receives,
                       const channel::ReceiveWork* in, std::uint64_t stream) const;
  Status not_put(CUresult result, const std::string& call, std::uint64_t stream) const;

  const CudaApi& api_;
  CudaContexts& contexts_;
  CudaKernels& kernels_;
  CudaWorkers& workers_;  // its kernel is there before one of ours waits
  CudaLinks& links_;
  CudaLending& lending_;
  CudaQuiet& quiet_;
  std::mutex mutex_;
  std::map<int, CudaChannelHome> homes_;  // by device; addresses stay
  std::vector<CudaChannelEnd*> ends_;
  std::map<std::tuple<Rank, std::uint64_t, int>, CUdeviceptr> mapped_;  // by peer, its allocation, own device
  std::vector<void*> locked_;                                           // page-locked blocks
  std::vector<channel::Report*> reports_;                               // not in use
  std::vector<std::uint32_t*> gone_of_seats_;                           // the same
  std::byte* looked_ = nullptr;                                         // page-locked: what over_on() reads
  std::unique_ptr<CudaMeetings> meetings_;
  std::array<std::atomic<std::uint32_t*>, kGoneBlocks> gone_{};
  std::atomic<std::uint32_t> interrupts_{0};
  std::atomic<bool> ends_letting_go_{false};
  std::thread thread_;
  bool unfinished_ = false;  // kernels may still run: their memory stays
};

}  // namespace ist
