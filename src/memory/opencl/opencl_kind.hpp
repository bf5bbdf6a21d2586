// OpenCL buffers of any driver and any context.
//
// Who calls this : kinds.cpp makes it; used through MemoryKind and Streams.
// Threads        : any.
// Ownership      : buffers from allocate() are released by release(), or with the kind. A user's buffer is retained while a
//                  copy or reduction of it is in flight.
// Errors         : returned with the OpenCL call and the name of its error. A buffer that release() has
//                  released is refused; of a user's own that is so where the driver itself still knows that, because OpenCL
//                  offers no safe way to ask about a handle that is garbage.
//
// A buffer whose queue is null is copied at once: nothing is waited for, as there is nobody to ask.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "memory/memory_kind.hpp"
#include "memory/opencl/opencl_contexts.hpp"
#include "memory/opencl/opencl_listeners.hpp"
#include "memory/opencl/opencl_packing.hpp"
#include "memory/opencl/opencl_programs.hpp"
#include "memory/opencl/opencl_queues.hpp"
#include "memory/opencl/opencl_spaces.hpp"
#include "memory/refused_rows.hpp"

namespace ist {

struct RowCopy;

Result<std::unique_ptr<MemoryKind>> make_opencl_kind();

class OpenclKind final : public MemoryKind, public Streams, public Arithmetic, public Packing {
 public:
  explicit OpenclKind(const OpenclApi& api)
      : api_(api),
        contexts_(api),
        programs_(api),
        packs_(api),
        queues_(api),
        spaces_(api, contexts_),
        listener_(OpenclListeners::all().add([this] { ends_.fetch_add(1); })) {}
  ~OpenclKind() override;
  Status list_devices() { return contexts_.list_devices(); }

  KindId id() const override { return KindId::opencl; }
  std::string_view name() const override { return "opencl"; }
  const std::vector<DeviceInfo>& devices() const override { return contexts_.devices(); }
  bool copies(KindId to, KindId from) const override;
  bool reaches(const Piece& to, const Piece& from) const override;
  std::optional<Recognised> recognise(const void* address) override;
  Status check(Piece& piece) override;
  Result<Piece> allocate(int device, Bytes size) override;
  Result<Piece> allocate_beside(const Piece& neighbour, Bytes size) override;
  Status release(const Piece& piece) override;
  Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket& after) override;
  Result<bool> finished(Ticket& ticket) override;
  void drop(std::uint64_t id) override;
  Streams* streams() override { return this; }
  Result<Ticket> ready(const Piece& piece) override;
  Arithmetic* arithmetic() override { return this; }
  bool by_processor(int device) const override;
  bool tell_ends(std::function<void()> over) override;
  Packing* packing() override { return this; }
  Status can_pack(int device) override;
  Result<Ticket> pack_bytes(const PackWork& work, const Ticket& after) override;
  const char* refuses_rows(const PackWork& work) override;  // opencl_rows.cpp
  Queues* queues() override { return &queues_; }
  Spaces* spaces() override { return &spaces_; }
  Status can(Reduction reduction, ist_type type, int device) override;
  Result<Ticket> combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with,
                         const Ticket& after) override;

 private:
  // Of a command whose end it tells a driver is asked when it has told of one, and every so many looks: PoCL 3.1 tells of none that was
  // terminated.
  static constexpr std::uint32_t kAskEvery = 8;
  // One promise: the event of a command, and the buffers it reads and writes.
  struct Promise {
    cl_event event = nullptr;  // null: the place is free
    cl_context context = nullptr;
    cl_mem first = nullptr;
    cl_mem second = nullptr;
    std::uint32_t looks = 0;       // by finished()
    std::uint32_t ends = 0;        // ends_ before the driver was asked last
    bool told = false;             // the driver tells of the end
    std::uint32_t generation = 1;  // of the tickets for this place, so that an old one is never taken for a new one
  };
  Status check_queue(Piece& piece, cl_context context) const;
  Result<Piece> create(cl_context context, int device, Bytes size);
  Result<Ticket> enqueue(cl_command_queue queue, const Piece& to, const Piece& from, cl_event after);
  Result<Ticket> pack_rows(const PackWork& work, const Ticket& after);
  // `refused`: the error is the driver's refusal of such copies.
  Result<Ticket> start_rows(const PackWork& work, const Ticket& after, bool& refused);
  // The call, and its error.
  std::pair<const char*, cl_int> enqueue_rows(cl_command_queue queue, const PackWork& work, const RowCopy& rows,
                                              cl_event after, cl_event* done);
  Result<cl_event> wait_for(const Ticket& after, cl_context context);
  // The ticket of a command that was enqueued, which is sent to the device.
  Result<Ticket> promise(cl_command_queue queue, cl_event done, const Piece& to, const Piece& from);
  Result<bool> is_over(Ticket& ticket, bool tell);
  Ticket remember(Promise promise);
  Promise take(std::uint64_t id);
  void release_promise(const Promise& promise) const;

  const OpenclApi& api_;
  OpenclContexts contexts_;
  OpenclPrograms programs_;
  OpenclPacks packs_;
  OpenclQueues queues_;
  OpenclSpaces spaces_;
  RefusedRows refused_rows_;
  std::atomic<bool> tells_{false};      // somebody wants to be told of ends
  std::atomic<std::uint32_t> ends_{0};  // that drivers told of
  const std::uint64_t listener_;
  std::mutex mutex_;
  std::vector<Promise> promises_;
  std::vector<std::uint32_t> free_places_;
  std::set<cl_mem> allocated_;
};

}  // namespace ist
