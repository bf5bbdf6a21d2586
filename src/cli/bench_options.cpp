#include "cli/bench_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "cli/failure.hpp"
#include "path/shm/pair_slots.hpp"

namespace ist::cli {

Place Place::read(const std::string& text) {
  static constexpr std::array<std::pair<const char*, ist_kind>, 4> kKinds{
      {{"host", IST_KIND_HOST}, {"pinned", IST_KIND_HOST}, {"cuda", IST_KIND_CUDA}, {"opencl", IST_KIND_OPENCL}}};
  Place place;
  const auto colon = text.find(':');
  place.word = text.substr(0, colon);
  const auto* known =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return place.word == entry.first; });
  if (known == kKinds.end())
    throw Failure(2, "unknown kind of memory \"" + place.word +
                         "\": expected host, pinned, cuda or opencl, with a device if "
                         "you like, as in cuda:1");
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

std::vector<std::uint64_t> timed_sizes(const BenchOptions& options) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 1; size != 0 && size <= options.most; size <<= 1)
    if (size >= options.least) sizes.push_back(size);
  return sizes;
}

std::vector<std::uint64_t> checked_sizes(const BenchOptions& options, const Settings& settings) {
  std::set<std::uint64_t> sizes{0};
  const auto around = [&](std::uint64_t size) {
    for (const std::uint64_t near : {size - 1, size, size + 1})
      if (near >= 1 && near <= options.most + 1) sizes.insert(near);
  };
  for (const std::uint64_t size : timed_sizes(options)) sizes.insert(size);
  for (const std::uint64_t odd : {1U, 3U, 7U, 17U, 33U, 65U, 129U, 1023U}) around(odd);
  around(PairSlot::kPayload);
  around(4096);
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
