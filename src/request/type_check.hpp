// Are messages made of the same basic types as their receives? Told beside each message, where the setting check asks for that.
//
// Who calls this : the engine, which has one with that setting; face/, which states what is sent and received.
// Threads        : under the engine's lock.
// Ownership      : of each rank the note whose message comes next; what a receive is made of its operation has.
// Errors         : none; what differs is told in words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "layout/signature.hpp"

namespace ist {

class TypeCheck {
 public:
  explicit TypeCheck(std::size_t ranks) : notes_(ranks) {}

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
  // Of what is started now, once; null: nothing was stated.
  SharedLayout stated() { return std::exchange(stated_, nullptr); }

  // Of the message that comes next from that rank, which takes it with it. Empty: there is none.
  using Note = std::vector<std::byte>;
  void heard(Rank source, std::span<const std::byte> note) {
    notes_[static_cast<std::size_t>(source.value)].assign(note.begin(), note.end());
  }
  Note note_from(Rank source) { return std::exchange(notes_[static_cast<std::size_t>(source.value)], {}); }
  // A message has met its receive. Nothing: they are alike, or one of them was not stated.
  static std::optional<std::string> compare(const Note& sent, const SharedLayout& received);

 private:
  SharedLayout stated_;
  std::vector<Note> notes_;  // by rank
};

}  // namespace ist
