// While a stream waits for another rank, messages go on, though the driver would wait for that stream before it closes what they opened.
// Needs ranks with CUDA devices; the fake driver holds up whatever is put into streams meanwhile, as real ones do.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "../fake_cuda/fake_cuda.h"
#include "sanitized.hpp"
#include "streams_support.hpp"

using namespace rank_test;

namespace {

constexpr std::size_t kBytes = 2 << 20;  // so many are copied by the device wherever the other rank's memory is
constexpr int kMessages = 12;
constexpr std::size_t kWord = 1000;

// Where the driver counts its calls.
bool counts() { return DRIVER(fake_cuda_calls) != nullptr; }
std::uint64_t calls(const char* name) { return counts() ? DRIVER(fake_cuda_calls)(name) : 0; }
std::uint64_t closings() { return calls("cuIpcCloseMemHandle"); }
// Of rank 1, soon, and more than there were.
void expect_closing(std::uint64_t before) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (rank() == 1 && counts() && closings() == before && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  if (rank() == 1 && counts()) {
    EXPECT_LT(before, closings()) << "nothing was closed once the stream had gone on";
  }
}

// Ranks that wait for each other for ever end, and the test fails.
class Soon {
 public:
  Soon() { ::alarm(kSanitized ? 90 : 30); }
  Soon(const Soon&) = delete;
  Soon& operator=(const Soon&) = delete;
  ~Soon() { ::alarm(0); }
};

// From rank 1 into memory of rank 0's that is new each time, and is freed: rank 1 opens it, and hears with the next message that it has
// no more use for it.
void into_new_memory(GuardedBuffer& source) {
  for (int n = 0; n < kMessages; ++n) {
    const auto wanted = random_bytes(kBytes, static_cast<std::uint64_t>(n));
    if (rank() == 1) {
      source.fill(wanted);
      EXPECT_EQ(IST_OK, ist_send(source.get(), count(kBytes), IST_BYTE, 0, kTag, comm())) << ist_error_text();
    } else if (rank() == 0) {
      GuardedBuffer fresh(IST_KIND_CUDA, kBytes);
      EXPECT_EQ(IST_OK, ist_recv(fresh.get(), count(kBytes), IST_BYTE, 1, kTag, comm(), IST_STATUS_IGNORE))
          << ist_error_text();
      fresh.expect(wanted, "a message");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{3});  // for the thread that opens
  }
}

// The same, but all messages go into one, and only then is it freed.
void into_one_that_is_freed(GuardedBuffer& source) {
  std::unique_ptr<GuardedBuffer> target;
  if (rank() == 0) target = std::make_unique<GuardedBuffer>(IST_KIND_CUDA, kBytes);
  for (int n = 0; n < kMessages; ++n) {
    if (rank() == 1) {
      EXPECT_EQ(IST_OK, ist_send(source.get(), count(kBytes), IST_BYTE, 0, kTag, comm())) << ist_error_text();
    } else if (rank() == 0) {
      EXPECT_EQ(IST_OK, ist_recv(target->get(), count(kBytes), IST_BYTE, 1, kTag, comm(), IST_STATUS_IGNORE))
          << ist_error_text();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{3});  // for the thread that opens
  }
}

void add_up(GuardedBuffer& numbers) {
  numbers.fill(std::vector<unsigned char>(kBytes, static_cast<unsigned char>(1 << rank())));
  EXPECT_EQ(IST_OK, ist_allreduce(IST_IN_PLACE, numbers.get(), count(kBytes), IST_UINT8, IST_SUM, comm()))
      << ist_error_text();
  numbers.expect(std::vector<unsigned char>(kBytes, static_cast<unsigned char>((1 << size()) - 1)), "the sum");
}

// Calls that need device memory of the library's own for a while.
void replace_and_register(std::vector<unsigned char>& locked, GuardedBuffer& numbers) {
  EXPECT_EQ(IST_OK, ist_register(world(), locked.data(), locked.size())) << ist_error_text();
  if (rank() > 1) return;
  numbers.fill(random_bytes(kWord, 40 + static_cast<std::uint64_t>(rank())));
  EXPECT_EQ(IST_OK, ist_sendrecv_replace(numbers.get(), kWord, IST_BYTE, 1 - rank(), kTag, 1 - rank(), kTag, comm(),
                                         IST_STATUS_IGNORE))
      << ist_error_text();
  numbers.expect(random_bytes(kWord, 41 - static_cast<std::uint64_t>(rank())), "what was replaced");
}

// The word that rank 1's stream waits for.
void send_word(const Stream& stream, const GuardedBuffer& word, std::uint64_t seed) {
  if (rank() == 0) send_on(stream, word.get(), kWord, 1);
  stream.wait();
  if (rank() == 1) word.expect(random_bytes(kWord, seed), "what the stream waited for");
}

TEST(WaitingStreams, MessagesGoOnThoughWhatTheyOpenedIsFreed) {
  NEEDS_DEVICES();
  const Stream stream;
  // Freed when no stream waits any more: that is for the program to see to.
  GuardedBuffer word(IST_KIND_CUDA, kWord);
  GuardedBuffer source(IST_KIND_CUDA, kBytes);
  GuardedBuffer numbers(IST_KIND_CUDA, kBytes);
  GuardedBuffer replaced(IST_KIND_CUDA, kWord);
  std::vector<unsigned char> locked(5000);
  for (std::uint64_t n = 0; n < 3; ++n) {
    if (rank() == 0) word.fill(random_bytes(kWord, n));
    together();
    if (rank() == 1) receive_on(stream, word.get(), kWord, 0);
    if (n == 0) {  // prepares the channel, too
      send_word(stream, word, n);
      continue;
    }
    const std::uint64_t before = closings();
    into_new_memory(source);
    add_up(numbers);
    if (n == 1) replace_and_register(locked, replaced);
    // Before they meet: rank 0 sends the word at once then.
    if (rank() == 1) {
      EXPECT_EQ(before, closings()) << "closed while a stream waited";
    }
    together();
    send_word(stream, word, n);
    expect_closing(before);
    together();
  }
  EXPECT_EQ(IST_OK, ist_unregister(world(), locked.data())) << ist_error_text();
}

// Rank 1 asks after it, and there is no new loan.
TEST(WaitingStreams, WhatIsFreedBesideOneIsClosedWhenTheStreamHasGoneOn) {
  NEEDS_DEVICES();
  const Soon soon;
  const Stream stream;
  GuardedBuffer word(IST_KIND_CUDA, kWord);
  GuardedBuffer source(IST_KIND_CUDA, kBytes);
  if (rank() == 0) word.fill(random_bytes(kWord, 50));
  together();
  if (rank() == 1) receive_on(stream, word.get(), kWord, 0);  // prepares the channel, too
  send_word(stream, word, 50);
  std::this_thread::sleep_for(std::chrono::milliseconds{2500});  // what earlier tests have freed
  const std::uint64_t before = closings();
  if (rank() == 0) word.fill(random_bytes(kWord, 51));
  together();
  if (rank() == 1) receive_on(stream, word.get(), kWord, 0);
  into_one_that_is_freed(source);
  std::this_thread::sleep_for(std::chrono::milliseconds{2500});
  if (rank() == 1) {
    EXPECT_EQ(before, closings()) << "closed while a stream waited";
  }
  together();
  send_word(stream, word, 51);
  expect_closing(before);
  together();
}

// Whose kernels the driver brings to the device when nothing runs there; the others wait for this rank meanwhile.
TEST(WaitingStreams, TheFirstCollectiveCallIsPreparedWhileAnotherStreamWaits) {
  NEEDS_DEVICES();
  const Soon soon;
  const Stream waits;
  const Stream meets;
  GuardedBuffer word(IST_KIND_CUDA, kWord);
  GuardedBuffer numbers(IST_KIND_CUDA, kWord);
  for (std::uint64_t n = 10; n < 12; ++n) {
    if (rank() == 0) word.fill(random_bytes(kWord, n));
    numbers.fill(std::vector<unsigned char>(kWord, static_cast<unsigned char>(1 << rank())));
    together();
    if (rank() == 1) receive_on(waits, word.get(), kWord, 0);
    // The first message prepares the channel, and is over before anybody meets.
    if (n == 10) {
      send_word(waits, word, n);
      continue;
    }
    const std::uint64_t before = calls("cuModuleLoadData");
    EXPECT_EQ(IST_OK, ist_barrier_on(meets.get(), comm())) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_allreduce_on(meets.get(), IST_IN_PLACE, numbers.get(), kWord, IST_UINT8, IST_SUM, comm()))
        << ist_error_text();
    if (rank() < 2) {
      EXPECT_EQ(before, calls("cuModuleLoadData")) << "loaded while a stream waited";
    }
    meets.wait();
    numbers.expect(std::vector<unsigned char>(kWord, static_cast<unsigned char>((1 << size()) - 1)), "the sum");
    send_word(waits, word, n);
  }
  together();
}

// Two buffers on the device of so many bytes each.
struct Pair {
  explicit Pair(std::size_t bytes) : size(bytes), from(IST_KIND_CUDA, bytes), to(IST_KIND_CUDA, bytes) {}
  std::size_t size;
  GuardedBuffer from;
  GuardedBuffer to;
};

// Within a device that ranks share this goes through a block of staging memory of that size.
void copy_within(Pair& pair, std::uint64_t seed) {
  const auto wanted = random_bytes(pair.size, seed);
  pair.from.fill(wanted);
  EXPECT_EQ(IST_OK, ist_memory_copy(world(), pair.to.get(), pair.from.get(), pair.size)) << ist_error_text();
  pair.to.expect(wanted, "a copy");
}

// With ISTHMUS_PINNED_POOL_LIMIT=1MiB there is room for a block of either size, not for both.
TEST(WaitingStreams, StagingMemoryIsNotUnlockedWhileAStreamWaits) {
  NEEDS_DEVICES();
  const Soon soon;
  const Stream stream;
  GuardedBuffer word(IST_KIND_CUDA, kWord);
  Pair large(1 << 20);
  Pair small(64 << 10);
  if (rank() == 0) word.fill(random_bytes(kWord, 20));
  together();
  if (rank() == 1) receive_on(stream, word.get(), kWord, 0);  // prepares the channel, too
  send_word(stream, word, 20);
  if (rank() == 1) copy_within(large, 21);
  if (rank() == 0) word.fill(random_bytes(kWord, 22));
  together();
  if (rank() == 1) receive_on(stream, word.get(), kWord, 0);
  const std::uint64_t before = calls("cuMemHostUnregister");
  for (std::uint64_t n = 0; rank() == 1 && n < 3; ++n) {
    copy_within(small, 23 + n);
    copy_within(large, 26 + n);
  }
  EXPECT_EQ(before, calls("cuMemHostUnregister")) << "unlocked while a stream waited";
  together();
  send_word(stream, word, 22);
  const char* const limit = std::getenv("ISTHMUS_PINNED_POOL_LIMIT");
  const bool lacks_room = limit != nullptr && std::string{limit} == "1MiB" && devices() < size();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  if (rank() == 1 && counts() && lacks_room) {
    while (calls("cuMemHostUnregister") == before && std::chrono::steady_clock::now() < patience) copy_within(small, 30);
    EXPECT_LT(before, calls("cuMemHostUnregister")) << "nothing was unlocked once the stream had gone on";
  }
  together();
}

// Nobody tells when a graph is launched.
TEST(WaitingStreams, NothingIsClosedOnceACallIsPartOfAGraph) {
  NEEDS_DEVICES();
  const Stream stream;
  GuardedBuffer word(IST_KIND_CUDA, kWord);
  GuardedBuffer source(IST_KIND_CUDA, kBytes);
  if (rank() == 0) word.fill(random_bytes(kWord, 7));
  together();
  if (rank() == 1) {
    EXPECT_EQ(IST_OK, ist_prepare_on(stream.get(), 0, kTag, IST_RECEIVES, comm())) << ist_error_text();
  }
  std::unique_ptr<Graph> graph;
  if (rank() == 1) graph = std::make_unique<Graph>(stream, [&] { receive_on(stream, word.get(), kWord, 0); });
  const std::uint64_t before = closings();
  into_new_memory(source);
  if (graph) graph->launch();
  into_new_memory(source);
  if (rank() == 1) {
    EXPECT_EQ(before, closings());
  }
  send_word(stream, word, 7);
  together();
}

}  // namespace
