// Isthmus, C++ interface: what reductions combine with, and the mark of a call in place.
//
// Who calls this : isthmus.hpp includes it.
// Threads        : as in C: every call from any thread. A user's function may run in any thread inside the library.
// Ownership      : Operation is a shared view; its last copy and the last request that uses it free the function.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_OPERATION_HPP
#define ISTHMUS_OPERATION_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "isthmus/buffer.hpp"
#include "isthmus/collective.h"

namespace isthmus {

// In the place of a send buffer: the input is what the receive buffer holds. Of rank `root` of scatter(): in the place of the
// receive buffer.
struct InPlace {
  operator Buffer() const { return ist_in_place(); }  // NOLINT(google-explicit-constructor): stands where a buffer does
};
inline constexpr InPlace in_place{};

// The library's operations; isthmus/collective.h says on which types.
enum class op : int { sum = 1, prod, min, max, minloc, maxloc, land, lor, lxor, band, bor, bxor };

// Elements of reductions: the C types. An algorithm may part a buffer anywhere between two of them, but not a struct's bytes.
template <class T>
concept Reducible = Element<T> &&(type_of<T> != IST_BYTE || std::is_same_v<std::remove_cv_t<T>, std::byte>);

// One of the library's, or a function of the user's.
class Operation {
 public:
  Operation(op which)  // NOLINT(google-explicit-constructor): the same thing by its name
      : handle_(reinterpret_cast<ist_op>(static_cast<std::uintptr_t>(which))) {}
  // `function(a, b)` gives the combination, a being of the lower ranks. Must be associative, must not call the library, and
  // must be noexcept: what calls it cannot pass an exception on. Not commutative: combined in the order of the ranks.
  template <Reducible T, class Function>
  requires std::is_nothrow_invocable_r_v<T, const Function&, const T&, const T&>
  static Operation of(Function function, bool commutative = true) {
    auto held = std::make_shared<Held<Function>>(std::move(function));
    Operation made(&call_held<T, Function>, held.get(), commutative, held);
    made.type_ = type_of<T>;
    return made;
  }
  // As in C, of every type; `user` must live as long as the operation is used.
  explicit Operation(ist_op_function function, void* user = nullptr, bool commutative = true)
      : Operation(function, user, commutative, std::make_shared<Owner>()) {}
  // For elements of that type; an Error if it was made for others.
  ist_op c(Type type) const {
    if (type_ && *type_ != detail::plain_type(type))
      throw Error(IST_ERR_ARGUMENT, "the operation was made for elements of type " + detail::name_of(*type_) +
                                        ", and the buffers have " + detail::name_of(type) +
                                        "; make one with Operation::of for theirs");
    return handle_;
  }

 private:
  friend class Collectives;
  struct Owner {
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      if (handle != IST_OP_NULL) ist_op_free(&handle);
    }
    ist_op handle = IST_OP_NULL;
  };
  template <class Function>
  struct Held : Owner {
    explicit Held(Function given) : function(std::move(given)) {}
    Function function;
  };
  Operation(ist_op_function function, void* user, bool commutative, std::shared_ptr<Owner> owner) {
    detail::check(ist_op_create(function, user, commutative ? 1 : 0, &owner->handle));
    handle_ = owner->handle;
    owner_ = std::move(owner);
  }
  template <class T, class Function>
  static void call_held(const void* in, void* inout, std::int64_t count, ist_type, void* user) noexcept {
    const Function& function = static_cast<const Held<Function>*>(user)->function;
    const T* lower = static_cast<const T*>(in);
    T* higher = static_cast<T*>(inout);
    for (std::int64_t i = 0; i < count; ++i) higher[i] = function(lower[i], std::as_const(higher[i]));
  }

  ist_op handle_ = IST_OP_NULL;
  std::optional<Type> type_;
  std::shared_ptr<const void> owner_;
};

namespace detail {

constexpr bool keeps_bools(op which) {
  return which == op::land || which == op::lor || which == op::lxor || which == op::band || which == op::bor ||
         which == op::bxor;
}
inline void bools_are_combined_by_land_lor_lxor_band_bor_and_bxor_alone() {}

// What combines bools: one of those, by its name, or a function of the user's. A sum of bools does not compile.
class BoolOperation {
 public:
  consteval BoolOperation(op which) : which_(which) {  // NOLINT(google-explicit-constructor): the same thing by its name
    if (!keeps_bools(which)) bools_are_combined_by_land_lor_lxor_band_bor_and_bxor_alone();
  }
  // Looked at during the call that it is given to.
  BoolOperation(const Operation& given) : given_(&given) {}  // NOLINT(google-explicit-constructor): it is one
  Operation operation() const {
    if (given_ == nullptr) return which_;
    const auto number = reinterpret_cast<std::uintptr_t>(given_->c(IST_UINT8));
    if (number <= static_cast<std::uintptr_t>(op::bxor) && !keeps_bools(static_cast<op>(number)))
      throw Error(IST_ERR_ARGUMENT, "bools are combined by land, lor, lxor, band, bor and bxor alone");
    return *given_;
  }

 private:
  op which_ = op::land;
  const Operation* given_ = nullptr;
};

// NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): used within the call that the operation was given to
inline const Operation& plain(const Operation& operation) { return operation; }
inline Operation plain(const BoolOperation& operation) { return operation.operation(); }

}  // namespace detail

}  // namespace isthmus
#endif
