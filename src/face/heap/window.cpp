#include "face/heap/window.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "collective/exchange.hpp"
#include "face/message/world.hpp"
#include "memory/word_changes.hpp"

namespace ist {
namespace {

constexpr const char* kCreate = "ist_window_create";
constexpr std::size_t kMostPes = IST_WINDOW_MOST_PES;
constexpr std::uint64_t kMostAligned = 4096;  // more than is asked for
constexpr const char* kInstead =
    "; register what cudaMalloc or ist_memory_alloc gives, or copy into memory of a heap (ist_heap_create)";

}  // namespace

Result<std::unique_ptr<Window>> Window::create(World& world, const Communicator& parent, const ist_buffer& memory,
                                               std::uint64_t bytes) {
  auto comm = split(parent, {0, parent.rank()}, world.contexts(), "window");
  if (!comm.ok()) return comm.status();
  std::unique_ptr<Window> made{new Window{world, std::move(*comm)}};
  IST_TRY(made->open(memory, Bytes{bytes}));
  return made;
}

Window::~Window() {
  service_.reset();  // whose thread looks at the parts
  give_up_copies();
  parts_.clear();
  if (anchor_) world().kinds().find(anchor_->kind)->release_later(*anchor_);
}

Status Window::open(const ist_buffer& memory, Bytes bytes) {
  FilePart file;
  Status own = look_at_own(memory, bytes, file);
  IST_TRY(agree(kCreate, {}, own));
  parts_.resize(static_cast<std::size_t>(pes()));
  std::vector<Card> all;
  const bool none = bytes == Bytes{};
  IST_TRY(meet({bytes.value, file.offset, none ? 0 : reinterpret_cast<std::uintptr_t>(own_.address()),
                none ? 0U : static_cast<std::uint32_t>(own_.kind)},
               all));
  part(Pe{pe()}).base = bytes == Bytes{} ? nullptr : own_.address();
  return on_host() ? map_files(file, all) : map_devices();
}

Status Window::look_at_own(const ist_buffer& memory, Bytes bytes, FilePart& file) {
  if (static_cast<std::size_t>(pes()) > kMostPes)
    return {IST_ERR_ARGUMENT, "the communicator has " + std::to_string(pes()) + " ranks, and a window at most " +
                                  std::to_string(kMostPes) + "; split it, or make a heap (ist_heap_create)"};
  IST_TRY(all_local("window"));
  if (bytes == Bytes{}) {
    // Passed on to the others where those have host memory, and looked at by nobody.
    file.file = FileDescriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    return file.file.valid() ? Status{} : system_error("open of /dev/null");
  }
  const auto piece = world().kinds().resolve(memory, bytes);
  if (!piece.ok()) return piece.status();
  own_ = *piece;
  if (own_.kind == KindId::host) {
    auto found = file_part_of(own_.address(), bytes);
    if (!found.ok()) return refused_on_host(found.status());
    file = std::move(*found);
    return {};
  }
  MemoryKind& kind = *world().kinds().find(own_.kind);
  if (kind.lending() != nullptr) return {};
  return {IST_ERR_UNSUPPORTED,
          "memory of kind " + std::string{kind.name()} +
              " cannot be opened by other processes; register memory of IST_KIND_HOST or IST_KIND_CUDA, and copy"};
}

// A driver may know whose memory it is.
Status Window::refused_on_host(const Status& why) const {
  const Recognised found = world().kinds().recognise(own_.address());
  if (found.kind != KindId::host)
    return {IST_ERR_KIND, "this is memory of kind " + std::string{world().kinds().find(found.kind)->name()} +
                              ", and was given as host memory; name its kind, or IST_KIND_AUTO"};
  if (found.memory_class != MemoryClass::pinned) return why;
  return {why.code(), "page-locked memory of a driver (cudaMallocHost): " + why.text()};
}

Status Window::meet(Card mine, std::vector<Card>& all) {
  IST_TRY(exchange(comm(), kCreate, mine, all));
  std::optional<std::size_t> first;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    parts_[pe].bytes = Bytes{all[pe].bytes};
    parts_[pe].aligned_as = all[pe].address % kMostAligned;
    if (all[pe].bytes == 0) continue;
    if (!first) first = pe;
    if (all[pe].kind == all[*first].kind) continue;
    const auto name = [&](std::size_t of) {
      return std::string{world().kinds().find(static_cast<KindId>(all[of].kind))->name()};
    };
    return {IST_ERR_KIND, pe_text(static_cast<int>(*first)) + " registers memory of kind " + name(*first) + ", and " +
                              pe_text(static_cast<int>(pe)) + " of kind " + name(pe) +
                              "; all PEs of a window register one kind (make a window for each)"};
  }
  kind_ = first ? static_cast<KindId>(all[*first].kind) : KindId::host;
  return {};
}

// ---- host memory ----

Status Window::map_files(const FilePart& file, const std::vector<Card>& all) {
  std::vector<FileDescriptor> files(all.size());
  Status own = pass_around(file.file, files);
  for (int pe = 0; pe < pes() && own.ok(); ++pe) {
    if (!is_other(pe)) continue;
    const auto p = static_cast<std::size_t>(pe);
    auto mapped = MappedPart::map(files[p], all[p].offset, parts_[p].bytes);
    if (!mapped.ok()) {
      own = {mapped.status().code(),
             pe_text(this->pe()) + " cannot map memory of " + pe_text(pe) + ": " + mapped.status().text()};
      break;
    }
    parts_[p].mapped = std::move(*mapped);
    parts_[p].base = parts_[p].mapped.address();
  }
  return agree("ist_window_create: map", {}, own);
}

// ---- memory of devices ----

Status Window::map_devices() {
  std::array<Loan, kMostPes> mine{};
  Status own;
  const auto found = world().kinds().usable(static_cast<std::uint32_t>(kind_));
  Lending* const lending = found.ok() ? (*found)->lending() : nullptr;
  if (lending == nullptr)
    own = found.ok() ? Status{IST_ERR_UNSUPPORTED, "this kind of memory is not opened here"} : found.status();
  if (own.ok() && part(Pe{pe()}).bytes == Bytes{}) {
    auto byte = (*found)->allocate(world().own_device(**found), Bytes{1});
    own = byte.status();
    if (byte.ok()) own_ = *(anchor_ = *byte);
  }
  if (own.ok()) own = make_abort_page(kind_);
  // Now, since a kernel is loaded only when nothing runs on the device, and a word may be changed for one that waits for it.
  if (own.ok())
    if (WordChanges* const changes = (*found)->word_changes(); changes != nullptr) changes->load_words(own_.device);
  for (int pe = 0; own.ok() && pe < pes(); ++pe)
    if (pe != this->pe() && part(Pe{this->pe()}).bytes > Bytes{})
      own = lend_to(pe, *lending, mine[static_cast<std::size_t>(pe)]);
  IST_TRY(agree("ist_window_create: lend", {}, own));
  std::vector<std::array<Loan, kMostPes>> all;
  IST_TRY(exchange(comm(), kCreate, mine, all));
  // Each begins with another one: the ends of a link are tried by both.
  for (int i = 1; own.ok() && i < pes(); ++i) {
    const int pe = (this->pe() + i) % pes();
    if (is_other(pe))
      own = borrow_from(pe, *lending, all[static_cast<std::size_t>(pe)][static_cast<std::size_t>(this->pe())]);
  }
  Status all_opened = agree("ist_window_create: open", {}, own);
  if (all_opened.ok()) all_opened = serve();
  if (!all_opened.ok()) static_cast<void>(let_go("ist_window_create: let go"));
  return all_opened;
}

Status Window::serve() {
  const auto bit = [](int pe) { return std::uint64_t{1} << static_cast<unsigned>(pe % 64); };
  std::uint64_t asks = 0;  // a bit for each PE, which PEs that are 64 apart share
  for (int pe = 0; pe < pes(); ++pe)
    if (!part(Pe{pe}).unreached.ok()) asks |= bit(pe);
  std::vector<std::uint64_t> all;
  IST_TRY(exchange(comm(), kCreate, asks, all));
  if (std::all_of(all.begin(), all.end(), [](std::uint64_t each) { return each == 0; })) return {};
  const auto bells = make_bells();
  Status own = bells.status();
  const bool asked = std::any_of(all.begin(), all.end(), [&](std::uint64_t each) { return (each & bit(pe())) != 0; });
  if (own.ok() && asked && world().settings().single_threaded())
    own = {IST_ERR_SETTING,
           "a thread of the library's own serves this PE's memory to PEs whose devices do not reach it, which "
           "ISTHMUS_THREADS=\"single\" does not allow: leave that out, or register memory of IST_KIND_HOST"};
  if (own.ok()) {
    std::vector<bool> asked_by;
    for (const std::uint64_t each : all) asked_by.push_back((each & bit(pe())) != 0);
    const auto piece = [this](Offset offset, Bytes size) { return this->piece(Pe{pe()}, offset, size); };
    service_ = std::make_unique<PartService>(world(), comm(), PartService::Part{Pe{pe()}, kind_, SpaceReach::device, piece},
                                             *bells);
    own = service_->start(asked_by);
  }
  Status started = agree("ist_window_create: serve", {}, own);
  if (!started.ok()) service_.reset();
  return started;
}

// In host memory, whatever the window is of: a word in a page of each PE's, zero at first.
Result<PartService::Bells> Window::make_bells() {
  Spaces& spaces = *world().kinds().host().spaces();
  const Bytes page = spaces.page();
  static_assert(PartService::Bells::kSize.value <= 4096, "a page holds it");
  auto space = spaces.open({Pe{pe()}, pes(), 0, page});
  IST_TRY(agree("ist_window_create: bells", {}, space.status()));
  bells_ = std::move(*space);
  IST_TRY(extend(*bells_, Offset{}, page, [](Pe) { return true; }));
  return PartService::Bells{bells_->base(), page};
}

// Before anybody frees his memory: drivers do not bear that while another process has a piece of a pool open.
Status Window::let_go(const char* call) {
  for (Part& each : parts_) {
    each.kept.reset();
    each.mapped = MappedPart{};
  }
  return agree(call, {});
}

bool Window::opens_nothing() const { return world().settings().device_ipc == "never"; }

Status Window::lend_to(int pe, Lending& lending, Loan& loan) {
  if (opens_nothing()) return {};  // no loan: this PE serves its memory
  const Rank borrower = rank_of(Pe{pe});
  const auto lent = lending.lend(own_, borrower, LoanFor::keeping);
  if (!lent)
    return {IST_ERR_UNSUPPORTED,
            "its memory is no other process's to reach: " + lending.why_not_lent(own_, borrower) + kInstead};
  loan = *lent;
  return {};
}

Status Window::borrow_from(int pe, Lending& lending, const Loan& loan) {
  const Rank lender = rank_of(Pe{pe});
  Part& theirs = part(Pe{pe});
  if (opens_nothing() || loan.allocation == 0) {
    const int whose = opens_nothing() ? this->pe() : pe;
    theirs.unreached = {IST_ERR_UNREACHABLE, "ISTHMUS_DEVICE_IPC is never, as " + pe_text(whose) + " is set"};
    return {};
  }
  lending.hear(loan, lender);
  auto kept = lending.keep(loan, lender, own_, theirs.bytes);
  if (kept.status().code() == IST_ERR_UNREACHABLE) {
    theirs.unreached = kept.status();
    return {};
  }
  if (!kept.ok())
    return {kept.status().code(),
            pe_text(this->pe()) + " cannot reach memory of " + pe_text(pe) + ": " + kept.status().text()};
  theirs.kept = std::move(*kept);
  theirs.base = theirs.kept->base() + loan.offset;
  theirs.lack = lending.changes_words_of(loan, lender, own_);
  return {};
}

// ---- what calls ask ----

Status Window::check(int pe) const {
  if (pe >= 0 && pe < pes()) return {};
  return {IST_ERR_RANK, "pe is " + std::to_string(pe) + "; this window has PEs 0 to " + std::to_string(pes() - 1)};
}

Status Window::check(int pe, std::uint64_t offset, Bytes size) const {
  IST_TRY(check(pe));
  const std::uint64_t there = part(Pe{pe}).bytes.value;
  if (offset <= there && size.value <= there - offset) return {};
  return {IST_ERR_ARGUMENT, std::to_string(size.value) + " bytes at offset " + std::to_string(offset) + " of " +
                                pe_text(pe) + " were named, which has registered " + std::to_string(there)};
}

Status Window::has_addresses(Pe pe) const {
  const Status& why = part(pe).unreached;
  if (why.ok()) return {};
  return {IST_ERR_UNREACHABLE, "the device of " + pe_text(this->pe()) + " does not reach the memory of " +
                                   pe_text(pe.value) + ", which " + pe_text(pe.value) +
                                   " serves to the host's calls alone: " + why.text() +
                                   "; make that call without kernels, put these PEs on devices that reach each other, or "
                                   "register memory of IST_KIND_HOST"};
}

Status Window::has_addresses() const {
  for (int pe = 0; pe < pes(); ++pe) IST_TRY(has_addresses(Pe{pe}));
  return {};
}

Status Window::quiet() {
  Status failed = Team::quiet();
  if (!service_) return failed;
  Status served = service_->quiet();
  return failed.ok() ? served : failed;
}

// What check() learned of the own memory holds for one operation alone.
Piece Window::piece(Pe pe, Offset offset, Bytes size) const {
  Piece piece = host_piece(at(pe, offset), size);
  piece.kind = kind_;
  piece.device = on_host() ? 0 : (pe.value == this->pe() ? own_.device : -1);
  piece.ready = true;  // whoever has streams write there orders them himself
  return piece;
}

void Window::fill(ist_window_view& view) const {
  view = {};
  view.pe = pe();
  view.pes = pes();
  view.abort_word = abort_word_for_kernels();
  for (std::size_t pe = 0; pe < parts_.size(); ++pe) {
    view.bytes[pe] = parts_[pe].bytes.value;
    view.base[pe] = reinterpret_cast<unsigned char*>(parts_[pe].base);
  }
}

Status Window::end() {
  const Status copied = quiet();
  IST_TRY(agree("ist_window_free", {}));
  const Status all = let_go("ist_window_free: let go");
  return copied.ok() ? all : copied;
}

}  // namespace ist
