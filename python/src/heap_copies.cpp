// Copies into and out of symmetric heaps, with or without a signal. A view with gaps goes by the calls for layouts.
#include <utility>

#include "heap.hpp"
#include "heap_parts.hpp"
#include "view_layout.hpp"

namespace isthmus_python {
namespace {

// Elements that one side has more of than the other are no mistake of the library's to find.
void must_fit(const char* name, const Region& into, const Region& from) {
  if (into.bytes() == from.bytes()) return;
  refuse(std::string{name} + ": the source has " + std::to_string(from.bytes()) + " bytes and the destination " +
         std::to_string(into.bytes()) + "; give views of the same length, such as array[:n]");
}

// Both sides of a copy, of which any may have gaps.
struct Sides {
  Sides(const char* name, bool puts, nb::handle dest, nb::handle source)
      : into(side(dest, Access::write, puts)), from(side(source, Access::read, !puts)) {
    must_fit(name, into, from);
  }
  static Region side(nb::handle object, Access access, bool far) {
    return far ? far_region(object, access, Views::taken) : to_region(object, access, {}, Views::taken);
  }
  bool has_gaps() const { return into.view || from.view; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(from.bytes()); }
  Region into, from;
};

// So many layouts of one side: a view's own, or the bytes of what lies in a row, which fit any types.
class Laid {
 public:
  explicit Laid(const Region& region) : count_(region.view ? 1 : region.bytes()) {
    if (region.view) view_.emplace(region);
  }
  int commit() const { return view_ ? view_->commit() : IST_OK; }
  std::int64_t count() const { return count_; }
  ist_layout layout() const { return view_ ? view_->get() : ist_layout_of(IST_BYTE); }

 private:
  std::int64_t count_;
  std::optional<ViewLayout> view_;
};

int copy_laid(ist_heap heap, bool puts, const Sides& sides, const Laid& into, const Laid& from, int pe) {
  for (const Laid* side : {&into, &from})
    if (const int code = side->commit(); code != IST_OK) return code;
  return puts ? ist_heap_put_layout(heap, far_address(sides.into), into.count(), into.layout(), sides.from.place,
                                    from.count(), from.layout(), pe)
              : ist_heap_get_layout(heap, sides.into.place, into.count(), into.layout(), far_address(sides.from),
                                    from.count(), from.layout(), pe);
}

}  // namespace

void Heap::put(nb::handle dest, nb::handle source, int pe, bool now) const {
  const Sides sides("put", true, dest, source);
  if (sides.has_gaps()) {
    const Laid into(sides.into), from(sides.from);
    return call(session(), [&, heap = open()] { return copy_laid(heap, true, sides, into, from, pe); });
  }
  call(session(), [&, heap = open()] {
    return (now ? ist_heap_put : ist_heap_put_nbi)(heap, far_address(sides.into), sides.from.place, sides.bytes(), pe);
  });
  if (!now) under_way_.push_back(sides.from);
}

void Heap::get(nb::handle dest, nb::handle source, int pe, bool now) const {
  const Sides sides("get", false, dest, source);
  if (sides.has_gaps()) {
    const Laid into(sides.into), from(sides.from);
    return call(session(), [&, heap = open()] { return copy_laid(heap, false, sides, into, from, pe); });
  }
  call(session(), [&, heap = open()] {
    return (now ? ist_heap_get : ist_heap_get_nbi)(heap, sides.into.place, far_address(sides.from), sides.bytes(), pe);
  });
  if (!now) under_way_.push_back(sides.into);
}

void Heap::put_signal(nb::handle dest, nb::handle source, nb::handle signal, std::uint64_t value, int pe, bool add,
                      bool now) const {
  const char* const name = now ? "put_signal" : "put_signal_nbi";
  const Sides sides(name, true, dest, source);
  const OneWord word = word_in(signal, name);
  if (word.region.item_size != 8) refuse(std::string{name} + ": the signal is a word of 8 bytes, such as one of 'u8'");
  auto* const address = static_cast<std::uint64_t*>(word.address);
  const ist_signal how = add ? IST_SIGNAL_ADD : IST_SIGNAL_SET;
  if (sides.has_gaps()) {
    const Laid into(sides.into), from(sides.from);
    return call(session(), [&, heap = open()] {
      // Who waits for the word would not hear of it, so that nothing is copied where it is no word of the heap.
      void* there = nullptr;
      if (const int code = ist_heap_pointer(heap, address, pe, &there); code != IST_OK) return code;
      if (const int code = copy_laid(heap, true, sides, into, from, pe); code != IST_OK) return code;
      // The bytes are there; the word follows them, with no bytes of its own.
      if (const int code = ist_heap_fence(heap); code != IST_OK) return code;
      return ist_heap_put_signal(heap, address, sides.from.place, 0, address, value, how, pe);
    });
  }
  call(session(), [&, heap = open()] {
    return (now ? ist_heap_put_signal : ist_heap_put_signal_nbi)(heap, far_address(sides.into), sides.from.place,
                                                                 sides.bytes(), address, value, how, pe);
  });
  if (!now) under_way_.push_back(sides.from);
}

}  // namespace isthmus_python
