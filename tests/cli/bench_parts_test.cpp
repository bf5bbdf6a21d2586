#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "cli/bench_bare_link.hpp"
#include "cli/bench_check.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_report.hpp"
#include "cli/bench_room.hpp"
#include "cli/bench_sweep.hpp"
#include "cli/failure.hpp"
#include "cli/machine.hpp"
#include "path/shm/pair_slot.hpp"

namespace ist::cli {
namespace {

std::set<std::string> names(const nlohmann::ordered_json& object) {
  std::set<std::string> found;
  for (const auto& [name, value] : object.items()) found.insert(name);
  return found;
}

TEST(BenchReport, TheFrozenJsonNamesAreThereAndNothingWasRenamed) {
  BenchReport report;
  report.benchmark = "latency";
  report.rows.push_back({8, 1.5, 1.25, 2.0, 0.0053333, 10000, "shm/slot"});
  const auto json = to_json(report);
  for (const char* name : {"machine", "commit", "date", "benchmark", "from", "to", "rows"})
    EXPECT_EQ(names(json).count(name), 1U) << name;
  for (const char* name : {"bytes", "median_us", "p10_us", "p90_us", "gbps", "path"})
    EXPECT_EQ(names(json["rows"][0]).count(name), 1U) << name;
  EXPECT_EQ(json["rows"][0]["bytes"], 8);
  EXPECT_DOUBLE_EQ(json["rows"][0]["median_us"].get<double>(), 1.5);
  EXPECT_EQ(json["rows"][0]["path"], "shm/slot");
}

TEST(BenchReport, WhatABenchmarkHasBesidesStandsInEveryRowByItsName) {
  BenchOptions options;
  options.benchmark = "collective";
  options.call = "allreduce";
  BenchReport report;
  report.benchmark = options.name();
  report.added = added_names(options);
  report.rows.push_back({8, 1.5, 1.25, 2.0, 0.0053333, 1000, "schedule", {1.75, 1.5, 2.0}});
  const auto json = to_json(report);
  EXPECT_EQ(json["benchmark"], "allreduce");
  for (const auto& [name, value] : {std::pair{"average_us", 1.75}, {"min_us", 1.5}, {"max_us", 2.0}})
    EXPECT_DOUBLE_EQ(json["rows"][0][name].get<double>(), value) << name;
  EXPECT_NE(table_header(report).find("max_us"), std::string::npos);
}

TEST(BenchReport, EveryTableHasTheRatioToALimitAndThatOfMessagesBetweenHostBuffersIsARate) {
  const auto names_of = [](const std::string& benchmark, const std::string& from, const std::string& call = "") {
    BenchOptions options;
    options.benchmark = benchmark;
    options.call = call;
    options.from = Place::read(from);
    options.to = Place::read("host");
    return added_names(options);
  };
  const std::vector<std::string> rate{"limit_gbs", "limit_ratio"};
  const std::vector<std::string> windows{"two_copies_gbs", "read_gbs", "one_copy_gbs", "limit_gbs", "limit_ratio"};
  const std::vector<std::string> time{"limit_us", "limit_ratio"};
  for (const char* benchmark : {"latency", "bandwidth"}) {
    for (const char* from : {"host", "pinned"})
      EXPECT_EQ(names_of(benchmark, from), benchmark == std::string{"latency"} ? rate : windows) << benchmark << from;
    for (const char* from : {"cuda", "opencl"}) EXPECT_EQ(names_of(benchmark, from), time) << benchmark << from;
  }
  const auto ends_with_time = [&](std::vector<std::string> names) {
    return names.size() >= 2 && std::equal(time.begin(), time.end(), names.end() - 2);
  };
  for (const char* benchmark : {"bidirectional", "rate", "multi-pair", "stream-bandwidth", "stream-bidirectional",
                                "queue-latency", "queue-bandwidth", "queue-bidirectional"})
    EXPECT_TRUE(ends_with_time(names_of(benchmark, "cuda"))) << benchmark;
  for (const CollectiveCall& call : collective_calls())
    EXPECT_TRUE(ends_with_time(names_of("collective", "host", call.name))) << call.name;
  EXPECT_TRUE(ends_with_time(names_of("overlap", "host", "exchange")));
  EXPECT_EQ(names_of("rate", "host").front(), "messages_per_s");
  const auto streams = names_of("stream-latency", "cuda");
  for (const char* name : {"limit_ratio", "limit_graph_ratio", "copy_ratio"})
    EXPECT_EQ(std::count(streams.begin(), streams.end(), name), 1) << name;
  EXPECT_TRUE(names_of("limits", "cuda").empty()) << "those are the limits";
}

TEST(BenchLimits, ACopyOfAnySizeHasARateAndNothingHasNone) {
  EXPECT_EQ(warm_memcpy_gbps(0), 0);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{8}, std::size_t{4095}, std::size_t{4096}, std::size_t{4} << 20U})
    EXPECT_GT(warm_memcpy_gbps(bytes), 0) << bytes;
}

TEST(BenchReport, TheDateIsUtcInIsoForm) {
  const std::string date = date_now();
  ASSERT_EQ(date.size(), 20U);
  EXPECT_EQ(date[4], '-');
  EXPECT_EQ(date[10], 'T');
  EXPECT_EQ(date.back(), 'Z');
}

TEST(BenchLimits, LinesToAnotherProcessorTakeTimeAndToNoneAreNotKnown) {
  EXPECT_EQ(cache_lines_us(-1), 0);
  const Limits none = measure_limits(-1);
  EXPECT_EQ(none.cache_line_us, 0);
  EXPECT_GT(none.memcpy_gbps, 0);
  for (int processor = 0; processor < 2 && find_processors().usable > 1; ++processor) {
    const double lines = cache_lines_us(processor);
    // 0 where this thread itself is there.
    EXPECT_GE(lines, 0);
    EXPECT_LT(lines, 1e3);
  }
}

TEST(BenchLimits, ALinkBetweenHostMemoryIsACopyOrACacheLine) {
  const auto kinds = Kinds::load("host");
  ASSERT_TRUE(kinds.ok());
  const BareEnds ends{Place::read("host"), Place::read("pinned"), 4096, false, 50.0};
  const auto link = BareLink::open(ends, **kinds);
  EXPECT_DOUBLE_EQ(link->us(8, BareForm::single), 50.0);
  EXPECT_LT(link->us(8, BareForm::window), 50.0);
  EXPECT_GT(link->us(4096, BareForm::both_ways), 0);
  EXPECT_NE(link->words(BareForm::single).find("a cache line"), std::string::npos);
  EXPECT_EQ(link->words(BareForm::window).find("a cache line"), std::string::npos);
}

TEST(BenchLimits, WhatIsNoRowByItselfIsTimedThreeTimesAtLeastAndNotForLong) {
  int calls = 0;
  EXPECT_GE(bare_median_us([&] { ++calls; }), 0);
  EXPECT_EQ(calls, 102) << "once to warm up";
  calls = 0;
  EXPECT_GE(bare_median_us([&] {
              ++calls;
              usleep(30000);
            }),
            30e3);
  EXPECT_EQ(calls, 4);
  calls = 0;
  bare_median_us([&] {
    ++calls;
    usleep(310000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(BenchSweep, AMachineThatWasNotTheSameForAllValuesIsTold) {
  const auto report = [](const char* benchmark, double us, double gbps, const nlohmann::ordered_json& ratio) {
    return nlohmann::ordered_json{{"benchmark", benchmark},
                                  {"rows", {{{"bytes", 8}, {"median_us", us}, {"gbps", gbps}, {"limit_ratio", ratio}}}}};
  };
  // Limits of 1 us and 1.5 us, of 10 and 12 GB/s, and one that is not known.
  std::vector<nlohmann::ordered_json> reports{report("latency", 2, 0, 2), report("latency", 3, 0, 2),
                                              report("latency", 4, 0, nullptr), report("bandwidth", 1, 5, 2),
                                              report("bandwidth", 1, 4, 3)};
  EXPECT_EQ(sweep_warning(reports), "");
  reports.push_back(report("bandwidth", 1, 4, 1));
  EXPECT_NE(sweep_warning(reports).find("the limit of bandwidth at 8 bytes was 3.0 times as high"), std::string::npos)
      << sweep_warning(reports);
}

TEST(BenchCheck, EverySingleWrongByteIsFoundAndNamed) {
  std::vector<std::byte> expected(257);
  fill_random(expected, 42);
  for (std::size_t at = 0; at < expected.size(); ++at) {
    auto found = expected;
    found[at] ^= std::byte{1};
    const Difference difference = compare(found, expected);
    EXPECT_EQ(difference.wrong, 1U);
    EXPECT_EQ(difference.first, at);
  }
  EXPECT_EQ(compare(expected, expected).wrong, 0U);
}

TEST(BenchCheck, TheFirstOfSeveralWrongBytesIsNamed) {
  const std::vector<std::byte> expected(100, std::byte{7});
  auto found = expected;
  found[13] = found[99] = std::byte{8};
  EXPECT_EQ(compare(found, expected).wrong, 2U);
  EXPECT_EQ(compare(found, expected).first, 13U);
}

TEST(BenchCheck, BothRanksMakeTheSameBytesFromASeedAndOthersFromTheNext) {
  std::vector<std::byte> one(1001);
  std::vector<std::byte> same(1001);
  std::vector<std::byte> other(1001);
  fill_random(one, 5);
  fill_random(same, 5);
  fill_random(other, 6);
  EXPECT_EQ(one, same);
  EXPECT_GT(compare(one, other).wrong, 900U);
}

TEST(BenchSizes, TimedSizesArePowersOfTwoWithinTheBounds) {
  BenchOptions options;
  EXPECT_EQ(timed_sizes(options).front(), 1U);
  EXPECT_EQ(timed_sizes(options).back(), 4U << 20U);
  EXPECT_EQ(timed_sizes(options).size(), 23U);
  options.least = 3;
  options.most = 33;
  EXPECT_EQ(timed_sizes(options), (std::vector<std::uint64_t>{4, 8, 16, 32}));
}

TEST(BenchSizes, NamedSizesAloneAreTimedInTheirOrderAndOnce) {
  BenchOptions options;
  options.benchmark = "latency";
  options.sizes = {4096, 7, 1 << 20, 7};
  complete(options, false, false);
  EXPECT_EQ(timed_sizes(options), (std::vector<std::uint64_t>{7, 4096, 1 << 20}));
  EXPECT_EQ(checked_sizes(options, Settings{}).back(), (1U << 20U) + 1);
  EXPECT_EQ(size_arguments(options), (std::vector<std::string>{"--sizes", "7,4096,1048576"}));
  EXPECT_EQ(size_arguments(BenchOptions{}), (std::vector<std::string>{"--min", "1", "--max", "4194304"}));
}

TEST(BenchSizes, CheckedSizesHoldZeroOddPagesAndBothSidesOfEveryThreshold) {
  const BenchOptions options;
  const Settings settings;
  const auto sizes = checked_sizes(options, settings);
  const auto has = [&](std::uint64_t size) { return std::find(sizes.begin(), sizes.end(), size) != sizes.end(); };
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_TRUE(has(0));
  for (const std::uint64_t threshold :
       {std::uint64_t{4096}, std::uint64_t{PairSlot::kPayload}, settings.eager_limit.value, settings.ring_slot_host.value,
        settings.ring_slot_device.value, settings.ring_slot_device.value * settings.ring_slots, options.most})
    for (const std::uint64_t size : {threshold - 1, threshold, threshold + 1})
      EXPECT_EQ(has(size), size <= options.most + 1) << size;
  for (const std::uint64_t size : timed_sizes(options)) EXPECT_TRUE(has(size)) << size;
}

TEST(BenchSizes, NothingLongerThanOnePastTheLargestIsChecked) {
  BenchOptions options;
  options.most = 1024;
  EXPECT_EQ(checked_sizes(options, Settings{}).back(), 1025U);
}

TEST(BenchTiming, AWindowOfLongMessagesMovesNoMoreThan4GiB) {
  EXPECT_EQ(window_of(0), 64);
  EXPECT_EQ(window_of(64 << 20), 64);
  EXPECT_EQ(window_of((64 << 20) + 1), 63);
  EXPECT_EQ(window_of(std::uint64_t{1} << 30), 4);
  EXPECT_EQ(window_of(std::uint64_t{16} << 30), 4);
}

TEST(BenchTiming, ARowHasNoMoreBatchesThanItsTimeAllows) {
  BenchOptions options;
  options.benchmark = "bandwidth";
  const auto batches = [&](double us) { return make_plan(options, 20, us, true).batches; };
  EXPECT_EQ(batches(1e3), 20U);
  EXPECT_EQ(batches(0.2e6), 15U);
  EXPECT_EQ(batches(0.9e6), 10U);
  EXPECT_EQ(batches(2e6), 5U);
  EXPECT_EQ(batches(60e6), 3U);
  options.quick = true;
  EXPECT_EQ(batches(0.5e6), 3U);
  // Who says how often is not overruled.
  options.iterations = 20;
  EXPECT_EQ(batches(60e6), 20U);
}

TEST(BenchTiming, NoFewerRepetitionsAreMadeThanWereAskedFor) {
  BenchOptions options;
  for (const std::uint64_t asked : {1, 3, 99, 100, 101, 132, 199, 200, 201, 1000, 1999, 10000}) {
    options.iterations = asked;
    for (const bool alone : {false, true}) {
      const Plan plan = make_plan(options, wanted_iterations(options, 132096), 10, alone);
      EXPECT_GE(plan.iterations(), asked) << alone;
      EXPECT_LT(plan.iterations(), asked + plan.per_batch) << alone;
      EXPECT_LE(plan.per_batch, std::max<std::uint64_t>(alone ? 1 : asked / 100, 1)) << asked;
    }
  }
}

TEST(BenchRoom, BuffersAndWhatBytesAreComparedWithAreCounted) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  BenchOptions options;
  options.benchmark = "bandwidth";
  options.from = options.to = Place::read("host");
  options.most = kGiB;
  const std::uint64_t host = host_bytes_needed(options, 2);
  EXPECT_GE(host, 8 * kGiB);
  EXPECT_LT(host, 9 * kGiB);
  options.from = Place::read("cuda");
  EXPECT_EQ(host - host_bytes_needed(options, 2), layout_of(options, 2).whole);
  // A window of 64 messages lies in one place, by hand in two.
  options.staged = true;
  EXPECT_LT(host_bytes_needed(options, 2), host + 4 * kGiB);
  EXPECT_NO_THROW(must_have_room(options, 2, host + 4 * kGiB));
  try {
    must_have_room(options, 2, kGiB);
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string{failure.what()}.find("and 1 GiB are free here"), std::string::npos) << failure.what();
  }
}

TEST(BenchRoom, WhatIsFreeIsTheLeastOfTheMachineAndOfItsGroups) {
  const auto root = std::filesystem::temp_directory_path() / ("isthmus-room-test-" + std::to_string(getpid()));
  const auto write = [&](const std::string& file, const std::string& text) {
    const auto path = root / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text;
  };
  const auto free_now = [&] { return free_host_bytes(root.string()); };
  EXPECT_EQ(free_now(), std::numeric_limits<std::uint64_t>::max());
  write("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    800 kB\n");
  EXPECT_EQ(free_now(), 800U * 1024);
  // The second version: the group's own limit, and that of the one above it.
  write("proc/self/cgroup", "0::/above/own\n");
  write("sys/fs/cgroup/above/own/memory.max", "max\n");
  write("sys/fs/cgroup/above/own/memory.current", "1000\n");
  EXPECT_EQ(free_now(), 800U * 1024);
  write("sys/fs/cgroup/above/memory.max", "5000\n");
  write("sys/fs/cgroup/above/memory.current", "4000\n");
  EXPECT_EQ(free_now(), 1000U);
  write("sys/fs/cgroup/above/memory.stat", "anon 2000\ninactive_file 1500\n");
  EXPECT_EQ(free_now(), 2500U);
  // The first version.
  write("proc/self/cgroup", "5:cpu:/x\n4:memory:/own\n");
  write("sys/fs/cgroup/memory/own/memory.limit_in_bytes", "700\n");
  write("sys/fs/cgroup/memory/own/memory.usage_in_bytes", "900\n");
  EXPECT_EQ(free_now(), 0U);
  std::filesystem::remove_all(root);
}

TEST(BenchPlace, KindAndDeviceAreReadAndPrintedBack) {
  EXPECT_EQ(Place::read("host").text(), "host");
  EXPECT_EQ(Place::read("host:0").text(), "host");
  EXPECT_EQ(Place::read("cuda").device, Place::kAnyDevice);
  EXPECT_EQ(Place::read("cuda:3").text(), "cuda:3");
  EXPECT_EQ(Place::read("opencl:0").kind, IST_KIND_OPENCL);
  EXPECT_TRUE(Place::read("pinned").pinned());
  EXPECT_FALSE(Place::read("pinned").on_device());
}

TEST(BenchPlace, WhatIsNoPlaceIsRefusedAsAWrongUse) {
  for (const char* text : {"", "tape", "Host", "cuda:", "cuda:-1", "cuda:1x", "host:1", "cuda:99999999999", ":0"}) {
    try {
      Place::read(text);
      ADD_FAILURE() << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_status(), 2);
      EXPECT_NE(std::string{failure.what()}.find("expected") == std::string::npos,
                std::string{failure.what()}.find("no device but 0") == std::string::npos)
          << failure.what();
    }
  }
}

TEST(Machine, SizesArePrintedInTheirLargestUnit) {
  EXPECT_EQ(in_words(Bytes{0}), "0 B");
  EXPECT_EQ(in_words(Bytes{1023}), "1023 B");
  EXPECT_EQ(in_words(kibibytes(64)), "64 KiB");
  EXPECT_EQ(in_words(Bytes{1536}), "1.5 KiB");
  EXPECT_EQ(in_words(mebibytes(3 * 1024)), "3 GiB");
}

TEST(Machine, ProcessorsAreCountedAndNamed) {
  const Processors found = find_processors();
  EXPECT_GE(found.threads, 1);
  EXPECT_GE(found.usable, 1);
  EXPECT_GE(found.packages, 1);
  EXPECT_FALSE(found.model.empty());
}

}  // namespace
}  // namespace ist::cli
