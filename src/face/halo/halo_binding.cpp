// An exchange's buffers of one time: what packs them, and which way takes least time.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "face/halo/halo_exchange.hpp"

namespace ist::halo {
namespace {

// Two buffers that take turns, and two more.
constexpr std::size_t kBindings = 4;

bool same_place(const ist_buffer& one, const ist_buffer& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

const char* name_of(ist_halo_packing packing) {
  constexpr std::array<const char*, 4> kNames{"auto", "calls", "layouts", "loops"};
  return kNames[static_cast<std::size_t>(packing)];
}

// The shortest of a few times, in microseconds: others on the machine make times longer, never shorter.
Result<double> time_of(World& world, const Packer& packer, const Piece& buffer) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTimes = 7;
  double best = 0;
  IST_TRY(run(world, packer, buffer, buffer));
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = Clock::now();
    IST_TRY(run(world, packer, buffer, buffer));
    const double took = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    best = i == 0 ? took : std::min(best, took);
  }
  return best;
}

std::string microseconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f us", value);
  return text.data();
}

}  // namespace

Status Exchange::bind() {
  const auto known = std::find_if(bindings_.begin(), bindings_.end(), [&](const Binding& binding) {
    for (std::size_t f = 0; f < fields_.size(); ++f)
      if (!same_place(binding.buffers[f], fields_[f].buffer)) return false;
    return true;
  });
  if (known != bindings_.end()) {
    std::rotate(known, known + 1, bindings_.end());
    return {};
  }
  Binding made;
  for (const Field& field : fields_) made.buffers.push_back(field.buffer);
  IST_TRY(place(made.fields));
  IST_TRY(check_kinds(made));
  for (Share& share : shares_)
    if (share.packing == IST_HALO_AUTO) IST_TRY(measure(share, made));
  IST_TRY(make_tasks(made));
  // Graphs may hold what was put into streams.
  if (bindings_.size() >= kBindings)
    if (const auto old =
            std::find_if(bindings_.begin(), bindings_.end(), [](const Binding& each) { return !each.in_streams; });
        old != bindings_.end())
      bindings_.erase(old);
  bindings_.push_back(std::move(made));
  return {};
}

// A share's buffers are of the kind and device that its fields had when it was made.
Status Exchange::check_kinds(const Binding& binding) const {
  for (const Share& share : shares_)
    for (const std::size_t f : share.fields) {
      const Piece& memory = binding.fields[f].memory;
      if (memory.kind != share.beside.kind || (memory.kind != KindId::host && memory.device != share.beside.device))
        return {IST_ERR_KIND, "field " + std::to_string(f) +
                                  " lies in another kind of memory, or on another device, than the one in its place before; "
                                  "make another exchange"};
    }
  return {};
}

Status Exchange::make_tasks(Binding& binding) {
  for (const Share& share : shares_) {
    MemoryKind& kind = *world_.kinds().find(share.beside.kind);
    auto packs = packer_of(share.out, binding.fields, share.packing, false, kind);
    if (!packs.ok()) return packs.status();
    auto unpacks = packer_of(share.in, binding.fields, share.packing, true, kind);
    if (!unpacks.ok()) return unpacks.status();
    binding.packs.push_back(std::move(*packs));
    binding.unpacks.push_back(std::move(*unpacks));
  }
  return {};
}

// By packing alone, which leaves the fields as they are; unpacking moves the same cells.
Status Exchange::measure(Share& share, const Binding& binding) {
  double best = 0;
  for (const ist_halo_packing packing : {IST_HALO_LAYOUTS, IST_HALO_CALLS, IST_HALO_LOOPS}) {
    const auto packer = packer_of(share.out, binding.fields, packing, false, *world_.kinds().find(share.beside.kind));
    if (!packer.ok()) return packer.status();
    const auto took = time_of(world_, *packer, share.way->out());
    if (!took.ok()) return took.status();
    if (!share.measured.empty()) share.measured += ", ";
    share.measured += name_of(packing);
    share.measured += " " + microseconds(*took);
    if (share.packing != IST_HALO_AUTO && *took >= best) continue;
    best = *took;
    share.packing = packing;
  }
  return {};
}

std::string Exchange::text() const {
  std::string text = std::to_string(fields_.size()) + (fields_.size() == 1 ? " field" : " fields") + ", rank " +
                     std::to_string(rank_) + " of " + std::to_string(ranks_) + ", " +
                     (options_.way == IST_HALO_ONE_SIDED ? "one-sided" : "messages") + "\n";
  for (const Share& share : shares_) {
    text += std::string{world_.kinds().find(share.beside.kind)->name()} + ": fields";
    for (const std::size_t field : share.fields) {
      text += " ";
      text += std::to_string(field);
    }
    text += "; packed by ";
    text += name_of(share.packing);
    if (!share.measured.empty()) text.append(" (measured: ").append(share.measured).append(")");
    text += "\n";
    for (const Lane& lane : share.lanes) {
      text.append("  rank ").append(std::to_string(lane.rank)).append(": ");
      if (lane.rank == rank_)
        text += std::to_string(lane.out_bytes) + " bytes, this rank itself\n";
      else
        text += std::to_string(lane.out_bytes) + " bytes out, " + std::to_string(lane.in_bytes) + " bytes in\n";
    }
  }
  return text;
}

}  // namespace ist::halo
