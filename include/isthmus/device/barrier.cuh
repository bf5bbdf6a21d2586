// Isthmus in kernels: where all PEs of a team meet; blocks of a PE first, then the devices. models/device_barrier.pml has it.
//
// Who calls this : kernels, one crew of each PE at a time: of a thread, a warp, a block, or a cooperative grid. Any number of times
//                  in a kernel, over kernels, and in replays of a graph; the crew may be another one each time.
// Threads        : all threads of the crew.
// Ownership      : none. What the next barrier has to know lies in the team's area.
// Errors         : a Status, the same for all threads of a block. After one that is not ok no barrier of the team ends well.
//
// Nothing is reset: the n-th barrier is over for whoever finds n, or more, where it looks. Everybody looks into the own part only.
#ifndef ISTHMUS_DEVICE_BARRIER_CUH
#define ISTHMUS_DEVICE_BARRIER_CUH

#include "isthmus/device/crew.cuh"
#include "isthmus/device/move.cuh"

namespace ist::device {

enum class Order {
  everything,  // what was stored before, anywhere, by any thread of any crew, is seen by all afterwards
  nothing      // all have come; what they stored is found only where something else says so
};

// `here`: between blocks of one device.
template <Order kOrder, bool kHere = false>
IST_DEVICE_CODE void tell(std::uint64_t* word, std::uint64_t value) {
  if (kOrder == Order::nothing && !kHere)
    store_relaxed(word, value);
  else if (kHere)
    store_release_here(word, value);
  else
    store_release(word, value);
}
template <bool kHere = false>
IST_DEVICE_CODE Status hear(const std::uint64_t* word, std::uint64_t wanted, Waiter& waiter, std::uint64_t& found) {
  return waiter.wait([&] {
    found = kHere ? load_acquire_here(word) : load_acquire(word);
    return found >= wanted;
  });
}

// A crew's barriers, one after the other, with their number in a register: reading it from memory costs as much as a third of a barrier.
// While one is in use, every barrier of this PE goes through it: one that another object made would not be counted here.
template <class Crew>
class Meeting {
 public:
  IST_DEVICE_CODE Meeting(const Crew& crew, const ist_team_view& view)
      // Stored before all of this PE's blocks leave, and not before all have come: the same for every thread that reads it.
      : crew_(crew), view_(view), barrier_(load_relaxed(&control_of(view, view.pe).barriers)) {
    const int pe = static_cast<int>(crew.thread);
    if (crew.thread >= static_cast<unsigned>(view.pes) || pe == view.pe || view.pes > kMaxPes) return;
    there_ = &control_of(view, pe).peers[view.pe].arrived;
    here_ = &control_of(view, view.pe).peers[pe].arrived;
  }

  template <Order kOrder = Order::everything>
  IST_DEVICE_CODE Status meet(std::uint64_t deadline = 0) {
    if (view_.pes > kMaxPes || crew_.blocks > static_cast<unsigned>(kMaxBlocks)) return Status::misuse;
    ++barrier_;
    // The meeting of the block orders its other threads' stores before whatever one of them releases, which is cumulative.
    crew_.sync();
    Waiter waiter(view_, deadline);
    if (crew_.blocks == 1 && view_.pes <= kFlatPes && crew_.threads >= static_cast<unsigned>(view_.pes))
      return agreed(crew_, one_each<kOrder>(waiter));
    if (crew_.blocks == 1) return agreed(crew_, among_devices<kOrder>(waiter, Status::ok));
    return crew_.block == 0 ? lead<kOrder>(waiter) : follow(waiter);
  }

 private:
  // Xiao and Feng's barrier of a grid, around that of the devices; in theirs nothing orders a block's stores before its arrival: the
  // release does.
  template <Order kOrder>
  IST_DEVICE_CODE Status lead(Waiter& waiter) {
    Control& own = control_of(view_, view_.pe);
    Status status = Status::ok;
    std::uint64_t found = 0;
    for (unsigned block = 1 + crew_.thread; block < crew_.blocks && status == Status::ok; block += crew_.threads)
      status = hear<true>(&own.in[block], barrier_, waiter, found);
    // Each thread has heard of some blocks; after the meeting, whoever tells other devices has heard of all.
    status = agreed(crew_, status);
    if (status == Status::ok) status = agreed(crew_, among_devices<kOrder>(waiter, status));
    for (unsigned block = 1 + crew_.thread; block < crew_.blocks; block += crew_.threads)
      tell<kOrder, true>(&own.out[block], ended_as(barrier_, status));
    return status;
  }
  IST_DEVICE_CODE Status follow(Waiter& waiter) {
    Control& own = control_of(view_, view_.pe);
    Status status = Status::ok;
    if (crew_.thread == 0) {
      store_release_here(&own.in[crew_.block], barrier_);
      std::uint64_t found = 0;
      status = hear<true>(&own.out[crew_.block], barrier_, waiter, found);
      if (status == Status::ok) status = status_in(found);
    }
    return agreed(crew_, status);
  }

  // The usual case: a few PEs, a thread for each, and addresses that are known. What follows a flag's arrival is on every barrier's way.
  template <Order kOrder>
  IST_DEVICE_CODE Status one_each(Waiter& waiter) {
    if (there_ != nullptr) tell<kOrder>(there_, barrier_);
    // While the flags are on their way. All have come, and none has left.
    if (crew_.thread == 0) store_relaxed(&control_of(view_, view_.pe).barriers, barrier_);
    std::uint64_t found = 0;
    return here_ != nullptr ? hear(here_, barrier_, waiter, found) : Status::ok;
  }

  // Flags of everybody to everybody, one hop, or to PE 0 and back. A thread tells one PE and hears of it; a meeting is next.
  template <Order kOrder>
  IST_DEVICE_CODE Status among_devices(Waiter& waiter, Status status) {
    Control& own = control_of(view_, view_.pe);
    const bool gathers = view_.pes > kFlatPes;
    const int from = static_cast<int>(crew_.thread);
    const int step = static_cast<int>(crew_.threads);
    const bool tells_all = !gathers || view_.pe == 0;
    std::uint64_t found = 0;
    if (!gathers)
      for (int pe = from; pe < view_.pes; pe += step)
        if (pe != view_.pe) tell<kOrder>(&control_of(view_, pe).peers[view_.pe].arrived, barrier_);
    if (gathers && view_.pe != 0 && from == 0) {
      tell<kOrder>(&control_of(view_, 0).peers[view_.pe].arrived, barrier_);
      status = hear(&own.released, barrier_, waiter, found);
    }
    // While the flags are on their way. All blocks have come, and none has left.
    if (from == 0) store_relaxed(&own.barriers, barrier_);
    for (int pe = from; tells_all && pe < view_.pes && status == Status::ok; pe += step)
      if (pe != view_.pe) status = hear(&own.peers[pe].arrived, barrier_, waiter, found);
    if (gathers && view_.pe == 0) {
      status = agreed(crew_, status);
      for (int pe = from; pe < view_.pes && status == Status::ok; pe += step)
        if (pe != 0) tell<kOrder>(&control_of(view_, pe).released, barrier_);
    }
    return status;
  }

  const Crew crew_;
  const ist_team_view view_;
  std::uint64_t barrier_;
  std::uint64_t* there_ = nullptr;       // the flag that this thread stores, at the PE of its number
  const std::uint64_t* here_ = nullptr;  // and the one that it waits for
};

template <class Crew>
IST_DEVICE_CODE Status barrier(const Crew& crew, const ist_team_view& view, std::uint64_t deadline = 0) {
  return Meeting<Crew>(crew, view).meet(deadline);
}
// All have come, and nothing is said of what they stored: not OpenSHMEM's sync, which also shows what a PE stored at home; its
// place is taken by barrier().
template <class Crew>
IST_DEVICE_CODE Status sync(const Crew& crew, const ist_team_view& view, std::uint64_t deadline = 0) {
  return Meeting<Crew>(crew, view).template meet<Order::nothing>(deadline);
}

}  // namespace ist::device

#endif
