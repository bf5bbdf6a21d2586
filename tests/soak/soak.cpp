// A soak: mixed traffic between neighbours for as long as it is told, every byte compared, and nothing may grow meanwhile.
//
//   isthmus run -n 2 build/tests/traffic_soak --seconds 1200 --json soak.json
//
// In rounds: every rank has some threads ("lanes") that send and receive by every call there is, out of and into memory of every class,
// one with collective calls, one with one-sided calls on symmetric heaps, and where there is CUDA two with messages and with collective calls in streams. Queues of OpenCL have tests
// of their own, and a worker runs where ISTHMUS_WORKER says so. What is sent follows from seed, round, lane and step,
// so that both ends know it, and a round that went wrong can be run again by itself. Between the rounds nothing is under way, and what
// the processes hold is looked at. Status: 0, all right; 1, a mismatch, an error or a leak; 2, wrong options; 3, nothing moved any more.
#include <fcntl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>
#include <optional>

#include "lane.hpp"
#include "watch.hpp"

namespace {

using namespace soak;

std::optional<int> read_options(int argc, char** argv, Options& options) {
  CLI::App app{"mixed traffic between ranks, every byte compared", "traffic_soak"};
  app.add_option("--seconds", options.seconds, "how long; the round that is under way then is finished")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "what everything follows from")->capture_default_str();
  app.add_option("--first-round", options.first_round, "begin with this round")->capture_default_str();
  app.add_option("--rounds", options.rounds, "end after so many rounds");
  app.add_option("--only", options.only, "lanes of these kinds alone: message, collective, heap, stream")
      ->delimiter(',')
      ->check(CLI::IsMember({"message", "collective", "heap", "stream"}));
  app.add_option("--classes", options.classes, "memory of these classes alone, of those that are there")->delimiter(',');
  app.add_option("--lanes", options.lanes, "threads with messages, beside that with collective calls and those with streams")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--steps", options.steps, "steps of a thread in a round")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--most", options.most, "bytes of the longest message")->capture_default_str();
  app.add_option("--stall", options.stall, "seconds without a step until it is given up, with what is open printed")
      ->capture_default_str();
  app.add_option("--warm-up", options.warm_up, "seconds in which caches fill, so that growth does not count")
      ->capture_default_str();
  app.add_option("--json", options.json, "rank 0 writes what all ranks found to this file");
  app.add_option("--spoil", options.spoil,
                 "takes the so many-th message that each rank compares for wrong: to see that it is noticed");
  app.add_flag("--leak", options.leak, "loses a descriptor and memory each round: to see that it is noticed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

template <class T>
T combined(const Rank& rank, T value, ist_type type, ist_op op) {
  T result{};
  SOAK_IST(ist_allreduce, ist_host(&value), ist_host(&result), 1, type, op, rank.comm);
  return result;
}

// What every rank has, in the same order everywhere.
void agree_on_classes(Rank& rank) {
  const auto everywhere = combined<std::uint32_t>(rank, usable(rank.place), IST_UINT32, IST_BAND);
  for (int one = 0; one < kClasses; ++one) {
    if (!rank.options.has_class(name_of(static_cast<Class>(one)))) continue;
    if ((everywhere >> one & 1U) != 0)
      rank.classes.push_back(static_cast<Class>(one));
    else if (rank.rank == 0)
      std::fprintf(stderr, "not covered here: memory of class %s, which not every rank has\n",
                   name_of(static_cast<Class>(one)));
  }
  if (rank.classes.empty()) throw std::runtime_error("none of the classes that --classes names is there on every rank");
}

// Those with calls in streams are the last ones.
std::vector<std::unique_ptr<Lane>> make_lanes(Rank& rank, Tally& tally) {
  std::vector<std::unique_ptr<Lane>> lanes;
  int number = 0;
  // Each has the number that it has among all of them.
  for (; number < rank.options.lanes; ++number)
    if (rank.options.has_lanes("message")) lanes.push_back(make_message_lane(rank, tally, number));
  if (rank.options.has_lanes("collective")) lanes.push_back(make_collective_lane(rank, tally, number));
  ++number;
  // Behind those in streams, whose numbers are as they were before there was this one.
  if (rank.options.has_lanes("heap")) lanes.push_back(make_heap_lane(rank, tally, number + 2));
  if (!rank.options.has_lanes("stream")) return lanes;
  const bool devices = std::find(rank.classes.begin(), rank.classes.end(), Class::cuda) != rank.classes.end();
  if (rank.size > 1 && devices) {
    lanes.push_back(make_stream_lane(rank, tally, number++));
    lanes.push_back(make_meeting_lane(rank, tally, number++));
  } else if (rank.rank == 0) {
    std::fprintf(stderr, "not covered here: what runs in streams, which takes two ranks with a CUDA device each\n");
  }
  return lanes;
}

// By every carrier, what this rank has received.
nlohmann::json carriers(const Rank& rank) {
  nlohmann::json found = nlohmann::json::object();
  for (const ist_carrier one :
       {IST_CARRIER_SLOT, IST_CARRIER_CELL, IST_CARRIER_RING, IST_CARRIER_DIRECT, IST_CARRIER_SINGLE_COPY,
        IST_CARRIER_DEVICE, IST_CARRIER_MAILBOX, IST_CARRIER_BLOCK, IST_CARRIER_NCCL}) {
    ist_traffic traffic{};
    traffic.size = sizeof traffic;
    SOAK_IST(ist_world_traffic, rank.place.world, IST_ALL_PEERS, one, &traffic);
    found[ist_carrier_name(one)] = {{"messages", traffic.messages_received}, {"bytes", traffic.bytes_received}};
  }
  return found;
}

// Everybody's text to rank 0.
std::vector<std::string> gathered(const Rank& rank, const std::string& mine) {
  const auto length = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rank.size));
  std::vector<std::int64_t> starts(lengths.size());
  SOAK_IST(ist_gather, ist_host(&length), 1, ist_host(lengths.data()), 1, IST_INT64, 0, rank.comm);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    starts[i] = all;
    all += lengths[i];
  }
  std::string texts(static_cast<std::size_t>(all), ' ');
  SOAK_IST(ist_gatherv, ist_host(mine.data()), length, ist_host(texts.data()), lengths.data(), starts.data(), IST_BYTE, 0,
           rank.comm);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < lengths.size() && rank.rank == 0; ++i)
    found.push_back(texts.substr(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(lengths[i])));
  return found;
}

class Soak {
 public:
  explicit Soak(Options options) {
    rank_.options = std::move(options);
    SOAK_IST(ist_world_create, &rank_.place.world);
    SOAK_IST(ist_world_comm, rank_.place.world, &rank_.comm);
    SOAK_IST(ist_comm_rank, rank_.comm, &rank_.rank);
    SOAK_IST(ist_comm_size, rank_.comm, &rank_.size);
  }
  int run() {
    agree_on_classes(rank_);
    lanes_ = make_lanes(rank_, tally_);
    std::vector<const Lane*> looked_at;
    for (const auto& lane : lanes_) looked_at.push_back(lane.get());
    Watch watch(rank_, looked_at);
    std::uint64_t round = rank_.options.first_round;
    while (!over(watch, round)) {
      run_round(round++);
      SOAK_IST(ist_barrier, rank_.comm);
      watch.quiet();
      SOAK_IST(ist_barrier, rank_.comm);
      if (rank_.options.leak) leak();
    }
    return report(watch, round - rank_.options.first_round);
  }
  void leave() {
    SOAK_IST(ist_world_destroy, &rank_.place.world);
    give_back(rank_.place);
  }

 private:
  // Rank 0's clock counts for all.
  bool over(const Watch& watch, std::uint64_t round) {
    const bool enough = round - rank_.options.first_round >= rank_.options.rounds ||
                        (rank_.rank == 0 && watch.seconds() >= rank_.options.seconds);
    return combined<std::int32_t>(rank_, enough || tally_.mismatches() > 0 ? 1 : 0, IST_INT32, IST_MAX) != 0;
  }
  void run_round(std::uint64_t round) {
    std::vector<std::thread> threads;
    for (const auto& lane : lanes_) lane->open();
    // Those in streams come one after the other: while kernels of one wait for another rank nothing is freed on this one, and that rank
    // must not wait in turn for the other lane's memory.
    for (auto from = lanes_.begin(); from != lanes_.end();) {
      const auto to = (*from)->in_streams() ? lanes_.end() : from + 1;
      threads.emplace_back([this, round, from, to] {
        for (auto lane = from; lane != to; ++lane) run_lane(**lane, round);
      });
      from = to;
    }
    for (std::thread& thread : threads) thread.join();
    if (rank_.place.device >= 0) SOAK_CUDA(cuCtxSetCurrent, rank_.place.context);
    free_rest(rank_.place);
    for (const auto& lane : lanes_) lane->close();
  }
  void run_lane(Lane& one, std::uint64_t round) const {
    try {
      one.run(round);
    } catch (const std::exception& error) {
      // The other ranks wait for what this lane would have done: there is no going on.
      std::string text = "ERROR on rank " + std::to_string(rank_.rank) + " in " + one.progress().look().text + ":\n  " +
                         error.what() + "\n  those rounds again: --seed " + std::to_string(rank_.options.seed) +
                         " --first-round " + std::to_string(round) + "\n";
      // What broke a device is seldom what hears of it first.
      for (const auto& lane : lanes_) {
        const Progress::Found found = lane->progress().look();
        if (lane.get() != &one && !found.text.empty())
          text += "  meanwhile, since " + std::to_string(found.seconds * 1e3) + " ms: " + found.text + "\n";
      }
      if (rank_.place.device >= 0) text += rank_.place.history.text();
      std::fputs(text.c_str(), stderr);
      std::fflush(nullptr);
      ::_exit(1);
    }
  }
  void leak() {
    (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);
    leaked_.emplace_back(std::size_t{8} << 20, 'x');
  }
  int report(const Watch& watch, std::uint64_t rounds);

  Rank rank_;
  Tally tally_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::string> leaked_;
};

int Soak::report(const Watch& watch, std::uint64_t rounds) {
  nlohmann::json mine = watch.report();
  nlohmann::json counts = nlohmann::json::object();
  for (const auto& [what, count] : tally_.counts()) counts[what] = {{"messages", count.messages}, {"bytes", count.bytes}};
  mine["rank"] = rank_.rank;
  mine["mismatches"] = tally_.mismatches();
  mine["received"] = counts;
  mine["carriers"] = carriers(rank_);
  bool flat = true;
  for (const char* what : {"descriptors", "host_bytes", "device_bytes"}) {
    if (!mine.contains(what) || mine[what]["flat"] != false) continue;
    flat = false;
    std::fprintf(stderr, "LEAK on rank %d: %s grew by %lld, of which %lld are allowed\n", rank_.rank, what,
                 mine[what]["grown"].get<long long>(),
                 mine[what]["tolerance"].get<long long>() + mine[what]["by_chance"].get<long long>());
  }
  const bool right = combined<std::int32_t>(rank_, flat && tally_.mismatches() == 0 ? 1 : 0, IST_INT32, IST_MIN) != 0;
  const std::vector<std::string> texts = gathered(rank_, mine.dump());
  if (rank_.rank != 0) return right ? 0 : 1;
  nlohmann::json whole{{"benchmark", "soak"},          {"passed", right},
                       {"seconds", watch.seconds()},   {"rounds", rounds},
                       {"seed", rank_.options.seed},   {"first_round", rank_.options.first_round},
                       {"lanes", rank_.options.lanes}, {"steps", rank_.options.steps},
                       {"most", rank_.options.most},   {"size", rank_.size},
                       {"version", ist_version()}};
  for (const Class one : rank_.classes) whole["classes"].push_back(name_of(one));
  for (const std::string& text : texts) whole["ranks"].push_back(nlohmann::json::parse(text));
  if (!rank_.options.json.empty() && !(std::ofstream(rank_.options.json) << whole.dump(1) << '\n'))
    throw std::runtime_error("cannot write " + rank_.options.json);
  std::uint64_t messages = 0;
  for (const auto& [what, count] : tally_.counts()) messages += what.starts_with("by ") ? 0 : count.messages;
  std::printf(
      "soak: %s: %llu rounds in %.0f s, rank 0 compared %llu messages; descriptors %s, host memory %s, device memory %s\n",
      right ? "passed" : "FAILED", static_cast<unsigned long long>(rounds), watch.seconds(),
      static_cast<unsigned long long>(messages), mine["descriptors"].dump().c_str(), mine["host_bytes"].dump().c_str(),
      mine.contains("device_bytes") ? mine["device_bytes"].dump().c_str() : "none");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto status = read_options(argc, argv, options)) return *status;
  try {
    Soak soak(options);
    const int status = soak.run();
    soak.leave();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ERROR: %s\n", error.what());
    std::fflush(nullptr);
    ::_exit(1);  // threads may be in the middle of calls
  }
}
