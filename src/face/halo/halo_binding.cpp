// An exchange's buffers of one time: what packs them, and which way takes least time.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "face/halo/halo_exchange.hpp"

namespace ist::halo {
namespace {

// Time levels and fields that take turns are fewer; whoever has more of them makes a binding at each change.
constexpr std::size_t kBindings = 16;

bool same_place(const ist_buffer& one, const ist_buffer& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

constexpr int kTimes = 7;

}  // namespace

bool Exchange::Binding::has_lists() const {
  const auto lists = [](const Packer& packer) { return packer.has_lists; };
  return std::any_of(packs.begin(), packs.end(), lists) || std::any_of(unpacks.begin(), unpacks.end(), lists);
}

Status Exchange::bind(Plan& plan) {
  auto& bindings = plan.bindings;
  const auto known = std::find_if(bindings.begin(), bindings.end(), [&](const Binding& binding) {
    for (std::size_t f = 0; f < plan.fields.size(); ++f)
      if (!same_place(binding.buffers[f], plan.fields[f].buffer)) return false;
    return true;
  });
  if (known != bindings.end()) {
    std::rotate(known, known + 1, bindings.end());
    return {};
  }
  Binding made;
  for (const Field& field : plan.fields) made.buffers.push_back(field.buffer);
  IST_TRY(place(plan, made.fields));
  IST_TRY(check_kinds(plan, made));
  for (Share& share : plan.shares)
    if (share.packing == IST_HALO_AUTO) IST_TRY(choose(share, made));
  IST_TRY(make_tasks(plan, made));
  bindings.push_back(std::move(made));
  // The kind keeps what its launches still need, but does not know of graphs that nobody has launched yet.
  if (bindings.size() > kBindings)
    if (const auto old =
            std::find_if(bindings.begin(), bindings.end() - 1, [](const Binding& each) { return !each.captured; });
        old != bindings.end() - 1)
      bindings.erase(old);
  return {};
}

// A share's buffers are of the kind and device that its fields had when it was made.
Status Exchange::check_kinds(const Plan& plan, const Binding& binding) const {
  for (const Share& share : plan.shares)
    for (const std::size_t f : share.fields) {
      const Piece& memory = binding.fields[f].memory;
      if (memory.kind != share.beside.kind || (memory.kind != KindId::host && memory.device != share.beside.device))
        return {IST_ERR_KIND, "field " + std::to_string(f) +
                                  " lies in another kind of memory, or on another device, than the one in its place before; "
                                  "make another exchange"};
    }
  return {};
}

Status Exchange::make_tasks(const Plan& plan, Binding& binding) const {
  for (const Share& share : plan.shares) {
    MemoryKind& kind = *world_.kinds().find(share.beside.kind);
    auto packs = packer_of(share.lanes.out, binding.fields, share.packing, false, kind);
    if (!packs.ok()) return packs.status();
    auto unpacks = packer_of(share.lanes.in, binding.fields, share.packing, true, kind);
    if (!unpacks.ok()) return unpacks.status();
    connect(*packs, share.way->out(), {share.way->out()});
    connect(*unpacks, share.way->out(), share.way->ins());
    binding.packs.push_back(std::move(*packs));
    binding.unpacks.push_back(std::move(*unpacks));
  }
  return {};
}

// The shortest of a few times, in microseconds: others on the machine make times longer, never shorter. By packing alone, which leaves the
// fields as they are; unpacking moves the same cells.
Result<double> Exchange::time_of(const Share& share, const Binding& binding, ist_halo_packing packing) const {
  using Clock = std::chrono::steady_clock;
  auto packer = packer_of(share.lanes.out, binding.fields, packing, false, *world_.kinds().find(share.beside.kind));
  if (!packer.ok()) return packer.status();
  connect(*packer, share.way->out(), {share.way->out()});
  double best = 0;
  IST_TRY(run(world_, *packer, 0));
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = Clock::now();
    IST_TRY(run(world_, *packer, 0));
    const double took = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    best = i == 0 ? took : std::min(best, took);
  }
  return best;
}

Status Exchange::choose(Share& share, const Binding& binding) {
  auto known = std::find_if(measured_.begin(), measured_.end(), [&](const Measured& each) {
    return each.kind == share.beside.kind && each.device == share.beside.device;
  });
  if (known == measured_.end()) {
    std::vector<Trial> trials;
    for (const ist_halo_packing packing : {IST_HALO_LAYOUTS, IST_HALO_CALLS, IST_HALO_LOOPS})
      trials.push_back({packing, time_of(share, binding, packing)});
    auto choice = quickest(trials);
    if (!choice.ok()) return choice.status();
    known = measured_.insert(known, {share.beside.kind, share.beside.device, std::move(*choice)});
  }
  share.packing = known->choice.packing;
  share.measured = known->choice.text;
  return {};
}

std::string Exchange::text() const {
  std::string text = std::to_string(plan_.fields.size()) + (plan_.fields.size() == 1 ? " field" : " fields") + ", rank " +
                     std::to_string(rank_) + " of " + std::to_string(ranks_) + ", " +
                     (options_.way == IST_HALO_ONE_SIDED ? "one-sided" : "messages") + "\n";
  for (const Share& share : plan_.shares) {
    text += std::string{world_.kinds().find(share.beside.kind)->name()} + ": fields";
    for (const std::size_t field : share.fields) {
      text += " ";
      text += std::to_string(field);
    }
    text += "; packed by ";
    text += name_of(share.packing);
    if (!share.measured.empty()) text.append(" (measured: ").append(share.measured).append(")");
    text += "\n";
    for (const Lane& lane : share.lanes.lanes) {
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
