// Any Python object with memory as a place, a count and a type.
//
// Who calls this : comm.cpp, memory.cpp.
// Threads        : the caller holds the GIL.
// Ownership      : a Region holds a reference to whatever keeps the memory where it is.
// Errors         : TypeError, ValueError or BufferError of Python, which say what to do instead.
#pragma once

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus_python {

namespace nb = nanobind;

enum class Access { read, write };

struct Shape {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;  // in bytes; empty: contiguous
  bool operator==(const Shape&) const = default;
};

struct Region {
  ist_buffer place{};
  std::int64_t count = 0;      // elements
  std::int64_t item_size = 1;  // bytes of one
  ist_type type = IST_BYTE;    // IST_BYTE also where the library knows no such type
  bool truth = false;          // values are 0 and 1; the type is IST_UINT8
  std::string element;         // where the type is IST_BYTE: what its producer calls an element
  bool read_only = false;
  nb::object owner;
  std::optional<Shape> view;  // where the elements lie that do not lie next to each other

  std::int64_t bytes() const { return count * item_size; }
  // What the library counts: elements of `type`.
  std::int64_t units() const { return type == IST_BYTE ? bytes() : count; }
};

// Looks for memory behind the object: isthmus' own, the buffer protocol, PyTorch's, the CUDA array interface, pyopencl's,
// NumPy's array interface, DLPack. `count`: so many elements of it, from the first on. Elements with gaps are refused, but by calls that
// take views.
enum class Views { refused, taken };
Region to_region(nb::handle object, Access access, std::optional<std::int64_t> count = {}, Views views = Views::refused);

// ---- for the files that read one protocol each: nothing, if the object does not speak it ----

std::optional<Region> from_torch(nb::handle object);
std::optional<Region> from_cuda_array(nb::handle object);
std::optional<Region> from_opencl_array(nb::handle object);
std::optional<Region> from_host_buffer(nb::handle object);
std::optional<Region> from_host_array(nb::handle object);
std::optional<Region> from_dlpack(nb::handle object);
// `stream`: what the producer is told; the region's queue is `queue`.
Region read_dlpack(nb::handle object, std::optional<std::int64_t> stream, std::uint64_t queue);

// The dictionary that NumPy's and CUDA's array interfaces share.
Region read_array_interface(nb::handle object, const nb::object& found, bool on_device);

// Raises where elements are references to Python objects, or pointers, which mean nothing to another process.
void refuse_references(nb::handle object, const char* format);
// A region's type, and whether it is of truth values, by kind ('i', 'b' of truth values) and bytes of an element.
void set_type(Region& region, char kind, std::string_view element);
// Kind of number and bytes of one ('i', 8) as a type.
ist_type type_of(char kind, std::int64_t item_size);
// Kind and bytes of an element ("f8"), or of value and place ("f8,i4"), as isthmus._reduction reads it; null: the library knows no such type.
const char* typestr_of(const Region& like);
// The same for people: whatever the elements are.
std::string element_name(const Region& region);
// The name of an object's class, with its module.
std::string class_name(nb::handle object);
// JAX's arrays, and what stands for them while it traces a function.
bool is_of_jax(nb::handle object);
// The attribute, or an empty object where there is none or its getter fails.
nb::object attribute(nb::handle object, const char* name);

std::vector<std::int64_t> to_numbers(nb::handle sequence);
std::int64_t elements_of(const Shape& shape);
// Nothing, if elements follow each other without gaps, the last index or the first index running fastest; else where they are.
std::optional<Shape> view_of(nb::handle object, const Shape& shape, std::int64_t item_size);

}  // namespace isthmus_python
