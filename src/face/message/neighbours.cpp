#include "face/message/neighbours.hpp"

#include <mutex>
#include <set>

#include "base/log.hpp"
#include "boot/blob.hpp"
#include "protocol/explain_packing.hpp"
#include "protocol/explain_stream.hpp"

namespace ist {
namespace {

constexpr Bytes kSmall{8};
constexpr Bytes kLong = mebibytes(4);

const MemoryKind* cuda_of(const Kinds& kinds) { return kinds.find(KindId::cuda); }

// Do messages between the two ranks' own devices take one copy?
std::string meeting(const std::string& mine, const std::string& theirs, bool same_process, const std::string& not_lent) {
  if (mine.empty() && theirs.empty()) return "devices: none";
  if (mine.empty()) return "devices: none here, " + theirs + " there";
  if (theirs.empty()) return "devices: " + mine + " here, none there";
  if (same_process || mine == theirs) return "devices: both on " + mine + (not_lent.empty() ? "" : ", apart: " + not_lent);
  return "devices: " + mine + " here, " + theirs + " there, " +
         (not_lent.empty() ? "each opens the other's memory by IPC" : "apart: " + not_lent);
}

std::string ways(Engine& engine, const Neighbours& neighbours, const MessageEnd& from, Rank to) {
  const bool on_device = from.kind != KindId::host;
  std::string text;
  for (const Bytes size : {kSmall, kLong}) {
    const std::string device = on_device ? neighbours.device(engine.rank()) : std::string{};
    const auto found = explain(engine, neighbours, {from, device, size}, to);
    if (!found.ok()) return found.status().text();
    const ist_carrier wanted = on_device ? IST_CARRIER_DEVICE : size == kLong ? IST_CARRIER_SINGLE_COPY : IST_CARRIER_NONE;
    text += (size == kSmall ? "8 B by " : ", 4 MiB by ") + in_brief(*found, wanted);
  }
  return text;
}

// Asked under the lock, priced without it.
Result<ExplainedMessage> about(Engine& engine, const Neighbours& neighbours, const Sending& what, Rank to) {
  const std::lock_guard lock(engine.lock());
  auto message = engine.about(what.from, what.size, to);
  if (!message.ok()) return message.status();
  message->to = {what.from.kind, what.from.kind == KindId::host ? MemoryClass::pageable : MemoryClass::device};
  message->same_device = !what.device.empty() && what.device == neighbours.device(to);
  return message;
}

// GPUs and the like, each by its UUID, or by its number where the driver tells none.
std::vector<std::string> opencl_devices_of(const Kinds& kinds) {
  std::vector<std::string> found;
  MemoryKind* const opencl = kinds.find(KindId::opencl);
  Arithmetic* const arithmetic = opencl == nullptr ? nullptr : opencl->arithmetic();
  if (arithmetic == nullptr) return found;
  for (const DeviceInfo& device : opencl->devices())
    if (!arithmetic->by_processor(device.ordinal))
      found.push_back(device.uuid.empty() ? std::to_string(device.ordinal) : device.uuid);
  return found;
}

std::vector<std::string> cuda_devices_of(const Kinds& kinds) {
  std::vector<std::string> found;
  if (const MemoryKind* const cuda = cuda_of(kinds); cuda != nullptr)
    for (const DeviceInfo& device : cuda->devices()) found.push_back(device.uuid);
  return found;
}

void write(BlobWriter& blob, const std::vector<std::string>& texts) {
  blob.number(texts.size());
  for (const std::string& each : texts) blob.text(each);
}

std::vector<std::string> read_texts(BlobReader& blob) {
  const std::uint64_t count = blob.number();
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count && !blob.bad(); ++i) texts.push_back(blob.text());
  return texts;
}

}  // namespace

std::string Neighbours::card() const {
  BlobWriter blob;
  blob.number(static_cast<std::uint64_t>(settings_.device));
  write(blob, cuda_devices_of(kinds_));
  write(blob, opencl_devices_of(kinds_));
  return blob.take();
}

void Neighbours::learn(const Peers& peers, const std::vector<std::string>& cards) {
  devices_.assign(cards.size(), "");
  std::set<std::string> opencl_here;
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    BlobReader blob{cards[rank]};
    Settings theirs;
    theirs.device = static_cast<std::int64_t>(blob.number());
    const std::vector<std::string> devices = read_texts(blob);
    const std::vector<std::string> opencl = read_texts(blob);
    if (blob.bad()) continue;
    const Rank other{static_cast<std::int32_t>(rank)};
    const auto on_host_of = [&peers](Rank one, Rank another) { return peers.at(one).boot_id == peers.at(another).boot_id; };
    if (on_host_of(other, peers.rank())) opencl_here.insert(opencl.begin(), opencl.end());
    if (devices.empty()) continue;
    int place = 0;  // among the ranks of its host
    for (std::int32_t r = 0; r < other.value; ++r) place += on_host_of(Rank{r}, other) ? 1 : 0;
    const int own = theirs.own_device(place, static_cast<int>(devices.size()));
    if (own >= 0 && static_cast<std::size_t>(own) < devices.size()) devices_[rank] = devices[static_cast<std::size_t>(own)];
  }
  shares_opencl_ = peers.local().size() > opencl_here.size();
}

Rank Neighbours::other_with(const std::string& uuid, Rank rank) const {
  for (std::size_t other = 0; !uuid.empty() && other < devices_.size(); ++other)
    if (other != static_cast<std::size_t>(rank.value) && devices_[other] == uuid)
      return Rank{static_cast<std::int32_t>(other)};
  return Rank{-1};
}

std::string Neighbours::device(int ordinal) const {
  const MemoryKind* cuda = cuda_of(kinds_);
  if (cuda == nullptr) return "";
  for (const DeviceInfo& device : cuda->devices())
    if (device.ordinal == ordinal) return device.uuid;
  return "";
}

Result<Explanation> explain(Engine& engine, const Neighbours& neighbours, const Sending& what, Rank to) {
  const auto message = about(engine, neighbours, what, to);
  if (!message.ok()) return message.status();
  return explain(*message, engine.parts().machine);
}

Result<std::array<Explanation, 3>> explain_packing(Engine& engine, const Neighbours& neighbours, const Sending& what,
                                                   Rank to, const ExplainedLayout& layout) {
  const auto message = about(engine, neighbours, what, to);
  if (!message.ok()) return message.status();
  const MachineProfile& machine = engine.parts().machine;
  ExplainedMessage to_host = *message;
  to_host.to = {KindId::host, MemoryClass::pageable};
  to_host.same_device = false;
  std::array answer{explain_packing(*message, layout, machine), explain_unpacking(*message, layout, machine),
                    explain_packing(to_host, layout, machine)};
  answer[2].question = "packing, where the receiver's memory is the host's";
  return answer;
}

Result<Explanation> explain_in_stream(Engine& engine, const Neighbours& neighbours, const Sending& what, Rank to,
                                      const std::string& off) {
  auto message = about(engine, neighbours, what, to);
  if (!message.ok()) return message.status();
  // Page-locked memory here is taken to meet the like there.
  if (what.from.kind == KindId::host) message->to = what.from;
  return explain_in_stream(*message, off, engine.parts().machine);
}

void log_pairs(Engine& engine, const Peers& peers, const Neighbours& neighbours) {
  if (!log::enabled(log::Level::info)) return;
  const std::string& mine = neighbours.device(engine.rank());
  for (std::int32_t r = 0; r < engine.size(); ++r) {
    const Rank to{r};
    if (to == engine.rank()) continue;
    const std::string name = "rank " + std::to_string(r) + " (process " + std::to_string(peers.at(to).pid) + " on host " +
                             peers.at(to).host + "): ";
    const auto about = [&] {
      const std::lock_guard lock(engine.lock());
      return engine.about({KindId::cuda, MemoryClass::device}, kLong, to);
    }();
    if (!about.ok()) {
      log::info(name + about.status().text());
      continue;
    }
    std::string text = name + "path " + std::string{engine.path_to(to)} + "; ";
    const std::string& theirs = neighbours.device(to);
    text += meeting(mine, theirs, about->same_process, about->not_lent);
    text += "; host memory: " + ways(engine, neighbours, {}, to);
    if (!mine.empty() && !theirs.empty())
      text += "; device memory: " + ways(engine, neighbours, {KindId::cuda, MemoryClass::device}, to);
    log::info(text);
  }
}

}  // namespace ist
