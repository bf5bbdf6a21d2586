#include "face/halo/halo_packing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "face/halo/halo_loops.hpp"
#include "layout/form.hpp"
#include "request/wait.hpp"

namespace ist::halo {
namespace {

// Sections that become one layout lie behind each other in the buffer, and their fields in one allocation.
bool joins(const Laid& last, const Laid& next, std::span<const Placed> fields, ist_halo_packing packing, bool loops) {
  if (packing == IST_HALO_CALLS || loops || last.own != next.own) return false;
  if (last.at + last.section->layout->size() != next.at) return false;
  if (packing == IST_HALO_LAYOUTS && last.partner != next.partner) return false;
  const Placed &one = fields[last.section->field], &other = fields[next.section->field];
  // One task waits for one queue.
  return one.allocation == other.allocation && one.memory.queue == other.memory.queue;
}

std::int64_t first_byte_of(const Piece& memory) {
  return static_cast<std::int64_t>(memory.kind == KindId::opencl ? memory.offset.value
                                                                 : memory.object + memory.offset.value);
}

// The stretch of one allocation that holds all the fields, in terms of the first one's object.
Piece around(std::span<const Laid> laid, std::span<const Placed> fields) {
  Piece all = fields[laid.front().section->field].memory;
  std::int64_t begin = first_byte_of(all), end = begin + static_cast<std::int64_t>(all.size.value);
  for (const Laid& each : laid) {
    const Piece& memory = fields[each.section->field].memory;
    begin = std::min(begin, first_byte_of(memory));
    end = std::max(end, first_byte_of(memory) + static_cast<std::int64_t>(memory.size.value));
    all.ready = all.ready && memory.ready;
  }
  if (all.kind == KindId::opencl) {
    all.offset = Offset{static_cast<std::uint64_t>(begin)};
  } else {
    all.object = static_cast<std::uint64_t>(begin);
    all.offset = Offset{};
  }
  all.size = Bytes{static_cast<std::uint64_t>(end - begin)};
  return all;
}

Result<Task> joined(std::span<const Laid> laid, std::span<const Placed> fields) {
  Task task;
  task.at = laid.front().at;
  task.own = laid.front().own;
  task.memory = around(laid, fields);
  std::vector<Part> parts;
  parts.reserve(laid.size());
  const std::int64_t base = first_byte_of(task.memory);
  for (const Laid& each : laid)
    parts.push_back({first_byte_of(fields[each.section->field].memory) - base, 1, 0, each.section->layout});
  const auto layout = Layout::of(std::move(parts));
  if (!layout.ok()) return layout.status();
  auto form = (*layout)->form();
  if (!form.ok()) return form.status();
  task.form = std::make_shared<const Form>(std::move(*form));
  return task;
}

Status wait_for(World& world, std::vector<Ticket>& started) {
  Status outcome;
  for (Ticket& ticket : started) {
    Status over = wait_for_ticket(world.engine(), ticket);
    if (outcome.ok()) outcome = std::move(over);
  }
  return outcome;
}

// A kernel for each task; each waits on the device for its field's queue.
Status one_by_one(World& world, MemoryKind& kind, std::span<const PackWork> works) {
  std::vector<Ticket> started;
  Status outcome;
  for (const PackWork& work : works) {
    auto before = world.kinds().ready(work.memory);
    auto ticket = before.ok() ? kind.packing()->pack_bytes(work, *before) : Result<Ticket>{before.status()};
    if (!ticket.ok()) {
      outcome = ticket.status();
      break;
    }
    started.push_back(std::move(*ticket));
    started.push_back(std::move(*before));
  }
  const Status waited = wait_for(world, started);
  return outcome.ok() ? waited : outcome;
}

// All in one launch, which waits on the device for one queue; where fields have several that hold work, this thread waits for the others.
Status at_once(World& world, BoxPacking& packing, std::span<const PackWork> works) {
  std::vector<Ticket> queues;
  std::vector<std::uint64_t> asked;
  for (const PackWork& work : works) {
    if (work.memory.ready || std::find(asked.begin(), asked.end(), work.memory.queue) != asked.end()) continue;
    asked.push_back(work.memory.queue);
    auto before = world.kinds().ready(work.memory);
    if (!before.ok()) return before.status();
    if (!before->empty()) queues.push_back(std::move(*before));
  }
  Ticket after;
  if (!queues.empty()) {
    after = std::move(queues.back());
    queues.pop_back();
  }
  IST_TRY(wait_for(world, queues));
  auto ticket = packing.pack_boxes(works, after);
  if (!ticket.ok()) return ticket.status();
  std::vector<Ticket> started;
  started.push_back(std::move(*ticket));
  started.push_back(std::move(after));
  return wait_for(world, started);
}

void move_on_host(const Task& task, const Packer& packer, const Piece& buffer) {
  std::byte* const base = task.memory.address() + task.origin;
  std::byte* const packed = buffer.address() + task.at;
  if (packer.packing == IST_HALO_LOOPS)
    return packer.unpacks ? unpack_by_loops(*task.form, base, packed) : pack_by_loops(*task.form, base, packed);
  if (packer.unpacks)
    unpack(*task.form, base, 0, task.form->size, packed);
  else
    pack(*task.form, base, 0, task.form->size, packed);
}

}  // namespace

Result<Packer> packer_of(std::span<const Laid> laid, std::span<const Placed> fields, ist_halo_packing packing, bool unpacks,
                         MemoryKind& kind) {
  Packer packer;
  packer.packing = packing;
  packer.unpacks = unpacks;
  // A kind that has no launch of many boxes has one of their layout.
  const bool loops = packing == IST_HALO_LOOPS && (kind.id() == KindId::host || kind.box_packing() != nullptr);
  for (std::size_t from = 0, to = 0; from < laid.size(); from = to) {
    for (to = from + 1; to < laid.size() && joins(laid[to - 1], laid[to], fields, packing, loops); ++to) {
    }
    auto task = joined(laid.subspan(from, to - from), fields);
    if (!task.ok()) return task.status();
    if (task->form->size == 0) continue;  // a neighbour's list may be empty, and no kernel moves nothing
    packer.has_lists = packer.has_lists || !task->form->strided();
    packer.tasks.push_back(std::move(*task));
  }
  return packer;
}

void connect(Packer& packer, const Piece& own, const std::vector<Piece>& others) {
  packer.own = own;
  packer.others = others;
  packer.works.clear();
  if (own.kind == KindId::host) return;
  for (const Piece& place : others) {
    std::vector<PackWork> works;
    works.reserve(packer.tasks.size());
    for (const Task& task : packer.tasks) {
      const Bytes size{static_cast<std::uint64_t>(task.form->size)};
      const Piece packed = (task.own ? own : place).part(Offset{static_cast<std::uint64_t>(task.at)}, size);
      works.push_back({task.form, task.memory, task.origin, packed, 0, task.form->size, packer.unpacks});
    }
    packer.works.push_back(std::move(works));
  }
}

Status run(World& world, const Packer& packer, std::size_t place) {
  if (packer.tasks.empty()) return {};
  if (packer.own.kind == KindId::host) {
    for (const Task& task : packer.tasks) move_on_host(task, packer, task.own ? packer.own : packer.others[place]);
    return {};
  }
  MemoryKind& kind = *world.kinds().find(packer.own.kind);
  const auto& works = packer.works[place];
  if (packer.packing == IST_HALO_LOOPS && kind.box_packing() != nullptr) return at_once(world, *kind.box_packing(), works);
  return one_by_one(world, kind, works);
}

const char* name_of(ist_halo_packing packing) {
  constexpr std::array<const char*, 4> kNames{"auto", "calls", "layouts", "loops"};
  return kNames[static_cast<std::size_t>(packing)];
}

Result<Choice> quickest(std::span<const Trial> trials) {
  Choice choice{IST_HALO_AUTO, ""};
  double best = 0;
  for (const Trial& trial : trials) {
    if (!choice.text.empty()) choice.text += ", ";
    choice.text += name_of(trial.packing);
    if (!trial.took.ok()) {
      choice.text += " left out: " + trial.took.status().text();
      continue;
    }
    std::array<char, 32> took{};
    std::snprintf(took.data(), took.size(), " %.2f us", *trial.took);
    choice.text += took.data();
    if (choice.packing != IST_HALO_AUTO && *trial.took >= best) continue;
    best = *trial.took;
    choice.packing = trial.packing;
  }
  if (choice.packing == IST_HALO_AUTO)
    return Status{trials.front().took.status().code(), "no packing can be: " + choice.text};
  return choice;
}

}  // namespace ist::halo
