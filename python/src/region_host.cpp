// Host memory: the buffer protocol, and NumPy's array interface for the types that the protocol cannot name.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "region.hpp"

namespace isthmus_python {
namespace {

// The struct module's letter for one element, in the machine's byte order.
char kind_of_format(const char* format) {
  if (format == nullptr) return 'u';
  if (*format == '@' || *format == '=' || *format == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>')) ++format;
  if (std::strcmp(format, "Zf") == 0 || std::strcmp(format, "Zd") == 0) return 'c';
  if (std::strlen(format) != 1) return 'V';
  if (*format == '?') return 'b';
  if (std::strchr("bhilqn", *format)) return 'i';
  if (std::strchr("BHILQN", *format)) return 'u';
  return std::strchr("efd", *format) ? 'f' : 'V';
}

// Of the two members of a record: the first one at its beginning, the second one at the next multiple of its size. Gaps are told as x, but not by ctypes
// of all versions, whose members begin with an order and which makes the struct of C; NumPy says = of one that lies elsewhere.
bool lie_as_in_c(const std::string& letters, const std::array<std::int64_t, 3>& gaps, bool of_ctypes) {
  const auto size_of = [](char letter) -> std::int64_t {
    return letter == 'h' ? 2 : letter == 'f' || letter == 'i' ? 4 : 8;
  };
  const std::int64_t first = size_of(letters[0]), second = size_of(letters[1]);
  const std::int64_t wanted = (first + second - 1) / second * second - first;
  return (of_ctypes && gaps == std::array<std::int64_t, 3>{}) || (gaps[0] == 0 && gaps[1] == wanted);
}

// A value and its place, for MINLOC and MAXLOC: a record of two numbers, as NumPy (align=True) and ctypes lay out C's struct.
ist_type pair_of(const char* format, std::int64_t item_size) {
  if (format == nullptr || std::strncmp(format, "T{", 2) != 0) return IST_BYTE;
  std::string letters;
  std::array<std::int64_t, 3> gaps{};  // before, between and behind the two, where they are told
  std::int64_t repeat = 0;
  bool in_name = false;
  for (const char* at = format + 2; *at != '\0' && *at != '}'; ++at) {
    if (*at == ':') in_name = !in_name;
    if (in_name || *at == ':' || std::strchr("@=<^", *at) != nullptr) continue;
    if (*at >= '0' && *at <= '9') {
      repeat = std::min<std::int64_t>(10 * repeat + (*at - '0'), 1000);
      continue;
    }
    if (*at == 'x')
      gaps[std::min<std::size_t>(letters.size(), 2)] += std::max<std::int64_t>(repeat, 1);
    else
      letters += *at == 'q' ? 'l' : *at;
    repeat = 0;
  }
  struct Pair {
    const char* letters;
    std::int64_t size;
    ist_type type;
  };
  for (const Pair& each : {Pair{"fi", 8, IST_FLOAT_INT}, Pair{"di", 16, IST_DOUBLE_INT}, Pair{"li", 16, IST_LONG_INT},
                           Pair{"ii", 8, IST_INT_INT}, Pair{"hi", 8, IST_SHORT_INT}, Pair{"ll", 16, IST_INT64_INT64}})
    if (letters == each.letters && item_size == each.size)
      return lie_as_in_c(letters, gaps, std::strchr(format, '<') != nullptr) ? each.type : IST_BYTE;
  return IST_BYTE;
}

// The array interface has no letter for it and says two bytes of anything; the name is that of ml_dtypes.
bool is_bfloat16(nb::handle object) {
  const nb::object dtype = attribute(object, "dtype");
  const nb::object name = dtype.is_valid() ? attribute(dtype, "name") : nb::object();
  return name.is_valid() && nb::isinstance<nb::str>(name) && nb::cast<std::string>(name) == "bfloat16";
}

// Letters of the struct module, of NumPy and of ctypes: O of objects, P, z, Z, & and X{} of pointers; Zf and Zd are complex.
bool has_references(const char* format) {
  bool in_name = false;
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at == ':') in_name = !in_name;
    if (in_name) continue;
    if (std::strchr("OPz&X", *at) != nullptr) return true;
    if (*at == 'Z' && (at[1] == '\0' || std::strchr("fdg", at[1]) == nullptr)) return true;
  }
  return false;
}

}  // namespace

void refuse_references(nb::handle object, const char* format) {
  bool refers = format != nullptr && has_references(format);
  if (!refers) {
    const nb::object dtype = attribute(object, "dtype");
    const nb::object has = dtype.is_valid() ? attribute(dtype, "hasobject") : nb::object();
    refers = has.is_valid() && nb::isinstance<nb::bool_>(has) && nb::cast<bool>(has);
  }
  if (refers)
    throw nb::type_error(("the elements of this " + class_name(object) +
                          " are references to memory of this process, which mean nothing to another one; send_object() and "
                          "recv_object() carry what they refer to")
                             .c_str());
}

std::optional<Region> from_host_buffer(nb::handle object) {
  if (!PyObject_CheckBuffer(object.ptr())) return {};
  // The view also keeps a bytearray from being resized.
  nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!view.is_valid()) {
    // NumPy cannot name every type in this protocol (bfloat16, dates), and JAX answers it for host memory alone.
    nb::python_error refused;
    for (const char* other : {"__array_interface__", "__cuda_array_interface__", "__dlpack__"})
      if (attribute(object, other).is_valid()) return {};
    throw refused;
  }
  const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(view.ptr());
  Region region;
  if (!PyBuffer_IsContiguous(&buffer, 'A')) {
    Shape shape;
    for (int at = 0; at < buffer.ndim; ++at) {
      shape.extents.push_back(buffer.shape[at]);
      shape.strides.push_back(buffer.strides != nullptr ? buffer.strides[at] : 0);
    }
    if (buffer.suboffsets != nullptr) shape.strides.assign(1, 0);
    region.view = view_of(object, shape, buffer.itemsize);
  }
  region.place = ist_host(buffer.buf);
  region.item_size = buffer.itemsize > 0 ? buffer.itemsize : 1;
  region.count = buffer.len / region.item_size;
  set_type(region, kind_of_format(buffer.format), buffer.format == nullptr ? "" : buffer.format);
  if (region.type == IST_BYTE) {
    refuse_references(object, buffer.format);
    region.type = pair_of(buffer.format, region.item_size);
  }
  region.read_only = buffer.readonly != 0;
  region.owner = std::move(view);
  return region;
}

std::optional<Region> from_host_array(nb::handle object) {
  const nb::object found = attribute(object, "__array_interface__");
  if (!found.is_valid()) return {};
  return read_array_interface(object, found, false);
}

Region read_array_interface(nb::handle object, const nb::object& found, bool on_device) {
  const auto entry = [&](const char* name) -> nb::object {
    const nb::object value = found.attr("get")(name);
    return value.is_none() ? nb::object() : value;
  };
  const nb::object data = entry("data");
  const nb::object typestr = entry("typestr");
  const nb::object extents = entry("shape");
  if (!typestr.is_valid() || !extents.is_valid() || !data.is_valid() || !nb::isinstance<nb::tuple>(data))
    throw nb::value_error(("the array interface of this " + class_name(object) + " lacks data, shape or typestr").c_str());
  if (entry("mask").is_valid())
    throw nb::value_error(
        ("this " + class_name(object) + " has a mask, which would not travel; send data and mask each").c_str());
  const std::string text = nb::cast<std::string>(typestr);
  if (text.size() < 3)
    throw nb::value_error(("the array interface of this " + class_name(object) + " has typestr '" + text +
                           "'; byte order, kind and bytes of one element are wanted, such as '<f8'")
                              .c_str());
  Region region;
  if ((region.item_size = std::atoll(text.c_str() + 2)) < 1) region.item_size = 1;
  if (text[1] == 'U') region.item_size *= 4;
  const bool foreign = text[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
  set_type(region, foreign ? 'V' : text[1], text);
  if (region.type == IST_BYTE) refuse_references(object, text[1] == 'O' ? "O" : nullptr);
  if (!foreign && text[1] == 'V' && region.item_size == 2 && is_bfloat16(object)) region.type = IST_BFLOAT16;
  Shape shape{to_numbers(extents), {}};
  if (const nb::object strides = entry("strides"); strides.is_valid()) shape.strides = to_numbers(strides);
  region.view = view_of(object, shape, region.item_size);
  region.count = elements_of(shape);
  const auto address = nb::cast<std::uint64_t>(data[0]);
  region.read_only = nb::cast<bool>(data[1]);
  region.place = ist_make_buffer(on_device ? IST_KIND_CUDA : IST_KIND_HOST, address, 0, 0);
  region.owner = nb::borrow(object);
  return region;
}

}  // namespace isthmus_python
