// What a kind of memory can do. Each kind is one folder and one line in kinds.cpp.
//
// Who calls this : transfer, pinned pool, protocols, face (allocation). Who implements it: host/, cuda/, opencl/.
// Threads        : every call from any thread.
// Ownership      : allocate gives memory that release takes back; pieces are views.
// Errors         : returned; they name the driver call, its own error text, and the piece.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "memory/piece.hpp"
#include "memory/reduction.hpp"

namespace ist {

class BoxPacking;
class MemoryKind;
class Channels;
class Guests;
class Lending;
class Mailing;
class Packing;
class Queues;
class SharedHeap;
class Spaces;
class StreamOrder;
class WordChanges;
class Workers;

// The promise that a copy, or work in a user's queue, will have finished. Move-only; an empty ticket has finished already.
// Dropping an unfinished one is allowed: the kind cleans up when the work is done.
class Ticket {
 public:
  Ticket() = default;
  Ticket(MemoryKind* kind, std::uint64_t id) : kind_(kind), id_(id) {}
  Ticket(Ticket&& other) noexcept : kind_(std::exchange(other.kind_, nullptr)), id_(std::exchange(other.id_, 0)) {}
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() {
    if (kind_ != nullptr) drop();
  }
  bool empty() const { return kind_ == nullptr; }
  MemoryKind* kind() const { return kind_; }
  std::uint64_t id() const { return id_; }
  // Gives up the promise without telling the kind; for kinds, when the work has finished.
  void forget() { kind_ = nullptr, id_ = 0; }

 private:
  void drop();
  MemoryKind* kind_ = nullptr;
  std::uint64_t id_ = 0;
};

// What an allocation is. Only some classes can later be opened by another process.
enum class MemoryClass : std::uint8_t {
  pageable,    // host, unknown to any driver
  pinned,      // host, allocated page-locked by the driver
  registered,  // host, page-locked after the fact
  device,      // cudaMalloc, cl_mem
  vmm,         // cuMemCreate + cuMemMap
  pool,        // cudaMallocAsync
  managed,     // migrates
  unknown      // nobody has asked
};
std::string_view name_of(MemoryClass memory_class);

struct Recognised {
  KindId kind = KindId::host;
  std::int32_t device = -1;
  MemoryClass memory_class = MemoryClass::pageable;
  std::uint64_t buffer_id = 0;  // the driver's own id of the allocation, never re-used; 0 where there is none
};

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  std::string uuid;  // empty where the kind has none
  Bytes memory;
  std::string detail;  // driver or platform version
};

// What helps a kind where it is installed beside its driver; for people.
struct Addition {
  std::string name;
  std::string does;
  std::string detail;  // which version
  std::string off;     // why it is not there; empty: it is
};

// Page-locks host memory for this kind's devices. Used for the library's own memory only, never for a user's.
class Pins {
 public:
  virtual ~Pins() = default;
  virtual Status pin(void* address, Bytes size) = 0;
  virtual void unpin(void* address) = 0;
  // The same where it does not wait for work that waits for other ranks: there false, and it stays locked.
  virtual bool unpin_now(void* address) {
    unpin(address);
    return true;
  }
  // Where kernels on that device find what was pinned at the address.
  virtual Result<std::byte*> mapped(void*, int) {
    return Status{IST_ERR_UNSUPPORTED, "kernels of this kind's devices do not reach host memory"};
  }
};

// Knows the user's streams or queues.
class Streams {
 public:
  virtual ~Streams() = default;
  // Finished when the work that the piece's queue holds now has finished; empty if the queue is idle. Does not block.
  virtual Result<Ticket> ready(const Piece& piece) = 0;
  // The same without asking the queue, which takes over a microsecond: a copy that is told to come after this ticket goes into that
  // very queue. For who puts nothing else into it before that copy has begun; finished() asks, should anybody want to know.
  virtual Result<Ticket> in_order(const Piece& piece) { return ready(piece); }
  // Would a copy after that ticket of in_order() go into the queue itself, so that it holds up no other one, however long that takes?
  virtual bool goes_into_queue(const Ticket&) { return false; }
};

// Combines what is on a device without bringing it to the host. Gives the bits that combine_on_host gives, but for those
// inside of a NaN.
class Arithmetic {
 public:
  virtual ~Arithmetic() = default;
  // Why this device cannot do it (no double precision, no kernels for it); ok if it can.
  virtual Status can(Reduction reduction, ist_type type, int device) = 0;
  // Is this device the host's own processor?
  virtual bool by_processor(int device) const {
    static_cast<void>(device);
    return false;
  }
  // Starts into = with (op) into, element by element, on the device that holds both, after `after` (of this kind, or empty)
  // has finished. into.size == with.size, a whole number of elements; the two do not overlap, and begin where an element of
  // the type may (IST_ERR_ARGUMENT). Like copy(), it does not wait for the pieces' queues. Where it returns an error nothing
  // touches the pieces any more.
  virtual Result<Ticket> combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with,
                                 const Ticket& after) = 0;
};

class MemoryKind {
 public:
  virtual ~MemoryKind() = default;
  virtual KindId id() const = 0;
  virtual std::string_view name() const = 0;
  virtual const std::vector<DeviceInfo>& devices() const = 0;
  // True if copy() takes this pair directly; one side is this kind. Host is direct with everything.
  virtual bool copies(KindId to, KindId from) const = 0;
  // The same for two pieces: a kind that cannot always copy within itself (OpenCL: between two contexts), or would
  // not (CUDA: where processes take turns, and through the host takes less time), says so here.
  virtual bool reaches(const Piece& to, const Piece& from) const { return copies(to.kind, from.kind); }
  // Another rank's process has that device, too. Before the first copy.
  virtual void share(int) {}
  // Whose address this is, if this kind's. Kinds without addresses always answer no.
  virtual std::optional<Recognised> recognise(const void* address) = 0;
  // Checks that the object is of this kind, fills in device, and refuses what it cannot use (released cl_mem,
  // offset past the end, stream of another context) with a clear error. Cheap; called once per operation.
  virtual Status check(Piece& piece) = 0;
  virtual Result<Piece> allocate(int device, Bytes size) = 0;
  // Can arithmetic() use both? Two pieces on one device may belong to two contexts.
  virtual bool together(const Piece& one, const Piece& other) { return reaches(one, other); }
  // The same as allocate() where copies and arithmetic can use it together with a checked piece.
  virtual Result<Piece> allocate_beside(const Piece& neighbour, Bytes size) {
    return allocate(neighbour.device < 0 ? 0 : neighbour.device, size);
  }
  // Takes back what allocate() gave. IST_ERR_ARGUMENT, and nothing happens, if the object is no such, or its middle.
  virtual Status release(const Piece& piece) = 0;
  // The same of memory of the library's own, when it is no burden to others: release() may wait for whatever runs on the device.
  virtual void release_later(const Piece& piece) { static_cast<void>(release(piece)); }
  // Starts a copy of to.size == from.size bytes that begins, on the device, after `after` has finished; `after` may be of
  // this kind or empty (any other kind's must have finished). It does not wait for the pieces' queues: that is what
  // ready() is for. Copies that are given the ticket of the one before run in order, also when one of them has size 0.
  // Where it returns an error nothing touches the pieces any more.
  virtual Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket& after) = 0;
  // True once; afterwards the ticket is empty. An error of the device comes out here.
  virtual Result<bool> finished(Ticket& ticket) = 0;
  // A ticket was dropped unfinished.
  virtual void drop(std::uint64_t id) = 0;

  // So many threads beside the caller's may take part in a long copy, where a processor makes it.
  virtual void use_helpers(int) {}

  // Where a device is the host's own processor, its threads may need that of who waits for them: `over` is called, by any thread, each
  // time that a ticket is over, but not where its work failed; empty: no longer, and nobody is inside once this is back.
  // False: there is no such device.
  virtual bool tell_ends(std::function<void()>) { return false; }

  virtual std::vector<Addition> additions() { return {}; }

  virtual Pins* pins() { return nullptr; }
  virtual Streams* streams() { return nullptr; }
  virtual Arithmetic* arithmetic() { return nullptr; }
  virtual Packing* packing() { return nullptr; }           // packing.hpp
  virtual BoxPacking* box_packing() { return nullptr; }    // packing.hpp
  virtual Guests* guests() { return nullptr; }             // guests.hpp
  virtual Lending* lending() { return nullptr; }           // lending.hpp
  virtual Channels* channels() { return nullptr; }         // channels.hpp
  virtual Queues* queues() { return nullptr; }             // queues.hpp
  virtual Workers* workers() { return nullptr; }           // workers.hpp
  virtual Mailing* mailing() { return nullptr; }           // mailing.hpp
  virtual SharedHeap* shared_heap() { return nullptr; }    // host/shared_heap.hpp
  virtual Spaces* spaces() { return nullptr; }             // spaces.hpp
  virtual WordChanges* word_changes() { return nullptr; }  // word_changes.hpp
  virtual StreamOrder* stream_order() { return nullptr; }  // stream_order.hpp
};

}  // namespace ist
