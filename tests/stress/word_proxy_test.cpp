// The proxy that changes words of host memory for kernels, and threads that play those: every change made once, in the order in which a thread
// asked, answered to whoever asked, atomic with what processors change; and each place of the ring used again only when it is free.
#include <gtest/gtest.h>
#include <isthmus/device/host_words.cuh>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "heap/word.hpp"
#include "heap/word_proxy.hpp"

namespace {

using namespace ist::device;
using ist::Bytes;
using ist::WordProxy;

constexpr std::uint64_t kPart = 1 << 16;
constexpr std::uint64_t kDeadline = 20000000000;  // ns: nothing here may hang
constexpr int kPes = 3;

// A process with its ring, desk and mapped parts. The part of PE 1 is its own.
class Process {
 public:
  Process() : ring_(std::make_unique<ProxyRing>()), desk_(std::make_unique<ProxyDesk>()), parts_(kPes * kPart / 8) {}
  ist_device_view view() {
    ist_device_view found{};
    found.team.pe = 1;
    found.team.pes = kPes;
    found.team.base = reinterpret_cast<unsigned char*>(parts_.data());
    found.team.stride = found.team.bytes = kPart;
    found.ring = reinterpret_cast<unsigned char*>(ring_.get());
    found.desk = reinterpret_cast<unsigned char*>(desk_.get());
    found.team.abort_word = &abort_;
    return found;
  }
  WordProxy proxy() { return {*ring_, {reinterpret_cast<std::byte*>(parts_.data()), Bytes{kPart}, kPes, Bytes{kPart}}}; }
  ProxyRing& ring() { return *ring_; }
  std::uint64_t* word(int pe, std::uint64_t offset) {
    return &parts_[static_cast<std::uint64_t>(pe) * kPart / 8 + offset / 8];
  }
  std::uint64_t* own(std::uint64_t offset) { return word(1, offset); }
  std::uint64_t found(int pe, std::uint64_t offset) { return load_acquire(word(pe, offset)); }
  void abort() { __atomic_store_n(&abort_, 1U, __ATOMIC_RELAXED); }

 private:
  std::unique_ptr<ProxyRing> ring_;
  std::unique_ptr<ProxyDesk> desk_;
  std::vector<std::uint64_t> parts_;
  std::uint32_t abort_ = 0;
};

struct Alone {
  unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  void sync() const {}
  bool any(bool mine) const { return mine; }
};

template <class Body>
void play(int threads, const Body& body) {
  std::vector<std::thread> all;
  all.reserve(static_cast<std::size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) all.emplace_back([&body, thread] { body(thread); });
  for (std::thread& each : all) each.join();
}

TEST(WordProxy, CountsWhatKernelsAndProcessorsAddAtOnce) {
  constexpr int kKernelThreads = 3, kHosts = 2, kTimes = 2500;  // together several times round the ring
  Process process;
  WordProxy proxy = process.proxy();
  ASSERT_TRUE(proxy.start().ok());
  const ist_device_view view = process.view();
  std::atomic<int> wrong{0};
  std::vector<std::atomic<int>> numbers(std::size_t{kKernelThreads} * kTimes);
  play(kKernelThreads + kHosts, [&](int thread) {
    std::uint64_t last = 0;
    for (int n = 0; n < kTimes; ++n) {
      for (int pe = 0; pe < kPes; ++pe) {
        if (thread >= kKernelThreads)
          ist::change<std::uint64_t>(reinterpret_cast<std::byte*>(process.word(pe, 64)), IST_ATOMIC_ADD, 1000003);
        else if (atomic_add(view, process.own(64), std::uint64_t{1}, pe, kDeadline) != Status::ok)
          ++wrong;
      }
      if (thread >= kKernelThreads || n % 4 != 0) continue;
      // Each number is given once, in the order in which this thread asks.
      Status status = Status::misuse;
      const std::uint64_t mine = atomic_fetch_add(view, process.own(128), std::uint64_t{1}, 2, kDeadline, &status);
      if (status != Status::ok || mine >= numbers.size() || (n > 0 && mine <= last) || numbers[mine]++ != 0) ++wrong;
      last = mine;
    }
    if (thread < kKernelThreads && quiet(view, kDeadline) != Status::ok) ++wrong;
  });
  EXPECT_EQ(0, wrong);
  constexpr std::uint64_t kSum = kTimes * (kKernelThreads + kHosts * std::uint64_t{1000003});
  for (int pe = 0; pe < kPes; ++pe) EXPECT_EQ(kSum, process.found(pe, 64)) << "PE " << pe;
  EXPECT_EQ(static_cast<std::uint64_t>(kKernelThreads * kTimes / 4), process.found(2, 128));
}

TEST(WordProxy, MakesEveryChangeOfBothWidths) {
  Process process;
  WordProxy proxy = process.proxy();
  ASSERT_TRUE(proxy.start().ok());
  const ist_device_view view = process.view();
  const auto all = [&]<class T>(T* word, T neighbour) {
    word[1] = neighbour;
    EXPECT_EQ(Status::ok, atomic_set(view, word, T{40}, 1, kDeadline));
    EXPECT_EQ(T{40}, atomic_fetch(view, word, 1, kDeadline));
    EXPECT_EQ(T{40}, atomic_fetch_add(view, word, static_cast<T>(-50), 1, kDeadline));
    EXPECT_EQ(static_cast<T>(-10), atomic_swap(view, word, T{0x0f}, 1, kDeadline));
    EXPECT_EQ(T{0x0f}, atomic_fetch_or(view, word, T{0x70}, 1, kDeadline));
    EXPECT_EQ(T{0x7f}, atomic_fetch_and(view, word, T{0x3c}, 1, kDeadline));
    EXPECT_EQ(T{0x3c}, atomic_fetch_xor(view, word, T{0x1}, 1, kDeadline));
    EXPECT_EQ(T{0x3d}, atomic_fetch_inc(view, word, 1, kDeadline));
    EXPECT_EQ(T{0x3e}, atomic_compare_swap(view, word, T{0x3d}, T{1}, 1, kDeadline));
    EXPECT_EQ(T{0x3e}, atomic_compare_swap(view, word, T{0x3e}, static_cast<T>(-2), 1, kDeadline));
    EXPECT_EQ(Status::ok, atomic_inc(view, word, 1, kDeadline));
    EXPECT_EQ(Status::ok, atomic_or(view, word, T{0}, 1, kDeadline));
    EXPECT_EQ(Status::ok, atomic_and(view, word, static_cast<T>(~T{}), 1, kDeadline));
    EXPECT_EQ(Status::ok, atomic_xor(view, word, T{0}, 1, kDeadline));
    // What was asked for before is there for the one that is answered.
    EXPECT_EQ(static_cast<T>(-1), atomic_fetch(view, word, 1, kDeadline));
    EXPECT_EQ(neighbour, word[1]);
  };
  all(reinterpret_cast<std::int32_t*>(process.own(0)), std::int32_t{0x5a5a5a5a});
  all(reinterpret_cast<std::uint32_t*>(process.own(64)), std::uint32_t{0xa5a5a5a5});
  all(reinterpret_cast<std::int64_t*>(process.own(128)), std::int64_t{-77});
  all(process.own(256), ~std::uint64_t{});
  auto* const real = reinterpret_cast<double*>(process.own(512));
  EXPECT_EQ(0.0, atomic_swap(view, real, -1.5, 1, kDeadline));
  EXPECT_EQ(-1.5, atomic_swap(view, real, 2.0, 1, kDeadline));
}

// The data are no atomics: under ThreadSanitizer nothing but the signal orders them.
TEST(WordProxy, SignalsBehindTheBytes) {
  constexpr std::uint64_t kRounds = 1500;
  Process process;
  WordProxy proxy = process.proxy();
  ASSERT_TRUE(proxy.start().ok());
  const ist_device_view view = process.view();
  std::atomic<int> wrong{0};
  play(2, [&](int thread) {
    for (std::uint64_t n = 1; n <= kRounds && wrong == 0; ++n) {
      if (thread == 0) {
        const std::uint64_t data[2] = {n, n * 7};
        const bool adds = n % 3 != 0;
        // A set is a store where nothing is under way, and goes behind what is otherwise.
        if (n % 2 == 0 && atomic_add(view, process.own(512), std::uint64_t{1}, 2, kDeadline) != Status::ok) ++wrong;
        if (put_signal(Alone(), view, process.own(1024), data, sizeof data, process.own(0), adds ? 1 : n,
                       adds ? Signal::add : Signal::set, 2, kDeadline) != Status::ok)
          ++wrong;
        if (fence(view, kDeadline) != Status::ok) ++wrong;
        if (wait_until(view.team, process.own(64), Compare::equal, n, kDeadline) != Status::ok) ++wrong;
      } else {
        if (wait_until(view.team, process.word(2, 0), Compare::equal, n, kDeadline) != Status::ok) ++wrong;
        if (process.word(2, 1024)[0] != n || process.word(2, 1024)[1] != n * 7) ++wrong;
        if (process.found(2, 512) != n / 2) ++wrong;
        store_release(process.own(64), n);
      }
    }
  });
  EXPECT_EQ(0, wrong);
  EXPECT_EQ(kRounds, process.found(2, 0));
}

TEST(WordProxy, ServesNothingBeforeAllItsPacketsAreThere) {
  Process process;
  WordProxy proxy = process.proxy();
  const ist_device_view view = process.view();
  Pair ProxyRequest::*const all[] = {&ProxyRequest::what, &ProxyRequest::offset, &ProxyRequest::operand,
                                     &ProxyRequest::expected};
  for (std::uint64_t n = 0; n < 2 * kProxyPlaces; ++n) {
    ASSERT_EQ(Status::ok, atomic_add(view, process.own(8), std::uint64_t{1}, 0, kDeadline));
    Pair& packets = process.ring().requests[n % kProxyPlaces].*all[n % 4];
    std::uint64_t& half = n / 4 % 2 == 0 ? packets.low : packets.high;
    const std::uint64_t there = half;
    // As it was when the place was used before.
    half = n < kProxyPlaces ? 0 : there - (std::uint64_t{1} << 32U);
    ASSERT_FALSE(proxy.step()) << "ticket " << n;
    half = there;
    ASSERT_TRUE(proxy.step()) << "ticket " << n;
    ASSERT_FALSE(proxy.step()) << "what was served is served again, behind ticket " << n;
    ASSERT_EQ(n + 1, process.found(0, 8));
  }
}

TEST(WordProxy, AFullRingHoldsUpWhoAsks) {
  Process process;
  WordProxy proxy = process.proxy();
  const ist_device_view view = process.view();
  for (std::uint64_t n = 0; n < kProxyPlaces; ++n)
    ASSERT_EQ(Status::ok, atomic_add(view, process.own(8), std::uint64_t{1}, 1, kDeadline));
  std::atomic<int> asked{0};
  std::thread other([&] {
    if (atomic_add(view, process.own(8), std::uint64_t{1000000}, 1, kDeadline) == Status::ok) asked = 1;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(0, asked) << "it was written over what nobody had read";
  EXPECT_TRUE(proxy.step());
  other.join();
  EXPECT_EQ(1, asked);
  for (std::uint64_t n = 0; n < kProxyPlaces; ++n) EXPECT_TRUE(proxy.step());
  EXPECT_EQ(kProxyPlaces + 1000000, process.found(1, 8));
}

TEST(WordProxy, AnAnswerStaysUntilItIsRead) {
  Process process;
  WordProxy proxy = process.proxy();
  ASSERT_TRUE(proxy.start().ok());
  const ist_device_view view = process.view();
  *process.own(8) = 77;
  const std::uint64_t first = take_ticket(view);
  write_request(view, first, {Change::add, kAnswered, 1, 8, 1, 0});
  for (std::uint64_t n = 1; n < kProxyPlaces; ++n) ASSERT_EQ(Status::ok, atomic_inc(view, process.own(8), 1, kDeadline));
  std::atomic<int> asked{0};
  std::thread other([&] {
    Status status = Status::misuse;
    if (atomic_fetch_add(view, process.own(8), std::uint64_t{1}, 1, kDeadline, &status) == 77 + kProxyPlaces &&
        status == Status::ok)
      asked = 1;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(0, asked);
  std::uint64_t before = 0;
  EXPECT_TRUE(has_answer(view, first, before));
  EXPECT_EQ(77U, before);
  end_use(view, first);
  other.join();
  EXPECT_EQ(1, asked);
}

TEST(WordProxy, WaitsEndAtADeadlineAndWhenAPeHasDied) {
  Process process;
  const ist_device_view view = process.view();  // nobody serves it
  Status status = Status::ok;
  EXPECT_EQ(0U, atomic_fetch_add(view, process.own(8), std::uint64_t{1}, 1, 20000000, &status));
  EXPECT_EQ(Status::late, status);
  EXPECT_EQ(Status::late, quiet(view, 20000000));
  process.abort();
  EXPECT_EQ(Status::peer_dead, quiet(view));
  EXPECT_EQ(0U, atomic_swap(view, process.own(8), std::uint64_t{1}, 1, 0, &status));
  EXPECT_EQ(Status::peer_dead, status);
}

TEST(WordProxy, ChangesNoWordThatIsNotThere) {
  Process process;
  WordProxy proxy = process.proxy();
  const ist_device_view view = process.view();
  Status status = Status::ok;
  for (const int pe : {-1, kPes}) {
    EXPECT_EQ(Status::misuse, atomic_add(view, process.own(8), std::uint64_t{1}, pe, kDeadline));
    EXPECT_EQ(0U, atomic_fetch_add(view, process.own(8), std::uint64_t{1}, pe, kDeadline, &status));
    EXPECT_EQ(Status::misuse, status);
  }
  EXPECT_EQ(Status::misuse, atomic_add(view, process.word(2, 0), std::uint64_t{1}, 0, kDeadline)) << "not the own part";
  EXPECT_EQ(Status::misuse, atomic_add(view, process.word(0, kPart - 8), std::uint64_t{1}, 0, kDeadline));
  EXPECT_EQ(Status::misuse, atomic_add(view, reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(process.own(8)) + 4),
                                       std::uint64_t{1}, 0));
  EXPECT_FALSE(proxy.step()) << "what was refused was asked for";
  // What gets past that, the proxy looks at itself.
  const Wanted bad[] = {{Change::add, 0, kPes, 8, 1, 0},        {Change::add, 0, -1, 8, 1, 0},
                        {Change::add, 0, 0, kPart, 1, 0},       {Change::add, 0, 0, kPart - 4, 1, 0},
                        {Change::add, 0, 0, 4, 1, 0},           {static_cast<Change>(3), 0, 0, 8, 1, 0},
                        {static_cast<Change>(9), 0, 0, 8, 1, 0}};
  for (Wanted wanted : bad) {
    std::uint64_t before = 1;
    wanted.flags = kAnswered;
    const std::uint64_t ticket = take_ticket(view);
    write_request(view, ticket, wanted);
    ASSERT_FALSE(has_answer(view, ticket, before));
    ASSERT_TRUE(proxy.step());
    ASSERT_TRUE(has_answer(view, ticket, before));
    end_use(view, ticket);
    EXPECT_EQ(0U, before);
  }
  for (int pe = 0; pe < kPes; ++pe)
    for (std::uint64_t at = 0; at < kPart; at += 8) ASSERT_EQ(0U, process.found(pe, at)) << "PE " << pe << ", " << at;
}

// As a host does after a kernel has ended.
TEST(WordProxy, DrainsWhatEndedKernelsAskedFor) {
  Process process;
  WordProxy proxy = process.proxy();
  ASSERT_TRUE(proxy.start().ok());
  const ist_device_view view = process.view();
  for (std::uint64_t n = 1; n <= 200; ++n) {
    for (int i = 0; i < 37; ++i) ASSERT_EQ(Status::ok, atomic_add(view, process.own(8), std::uint64_t{1}, 0, kDeadline));
    ASSERT_TRUE(proxy.drain(std::chrono::seconds(20)));
    ASSERT_EQ(37 * n, process.found(0, 8));
  }
}

TEST(WordProxy, ATicketThatIsGivenUpHoldsUpNoHostForEver) {
  Process process;
  WordProxy proxy = process.proxy();
  ASSERT_TRUE(proxy.start().ok());
  const ist_device_view view = process.view();
  const std::uint64_t given_up = take_ticket(view);
  EXPECT_TRUE(proxy.drain(std::chrono::milliseconds(1))) << "nothing is there that could be done";
  ASSERT_EQ(Status::ok, atomic_add(view, process.own(8), std::uint64_t{1}, 0, kDeadline));
  EXPECT_FALSE(proxy.drain(std::chrono::milliseconds(10)));
  EXPECT_EQ(0U, process.found(0, 8));
  // It was only slow.
  write_request(view, given_up, {Change::add, 0, 0, 8, 1000, 0});
  EXPECT_TRUE(proxy.drain(std::chrono::seconds(20)));
  EXPECT_EQ(1001U, process.found(0, 8));
}

TEST(WordProxy, WhoGivesUpWaitingForItsAnswerHoldsUpNobody) {
  Process process;
  WordProxy proxy = process.proxy();
  const ist_device_view view = process.view();
  Status status = Status::ok;
  EXPECT_EQ(0U, atomic_fetch_add(view, process.own(8), std::uint64_t{1}, 0, 5000000, &status));
  EXPECT_EQ(Status::late, status);
  ASSERT_TRUE(proxy.start().ok());
  for (std::uint64_t n = 0; n < 2 * kProxyPlaces; ++n)
    ASSERT_EQ(Status::ok, atomic_add(view, process.own(8), std::uint64_t{1}, 0, kDeadline));
  EXPECT_EQ(1 + 2 * kProxyPlaces, atomic_fetch_add(view, process.own(8), std::uint64_t{1}, 0, kDeadline, &status));
  EXPECT_EQ(Status::ok, status);
}

TEST(WordProxy, NumbersDifferFromTheLastOnesAndFromNothing) {
  const std::uint64_t wraps = std::uint64_t{1} << 31U;
  for (const std::uint64_t uses : {std::uint64_t{0}, std::uint64_t{1}, wraps - 1, wraps, 2 * wraps - 1, 2 * wraps}) {
    EXPECT_NE(0U, proxy_number(uses * kProxyPlaces));
    EXPECT_NE(proxy_number(uses * kProxyPlaces + 5), proxy_number((uses + 1) * kProxyPlaces + 5));
  }
}

}  // namespace
