// Graphs that hold messages of channels, replayed a million times with other bytes each time.
//
//   isthmus run -n 2 build/tests/graph_replays --replays 1000000 --seconds 400 --json replays.json
//
// Every rank sends to the next one and receives from the one before, by graphs at both ends, or at one end and plain calls at the other.
// A replay copies the message out of page-locked memory into a device's, sends it, receives one, and copies that out, so that the
// processor only makes bytes and compares them: they follow from the replay's number, all of them are compared, and where they arrive
// is poisoned before. Kernels of two devices share global memory that no tool watches for races: a word that came too early, too late
// or twice is found here by its value. Status: 0, all right; 1, a mismatch or an error; 2, wrong options; 3, nothing moved any more.
#include <isthmus/collective.h>
#include <isthmus/stream.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "driver.hpp"
#include "random.hpp"

namespace {

using namespace soak;
using Clock = std::chrono::steady_clock;

// So many replays are under way before their bytes are looked at. A channel takes fewer long ones: the streams wait for each other.
constexpr std::uint64_t kBatch = 16;
constexpr unsigned char kPoison = 0xa5;

// After so many replays rank 0 says whether there is time for more.
constexpr std::uint64_t kBetweenLooks = 64 * kBatch;

// Three sizes, each captured at both ends and at either.
constexpr std::array<std::size_t, 3> kSizes{8, 1003, 65541};

struct Options {
  std::uint64_t replays = 2000;
  std::uint64_t seed = 1;
  double seconds = 0;
  double stall = 60;
  std::uint64_t spoil = 0;  // that replay's bytes are taken for wrong: to see that it is found
  std::string json;
};

void ok(int code, const char* call) {
  if (code != IST_OK) throw std::runtime_error(std::string{call} + ": " + ist_code_name(code) + ": " + ist_error_text());
}
#define REPLAY_IST(name, ...) ok(name(__VA_ARGS__), #name)

// Which ends of a message are graphs.
enum class Captured { both, sender, receiver };
constexpr std::array kCaptured{"both ends", "the sending end", "the receiving end"};

struct Rank {
  ist_world world = IST_WORLD_NULL;
  ist_comm comm = IST_COMM_NULL;
  int rank = 0;
  int size = 0;
  CUcontext context = nullptr;
};

// Page-locked memory for the messages of a batch, and the device's for one.
class Places {
 public:
  explicit Places(std::size_t bytes) : bytes_(bytes) {
    void* host = nullptr;
    SOAK_CUDA(cuMemHostAlloc, &host, 2 * kBatch * bytes, 0);
    host_ = static_cast<unsigned char*>(host);
    SOAK_CUDA(cuMemAlloc_v2, &device_, 2 * bytes);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  void release() {
    SOAK_CUDA(cuMemFreeHost, host_);
    SOAK_CUDA(cuMemFree_v2, device_);
  }
  unsigned char* out(std::uint64_t which) const { return host_ + which * bytes_; }
  unsigned char* in(std::uint64_t which) const { return host_ + (kBatch + which) * bytes_; }
  CUdeviceptr device_out() const { return device_; }
  CUdeviceptr device_in() const { return device_ + bytes_; }

 private:
  const std::size_t bytes_;
  unsigned char* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

class Replays {
 public:
  Replays(const Rank& rank, const Options& options) : rank_(rank), options_(options), watchdog_([this] { watch(); }) {}
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;
  ~Replays() {
    over_ = true;
    watchdog_.join();
  }
  // Mismatches on this rank, in as many replays as are wanted and there is time for.
  std::uint64_t run(Captured captured, std::size_t bytes, int tag, std::uint64_t replays);
  std::uint64_t count() const { return count_; }
  double seconds() const { return seconds_; }

 private:
  std::uint64_t seed(int sender, std::uint64_t replay) const {
    return hash({options_.seed, static_cast<std::uint64_t>(sender), replay, bytes_, static_cast<std::uint64_t>(tag_)});
  }
  int right() const { return (rank_.rank + 1) % rank_.size; }
  int left() const { return (rank_.rank + rank_.size - 1) % rank_.size; }
  void send(const UserStream& stream, const Places& places, std::uint64_t which) const;
  void receive(const UserStream& stream, const Places& places, std::uint64_t which) const;
  template <class Body>
  CUgraphExec captured(const UserStream& stream, const Body& body) const;
  bool has_time(std::uint64_t replays, Clock::time_point since) const;
  void fill(const Places& places, std::uint64_t first);
  // How many are wrong; tells of the first one, if it is to.
  std::uint64_t compare(const Places& places, std::uint64_t first, bool tells);
  void watch();

  const Rank& rank_;
  const Options& options_;
  std::size_t bytes_ = 0;
  int tag_ = 0;
  std::uint64_t count_ = 0;
  double seconds_ = 0;
  std::vector<unsigned char> wanted_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<const char*> doing_{"preparing"};
  std::atomic<bool> over_{false};
  std::thread watchdog_;
};

void Replays::watch() {
  std::uint64_t seen = 0;
  auto since = Clock::now();
  while (!over_) {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    if (const std::uint64_t now = done_; now != seen) {
      seen = now;
      since = Clock::now();
    }
    if (std::chrono::duration<double>(Clock::now() - since).count() < options_.stall) continue;
    std::fprintf(stderr, "STALLED on rank %d: %s; %llu replays are over, open are those after (seed %llu)\n", rank_.rank,
                 doing_.load(), static_cast<unsigned long long>(seen), static_cast<unsigned long long>(options_.seed));
    std::fflush(nullptr);
    ::_exit(3);
  }
}

void Replays::send(const UserStream& stream, const Places& places, std::uint64_t which) const {
  SOAK_CUDA(cuMemcpyAsync, places.device_out(), reinterpret_cast<CUdeviceptr>(places.out(which)), bytes_, stream.get());
  REPLAY_IST(ist_send_on, stream.get(), ist_cuda(reinterpret_cast<void*>(places.device_out()), stream.get()),
             static_cast<std::int64_t>(bytes_), IST_BYTE, right(), tag_, rank_.comm);
}

void Replays::receive(const UserStream& stream, const Places& places, std::uint64_t which) const {
  // What was received last must not pass for what comes.
  SOAK_CUDA(cuMemsetD8Async, places.device_in(), kPoison, bytes_, stream.get());
  REPLAY_IST(ist_recv_on, stream.get(), ist_cuda(reinterpret_cast<void*>(places.device_in()), stream.get()),
             static_cast<std::int64_t>(bytes_), IST_BYTE, left(), tag_, rank_.comm);
  SOAK_CUDA(cuMemcpyAsync, reinterpret_cast<CUdeviceptr>(places.in(which)), places.device_in(), bytes_, stream.get());
}

template <class Body>
CUgraphExec Replays::captured(const UserStream& stream, const Body& body) const {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  SOAK_CUDA(cuStreamBeginCapture_v2, stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  body();
  SOAK_CUDA(cuStreamEndCapture, stream.get(), &graph);
  SOAK_CUDA(cuGraphInstantiateWithFlags, &executable, graph, 0);
  SOAK_CUDA(cuGraphDestroy, graph);
  return executable;
}

// The same on every rank, or one would wait for another's replays. Ranks that share a GPU take turns on it, which takes long.
bool Replays::has_time(std::uint64_t replays, Clock::time_point since) const {
  if (options_.seconds <= 0 || replays % kBetweenLooks != 0) return true;
  const double share = options_.seconds / static_cast<double>(kSizes.size() * kCaptured.size());
  std::int32_t more = std::chrono::duration<double>(Clock::now() - since).count() < share ? 1 : 0;
  REPLAY_IST(ist_bcast, ist_host(&more), 1, IST_INT32, 0, rank_.comm);
  return more != 0;
}

void Replays::fill(const Places& places, std::uint64_t first) {
  for (std::uint64_t which = 0; which < kBatch; ++which) {
    make_bytes(places.out(which), bytes_, seed(rank_.rank, first + which));
    std::memset(places.in(which), kPoison ^ 0xff, bytes_);
  }
}

std::uint64_t Replays::compare(const Places& places, std::uint64_t first, bool tells) {
  std::uint64_t wrong = 0;
  wanted_.resize(bytes_);
  for (std::uint64_t which = 0; which < kBatch; ++which) {
    make_bytes(wanted_.data(), bytes_, seed(left(), first + which));
    if (first + which + 1 == options_.spoil) wanted_[bytes_ / 2] ^= 1;
    if (std::memcmp(wanted_.data(), places.in(which), bytes_) == 0) continue;
    if (++wrong > 1 || !tells) continue;
    std::size_t at = 0;
    while (wanted_[at] == places.in(which)[at]) ++at;
    std::fprintf(stderr, "MISMATCH on rank %d: %s, %zu bytes, replay %llu: byte %zu is %u in place of %u (seed %llu)\n",
                 rank_.rank, doing_.load(), bytes_, static_cast<unsigned long long>(first + which), at, places.in(which)[at],
                 wanted_[at], static_cast<unsigned long long>(options_.seed));
  }
  return wrong;
}

std::uint64_t Replays::run(Captured which_ends, std::size_t bytes, int tag, std::uint64_t replays) {
  bytes_ = bytes;
  tag_ = tag;
  doing_ = kCaptured[static_cast<std::size_t>(which_ends)];
  const UserStream stream;
  REPLAY_IST(ist_prepare_on, stream.get(), right(), tag, IST_SENDS, rank_.comm);
  REPLAY_IST(ist_prepare_on, stream.get(), left(), tag, IST_RECEIVES, rank_.comm);
  Places places(bytes);
  std::vector<CUgraphExec> graphs;
  for (std::uint64_t which = 0; which < kBatch; ++which)
    graphs.push_back(captured(stream, [&] {
      if (which_ends != Captured::receiver) send(stream, places, which);
      if (which_ends != Captured::sender) receive(stream, places, which);
    }));
  std::uint64_t mismatches = 0;
  const auto start = Clock::now();
  count_ = 0;
  for (; count_ < replays && has_time(count_, start); count_ += kBatch, done_ += kBatch) {
    fill(places, count_);
    for (std::uint64_t which = 0; which < kBatch; ++which) {
      if (which_ends == Captured::receiver) send(stream, places, which);
      SOAK_CUDA(cuGraphLaunch, graphs[which], stream.get());
      if (which_ends == Captured::sender) receive(stream, places, which);
    }
    stream.wait();
    mismatches += compare(places, count_, mismatches == 0);
  }
  seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  for (const CUgraphExec graph : graphs) SOAK_CUDA(cuGraphExecDestroy, graph);
  places.release();
  return mismatches;
}

std::optional<int> read_options(int argc, char** argv, Options& options) {
  CLI::App app{"graphs with messages of channels, replayed with other bytes each time", "graph_replays"};
  app.add_option("--replays", options.replays, "of short messages; a tenth as many of long ones")->capture_default_str();
  app.add_option("--seconds", options.seconds, "no replay begins after so many; 0 for no limit")->capture_default_str();
  app.add_option("--seed", options.seed, "what the bytes follow from")->capture_default_str();
  app.add_option("--stall", options.stall, "seconds without a replay until it is given up")->capture_default_str();
  app.add_option("--spoil", options.spoil, "takes that replay for wrong: to see that it is noticed");
  app.add_option("--json", options.json, "rank 0 writes what was done to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

// True if all ranks have a device; the rank's own is made current.
bool join(Rank& rank) {
  REPLAY_IST(ist_world_create, &rank.world);
  REPLAY_IST(ist_world_comm, rank.world, &rank.comm);
  REPLAY_IST(ist_comm_rank, rank.comm, &rank.rank);
  REPLAY_IST(ist_comm_size, rank.comm, &rank.size);
  std::int32_t devices = 0;
  std::int32_t fewest = 0;
  REPLAY_IST(ist_kind_devices, rank.world, IST_KIND_CUDA, &devices);
  REPLAY_IST(ist_allreduce, ist_host(&devices), ist_host(&fewest), 1, IST_INT32, IST_MIN, rank.comm);
  if (fewest == 0 || rank.size < 2) return false;
  ist_buffer own{};
  REPLAY_IST(ist_memory_alloc, rank.world, IST_KIND_CUDA, IST_OWN_DEVICE, 1, &own);
  SOAK_CUDA(cuDevicePrimaryCtxRetain, &rank.context, own.device);
  REPLAY_IST(ist_memory_free, rank.world, own);
  SOAK_CUDA(cuCtxSetCurrent, rank.context);
  return true;
}

int replay_all(const Rank& rank, const Options& options) {
  nlohmann::json rows = nlohmann::json::array();
  bool right = true;
  Replays replays(rank, options);
  int tag = 800;
  for (const std::size_t bytes : kSizes)
    for (const Captured captured : {Captured::both, Captured::sender, Captured::receiver}) {
      const std::uint64_t count = (options.replays / (bytes > 8192 ? 10 : 1) + kBatch - 1) / kBatch * kBatch;
      std::uint64_t mine = replays.run(captured, bytes, tag++, count);
      std::uint64_t all = 0;
      REPLAY_IST(ist_allreduce, ist_host(&mine), ist_host(&all), 1, IST_UINT64, IST_SUM, rank.comm);
      right = right && all == 0;
      rows.push_back({{"captured", kCaptured[static_cast<std::size_t>(captured)]},
                      {"bytes", bytes},
                      {"replays", replays.count()},
                      {"mismatches", all},
                      {"seconds", replays.seconds()}});
      if (rank.rank == 0)
        std::printf("graphs at %s, %zu B: %llu replays in %.1f s, %s\n", kCaptured[static_cast<std::size_t>(captured)],
                    bytes, static_cast<unsigned long long>(replays.count()), replays.seconds(),
                    all == 0 ? "every byte right" : "MISMATCHES");
    }
  const nlohmann::json whole{
      {"benchmark", "graph replays"}, {"passed", right}, {"seed", options.seed}, {"size", rank.size}, {"rows", rows}};
  if (rank.rank == 0 && !options.json.empty() && !(std::ofstream(options.json) << whole.dump(1) << '\n'))
    throw std::runtime_error("cannot write " + options.json);
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto status = read_options(argc, argv, options)) return *status;
  try {
    Rank rank;
    if (!join(rank)) {
      std::printf("SKIPPED: graphs with messages take two ranks with a CUDA device each\n");
      ok(ist_world_destroy(&rank.world), "ist_world_destroy");
      return 0;
    }
    const int status = replay_all(rank, options);
    REPLAY_IST(ist_world_destroy, &rank.world);
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ERROR: %s\n", error.what());
    std::fflush(nullptr);
    ::_exit(1);  // the other ranks wait, and threads may be in the middle of calls
  }
}
