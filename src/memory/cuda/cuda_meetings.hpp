// Meetings between CUDA streams (meetings.hpp): mailboxes in device memory, and the kernels that meet.
//
// Who calls this : CudaChannels owns one; face/message through Meetings.
// Threads        : as cuda_channels.hpp, whose lock guards what is shared. interrupt() takes a lock of its own, under which nothing waits.
// Ownership      : seats are owned by whoever took them; mailboxes, mappings and modules by CudaChannels.
// Errors         : returned, naming the driver's call.
#pragma once

#include <mutex>
#include <vector>

#include "memory/cuda/cuda_channels.hpp"
#include "memory/cuda/meeting_layout.hpp"
#include "memory/meetings.hpp"

namespace ist {

// Of cuda_meeting_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_cuda_meeting_kernels[];

class CudaMeetings;

class CudaSeat : public MeetingSeat {
 public:
  CudaSeat(CudaMeetings& meetings, CudaChannelHome& home, Circle circle)
      : meetings_(meetings), home_(home), circle_(std::move(circle)) {}
  ~CudaSeat() override;
  CudaSeat(const CudaSeat&) = delete;
  CudaSeat& operator=(const CudaSeat&) = delete;
  const ChannelCard& card() const override { return card_; }
  int device() const override { return home_.context->device; }
  Status connect(const std::vector<ChannelCard>& cards) override;
  std::optional<MeetingTrouble> trouble() const override;
  std::vector<UnlikeNotes> unlike() override { return notes_.unlike(); }
  std::uint64_t part(int member) const override;
  Bytes part_size() const override;

 private:
  friend class CudaMeetings;
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(circle_.members.size()); }
  meeting::MeetWork work(const MeetingCall& call) const;

  CudaMeetings& meetings_;
  CudaChannelHome& home_;
  const Circle circle_;
  ChannelCard card_;
  std::uint64_t own_ = 0;                 // device address of the mailbox
  std::vector<std::uint64_t> mailboxes_;  // by member; empty: not connected
  std::uint32_t* gone_ = nullptr;
  channel::Report* report_ = nullptr;
  CudaNotes notes_;
  std::atomic<std::uint64_t> put_{0};  // kernels put into streams
  std::uint64_t over_ = 0;             // under the channels' lock
};

class CudaMeetings : public Meetings {
 public:
  explicit CudaMeetings(CudaChannels& channels) : channels_(channels) {}
  Result<std::unique_ptr<MeetingSeat>> take_seat(int device, const Circle& circle, bool compares) override;
  Status meet(MeetingSeat& seat, std::uint64_t stream, const MeetingCall& call) override;
  Status combine_parts(MeetingSeat& seat, std::uint64_t stream, const MeetingCall& call) override;
  Status tell(MeetingSeat& seat, std::uint64_t stream, const StreamNote& note) override;
  Status compare(MeetingSeat& seat, std::uint64_t stream, const MeetingCall& call) override;
  // No driver call: whoever waits for that rank gives up, or all do.
  void interrupt(Rank member);
  void interrupt_all();
  // What is not known to be over on that device. With the channels' lock.
  void add_looks(const CudaChannelHome& home, std::vector<CudaLook>& looks);
  // Their kernels, as part of making a home. With the channels' lock, and the home's context current.
  Status load(CudaChannelHome& home) const;

 private:
  friend class CudaSeat;
  Status open(CudaSeat& seat, bool compares);
  CUfunction kernel_for(const CudaChannelHome& home, const MeetingCall& call) const;

  CudaChannels& channels_;
  std::mutex mutex_;  // guards the list
  std::vector<CudaSeat*> seats_;
};

}  // namespace ist
