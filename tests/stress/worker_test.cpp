// A worker and the process that gives it orders, on two threads, without a driver between them: every byte of every order, over
// launches that end in the middle, and numbers that come again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "memory/cuda/worker_orders.hpp"
#include "memory/cuda/worker_protocol.hpp"

namespace ist {
namespace {

struct Crew {
  unsigned thread = 0;
  unsigned threads = 1;
  void barrier() const {}
  bool any(bool value) const { return value; }
  template <class T>
  T first(const T& value) const {
    return value;
  }
  std::byte* reach(std::uint64_t address, std::uint32_t) const { return reinterpret_cast<std::byte*>(address); }
};

// Runs launches one after the other, as a stream does.
class Stream {
 public:
  explicit Stream(worker::Board& board) : board_(board), thread_([this] { serve(); }) {}
  ~Stream() {
    asked_.store(~std::uint64_t{0});
    asked_.notify_all();
    thread_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // As CudaWorkers keeps it running.
  void keep_running(const WorkerOrders& orders) {
    if (launch_ != 0) {
      const auto next = orders.ended(launch_);
      if (!next) return;
      begin_ = *next;
    }
    asked_.store(++launch_);
    asked_.notify_all();
  }
  std::uint64_t launches() const { return launch_; }

 private:
  void serve() {
    for (std::uint64_t served = 0;;) {
      asked_.wait(served);
      served = asked_.load();
      if (served == ~std::uint64_t{0}) return;
      // Short lives, so that many end while orders are on their way.
      worker::run(Crew{}, worker::Work{&board_, begin_, served, served % 3 * 20000, served % 5 * 50000, served % 4 * 10000});
    }
  }
  worker::Board& board_;
  std::atomic<std::uint64_t> asked_{0};
  std::uint64_t launch_ = 0;
  std::uint64_t begin_ = 0;
  std::thread thread_;
};

TEST(Worker, EveryByteOfEveryOrderArrivesOverManyLaunches) {
  const auto board = std::make_unique<worker::Board>();
  WorkerOrders orders(*board);
  std::mt19937 random(std::random_device{}());
  constexpr std::size_t kRoom = 20000;
  std::vector<std::byte> device(kRoom);
  std::vector<std::byte> wanted(kRoom);
  const auto at = [&](std::size_t offset) { return reinterpret_cast<std::uint64_t>(device.data() + offset); };
  Stream stream(*board);
  struct Under {
    WorkerOrders::Name name;
    std::vector<std::byte> to;
    std::vector<std::byte> wanted;
  };
  std::vector<std::unique_ptr<Under>> under;
  std::size_t over = 0;
  for (int given = 0; given < 4000 || !under.empty();) {
    const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? worker::kMost : 100);
    const std::size_t offset = random() % (kRoom - bytes);
    auto made = std::make_unique<Under>();
    std::optional<WorkerOrders::Name> name;
    if (given < 4000 && random() % 2 == 0) {
      std::vector<std::byte> from(bytes);
      for (std::byte& byte : from) byte = static_cast<std::byte>(random());
      name = orders.put(at(offset), from.data(), static_cast<std::uint32_t>(bytes));
      if (name) std::copy(from.begin(), from.end(), wanted.begin() + static_cast<std::ptrdiff_t>(offset));
    } else if (given < 4000) {
      made->to.resize(bytes, std::byte{0xEE});
      const auto from = wanted.begin() + static_cast<std::ptrdiff_t>(offset);
      made->wanted.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
      name = orders.bring(at(offset), made->to.data(), static_cast<std::uint32_t>(bytes));
    }
    if (name) {
      made->name = *name;
      under.push_back(std::move(made));
      ++given;
    }
    std::erase_if(under, [&](const std::unique_ptr<Under>& each) {
      EXPECT_TRUE(orders.knows(each->name));
      if (!orders.done(each->name)) return false;
      EXPECT_FALSE(orders.knows(each->name));
      EXPECT_EQ(each->wanted, each->to);
      ++over;
      return true;
    });
    if (!under.empty()) stream.keep_running(orders);
    std::this_thread::yield();
  }
  EXPECT_EQ(4000U, over);
  // All are done, and their bytes may be read.
  EXPECT_EQ(wanted, device);
  EXPECT_GT(stream.launches(), 1U);
}

TEST(Worker, OrdersThatNobodyAsksAfterGoOnAndTheirPlacesAreUsedAgain) {
  const auto board = std::make_unique<worker::Board>();
  WorkerOrders orders(*board);
  std::vector<std::byte> device(100, std::byte{7});
  std::vector<std::byte> to(100);
  Stream stream(*board);  // ends first: what nobody asks after may still be read
  for (int given = 0; given < 1000;) {
    const auto name = orders.bring(reinterpret_cast<std::uint64_t>(device.data()), to.data(), 100);
    stream.keep_running(orders);
    if (!name) continue;
    orders.drop(*name);
    EXPECT_FALSE(orders.knows(*name));
    EXPECT_FALSE(orders.done(*name));
    std::fill(to.begin(), to.end(), std::byte{0});  // it may have come just in time
    ++given;
  }
  EXPECT_EQ(std::vector<std::byte>(100), to);
}

// Two processes and their workers, as request/mail.cpp has them, with fewer places and numbers that come again after a few messages.
class MailPair {
 public:
  static constexpr std::uint32_t kPlaces = 4;
  static constexpr std::uint64_t kEpoch = 2 * kPlaces;

  std::uint64_t over() const { return over_; }
  std::uint64_t missing() const { return missing_; }
  std::uint64_t launches() const { return std::min(from_.launches(), to_.launches()); }

  // The next message, if its place is free.
  void begin() {
    std::optional<Message>& place = places_[next_];
    if (place) return;
    place.emplace();
    place->number = given_++;
    place->shift = random_() % 9;
    place->from.resize(1 + random_() % (random_() % 4 == 0 ? worker::kMost : 40) + place->shift);
    for (std::byte& byte : place->from) byte = static_cast<std::byte>(random_());
    place->to.assign(kRoom, std::byte{0xEE});
    next_ = (next_ + 1) % kPlaces;
  }
  // Moves all on by something.
  void step() {
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      if (places_[place]) post(*places_[place], place);
      if (places_[place] && take(*places_[place], place)) places_[place].reset();
    }
    from_.keep_running(sender_);
    to_.keep_running(receiver_);
    std::this_thread::yield();
  }

 private:
  static constexpr std::size_t kRoom = 9000;
  struct Message {
    std::uint64_t number = 0;
    std::vector<std::byte> from, to;
    std::optional<WorkerOrders::Name> post, take;
    std::size_t shift = 0;
    bool posted = false;
    bool cleans = false;
    std::uint32_t letter() const { return static_cast<std::uint32_t>(number % (2 * kEpoch)) | channel::kNumbered; }
    std::uint32_t bytes() const { return static_cast<std::uint32_t>(from.size() - shift); }
  };
  static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
  void post(Message& message, std::uint32_t place) {
    if (!message.posted && !message.post && random_() % 3 == 0)
      message.post = sender_.post(address(message.from.data() + message.shift), address(&(*box_)[place]), message.letter(),
                                  message.bytes());
    if (message.post && sender_.done(*message.post)) {
      message.post.reset();
      message.posted = true;
    }
  }
  // True when it is over.
  bool take(Message& message, std::uint32_t place) {
    std::byte* const to = message.to.data() + message.shift + 1;
    if (!message.take && random_() % 3 == 0) {
      message.cleans = given_ / kEpoch != clean_[place];
      message.take =
          receiver_.take(address(to), address(&(*box_)[place]), message.letter(), message.bytes(), message.cleans);
    }
    if (!message.take || !receiver_.over(*message.take)) return false;
    const bool absent = receiver_.missing(*message.take);
    EXPECT_TRUE(receiver_.done(*message.take));
    message.take.reset();
    missing_ += absent ? 1 : 0;
    if (absent) return false;
    // The place is free when the order about it is over, too.
    while (!message.posted && !sender_.done(*message.post)) from_.keep_running(sender_);
    std::vector<std::byte> wanted(kRoom, std::byte{0xEE});
    std::copy(message.from.begin() + static_cast<std::ptrdiff_t>(message.shift), message.from.end(),
              wanted.begin() + static_cast<std::ptrdiff_t>(message.shift) + 1);
    EXPECT_EQ(wanted, message.to);
    if (message.cleans) clean_[place] = given_ / kEpoch;
    ++over_;
    return true;
  }

  std::unique_ptr<worker::Board> sends_ = std::make_unique<worker::Board>();
  std::unique_ptr<worker::Board> takes_ = std::make_unique<worker::Board>();
  std::unique_ptr<std::array<worker::Place, kPlaces>> box_ = std::make_unique<std::array<worker::Place, kPlaces>>();
  WorkerOrders sender_{*sends_};
  WorkerOrders receiver_{*takes_};
  std::mt19937 random_{std::random_device{}()};
  std::array<std::optional<Message>, kPlaces> places_;
  std::array<std::uint64_t, kPlaces> clean_{};
  std::uint64_t given_ = 0;
  std::uint64_t over_ = 0;
  std::uint64_t missing_ = 0;
  std::uint32_t next_ = 0;
  Stream from_{*sends_};
  Stream to_{*takes_};
};

// Also where the other one is asked too early, in any order, over launches that end in the middle.
TEST(Worker, EveryByteThatOneWorkerPostsIsTakenByTheOther) {
  MailPair pair;
  // On a busy machine nobody may be early for long.
  while (pair.over() < 1000 || (pair.missing() == 0 && pair.over() < 50000)) {
    pair.begin();
    pair.step();
  }
  EXPECT_GT(pair.missing(), 0U);
  EXPECT_GT(pair.launches(), 1U);
}

}  // namespace
}  // namespace ist
