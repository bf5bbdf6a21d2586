#include "layout/layout.hpp"

#include <algorithm>
#include <limits>

namespace ist {
namespace {

// Sums and products of any two numbers of 64 bits; no ISO C++.
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

// Modulo the prime 2^61 - 1.
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kFactor = 0x1b873593cc9e2d51 % kPrime;

// Below 2 * kPrime, as a sum of two numbers below it is.
constexpr std::uint64_t reduced(std::uint64_t value) { return value >= kPrime ? value - kPrime : value; }

// Of two below the prime: 2^61 is 1 here, so that the upper bits of the product are added to the lower ones.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  const UnsignedWide all = static_cast<UnsignedWide>(a) * b;
  return reduced(static_cast<std::uint64_t>(all & kPrime) + static_cast<std::uint64_t>(all >> 61));
}

bool too_far(Wide value) { return value > kFarthest || value < -Wide{kFarthest}; }

Status refuse(const char* what, const Part& part) {
  std::string where = std::to_string(part.stride) + " bytes apart, from byte " + std::to_string(part.offset) + " on";
  if (!part.places.empty()) {
    const auto [lowest, highest] = std::minmax_element(part.places.begin(), part.places.end());
    where = "at displacements from " + std::to_string(*lowest) + " to " + std::to_string(*highest) + " bytes";
  }
  return {IST_ERR_OVERFLOW, std::string{what} + " of a layout is beyond 2^60 bytes: " + std::to_string(part.count) +
                                " times a layout of " + std::to_string(part.layout->size()) + " bytes, " + where +
                                "; make it of several layouts, or check the counts and displacements"};
}

// Widens `all` by bounds that are repeated as the part says. False: too far.
bool widen(Bounds& all, bool& any, const Part& part, const Bounds& bounds) {
  Wide first = 0;
  Wide last = Wide{part.count - 1} * part.stride;
  if (!part.places.empty()) {
    const auto [lowest, highest] = std::minmax_element(part.places.begin(), part.places.end());
    first = *lowest;
    last = *highest;
  }
  if (too_far(first) || too_far(last) || too_far(part.offset)) return false;
  const Wide lower = Wide{part.offset} + bounds.lower + std::min(first, last);
  const Wide upper = Wide{part.offset} + bounds.upper + std::max(first, last);
  if (too_far(lower) || too_far(upper)) return false;
  all.lower = any ? std::min(all.lower, static_cast<std::int64_t>(lower)) : static_cast<std::int64_t>(lower);
  all.upper = any ? std::max(all.upper, static_cast<std::int64_t>(upper)) : static_cast<std::int64_t>(upper);
  any = true;
  return true;
}

std::int64_t place_of(const Part& part, std::int64_t i) {
  return part.offset + (part.places.empty() ? i * part.stride : part.places[static_cast<std::size_t>(i)]);
}

Status too_many_runs() {
  return {IST_ERR_MEMORY, "a layout has more than " + std::to_string(kMostRuns) +
                              " runs of bytes and no regular form; use several layouts, or longer blocks"};
}

}  // namespace

Signature one_after_other(const Signature& first, const Signature& second) {
  // A count beyond 64 bits is refused with the size, which is as large or larger; doubling may pass it once.
  const auto types = static_cast<std::uint64_t>(first.types) + static_cast<std::uint64_t>(second.types);
  return {static_cast<std::int64_t>(types), reduced(product(first.hash, second.power) + second.hash),
          product(first.power, second.power)};
}

Signature again_and_again(Signature one, std::int64_t count) {
  Signature all;
  for (; count > 0; count /= 2) {
    if (count % 2 == 1) all = one_after_other(all, one);
    one = one_after_other(one, one);
  }
  return all;
}

Signature signature_of(ist_type type) {
  const auto element = element_of(type);
  const bool untyped = type == IST_BYTE || !element;
  return {1, untyped ? 1 : static_cast<std::uint64_t>(*element) + 2, kFactor};
}

Result<SharedLayout> Layout::basic(ist_type type) {
  const auto element = element_of(type);
  if (!element) return Status{IST_ERR_ARGUMENT, "type " + std::to_string(static_cast<int>(type)) + " does not exist"};
  auto made = std::make_shared<Layout>();
  made->size_ = static_cast<std::int64_t>(size_of(type).value);
  made->alignment_ = static_cast<std::int64_t>(alignment_of(*element).value);
  made->bounds_ = made->true_bounds_ = {0, made->size_};
  made->signature_ = signature_of(type);
  made->type_ = type;
  made->form_.block = made->form_.size = made->size_;
  made->known_ = true;
  return SharedLayout{std::move(made)};
}

Result<SharedLayout> Layout::of(std::vector<Part> parts, const Bounds* marked) {
  auto made = std::make_shared<Layout>();
  // What is there no time at all says nothing about bounds either, and neither does what has no bytes and no bounds of its own.
  std::erase_if(parts, [](const Part& p) { return p.count == 0 || (p.layout->size_ == 0 && !p.layout->marked_); });
  made->parts_ = std::move(parts);
  IST_TRY(made->measure());
  if (marked != nullptr) {
    if (too_far(marked->lower) || too_far(marked->upper))
      return Status{IST_ERR_OVERFLOW, "bounds from " + std::to_string(marked->lower) + " to " +
                                          std::to_string(marked->upper) +
                                          " are beyond 2^60 bytes; a layout's must lie within"};
    made->bounds_ = *marked;
    made->marked_ = true;
  }
  made->find_form();
  return SharedLayout{std::move(made)};
}

Status Layout::measure() {
  bool any = false;
  Bounds marked;
  for (const Part& part : parts_) {
    const Layout& layout = *part.layout;
    const Wide size = Wide{part.count} * layout.size_ + size_;
    if (too_far(size)) return refuse("the size", part);
    size_ = static_cast<std::int64_t>(size);
    signature_ = one_after_other(signature_, again_and_again(layout.signature_, part.count));
    alignment_ = std::max(alignment_, layout.alignment_);
    if (layout.size_ > 0 && !widen(true_bounds_, any, part, layout.true_bounds_)) return refuse("a true bound", part);
    if (layout.marked_ && !widen(marked, marked_, part, layout.bounds_)) return refuse("a bound", part);
  }
  // As in MPI, one marked bound outweighs all that are not; otherwise the extent is rounded up as a C struct's.
  bounds_ = marked;
  if (!marked_) {
    const std::int64_t extent = true_bounds_.extent();
    bounds_ = {true_bounds_.lower, true_bounds_.lower + (extent + alignment_ - 1) / alignment_ * alignment_};
  }
  return {};
}

Signature Layout::first(std::int64_t types) const {
  if (types >= signature_.types) return signature_;
  Signature all;
  for (const Part& part : parts_) {
    const Signature& one = part.layout->signature_;
    if (one.types == 0) continue;
    const std::int64_t whole = std::min(part.count, (types - all.types) / one.types);
    all = one_after_other(all, again_and_again(one, whole));
    if (whole < part.count) return one_after_other(all, part.layout->first(types - all.types));
  }
  return all;
}

ist_type Layout::type_at(std::int64_t index) const {
  for (const Part& part : parts_) {
    const std::int64_t each = part.layout->signature_.types;
    if (index < part.count * each) return part.layout->type_at(index % each);
    index -= part.count * each;
  }
  return type_;
}

bool Layout::add_types(std::vector<TypeRun>& runs, std::size_t most) const {
  const auto add = [&](const TypeRun& run) {
    if (!runs.empty() && runs.back().type == run.type)
      runs.back().count += run.count;
    else if (runs.size() < most)
      runs.push_back(run);
    else
      return false;
    return true;
  };
  if (parts_.empty()) return size_ == 0 || add({type_, 1});
  for (const Part& part : parts_) {
    std::vector<TypeRun> one;
    const bool whole = part.layout->add_types(one, most);
    if (whole && one.size() == 1) one.front().count *= part.count;
    // Each time adds a run to the others, or it is one alone.
    for (std::int64_t i = one.size() == 1 ? part.count - 1 : 0; i < part.count && !one.empty(); ++i) {
      if (!std::all_of(one.begin(), one.end(), add) || !whole) return false;
    }
  }
  return true;
}

void Layout::find_form() {
  const Part* only = nullptr;
  for (const Part& part : parts_) {
    if (part.layout->size_ == 0) continue;
    if (only != nullptr) return;
    only = &part;
  }
  known_ = only == nullptr;  // no bytes
  if (only == nullptr || !only->layout->known_ || !only->places.empty()) return;
  auto made = repeated(only->layout->form_, only->count, only->stride);
  if (!made) return;
  made->offset += only->offset;
  form_ = std::move(*made);
  known_ = true;
}

Status Layout::emit(std::int64_t offset, std::vector<Run>& runs) const {
  if (known_) {
    if (runs_of(form_) > kMostRuns) return too_many_runs();
    each_run(form_, [&](const Run& run) { append(runs, {offset + run.offset, run.bytes}); });
  } else {
    for (const Part& part : parts_) {
      if (part.layout->size_ == 0) continue;
      if (part.layout->known_ && part.layout->form_.in_one_piece()) {
        IST_TRY(emit_block(offset, part, runs));
        continue;
      }
      for (std::int64_t i = 0; i < part.count; ++i) {
        IST_TRY(part.layout->emit(offset + place_of(part, i), runs));
      }
    }
  }
  return static_cast<std::int64_t>(runs.size()) > kMostRuns ? too_many_runs() : Status{};
}

// The part's layout is one block.
Status Layout::emit_block(std::int64_t offset, const Part& part, std::vector<Run>& runs) const {
  const Form& block = part.layout->form_;
  offset += block.offset;
  runs.reserve(runs.size() + part.places.size());
  for (std::int64_t i = 0; i < part.count; ++i) {
    append(runs, {offset + place_of(part, i), block.block});
    if (static_cast<std::int64_t>(runs.size()) > kMostRuns) return too_many_runs();
  }
  return {};
}

// Where the layout is another one several times, all of which together have the form of that one with a dimension more. Nothing: each run
// has to be looked at.
std::optional<Form> Layout::form_of_only_part() const {
  if (parts_.size() != 1 || !parts_.front().places.empty()) return {};
  const Part& part = parts_.front();
  auto one = part.layout->form();
  if (!one.ok()) return {};
  const bool full = one->dimensions == kMostDimensions;
  auto made = full ? repeated(*one, part.count, part.stride) : repeated(std::move(*one), part.count, part.stride);
  if (!made && full) {
    auto shorter = unrolled(*one);
    if (shorter) made = repeated(std::move(*shorter), part.count, part.stride);
  }
  if (!made || part.offset == 0) return made;
  if (made->strided()) made->offset += part.offset;
  for (Run& run : made->runs) run.offset += part.offset;
  return made;
}

Result<Form> Layout::form() const {
  if (known_) return form_;
  if (auto made = form_of_only_part()) return std::move(*made);
  std::vector<Run> runs;
  IST_TRY(emit(0, runs));
  return form_of(std::move(runs));
}

}  // namespace ist
