#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <isthmus/boot.h>

#include "errors.hpp"
#include "gil.hpp"

namespace isthmus_python {
namespace {

constexpr std::size_t kSweepAtLeast = 16;
constexpr std::chrono::seconds kLastMoment{2};
// Of the thread that makes the steps of calls whose callers have left: they have waited already, and may do so for ever.
constexpr std::chrono::milliseconds kNap{1};

// Touched with the GIL only. Never destroyed: Python may outlive the statics of this file.
std::vector<std::weak_ptr<Session>>& open_sessions() {
  static auto* sessions = new std::vector<std::weak_ptr<Session>>;
  return *sessions;
}

// By the last word of the world's own settings that says it, or else by the variable.
std::string asked_for(const std::string& name, const char* variable, const std::string& settings) {
  const char* const set = std::getenv(variable);
  std::string asked = set == nullptr ? "" : set;
  std::istringstream words(settings);
  for (std::string word; words >> word;)
    if (word.starts_with(name + "=")) asked = word.substr(name.size() + 1);
  return asked;
}

bool must_give_way(ist_comm comm, const std::string& settings) {
  const std::string asked = asked_for("wait", "ISTHMUS_WAIT", settings);
  if (asked == "spin") return false;
  if (asked == "sleep") return true;
  int ranks = 1;
  return ist_comm_local_size(comm, &ranks) == IST_OK && ranks > sysconf(_SC_NPROCESSORS_ONLN);
}

// Python's signals wait for somebody who asks: Ctrl-C while the other ranks are not there yet.
int has_signal(void* /*context*/) {
  const nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals();
}

}  // namespace

Session::Session() : owner_(::getpid()) {}

std::shared_ptr<Session> Session::create(const Make& make, const std::string& settings) {
  std::shared_ptr<Session> made{new Session};
  int code = IST_OK;
  {
    const LetGo without_gil{made->inside_};
    ist_interrupt_with(has_signal, nullptr);
    code = make(&made->world_);
    ist_interrupt_with(nullptr, nullptr);
  }
  // What the handler of a signal raised.
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  check(code);
  ist_comm comm = IST_COMM_NULL;
  check(ist_world_comm(made->world_, &comm));
  made->crowded_ = must_give_way(comm, settings);
  made->one_thread_ = asked_for("threads", "ISTHMUS_THREADS", settings) == "single";
  auto& all = open_sessions();
  std::erase_if(all, [](const auto& each) { return each.expired(); });
  all.push_back(made);
  return made;
}

void Session::close_all() {
  const auto all = open_sessions();
  for (const auto& each : all)
    if (const auto session = each.lock()) {
      try {
        session->close();
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("isthmus: leaving a world at the interpreter's end");
      }
    }
  // Waits of other threads have failed by now; they come back before Python ends, or it would end them inside our frames.
  const nb::gil_scoped_release release;
  const auto deadline = std::chrono::steady_clock::now() + kLastMoment;
  while (threads_without_gil.load() != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

Session::~Session() {
  try {
    close();
  } catch (nb::python_error&) {
    // Nobody is left to tell: the world is gone either way.
  }
}

void Session::require_open() const {
  if (inside_function > 0)
    raise(IST_ERR_ARGUMENT, "the function of a reduction must not call the library; combine the two arrays, and no more");
  if (closed()) raise_closed();
}

ist_world Session::world() const {
  if (inside_function > 0) require_open();
  if (closed()) raise(IST_ERR_HANDLE, "the world was closed; make another isthmus.World");
  return world_;
}

void Session::raise_closed() {
  raise(IST_ERR_HANDLE, "the world was closed before this operation was complete; wait first");
}

void Session::close() {
  if (inside_function > 0) require_open();
  if (closing_.exchange(true)) return;
  // A forked child's copy: the world, and what is under way in it, are its parent's.
  if (owner_ != ::getpid()) return;
  int code = IST_OK;
  {
    const nb::gil_scoped_release release;
    const auto deadline = std::chrono::steady_clock::now() + kLastMoment;
    while (inside_.load() != 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    if (inside_.load() == 0) code = ist_world_destroy(&world_);
  }
  // Then the world and its buffers stay until the process ends: a library that is in use cannot be taken away.
  if (world_ != IST_WORLD_NULL && code == IST_OK)
    raise(IST_ERR_PENDING, "close: another thread is still inside a collective call of this world; join it first");
  left_ = true;
  // The library has let go of every buffer; dropping them may run any Python code, so not under the lock.
  std::vector<std::shared_ptr<Operation>> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(kept_);
    staged_ = 0;
    dead_comms_.clear();
    dead_requests_.clear();
  }
  dropped.clear();
  check(code);
}

void Session::keep(const std::shared_ptr<Operation>& operation) {
  // While the world is being left, the library may still write.
  if (left_ || operation->complete()) return;
  const std::lock_guard lock(mutex_);
  if (std::find(kept_.begin(), kept_.end(), operation) != kept_.end()) return;
  kept_.push_back(operation);
  if (operation->staged()) ++staged_;
}

void Session::forget(const std::shared_ptr<Operation>& operation) {
  if (!operation->staged()) return;
  const std::lock_guard lock(mutex_);
  if (stepping_) return;  // the next sweep does it
  const auto found = std::find(kept_.begin(), kept_.end(), operation);
  if (found == kept_.end()) return;
  kept_.erase(found);
  --staged_;
}

void Session::free_later(ist_comm comm) {
  const std::lock_guard lock(mutex_);
  if (!closed()) dead_comms_.push_back(comm);
}

void Session::free_later(ist_request request) {
  const std::lock_guard lock(mutex_);
  if (!closed()) dead_requests_.push_back(request);
}

void Session::progress() {
  if (!has_steps()) return;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || stepping_) return;
    stepping_ = true;
    steps_.clear();
    for (const auto& each : kept_)
      if (each->staged()) steps_.push_back(each.get());
  }
  for (Operation* each : steps_) each->advance();
  const std::lock_guard lock(mutex_);
  stepping_ = false;
}

void Session::go_on(Operation& operation) {
  operation.leave();
  if (closed() || one_thread_) return;  // nobody closes it meanwhile, since that takes the GIL
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(driven_, true)) return;
  }
  ++inside_;  // what is kept holds the session, and close() waits for who is inside
  try {
    std::thread([this] { drive(); }).detach();
  } catch (const std::system_error&) {  // then its steps are made in calls alone
    const std::lock_guard lock(mutex_);
    driven_ = false;
    --inside_;
  }
}

void Session::drive() {
  while (!closed()) {
    progress();
    {
      const std::lock_guard lock(mutex_);
      driven_ = any_left();
      if (!driven_) break;
    }
    std::this_thread::sleep_for(kNap);
  }
  --inside_;  // and then the session may be gone
}

bool Session::any_left() const {
  return std::any_of(kept_.begin(), kept_.end(), [](const auto& each) { return each->left(); });
}

bool Session::left_some() {
  const std::lock_guard lock(mutex_);
  return any_left();
}

void Session::sweep() {
  std::vector<std::shared_ptr<Operation>> looked_at;
  std::vector<std::shared_ptr<Operation>> done;
  std::vector<ist_comm> comms;
  std::vector<ist_request> requests;
  if (closed()) return;
  {
    const std::lock_guard lock(mutex_);
    comms.swap(dead_comms_);
    requests.swap(dead_requests_);
    if (kept_.size() <= kSweepAtLeast || kept_.size() >= sweep_at_) looked_at = kept_;
  }
  if (looked_at.empty() && comms.empty() && requests.empty()) return;
  {
    const LetGo without_gil{inside_};
    for (const auto& each : looked_at) each->advance();
    for (ist_comm& each : comms) ist_comm_free(&each);
    for (ist_request& each : requests) ist_request_free(&each);
  }
  const std::lock_guard lock(mutex_);
  if (stepping_) return;
  const auto end = std::partition(kept_.begin(), kept_.end(), [](const auto& each) { return !each->complete(); });
  done.assign(std::make_move_iterator(end), std::make_move_iterator(kept_.end()));
  kept_.erase(end, kept_.end());
  sweep_at_ = 2 * kept_.size();
  for (const auto& each : done)
    if (each->staged()) --staged_;
}

}  // namespace isthmus_python
