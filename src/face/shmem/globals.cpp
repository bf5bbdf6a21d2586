#include "face/shmem/globals.hpp"

#include <isthmus/collective.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/log.hpp"
#include "face/shmem/shared_variables.hpp"

namespace ist {
namespace {

// Somewhere in what this code is linked into.
constinit char here = 0;

Status told(int code) { return code == IST_OK ? Status{} : Status{static_cast<Code>(code), ist_error_text()}; }

// What a PE tells the others before anything is shared.
struct Card {
  ExecutableCard program;
  std::array<char, 200> obstacle{};  // why its variables cannot be symmetric
};

template <class T>
Status tell_all(const T& mine, std::vector<T>& all, ist_comm comm) {
  static_assert(std::is_trivially_copyable_v<T>);
  return told(ist_allgather(ist_host(&mine), sizeof(T), ist_host(all.data()), sizeof(T), IST_BYTE, comm));
}

// The library's own threads store into its variables at any time.
bool holds_library(const Executable& program) {
  const auto* const mine = reinterpret_cast<const std::byte*>(&here);
  return std::ranges::any_of(program.segments, [mine](const VariableSegment& each) {
    return mine >= each.begin && mine < each.begin + each.bytes.value;
  });
}

std::string obstacle_in(const Executable& program) {
  if (variables_are_shared()) return "its variables are symmetric in another world of it";
  if (holds_library(program)) return "Isthmus is linked into it; link the shared library";
  if (program.segments.size() > ExecutableCard::kMostSegments)
    return "it has " + std::to_string(program.segments.size()) + " segments of variables, and at most " +
           std::to_string(ExecutableCard::kMostSegments) + " can be symmetric";
  return {};
}

// The same at every PE, as every PE has all cards.
std::string why_not(const std::vector<Card>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (all[pe].obstacle[0] != '\0')
      return "PE " + std::to_string(pe) + " runs " + all[pe].program.name.data() + ": " + all[pe].obstacle.data();
  for (std::size_t pe = 1; pe < all.size(); ++pe) {
    const std::string text = difference(all[0].program, all[pe].program, static_cast<int>(pe));
    if (!text.empty()) return text + "; start the same file everywhere";
  }
  return {};
}

}  // namespace

SymmetricGlobals::SymmetricGlobals() : owner_(::getpid()) {}

Result<std::unique_ptr<SymmetricGlobals>> SymmetricGlobals::create(ist_comm comm) {
  std::unique_ptr<SymmetricGlobals> made{new SymmetricGlobals};
  IST_TRY(made->open(comm));
  return made;
}

Status SymmetricGlobals::open(ist_comm comm) {
  int pe = 0;
  int pes = 0;
  IST_TRY(told(ist_comm_rank(comm, &pe)));
  IST_TRY(told(ist_comm_size(comm, &pes)));
  const Executable program = this_executable();
  Card mine;
  mine.program = card_of(program);
  obstacle_in(program).copy(mine.obstacle.data(), mine.obstacle.size() - 1);
  std::vector<Card> all(static_cast<std::size_t>(pes));
  IST_TRY(tell_all(mine, all, comm));
  why_ = why_not(all);
  if (why_.empty() && !program.segments.empty()) IST_TRY(share(program, comm, pes));
  if (!why_.empty() && pe == 0)
    log::once(log::Level::warning, "global and static variables are not symmetric, only what was allocated is: " + why_);
  return {};
}

Status SymmetricGlobals::share(const Executable& program, ist_comm comm, int pes) {
  const std::uint64_t bytes =
      std::accumulate(program.segments.begin(), program.segments.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const VariableSegment& each) { return sum + each.bytes.value; });
  void* memory = nullptr;
  const Status created = told(ist_heap_create(comm, IST_KIND_HOST, 0, bytes + kPage, bytes + kPage, &heap_));
  // Of all PEs together. A program whose large arrays nobody is to reach still runs.
  if (created.code() == IST_ERR_MEMORY) {
    why_ = "their " + std::to_string(bytes) + " bytes have no room: " + created.text();
    return {};
  }
  IST_TRY(created);
  IST_TRY(told(ist_heap_aligned(heap_, kPage, bytes, &memory)));
  IST_TRY(told(ist_heap_view(heap_, &view_)));
  const Status own = share_variables(program.segments, static_cast<std::byte*>(memory));
  // Nobody goes on before all have, and none where one could not.
  std::vector<std::int32_t> codes(static_cast<std::size_t>(pes));
  const Status heard = tell_all(static_cast<std::int32_t>(own.code()), codes, comm);
  const auto failed = std::ranges::find_if(codes, [](std::int32_t code) { return code != IST_OK; });
  if (own.ok() && heard.ok() && failed == codes.end()) {
    std::byte* next = static_cast<std::byte*>(memory);
    for (const VariableSegment& each : program.segments) {
      segments_[count_++] = {each.first, Bytes{static_cast<std::uint64_t>(each.end - each.first)},
                             next + (each.first - each.begin)};
      next += each.bytes.value;
    }
    return {};
  }
  IST_TRY(make_variables_private());
  IST_TRY(own);
  IST_TRY(heard);
  return {static_cast<Code>(*failed), "PE " + std::to_string(failed - codes.begin()) +
                                          " could not make its global variables symmetric; its own text says why"};
}

SymmetricGlobals::~SymmetricGlobals() {
  if (count_ != 0) static_cast<void>(make_variables_private());
}

Status SymmetricGlobals::end() {
  if (heap_ == IST_HEAP_NULL || ::getpid() != owner_) return {};
  const Status waited = told(ist_heap_barrier(heap_));
  const Status back = make_variables_private();
  count_ = 0;
  Status gone = told(ist_heap_destroy(&heap_));
  IST_TRY(back);
  IST_TRY(waited);
  return gone;
}

}  // namespace ist
