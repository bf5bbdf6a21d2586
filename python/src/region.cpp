#include "region.hpp"

#include "heap.hpp"
#include "memory.hpp"

namespace isthmus_python {
namespace {

// Whether one index order walks through memory without gaps; extents of one may have any stride.
bool walks(const Shape& shape, std::int64_t item_size, bool last_fastest) {
  std::int64_t expected = item_size;
  const std::size_t rank = shape.extents.size();
  for (std::size_t step = 0; step < rank; ++step) {
    const std::size_t at = last_fastest ? rank - 1 - step : step;
    if (shape.extents[at] != 1 && shape.strides[at] != expected) return false;
    expected *= shape.extents[at];
  }
  return true;
}

std::optional<Region> from_own(nb::handle object) {
  if (nb::isinstance<Buffer>(object)) return nb::cast<const Buffer&>(object).region(object);
  if (nb::isinstance<Memory>(object)) return nb::cast<const Memory&>(object).region(object);
  if (!nb::isinstance<SymmetricArray>(object)) return {};
  // Where there is no memory any more the attributes of the other protocols raise, which counts as if there were none of them.
  const auto& array = nb::cast<const SymmetricArray&>(object);
  array.require_there();
  if (array.is_opencl()) return array.buffer(object);
  return {};
}

Region find(nb::handle object) {
  for (const auto read :
       {from_own, from_host_buffer, from_torch, from_cuda_array, from_opencl_array, from_host_array, from_dlpack})
    if (auto region = read(object)) return *region;
  throw nb::type_error((class_name(object) +
                        " is no buffer: it speaks neither the buffer protocol nor DLPack nor the CUDA array interface. "
                        "Objects of any kind travel by send_object() and recv_object(); a bare address by isthmus.Buffer")
                           .c_str());
}

void require_writable(nb::handle object, const Region& region) {
  if (!region.read_only) return;
  throw nb::buffer_error(
      (class_name(object) + " is read-only, so nothing can be received into it; " +
       (is_of_jax(object) ? "JAX arrays never change: receive into an array of NumPy or CuPy and make a JAX array of that"
                          : "receive into a writable object, such as a bytearray or a copy of the array"))
          .c_str());
}

void refuse_view(nb::handle object) {
  throw nb::buffer_error(("the elements of this " + class_name(object) +
                          " do not lie next to each other; send a contiguous copy (numpy.ascontiguousarray(a), "
                          "tensor.contiguous()), or receive into one and assign it")
                             .c_str());
}

}  // namespace

Region to_region(nb::handle object, Access access, std::optional<std::int64_t> count, Views views) {
  Region region = find(object);
  if (region.view && (views == Views::refused || (count && *count != region.count))) refuse_view(object);
  if (access == Access::write) require_writable(object, region);
  if (count) {
    if (*count < 0 || *count > region.count)
      throw nb::value_error(("count is " + std::to_string(*count) + ", but the " + class_name(object) + " has " +
                             std::to_string(region.count) + " elements; give 0 to " + std::to_string(region.count))
                                .c_str());
    region.count = *count;
  }
  return region;
}

ist_type type_of(char kind, std::int64_t item_size) {
  switch (kind) {
    case 'i':
      return item_size == 1   ? IST_INT8
             : item_size == 2 ? IST_INT16
             : item_size == 4 ? IST_INT32
             : item_size == 8 ? IST_INT64
                              : IST_BYTE;
    case 'u':
      return item_size == 1   ? IST_UINT8
             : item_size == 2 ? IST_UINT16
             : item_size == 4 ? IST_UINT32
             : item_size == 8 ? IST_UINT64
                              : IST_BYTE;
    case 'f':
      return item_size == 2 ? IST_HALF : item_size == 4 ? IST_FLOAT : item_size == 8 ? IST_DOUBLE : IST_BYTE;
    case 'c':
      return item_size == 8 ? IST_COMPLEX_FLOAT : item_size == 16 ? IST_COMPLEX_DOUBLE : IST_BYTE;
    default:
      return IST_BYTE;  // truth values, dates, records: their bytes travel as they are
  }
}

void set_type(Region& region, char kind, std::string_view element) {
  region.truth = kind == 'b' && region.item_size == 1;
  region.type = region.truth ? IST_UINT8 : type_of(kind, region.item_size);
  if (region.type == IST_BYTE) region.element = element;
}

const char* typestr_of(const Region& like) {
  switch (like.type) {
    case IST_INT8:
      return "i1";
    case IST_UINT8:
      return "u1";
    case IST_INT16:
      return "i2";
    case IST_UINT16:
      return "u2";
    case IST_INT32:
      return "i4";
    case IST_UINT32:
      return "u4";
    case IST_INT64:
      return "i8";
    case IST_UINT64:
      return "u8";
    case IST_HALF:
      return "f2";
    case IST_BFLOAT16:
      return "bfloat16";
    case IST_FLOAT:
      return "f4";
    case IST_DOUBLE:
      return "f8";
    case IST_COMPLEX_FLOAT:
      return "c8";
    case IST_COMPLEX_DOUBLE:
      return "c16";
    case IST_FLOAT_INT:
      return "f4,i4";
    case IST_DOUBLE_INT:
      return "f8,i4";
    case IST_LONG_INT:
      return "i8,i4";
    case IST_INT_INT:
      return "i4,i4";
    case IST_SHORT_INT:
      return "i2,i4";
    case IST_INT64_INT64:
      return "i8,i8";
    default:
      return like.item_size == 1 ? "u1" : nullptr;
  }
}

std::string element_name(const Region& region) {
  if (region.truth) return "bool";
  if (const char* const known = typestr_of(region); region.type != IST_BYTE && known != nullptr) return known;
  return !region.element.empty() ? "'" + region.element + "'" : std::to_string(region.item_size) + " bytes without a type";
}

std::string class_name(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  const std::string name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  return module == "builtins" ? name : module + "." + name;
}

bool is_of_jax(nb::handle object) { return class_name(object).rfind("jax", 0) == 0; }

nb::object attribute(nb::handle object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) {
    // Some getters explain why there is none (PyTorch: the array is not on a CUDA device); the next protocol is asked then.
    PyErr_Clear();
    return {};
  }
  return nb::steal(found);
}

std::vector<std::int64_t> to_numbers(nb::handle sequence) {
  std::vector<std::int64_t> numbers;
  for (const nb::handle each : sequence) numbers.push_back(nb::cast<std::int64_t>(each));
  return numbers;
}

std::int64_t elements_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape.extents) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      throw nb::value_error("the shape of the array is negative or larger than memory can be");
  }
  return count;
}

std::optional<Shape> view_of(nb::handle object, const Shape& shape, std::int64_t item_size) {
  if (shape.strides.empty() || elements_of(shape) == 0) return {};
  if (shape.strides.size() != shape.extents.size()) refuse_view(object);
  if (walks(shape, item_size, true) || walks(shape, item_size, false)) return {};
  return shape;
}

}  // namespace isthmus_python
