#include "heap.hpp"

#include <cstring>
#include <string_view>
#include <utility>

#include "barrier.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "wait.hpp"
#include "words.hpp"

namespace isthmus_python {
namespace {

void* far_address(const Region& region) { return reinterpret_cast<void*>(region.place.object + region.place.offset); }

std::uint64_t size_in(const Region& region) { return static_cast<std::uint64_t>(region.bytes()); }

// Elements that one side has more of than the other are no mistake of the library's to find.
void must_fit(const char* name, const Region& into, const Region& from) {
  if (into.bytes() == from.bytes()) return;
  refuse(std::string{name} + ": the source has " + std::to_string(from.bytes()) + " bytes and the destination " +
         std::to_string(into.bytes()) + "; give views of the same length, such as array[:n]");
}

struct OneWord {
  Region region;
  void* address;
  WordType type() const { return {region.type, region.item_size}; }
};

OneWord word_in(nb::handle object, const char* name) {
  Region region = to_region(object, Access::read);
  const bool integer =
      region.type == IST_INT32 || region.type == IST_UINT32 || region.type == IST_INT64 || region.type == IST_UINT64;
  if (region.count != 1 || !integer)
    refuse(std::string{name} + " works on one integer of 4 or 8 bytes, and this has " + std::to_string(region.count) +
           " elements of " + std::to_string(region.item_size) + " bytes; give a view of one, such as words[3:4]");
  return {region, far_address(region)};
}

std::vector<std::int64_t> extents_of(nb::handle shape) {
  if (PyLong_Check(shape.ptr())) return {nb::cast<std::int64_t>(shape)};
  return to_numbers(shape);
}

// Bytes of an array, or ValueError.
std::uint64_t size_of(const std::vector<std::int64_t>& extents, const std::string& typestr) {
  std::uint64_t bytes = static_cast<std::uint64_t>(item_size_of(typestr));
  for (const std::int64_t extent : extents) {
    if (extent < 0) refuse("an extent is " + std::to_string(extent) + "; give 0 or more");
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      refuse("the array's bytes do not fit 64 bits");
  }
  return bytes;
}

std::string with_order(const std::string& typestr) {
  if (std::string_view("<>|=").find(typestr[0]) != std::string_view::npos) return typestr;
  return (item_size_of(typestr) == 1 ? "|" : "<") + typestr;
}

}  // namespace

// ---- arrays ----

std::int64_t SymmetricArray::count() const {
  std::int64_t all = 1;
  for (const std::int64_t extent : shape_) all *= extent;
  return all;
}

std::int64_t SymmetricArray::bytes() const { return count() * item_size_of(typestr_); }

nb::tuple SymmetricArray::shape() const {
  nb::list extents;
  for (const std::int64_t extent : shape_) extents.append(extent);
  return nb::tuple(extents);
}

nb::dict SymmetricArray::array_interface(bool of_device) const {
  if (of_device != heap_->of_device())
    throw nb::attribute_error(of_device ? "__cuda_array_interface__" : "__array_interface__");
  heap_->open();
  if (freed_) refuse("this array of a symmetric heap was freed");
  nb::dict interface;
  interface["version"] = 3;
  interface["shape"] = shape();
  interface["typestr"] = typestr_;
  interface["data"] = nb::make_tuple(address_, false);
  return interface;
}

nb::object SymmetricArray::at_pe(int pe) const {
  void* there = nullptr;
  check(ist_heap_pointer(heap_->open(), reinterpret_cast<const void*>(address_), pe, &there));
  return nb::cast(new SymmetricArray(heap_, reinterpret_cast<std::uint64_t>(there), shape_, typestr_),
                  nb::rv_policy::take_ownership);
}

void SymmetricArray::free() {
  if (freed_) refuse("this array of a symmetric heap was freed");
  call_all(
      heap_->shared_session(),
      [heap = heap_->open(), address = address_] { return ist_heap_free(heap, reinterpret_cast<void*>(address)); },
      [this] { freed_ = true; });
}

std::string SymmetricArray::text() const {
  std::string text = "<isthmus.SymmetricArray, " + heap_->kind() + ", (";
  for (const std::int64_t extent : shape_) text += std::to_string(extent) + (shape_.size() == 1 ? "," : ", ");
  if (shape_.size() > 1) text.resize(text.size() - 2);
  return text + ") of " + typestr_ + (freed_ ? ", freed>" : ">");
}

// ---- heaps ----

nb::object Heap::make(const std::shared_ptr<Channels>& channels, const std::string& kind, std::uint64_t bytes,
                      std::uint64_t most, int device) {
  const auto heap = std::make_shared<ist_heap>(IST_HEAP_NULL);
  call_all(channels->session, [=, number = kind_named(kind)] {
    return ist_heap_create(channels->user, number, device, bytes, most, heap.get());
  });
  return nb::cast(std::shared_ptr<Heap>(new Heap(channels, kind, *heap)));
}

ist_heap Heap::open() const {
  channels_->session->require_open();
  if (heap_ == IST_HEAP_NULL) refuse("this heap was closed");
  return heap_;
}

nb::object Heap::array(nb::handle shape, const std::string& typestr) {
  const std::vector<std::int64_t> extents = extents_of(shape);
  const std::uint64_t bytes = size_of(extents, typestr);
  const auto address = std::make_shared<void*>(nullptr);
  call_all(shared_session(), [=, heap = open()] { return ist_heap_calloc(heap, bytes, 1, address.get()); });
  return nb::cast(
      new SymmetricArray(shared_from_this(), reinterpret_cast<std::uint64_t>(*address), extents, with_order(typestr)),
      nb::rv_policy::take_ownership);
}

void Heap::grow(std::uint64_t bytes) {
  call_all(shared_session(), [heap = open(), bytes] { return ist_heap_grow(heap, bytes); });
}

void Heap::close() {
  if (closed()) return;
  call_all(
      shared_session(), [heap = heap_]() mutable { return ist_heap_destroy(&heap); }, [this] { heap_ = IST_HEAP_NULL; });
  under_way_.clear();
}

nb::tuple Heap::room() const {
  std::uint64_t all = 0;
  std::uint64_t largest = 0;
  check(ist_heap_room(open(), &all, &largest));
  return nb::make_tuple(all, largest);
}

void Heap::put(nb::handle dest, nb::handle source, int pe, bool now) const {
  const Region into = to_region(dest, Access::write);
  const Region from = to_region(source, Access::read);
  must_fit("put", into, from);
  call(session(), [&, heap = open()] {
    return (now ? ist_heap_put : ist_heap_put_nbi)(heap, far_address(into), from.place, size_in(from), pe);
  });
  if (!now) under_way_.push_back(from);
}

void Heap::get(nb::handle dest, nb::handle source, int pe, bool now) const {
  const Region into = to_region(dest, Access::write);
  const Region from = to_region(source, Access::read);
  must_fit("get", into, from);
  call(session(), [&, heap = open()] {
    return (now ? ist_heap_get : ist_heap_get_nbi)(heap, into.place, far_address(from), size_in(from), pe);
  });
  if (!now) under_way_.push_back(into);
}

void Heap::put_signal(nb::handle dest, nb::handle source, nb::handle signal, std::uint64_t value, int pe, bool add) const {
  const Region into = to_region(dest, Access::write);
  const Region from = to_region(source, Access::read);
  must_fit("put_signal", into, from);
  const OneWord word = word_in(signal, "put_signal");
  if (word.region.item_size != 8) refuse("put_signal: the signal is a word of 8 bytes, such as one of 'u8'");
  call(session(), [&, heap = open()] {
    return ist_heap_put_signal(heap, far_address(into), from.place, size_in(from), static_cast<std::uint64_t*>(word.address),
                               value, add ? IST_SIGNAL_ADD : IST_SIGNAL_SET, pe);
  });
}

void Heap::fence() const {
  ist_heap heap = open();
  call(session(), [&] { return ist_heap_fence(heap); });
}

void Heap::quiet() const {
  ist_heap heap = open();
  // What another thread starts meanwhile stays for the next one.
  std::vector<Region> complete = std::exchange(under_way_, {});
  try {
    call(session(), [&] { return ist_heap_quiet(heap); });
  } catch (...) {
    under_way_.insert(under_way_.end(), complete.begin(), complete.end());
    throw;
  }
}

// By messages, whose waiting a signal can end.
void Heap::barrier() const {
  quiet();
  finish(channels_->session, std::make_shared<Barrier>(whole(channels_)));
}

bool Heap::test(nb::handle object, const std::string& compare, nb::handle number) const {
  const OneWord word = word_in(object, "test");
  const std::int64_t value = number_for(word.type(), number, Sign::own);
  const auto how = compare_named(compare);
  int is = 0;
  ist_heap heap = open();
  call(session(), [&] { return ist_heap_test(heap, word.address, word.region.type, how, value, &is); });
  return is != 0;
}

void Heap::wait_until(nb::handle object, const std::string& compare, nb::handle number) const {
  const OneWord word = word_in(object, "wait_until");
  const std::int64_t value = number_for(word.type(), number, Sign::own);
  const auto how = compare_named(compare);
  ist_heap heap = open();
  int code = IST_OK;
  std::string text;
  wait_for(session(), [&] {
    int is = 0;
    code = ist_heap_test(heap, word.address, word.region.type, how, value, &is);
    if (code != IST_OK) text = ist_error_text();
    return code != IST_OK || is != 0;
  });
  if (code != IST_OK) raise(code, text);
}

nb::object Heap::atomic(const std::string& operation, nb::handle object, nb::handle number, int pe) const {
  const OneWord word = word_in(object, "atomic");
  const std::int64_t operand = number_for(word.type(), number);
  const auto what = atomic_named(operation);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  const bool four = word.region.item_size == 4;
  ist_heap heap = open();
  call(session(), [&] {
    return four ? ist_heap_atomic32(heap, what, static_cast<std::uint32_t*>(word.address),
                                    static_cast<std::uint32_t>(operand), &before32, pe)
                : ist_heap_atomic64(heap, what, static_cast<std::uint64_t*>(word.address),
                                    static_cast<std::uint64_t>(operand), &before64, pe);
  });
  return to_number(word.type(), four ? before32 : before64);
}

nb::object Heap::compare_swap(nb::handle object, nb::handle if_this, nb::handle then_this, int pe) const {
  const OneWord word = word_in(object, "compare_swap");
  const std::int64_t expected = number_for(word.type(), if_this);
  const std::int64_t wanted = number_for(word.type(), then_this);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  const bool four = word.region.item_size == 4;
  ist_heap heap = open();
  call(session(), [&] {
    return four ? ist_heap_compare_swap32(heap, static_cast<std::uint32_t*>(word.address),
                                          static_cast<std::uint32_t>(expected), static_cast<std::uint32_t>(wanted),
                                          &before32, pe)
                : ist_heap_compare_swap64(heap, static_cast<std::uint64_t*>(word.address),
                                          static_cast<std::uint64_t>(expected), static_cast<std::uint64_t>(wanted),
                                          &before64, pe);
  });
  return to_number(word.type(), four ? before32 : before64);
}

nb::bytes Heap::view() const {
  ist_team_view view{};
  check(ist_heap_view(open(), &view));
  return nb::bytes(reinterpret_cast<const char*>(&view), sizeof view);
}

std::string Heap::text() const {
  if (closed()) return "<isthmus.Heap, closed>";
  return "<isthmus.Heap, " + kind_ + ", PE " + std::to_string(pe()) + " of " + std::to_string(pes()) + ">";
}

}  // namespace isthmus_python
