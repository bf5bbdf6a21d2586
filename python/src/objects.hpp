// Python objects as messages: a head that announces the pickled bytes, or holds them, and a body for those that are long.
//
// Who calls this : comm.cpp's calls for objects, defined in objects.cpp.
// Threads        : as every operation.
// Ownership      : a send keeps the pickled bytes, a receive the memory they arrive in.
// Errors         : in the outcome, as every operation.
#pragma once

#include <array>
#include <cstddef>

#include "comm.hpp"

namespace isthmus_python {

nb::bytes pickle(nb::handle object);
// Of collective_objects.cpp: everybody's objects, on every rank or on the root, where the others have none.
nb::list allgather_object(const Comm& self, nb::handle object);
nb::object gather_object(const Comm& self, nb::handle object, int root);

struct Head {
  std::uint64_t length = 0;  // of the pickled bytes
  std::uint32_t serial = 0;  // tag of the body: no other message of this sender has it
  std::uint32_t inside = 0;  // 1: the bytes follow at once
};
inline constexpr std::size_t kHeadBytes = 4096;
inline constexpr std::size_t kInside = kHeadBytes - sizeof(Head);

class ObjectSend final : public Operation {
 public:
  // synchronous: over once a receive has taken it.
  ObjectSend(std::shared_ptr<Channels> channels, nb::bytes pickled, bool synchronous = false);
  // Starts body and head; a code of the library.
  int start(int dest, int tag);
  // Also where start() was refused.
  bool under_way() const { return body_flight_.pending(); }

 protected:
  bool step(Outcome& outcome) override;

 private:
  std::shared_ptr<Channels> channels_;
  nb::bytes pickled_;
  bool synchronous_;
  std::array<std::byte, kHeadBytes> head_;
  Flight head_flight_;
  Flight body_flight_;
  bool head_done_ = false;
  bool body_done_ = false;
};

class ObjectReceive final : public Operation {
 public:
  explicit ObjectReceive(std::shared_ptr<Channels> channels) : channels_(whole(std::move(channels))) {}
  int start(int source, int tag);
  bool staged() const override { return true; }
  // What arrives is seen by whoever has the request.
  bool ends_with_request() const override { return true; }
  // Once complete without error: what was sent; None from PROC_NULL, and if it was cancelled.
  nb::object load() const;

 protected:
  bool step(Outcome& outcome) override;
  void give_up() override {
    if (!headed_) flight_.cancel();
  }

 private:
  bool announces() const { return announced_.source != IST_PROC_NULL && announced_.code != IST_CANCELLED; }
  bool take_head(Outcome& outcome);
  std::shared_ptr<Channels> channels_;
  std::array<std::byte, kHeadBytes> head_;
  std::unique_ptr<std::byte[]> body_;
  Flight flight_;
  bool headed_ = false;
  ist_status announced_{};
};

class ObjectRequest final : public Pending {
 public:
  using Pending::Pending;
  nb::object result() override;

 private:
  nb::object loaded_;
};

}  // namespace isthmus_python
