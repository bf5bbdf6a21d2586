// Isthmus in kernels: who makes a call together, a thread, a warp, a block, or all blocks of a cooperative grid; and where they agree.
//
// Who calls this : kernels, which pass one to every call; compiled by nvcc alone. Tests on processors have crews of their own.
// Threads        : all threads of a crew make the same calls in the same order, with the same arguments.
// Ownership      : none.
// Errors         : a Status, where they agree.
//
// A crew has thread, threads, block and blocks, of which the last two are 0 and 1 but for a grid's; sync(), where its threads (of
// one block) meet; and any(bool), which also is a meeting.
#ifndef ISTHMUS_DEVICE_CREW_CUH
#define ISTHMUS_DEVICE_CREW_CUH

#include "isthmus/device/area.cuh"
#include "isthmus/device/wait.cuh"

namespace ist::device {

#if defined(__CUDACC__)
struct Thread {
  static constexpr unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  IST_DEVICE_CODE void sync() const {}
  IST_DEVICE_CODE bool any(bool mine) const { return mine; }
};

// All 32 lanes of a warp, of a block whose threads are numbered in one dimension.
struct Warp {
  static constexpr unsigned threads = 32, block = 0, blocks = 1;
  unsigned thread = threadIdx.x % 32;
  IST_DEVICE_CODE void sync() const { __syncwarp(); }
  // A vote alone orders no memory.
  IST_DEVICE_CODE bool any(bool mine) const {
    __syncwarp();
    return __any_sync(~0U, mine) != 0;
  }
};

// All threads of a block, numbered in one dimension. One warp is quicker to meet by itself.
struct Block {
  static constexpr unsigned block = 0, blocks = 1;
  unsigned thread = threadIdx.x;
  unsigned threads = blockDim.x;
  IST_DEVICE_CODE void sync() const {
    if (threads == 32)
      __syncwarp();
    else
      __syncthreads();
  }
  IST_DEVICE_CODE bool any(bool mine) const { return threads == 32 ? Warp().any(mine) : __syncthreads_or(mine) != 0; }
};

// All blocks of a grid, which must all be resident: isthmus/launch.cuh sees to that.
struct Grid {
  unsigned thread = threadIdx.x;
  unsigned threads = blockDim.x;
  unsigned block = blockIdx.x;
  unsigned blocks = gridDim.x;
  IST_DEVICE_CODE void sync() const { __syncthreads(); }
  IST_DEVICE_CODE bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
};
#endif

// Are they blocks that meet in words of a team's area? A call without a team, as those of a window may be, that puts one word behind the data of
// all its threads is no call of theirs, and says so when it is compiled.
template <class Crew>
inline constexpr bool kIsGrid = false;
#if defined(__CUDACC__)
template <>
inline constexpr bool kIsGrid<Grid> = true;
#endif

// All threads (of a block) learn the worst that any of them met; meetings. Where one of them met something. A death is the worst, since it ends
// the team whatever else there was; a misuse is worse than a deadline, which passes for those that wait beside who misused the call.
template <class Crew>
IST_DEVICE_CODE Status worst(const Crew& crew, Status mine) {
  if (crew.any(mine == Status::peer_dead)) return Status::peer_dead;
  return crew.any(mine == Status::misuse) ? Status::misuse : Status::late;
}
template <class Crew>
IST_DEVICE_CODE Status agreed(const Crew& crew, Status mine) {
  return crew.any(mine != Status::ok) ? worst(crew, mine) : Status::ok;
}
IST_DEVICE_CODE Status worse(Status a, Status b) {
  if (a == Status::peer_dead || b == Status::peer_dead) return Status::peer_dead;
  return a == Status::misuse || b == Status::ok ? a : b;
}

// This thread's number among all of the crew, a grid's blocks one after the other; how many they are; and the one that speaks for all.
template <class Crew>
IST_DEVICE_CODE unsigned thread_of(const Crew& crew) {
  return crew.block * crew.threads + crew.thread;
}
template <class Crew>
IST_DEVICE_CODE unsigned threads_of(const Crew& crew) {
  return crew.blocks * crew.threads;
}
template <class Crew>
IST_DEVICE_CODE bool is_first(const Crew& crew) {
  return crew.block == 0 && crew.thread == 0;
}

// What a block tells another one: the number of the meeting, above it how it went, and above that how the one before did.
inline constexpr int kStatusShift = 56, kBeforeShift = 60;
IST_DEVICE_NUMBER std::uint64_t ended_as(std::uint64_t number, Status status) {
  return number | static_cast<std::uint64_t>(status) << kStatusShift;
}
IST_DEVICE_NUMBER std::uint64_t number_in(std::uint64_t ended) { return ended & ((std::uint64_t{1} << kStatusShift) - 1); }
IST_DEVICE_NUMBER Status status_in(std::uint64_t ended) { return static_cast<Status>(ended >> kStatusShift & 15); }
IST_DEVICE_NUMBER Status before_in(std::uint64_t ended) { return static_cast<Status>(ended >> kBeforeShift); }

// Where all threads of a crew meet and agree, the blocks of a grid too, without other PEs: what any of them stored or learned of before is seen by
// all afterwards. Of a grid the blocks come to block 0, which lets them go (Xiao and Feng's barrier), and decides alone how it ended, so that
// all learn the same. Made when a call begins, which its number is loaded for meanwhile; one grid of a PE at a time in each team.
// models/gathering.pml has it.
template <class Crew>
class Gathering {
 public:
  // deadline: of what a block waits for before it comes here.
  IST_DEVICE_CODE Gathering(const Crew& crew, const ist_team_view& view, std::uint64_t deadline)
      : crew_(crew), view_(view), deadline_(deadline) {
    // Stored when all blocks have come, and before any leaves: the same for every thread that reads it.
    if (crew.blocks != 1) number_ = load_relaxed(&control_of(view, view.pe).gatherings);
  }
  // Are there words for so many blocks? Otherwise nothing is to be done, and the meetings are misuse.
  IST_DEVICE_CODE bool fits() const { return crew_.blocks <= static_cast<unsigned>(kMaxBlocks); }

  IST_DEVICE_CODE Status agree(Status mine) {
    if (crew_.blocks == 1) return agreed(crew_, mine);
    return meet(mine, [] { return Status::ok; });
  }
  // `last` is done by the first thread when all have come, and before any of a grid's leaves; its Status is the first thread's, or all of a
  // grid's.
  template <class Last>
  IST_DEVICE_CODE Status then(const Last& last) {
    if (crew_.blocks != 1) return meet(Status::ok, last);
    crew_.sync();
    return crew_.thread == 0 ? last() : Status::ok;
  }
  // Of a grid: both, where none has met anything.
  // Guard SECOND_IF_OK: who learned from a meeting of this object that something was met does not meet by it again.
  template <class Last>
  IST_DEVICE_CODE Status meet(Status mine, const Last& last) {
    if (!fits()) return Status::misuse;
    ++number_;
    return crew_.block == 0 ? lead(mine, last) : follow(mine);
  }

 private:
  // In deadlines: a block comes when it has waited for other PEs for one of them, and is not to be given up then. Those that wait for block 0
  // have more patience than it has for them, where it makes the call at all; and when a PE has died they hear how block 0 ends it.
  // Guard LOST: one that gives up waiting for block 0 says so for good, and all later meetings end so.
  static constexpr std::uint64_t kForBlocks = 2, kForTheFirst = 4;
  static constexpr std::uint64_t kLastWords = 100000000;                          // ns
  static constexpr std::uint64_t kLost = (std::uint64_t{1} << kStatusShift) - 1;  // above all numbers
  IST_DEVICE_CODE std::uint64_t times(std::uint64_t patience) const {
    return deadline_ <= ~std::uint64_t{0} / patience ? patience * deadline_ : deadline_;
  }

  template <class Last>
  IST_DEVICE_CODE Status lead(Status status, const Last& last) {
    Control& own = control_of(view_, view_.pe);
    Waiter waiter(view_, times(kForBlocks));
    bool whole = true;
    // One that was given up stays so, for blocks that come late as for all others: no thread waits for them. The block has met since that was said.
    // Guards LOOK_BACK; ALL_LOOK_BACK: each thread does; SAME_END: it ends as that one did, whatever was met before it.
    const std::uint64_t before = load_relaxed(&own.gone);
    const bool given_up = number_in(before) >= number_;
    if (given_up) {
      whole = false;
      status = status_in(before);
    }
    for (unsigned block = 1 + crew_.thread; block < crew_.blocks && whole; block += crew_.threads) {
      std::uint64_t found = 0;
      const Status waited = waiter.wait([&] {
        found = load_acquire_here(&own.come[block]);
        return number_in(found) >= number_;
      });
      whole = waited == Status::ok;
      status = worse(status, whole ? status_in(found) : waited);
    }
    // Each thread has heard of some blocks; after the meeting the first one has heard of all, and what it releases is behind what they did.
    // Guard AGREEMENT. Guards ANY: another thread may have missed a block; MISSED_ALONE: what blocks brought ends this one alone.
    status = agreed(crew_, status);
    const bool all = status == Status::ok || !crew_.any(!whole);
    if (crew_.thread == 0) {
      // Guard LAST_FIRST: the release below keeps it before any block leaves.
      if (status == Status::ok) status = last();
      // Guards WHOLE: a block that was missed may be about to read it; NUMBER_FIRST: the release keeps it, too, before blocks go on.
      if (all) store_relaxed(&own.gatherings, number_);
      // Guard BEFORE: a block may not have looked yet when the next meeting is given up, and hears how its own one ended.
      // Guard SAID_ONCE: for as long as it has not, so what was said of one given up stays as it is.
      if (!given_up)
        store_release_here(&own.gone, ended_as(number_, status) | static_cast<std::uint64_t>(status_in(before))
                                                                      << kBeforeShift);
    }
    // Guard END_TOGETHER: the block's other threads go on, and read what was counted, only behind that.
    return agreed(crew_, status);
  }

  IST_DEVICE_CODE Status follow(Status mine) {
    Control& own = control_of(view_, view_.pe);
    mine = agreed(crew_, mine);
    Status status = Status::ok;
    if (crew_.thread == 0) {
      // Guard COME_LAST: release keeps what the block stored, and its looks at `gatherings`, before it.
      std::uint64_t& come = own.come[crew_.block];
      const std::uint64_t before = load_relaxed(&come);
      const bool lost = number_in(before) == kLost;  // guard FOR_GOOD: it does not come again
      if (!lost) store_release_here(&come, ended_as(number_, mine));
      status = lost ? status_in(before) : hear_of_all(own, come);
    }
    return agreed(crew_, status);
  }
  IST_DEVICE_CODE Status hear_of_all(const Control& own, std::uint64_t& come) const {
    std::uint64_t said = 0;
    const auto look = [&] {
      said = load_acquire_here(&own.gone);
      // Guard AT_LEAST: block 0 may have given up the next one meanwhile.
      return number_in(said) >= number_;
    };
    Status waited = Waiter(view_, times(kForTheFirst)).wait(look);
    // Guard LAST_WORDS: block 0 may have let the others go with ok.
    if (waited == Status::peer_dead && Waiter(nullptr, kLastWords).wait(look) == Status::ok) waited = Status::ok;
    if (waited == Status::ok) return number_in(said) > number_ ? before_in(said) : status_in(said);
    store_release_here(&come, ended_as(kLost, waited));
    return waited;
  }

  const Crew crew_;
  const ist_team_view& view_;
  const std::uint64_t deadline_;
  std::uint64_t number_ = 0;
};

// All threads of the crew, a grid's too, meet and learn the worst that any of them met. After a deadline that passes in here, or a death, a grid
// makes no call together in that team any more.
template <class Crew>
IST_DEVICE_CODE Status agreed(const Crew& crew, const ist_team_view& view, Status mine, std::uint64_t deadline = 0) {
  return Gathering<Crew>(crew, view, deadline).agree(mine);
}

}  // namespace ist::device

#endif
