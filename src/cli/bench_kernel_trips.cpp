#include "cli/bench_kernel_trips.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

constexpr std::array<std::uint64_t, 4> kPacketBytes{8, 512, 4096, 16384};
constexpr std::array<std::uint64_t, 4> kCommandBytes{8, 512, 4096, 8192};
constexpr std::array<std::uint64_t, 4> kPostBytes{4, 8, 64, 512};
constexpr std::uint64_t kMostPackets = kPacketBytes.back() / 8;
constexpr std::size_t kMostBytes = kCommandBytes.back();
// In each device's memory: a word on a line of its own, then packets.
constexpr std::size_t kWordRoom = 128;
constexpr std::size_t kMailRoom = kWordRoom + kMostPackets * sizeof(channel::Quad);
// Of a copy that one block makes by itself.
constexpr std::size_t kMostByKernel = 64 << 10;
constexpr unsigned kMeetThreads = 256;
constexpr unsigned kCopyThreads = 512;
constexpr unsigned kWarp = 32;
constexpr int kLooksBetweenClocks = 1 << 16;

// Of so many trips that count, so many come first that do not.
std::uint64_t first_of(std::uint64_t trips) { return trips / 10 + 1; }

Place on_side(const DriverSide& side) { return Place::read("cuda:" + std::to_string(side.number())); }

std::atomic_ref<std::uint64_t> shared(std::uint64_t& word) { return std::atomic_ref<std::uint64_t>(word); }

std::shared_ptr<TripDesk> make_desk(const DriverPair& pair) {
  const CudaApi& api = pair.driver.api();
  void* made = nullptr;
  pair.here.use();
  const CUresult result = api.cuMemHostAlloc(&made, sizeof(TripDesk), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  pair.here.leave();
  pair.driver.must(result, "cuMemHostAlloc of words for kernels");
  return {new (made) TripDesk{}, [&pair, &api](TripDesk* last) {
            pair.here.use();
            api.cuMemFreeHost(last);
            pair.here.leave();
          }};
}

}  // namespace

std::vector<std::byte> odd_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t n = 0; n < count; ++n) bytes[n] = static_cast<std::byte>(n * 131 + n / 256 * 7 + 3);
  return bytes;
}

KernelTrips::Stay::Stay(const KernelTrips& trips) : trips_(trips) {
  const std::vector<std::byte> zeros(kMailRoom);
  trips.mail_here_.write(zeros);
  trips.mail_there_.write(zeros);
  *trips.desk_ = TripDesk{};
}

KernelTrips::Stay::~Stay() {
  shared(trips_.desk_->stop).store(1, std::memory_order_release);
  for (const BareKernels* const each : {&trips_.here_, &trips_.there_})
    trips_.pair_.driver.api().cuStreamSynchronize(each->side().stream(0));
}

KernelTrips::KernelTrips(const DriverPair& pair, const BareKernels& here, const BareKernels& there)
    : pair_(pair),
      here_(here),
      there_(there),
      desk_(make_desk(pair)),
      mail_here_(pair.driver, on_side(pair.here), pair.here, kMailRoom),
      mail_there_(pair.driver, on_side(pair.there), pair.there, kMailRoom),
      source_(pair.driver, pair.from, pair.here, kMostBytes),
      target_(pair.driver, pair.to, pair.there, kMostBytes) {}

std::string KernelTrips::why_not_two() const {
  if (!pair_.two_devices()) return "each needs a device of its own, and both places are on " + pair_.from.text();
  return pair_.reached ? "" : pair_.out_of_reach();
}

TripWork KernelTrips::work(bool here, std::uint64_t bytes, std::uint64_t trips) const {
  const CUdeviceptr mine = (here ? mail_here_ : mail_there_).address();
  const CUdeviceptr theirs = (here ? mail_there_ : mail_here_).address();
  TripWork work{};
  work.end = here ? &desk_->here : &desk_->there;
  work.tell = reinterpret_cast<std::uint64_t*>(theirs);
  work.await = reinterpret_cast<const std::uint64_t*>(mine);
  work.theirs = reinterpret_cast<channel::Quad*>(theirs + kWordRoom);
  work.mine = reinterpret_cast<const channel::Quad*>(mine + kWordRoom);
  work.bytes = bytes;
  work.first_ones = first_of(trips);
  work.trips = trips + work.first_ones;
  work.leads = here ? 1 : 0;
  work.stop = &desk_->stop;
  work.most = static_cast<std::uint64_t>(std::chrono::nanoseconds(kKernelPatience).count());
  return work;
}

// A trip goes `ways` ways. The kernels time themselves; the first one's clock counts.
std::vector<double> KernelTrips::between(BareKernel kernel, unsigned threads, std::uint64_t bytes, unsigned ways,
                                         std::uint64_t trips) const {
  const Stay stay(*this);
  there_.launch(kernel, work(false, bytes, trips), threads);
  here_.launch(kernel, work(true, bytes, trips), threads);
  here_.wait();
  there_.wait();
  if (desk_->here.wrong + desk_->there.wrong != 0)
    throw Failure(1, "packets between two kernels came with other bytes than were sent, " + pair_.from.text() + " to " +
                         pair_.to.text());
  if (desk_->here.over == 0 || desk_->there.over == 0) return {};
  return {static_cast<double>(desk_->here.nanoseconds) / 1e3 / static_cast<double>(trips * ways)};
}

LimitWays<LimitTrips> KernelTrips::between_kernels() {
  LimitWays<LimitTrips> found;
  if (const std::string why = why_not_two(); !why.empty()) {
    found.left_out.push_back("kernels that wait for each other: " + why);
    return found;
  }
  constexpr unsigned kThereAndBack = 2;
  found.all.push_back({"a flag between two kernels, one way", 8,
                       [this](std::uint64_t trips) { return between(BareKernel::flags, 1, 8, kThereAndBack, trips); }});
  for (const std::uint64_t bytes : kPacketBytes) {
    const auto threads = static_cast<unsigned>(std::clamp<std::uint64_t>(bytes / 8, kWarp, 1024));
    found.all.push_back({"packets with their flags between two kernels, one way", bytes, [=, this](std::uint64_t trips) {
                           return between(BareKernel::packets, threads, bytes, kThereAndBack, trips);
                         }});
  }
  found.all.push_back({"push barrier of two kernels", 0,
                       [this](std::uint64_t trips) { return between(BareKernel::meet, kMeetThreads, 0, 1, trips); }});
  return found;
}

// From the processor's word on, looked for again and again.
bool KernelTrips::answered(std::uint64_t trip, const Order& order) const {
  const auto done = shared(desk_->done);
  const auto begun = Clock::now();
  for (int looks = 1;; ++looks) {
    if (order.come ? order.come(trip) : done.load(std::memory_order_acquire) == trip) return true;
    if (looks % kLooksBetweenClocks != 0) continue;
    looks = 0;
    if (Clock::now() - begun > kKernelPatience) return false;
  }
}

// The processor's clock, from its word to that which it gets back.
std::vector<double> KernelTrips::command(std::uint64_t trips, const Order& order) const {
  if (order.found) {
    source_.write(odd_bytes(order.bytes));
    target_.write(std::vector<std::byte>(order.bytes));
  }
  std::vector<double> times;
  times.reserve(trips);
  const std::uint64_t first_ones = first_of(trips);
  {
    const Stay stay(*this);
    order.launch();
    for (std::uint64_t trip = 1; trip <= trips + first_ones; ++trip) {
      const auto start = Clock::now();
      if (order.give)
        order.give(trip);
      else
        shared(desk_->command).store(trip << 32 | order.bytes, std::memory_order_release);
      if (!answered(trip, order)) return {};
      if (trip > first_ones) times.push_back(microseconds_since(start));
    }
    here_.wait();
    there_.wait();
  }
  if (order.found && order.found() != odd_bytes(order.bytes))
    throw Failure(1,
                  "a resident kernel brought other bytes than it was to, " + pair_.from.text() + " to " + pair_.to.text());
  return times;
}

TripWork KernelTrips::told(bool here, std::uint64_t bytes, std::uint64_t trips) const {
  TripWork one = work(here, bytes, trips);
  one.await = &desk_->command;
  one.tell = &desk_->done;
  one.from = reinterpret_cast<const std::byte*>(source_.address());
  one.to = reinterpret_cast<std::byte*>(target_.address());
  return one;
}

std::vector<std::byte> KernelTrips::in_target(std::uint64_t bytes) const {
  std::vector<std::byte> found(bytes);
  target_.read(found);
  return found;
}

std::vector<std::byte> KernelTrips::in_packets(std::uint64_t bytes) const {
  std::vector<std::byte> found(bytes);
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = channel::bytes_in(desk_->packets[at / 8]);
    std::memcpy(&found[at], &word, std::min<std::uint64_t>(8, bytes - at));
  }
  return found;
}

void KernelTrips::give_packets(std::uint64_t trip, const std::vector<std::byte>& bytes) const {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[at], std::min<std::size_t>(8, bytes.size() - at));
    channel::store_taken(&desk_->packets[at / 8], channel::packed(channel::number_of(trip), word));
  }
}

bool KernelTrips::packets_have_come(std::uint64_t trip, std::uint64_t bytes) const {
  for (std::uint64_t at = 0; at < bytes; at += 8)
    if (!channel::has_come(channel::load_mail(&desk_->packets[at / 8]), channel::number_of(trip))) return false;
  return true;
}

std::string KernelTrips::why_no_copies() const {
  const auto pageable = [](const Place& place) { return !place.on_device() && !place.pinned(); };
  if (pageable(pair_.from) || pageable(pair_.to)) return "kernels reach no pageable memory";
  return pair_.reached ? "" : pair_.out_of_reach();
}

LimitWays<LimitCopy> KernelTrips::single_copies() {
  LimitWays<LimitCopy> ways;
  if (const std::string why = why_no_copies(); !why.empty()) {
    ways.left_out.push_back("copies by a kernel: " + why);
    return ways;
  }
  ways.all.push_back(
      {"copy by a kernel, and its word", kMostByKernel, [this, number = std::uint64_t{0}](std::size_t bytes) mutable {
         TripWork one{};
         one.end = &desk_->here;
         one.tell = &desk_->done;
         one.from = reinterpret_cast<const std::byte*>(pair_.source.address());
         one.to = reinterpret_cast<std::byte*>(pair_.target.address());
         one.bytes = bytes;
         one.trips = ++number;
         here_.launch(BareKernel::once, one, kCopyThreads);
         if (!answered(number, {}))
           throw Failure(1, "a kernel has not written its word within " + std::to_string(kKernelPatience.count()) + " s");
       }});
  return ways;
}

void KernelTrips::add_words(LimitWays<LimitTrips>& found) const {
  found.all.push_back({"a word to a resident kernel and one back, round trip", 8, [this](std::uint64_t trips) {
                         return command(trips, {[=, this] { here_.launch(BareKernel::answer, told(true, 0, trips), 1); }});
                       }});
}

void KernelTrips::add_copies(LimitWays<LimitTrips>& found) const {
  if (const std::string why = why_no_copies(); !why.empty()) {
    found.left_out.push_back("copies by a resident kernel: " + why);
    return;
  }
  for (const std::uint64_t bytes : kCommandBytes) {
    const auto measure = [this, bytes](std::uint64_t trips) {
      Order order{[=, this] { here_.launch(BareKernel::copy, told(true, bytes, trips), kCopyThreads); }, bytes};
      order.found = [this, bytes] { return in_target(bytes); };
      return command(trips, order);
    };
    found.all.push_back({"copy by a resident kernel of one block, command to done", bytes, measure});
  }
}

// The processor's packets are the command, and a kernel's are the answer.
void KernelTrips::add_with_host(LimitWays<LimitTrips>& found) const {
  if (pair_.between_devices()) return;
  const bool out = pair_.from.on_device();
  for (const std::uint64_t bytes : kPostBytes) {
    const auto measure = [this, bytes, out](std::uint64_t trips) {
      TripWork one = told(true, bytes, trips);
      one.theirs = desk_->packets;
      one.mine = desk_->packets;
      if (out)
        one.to = nullptr;  // no kernel reaches memory of the other side, which may be pageable
      else
        one.from = nullptr;
      Order order{[=, this] { here_.launch(out ? BareKernel::post : BareKernel::take, one, kWarp); }, bytes};
      if (out) {
        order.come = [this, bytes](std::uint64_t trip) { return packets_have_come(trip, bytes); };
        order.found = [this, bytes] { return in_packets(bytes); };
      } else {
        order.give = [this, sent = odd_bytes(bytes)](std::uint64_t trip) { give_packets(trip, sent); };
        order.found = [this, bytes] { return in_target(bytes); };
      }
      return command(trips, order);
    };
    found.all.push_back(
        {std::string{"packets "} + (out ? "out of" : "into") + " a device by a resident kernel", bytes, measure});
  }
}

void KernelTrips::add_through_two(LimitWays<LimitTrips>& found) const {
  if (!pair_.between_devices()) return;
  if (const std::string why = why_not_two(); !why.empty()) {
    found.left_out.push_back("bytes through two resident kernels: " + why);
    return;
  }
  for (const std::uint64_t bytes : kPostBytes) {
    const auto measure = [this, bytes](std::uint64_t trips) {
      Order order{[=, this] {
                    there_.launch(BareKernel::take, told(false, bytes, trips), kWarp);
                    here_.launch(BareKernel::post, told(true, bytes, trips), kWarp);
                  },
                  bytes};
      order.found = [this, bytes] { return in_target(bytes); };
      return command(trips, order);
    };
    found.all.push_back({"through two resident kernels, one way", bytes, measure});
  }
}

LimitWays<LimitTrips> KernelTrips::with_residents() {
  LimitWays<LimitTrips> found;
  add_words(found);
  add_copies(found);
  add_with_host(found);
  add_through_two(found);
  return found;
}

}  // namespace ist::cli
