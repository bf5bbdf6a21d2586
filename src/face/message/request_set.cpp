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
  const auto running = found->world->engine().last_start(found->operation);
  if (!running) return Awaited{};
  return Awaited{found->world, found->operation, *running, true};
}

void settle(const Awaited& done, ist_request* request) {
  if (!done.persistent) {
    *request = IST_REQUEST_NULL;
    return;
  }
  const std::lock_guard lock(done.world->engine().lock());
  done.world->engine().make_inactive(done.request);
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

// Under the lock of its engine.
bool RequestSet::is_complete(const Awaited& one) const {
  if (one.operation.value == 0) return true;
  const Operation* const found = one.world->engine().find(one.operation);
  return found == nullptr || Engine::complete(*found);
}

RequestSet::Look RequestSet::look_at_all(int most) const {
  Look seen;
  // Only the first world can wake this thread: with several, the others are looked at now and then.
  seen.must_poll = worlds_.size() > 1;
  for (World* world : worlds_) {
    const std::lock_guard lock(world->engine().lock());
    seen.moved |= world->engine().progress();
    seen.must_poll |= world->engine().must_poll();
    for (int i = 0; i < size() && static_cast<int>(seen.complete.size()) < most; ++i)
      if (at(i).world == world && is_complete(at(i))) seen.complete.push_back(i);
  }
  std::sort(seen.complete.begin(), seen.complete.end());
  return seen;
}

std::vector<int> RequestSet::wait_for(int least, int most) const {
  if (nothing()) return {};
  Look seen = look_at_all(most);
  if (static_cast<int>(seen.complete.size()) >= least) return seen.complete;
  Engine& first = worlds_.front()->engine();
  Patience patience{first, [this, least] {
                      return std::count_if(requests_.begin(), requests_.end(), [this](const Awaited& one) {
                               return one.world == worlds_.front() && is_complete(one);
                             }) >= least;
                    }};
  do {
    patience.after_look(seen.moved, seen.must_poll);
    seen = look_at_all(most);
  } while (static_cast<int>(seen.complete.size()) < least);
  return seen.complete;
}

void RequestSet::tell_of_test() const {
  for (World* const world : worlds_) {
    if (!world->nccl().known().any()) continue;
    const std::lock_guard lock(world->engine().lock());
    for (const Awaited& one : requests_)
      if (one.world == world) world->nccl().known().tested(one.operation);
  }
}

Outcome RequestSet::take(int position) {
  const Awaited& done = at(position);
  Outcome outcome = from_nobody();
  if (done.operation.value != 0) {
    const std::lock_guard lock(done.world->engine().lock());
    if (done.world->engine().find(done.operation) == nullptr) {
      outcome.status = {IST_ERR_HANDLE, "this request is named twice, or was completed by another thread meanwhile"};
      return outcome;
    }
    outcome = done.world->engine().take(done.operation);
  }
  settle(done, &handles_[position]);
  return outcome;
}

}  // namespace ist
