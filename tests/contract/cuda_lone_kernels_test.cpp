// The kernels of channels and meetings in one process and on one device, each alone: none needs another one that runs beside it, since
// what is sent is within the credit, and whoever waits finds what is there already. Between ranks they run on two devices only, so that
// this is what a sanitizer can look at where there is one (tools/gpu_run/sanitize.sh).
#include <algorithm>
#include <cstring>
#include <functional>

#include "cuda_support.hpp"
#include "memory/cuda/cuda_meetings.hpp"
#include "memory/cuda/meeting_protocol.hpp"

namespace ist::test {
namespace {

using channel::Inbox;
using channel::Outbox;
using channel::ReceiveWork;
using channel::SendReceiveWork;
using channel::SendWork;
using meeting::Mailbox;
using meeting::MeetWork;

class CudaLoneKernels : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (kind == nullptr) return;
    context_ = primary();
    stream_ = make_stream(context_);
    const Current scope(api, context_);
    must(api, api.cuModuleLoadData(&channels_, isthmus_cuda_channel_kernels), "cuModuleLoadData");
    must(api, api.cuModuleLoadData(&meetings_, isthmus_cuda_meeting_kernels), "cuModuleLoadData");
    words_ = static_cast<Words*>(locked(sizeof(Words)));
  }
  void TearDown() override {
    if (context_ != nullptr) {
      const Current scope(api, context_);
      for (const CUmodule module : {channels_, meetings_})
        if (module != nullptr) api.cuModuleUnload(module);
      for (const CUdeviceptr address : memory_) api.cuMemFree_v2(address);
      for (void* block : locked_) api.cuMemFreeHost(block);
    }
    CudaTest::TearDown();
  }

  // Zeros.
  CUdeviceptr device_memory(std::uint64_t size, unsigned char value = 0) {
    const Current scope(api, context_);
    CUdeviceptr address = 0;
    must(api, api.cuMemAlloc_v2(&address, size), "cuMemAlloc");
    memory_.push_back(address);
    must(api, api.cuMemsetD8Async(address, value, size, stream_), "cuMemsetD8Async");
    synchronise(stream_);
    return address;
  }
  template <class T>
  T* device_object() {
    return reinterpret_cast<T*>(device_memory(sizeof(T)));
  }
  void* locked(std::size_t size) {
    void* made = nullptr;
    must(api, api.cuMemHostAlloc(&made, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
    std::memset(made, 0, size);
    locked_.push_back(made);
    return made;
  }
  void write(CUdeviceptr address, const void* from, std::uint64_t size) {
    if (size == 0) return;
    Ticket ticket = must(kind->copy(device_piece(address, size), host_piece(from, Bytes{size}), {}));
    must(finish(ticket));
  }
  Data read(CUdeviceptr address, std::uint64_t size) {
    Data found(size);
    Ticket ticket = must(kind->copy(host_piece(found.data(), Bytes{size}), device_piece(address, size), {}));
    must(finish(ticket));
    return found;
  }

  // Returns when the kernel is over: alone, it must not wait for anything.
  void run(CUmodule module, const std::string& name, unsigned blocks, unsigned threads, void* work) {
    const Current scope(api, context_);
    CUfunction kernel = nullptr;
    must(api, api.cuModuleGetFunction(&kernel, module, name.c_str()), "cuModuleGetFunction");
    void* arguments[] = {work};
    must(api, api.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream_, arguments, nullptr), "cuLaunchKernel");
    synchronise(stream_);
  }

  struct Words {
    alignas(64) std::uint32_t gone[2];
    channel::Report reports[2];
  };
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUmodule channels_ = nullptr;
  CUmodule meetings_ = nullptr;
  Words* words_ = nullptr;
  std::vector<CUdeviceptr> memory_;
  std::vector<void*> locked_;
};

// ---- channels ----

class CudaLoneChannels : public CudaLoneKernels {
 protected:
  struct Way {
    Outbox* sends;
    Inbox* receives;
  };
  static constexpr std::uint64_t kAround = 32;

  Way make_way() { return {device_object<Outbox>(), device_object<Inbox>()}; }
  SendWork send_work(const Way& way, CUdeviceptr from, std::uint64_t bytes) const {
    return {way.sends, way.receives, reinterpret_cast<const std::byte*>(from), bytes, &words_->gone[0], &words_->reports[0]};
  }
  ReceiveWork receive_work(const Way& way, CUdeviceptr to, std::uint64_t room) const {
    return {way.receives, way.sends, reinterpret_cast<std::byte*>(to), room, &words_->gone[1], &words_->reports[1]};
  }
  // As CudaChannels::send() and receive() launch them between two devices.
  void send(const Way& way, CUdeviceptr from, std::uint64_t bytes) {
    SendWork work = send_work(way, from, bytes);
    if (bytes <= channel::kSmall) return run(channels_, "isthmus_channel_send_small", 1, channel::threads_for(bytes), &work);
    run(channels_, "isthmus_channel_send", channel::blocks_for(bytes), channel::kThreads, &work);
  }
  void receive(const Way& way, CUdeviceptr to, std::uint64_t room) {
    ReceiveWork work = receive_work(way, to, room);
    if (room <= channel::kSmall)
      return run(channels_, "isthmus_channel_receive_small", 1, channel::threads_for(room), &work);
    run(channels_, "isthmus_channel_receive", channel::blocks_for(room), channel::kThreads, &work);
  }
  // What came, and nothing beside it.
  void expect_there(CUdeviceptr to, const Data& sent, std::uint64_t room, const std::string& what) {
    Data expected(room + 2 * kAround, 0xEE);
    std::copy_n(sent.begin(), std::min<std::uint64_t>(sent.size(), room), expected.begin() + kAround);
    EXPECT_TRUE(read(to - kAround, expected.size()) == expected) << what;
  }
  void expect_no_failure() const {
    for (const channel::Report& report : words_->reports) EXPECT_EQ(report.failed, 0U);
  }
};

TEST_F(CudaLoneChannels, packets_within_the_credit_are_taken_afterwards) {
  const Way way = make_way();
  constexpr std::uint64_t kSizes[] = {0, 1, 3, 8, 15, 16, 31, 248, 256, 511, 512, 4096, 8185, 8191, 8192};
  constexpr std::uint64_t kEach = channel::kSmall + 2 * kAround;
  const CUdeviceptr from = device_memory(channel::kSlots * kEach);
  // Past the first round no packets are cleaned any more, and each slot is used again.
  for (std::uint64_t round = 0, next = 0; round < 3; ++round) {
    const CUdeviceptr to = device_memory(channel::kSlots * kEach, 0xEE);
    std::vector<Data> sent;
    for (std::uint64_t i = 0; i < channel::kSlots; ++i, ++next) {
      sent.push_back(random_bytes(kSizes[next % std::size(kSizes)]));
      const std::uint64_t shift = next % 5 == 0 ? 3 : 0;
      write(from + i * kEach + shift, sent.back().data(), sent.back().size());
      send(way, from + i * kEach + shift, sent.back().size());
    }
    for (std::uint64_t i = 0; i < channel::kSlots; ++i) {
      const CUdeviceptr place = to + i * kEach + kAround + (i % 7 == 0 ? 1 : 0);
      receive(way, place, sent[i].size());
      expect_there(place, sent[i], sent[i].size(), std::to_string(sent[i].size()) + " bytes, message " + std::to_string(i));
    }
  }
  expect_no_failure();
}

TEST_F(CudaLoneChannels, chunks_within_the_credit_are_taken_afterwards_by_as_many_blocks_or_fewer) {
  const Way way = make_way();
  constexpr std::uint64_t kAll = std::uint64_t{channel::kLanes} * channel::kRing * channel::kChunk;
  const CUdeviceptr from = device_memory(kAll + 64);
  std::uint32_t truncations = 0;
  for (const std::uint64_t size :
       {std::uint64_t{channel::kSmall + 1}, std::uint64_t{65536 + 5}, std::uint64_t{1} << 20, kAll}) {
    // All of it; less, by fewer blocks; and so little that one block with few threads has it all.
    for (const std::uint64_t room : {size, size / 3, std::uint64_t{100}}) {
      const Data sent = random_bytes(size);
      write(from + 1, sent.data(), size);
      const CUdeviceptr to = device_memory(room + 2 * kAround, 0xEE) + kAround;
      send(way, from + 1, size);
      receive(way, to, room);
      expect_there(to, sent, room, std::to_string(size) + " bytes into " + std::to_string(room));
      truncations += room < size ? 1 : 0;
      EXPECT_EQ(words_->reports[1].truncations, truncations);
    }
  }
  expect_no_failure();
}

TEST_F(CudaLoneChannels, a_fused_kernel_sends_while_it_takes_what_is_there) {
  const Way there = make_way();
  const Way back = make_way();
  for (const std::uint64_t size : {std::uint64_t{100}, std::uint64_t{channel::kSmall}, std::uint64_t{100001}}) {
    const Data first = random_bytes(size);
    const Data second = random_bytes(size);
    const CUdeviceptr from = device_memory(2 * size + 16);
    write(from, first.data(), size);
    write(from + size, second.data(), size);
    const CUdeviceptr to = device_memory(2 * (size + 2 * kAround), 0xEE) + kAround;
    send(there, from, size);
    SendReceiveWork work{send_work(back, from + size, size), receive_work(there, to, size), channel::blocks_for(size)};
    const unsigned threads = size <= channel::kSmall ? channel::threads_for(size) : channel::kThreads;
    run(channels_, "isthmus_channel_send_receive", 2 * channel::blocks_for(size), threads, &work);
    expect_there(to, first, size, "there");
    receive(back, to + size + 2 * kAround, size);
    expect_there(to + size + 2 * kAround, second, size, "back");
  }
  expect_no_failure();
}

// Two devices, each of which runs so few blocks at a time, in order: whatever the lengths, every lane has both its ends at some time.
TEST(ChannelRoles, blocks_that_send_and_receive_come_to_run_however_few_a_device_takes) {
  for (const std::uint32_t there : {1U, 2U, 5U, 64U})
    for (const std::uint32_t back : {1U, 3U, 64U})
      for (const std::size_t room : {std::size_t{2}, std::size_t{3}, std::size_t{64}}) {
        const std::uint32_t blocks = there + back;
        std::vector<bool> over[2] = {std::vector<bool>(blocks), std::vector<bool>(blocks)};
        const auto role = [&](int device, std::uint32_t block) {
          return device == 0 ? channel::role_of(block, there, back) : channel::role_of(block, back, there);
        };
        const auto running = [&](int device) {
          std::vector<std::uint32_t> found;
          for (std::uint32_t block = 0; block < blocks && found.size() < (device == 0 ? room : 2); ++block)
            if (!over[device][block]) found.push_back(block);
          return found;
        };
        for (std::uint32_t round = 0; round < blocks; ++round)
          for (const std::uint32_t mine : running(0))
            for (const std::uint32_t theirs : running(1))
              if (role(0, mine).sends != role(1, theirs).sends && role(0, mine).block == role(1, theirs).block)
                over[0][mine] = over[1][theirs] = true;
        EXPECT_TRUE(running(0).empty() && running(1).empty())
            << there << " and " << back << " blocks, " << room << " at a time";
      }
}

// ---- meetings of two ranks ----

class CudaLoneMeetings : public CudaLoneKernels {
 protected:
  static constexpr std::uint32_t kRanks = 2;
  static constexpr std::uint32_t kWhat = 7;
  // As CudaMeetings::load() has it.
  const std::string sum_ = kernel_name(Reduction::sum, *element_of(IST_FLOAT)).substr(std::strlen("isthmus_"));

  void SetUp() override {
    CudaLoneKernels::SetUp();
    for (CUdeviceptr& mailbox : mailboxes_)
      if (context_ != nullptr) mailbox = device_memory(meeting::size_for(kRanks));
  }
  MeetWork work(std::uint32_t rank, std::uint32_t root, CUdeviceptr from, CUdeviceptr to, std::uint64_t bytes) const {
    MeetWork work{};
    work.own = reinterpret_cast<Mailbox*>(mailboxes_[rank]);
    work.from = reinterpret_cast<const std::byte*>(from);
    work.to = reinterpret_cast<std::byte*>(to);
    work.bytes = bytes;
    work.ranks = kRanks;
    work.rank = rank;
    work.root = root;
    work.what = kWhat;
    work.gone = &words_->gone[rank];
    work.report = &words_->reports[rank];
    for (std::uint32_t i = 0; i < kRanks; ++i) work.members[i] = reinterpret_cast<Mailbox*>(mailboxes_[i]);
    return work;
  }
  void meet(const std::string& name, MeetWork work) {
    run(meetings_, "isthmus_meet_" + name, meeting::blocks_for(work.bytes), meeting::threads_for(work.bytes), &work);
  }
  // Rank 1 tells rank 0, waits in vain, and gives up because it is told that nobody is there; then that is undone, as if it were waiting
  // still. Rank 0 finds all, and rank 1 once more, too.
  void meet_in_turn(const std::string& name, const MeetWork& first, const MeetWork& second) {
    words_->gone[1] = 1;
    meet(name, second);
    EXPECT_EQ(words_->reports[1].failed, 1U);
    words_->gone[1] = words_->reports[1].failed = 0;
    const std::uint32_t whole = 0;
    write(mailboxes_[1] + offsetof(Mailbox, broken), &whole, sizeof whole);
    const std::uint64_t begun = meeting::begun_as(met_++, kWhat);
    write(mailboxes_[0] + offsetof(Mailbox, begun) + sizeof begun, &begun, sizeof begun);
    meet(name, first);
    meet(name, second);
    for (const channel::Report& report : words_->reports) EXPECT_EQ(report.failed, 0U);
  }
  struct Vectors {
    std::vector<float> mine[kRanks];
    CUdeviceptr from[kRanks];
    CUdeviceptr to[kRanks];
    std::uint64_t bytes;
  };
  Vectors vectors(std::uint64_t count) {
    Vectors made{};
    made.bytes = count * sizeof(float);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (std::uint64_t i = 0; i < count; ++i)
        made.mine[rank].push_back(static_cast<float>(i + 1) / static_cast<float>(rank + 3));
      made.from[rank] = device_memory(made.bytes + 16) + 4 * (count % 2);  // not always as a unit lies
      made.to[rank] = device_memory(made.bytes + 16, 0xEE);
      write(made.from[rank], made.mine[rank].data(), made.bytes);
    }
    return made;
  }
  void expect_at(CUdeviceptr to, const Vectors& all, const std::function<float(std::uint64_t)>& wanted) {
    const Data found = read(to, all.bytes + 16);
    EXPECT_EQ(Data(found.end() - 16, found.end()), Data(16, 0xEE)) << "beside the vector";
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < all.bytes / sizeof(float); ++i) {
      float value = 0;
      std::memcpy(&value, found.data() + i * sizeof value, sizeof value);
      wrong += value == wanted(i) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << "of " << all.bytes << " bytes";
  }

  CUdeviceptr mailboxes_[kRanks]{};
  std::uint64_t met_ = 0;
};

// More than the slots of a mailbox, and past its cleaning.
TEST_F(CudaLoneMeetings, the_root_of_a_broadcast_is_ahead_and_that_of_a_reduction_behind) {
  for (const std::uint64_t count : {1, 2, 3, 31, 128, 2047, 2049, 65536}) {
    const Vectors sent = vectors(count);
    meet("bcast", work(0, 0, sent.from[0], sent.from[0], sent.bytes));
    meet("bcast", work(1, 0, sent.to[1], sent.to[1], sent.bytes));
    expect_at(sent.to[1], sent, [&](std::uint64_t i) { return sent.mine[0][i]; });
    const Vectors summed = vectors(count);
    meet(sum_, work(0, 1, summed.from[0], 0, summed.bytes));
    meet(sum_, work(1, 1, summed.from[1], summed.to[1], summed.bytes));
    expect_at(summed.to[1], summed, [&](std::uint64_t i) { return summed.mine[0][i] + summed.mine[1][i]; });
  }
  for (const channel::Report& report : words_->reports) EXPECT_EQ(report.failed, 0U);
}

TEST_F(CudaLoneMeetings, who_waited_in_vain_and_comes_again_has_the_sum_and_is_past_the_barrier) {
  for (const std::uint64_t count : {1, 2, 3, 31, 128, 2049, 65536}) {
    const Vectors all = vectors(count);
    meet_in_turn(sum_, work(0, meeting::kEverybody, all.from[0], all.to[0], all.bytes),
                 work(1, meeting::kEverybody, all.from[1], all.to[1], all.bytes));
    for (const CUdeviceptr to : all.to) expect_at(to, all, [&](std::uint64_t i) { return all.mine[0][i] + all.mine[1][i]; });
    meet_in_turn("barrier", work(0, meeting::kEverybody, 0, 0, 0), work(1, meeting::kEverybody, 0, 0, 0));
  }
}

}  // namespace
}  // namespace ist::test
