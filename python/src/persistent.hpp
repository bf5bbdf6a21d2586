// Python's PersistentRequest: a send or receive that is made once and started as often as wanted.
//
// Who calls this : comm.cpp makes them; module.cpp binds the class.
// Threads        : the caller holds the GIL; one thread at a time uses such a request.
// Ownership      : keeps its buffer and its communicator, also between starts, and until the last start is complete.
// Errors         : raised; those of an operation by wait and test, as of every request.
#pragma once

#include "comm.hpp"
#include "view_layout.hpp"

namespace isthmus_python {

class Persistent final : public Operation {
 public:
  Persistent(std::shared_ptr<Channels> channels, Call init, int peer, int tag);
  ~Persistent() override;
  const Region& region() const { return region_; }
  // Without the GIL: the library's request for that place, instead of one that there may be, which stays where the code of the
  // library is an error. place() must follow. `layout`: of a region with gaps.
  int make(const Region& region, const ViewLayout* layout);
  // With the GIL.
  void place(Region region) { region_ = std::move(region); }
  int start();

 protected:
  bool step(Outcome& outcome) override;
  void give_up() override { flight_.cancel(); }

 private:
  std::shared_ptr<Channels> channels_;
  Call init_;
  int peer_;
  int tag_;
  Region region_;
  Flight flight_;
};

class PersistentRequest final : public Pending {
 public:
  // `object`: the buffer as the user named it, which is looked at again when device memory is started.
  PersistentRequest(std::shared_ptr<Session> session, std::shared_ptr<Persistent> operation, nb::handle object,
                    Access access);
  void start();
  // Device memory as it is now, if it is no longer what the library's request was made for.
  std::optional<Region> moved() const;
  bool is_there() const override { return active_; }
  nb::object result() override { return status(); }

 protected:
  void told() override { active_ = false; }
  void forget() override { object_.reset(); }

 private:
  nb::object object_;
  Access access_;
  bool active_ = false;
};

void bind_persistent(nb::module_& module);
void bind_persistent_calls(Bound<Comm>& comm);

}  // namespace isthmus_python
