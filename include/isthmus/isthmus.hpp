// Isthmus, C++ interface: a header-only face of isthmus.h with owners, views, spans and exceptions.
//
// Who calls this : applications in C++20. The exported symbols are those of the C interface alone.
// Threads        : as in C: every call from any thread; one Request is used by one thread at a time.
// Ownership      : World, Memory and Request own and move; Comm, Cart and Buffer are copied freely. Whatever came from a World
//                  holds it, so the world is left when the last of them is gone, in whatever order they are destroyed.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_ISTHMUS_HPP
#define ISTHMUS_ISTHMUS_HPP

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "isthmus/comm.hpp"

// isthmus/boot.h has them.
struct ist_boot_functions;
extern "C" IST_API void ist_interrupt_with(int (*asked)(void* context), void* context);

namespace isthmus {

// Memory that the library allocated, of any kind; freed when this goes. Nothing may be in flight on it then.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept
      : world_(std::move(other.world_)), buffer_(other.buffer_), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    Memory taken(std::move(other));
    std::swap(world_, taken.world_);
    std::swap(buffer_, taken.buffer_);
    std::swap(bytes_, taken.bytes_);
    return *this;
  }
  ~Memory() {
    if (world_) ist_memory_free(world_->get(), buffer_);
  }
  Buffer buffer() const noexcept { return buffer_; }
  Buffer at(std::size_t bytes) const { return buffer().at(bytes); }
  std::size_t bytes() const noexcept { return bytes_; }
  // Host memory as elements; an error for any other kind, whose addresses the processor cannot follow.
  template <Element T>
  std::span<T> as_span() const {
    if (buffer_.kind != IST_KIND_HOST) throw Error(IST_ERR_KIND, "as_span() of memory that is not of the host kind");
    return {reinterpret_cast<T*>(buffer_.object + buffer_.offset), bytes_ / sizeof(T)};
  }

 private:
  friend class World;
  Memory(detail::SharedWorld world, Kind kind, int device, std::size_t bytes) : bytes_(bytes) {
    detail::check(
        ist_memory_alloc(world ? world->get() : IST_WORLD_NULL, static_cast<ist_kind>(kind), device, bytes, &buffer_));
    world_ = std::move(world);
  }

  detail::SharedWorld world_;
  ist_buffer buffer_{};
  std::size_t bytes_ = 0;
};

// Host memory of the caller's that is page-locked for the devices of this process (ist_register) until this goes: before the memory
// does, and with nothing in flight on it.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept
      : world_(std::move(other.world_)), address_(std::exchange(other.address_, nullptr)) {}
  Registration& operator=(Registration&& other) noexcept {
    Registration taken(std::move(other));
    std::swap(world_, taken.world_);
    std::swap(address_, taken.address_);
    return *this;
  }
  ~Registration() {
    if (world_) ist_unregister(world_->get(), address_);
  }

 private:
  friend class World;
  Registration(detail::SharedWorld world, void* address, std::size_t bytes) : address_(address) {
    detail::check(ist_register(world ? world->get() : IST_WORLD_NULL, address, bytes));
    world_ = std::move(world);
  }

  detail::SharedWorld world_;
  void* address_ = nullptr;
};

// While this lives, `asked` is asked about every 0.1 s whether a World that this thread makes is to go on waiting for the other ranks;
// true, or an exception, which is lost, ends it: the World's constructor throws IST_CANCELLED. One at a time in a thread.
class InterruptWith {
 public:
  explicit InterruptWith(std::function<bool()> asked) : asked_(std::move(asked)) { ist_interrupt_with(ask, this); }
  InterruptWith(const InterruptWith&) = delete;
  InterruptWith& operator=(const InterruptWith&) = delete;
  ~InterruptWith() { ist_interrupt_with(nullptr, nullptr); }

 private:
  static int ask(void* self) noexcept {
    try {
      return static_cast<InterruptWith*>(self)->asked_() ? 1 : 0;
    } catch (...) {
      return 1;
    }
  }

  std::function<bool()> asked_;
};

// All ranks of the job. Construction is collective.
class World {
 public:
  World() : World(made_by, ist_world_create) {}
  // A world that was made in C, which is this object's from here on: nobody else destroys it. Where this throws, because the handle
  // is not that of a world, nothing was taken.
  explicit World(ist_world owned)
      : World(made_by, [owned](ist_world* out) {
          ist_comm found = IST_COMM_NULL;
          const int code = ist_world_comm(owned, &found);
          if (code == IST_OK) *out = owned;
          return code;
        }) {}
  // By a function that stores a world and returns a code. That of an MPI communicator, with isthmus/mpi.h:
  //   World::create_with([](ist_world* out) { return ist_world_from_mpi(MPI_COMM_WORLD, out); })
  template <std::invocable<ist_world*> Create>
  static World create_with(const Create& create) {
    return World(made_by, create);
  }
  // For exactly the processes that the table of isthmus/boot.h connects, which the program includes itself.
  template <std::same_as<ist_boot_functions> Functions>
  static World create_with(const Functions& functions) {
    return World(made_by, [&](ist_world* out) { return ist_world_create_with(&functions, out); });
  }
  template <std::same_as<ist_boot_functions> Functions>
  static World create_with(const Functions& functions, const std::string& settings) {
    return World(made_by,
                 [&](ist_world* out) { return ist_world_create_configured_with(settings.c_str(), &functions, out); });
  }
  // With settings of its own, as ist_world_create_configured takes them: World::configured("worker=1 eager_limit=32KiB").
  static World configured(const std::string& settings) {
    return World(made_by, [&](ist_world* out) { return ist_world_create_configured(settings.c_str(), out); });
  }
  World(World&&) noexcept = default;
  World& operator=(World&&) noexcept = default;

  Comm comm() const { return Comm(owner_); }
  // This rank alone.
  Comm self() const {
    Comm alone(owner_);
    detail::check(ist_world_comm_self(c(), &alone.comm_));
    return alone;
  }
  int rank() const { return comm().rank(); }
  int size() const { return comm().size(); }
  int local_rank() const { return comm().local_rank(); }
  // How many devices of the kind this process can use; 0 if the kind is not available.
  int devices(Kind kind) const {
    int count = 0;
    detail::check(ist_kind_devices(c(), static_cast<ist_kind>(kind), &count));
    return count;
  }
  // On this rank's own device, unless another is named.
  Memory allocate(Kind kind, std::size_t bytes, int device = IST_OWN_DEVICE) const {
    return Memory(owner_, kind, device, bytes);
  }
  // Between two places of this process; returns when the bytes have arrived.
  void copy(const Buffer& to, const Buffer& from, std::size_t bytes) const {
    detail::check(ist_memory_copy(c(), to.c(), from.c(), bytes));
  }
  // Messages between this memory and a device then take one copy, made by the device.
  template <class T>
  [[nodiscard]] Registration register_memory(std::span<T> memory) const {
    return Registration(owner_, static_cast<void*>(memory.data()), memory.size_bytes());
  }
  // What this rank has sent to and received from a rank of comm() by one carrier, or by all of them, so far.
  ist_traffic traffic(int peer = IST_ALL_PEERS, ist_carrier carrier = IST_CARRIER_NONE) const {
    ist_traffic found{sizeof(ist_traffic), 0, 0, 0, 0};
    detail::check(ist_world_traffic(c(), peer, carrier, &found));
    return found;
  }
  // Null once this World has been moved from; every call then says so.
  ist_world c() const noexcept { return owner_ ? owner_->get() : IST_WORLD_NULL; }

 private:
  static constexpr struct MadeBy {
  } made_by{};
  template <class Create>
  World(MadeBy, const Create& create) : owner_(std::make_shared<const detail::WorldOwner>(create)) {}

  detail::SharedWorld owner_;
};

// A communicator with a grid over its ranks, the last dimension running fastest.
class Cart : public Comm {
 public:
  Cart() = default;  // no communicator, as an empty Comm
  std::vector<int> dims() const { return get().dims; }
  std::vector<int> periods() const { return get().periods; }
  std::vector<int> coords() const { return get().coords; }
  std::vector<int> coords(int rank) const {
    std::vector<int> found(static_cast<std::size_t>(dimensions()));
    detail::check(ist_cart_coords(comm_, rank, dimensions(), found.data()));
    return found;
  }
  int rank_at(std::span<const int> coords) const {
    if (static_cast<int>(coords.size()) != dimensions())
      throw Error(IST_ERR_ARGUMENT, "rank_at() needs one coordinate per dimension");
    int found = 0;
    detail::check(ist_cart_rank(comm_, coords.data(), &found));
    return found;
  }
  // The grid of those with this rank's coordinates in the dimensions that do not remain; collective.
  Cart sub(std::span<const int> remain) const {
    return Cart(
        made([&](ist_comm* out) { return ist_cart_sub(comm_, static_cast<int>(remain.size()), remain.data(), out); }));
  }
  // Whom this rank receives from and sends to; proc_null past an edge.
  struct Shift {
    int source;
    int dest;
  };
  Shift shift(int dimension, int displacement) const {
    Shift found{};
    detail::check(ist_cart_shift(comm_, dimension, displacement, &found.source, &found.dest));
    return found;
  }

 private:
  friend class Comm;
  struct Extents {
    std::vector<int> dims, periods, coords;
  };
  explicit Cart(Comm comm) : Comm(std::move(comm)) {}
  int dimensions() const { return ask(ist_cart_ndims); }
  Extents get() const {
    const std::vector<int> empty(static_cast<std::size_t>(dimensions()));
    Extents found{empty, empty, empty};
    detail::check(ist_cart_get(comm_, dimensions(), found.dims.data(), found.periods.data(), found.coords.data()));
    return found;
  }
};

inline Cart Comm::cart(std::span<const int> dims, std::span<const int> periods) const {
  if (dims.size() != periods.size()) throw Error(IST_ERR_ARGUMENT, "cart() needs as many periods as dims");
  return Cart(made([&](ist_comm* out) {
    return ist_cart_create(comm_, static_cast<int>(dims.size()), dims.data(), periods.data(), 0, out);
  }));
}

// Balanced extents; entries that are not 0 are kept.
inline std::vector<int> balanced_dims(int ranks, std::vector<int> dims) {
  detail::check(ist_dims_create(ranks, static_cast<int>(dims.size()), dims.data()));
  return dims;
}

}  // namespace isthmus
#endif
