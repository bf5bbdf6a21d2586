// Where a process hands out what its loans name: descriptors, and answers about links. A Unix socket with a thread behind it.
//
// Who calls this : memory/cuda: a lender keeps a door, a borrower's mapping thread calls there.
// Threads        : the door's own thread asks its keeper; a call is one thread's.
// Ownership      : a door closes, and hangs up on every caller, when it goes; its keeper outlives it. A descriptor belongs to who took it.
// Errors         : returned by open() and to the caller: IST_ERR_SYSTEM where the door cannot be reached or nobody answers,
//                  IST_ERR_UNREACHABLE where it is in another network namespace, else what the keeper says; whoever is of
//                  another user or does not know the token is turned away.
//
// The sockets that ranks are given at start (boot/peers.hpp) serve whoever holds the world's lock, and what nobody takes out of them
// holds up the next one; here no message waits, and nothing is in flight that nobody reads. pidfd_getfd(2) would need no socket, but
// the right to trace the lender, which containers and Yama refuse.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"

namespace ist {

// The name is that of an abstract socket, which every local user sees; the token is not.
struct DoorAddress {
  std::array<std::uint64_t, 2> name{};  // the number of its network namespace, and a random one
  std::uint64_t token = 0;
};
static_assert(sizeof(DoorAddress) == 24 && std::is_trivially_copyable_v<DoorAddress>);

// One record, either way; what it means is the keeper's and the caller's affair.
struct DoorNote {
  std::uint32_t subject = 0;
  std::uint32_t refused = 0;  // of an answer: an ist_code, and the text says why
  std::uint64_t number = 0;
  std::uint64_t token = 0;  // filled in by the call
  std::array<std::byte, 64> bytes{};
  std::array<char, 480> text{};

  static DoorNote refusal(const Status& why);
  Status status() const;
};
static_assert(sizeof(DoorNote) == 568 && std::is_trivially_copyable_v<DoorNote>);

class Door {
 public:
  struct Answer {
    DoorNote note;
    FileDescriptor descriptor;  // none, or one that goes with it
  };
  // In the door's thread; none: nothing is answered. `kept` is the caller's until it hangs up.
  using Keeper = std::function<std::optional<Answer>(const DoorNote& asked, std::shared_ptr<void>& kept)>;
  // In the door's thread, about once a second after a call of will_tidy() and as long as it answers that something is left.
  using Tidier = std::function<bool()>;
  static Result<std::unique_ptr<Door>> open(Keeper keeper, Tidier tidier = {});
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  const DoorAddress& address() const { return address_; }
  // There is something to tidy.
  void will_tidy();

 private:
  struct Caller {
    FileDescriptor socket;
    std::shared_ptr<void> kept;
  };
  Door(Keeper keeper, Tidier tidier) : keeper_(std::move(keeper)), tidier_(std::move(tidier)) {}
  void run();
  void wake() const;
  void let_in(std::vector<Caller>& callers);
  // False: it is to be hung up on.
  bool hear(Caller& caller);

  const Keeper keeper_;
  const Tidier tidier_;
  DoorAddress address_;
  FileDescriptor listener_;
  FileDescriptor wake_;  // eventfd
  std::atomic<bool> ends_{false};
  std::atomic<bool> tidies_{false};
  std::thread thread_;
};

class DoorCall {
 public:
  // Waits a moment where the door has many callers; gives up once `ends` is set.
  static Result<DoorCall> connect(const DoorAddress& address, const std::atomic<bool>& ends);
  // A lender that is stopped, or busy with many others, answers in this time or is not waited for.
  static constexpr std::chrono::milliseconds kPatience{10000};
  // The answer, with the descriptor that came with it, if `taken` is given; an error if it is a refusal.
  Result<DoorNote> ask(const DoorNote& question, FileDescriptor* taken = nullptr,
                       std::chrono::milliseconds patience = kPatience);
  // Expects none.
  void tell(DoorNote note);

 private:
  DoorCall(FileDescriptor socket, std::uint64_t token, const std::atomic<bool>& ends)
      : socket_(std::move(socket)), token_(token), ends_(&ends) {}
  FileDescriptor socket_;
  std::uint64_t token_;
  const std::atomic<bool>* ends_;
};

}  // namespace ist
