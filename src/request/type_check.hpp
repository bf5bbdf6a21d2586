// Are messages made of the same basic types as their receives? Told beside each message, where the setting check asks for that.
//
// Who calls this : the engine, which has one with that setting; face/, which states what is sent and received.
// Threads        : under the engine's lock.
// Ownership      : shares layouts until the message or receive has met the other.
// Errors         : none; what differs is told in words.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "layout/signature.hpp"
#include "request/operation.hpp"

namespace ist {

class TypeCheck {
 public:
  // What the one send, receive or persistent request is made of that is started as long as this is there. Library's own messages
  // have none, and are not compared. `types` is asked only where there is a check: SharedLayout types().
  class Stated {
   public:
    template <class Types>
    Stated(TypeCheck* check, const Types& types) : check_(check) {
      if (check != nullptr) [[unlikely]]
        check->stated_ = types();
    }
    ~Stated() {
      if (check_ != nullptr) [[unlikely]]
        check_->stated_ = nullptr;
    }
    Stated(const Stated&) = delete;
    Stated& operator=(const Stated&) = delete;

   private:
    TypeCheck* check_;
  };
  // What goes before the send that has been stated.
  std::optional<TypeNote> note() {
    const SharedLayout types = std::exchange(stated_, nullptr);
    return types ? std::optional{note_of(*types)} : std::nullopt;
  }
  // Of the message that has the place in the order behind the note's.
  void heard(Rank source, std::uint32_t sequence, std::span<const std::byte> payload);
  // The receive that has been stated.
  void expect(OperationId id) {
    if (stated_) received_[id.value] = std::exchange(stated_, nullptr);
  }
  // The persistent request's, which is stated with each start.
  void keep(OperationId id) {
    if (stated_) kept_[id.value] = std::exchange(stated_, nullptr);
  }
  SharedLayout kept(OperationId id) const;
  // The receive will meet no message; the persistent request is not started again.
  void forget(OperationId id) {
    received_.erase(id.value);
    kept_.erase(id.value);
  }
  // A message has met its receive. Nothing: they are alike, or one of them was not stated.
  std::optional<std::string> compare(Rank source, std::uint32_t sequence, OperationId id);

 private:
  SharedLayout stated_;
  std::map<std::pair<std::int32_t, std::uint32_t>, TypeNote> sent_;  // by source and sequence
  std::map<std::uint64_t, SharedLayout> received_, kept_;            // by operation
};

}  // namespace ist
