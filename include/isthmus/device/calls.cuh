// Isthmus in kernels: small collective calls of a team, in packets: reductions to all, broadcast, all to all.
//
// Who calls this : kernels; every PE of the team makes the same calls in the same order, one crew of each PE at a time: of a thread, a
//                  warp, a block, or a cooperative grid. Any number of times in a kernel, over kernels, and in replays of a graph.
// Threads        : all threads of the crew. When a call returns, its results are seen by all of them, and sources may be changed.
// Ownership      : none. What the next call has to know lies in the team's area.
// Errors         : a Status, the same for all threads of the crew. After one that is not ok no further call is to be made.
//
// At most kCallBytes to each PE. Reductions are computed in the order of PEs everywhere: all get the same bits.
#ifndef ISTHMUS_DEVICE_CALLS_CUH
#define ISTHMUS_DEVICE_CALLS_CUH

#include "isthmus/device/packets.cuh"

namespace ist::device {

struct Sum {
  template <class T>
  static IST_DEVICE_CODE T combine(T a, T b) {
    return a + b;
  }
};
struct Min {
  template <class T>
  static IST_DEVICE_CODE T combine(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static IST_DEVICE_CODE T combine(T a, T b) {
    return a < b ? b : a;
  }
};

// The elements of one word, combined one by one.
template <class T, class Operation>
IST_DEVICE_CODE std::uint64_t combined(std::uint64_t a, std::uint64_t b) {
  static_assert(kIsWord<T>, "elements have 4 or 8 bytes");
  if constexpr (sizeof(T) == 8) {
    return bits_as<std::uint64_t>(Operation::combine(bits_as<T>(a), bits_as<T>(b)));
  } else {
    const T low = Operation::combine(bits_as<T>(static_cast<std::uint32_t>(a)), bits_as<T>(static_cast<std::uint32_t>(b)));
    const T high =
        Operation::combine(bits_as<T>(static_cast<std::uint32_t>(a >> 32)), bits_as<T>(static_cast<std::uint32_t>(b >> 32)));
    return bits_as<std::uint32_t>(low) | static_cast<std::uint64_t>(bits_as<std::uint32_t>(high)) << 32;
  }
}

// A crew's calls, one after the other, with their number in a register.
template <class Crew>
class Calls {
 public:
  IST_DEVICE_CODE Calls(const Crew& crew, const ist_team_view& view)
      : crew_(crew), view_(view), call_(load_relaxed(&control_of(view, view.pe).calls)) {}

  // result may be the source.
  template <class Operation, class T>
  IST_DEVICE_CODE Status allreduce(T* result, const T* source, std::uint64_t count, std::uint64_t deadline = 0) {
    const std::uint64_t bytes = count * sizeof(T);
    if (!begins(bytes)) return Status::misuse;
    Gathering<Crew> all(crew_, view_, deadline);
    const auto* const from = reinterpret_cast<const unsigned char*>(source);
    auto* const to = reinterpret_cast<unsigned char*>(result);
    Status status = wait_for_all(deadline);
    if (status != Status::ok) return end(all, status);
    for (std::uint32_t i = thread_of(crew_); i < units_of(bytes); i += threads_of(crew_))
      for (int pe = 0; pe < view_.pes; ++pe)
        if (pe != view_.pe) tell(pe, i, from, bytes);
    Waiter waiter(view_, deadline);
    for (std::uint32_t i = thread_of(crew_); i < units_of(bytes) && status == Status::ok; i += threads_of(crew_)) {
      std::uint64_t sum = 0;
      for (int pe = 0; pe < view_.pes && status == Status::ok; ++pe) {
        const std::uint64_t one = pe == view_.pe ? word_of(from, i, bytes) : hear(pe, i, waiter, status);
        sum = pe == 0 ? one : combined<T, Operation>(sum, one);
      }
      if (status == Status::ok) put_at(to, i, bytes, sum);
    }
    return end(all, status);
  }

  // The root's source arrives in everybody's result, the root's too.
  IST_DEVICE_CODE Status broadcast(void* result, const void* source, std::uint64_t bytes, int root,
                                   std::uint64_t deadline = 0) {
    if (root < 0 || root >= view_.pes || !begins(bytes)) return Status::misuse;
    Gathering<Crew> all(crew_, view_, deadline);
    const auto* const from = static_cast<const unsigned char*>(source);
    auto* const to = static_cast<unsigned char*>(result);
    const bool is_root = view_.pe == root;
    Status status = is_root ? wait_for_all(deadline) : Status::ok;
    if (status != Status::ok) return end(all, status);
    Waiter waiter(view_, deadline);
    for (std::uint32_t i = thread_of(crew_); i < units_of(bytes) && status == Status::ok; i += threads_of(crew_)) {
      for (int pe = 0; is_root && pe < view_.pes; ++pe)
        if (pe != root) tell(pe, i, from, bytes);
      const std::uint64_t word = is_root ? word_of(from, i, bytes) : hear(root, i, waiter, status);
      if (status == Status::ok && (!is_root || to != from)) put_at(to, i, bytes, word);
    }
    return end(all, status);
  }

  // Block q of the source, of so many bytes, goes to PE q; block q of the result comes from it. They are not the same memory.
  IST_DEVICE_CODE Status alltoall(void* result, const void* source, std::uint64_t bytes, std::uint64_t deadline = 0) {
    if (!begins(bytes)) return Status::misuse;
    Gathering<Crew> all(crew_, view_, deadline);
    const auto* const from = static_cast<const unsigned char*>(source);
    auto* const to = static_cast<unsigned char*>(result);
    Status status = wait_for_all(deadline);
    if (status != Status::ok) return end(all, status);
    for (int pe = 0; pe < view_.pes; ++pe)
      for (std::uint32_t i = thread_of(crew_); i < units_of(bytes); i += threads_of(crew_))
        if (pe != view_.pe) tell(pe, i, from + static_cast<std::uint64_t>(pe) * bytes, bytes);
    Waiter waiter(view_, deadline);
    for (int pe = 0; pe < view_.pes; ++pe) {
      const std::uint64_t block = static_cast<std::uint64_t>(pe) * bytes;
      for (std::uint32_t i = thread_of(crew_); i < units_of(bytes) && status == Status::ok; i += threads_of(crew_)) {
        const std::uint64_t word = pe == view_.pe ? word_of(from + block, i, bytes) : hear(pe, i, waiter, status);
        if (status == Status::ok) put_at(to + block, i, bytes, word);
      }
    }
    return end(all, status);
  }

 private:
  IST_DEVICE_CODE bool begins(std::uint64_t bytes) {
    if (bytes > kCallBytes || view_.pes > kMaxPes || crew_.blocks > static_cast<unsigned>(kMaxBlocks)) return false;
    ++call_;
    return true;
  }
  // Until every PE is through with the call that used this call's slots: each thread asks for some of them, and they agree. Each block of a
  // grid asks for all.
  IST_DEVICE_CODE Status wait_for_all(std::uint64_t deadline) {
    const Control& own = control_of(view_, view_.pe);
    Status status = Status::ok;
    for (int pe = static_cast<int>(crew_.thread); pe < view_.pes && status == Status::ok;
         pe += static_cast<int>(crew_.threads))
      if (pe != view_.pe) {
        std::uint32_t finished = load_taken(&own.peers[pe].finished);
        status = wait_for_slot(view_, &own.peers[pe].finished, finished, call_, deadline);
      }
    return agreed(crew_, status);
  }
  IST_DEVICE_CODE static std::uint64_t word_of(const unsigned char* from, std::uint32_t unit, std::uint64_t bytes) {
    return word_at(from + std::uint64_t{unit} * 8, static_cast<std::uint32_t>(bytes) - unit * 8);
  }
  IST_DEVICE_CODE static void put_at(unsigned char* to, std::uint32_t unit, std::uint64_t bytes, std::uint64_t word) {
    put_word(to + std::uint64_t{unit} * 8, word, static_cast<std::uint32_t>(bytes) - unit * 8);
  }
  IST_DEVICE_CODE void tell(int pe, std::uint32_t unit, const unsigned char* from, std::uint64_t bytes) const {
    store_relaxed(&slot_of(view_, pe, view_.pe, kCallChannel, call_)[unit],
                  packed(number_of(call_), word_of(from, unit, bytes)));
  }
  IST_DEVICE_CODE std::uint64_t hear(int pe, std::uint32_t unit, Waiter& waiter, Status& status) const {
    std::uint64_t word = 0;
    if (status == Status::ok)
      status = await(&slot_of(view_, view_.pe, pe, kCallChannel, call_)[unit], number_of(call_), waiter, word);
    return word;
  }
  // Everybody learns that this PE is through, also those that told it nothing: they may in the call after the next. Relaxed, as
  // for messages.
  IST_DEVICE_CODE Status end(Gathering<Crew>& all, Status status) {
    if (rarely(cleans(call_))) {
      status = all.agree(status);
      if (status != Status::ok) return status;  // guard SECOND_IF_OK of models/gathering.pml
      for (int pe = 0; pe < view_.pes; ++pe) clean(crew_, slot_of(view_, view_.pe, pe, kCallChannel, call_), kCallBytes);
    }
    const auto count = [&] {
      store_relaxed(&control_of(view_, view_.pe).calls, call_);
      return Status::ok;
    };
    status = crew_.blocks == 1 ? agreed(crew_, status) : all.meet(status, count);
    if (status != Status::ok) return status;
    for (int pe = static_cast<int>(crew_.thread); crew_.block == 0 && pe < view_.pes; pe += static_cast<int>(crew_.threads))
      if (pe != view_.pe) store_taken(&control_of(view_, pe).peers[view_.pe].finished, call_);
    // Another object's number is read after that. A grid's blocks read it when they have left the meeting.
    return crew_.blocks == 1 ? counted(count) : status;
  }
  template <class Count>
  IST_DEVICE_CODE Status counted(const Count& count) const {
    if (crew_.thread == 0) count();
    crew_.sync();
    return Status::ok;
  }

  const Crew crew_;
  const ist_team_view view_;
  std::uint32_t call_;
};

template <class Operation, class T, class Crew>
IST_DEVICE_CODE Status allreduce(const Crew& crew, const ist_team_view& view, T* result, const T* source,
                                 std::uint64_t count, std::uint64_t deadline = 0) {
  return Calls<Crew>(crew, view).template allreduce<Operation>(result, source, count, deadline);
}
template <class Crew>
IST_DEVICE_CODE Status broadcast(const Crew& crew, const ist_team_view& view, void* result, const void* source,
                                 std::uint64_t bytes, int root, std::uint64_t deadline = 0) {
  return Calls<Crew>(crew, view).broadcast(result, source, bytes, root, deadline);
}
template <class Crew>
IST_DEVICE_CODE Status alltoall(const Crew& crew, const ist_team_view& view, void* result, const void* source,
                                std::uint64_t bytes, std::uint64_t deadline = 0) {
  return Calls<Crew>(crew, view).alltoall(result, source, bytes, deadline);
}

}  // namespace ist::device

#endif
