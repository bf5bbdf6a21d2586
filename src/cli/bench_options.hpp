// What one `isthmus bench` was asked to do.
//
// Who calls this : bench and its parts.
// Threads        : values.
// Ownership      : none.
// Errors         : a Failure with status 2 that tells what was written and what is possible.
#pragma once

#include <isthmus/isthmus.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "cli/bench_calls.hpp"

namespace ist::cli {

// A kind of memory, and a device of it: "host", "pinned", "cuda:1".
struct Place {
  static constexpr int kAnyDevice = -1;

  std::string word;  // host, pinned, cuda, opencl, or a class of cuda memory: managed, pool, shared-pool, vmm
  ist_kind kind = IST_KIND_HOST;
  int device = kAnyDevice;

  // `classes`: also those of cuda memory.
  static Place read(const std::string& text, bool classes = false);
  // Of a class that the library does not allocate itself?
  bool classed() const { return kind == IST_KIND_CUDA && word != "cuda"; }
  std::string kind_name() const { return classed() ? "cuda" : word; }
  bool pinned() const { return word == "pinned"; }
  bool on_device() const { return kind != IST_KIND_HOST; }
  // "host", "cuda:1"; without the device as long as none was chosen.
  std::string text() const;
};

// Told once, before ranks are started that would all find it out.
void must_be_available(const std::vector<Place>& places);

struct BenchOptions {
  static constexpr std::uint64_t kMost = 4 << 20;
  static constexpr std::uint64_t kMostOfCalls = 1 << 20;  // as the OSU collectives
  static constexpr std::uint64_t kRateBytes = 8;

  std::string
      benchmark;     // latency, bandwidth, bidirectional, rate, stream-..., queue-..., sweep: between two ranks; multi-pair:
                     // between several pairs; collective, overlap: of a call; limits
  std::string call;  // of collective and overlap; which one, of a sweep
  int ranks = 0;     // 0: two, of several pairs four, or as many as the world has
  Place from;
  Place to;
  std::optional<Place> into;  // of calls: where every rank's result goes, if not behind its input
  std::uint64_t least = 1;
  std::uint64_t most = kMost;
  std::vector<std::uint64_t> sizes;   // these alone are timed; empty: powers of two between
  std::vector<std::uint64_t> blocks;  // of pack and layout: bytes of each block; empty: as the benchmark says
  std::uint64_t iterations = 0;       // 0: as many as the method says
  bool quick = false;
  bool staged = false;
  bool every_pair = false;    // of the memory that there is, one after the other
  bool automatic = false;     // buffers do not say their kind
  bool fresh = false;         // of bandwidth: messages of a window have bytes of their own, just written
  bool ready = false;         // buffers say that nothing is pending on them
  std::string side = "host";  // of one-sided: who calls
  std::string json_file;

  bool latency() const { return benchmark == "latency"; }
  // Messages that are put into CUDA streams, or into OpenCL queues.
  bool stream() const { return benchmark.starts_with("stream-"); }
  bool queue() const { return benchmark.starts_with("queue-"); }
  bool ordered() const { return stream() || queue(); }
  bool stream_latency() const { return benchmark == "stream-latency"; }
  // Messages one at a time, and not in windows.
  bool one_at_a_time() const { return latency() || stream_latency() || benchmark == "queue-latency"; }
  bool rate() const { return benchmark == "rate"; }
  bool bidirectional() const { return benchmark.ends_with("bidirectional"); }
  bool pairs() const { return benchmark == "multi-pair"; }
  bool limits() const { return benchmark == "limits"; }
  bool sweep() const { return benchmark == "sweep"; }
  bool overlap() const { return benchmark == "overlap"; }
  // Whether a memcpy of the message's own size is a limit of it.
  bool limited_by_memcpy() const {
    return (latency() || benchmark == "bandwidth") && !fresh && !from.on_device() && !to.on_device();
  }
  // Where the memory is unless told otherwise.
  const char* usual_memory() const {
    const bool in_stream = stream() || (timed_call() != nullptr && timed_call()->in_stream());
    return in_stream ? "cuda" : queue() ? "opencl" : "host";
  }
  // Null for what is between two ranks.
  const CollectiveCall* timed_call() const { return call.empty() || sweep() ? nullptr : find_call(call); }
  // What the report calls it: "latency", "allreduce", "overlap-allreduce".
  std::string name() const { return call.empty() ? benchmark : (overlap() ? "overlap-" : "") + call; }
};

// Fills in what was not asked for, and refuses what does not go together; `least` and `most`: whether those were told.
void complete(BenchOptions& options, bool least, bool most);
// The words that ask another `isthmus bench` for the same sizes.
std::vector<std::string> size_arguments(const BenchOptions& options);
// Those that were named, or powers of two from `least` to `most`; of a reduction, only whole elements; a call without bytes has the
// one size 0.
std::vector<std::uint64_t> timed_sizes(const BenchOptions& options);
// Those, and 0, odd sizes, sizes beside a page, and the sizes on each side of every threshold of the settings.
std::vector<std::uint64_t> checked_sizes(const BenchOptions& options, const Settings& settings);

}  // namespace ist::cli
