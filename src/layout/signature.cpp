#include "layout/signature.hpp"

#include <algorithm>

namespace ist {
namespace {

std::int64_t in_runs(const TypeNote& note) {
  std::int64_t types = 0;
  for (std::uint32_t i = 0; i < note.runs; ++i) types += note.counts[i];
  return types;
}

// Of so many types from the first on, all of which the note tells.
Signature first(const TypeNote& note, std::int64_t types) {
  const auto runs_up_to = [&note](std::int64_t left) {
    Signature all;
    for (std::uint32_t i = 0; i < note.runs && left > 0; ++i) {
      const std::int64_t here = std::min(note.counts[i], left);
      all = one_after_other(all, again_and_again(signature_of(static_cast<ist_type>(note.type[i])), here));
      left -= here;
    }
    return all;
  };
  const std::int64_t each = in_runs(note);
  return one_after_other(again_and_again(runs_up_to(each), types / each), runs_up_to(types % each));
}

ist_type type_at(const TypeNote& note, std::int64_t index) {
  index %= in_runs(note);
  std::uint32_t run = 0;
  for (; index >= note.counts[run]; ++run) index -= note.counts[run];
  return static_cast<ist_type>(note.type[run]);
}

bool bytes_alone(const TypeNote& note) { return note.runs == 1 && note.whole != 0 && note.type[0] == IST_BYTE; }
bool bytes_alone(const Signature& types) { return types == again_and_again(signature_of(IST_BYTE), types.types); }

// The first element that is not alike, where the first `known` of them are not.
template <class Alike>
std::int64_t first_unlike(std::int64_t known, const Alike& alike) {
  std::int64_t low = 0, high = known;  // the first `low` are alike, and the first `high` are not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (alike(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

// Layers of one part each only say how often what is inside them comes.
TypeNote note_of(const Layout& layout) {
  TypeNote note;
  note.hash = layout.signature().hash;
  note.types = layout.signature().types;
  const Layout* inside = &layout;
  while (const Part* const only = inside->only_part()) inside = only->layout.get();
  std::vector<TypeRun> runs;
  note.whole = inside->add_types(runs, TypeNote::kMostRuns) ? 1 : 0;
  for (const TypeRun& run : runs) {
    note.counts[note.runs] = run.count;
    note.type[note.runs++] = static_cast<std::uint8_t>(run.type);
  }
  return note;
}

std::optional<TypeDifference> difference(const TypeNote& sent, const Layout& received) {
  const Signature& into = received.signature();
  const std::int64_t both = std::min(sent.types, into.types);
  if (both == 0 || sent.runs == 0 || bytes_alone(sent) || bytes_alone(into)) return {};
  const std::int64_t known = sent.whole != 0 ? both : std::min(both, in_runs(sent));
  const auto alike = [&](std::int64_t types) { return first(sent, types) == received.first(types); };
  if (alike(known)) {
    if (known == both || both < sent.types || received.first(both).hash == sent.hash) return {};
    return TypeDifference{known, {}, {}};
  }
  const std::int64_t unlike = first_unlike(known, alike);
  return TypeDifference{unlike, type_at(sent, unlike), received.type_at(unlike)};
}

std::optional<TypeDifference> difference(const TypeNote& one, const TypeNote& other) {
  const std::int64_t both = std::min(one.types, other.types);
  if (both == 0 || one.runs == 0 || other.runs == 0 || bytes_alone(one) || bytes_alone(other)) return {};
  std::int64_t known = both;
  for (const TypeNote* const note : {&one, &other})
    if (note->whole == 0) known = std::min(known, in_runs(*note));
  const auto alike = [&](std::int64_t types) { return first(one, types) == first(other, types); };
  if (alike(known)) {
    if (known == both || one.types != other.types || one.hash == other.hash) return {};
    return TypeDifference{known, {}, {}};
  }
  const std::int64_t unlike = first_unlike(known, alike);
  return TypeDifference{unlike, type_at(one, unlike), type_at(other, unlike)};
}

std::string described(const TypeDifference& found, const std::string& sent, const std::string& received) {
  const std::string at = std::to_string(found.element);
  if (!found.sent || !found.received)
    return "the first " + at + " elements of " + sent + " and " + received +
           " are of the same types, and later ones are not";
  return "element " + at + " is " + name_of(*found.sent) + " in " + sent + " and " + name_of(*found.received) + " in " +
         received;
}

std::string words_for(const TypeNote& note) {
  constexpr std::uint32_t kMostNamed = 6;
  if (note.types == 0 || note.runs == 0) return "no elements";
  const std::int64_t times = note.whole != 0 ? note.types / in_runs(note) : 1;
  const bool all = note.whole != 0 && note.runs <= kMostNamed;
  const std::int64_t each = note.runs == 1 ? times : 1;  // one run that comes again is a longer one
  std::string words;
  for (std::uint32_t i = 0; i < std::min(note.runs, kMostNamed); ++i) {
    const std::int64_t here = note.counts[i] * each;
    words +=
        (i == 0 ? "" : ", ") + (here == 1 ? "" : std::to_string(here) + " ") + name_of(static_cast<ist_type>(note.type[i]));
  }
  if (!all) return words + " and so on, " + std::to_string(note.types) + " elements";
  return times == each || note.runs == 1 ? words : std::to_string(times) + " times (" + words + ")";
}

std::string described(const TypeDifference& found, const NamedTypes& sent, const NamedTypes& received) {
  return described(found, sent.name, received.name) + " (" + sent.name + ": " + words_for(sent.types) + "; " +
         received.name + ": " + words_for(received.types) + ")";
}

}  // namespace ist
