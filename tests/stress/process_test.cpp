// The shared-memory path between real processes, under load and under kill -9.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "../path/test_world.hpp"
#include "base/pause.hpp"
#include "traffic.hpp"

namespace ist::test {
namespace {

std::uint64_t fresh_seed() {
  const std::uint64_t seed = std::random_device{}();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

// A child that runs `work` and ends with 0 if it has nothing to complain about. It dies with its parent.
pid_t start(const std::function<std::string()>& work) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) std::abort();  // to kill process -1 later on would be to kill every process of this user
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(2);
  const std::string wrong = work();
  if (!wrong.empty()) std::fprintf(stderr, "child: %s\n", wrong.c_str());
  ::_exit(wrong.empty() ? 0 : 1);
}

int status_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

void expect_success(const std::vector<pid_t>& children) {
  for (pid_t child : children) EXPECT_EQ(status_of(child), 0);
}

void four_to_one(const std::string& wait, std::uint64_t messages) {
  Settings settings;
  settings.wait = wait;
  settings.cells = 16;
  settings.eager_limit = Bytes{3000};
  const std::uint64_t seed = fresh_seed();
  const auto segments = segments_for(5, settings);
  std::vector<pid_t> children;
  for (int rank = 0; rank < 4; ++rank)
    children.push_back(start([&] {
      const auto path = path_over(segments, rank, settings);
      return send_all(*path, rank, 4, seed, messages / 4);
    }));
  const auto path = path_over(segments, 4, settings);
  Checker checker{seed, 4, settings.eager_limit.value};
  EXPECT_EQ(receive_all(*path, checker, messages / 4 * 4), "");
  EXPECT_EQ(checker.received(), messages / 4 * 4);
  expect_success(children);
}

TEST(QueueStress, MillionMessagesFromFourProcessesArriveWholeAndInOrder) { four_to_one("sleep", scaled(1000000)); }
TEST(QueueStress, FourYieldingProcessesArriveWholeAndInOrder) { four_to_one("spin", scaled(100000)); }

// In memory of its own, which a process writes that another one reads.
struct SlotsOfAPair {
  explicit SlotsOfAPair(const PairSlotShape& of)
      : shape(of), memory(SharedMemory::create("isthmus-test-slots", Bytes{4096 + of.in_memory() * sizeof(PairSlot)})) {
    if (!memory.ok()) return;
    consumed = new (memory->data()) std::atomic<std::uint64_t>{0};
    slots = reinterpret_cast<PairSlot*>(memory->data() + 4096);
  }
  // Writes so many messages that way; the words of each tell its number and their place.
  pid_t start_writer(CopyPace::Way way, std::uint64_t count,
                     const std::function<std::uint64_t(std::uint64_t)>& words_of) const {
    return start([&]() -> std::string {
      HandingCopy::force(way);
      PairSlotWriter out{slots, consumed, shape};
      std::vector<std::uint64_t> words(shape.again / 8);
      for (std::uint64_t number = 0; number < count; ++number) {
        const std::uint64_t length = words_of(number);
        for (std::uint64_t at = 0; at < length; ++at) words[at] = number << 16 | at;
        while (!out.post(numbered(static_cast<std::uint32_t>(number)), std::as_bytes(std::span{words}).first(8 * length)))
          ::sched_yield();
      }
      return {};
    });
  }
  PairSlotShape shape;
  Result<SharedMemory> memory;
  std::atomic<std::uint64_t>* consumed = nullptr;
  PairSlot* slots = nullptr;  // null: there is no memory
};

// Bytes that go past the caches are there when the turn shows them, the last ones first of all: what is checked is what was stored last. Two laps of
// the room and more, so that what a fence that is missing leaves behind is an older message's: in 200000 of them one run of some without it finds a few words.
TEST(QueueStress, WhatGoesPastTheCachesIsThereWhenItIsShown) {
  const PairSlotShape shape = pair_slot_shape(2, kibibytes(1));
  const SlotsOfAPair pair{shape};
  ASSERT_NE(nullptr, pair.slots);
  const std::uint64_t count = scaled(200000);
  const std::uint64_t seed = fresh_seed();
  const auto words_of = [=](std::uint64_t number) { return 128 + mix(seed + number) % 128; };
  const pid_t writer = pair.start_writer(CopyPace::Way::past, count, words_of);
  PairSlotReader in{pair.slots, pair.consumed, shape};
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 0; number < count; ++number) {
    const PairSlot* slot = in.front();
    // With pauses between looks, of other lengths each time: a line that is looked at all the time is slow to be written, and hides what is late.
    for (std::uint64_t looks = 0; slot == nullptr; slot = looks % 2 == 0 ? in.front() : in.front_again()) {
      for (std::uint64_t pauses = mix(number + ++looks) % 8; pauses > 0; --pauses) pause_briefly();
      if (looks % 1024 == 0) ::sched_yield();
    }
    const auto payload = in.payload(*slot);
    ASSERT_EQ(8 * words_of(number), payload.size()) << "message " << number;
    for (std::uint64_t at = words_of(number); at-- > 0;) {
      std::uint64_t found = 0;
      std::memcpy(&found, payload.data() + 8 * at, sizeof found);
      if (found != (number << 16 | at)) ++wrong;
    }
    in.pop();
  }
  EXPECT_EQ(0U, wrong) << "words that were shown before they were there";
  EXPECT_EQ(status_of(writer), 0);
}

// Long messages, both of whose copies are one instruction: what it loads was shown before, and what it has read may be written over, not sooner.
void go_by_strings(const PairSlotShape& shape) {
  const SlotsOfAPair pair{shape};
  ASSERT_NE(nullptr, pair.slots);
  const std::uint64_t count = scaled(10000);
  const std::uint64_t seed = fresh_seed();
  const std::uint64_t most = shape.again / 8;
  const auto words_of = [=](std::uint64_t number) { return 1 + mix(seed + number) % most; };
  const pid_t writer = pair.start_writer(CopyPace::Way::string, count, words_of);
  TakingCopy::force(TakingCopy::Way::string);
  PairSlotReader in{pair.slots, pair.consumed, shape};
  std::vector<std::uint64_t> words;
  words.reserve(most);  // one place, so that the reader stays behind now and then
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 0; number < count; ++number) {
    const PairSlot* slot = in.front();
    for (std::uint64_t looks = 0; slot == nullptr; slot = in.front())
      if (++looks % 1024 == 0) ::sched_yield();
    const auto payload = in.payload(*slot);
    ASSERT_EQ(8 * words_of(number), payload.size()) << "message " << number;
    words.assign(words_of(number), ~std::uint64_t{0});
    in.copy_out(std::as_writable_bytes(std::span{words}).data(), payload);
    in.pop();
    for (std::uint64_t at = 0; at < words.size(); ++at)
      if (words[at] != (number << 16 | at)) ++wrong;
  }
  TakingCopy::force(std::nullopt);
  EXPECT_EQ(0U, wrong) << "words that were not there yet, or written over";
  EXPECT_EQ(status_of(writer), 0);
}
TEST(QueueStress, WhatGoesByStringsIsThereWhenItIsShownAndUntilItIsRead) { go_by_strings(pair_slot_shape(4, kUsualEager)); }
// And whoever is longer goes round another part of the room than what is not.
TEST(QueueStress, SoIsWhatIsLonger) { go_by_strings(pair_slot_shape(2, kUsualEager)); }

// Everybody sends to everybody: the sleeper waits for arrivals, for room and for cells at once.
TEST(SleepStress, ThreeTimesMoreProcessesThanProcessorsLoseNoWakeUp) {
  const int ranks = std::min(3 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)), 12);
  Settings settings;
  settings.wait = "sleep";
  settings.cells = 4;  // the least: senders often wait for cells
  settings.eager_limit = Bytes{600};
  const std::uint64_t seed = fresh_seed();
  const std::uint64_t each = scaled(60000) / static_cast<std::uint64_t>(ranks * ranks);
  const auto segments = segments_for(ranks, settings);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank)
    children.push_back(start([&]() -> std::string {
      const auto path = path_over(segments, rank, settings);
      Checker checker{seed, ranks, settings.eager_limit.value};
      std::vector<std::uint64_t> sent(static_cast<std::size_t>(ranks));
      const std::uint64_t total = each * static_cast<std::uint64_t>(ranks - 1);
      std::uint64_t sent_total = 0;
      while (sent_total < total || checker.received() < total) {
        bool moved = false;
        for (int to = 0; to < ranks; ++to) {
          auto& number = sent[static_cast<std::size_t>(to)];
          if (to == rank || number == each) continue;
          Link& link = *path->link(Rank{to});
          if (!try_send(link, Message{seed, rank, number, link.cell_limit.value}, static_cast<std::uint32_t>(number)))
            continue;
          ++number;
          ++sent_total;
          moved = true;
        }
        while (const auto arrival = path->next()) {
          if (std::string wrong = checker.check(*arrival); !wrong.empty()) return wrong;
          path->release(*arrival);
          moved = true;
        }
        if (moved) continue;
        if (std::string wrong = give_way(*path); !wrong.empty()) return "rank " + std::to_string(rank) + " " + wrong;
      }
      return {};
    }));
  expect_success(children);
}

// One token goes round: every hop is a sleep and a wake-up.
TEST(SleepStress, TokenGoesRoundThroughSleepers) {
  const int ranks = 6;
  const std::uint32_t laps = static_cast<std::uint32_t>(scaled(2000));
  Settings settings;
  settings.wait = "sleep";
  const auto segments = segments_for(ranks, settings);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank)
    children.push_back(start([&]() -> std::string {
      const auto path = path_over(segments, rank, settings);
      Link& link = *path->link(Rank{(rank + 1) % ranks});
      if (rank == 0) link.post(numbered(0), {});
      for (std::uint32_t lap = 0; lap < laps; ++lap) {
        auto token = path->next();
        for (; !token; token = path->next())
          if (std::string wrong = give_way(*path); !wrong.empty()) return wrong;
        if (token->envelope.sequence != lap) return "lap " + std::to_string(token->envelope.sequence);
        const bool last = rank == 0 && lap + 1 == laps;
        if (!last && !link.post(numbered(rank == 0 ? lap + 1 : lap), {})) return "no room for the token";
      }
      return {};
    }));
  expect_success(children);
}

// Most bytes of that message, which its slot is asked for: some have one size, one behind the other, and some another.
std::uint64_t ring_message(std::uint64_t seed, std::uint64_t number) {
  return mix(seed + number / 16) % 2 == 0 ? 2500 : 5000;
}

// Slots are started, published, taken and released in bursts of random length on both sides, and the writer changes their shape now and then.
void run_ring(std::byte* memory, SlotRingLayout layout, std::uint64_t seed, std::uint64_t count, bool writer) {
  std::mt19937_64 generator{seed + (writer ? 1 : 0)};
  std::deque<std::pair<Slot, std::uint64_t>> started;
  SlotRingWriter out{memory, layout, nullptr, layout.total()};
  constexpr std::array kFillings{Filling::by_turns, Filling::in_place, Filling::few, Filling::ahead};
  Filling filling = Filling::by_turns;
  for (std::uint64_t next = 0, published = 0; published < count;) {
    if (generator() % 16 == 0) filling = kFillings.at(generator() % kFillings.size());
    for (auto burst = generator() % (4 * std::uint64_t{layout.slots}); burst > 0 && next < count; --burst) {
      const auto slot = out.start_next(Bytes{ring_message(seed, next)}, filling);
      if (!slot) break;
      started.emplace_back(*slot, next++);
    }
    // Filled in any order, as copies finish, but published from the oldest on.
    if (started.size() > 1 && generator() % 2 == 0) {
      const auto& [slot, number] = started.back();
      std::memset(slot.data, static_cast<int>(generator() & 255), ring_message(seed, number));
    }
    for (auto burst = generator() % (started.size() + 1); burst > 0; --burst) {
      const auto [slot, number] = started.front();
      started.pop_front();
      const Message message{seed, 0, number, ring_message(seed, number)};
      message.fill(slot.data);
      out.publish_oldest({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(message.length), number * 3,
                          slot.place, slot.next});
      ++published;
    }
    if (started.empty()) ::sched_yield();
  }
}

std::string read_ring(std::byte* memory, SlotRingLayout layout, std::uint64_t seed, std::uint64_t count) {
  std::mt19937_64 generator{seed};
  std::deque<FullSlot> taken;
  SlotRingReader in{memory, layout, nullptr};
  for (std::uint64_t released = 0; released < count;) {
    for (auto burst = generator() % (layout.slots + 2); burst > 0; --burst) {
      const auto full = in.take_next();
      if (!full) break;
      taken.push_back(*full);
    }
    for (auto burst = generator() % (taken.size() + 1); burst > 0; --burst) {
      const FullSlot full = taken.front();
      taken.pop_front();
      const Message message{seed, 0, released, ring_message(seed, released)};
      if (full.header.receiver_op != released || full.header.offset != released * 3)
        return "slot " + std::to_string(released) + ": got " + std::to_string(full.header.receiver_op);
      if (!message.matches({full.data, full.header.bytes})) return "slot " + std::to_string(released) + ": bytes differ";
      in.release_oldest();
      ++released;
    }
    if (taken.empty()) ::sched_yield();
  }
  return {};
}

TEST(RingStress, RandomSlotsInFlightBetweenProcessesArriveWholeAndInOrder) {
  for (std::uint32_t slots : {2U, 3U, 8U}) {
    const SlotRingLayout layout{slots, Bytes{16384}};
    const std::uint64_t seed = fresh_seed();
    const std::uint64_t count = scaled(30000);
    auto memory = SharedMemory::create("isthmus-test-ring", layout.total());
    ASSERT_TRUE(memory.ok());
    SlotRingWriter format{memory->data(), layout, nullptr};  // before the reader looks
    const pid_t child = start([&]() -> std::string {
      run_ring(memory->data(), layout, seed, count, true);
      return {};
    });
    EXPECT_EQ(read_ring(memory->data(), layout, seed, count), "") << slots << " slots";
    EXPECT_EQ(status_of(child), 0);
  }
}

// One sender is killed somewhere in the middle. The reader keeps reading, and gets all that the other sent through slots;
// the queue of cells may have a gap, which the reader must survive without waiting at it.
TEST(KillStress, SenderKilledInTheMiddleLeavesTheReaderAlive) {
  Settings settings;
  settings.wait = "sleep";
  settings.cells = 8;
  settings.eager_limit = Bytes{500};
  std::mt19937 generator{std::random_device{}()};
  for (int round = 0; round < 25; ++round) {
    const auto segments = segments_for(3, settings);
    const auto path = path_over(segments, 2, settings);
    const pid_t victim = start([&] { return send_all(*path_over(segments, 0, settings), 0, 2, 1, ~std::uint64_t{0}); });
    const pid_t survivor = start([&]() -> std::string {
      const auto mine = path_over(segments, 1, settings);
      for (std::uint32_t i = 0; i < 5000; ++i)
        while (!mine->link(Rank{2})->post(numbered(i), random_bytes(i % 217)))
          if (std::string wrong = give_way(*mine); !wrong.empty()) return wrong;
      return {};
    });
    const auto kill_at = std::chrono::steady_clock::now() + std::chrono::microseconds(generator() % 20000);
    bool killed = false;
    Checker checker{1, 1, settings.eager_limit.value};
    for (std::uint32_t received = 0; received < 5000 || !killed;) {
      if (!killed && std::chrono::steady_clock::now() > kill_at) {
        ::kill(victim, SIGKILL);
        killed = true;
      }
      const auto arrival = path->next();
      if (!arrival) {
        path->sleep(std::chrono::microseconds(200));
        continue;
      }
      if (arrival->source == Rank{0}) {
        ASSERT_EQ(checker.check(*arrival), "");
      } else {
        ASSERT_TRUE(same(arrival->envelope, numbered(received++)));
      }
      path->release(*arrival);
    }
    EXPECT_EQ(status_of(survivor), 0);
    EXPECT_TRUE(WIFSIGNALED(status_of(victim)));
    // What the victim had finished is still there, whole; then there is nothing, again and again.
    while (const auto arrival = path->next()) {
      ASSERT_EQ(checker.check(*arrival), "");
      path->release(*arrival);
    }
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(path->next());
  }
}

}  // namespace
}  // namespace ist::test
