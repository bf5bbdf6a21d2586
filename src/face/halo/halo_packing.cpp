#include "face/halo/halo_packing.hpp"

#include <mutex>
#include <thread>

#include "layout/form.hpp"

namespace ist::halo {
namespace {

// Sections that become one layout lie behind each other in the buffer, and their fields in one allocation.
bool joins(const Laid& last, const Laid& next, std::span<const Placed> fields, ist_halo_packing packing) {
  if (packing == IST_HALO_CALLS || last.own != next.own) return false;
  if (packing == IST_HALO_LAYOUTS && last.partner != next.partner) return false;
  const Placed &one = fields[last.section->field], &other = fields[next.section->field];
  // Loops on the processor are for boxes, of which a layout of several has lost the shape.
  if (packing == IST_HALO_LOOPS && one.memory.kind == KindId::host) return false;
  // One task waits for one queue.
  return one.allocation == other.allocation && one.memory.queue == other.memory.queue;
}

std::int64_t begin_of(const Piece& memory) {
  return static_cast<std::int64_t>(memory.kind == KindId::opencl ? memory.offset.value
                                                                 : memory.object + memory.offset.value);
}

// The stretch of one allocation that holds all the fields, in terms of the first one's object.
Piece around(std::span<const Laid> laid, std::span<const Placed> fields) {
  Piece all = fields[laid.front().section->field].memory;
  std::int64_t begin = begin_of(all), end = begin + static_cast<std::int64_t>(all.size.value);
  for (const Laid& each : laid) {
    const Piece& memory = fields[each.section->field].memory;
    begin = std::min(begin, begin_of(memory));
    end = std::max(end, begin_of(memory) + static_cast<std::int64_t>(memory.size.value));
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
  const std::int64_t base = begin_of(task.memory);
  for (const Laid& each : laid) {
    const Placed& field = fields[each.section->field];
    parts.push_back({begin_of(field.memory) + field.origin - base, 1, 0, each.section->layout});
  }
  const auto layout = Layout::of(std::move(parts));
  if (!layout.ok()) return layout.status();
  auto form = (*layout)->form();
  if (!form.ok()) return form.status();
  task.form = std::make_shared<const Form>(std::move(*form));
  return task;
}

// As a layout's own queue would be waited for, of every field's.
Status start_on_device(World& world, const Task& task, const Piece& buffer, bool unpacks, std::vector<Ticket>& started) {
  MemoryKind& kind = *world.kinds().find(task.memory.kind);
  auto before = world.kinds().ready(task.memory);
  if (!before.ok()) return before.status();
  const Bytes size{static_cast<std::uint64_t>(task.form->size)};
  const Piece packed = buffer.part(Offset{static_cast<std::uint64_t>(task.at)}, size);
  auto ticket =
      kind.packing()->pack_bytes({task.form, task.memory, task.origin, packed, 0, task.form->size, unpacks}, *before);
  if (!ticket.ok()) return ticket.status();
  started.push_back(std::move(*ticket));
  started.push_back(std::move(*before));
  return {};
}

Status wait_for(World& world, std::vector<Ticket>& started) {
  Status outcome;
  for (Ticket& ticket : started) {
    while (!ticket.empty()) {
      const Result<bool> over = ticket.kind()->finished(ticket);
      if (!over.ok()) {
        if (outcome.ok()) outcome = over.status();
        break;
      }
      if (*over) break;
      {
        const std::lock_guard lock(world.engine().lock());
        world.engine().progress();
      }
      std::this_thread::yield();
    }
  }
  return outcome;
}

void move_on_host(const Task& task, const Piece& buffer, bool unpacks) {
  std::byte* const base = task.memory.address() + task.origin;
  std::byte* const packed = buffer.address() + task.at;
  if (unpacks)
    unpack(*task.form, base, 0, task.form->size, packed);
  else
    pack(*task.form, base, 0, task.form->size, packed);
}

}  // namespace

Result<std::vector<Task>> tasks_of(std::span<const Laid> laid, std::span<const Placed> fields, ist_halo_packing packing) {
  std::vector<Task> tasks;
  for (std::size_t from = 0, to = 0; from < laid.size(); from = to) {
    for (to = from + 1; to < laid.size() && joins(laid[to - 1], laid[to], fields, packing); ++to) {
    }
    auto task = joined(laid.subspan(from, to - from), fields);
    if (!task.ok()) return task.status();
    tasks.push_back(std::move(*task));
  }
  return tasks;
}

Status run(World& world, std::span<const Task> tasks, const Piece& buffer, bool unpacks) {
  if (buffer.kind == KindId::host) {
    for (const Task& task : tasks) move_on_host(task, buffer, unpacks);
    return {};
  }
  std::vector<Ticket> started;
  Status outcome;
  for (const Task& task : tasks) {
    outcome = start_on_device(world, task, buffer, unpacks, started);
    if (!outcome.ok()) break;
  }
  const Status waited = wait_for(world, started);
  return outcome.ok() ? waited : outcome;
}

}  // namespace ist::halo
