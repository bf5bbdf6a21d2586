// The calls on several requests at once: waitall, waitany, waitsome, testall, testany, testsome.
#include <algorithm>

#include "errors.hpp"
#include "request.hpp"
#include "wait.hpp"

namespace isthmus_python {

// Those of a list that are there, with their places in it; it keeps all of them alive.
struct RequestSet {
  explicit RequestSet(const nb::iterable& requests) {
    std::size_t index = 0;
    for (const nb::handle each : requests) {
      owners.push_back(nb::borrow(each));
      if (!nb::isinstance<Pending>(each))
        throw nb::type_error(("one of the requests is a " + nb::cast<std::string>(each.type().attr("__name__")) +
                              "; give what isend, irecv and the like returned")
                                 .c_str());
      all.push_back(nb::cast<Pending*>(each));
      const auto& operation = all.back()->operation();
      if (all.back()->is_there()) {
        there.push_back(index);
        operations.push_back(operation);
        if (Session* const session = all.back()->session().get();
            !operation->complete() && std::find(sessions.begin(), sessions.end(), session) == sessions.end())
          sessions.push_back(session);
      }
      ++index;
    }
  }
  bool complete(std::size_t index) const { return all[index]->operation()->complete(); }
  // Raises WaitallError if one of those with these indices failed; all of them have then been told of.
  void raise_if_failed(const char* call, const std::vector<std::size_t>& indices) const;

  std::vector<nb::object> owners;
  std::vector<Pending*> all;
  std::vector<std::size_t> there;
  std::vector<std::shared_ptr<Operation>> operations;  // of those that are there
  std::vector<Session*> sessions;                      // of those that are under way; a complete one needs no world any more
};

void RequestSet::raise_if_failed(const char* call, const std::vector<std::size_t>& indices) const {
  std::vector<nb::object> found(all.size());
  bool failed = false;
  for (const std::size_t index : indices) {
    found[index] = all[index]->error();
    failed = failed || found[index].is_valid();
  }
  if (!failed) return;
  nb::list statuses;
  nb::list errors;
  for (std::size_t index = 0; index < all.size(); ++index) {
    statuses.append(all[index]->status());
    errors.append(found[index].is_valid() ? found[index] : nb::none());
  }
  for (const std::size_t index : indices) all[index]->told();
  raise(nb::module_::import_("isthmus._errors")
            .attr("make_waitall_error")(call, ist_code_name(IST_ERR_IN_STATUS), statuses, errors));
}

namespace {

nb::list results_of_all(const char* call, const RequestSet& set) {
  std::vector<std::size_t> indices(set.all.size());
  for (std::size_t index = 0; index < indices.size(); ++index) indices[index] = index;
  set.raise_if_failed(call, indices);
  nb::list results;
  for (Pending* each : set.all) results.append(each->collect());
  return results;
}

nb::list results_of_some(const char* call, const RequestSet& set) {
  std::vector<std::size_t> indices;
  for (const std::size_t index : set.there)
    if (set.complete(index)) indices.push_back(index);
  set.raise_if_failed(call, indices);
  nb::list results;
  for (const std::size_t index : indices) results.append(nb::make_tuple(index, set.all[index]->collect()));
  return results;
}

nb::tuple waitany(const nb::iterable& requests) {
  const RequestSet set{requests};
  if (set.there.empty()) throw nb::value_error("waitany: there is no request to wait for");
  const std::size_t index = set.there[set.sessions.empty() ? 0 : wait_for_any(set.sessions, set.operations)];
  return nb::make_tuple(index, set.all[index]->collect());
}

nb::list waitall(const nb::iterable& requests) {
  const RequestSet set{requests};
  // Those of worlds in which nothing is under way any more are told of by themselves.
  for (Pending* each : set.all)
    if (each->operation()->complete()) each->tell_of_wait();
  if (!set.sessions.empty()) wait_for(set.sessions, set.operations);
  return results_of_all("waitall", set);
}

nb::list waitsome(const nb::iterable& requests) {
  const RequestSet set{requests};
  if (set.there.empty()) return {};
  if (!set.sessions.empty()) {
    wait_for_any(set.sessions, set.operations);
    look_at_all(set.sessions, set.operations);
  }
  return results_of_some("waitsome", set);
}

nb::object testany(const nb::iterable& requests) {
  const RequestSet set{requests};
  if (set.there.empty()) return nb::none();
  if (!set.sessions.empty()) look_at_all(set.sessions, set.operations);
  for (const std::size_t index : set.there)
    if (set.complete(index)) return nb::make_tuple(index, set.all[index]->collect());
  return nb::none();
}

nb::object testall(const nb::iterable& requests) {
  const RequestSet set{requests};
  if (!set.sessions.empty()) look_at_all(set.sessions, set.operations);
  for (const std::size_t index : set.there)
    if (!set.complete(index)) return nb::none();
  return results_of_all("testall", set);
}

nb::list testsome(const nb::iterable& requests) {
  const RequestSet set{requests};
  if (!set.sessions.empty()) look_at_all(set.sessions, set.operations);
  return results_of_some("testsome", set);
}

}  // namespace

void bind_request_sets(nb::module_& module) {
  using namespace nb::literals;
  define(module, "waitany", &waitany, "requests"_a,
         nb::sig("def waitany(requests: collections.abc.Iterable[PendingOperation]) -> tuple[int, typing.Any]"),
         "Index and result of the first that is complete; raises if it failed. Leave it out of the next call.");
  define(module, "waitall", &waitall, "requests"_a,
         nb::sig("def waitall(requests: collections.abc.Iterable[PendingOperation]) -> list"),
         "Waits for all, also when some fail, and gives what each wait() would; failures raise WaitallError.");
  define(module, "waitsome", &waitsome, "requests"_a,
         nb::sig("def waitsome(requests: collections.abc.Iterable[PendingOperation]) -> list[tuple[int, typing.Any]]"),
         "Waits for at least one: index and result of each that is complete. Leave them out of the next call.");
  define(module, "testany", &testany, "requests"_a,
         nb::sig("def testany(requests: collections.abc.Iterable[PendingOperation]) -> tuple[int, typing.Any] | None"),
         "As waitany; None if none is complete now.");
  define(module, "testall", &testall, "requests"_a,
         nb::sig("def testall(requests: collections.abc.Iterable[PendingOperation]) -> list | None"),
         "As waitall; None if not all are complete now.");
  define(module, "testsome", &testsome, "requests"_a,
         nb::sig("def testsome(requests: collections.abc.Iterable[PendingOperation]) -> list[tuple[int, typing.Any]]"),
         "As waitsome, of those that are complete now.");
}

}  // namespace isthmus_python
