// One-way latency of the smallest messages between two processes, beside what the machine's caches alone need.
//
// Half the round trip, median of batches; the bare figure passes one word to and fro in one cache line each way.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>

#include "path/shm/shm_path.hpp"

namespace {

using namespace ist;
constexpr int kBatches = 200;
constexpr int kRounds = 500;

struct Lines {
  alignas(128) std::atomic<std::uint64_t> there;
  alignas(128) std::atomic<std::uint64_t> back;
};

void stay_on(unsigned processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

// Runs `answer` in a second process and `ask` here, and prints half of what one round of `ask` takes.
void measure(const char* what, const std::function<void()>& ask, const std::function<void()>& answer) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(1);
    for (int i = 0; i < kBatches * kRounds; ++i) answer();
    ::_exit(0);
  }
  stay_on(0);
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) ask();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
    batches.push_back(took.count() / kRounds / 2);
  }
  ::waitpid(child, nullptr, 0);
  std::sort(batches.begin(), batches.end());
  std::printf("%-28s median %7.3f us   p10 %7.3f   p90 %7.3f\n", what, batches[kBatches / 2], batches[kBatches / 10],
              batches[kBatches * 9 / 10]);
}

std::unique_ptr<ShmPath> path_of(int rank, const std::vector<Segment>& segments, const Settings& settings) {
  Surroundings around;
  around.rank = Rank{rank};
  around.local = {Rank{0}, Rank{1}};
  around.settings = settings;
  return std::make_unique<ShmPath>(around, std::vector<Segment>{segments[0].share(), segments[1].share()});
}

void send(Link& link, std::size_t size, bool in_cell) {
  static const std::array<std::byte, 65536> bytes{};
  if (!in_cell) {
    while (!link.post(Envelope{}, {bytes.data(), size})) {
    }
    return;
  }
  auto cell = link.take_cell();
  while (!cell) cell = link.take_cell();
  std::copy_n(bytes.data(), size, cell->data);
  link.post_cell(*cell, Envelope{}, Bytes{size});
}

void receive(ShmPath& path) {
  auto arrival = path.next();
  while (!arrival) arrival = path.next();
  path.release(*arrival);
}

void measure_path(const char* what, const char* wait, std::size_t size, bool in_cell) {
  Settings settings;
  settings.wait = wait;
  std::vector<Segment> segments;
  for (std::size_t place = 0; place < 2; ++place) {
    auto made = Segment::create({2, 64, 65536}, place, settings.wait == "sleep");
    if (!made.ok()) return;
    segments.push_back(std::move(made).value());
  }
  const auto first = path_of(0, segments, settings);
  const auto second = path_of(1, segments, settings);
  Link& there = *first->link(Rank{1});
  Link& back = *second->link(Rank{0});
  measure(
      what, [&] { send(there, size, in_cell), receive(*first); }, [&] { receive(*second), send(back, size, in_cell); });
}

}  // namespace

int main() {
  auto memory = SharedMemory::create("isthmus-lines", Bytes{4096});
  if (!memory.ok()) return 1;
  auto* lines = new (memory->data()) Lines{};
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  measure(
      "bare cache line",
      [&] {
        lines->there.store(++asked, std::memory_order_release);
        while (lines->back.load(std::memory_order_acquire) != asked) {
        }
      },
      [&] {
        ++answered;
        while (lines->there.load(std::memory_order_acquire) != answered) {
        }
        lines->back.store(answered, std::memory_order_release);
      });
  measure_path("slot, 8 B", "spin", 8, false);
  measure_path("slot, 24 B", "spin", 24, false);
  measure_path("slot, 25 B (second line)", "spin", 25, false);
  measure_path("slot, 216 B", "spin", 216, false);
  measure_path("slot, 8 B, doorbell fenced", "sleep", 8, false);
  measure_path("cell, 8 B", "spin", 8, true);
  measure_path("cell, 4096 B", "spin", 4096, true);
  measure_path("cell, 65536 B", "spin", 65536, true);
  return 0;
}
