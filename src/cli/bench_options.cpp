#include "cli/bench_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "cli/bench_sweep.hpp"
#include "cli/failure.hpp"
#include "cli/settings_page.hpp"
#include "memory/kinds.hpp"
#include "path/shm/pair_slot.hpp"

namespace ist::cli {

namespace {

void must_be_available(const Kinds& kinds, const Place& place) {
  if (const MemoryKind* kind = kinds.find(static_cast<KindId>(place.kind))) {
    const auto devices = static_cast<int>(kind->devices().size());
    if (place.device < devices) return;
    throw Failure(2, place.text() + " is not there: this machine has " + std::to_string(devices) + " device(s) of kind " +
                         place.kind_name());
  }
  std::string reason = "it was not loaded";
  for (const Kinds::Missing& missing : kinds.missing())
    if (missing.name == place.kind_name()) reason = missing.reason;
  throw Failure(2, "memory of kind " + place.kind_name() + " cannot be used here: " + reason + " (isthmus info tells more)");
}

}  // namespace

void must_be_available(const std::vector<Place>& places) {
  const Settings settings = read_settings();
  if (std::all_of(places.begin(), places.end(), [](const Place& place) { return place.word == "host"; })) return;
  const auto kinds = Kinds::load(settings);
  if (!kinds.ok()) throw Failure(kinds.status());
  for (const Place& place : places) must_be_available(**kinds, place);
}

Place Place::read(const std::string& text, bool classes) {
  static constexpr std::array<std::pair<const char*, ist_kind>, 8> kKinds{{{"host", IST_KIND_HOST},
                                                                           {"pinned", IST_KIND_HOST},
                                                                           {"cuda", IST_KIND_CUDA},
                                                                           {"opencl", IST_KIND_OPENCL},
                                                                           {"managed", IST_KIND_CUDA},
                                                                           {"pool", IST_KIND_CUDA},
                                                                           {"shared-pool", IST_KIND_CUDA},
                                                                           {"vmm", IST_KIND_CUDA}}};
  constexpr std::size_t kWithoutClasses = 4;
  Place place;
  const auto colon = text.find(':');
  place.word = text.substr(0, colon);
  const auto* const end_of_known = classes ? kKinds.end() : kKinds.begin() + kWithoutClasses;
  const auto* known =
      std::find_if(kKinds.begin(), end_of_known, [&](const auto& entry) { return place.word == entry.first; });
  if (known == end_of_known)
    throw Failure(2, "unknown kind of memory \"" + place.word + "\": expected host, pinned, cuda or opencl" +
                         (classes ? ", or of cuda memory managed, pool, shared-pool or vmm" : "") +
                         ", with a device if you like, as in cuda:1");
  place.kind = known->second;
  if (colon == std::string::npos) return place;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, place.device);
  if (error != std::errc{} || stop != end || place.device < 0)
    throw Failure(2, "\"" + text + "\" names no device: expected a number from 0 up after the colon, as in cuda:1");
  if (!place.on_device() && place.device != 0)
    throw Failure(2, "\"" + text + "\": " + place.word + " memory has no device but 0");
  return place;
}

std::string Place::text() const { return on_device() && device != kAnyDevice ? word + ":" + std::to_string(device) : word; }

namespace {

// Sizes that a copy is long for, and what a limit is asked of.
constexpr std::uint64_t kLeastLimit = 8;
constexpr std::uint64_t kMostLimit = 64 << 20;
// Below, no setting changes anything.
constexpr std::uint64_t kLeastOfSweep = 1024;
// The longest message in a stream that there is a bare pair of kernels for.
constexpr std::uint64_t kMostOfStreams = 8192;

void complete_limits(BenchOptions& options, bool least, bool most) {
  if (!options.call.empty()) throw Failure(2, "limits takes no call, but was given \"" + options.call + "\"");
  if (options.ranks != 0 || options.staged || options.automatic)
    throw Failure(2, "limits are measured by one process: leave out --ranks, --staged and --auto");
  if (options.ready) throw Failure(2, "limits are no messages, and their buffers promise nothing: leave out --ready");
  if (!least) options.least = kLeastLimit;
  if (!most) options.most = std::max(options.least, kMostLimit);
}

// Streams are CUDA's, queues OpenCL's, and both have their order.
void must_be_ordered(const BenchOptions& options) {
  const bool cuda = options.from.kind == IST_KIND_CUDA && options.to.kind == IST_KIND_CUDA;
  if (options.stream() && (!cuda || options.staged))
    throw Failure(2, options.benchmark +
                         " is between CUDA memory, and never staged: leave out --staged, and --from and --to or say cuda");
  const bool any_cuda = options.from.kind == IST_KIND_CUDA || options.to.kind == IST_KIND_CUDA;
  if (options.queue() && (any_cuda || options.staged))
    throw Failure(2,
                  options.benchmark +
                      " is between memory of OpenCL and of the host, and never staged: leave out --staged, and --from and "
                      "--to or say opencl or host");
  if (options.ready)
    throw Failure(2, std::string{"what is put into a "} + (options.stream() ? "stream" : "queue") +
                         " is in its order, and its buffer promises nothing: leave out --ready");
}

void take_named_sizes(BenchOptions& options) {
  std::vector<std::uint64_t>& sizes = options.sizes;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.front() == 0) throw Failure(2, "--sizes names a message of 0 bytes; the least that is timed is 1");
  options.least = sizes.front();
  options.most = sizes.back();
}

}  // namespace

void complete(BenchOptions& options, bool least, bool most) {
  if (!options.sizes.empty()) {
    take_named_sizes(options);
    least = most = true;
  }
  if (options.into && !options.overlap() && options.benchmark != "collective")
    throw Failure(2, "--into is for what calls leave, of collective and overlap, not for " + options.benchmark);
  if (options.fresh && (options.benchmark != "bandwidth" || options.from.on_device() || options.to.on_device()))
    throw Failure(2, "--fresh is for bandwidth between host memory, whose bytes a processor writes before they are sent");
  if (options.limits()) {
    complete_limits(options, least, most);
    return;
  }
  if (options.sweep()) {
    must_be_sweep(options);
    if (!least) options.least = kLeastOfSweep;
    return;
  }
  const bool between_two = !options.overlap() && options.benchmark != "collective";
  if (between_two && !options.call.empty())
    throw Failure(2, options.benchmark + " is between two ranks and takes no call, but was given \"" + options.call + "\"");
  if (options.pairs() && options.ranks % 2 != 0)
    throw Failure(2, "multi-pair takes an even number of ranks, not " + std::to_string(options.ranks) +
                         ": the first half sends to the second");
  if (between_two && !options.pairs() && options.ranks != 0 && options.ranks != 2)
    throw Failure(2, options.benchmark + " is between 2 ranks: leave out --ranks " + std::to_string(options.ranks));
  if (options.ordered()) must_be_ordered(options);
  if (options.stream_latency() && !most) options.most = std::max(options.least, kMostOfStreams);
  if (options.rate() && !least) options.least = BenchOptions::kRateBytes;
  if (options.rate() && !most) options.most = std::max(options.least, BenchOptions::kRateBytes);
  if (between_two) return;
  if (options.staged) throw Failure(2, "--staged is for latency, bandwidth, bidirectional, rate and multi-pair");
  if (options.overlap() && options.call.empty()) options.call = "exchange";
  const CollectiveCall* const call = find_call(options.call);
  if (!call || (options.overlap() && !call->start))
    throw Failure(2, options.benchmark +
                         (options.call.empty() ? " needs the name of a call" : " has no call \"" + options.call + "\"") +
                         ": expected one of " + call_names(options.overlap()));
  const bool on_cuda = options.from.kind == IST_KIND_CUDA && options.to.kind == IST_KIND_CUDA;
  if (call->in_stream() && (!on_cuda || options.automatic))
    throw Failure(2, options.call + " is put into the stream of CUDA memory: say --kind cuda, and leave out --auto");
  if (options.into && (call->in_recv || !call->moves_bytes()))
    throw Failure(2, options.call + (call->in_recv ? " works on one buffer" : " moves no bytes") + ": leave out --into " +
                         options.into->text());
  if (options.into && call->in_stream() && options.into->kind != IST_KIND_CUDA)
    throw Failure(2, options.call + " is put into the stream of CUDA memory, and --into is " + options.into->text());
  if (!most) options.most = std::max(options.least, BenchOptions::kMostOfCalls);
}

std::vector<std::string> size_arguments(const BenchOptions& options) {
  if (options.sizes.empty()) return {"--min", std::to_string(options.least), "--max", std::to_string(options.most)};
  std::string list;
  for (const std::uint64_t size : options.sizes) {
    if (!list.empty()) list += ',';
    list += std::to_string(size);
  }
  return {"--sizes", list};
}

std::vector<std::uint64_t> timed_sizes(const BenchOptions& options) {
  const CollectiveCall* const call = options.timed_call();
  if (call && !call->moves_bytes()) return {0};
  const std::uint64_t element = call ? call->element() : 1;
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t size : options.sizes) {
    if (size % element != 0)
      throw Failure(2, "--sizes names " + std::to_string(size) + " bytes, which are no whole elements of " +
                           std::to_string(element) + " bytes, as " + options.call + " has");
    sizes.push_back(size);
  }
  if (!sizes.empty()) return sizes;
  for (std::uint64_t size = 1; size != 0 && size <= options.most; size <<= 1)
    if (size >= options.least && size % element == 0) sizes.push_back(size);
  return sizes;
}

std::vector<std::uint64_t> checked_sizes(const BenchOptions& options, const Settings& settings) {
  const CollectiveCall* const call = options.timed_call();
  if (call && !call->moves_bytes()) return {};
  const std::uint64_t element = call ? call->element() : 1;
  std::set<std::uint64_t> sizes{0};
  const auto around = [&](std::uint64_t size) {
    for (const std::uint64_t near : {size - element, size, size + element})
      if (near >= 1 && near <= options.most + element && near % element == 0) sizes.insert(near);
  };
  for (const std::uint64_t size : timed_sizes(options)) sizes.insert(size);
  for (const std::uint64_t odd : {1U, 3U, 7U, 17U, 33U, 65U, 129U, 1023U}) around(odd);
  constexpr std::uint64_t kPage = 4096;
  around(PairSlot::kPayload);
  around(kAlwaysInSlots.value);
  around(kPage);
  around(kPairPayload);
  around(kPairPayloadAgain);
  around(settings.eager_limit.value);
  for (const Bytes slot : {settings.ring_slot_host, settings.ring_slot_device}) {
    around(slot.value);
    around(slot.value * settings.ring_in_flight);
    around(slot.value * settings.ring_slots);
  }
  around(options.most);
  return {sizes.begin(), sizes.end()};
}

}  // namespace ist::cli
