#include "cli/bench_kernel_trips.hpp"

#include <algorithm>
#include <array>
#include <atomic>
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

bool KernelTrips::answered(std::uint64_t trip) const {
  const auto done = shared(desk_->done);
  const auto begun = Clock::now();
  for (int looks = 1; done.load(std::memory_order_acquire) != trip; ++looks) {
    if (looks % kLooksBetweenClocks != 0) continue;
    looks = 0;
    if (Clock::now() - begun > kKernelPatience) return false;
  }
  return true;
}

void KernelTrips::must_have_come(std::uint64_t bytes) const {
  const auto sent = odd_bytes(bytes);
  std::vector<std::byte> found(bytes);
  target_.read(found);
  if (found != sent)
    throw Failure(1,
                  "a resident kernel brought other bytes than it was to, " + pair_.from.text() + " to " + pair_.to.text());
}

// The processor's clock, from its word to that which it gets back. `brings`: bytes come into the target meanwhile.
std::vector<double> KernelTrips::command(std::uint64_t bytes, std::uint64_t trips, const std::function<void()>& launch,
                                         bool brings) const {
  if (brings) {
    source_.write(odd_bytes(bytes));
    target_.write(std::vector<std::byte>(bytes));
  }
  std::vector<double> times;
  times.reserve(trips);
  const std::uint64_t first_ones = first_of(trips);
  {
    const Stay stay(*this);
    launch();
    for (std::uint64_t trip = 1; trip <= trips + first_ones; ++trip) {
      const auto start = Clock::now();
      shared(desk_->command).store(trip << 32 | bytes, std::memory_order_release);
      if (!answered(trip)) return {};
      if (trip > first_ones) times.push_back(microseconds_since(start));
    }
    here_.wait();
    there_.wait();
  }
  if (brings) must_have_come(bytes);
  return times;
}

LimitWays<LimitTrips> KernelTrips::with_residents() {
  LimitWays<LimitTrips> found;
  const auto told = [this](bool here, std::uint64_t bytes, std::uint64_t trips) {
    TripWork one = work(here, bytes, trips);
    one.await = &desk_->command;
    one.tell = &desk_->done;
    one.from = reinterpret_cast<const std::byte*>(source_.address());
    one.to = reinterpret_cast<std::byte*>(target_.address());
    return one;
  };
  found.all.push_back({"a word to a resident kernel and one back, round trip", 8, [this, told](std::uint64_t trips) {
                         return command(
                             0, trips, [&] { here_.launch(BareKernel::answer, told(true, 0, trips), 1); }, false);
                       }});
  const bool pageable = !(pair_.from.on_device() || pair_.from.pinned()) || !(pair_.to.on_device() || pair_.to.pinned());
  if (pageable || !pair_.reached)
    found.left_out.push_back("copies by a resident kernel: " +
                             (pageable ? "kernels reach no pageable memory" : pair_.out_of_reach()));
  for (const std::uint64_t bytes : kCommandBytes)
    if (!pageable && pair_.reached)
      found.all.push_back({"copy by a resident kernel of one block, command to done", bytes, [=, this](std::uint64_t trips) {
                             return command(
                                 bytes, trips,
                                 [&] { here_.launch(BareKernel::copy, told(true, bytes, trips), kCopyThreads); }, true);
                           }});
  if (!pair_.between_devices()) return found;
  const std::string why = why_not_two();
  if (!why.empty()) found.left_out.push_back("bytes through two resident kernels: " + why);
  for (const std::uint64_t bytes : kPostBytes)
    if (why.empty())
      found.all.push_back({"through two resident kernels, one way", bytes, [=, this](std::uint64_t trips) {
                             return command(
                                 bytes, trips,
                                 [&] {
                                   there_.launch(BareKernel::take, told(false, bytes, trips), kWarp);
                                   here_.launch(BareKernel::post, told(true, bytes, trips), kWarp);
                                 },
                                 true);
                           }});
  return found;
}

}  // namespace ist::cli
