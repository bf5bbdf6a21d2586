#include "face/message/stream_notes.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace ist {
namespace {

// What a call's note has behind its first two words.
struct CallWords {
  std::array<char, 32> call;
  std::int64_t count;
  std::uint32_t operation;
  std::int32_t root;
  std::int32_t type;
  std::int32_t unused;
};
static_assert(std::is_trivially_copyable_v<CallWords> && sizeof(CallWords) <= sizeof StreamNote{}.rest);
static_assert(sizeof(TypeNote) == sizeof(StreamNote) && offsetof(TypeNote, types) == offsetof(StreamNote, types) &&
              offsetof(TypeNote, hash) == offsetof(StreamNote, hash));

TypeNote types_in(const StreamNote& note) {
  auto types = std::bit_cast<TypeNote>(note);
  types.runs = std::min<std::uint32_t>(types.runs, TypeNote::kMostRuns);
  return types;
}

GivenAlike call_in(const StreamNote& note) {
  CallWords words;
  std::memcpy(&words, &note.rest, sizeof words);
  GivenAlike given;
  given.call = words.call;
  given.call.back() = '\0';
  given.count = words.count;
  given.operation = words.operation;
  given.root = words.root;
  given.type = words.type;
  return given;
}

void add_words(std::string& all, const std::string& more) { all += (all.empty() ? "" : "; ") + more; }

}  // namespace

StreamNote stream_note(const Layout& types) { return std::bit_cast<StreamNote>(note_of(types)); }

// FNV-1a over the words.
StreamNote stream_note(const GivenAlike& given) {
  const CallWords words{given.call, given.count, given.operation, given.root, given.type, 0};
  StreamNote made;
  made.types = 1;
  std::memcpy(&made.rest, &words, sizeof words);
  made.hash = 0xcbf29ce484222325U;
  for (const std::uint64_t word : made.rest) made.hash = (made.hash ^ word) * 0x100000001b3U;
  return made;
}

std::string unlike_messages(const std::vector<UnlikeNotes>& notes) {
  std::string all;
  for (const UnlikeNotes& pair : notes) {
    const TypeNote sent = types_in(pair.sent), received = types_in(pair.received);
    const auto found = difference(sent, received);
    if (!found) continue;
    add_words(all, "its message " + std::to_string(pair.message) +
                       ", counted from 0, is not made of what its receive names: " +
                       described(*found, {"the message", sent}, {"the receive", received}));
  }
  return all;
}

std::string unlike_calls(const std::vector<UnlikeNotes>& notes, std::optional<int> first_is, int own) {
  std::string all;
  for (const UnlikeNotes& pair : notes) {
    const auto found = difference(call_in(pair.sent), call_in(pair.received));
    if (!found) continue;
    add_words(all, found->what + " is " + found->one + " on rank " + std::to_string(first_is.value_or(pair.member)) +
                       " and " + found->other + " on rank " + std::to_string(own));
  }
  return all;
}

}  // namespace ist
