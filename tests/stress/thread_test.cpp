// The queue, the slots, the ring and the doorbell between threads of one process, always under ThreadSanitizer.
//
// The threads share one mapping of the segments: the sanitizer knows memory by its address. It does not model fences; the
// doorbell's are proved by models/doorbell.pml and stressed between processes.
#include "../path/test_world.hpp"
#include "traffic.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kSeed = 12345;

void four_to_one(const std::string& wait, std::uint64_t each) {
  Settings settings;
  settings.wait = wait;
  settings.cells = 4;
  settings.eager_limit = Bytes{600};
  const auto segments = segments_for(5, settings);
  std::vector<std::string> wrong(5);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      const auto path = path_over(segments, rank, settings);
      wrong[static_cast<std::size_t>(rank)] = send_all(*path, rank, 4, kSeed, each);
    });
  const auto path = path_over(segments, 4, settings);
  Checker checker{kSeed, 4, settings.eager_limit.value};
  wrong[4] = receive_all(*path, checker, 4 * each);
  for (auto& thread : threads) thread.join();
  for (const auto& text : wrong) EXPECT_EQ(text, "");
  EXPECT_EQ(checker.received(), 4 * each);
}

TEST(ThreadStress, QueueAndSlotsOfSpinningThreads) { four_to_one("spin", scaled(5000)); }
TEST(ThreadStress, QueueAndSlotsOfSleepingThreads) { four_to_one("sleep", scaled(5000)); }

TEST(ThreadStress, CellsOfTwoOwnersCrossInBothDirections) {
  Settings settings;
  settings.wait = "sleep";
  settings.cells = 4;
  settings.eager_limit = Bytes{300};
  const auto segments = segments_for(2, settings);
  const std::uint64_t each = scaled(10000);
  std::vector<std::string> wrong(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto path = path_over(segments, rank, settings);
      Link& link = *path->link(Rank{1 - rank});
      Checker checker{kSeed, 2, settings.eager_limit.value};
      std::string& text = wrong[static_cast<std::size_t>(rank)];
      for (std::uint64_t sent = 0; text.empty() && (sent < each || checker.received() < each);) {
        const Message message{kSeed, rank, sent, link.cell_limit.value};
        const bool posted = sent < each && try_send(link, message, static_cast<std::uint32_t>(sent));
        if (posted) ++sent;
        if (const auto arrival = path->next()) {
          text = checker.check(*arrival);
          path->release(*arrival);
        } else if (!posted) {
          text = give_way(*path);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong[0], "");
  EXPECT_EQ(wrong[1], "");
}

TEST(ThreadStress, RingWithBothSidesRunningAhead) {
  const SlotRingLayout layout{8, Bytes{12288}};
  constexpr std::uint64_t kLength = 700;
  auto memory = SharedMemory::create("isthmus-test-ring", layout.total());
  ASSERT_TRUE(memory.ok());
  const std::uint64_t count = scaled(20000);
  SlotRingWriter writer{memory->data(), layout, nullptr, layout.total()};
  std::string wrong;
  std::thread reading([&] {
    SlotRingReader reader{memory->data(), layout, nullptr};
    std::deque<FullSlot> taken;
    for (std::uint64_t released = 0; released < count && wrong.empty();) {
      while (const auto full = reader.take_next()) taken.push_back(*full);
      if (taken.empty()) {
        ::sched_yield();
        continue;
      }
      const FullSlot full = taken.front();
      taken.pop_front();
      const Message message{kSeed, 0, released, kLength};
      if (full.header.receiver_op != released || !message.matches({full.data, full.header.bytes}))
        wrong = "slot " + std::to_string(released);
      reader.release_oldest();
      ++released;
    }
  });
  std::deque<Slot> started;
  for (std::uint64_t published = 0; published < count;) {
    // Whose slots have other places, and are others.
    const Filling filling = std::array{Filling::ahead, Filling::in_place, Filling::few}.at(published / 100 % 3);
    while (const auto slot = writer.start_next(Bytes{kLength}, filling)) started.push_back(*slot);
    if (started.empty()) {
      ::sched_yield();
      continue;
    }
    const Message message{kSeed, 0, published, kLength};
    const Slot slot = started.front();
    started.pop_front();
    message.fill(slot.data);
    writer.publish_oldest(
        {static_cast<std::uint32_t>(published), static_cast<std::uint32_t>(message.length), 0, slot.place, slot.next});
    ++published;
  }
  reading.join();
  EXPECT_EQ(wrong, "");
}

// What a watcher does while the owner sleeps, posts and reads.
TEST(ThreadStress, WakeFromAnotherThreadAtAnyTime) {
  Settings settings;
  settings.wait = "sleep";
  const auto segments = segments_for(1, settings);
  const auto path = path_over(segments, 0, settings);
  std::atomic<int> slept{0};
  std::thread watcher([&] {
    for (int i = 0; i < 2000; ++i) {
      path->wake();
      while (slept.load() <= i) ::sched_yield();
    }
  });
  std::string wrong;
  for (int i = 0; i < 2000 && wrong.empty(); ++i) {
    wrong = give_way(*path);
    slept.fetch_add(1);
  }
  EXPECT_EQ(wrong, "");
  watcher.join();
}

}  // namespace
}  // namespace ist::test
