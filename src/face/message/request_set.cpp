#include "face/message/request_set.hpp"

#include <algorithm>
#include <mutex>

#include "face/message/calls.hpp"
#include "request/wait.hpp"

namespace ist {

Result<Awaited> awaited(ist_request request) {
  if (request == IST_REQUEST_NULL) return Awaited{};
  const auto found = look_up(request);
  if (!found.ok()) return found.status();
  if (!found->persistent) return Awaited{found->world, found->operation, found->operation, false};
  const std::lock_guard lock(found->world->engine().lock());
  const auto& state = std::get<state::Persistent>(found->world->engine().find(found->operation)->state);
  if (!state.started) return Awaited{};
  return Awaited{found->world, found->operation, state.running, true};
}

void settle(const Awaited& done, ist_request* request) {
  if (!done.persistent) {
    *request = IST_REQUEST_NULL;
    return;
  }
  const std::lock_guard lock(done.world->engine().lock());
  auto& state = std::get<state::Persistent>(done.world->engine().find(done.request)->state);
  state.running = {};
  state.started = false;
}

Result<RequestSet> RequestSet::of(int count, ist_request* requests) {
  if (count < 0) return Status{IST_ERR_ARGUMENT, "count is " + std::to_string(count) + "; it must be 0 or more"};
  if (count > 0 && requests == nullptr) return Status{IST_ERR_ARGUMENT, "requests is null"};
  RequestSet set;
  set.handles_ = requests;
  for (int i = 0; i < count; ++i) {
    const auto one = awaited(requests[i]);
    if (!one.ok()) return Status{one.status().code(), "request " + std::to_string(i) + ": " + one.status().text()};
    set.requests_.push_back(*one);
    if (one->world == nullptr) continue;
    ++set.present_;
    if (std::find(set.worlds_.begin(), set.worlds_.end(), one->world) == set.worlds_.end())
      set.worlds_.push_back(one->world);
  }
  return set;
}

bool RequestSet::progress() {
  bool moved = false;
  for (World* world : worlds_) {
    const std::lock_guard lock(world->engine().lock());
    moved |= world->engine().progress();
  }
  return moved;
}

// Under the lock of its engine.
bool RequestSet::is_complete(const Awaited& one) const {
  return one.world != nullptr && (one.operation.value == 0 || Engine::complete(*one.world->engine().find(one.operation)));
}

std::vector<int> RequestSet::complete(int most) const {
  std::vector<int> found;
  for (int i = 0; i < size() && static_cast<int>(found.size()) < most; ++i) {
    if (at(i).world == nullptr) continue;
    const std::lock_guard lock(at(i).world->engine().lock());
    if (is_complete(at(i))) found.push_back(i);
  }
  return found;
}

void RequestSet::wait_for_one() {
  if (nothing() || !complete(1).empty()) return;
  Engine& first = worlds_.front()->engine();
  // Only the first world can wake this thread: with several, the others are looked at now and then.
  Patience patience{first, [this, &first] {
                      return std::any_of(requests_.begin(), requests_.end(), [&](const Awaited& one) {
                        return one.world != nullptr && &one.world->engine() == &first && is_complete(one);
                      });
                    }};
  for (;;) {
    const bool moved = progress();
    if (!complete(1).empty()) return;
    bool must_poll = worlds_.size() > 1;
    {
      const std::lock_guard lock(first.lock());
      must_poll |= first.must_poll();
    }
    patience.after_look(moved, must_poll);
  }
}

Outcome RequestSet::take(int position) {
  const Awaited& done = at(position);
  Outcome outcome = from_nobody();
  if (done.operation.value != 0) {
    const std::lock_guard lock(done.world->engine().lock());
    outcome = done.world->engine().take(done.operation);
  }
  settle(done, &handles_[position]);
  return outcome;
}

}  // namespace ist
