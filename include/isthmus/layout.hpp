// Isthmus, C++ interface: layouts, which bytes of a buffer; packing, and messages of them. Beside isthmus.hpp, which has the communicators.
//
// Who calls this : programs; over isthmus/layout.h.
// Threads        : as in C: every call from any thread.
// Ownership      : Layout is a shared value, freed with its last copy; what is made of it may outlive it.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_LAYOUT_HPP
#define ISTHMUS_LAYOUT_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "isthmus/layout.h"
#include "isthmus/request.hpp"

namespace isthmus {

enum class Order : int { c = IST_ORDER_C, fortran = IST_ORDER_FORTRAN };

// One or more basic types and where they lie. Commits itself when it is first packed or sent.
//
//   const auto column = Layout::vector(rows, 1, columns, type_of<double>);
//   column.send(world.comm(), Buffer::cuda(a + 3, stream), right, tag);
class Layout {
 public:
  using Numbers = std::span<const std::int64_t>;

  // One element.
  Layout(Type type) : handle_(ist_layout_of(type)) {}  // NOLINT(google-explicit-constructor): a type is a layout
  static Layout contiguous(std::int64_t count, const Layout& old) { return made(ist_layout_contiguous, count, old.handle_); }
  // Strides and displacements count elements, and bytes where the name begins with h.
  static Layout vector(std::int64_t count, std::int64_t block_length, std::int64_t stride, const Layout& old) {
    return made(ist_layout_vector, count, block_length, stride, old.handle_);
  }
  static Layout hvector(std::int64_t count, std::int64_t block_length, std::int64_t stride, const Layout& old) {
    return made(ist_layout_hvector, count, block_length, stride, old.handle_);
  }
  static Layout indexed(Numbers block_lengths, Numbers displacements, const Layout& old) {
    const auto count = same("indexed", block_lengths, displacements);
    return made(ist_layout_indexed, count, block_lengths.data(), displacements.data(), old.handle_);
  }
  static Layout hindexed(Numbers block_lengths, Numbers displacements, const Layout& old) {
    const auto count = same("hindexed", block_lengths, displacements);
    return made(ist_layout_hindexed, count, block_lengths.data(), displacements.data(), old.handle_);
  }
  static Layout indexed_block(std::int64_t block_length, Numbers displacements, const Layout& old) {
    return made(ist_layout_indexed_block, length(displacements), block_length, displacements.data(), old.handle_);
  }
  static Layout hindexed_block(std::int64_t block_length, Numbers displacements, const Layout& old) {
    return made(ist_layout_hindexed_block, length(displacements), block_length, displacements.data(), old.handle_);
  }
  static Layout structure(Numbers block_lengths, Numbers displacements, std::span<const Layout> olds) {
    const auto count = same("structure", block_lengths, displacements);
    if (olds.size() != block_lengths.size()) throw Error(IST_ERR_ARGUMENT, "structure() needs as many layouts as lengths");
    std::vector<ist_layout> handles;
    for (const Layout& old : olds) handles.push_back(old.handle_);
    return made(ist_layout_struct, count, block_lengths.data(), displacements.data(), handles.data());
  }
  static Layout subarray(Numbers sizes, Numbers subsizes, Numbers starts, const Layout& old, Order order = Order::c) {
    same("subarray", sizes, subsizes);
    const auto dimensions = static_cast<int>(same("subarray", sizes, starts));
    return made(ist_layout_subarray, dimensions, sizes.data(), subsizes.data(), starts.data(), static_cast<ist_order>(order),
                old.handle_);
  }
  // What a view of so many elements in each dimension, so many elements apart, names: the last dimension comes first in pack order.
  template <Element T>
  static Layout strided(Numbers extents, Numbers strides) {
    Layout view = contiguous(static_cast<std::int64_t>(type_of<T> == IST_BYTE ? sizeof(T) : 1), type_of<T>);
    for (auto d = same("strided", extents, strides); d-- > 0;) {
      const auto at = static_cast<std::size_t>(d);
      view = hvector(extents[at], 1, strides[at] * static_cast<std::int64_t>(sizeof(T)), view);
    }
    return view;
  }
  Layout resized(std::int64_t lower_bound, std::int64_t extent) const {
    return made(ist_layout_resized, handle_, lower_bound, extent);
  }

  // Another one of the same bytes, with a handle of its own; a copy shares its original's.
  Layout dup() const { return made(ist_layout_dup, handle_); }

  struct Bounds {
    std::int64_t lower;
    std::int64_t extent;
  };
  std::int64_t size() const {
    std::int64_t size = 0;
    detail::check(ist_layout_size(handle_, &size));
    return size;
  }
  Bounds bounds() const {
    Bounds found{};
    detail::check(ist_layout_extent(handle_, &found.lower, &found.extent));
    return found;
  }
  Bounds true_bounds() const {
    Bounds found{};
    detail::check(ist_layout_true_extent(handle_, &found.lower, &found.extent));
    return found;
  }
  // What it was made by and, once committed, its canonical form.
  std::string text() const {
    std::size_t needed = 0;
    detail::check(ist_layout_text(handle_, nullptr, 0, &needed));
    std::string text(needed, '\0');
    detail::check(ist_layout_text(handle_, text.data(), text.size(), nullptr));
    text.resize(std::min(needed - 1, text.find('\0')));
    return text;
  }
  const Layout& commit() const {
    if (owner_ == nullptr || owner_->committed.load(std::memory_order_acquire)) return *this;
    detail::check(ist_layout_commit(handle_));
    owner_->committed.store(true, std::memory_order_release);
    return *this;
  }
  ist_layout c() const noexcept { return handle_; }

  // Bytes of so many of it, packed.
  std::int64_t pack_size(std::int64_t count = 1) const {
    std::int64_t size = 0;
    detail::check(ist_pack_size(count, ready(), &size));
    return size;
  }
  // Bytes `first` up to `last` of so many of it, between a buffer and the packed bytes.
  template <class World>
  void pack(const World& world, const Buffer& from, const Buffer& packed, std::int64_t count = 1, std::int64_t first = 0,
            std::int64_t last = IST_TO_END) const {
    detail::check(ist_pack(world.c(), from.c(), count, ready(), first, last, packed.c()));
  }
  template <class World>
  void unpack(const World& world, const Buffer& packed, const Buffer& to, std::int64_t count = 1, std::int64_t first = 0,
              std::int64_t last = IST_TO_END) const {
    detail::check(ist_unpack(world.c(), packed.c(), first, last, to.c(), count, ready()));
  }

  // Messages of so many of it.
  template <class Comm>
  void send(const Comm& comm, const Buffer& buffer, int dest, int tag = 0, std::int64_t count = 1) const {
    detail::check(ist_send_layout(buffer.c(), count, ready(), dest, tag, comm.c()));
  }
  template <class Comm>
  Status recv(const Comm& comm, const Buffer& buffer, int source, int tag = any_tag, std::int64_t count = 1) const {
    ist_status status{};
    detail::check(ist_recv_layout(buffer.c(), count, ready(), source, tag, comm.c(), &status));
    return Status(status);
  }
  template <class Comm>
  Request isend(const Comm& comm, const Buffer& buffer, int dest, int tag = 0, std::int64_t count = 1) const {
    Request request;
    detail::check(ist_isend_layout(buffer.c(), count, ready(), dest, tag, comm.c(), &request.handle_));
    request.world_ = comm.world_;
    return request;
  }
  template <class Comm>
  Request irecv(const Comm& comm, const Buffer& buffer, int source, int tag = any_tag, std::int64_t count = 1) const {
    Request request;
    detail::check(ist_irecv_layout(buffer.c(), count, ready(), source, tag, comm.c(), &request.handle_));
    request.world_ = comm.world_;
    return request;
  }
  // Sends one of it and receives one of `in`.
  template <class Comm>
  Status sendrecv(const Comm& comm, const Buffer& out, int dest, int out_tag, const Layout& in, const Buffer& into,
                  int source, int in_tag = any_tag) const {
    ist_status status{};
    detail::check(
        ist_sendrecv_layout(out.c(), 1, ready(), dest, out_tag, into.c(), 1, in.ready(), source, in_tag, comm.c(), &status));
    return Status(status);
  }
  // Requests that are started as often as wanted, each time with what the buffer holds then.
  template <class Comm>
  PersistentRequest send_init(const Comm& comm, const Buffer& buffer, int dest, int tag = 0, std::int64_t count = 1) const {
    return persistent(ist_send_layout_init, comm, buffer, dest, tag, count);
  }
  template <class Comm>
  PersistentRequest ssend_init(const Comm& comm, const Buffer& buffer, int dest, int tag = 0, std::int64_t count = 1) const {
    return persistent(ist_ssend_layout_init, comm, buffer, dest, tag, count);
  }
  template <class Comm>
  PersistentRequest recv_init(const Comm& comm, const Buffer& buffer, int source, int tag = any_tag,
                              std::int64_t count = 1) const {
    return persistent(ist_recv_layout_init, comm, buffer, source, tag, count);
  }
  // How such a message would be packed and carried, in lines for people.
  template <class Comm>
  std::string explain(const Comm& comm, const Buffer& buffer, int dest, std::int64_t count = 1) const {
    std::size_t needed = 0;
    detail::check(ist_explain_layout(buffer.c(), count, ready(), dest, comm.c(), nullptr, 0, &needed));
    for (std::string text;;) {
      text.resize(needed);
      detail::check(ist_explain_layout(buffer.c(), count, ready(), dest, comm.c(), text.data(), text.size(), &needed));
      if (needed > text.size()) continue;  // another thread has changed what there is to say
      text.resize(needed - 1);
      return text;
    }
  }

 private:
  struct Owner {
    explicit Owner(ist_layout made) : handle(made) {}
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() { ist_layout_free(&handle); }
    ist_layout handle;
    std::atomic<bool> committed{false};
  };
  explicit Layout(ist_layout made) : handle_(made), owner_(std::make_shared<Owner>(made)) {}
  template <class Make, class... Arguments>
  static Layout made(Make make, Arguments... arguments) {
    ist_layout layout = IST_LAYOUT_NULL;
    detail::check(make(arguments..., &layout));
    return Layout(layout);
  }
  static std::int64_t length(Numbers numbers) { return static_cast<std::int64_t>(numbers.size()); }
  static std::int64_t same(const char* call, Numbers one, Numbers other) {
    if (one.size() != other.size())
      throw Error(IST_ERR_ARGUMENT, std::string{call} + "() needs lists of one length, and was given " +
                                        std::to_string(one.size()) + " and " + std::to_string(other.size()));
    return length(one);
  }
  ist_layout ready() const { return commit().handle_; }
  template <class Init, class Comm>
  PersistentRequest persistent(Init init, const Comm& comm, const Buffer& buffer, int peer, int tag,
                               std::int64_t count) const {
    PersistentRequest request;
    detail::check(init(buffer.c(), count, ready(), peer, tag, comm.c(), &request.handle_));
    request.world_ = comm.world_;
    return request;
  }

  ist_layout handle_;
  std::shared_ptr<Owner> owner_;  // null: of a basic type
};

// So many of a layout, from a buffer on. Where a call has parts of it, so many for each rank; the v forms of collective calls do not look
// at it.
struct Laid {
  Buffer buffer;
  Layout layout;
  std::int64_t count = 1;
};

}  // namespace isthmus
#endif
