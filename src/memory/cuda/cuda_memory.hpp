// The cuda kind itself. Only cuda_kind.cpp and tests of its inside need this; others include cuda_kind.hpp.
//
// Who calls this : make_cuda_kind; tests (counts of events and lanes).
// Threads        : any; one short lock around the tables, none held while the driver starts a copy.
// Ownership      : owns contexts, lanes, events; knows what it allocated, and frees only that.
// Errors         : returned, naming the driver's call and the piece.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "memory/cuda/cuda_borrowing.hpp"
#include "memory/cuda/cuda_bounces.hpp"
#include "memory/cuda/cuda_channels.hpp"
#include "memory/cuda/cuda_held.hpp"
#include "memory/cuda/cuda_kernels.hpp"
#include "memory/cuda/cuda_lending.hpp"
#include "memory/cuda/cuda_pins.hpp"
#include "memory/cuda/cuda_pointer.hpp"
#include "memory/cuda/cuda_quiet.hpp"
#include "memory/cuda/cuda_run_lists.hpp"
#include "memory/cuda/cuda_spaces.hpp"
#include "memory/cuda/cuda_tickets.hpp"
#include "memory/cuda/cuda_turns.hpp"
#include "memory/cuda/cuda_windows.hpp"
#include "memory/cuda/cuda_workers.hpp"
#include "memory/guests.hpp"
#include "memory/kind_options.hpp"
#include "memory/mailing.hpp"
#include "memory/refused_rows.hpp"
#include "memory/rows.hpp"
#include "memory/stream_order.hpp"
#include "memory/word_changes.hpp"

namespace ist {

class CudaGuestStream;
namespace packing {
struct Box;
struct Work;
}  // namespace packing

// How a copy is ordered, and a reduction like one within a device: an unfinished copy in the same direction is followed in
// its own lane, where order is free; any other work of this kind is waited for by its event, on the device. Host threads
// never wait, with one exception made by the driver: a copy to or from pageable host memory may hold the calling thread until
// everything before it in its lane is done. So whoever copies pageable memory should first see `after` finish. (One more is
// ours: a copy that the driver has taken, but whose event it refuses, is waited for before the error is returned.)
class CudaKind : public MemoryKind,
                 public Streams,
                 public Arithmetic,
                 public Packing,
                 public WordChanges,
                 public BoxPacking,
                 public StreamOrder,
                 public Guests,
                 public Lending,
                 public Mailing,
                 public CudaQuiet::Source {
 public:
  CudaKind(const CudaApi& api, std::vector<CUdevice> handles, std::vector<DeviceInfo> devices,
           const KindOptions& options = {});
  ~CudaKind() override;
  CudaKind(const CudaKind&) = delete;
  CudaKind& operator=(const CudaKind&) = delete;

  KindId id() const override { return KindId::cuda; }
  std::string_view name() const override { return "cuda"; }
  const std::vector<DeviceInfo>& devices() const override { return devices_; }
  bool copies(KindId to, KindId from) const override;
  void share(int device) override { turns_.share(device); }
  // Not what goes through the host in less time, since processes take turns within the device; nor over a link that is off.
  bool reaches(const Piece& to, const Piece& from) const override {
    if (to.kind != KindId::cuda || from.kind != KindId::cuda) return copies(to.kind, from.kind);
    if (to.device == from.device) return !(to.size < CudaTurns::kByHost && turns_.takes(to.device));
    return !links_.off(from.device, contexts_.uuid(to.device)) && !links_.off(to.device, contexts_.uuid(from.device));
  }
  std::optional<Recognised> recognise(const void* address) override;
  Status check(Piece& piece) override;
  Result<Piece> allocate(int device, Bytes size) override;
  Result<Piece> allocate_beside(const Piece& neighbour, Bytes size) override;
  bool together(const Piece& one, const Piece& other) override;
  Status release(const Piece& piece) override;
  void release_later(const Piece& piece) override;
  Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket& after) override;
  Result<bool> finished(Ticket& ticket) override;
  void drop(std::uint64_t id) override;
  Pins* pins() override { return &pins_; }
  Streams* streams() override { return this; }
  Arithmetic* arithmetic() override { return kernels_.present() ? this : nullptr; }
  Status can(Reduction reduction, ist_type type, int device) override;
  Result<Ticket> combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with,
                         const Ticket& after) override;
  // cuda_packing.cpp
  Packing* packing() override { return kernels_.present() ? this : nullptr; }
  Status can_pack(int device) override;
  Result<Ticket> pack_bytes(const PackWork& work, const Ticket& after) override;
  const char* refuses_rows(const PackWork& work) override;  // cuda_rows.cpp
  // cuda_words.cpp
  WordChanges* word_changes() override { return kernels_.present() ? this : nullptr; }
  void load_words(int device) override;
  Result<Ticket> change(const WordChange& change, const Piece& word, const Piece& before) override;
  Result<Ticket> change_behind(const WordChange& change, const Piece& word, const Ticket& after) override;
  bool reaches_processors_words(int device) const override;
  // cuda_stream_order.cpp
  StreamOrder* stream_order() override { return kernels_.present() ? this : nullptr; }
  Status belongs(std::uint64_t stream, const Piece& own) override;
  bool captures(std::uint64_t stream, const Piece& own) override;
  void use_streams() override { quiet_.use_streams(); }
  bool settled() override { return quiet_.settled(); }
  void let_kernels_wait() override { quiet_.let_kernels_wait(); }
  Status copy_in(std::uint64_t stream, const Piece& own, const Piece& to, const Piece& from) override;
  Status put_signal_in(std::uint64_t stream, const Piece& own, const StreamPut& put) override;
  Status wait_in(std::uint64_t stream, const Piece& word, const WordWait& wait) override;
  Status meet_in(std::uint64_t stream, const Piece& own, const ist_team_view& view) override;
  // cuda_box_packing.cpp
  BoxPacking* box_packing() override { return kernels_.present() ? this : nullptr; }
  const char* refuses_mapped(const Piece& memory, std::span<const std::byte> host) override;
  Result<Ticket> pack_boxes(std::span<const PackWork> works, const Ticket& after) override;
  Status pack_in(std::uint64_t stream, std::span<const PackWork> works) override;
  Status relay_in(std::uint64_t stream, const PackWork& from, const PackWork& to) override;
  Status prepare_packing(std::span<const PackWork> works) override;
  Status pack_at(int device, std::uint64_t stream, const PackWork& work, std::uint64_t came) override;
  Status prepare_at(int device, const PackWork& work) override;
  // CU_STREAM_PER_THREAD means the stream of the thread that calls this.
  Result<Ticket> ready(const Piece& piece) override;
  Result<Ticket> in_order(const Piece& piece) override;
  bool goes_into_queue(const Ticket& ticket) override;

  Guests* guests() override { return this; }
  // cuda_guests.cpp: device memory of a primary context, not managed.
  Status admits(const Piece& piece) override;
  Result<std::unique_ptr<GuestStream>> open_stream(int device) override;
  std::shared_ptr<void> begin_setup() override { return quiet_.begin_setup(); }
  bool streams_used() override { return quiet_.streams_used(); }
  bool quiet() override { return quiet_.over(); }
  // Is all over that guests have put into streams?
  bool over() override;

  std::vector<Addition> additions() override;
  // How many windows onto device memory are open, for tests.
  std::size_t open_windows() { return windows_.open_windows(); }

  Channels* channels() override { return channels_.present() ? &channels_ : nullptr; }
  Workers* workers() override { return &workers_; }
  Spaces* spaces() override { return &spaces_; }
  Lending* lending() override { return this; }
  void set_limit(Bytes limit) override { borrowing_.set_limit(limit); }
  void set_bounce_limit(Bytes limit) override { bounces_.set_limit(limit); }
  std::optional<Bounce> bounce(const Piece& own, Rank borrower) override;
  std::optional<Bounce> part_block(const Piece& own, Rank borrower) override;
  std::optional<Loan> lend(const Piece& piece, Rank borrower, LoanFor use) override {
    return lending_.lend(piece, borrower, use);
  }
  std::shared_ptr<Borrowed> borrow(const Loan& loan, Rank lender, const Piece& own) override {
    return borrowing_.borrow(loan, lender, own);
  }
  bool opening(const Loan& loan, Rank lender, const Piece& own) override { return borrowing_.opening(loan, lender, own); }
  Result<Ticket> copy_to(Borrowed& borrowed, const Loan& loan, const Piece& from, const Ticket& after) override;
  Result<Ticket> copy_from(Borrowed& borrowed, const Loan& loan, const Piece& to, const Ticket& after) override;
  Result<Ticket> copy_together(std::span<const LentCopy> copies) override;
  std::string why_not_lent(const Piece& piece, Rank borrower) override;
  Result<std::shared_ptr<Borrowed>> keep(const Loan& loan, Rank lender, const Piece& own, Bytes size) override;
  Status changes_words_of(const Loan& loan, Rank lender, const Piece& own) override;
  Result<Ticket> pack_lent(Borrowed& borrowed, const Loan& loan, const PackWork& work, const Ticket& after) override;
  Result<Ticket> relay_lent(Borrowed& borrowed, const Loan& loan, const LentForm& theirs, const PackWork& work,
                            const Ticket& after) override;
  void hear(const Loan& loan, Rank lender) override { borrowing_.hear(loan, lender); }
  bool same_device(const Loan& loan, const Piece& own) override { return borrowing_.same_device(loan, own); }
  std::vector<LinkFacts> try_links() override { return links_.try_all(); }
  bool serves(const Piece& own) override { return own.kind == KindId::cuda || context_of_locked(own).ok(); }

  // cuda_mailing.cpp
  Mailing* mailing() override { return this; }
  std::shared_ptr<const Piece> make_box() override;
  std::uint32_t number_of(std::uint64_t message) const override;
  Piece packets(const Piece& box, std::uint32_t place, Bytes size) const override;
  Bytes offset_of(std::uint32_t place) const override;
  bool awake(const Piece& piece) override;
  bool fits(const Piece& piece) const override { return piece.kind == KindId::cuda && workers_.fits(piece); }
  std::optional<Ticket> post(const Piece& from, Borrowed& box, const Loan& loan, const Letter& letter) override;
  std::optional<Ticket> take(const Piece& to, const Piece& box, const Letter& letter, bool cleans) override;
  Result<std::optional<bool>> taken(Ticket& ticket) override;
  void pack(std::span<const std::byte> bytes, std::uint32_t number, std::span<std::byte> packets) const override;
  bool unpack(std::span<const std::byte> packets, std::uint32_t number, std::span<std::byte> bytes) const override;

  // Its own workers, for tests.
  CudaWorkers& cuda_workers() { return workers_; }
  // Events ever made, for tests: it stops growing once enough are there.
  std::size_t events() const {
    const std::lock_guard lock(mutex_);
    return tickets_.size();
  }

 private:
  friend class CudaGuestStream;
  // Everything a copy needs to know before the driver is called.
  struct Route {
    CudaContext* context = nullptr;
    CudaLane* lane = nullptr;  // null: the user's queue
    CUstream stream = nullptr;
    CudaTicket* ticket = nullptr;
    CUevent wait_for = nullptr;
  };
  Result<Piece> allocate_in(CudaContext& context, Bytes size);
  Result<CudaContext*> context_of(const Piece& piece) {
    PointerFacts facts;
    return context_at(piece, spaces_.home_of(piece), facts);
  }
  // `home`: what CudaSpaces::home_of() says; `facts`: what the driver says of it, which is not asked where there is a home.
  Result<CudaContext*> context_at(const Piece& piece, CudaContext* home, PointerFacts& facts);
  // The context in which host memory is page-locked; an error if it is not, or not as a whole.
  Result<CudaContext*> context_of_locked(const Piece& piece);
  // A piece's queue, and the context in which it is.
  struct Queue {
    CudaContext* context = nullptr;
    CUstream stream = nullptr;
    bool own = false;  // the context is that of the piece's memory
  };
  Result<Queue> queue_of(const Piece& piece);
  // Both: its context must be current.
  Status must_not_be_captured(const Queue& queue, const Piece& piece) const;
  Result<Ticket> ask_for(const Queue& queue, const Piece& piece);
  Result<Ticket> record(const Queue& queue, const Piece& piece);
  Status record_unasked(CudaTicket& ticket);
  Result<CudaContext*> context_of_stream(CUstream stream, CudaContext& fallback);
  // The context must be current.
  Result<Route> plan(CudaContext& context, CopyDirection direction, const Ticket& after);
  // Which way that copy goes, so that what comes after it goes into its lane.
  CopyDirection direction_of(const CudaContext& context, const Ticket& copy);
  Result<Ticket> write_behind(CudaContext& context, const Piece& word, std::uint64_t value, const Ticket& after);
  // What goes around the driver's call that puts work into the lane; `moved`: that call was made.
  CUresult enter(const Route& route) const;
  CUresult leave(const Route& route, bool moved) const;
  // A kernel of the library's: launch() puts it into the route's stream, and what() says what for, should that fail.
  template <class LaunchIt, class What>
  Status start_kernel(const Route& route, const LaunchIt& launch, const What& what);
  Status start(const Route& route, const Piece& to, const Piece& from);
  Status start_together(const Route& route, CudaCopies& copies, const std::string& said);
  // By the processor itself, where that is possible and quicker, and nothing has to be waited for. Of memory in no space.
  bool copy_by_window(CudaContext& context, const PointerFacts& memory, CopyDirection direction, const Piece& to,
                      const Piece& from, const Ticket& after);
  std::optional<Ticket> copy_as_values(CudaContext& context, const Piece& to, const Piece& from);
  Result<Ticket> copy_in(CudaContext& context, CopyDirection direction, const Piece& to, const Piece& from,
                         const Ticket& after);
  Result<CudaContext*> context_of_both(const Piece& into, const Piece& with);
  struct Launch;
  Status start(const Route& route, const Launch& launch);
  CudaRunLists::Calls run_list_calls();
  Status bring(const Piece& to, const std::byte* from);
  Result<Ticket> start_pack(CudaContext& context, const PackWork& work, const Ticket& after);
  // What packs one work: its kernel, how many blocks of it, and what they are told.
  struct Packer;
  struct Relayer;
  Result<Ticket> pack_mapped(const PackWork& work, const Ticket& after);
  Result<CudaRunLists::List> runs_of(const PackWork& work, CudaContext& context);
  Result<Packer> packer_of(const PackWork& work, CudaContext& context);
  Result<Relayer> relayer_of(const PackWork& from, const PackWork& to, CudaContext& context);
  Result<packing::Box> box_of(const PackWork& work, CudaContext& context);
  // A kernel that is told so, where it was found; and then in its turn. The context must be current.
  struct PackLaunch;
  Result<Ticket> start_packing(CudaContext& context, const PackLaunch& launch, const PackWork& given, const Ticket& after);
  Result<Ticket> start_relay(CudaContext& context, const PackWork& from, const PackWork& to, const Ticket& after);
  // cuda_rows.cpp: one side may be host memory, or another rank's that this context has mapped.
  Result<Ticket> rows_over_bus(const PackWork& work, const Ticket& after);
  // `refused`: set where the error is the driver's refusal of such copies.
  Result<Ticket> start_rows(CudaContext& context, const PackWork& work, const Ticket& after, bool* refused = nullptr);
  Result<Ticket> start_rows(CudaContext& context, const PackWork& from, const PackWork& to, const Ticket& after);
  struct RowEnds;
  Result<Ticket> start_rows(CudaContext& context, const RowEnds& ends, const std::vector<RowCopy>& copies,
                            const Ticket& after);
  CUresult copy_rows(const RowEnds& ends, const RowCopy& rows, CUstream stream) const;
  bool reaches_rows(const CudaContext& context, const Form& form) const;
  template <class Work>
  Status in_stream_of(const Piece& own, const Work& work);
  Status launch_in(CudaContext& context, std::uint64_t stream, OrderKernel which, void* work, unsigned threads);
  // One that waits for other ranks.
  struct Holding;
  Status hold_in(CudaContext& context, std::uint64_t stream, const Holding& one);
  bool loads_from(const CudaContext& context, const Piece& from);
  Status copy_there(std::uint64_t stream, const Piece& to, const Piece& from) const;
  // False: the kernel has to do it.
  bool write_in(std::uint64_t stream, const Piece& word, std::uint64_t value) const;
  Status launch_packing(CudaContext& context, CUstream stream, std::span<const PackWork> works, std::uint64_t came);
  Status prepare_packing(std::span<const PackWork> works, CudaContext& context);
  CUresult make_queue(CudaContext& context);
  Status free_allocated(std::uint64_t address, std::uint64_t buffer_id);
  CudaContext* context_of_ticket(const Ticket& ticket);
  void give_back(CudaTicket& ticket);
  // An order to a worker is nothing that a stream can wait for: this thread does, for the microseconds that it takes.
  Status settle_order(const Ticket& after) {
    return after.kind() == this && CudaWorkers::owns(after.id()) ? workers_.wait(after.id()) : Status{};
  }
  Status order_across(const CudaContext& context, const Ticket& after);
  // What was planned is recorded now.
  Ticket under_way(CudaTicket& ticket, std::uint64_t id);
  CUresult ask(CudaTicket& ticket);
  CUresult look_for(CudaTicket& ticket);
  CUresult ask_event(const CudaRecord& ticket) const;
  // Waits for the copy of a ticket whose query failed.
  void settle(const CudaTicket& ticket) const;
  CUresult ask_queue(CudaTicket& ticket);

  const CudaApi api_;
  const std::vector<DeviceInfo> devices_;
  CudaQuiet quiet_;
  CudaContexts contexts_;
  CudaSights sights_;
  CudaPins pins_;
  CudaKernels kernels_;
  CudaRunLists run_lists_;
  CudaWorkers workers_;
  mutable std::mutex mutex_;  // guards what follows and what is inside the contexts
  CudaTickets tickets_;
  std::map<std::uint64_t, std::uint64_t> allocated_;  // address to the driver's id, since an address may be used again
  std::mutex guests_mutex_;
  std::vector<CudaGuestStream*> guests_;
  CudaLinks links_;
  KeptFacts facts_;
  CudaLending lending_;
  CudaBorrowing borrowing_;
  CudaBounces bounces_;
  std::atomic<int> together_refused_{0};        // calls for several copies, in turn
  std::atomic<std::uint64_t> bounces_said_{0};  // of which classes of memory, and why: a bit for each
  void say_bounced(const PointerFacts& facts, Rank borrower);
  CudaChannels channels_;
  CudaWindows windows_;
  CudaTurns turns_;
  CudaSpaces spaces_;
  RefusedRows refused_rows_;
  struct Boxes {
    Piece memory;
    std::uint64_t given = 0;
  };
  Result<std::shared_ptr<Boxes>> make_boxes(int device);
  std::mutex boxes_mutex_;
  std::weak_ptr<Boxes> boxes_;  // those of which some may still be given away
  CudaHeld held_;
};

template <class LaunchIt, class What>
Status CudaKind::start_kernel(const Route& route, const LaunchIt& launch, const What& what) {
  const char* call = "cuStreamWaitEvent";
  CUresult result = enter(route);
  if (result == CUDA_SUCCESS) {
    call = "cuLaunchKernel";
    result = launch();
  }
  if (result == CUDA_SUCCESS) {
    call = "cuEventRecord";
    result = leave(route, true);
  }
  return result == CUDA_SUCCESS ? Status{} : cuda_error(api_, result, std::string(call) + what());
}

}  // namespace ist
