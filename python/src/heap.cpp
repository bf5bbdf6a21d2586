#include "heap.hpp"

#include <string_view>
#include <utility>

#include "barrier.hpp"
#include "heap_parts.hpp"
#include "memory.hpp"
#include "wait.hpp"
#include "words.hpp"

namespace isthmus_python {
namespace {

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
  if (is_opencl() || of_device != heap_->of_device())
    throw nb::attribute_error(of_device ? "__cuda_array_interface__" : "__array_interface__");
  return named();
}

bool SymmetricArray::is_opencl() const { return heap_->kind() == "opencl"; }

Region SymmetricArray::buffer(nb::handle self) const {
  Region region = read_array_interface(self, named(), heap_->of_device());
  if (address_ != 0) check(ist_heap_buffer(heap_->open(), reinterpret_cast<const void*>(address_), &region.place));
  return region;
}

void SymmetricArray::require_there() const {
  heap_->open();
  if (freed_) refuse("this array of a symmetric heap was freed");
}

nb::dict SymmetricArray::named() const {
  require_there();
  nb::dict interface;
  interface["version"] = 3;
  interface["shape"] = shape();
  interface["typestr"] = typestr_;
  interface["data"] = nb::make_tuple(address_, false);
  return interface;
}

nb::object SymmetricArray::at_pe(int pe) const {
  require_there();
  void* there = nullptr;
  check(ist_heap_pointer(heap_->open(), reinterpret_cast<const void*>(address_), pe, &there));
  return nb::cast(new SymmetricArray(heap_, reinterpret_cast<std::uint64_t>(there), shape_, typestr_),
                  nb::rv_policy::take_ownership);
}

void SymmetricArray::free() {
  require_there();
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

nb::bytes Heap::view() const {
  ist_team_view view{};
  check(ist_heap_view(open(), &view));
  return nb::bytes(reinterpret_cast<const char*>(&view), sizeof view);
}

nb::bytes Heap::device_view(std::optional<int> device) {
  ist_device_view view{};
  ist_heap heap = open();
  call(session(), [&] { return ist_heap_device_view(heap, device.value_or(IST_OWN_DEVICE), &view); });
  return nb::bytes(reinterpret_cast<const char*>(&view), sizeof view);
}

std::string Heap::text() const {
  if (closed()) return "<isthmus.Heap, closed>";
  return "<isthmus.Heap, " + kind_ + ", PE " + std::to_string(pe()) + " of " + std::to_string(pes()) + ">";
}

}  // namespace isthmus_python
