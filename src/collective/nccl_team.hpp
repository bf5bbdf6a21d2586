// The NCCL communicator of one communicator of ours: made at the first call that all ranks agree to hand over, and given up
// for good where it fails.
//
// Who calls this : nccl_call.cpp; communicators hold it, and so do their calls under way.
// Threads        : under the engine's lock, but for make_id() and twin(). Whatever of NCCL's may wait for other ranks is done
//                  in threads of Nccl, and asked after.
// Ownership      : owns NCCL's communicator and the stream in which its kernels run.
// Errors         : returned, with NCCL's own words.
//
// It is made so that it waits for nothing, and can be given up meanwhile; but such a one starts a thread for every call, which takes 56 to 84 us of
// the host (two H200, NCCL 2.28.9, 2026-11-26; tools/peers/nccl_ways.cu). So calls of ist_allreduce and the like go by a child of it that may
// wait, where they take 8 to 12: for the other ranks, if NCCL has first to connect what carries the call. That is done in a thread, and calls with
// the same operation, type, root and count are handed over at once from then on. Calls in users' streams, which have the host wait, go by the
// first; and so do all where NCCL is older than 2.19.1, which could not yet be aborted while another thread is inside.
//
// Calls take their turn in the order in which they were started, which is the same on every rank: NCCL starts them in that
// order, also where the agreement on a later one was reached first.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "collective/communicator.hpp"
#include "collective/nccl.hpp"
#include "memory/guests.hpp"

namespace ist {

class NcclCall;

// One rank's part of a call, as NCCL is to be given it.
struct NcclWork {
  ChosenCall what = ChosenCall::allreduce;
  Piece send;
  Piece recv;
  std::uint64_t count = 0;  // of `type`: of the vector, or of one part
  nccl::Type type = nccl::Type::uint8;
  nccl::Operation operation = nccl::Operation::sum;
  int root = 0;
  bool usable = true;  // false: the buffers lie as NCCL cannot take them
};

class NcclTeam : public std::enable_shared_from_this<NcclTeam> {
 public:
  // fresh: nothing was made. opening: one is being made. open: all ranks have it. off: making it failed, on all ranks.
  enum class State : std::uint8_t { fresh, opening, open, off };

  // `number`: which of a communicator's teams, so that their ends are not taken for each other.
  NcclTeam(Nccl& nccl, Engine& engine, const Scope& scope, const std::string& name, const CollectiveProfile& machine,
           int number);
  ~NcclTeam();
  NcclTeam(const NcclTeam&) = delete;
  NcclTeam& operator=(const NcclTeam&) = delete;

  Nccl& nccl() { return nccl_; }
  // The same ranks without NCCL, for calls that go by messages after all; it outlives the user's own.
  const Communicator& twin() const { return twin_; }
  State state() const { return state_; }
  // Is NCCL there by what the program has done so far, whatever the engines of the ranks have come to? Under the engine's lock; `streams_used`: of
  // this process, Guests. Then it stays so.
  bool learn(bool streams_used);
  void settle() { settled_ = true; }
  const std::shared_ptr<NcclKnown::Team>& known() const { return known_of_it_; }
  // Why this rank can take part in no further call; the others may not know yet.
  const Status& broken() const { return broken_; }
  // The world ends: this takes no lock of the engine's any more.
  void end_twin() { twin_.end(); }

  // Of the first rank, for all: once, outside the lock, since NCCL looks for its network.
  Result<nccl::UniqueId> make_id();

  // The calls under way, and whose turn it is.
  void enter(NcclCall* call);
  bool is_turn(const NcclCall* call) const { return !waiting_.empty() && waiting_.front() == call; }
  void end_turn(const NcclCall* call) { std::erase(waiting_, call); }
  void forget(NcclCall* call);
  // The world ends: the other ranks hear that no call under way will end here.
  void farewell();

  // No call comes any more. NCCL's communicator ends on this rank when it has done with it on every rank: until then the
  // others' kernels may reach into this one's memory. parted(): that is over, or needs no waiting for.
  void retire();
  bool parted();

  // Begins to make NCCL's communicator: on `device`; the GPUs of all ranks are `identities`. `setup`: Guests::begin_setup(), which is held
  // as long as the call is; null where the program has been told that streams must not wait meanwhile.
  Status begin_opening(int device, const nccl::UniqueId& id, std::vector<std::uint64_t> identities,
                       std::shared_ptr<void> setup);
  // True when this rank has it.
  Result<bool> opened();
  // What all ranks have said of it.
  void end_opening(bool everywhere);
  const std::vector<std::uint64_t>& identities() const { return identities_; }

  // Hands the work over, behind `after` on the device; NCCL is ready for the next when started() says so.
  Status start(const NcclWork& work, const std::vector<Ticket>& after);
  // The same in a stream of the user's, of the device; calls of one team all go one way or all the other.
  Status put(const NcclWork& work, std::uint64_t stream);
  Result<bool> started();
  // What is in the user's stream by now is remembered until it is over; what comes later ends later.
  Status remember(std::uint64_t stream);
  // Is something in users' streams not over yet? They may hold work of the user's that comes first and takes its time.
  bool busy();
  // Why such work was ended before it was over; ok: none was.
  const Status& given_up() const { return given_up_; }
  Result<Ticket> mark() { return stream_->mark(); }

  // Ends whatever kernels still run, on this rank, in the background; closed() when that is done.
  void break_off(const Status& why);
  bool closed() const { return !closing_ || closing_->load(std::memory_order_acquire); }

 private:
  // What the thread that makes the communicator tells.
  struct Opening {
    explicit Opening(bool split) : calls_wait(split) {}
    const bool calls_wait;
    nccl::Comm parent = nullptr;
    nccl::Comm comm = nullptr;
    const char* call = "";  // which failed
    std::string words;
    std::atomic<bool> over{false};
    std::atomic<bool> given_up{false};
  };
  // Hands one call over, in a thread that may be there longer than the team.
  struct Handing {
    const nccl::Api& api;
    nccl::Comm comm;
    std::shared_ptr<GuestStream> own;
    int ranks;
    std::string name;  // of our communicator
    Status result{};
    // Who has not entered NCCL when the communicator is given up stays outside; who is inside comes out when it is aborted.
    enum class Stage : std::uint8_t { outside, inside, given_up };
    mutable std::atomic<Stage> stage{Stage::outside};
    std::atomic<bool> over{false};

    Handing(const nccl::Api& its_api, nccl::Comm its_comm, std::shared_ptr<GuestStream> stream, int size, std::string of)
        : api(its_api), comm(its_comm), own(std::move(stream)), ranks(size), name(std::move(of)) {}
    Status put(const NcclWork& work, std::uint64_t stream) const;
    nccl::Code call(const NcclWork& work, nccl::Stream stream) const;
    nccl::Code exchange_parts(const NcclWork& work, nccl::Stream stream) const;
  };
  // Calls of one shape take one way through NCCL.
  using Shape = std::tuple<ChosenCall, std::uint64_t, nccl::Type, nccl::Operation, int>;
  class Closer;
  void part();
  void close();
  static bool wait_until_ready(const nccl::Api& api, nccl::Comm comm, const char* call, Opening& opening);
  static void make(const nccl::Api& api, int ranks, int rank, const nccl::UniqueId& id, Opening& opening);
  Status failed(const char* call, nccl::Code code) const;

  Nccl& nccl_;
  Communicator twin_;
  const int number_;
  const bool calls_wait_;
  State state_ = State::fresh;
  bool settled_ = false;
  const std::shared_ptr<NcclKnown::Team> known_of_it_ = std::make_shared<NcclKnown::Team>();
  Status broken_;
  std::optional<nccl::UniqueId> id_;
  std::deque<const NcclCall*> waiting_;  // whose turn is still to come, in order
  std::vector<NcclCall*> calls_;         // all that are not over
  std::vector<std::uint64_t> identities_;
  std::shared_ptr<Opening> opening_;
  std::shared_ptr<Handing> handing_;  // of the call that is started
  Shape handed_{};
  std::set<Shape> known_;  // connected
  std::chrono::steady_clock::time_point deadline_;
  std::shared_ptr<GuestStream> stream_;
  nccl::Comm comm_ = nullptr;
  Ticket last_;  // of what was put into users' streams
  Status given_up_;
  bool retired_ = false;
  bool parting_ = false;
  std::shared_ptr<std::atomic<bool>> closing_;
};

}  // namespace ist
