// C calls that wait for requests, test them, and let go of them.
#include <mutex>
#include <optional>
#include <utility>

#include "base/ranges.hpp"
#include "face/message/at_once.hpp"
#include "face/message/awaits.hpp"
#include "face/message/errors.hpp"
#include "face/message/request_set.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// The caller goes on only when the request is over; `though_tested`: and would if a test had found it over.
void tell_of_wait(ist_request request, bool though_tested) {
  const OperationName named = operation_named(request);
  if (named.world == nullptr || !named.world->nccl().known().any()) [[likely]]
    return;
  const std::lock_guard lock(named.world->engine().lock());
  named.world->nccl().known().awaited(named.id, though_tested);
}

// Also of a request that is complete, or null.
[[gnu::noinline]] int wait_the_long_way(const char* call, ist_request* request, ist_status* status) {
  const auto one = awaited(*request);
  if (!one.ok()) {
    if (status != nullptr) *status = {IST_ANY_SOURCE, IST_ANY_TAG, IST_ERR_HANDLE, IST_CARRIER_NONE, 0};
    return report(in_call(call, one.status()));
  }
  if (one->world == nullptr) {
    set_empty(status, IST_ANY_SOURCE);
    return IST_OK;
  }
  tell_of_wait(*request, false);
  const Outcome outcome = one->operation.value == 0 ? from_nobody() : wait_for(one->world->engine(), one->operation);
  settle(*one, request);
  return finish(call, outcome, status);
}

bool of_several_worlds(int count, const ist_request* requests) {
  const World* first = nullptr;
  for (int i = 0; i < count; ++i) {
    const World* const world = operation_named(requests[i]).world;
    if (world == nullptr) continue;
    if (first != nullptr && world != first) return true;
    first = world;
  }
  return false;
}

// One after the other would move one world at a time, and another rank may wait in another one.
void wait_in_all_worlds(int count, ist_request* requests) {
  const auto set = RequestSet::of(count, requests);
  if (set.ok()) set->wait_for_all();  // or what is wrong is told of the request that it is wrong with
}

int several(const char* call, int failed, int count, const std::string& first) {
  if (failed == 0) return IST_OK;
  return report(IST_ERR_IN_STATUS,
                std::string{call} + ": " + std::to_string(failed) + " of " + std::to_string(count) + " failed; " + first);
}

// Takes the outcomes at these positions; statuses are in the order of the positions.
int take_all(const char* call, RequestSet& set, const std::vector<int>& positions, ist_status* statuses) {
  std::string first;
  int failed = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::string name = "request " + std::to_string(positions[i]);
    if (finish(name.c_str(), set.take(positions[i]), statuses != nullptr ? &statuses[i] : nullptr) == IST_OK) continue;
    if (failed++ == 0) first = ist_error_text();
  }
  return several(call, failed, static_cast<int>(positions.size()), first);
}

int some(const char* call, RequestSet& set, const std::vector<int>& positions, int* completed, int* indices,
         ist_status* statuses) {
  *completed = set.nothing() ? IST_UNDEFINED : static_cast<int>(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) indices[i] = positions[i];
  return take_all(call, set, positions, statuses);
}

int any(const char* call, RequestSet& set, const std::vector<int>& positions, int* index, ist_status* status) {
  *index = IST_UNDEFINED;
  if (positions.empty()) {
    set_empty(status, IST_ANY_SOURCE);
    return IST_OK;
  }
  *index = positions.front();
  return finish(call, set.take(*index), status);
}

}  // namespace
}  // namespace ist

extern "C" {

void ist_private_awaits(ist_request request) { ist::tell_of_wait(request, true); }

int ist_test(ist_request* request, int* completed, ist_status* status) try {
  if (request == nullptr || completed == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_test: request and completed must not be null");
  *completed = 1;
  const auto one = ist::awaited(*request);
  if (!one.ok()) return ist::report(ist::in_call("ist_test", one.status()));
  if (one->world == nullptr) {
    ist::set_empty(status, IST_ANY_SOURCE);
    return IST_OK;
  }
  ist::Engine& engine = one->world->engine();
  ist::Outcome outcome = ist::from_nobody();
  {
    const std::lock_guard lock(engine.lock());
    if (one->world->nccl().known().any()) one->world->nccl().known().tested(one->operation);
    *completed = one->operation.value == 0 ? 1 : 0;  // also where the look runs out of memory
    engine.progress();
    if (one->operation.value != 0) {
      *completed = ist::Engine::complete(*engine.find(one->operation)) ? 1 : 0;
      if (*completed == 0) return IST_OK;
      outcome = engine.take(one->operation);
    }
  }
  ist::settle(*one, request);
  return ist::finish("ist_test", outcome, status);
} catch (...) {
  return ist::report_exception("ist_test");
}

int ist_wait(ist_request* request, ist_status* status) try {
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_wait: request is null");
  if (!ist::Range::told() && ist::finish_in_a_row(1, request, status) == 1) [[likely]]
    return IST_OK;
  const ist::Range range("ist_wait");
  return ist::wait_the_long_way("ist_wait", request, status);
} catch (...) {
  return ist::report_exception("ist_wait");
}

int ist_waitall(int count, ist_request* requests, ist_status* statuses) try {
  const ist::Range range("ist_waitall");
  if (count < 0) return ist::report(IST_ERR_ARGUMENT, "ist_waitall: count is " + std::to_string(count));
  if (count > 0 && requests == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_waitall: requests is null");
  std::string first;
  int failed = 0;
  bool in_one = false;  // the rest is of one world, or complete
  for (int i = 0; i < count;) {
    if (const int over = ist::finish_in_a_row(count - i, requests + i, statuses != nullptr ? statuses + i : nullptr);
        over > 0) {
      i += over;
      continue;
    }
    if (!std::exchange(in_one, true) && ist::of_several_worlds(count - i, requests + i))
      ist::wait_in_all_worlds(count - i, requests + i);
    const int code = ist::wait_the_long_way("ist_waitall", &requests[i], statuses != nullptr ? &statuses[i] : nullptr);
    ++i;
    if (code == IST_OK) continue;
    if (failed++ == 0) first = "request " + std::to_string(i - 1) + ": " + ist_error_text();
  }
  return ist::several("ist_waitall", failed, count, first);
} catch (...) {
  return ist::report_exception("ist_waitall");
}

int ist_testall(int count, ist_request* requests, int* completed, ist_status* statuses) try {
  if (completed == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_testall: completed is null");
  *completed = 0;
  auto set = ist::RequestSet::of(count, requests);
  if (!set.ok()) return ist::report(ist::in_call("ist_testall", set.status()));
  set->tell_of_test();
  if (!set->look_for_all()) return IST_OK;
  *completed = 1;
  std::string first;
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    ist_status* status = statuses != nullptr ? &statuses[i] : nullptr;
    if (set->at(i).world == nullptr) {
      ist::set_empty(status, IST_ANY_SOURCE);
    } else if (ist::finish(("request " + std::to_string(i)).c_str(), set->take(i), status) != IST_OK && failed++ == 0) {
      first = ist_error_text();
    }
  }
  return ist::several("ist_testall", failed, count, first);
} catch (...) {
  return ist::report_exception("ist_testall");
}

int ist_waitany(int count, ist_request* requests, int* index, ist_status* status) try {
  const ist::Range range("ist_waitany");
  if (index == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_waitany: index is null");
  *index = IST_UNDEFINED;
  auto set = ist::RequestSet::of(count, requests);
  if (!set.ok()) return ist::report(ist::in_call("ist_waitany", set.status()));
  set->tell_of_test();
  return ist::any("ist_waitany", *set, set->wait_for_some(1), index, status);
} catch (...) {
  return ist::report_exception("ist_waitany");
}

int ist_testany(int count, ist_request* requests, int* index, int* completed, ist_status* status) try {
  if (index == nullptr || completed == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_testany: index and completed must not be null");
  *index = IST_UNDEFINED;
  *completed = 0;
  auto set = ist::RequestSet::of(count, requests);
  if (!set.ok()) return ist::report(ist::in_call("ist_testany", set.status()));
  set->tell_of_test();
  const int code = ist::any("ist_testany", *set, set->look(1), index, status);
  *completed = set->nothing() || *index != IST_UNDEFINED ? 1 : 0;
  return code;
} catch (...) {
  return ist::report_exception("ist_testany");
}

int ist_waitsome(int count, ist_request* requests, int* completed, int* indices, ist_status* statuses) try {
  const ist::Range range("ist_waitsome");
  if (completed == nullptr || (count > 0 && indices == nullptr))
    return ist::report(IST_ERR_ARGUMENT, "ist_waitsome: completed and indices must not be null");
  *completed = 0;
  auto set = ist::RequestSet::of(count, requests);
  if (!set.ok()) return ist::report(ist::in_call("ist_waitsome", set.status()));
  set->tell_of_test();
  return ist::some("ist_waitsome", *set, set->wait_for_some(set->size()), completed, indices, statuses);
} catch (...) {
  return ist::report_exception("ist_waitsome");
}

int ist_testsome(int count, ist_request* requests, int* completed, int* indices, ist_status* statuses) try {
  if (completed == nullptr || (count > 0 && indices == nullptr))
    return ist::report(IST_ERR_ARGUMENT, "ist_testsome: completed and indices must not be null");
  *completed = 0;
  auto set = ist::RequestSet::of(count, requests);
  if (!set.ok()) return ist::report(ist::in_call("ist_testsome", set.status()));
  set->tell_of_test();
  return ist::some("ist_testsome", *set, set->look(set->size()), completed, indices, statuses);
} catch (...) {
  return ist::report_exception("ist_testsome");
}

int ist_cancel(ist_request request) try {
  if (request == IST_REQUEST_NULL) return IST_OK;  // complete since it was started
  const auto one = ist::awaited(request);
  if (!one.ok()) return ist::report(ist::in_call("ist_cancel", one.status()));
  if (one->world == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_cancel: the request is inactive; there is nothing to cancel");
  const std::lock_guard lock(one->world->engine().lock());
  if (one->operation.value == 0) return IST_OK;
  one->world->nccl().let_go(one->world->engine(), one->operation);
  one->world->engine().cancel(one->operation);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_cancel");
}

int ist_request_free(ist_request* request) try {
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_request_free: request is null");
  if (*request == IST_REQUEST_NULL) return IST_OK;  // complete since it was started
  const auto found = ist::look_up(*request);
  if (!found.ok()) return ist::report(ist::in_call("ist_request_free", found.status()));
  const std::lock_guard lock(found->world->engine().lock());
  found->world->nccl().let_go(found->world->engine(), found->operation);
  found->world->engine().forget(found->operation);
  *request = IST_REQUEST_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_request_free");
}
}
