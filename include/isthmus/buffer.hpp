// Isthmus, C++ interface: errors, buffers, statuses, and what can travel.
//
// Who calls this : isthmus.hpp includes it.
// Threads        : as in C: every call from any thread; one request is used by one thread at a time.
// Ownership      : Buffer and Status are values; a Buffer never frees.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_BUFFER_HPP
#define ISTHMUS_BUFFER_HPP

#if __cplusplus < 202002L
#error \
    "these headers need C++20: compile with -std=c++20, in CMake with target_compile_features(... cxx_std_20); those of C, isthmus/*.h, do not"
#endif

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "isthmus/isthmus.h"

namespace isthmus {

using Code = ist_code;
using Type = ist_type;

enum class Kind : std::uint32_t {
  automatic = IST_KIND_AUTO,
  host = IST_KIND_HOST,
  cuda = IST_KIND_CUDA,
  opencl = IST_KIND_OPENCL
};

inline constexpr int any_source = IST_ANY_SOURCE;
inline constexpr int any_tag = IST_ANY_TAG;
inline constexpr int proc_null = IST_PROC_NULL;
inline constexpr int undefined = IST_UNDEFINED;

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(static_cast<Code>(code)) {}
  Code code() const noexcept { return code_; }
  const char* name() const noexcept { return ist_code_name(code_); }

 private:
  Code code_;
};

namespace detail {

inline void check(int code) {
  if (code != IST_OK) throw Error(code, ist_error_text());
}

class WorldOwner {
 public:
  // `create` stores a world, as ist_world_create does.
  template <class Create>
  explicit WorldOwner(const Create& create) {
    check(create(&world_));
  }
  WorldOwner(const WorldOwner&) = delete;
  WorldOwner& operator=(const WorldOwner&) = delete;
  ~WorldOwner() { ist_world_destroy(&world_); }
  ist_world get() const noexcept { return world_; }

 private:
  ist_world world_ = IST_WORLD_NULL;
};
using SharedWorld = std::shared_ptr<const WorldOwner>;

template <class T>
constexpr Type type_for() noexcept {
  if constexpr (std::is_same_v<T, char>) return IST_CHAR;
  if constexpr (std::is_same_v<T, float>) return IST_FLOAT;
  if constexpr (std::is_same_v<T, double>) return IST_DOUBLE;
  if constexpr (std::is_same_v<T, std::complex<float>>) return IST_COMPLEX_FLOAT;
  if constexpr (std::is_same_v<T, std::complex<double>>) return IST_COMPLEX_DOUBLE;
  if constexpr (std::is_same_v<T, bool>) return sizeof(bool) == 1 ? IST_UINT8 : IST_BYTE;
  if constexpr (std::is_integral_v<T>) {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? IST_INT8 : IST_UINT8;
    if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? IST_INT16 : IST_UINT16;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? IST_INT32 : IST_UINT32;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? IST_INT64 : IST_UINT64;
  }
  return IST_BYTE;
}

// C's own names of integers, as the widths that type_for() gives.
constexpr Type plain_type(Type type) noexcept {
  switch (type) {
    case IST_SHORT:
      return IST_INT16;
    case IST_UNSIGNED_SHORT:
      return IST_UINT16;
    case IST_INT:
      return IST_INT32;
    case IST_UNSIGNED:
      return IST_UINT32;
    case IST_LONG:
      return type_for<long>();
    case IST_UNSIGNED_LONG:
      return type_for<unsigned long>();
    case IST_LONG_LONG:
      return IST_INT64;
    case IST_UNSIGNED_LONG_LONG:
      return IST_UINT64;
    default:
      return type;
  }
}

// For errors.
inline std::string name_of(Type type) {
  constexpr const char* names[] = {
      "IST_BYTE",       "IST_CHAR",          "IST_INT8",          "IST_UINT8",          "IST_INT16",
      "IST_UINT16",     "IST_INT32",         "IST_UINT32",        "IST_INT64",          "IST_UINT64",
      "IST_FLOAT",      "IST_DOUBLE",        "IST_INT",           "IST_LONG",           "IST_SHORT",
      "IST_UNSIGNED",   "IST_UNSIGNED_LONG", "IST_LONG_LONG",     "IST_UNSIGNED_SHORT", "IST_UNSIGNED_LONG_LONG",
      "IST_HALF",       "IST_BFLOAT16",      "IST_COMPLEX_FLOAT", "IST_COMPLEX_DOUBLE", "IST_FLOAT_INT",
      "IST_DOUBLE_INT", "IST_LONG_INT",      "IST_INT_INT",       "IST_SHORT_INT",      "IST_INT64_INT64"};
  const auto number = static_cast<std::size_t>(type);
  return number < sizeof names / sizeof *names ? names[number] : "number " + std::to_string(type);
}

}  // namespace detail

// "0.1.0": of the library that the program has found, which may be a later one than this header.
inline const char* version() noexcept { return ist_version(); }

// Bytes of one element; 0 for an unknown type.
inline std::size_t type_size(Type type) noexcept { return ist_type_size(type); }

// What can travel: objects whose bytes are their value. An address means nothing to another process.
template <class T>
concept Element =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<std::remove_all_extents_t<T>> && !std::is_member_pointer_v<T> &&
    !std::is_null_pointer_v<T> && !std::is_volatile_v<T> && !std::ranges::view<std::remove_cv_t<T>>;

// The C type of T, of bool IST_UINT8; a struct or an enum travels as IST_BYTE, sizeof(T) of them for each.
template <Element T>
inline constexpr Type type_of = detail::type_for<std::remove_cv_t<T>>();

// A contiguous range in host memory to send from: std::span, std::vector, std::array, a C array.
template <class R>
concept Sendable = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
// One to receive into: its elements can be written.
template <class R>
concept Receivable = Sendable<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
// One that is still there when a non-blocking call has returned: an lvalue or a view, not a temporary container.
template <class R>
concept Lasting = std::ranges::borrowed_range<R>;

// What a completed operation has to say.
class Status {
 public:
  Status() = default;
  explicit Status(const ist_status& status) : status_(status) {}
  int source() const noexcept { return status_.source; }
  int tag() const noexcept { return status_.tag; }
  Code code() const noexcept { return static_cast<Code>(status_.code); }
  bool cancelled() const noexcept { return status_.code == IST_CANCELLED; }
  std::int64_t bytes() const noexcept { return status_.bytes; }
  const char* carrier() const noexcept { return ist_carrier_name(status_.carrier); }
  // Whole elements received.
  template <Element T>
  std::int64_t count() const noexcept {
    return status_.bytes / static_cast<std::int64_t>(sizeof(T));
  }
  // The same of a type that is known only now; `undefined` if the bytes are no whole number of them.
  std::int64_t count(Type type) const {
    std::int64_t elements = 0;
    detail::check(ist_get_count(&status_, type, &elements));
    return elements;
  }

 private:
  ist_status status_{proc_null, any_tag, IST_OK, IST_CARRIER_NONE, 0};
};

// A place in some memory; a view, which never frees. The handle does not know whether its memory may be written.
class Buffer {
 public:
  Buffer(const ist_buffer& buffer) : buffer_(buffer) {}  // NOLINT(google-explicit-constructor): the same thing in C
  static Buffer host(const void* address) { return ist_host(address); }
  static Buffer cuda(const void* address, void* stream = nullptr) { return ist_cuda(address, stream); }
  static Buffer opencl(void* mem, std::size_t offset, void* queue) { return ist_opencl(mem, offset, queue); }
  static Buffer automatic(const void* address) { return ist_auto(address); }
  Buffer at(std::size_t bytes) const { return ist_buffer_at(buffer_, bytes); }
  // With the promise that nothing is pending on it, in any stream or queue: IST_BUFFER_READY.
  Buffer ready() const { return ist_buffer_ready(buffer_); }
  Kind kind() const noexcept { return static_cast<Kind>(buffer_.kind); }
  const ist_buffer& c() const noexcept { return buffer_; }

 private:
  ist_buffer buffer_;
};

namespace detail {

// A buffer, a count and a type, which every call takes.
struct Region {
  ist_buffer buffer;
  std::int64_t count;
  Type type;
};

template <class R>
Region region_of(R& range) {
  using T = std::remove_cvref_t<std::ranges::range_reference_t<R>>;
  const auto bytes = std::ranges::size(range) * sizeof(T);
  constexpr bool whole = type_of<T> != IST_BYTE;
  return {ist_host(std::ranges::data(range)), static_cast<std::int64_t>(whole ? std::ranges::size(range) : bytes),
          type_of<T>};
}

}  // namespace detail

}  // namespace isthmus
#endif
