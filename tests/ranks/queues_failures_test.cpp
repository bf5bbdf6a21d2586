// Ranks that die, leave, or destroy their world, while queues wait for messages: nothing hangs, and the next call tells why.
#include "forked_ranks.hpp"
// After gtest.
#include "queues_support.hpp"

namespace {

using namespace forked_ranks;
using queues::Event;
using queues::Queue;

constexpr std::size_t kBytes = 3000;
constexpr std::size_t kLong = 300000;
constexpr int kTag = 4;

// Buffer and queue of a rank, and what it found wrong.
class Own {
 public:
  explicit Own(const Here& here, std::size_t bytes = kBytes) : here_(here), bytes_(bytes) {
    ok(ist_memory_alloc(here.world, IST_KIND_OPENCL, 0, bytes, &buffer_), "memory");
    queue_.emplace(buffer_);
  }
  int send(int to, Event* done = nullptr) {
    return queues::send(*queue_, buffer_, bytes_, to, kTag, here_.comm, {nullptr, done});
  }
  int receive(int from, Event* done = nullptr) {
    return queues::receive(*queue_, buffer_, bytes_, from, kTag, here_.comm, {nullptr, done});
  }
  int behind(const Event& gate, int from, Event* done) {
    return queues::receive(*queue_, buffer_, bytes_, from, kTag, here_.comm, {&gate, done});
  }
  const Queue& queue() const { return *queue_; }
  const ist_buffer& buffer() const { return buffer_; }
  void ok(int code, const std::string& what) { that(code == IST_OK, what + ": " + ist_error_text()); }
  void fails(int code, int wanted, const std::vector<std::string>& words, const std::string& what) {
    const std::string text = ist_error_text();
    bool all = code == wanted;
    for (const std::string& word : words) all = all && text.find(word) != std::string::npos;
    that(all, what + ": " + ist_code_name(code) + ", " + text);
  }
  void that(bool good, const std::string& what) {
    if (good) return;
    ++wrong_;
    std::fprintf(stderr, "[%d] %s\n", here_.rank, what.c_str());
  }
  // The queue went on, soon.
  void gave_up(const Event& done, Clock::time_point since, const std::string& what) {
    that(done.wait() == CL_SUCCESS, what + " is over");
    queue_->wait();
    that(Clock::now() - since < std::chrono::seconds(2), what + " was over soon");
  }
  int wrong() const { return wrong_; }

 private:
  const Here& here_;
  std::size_t bytes_;
  ist_buffer buffer_{};
  std::optional<Queue> queue_;
  int wrong_ = 0;
};

// Whether there is OpenCL is not asked before the fork: PoCL has threads.
bool opencl_is_here(const Here& here) {
  int devices = 0;
  if (ist_kind_devices(here.world, IST_KIND_OPENCL, &devices) == IST_OK && devices > 0) return true;
  if (here.rank == 0) std::printf("not covered here: messages in OpenCL queues, which take an OpenCL device\n");
  return false;
}

TEST(QueueFailures, AMessageThatWaitsForARankThatDiesEndsAndTheNextCallNamesIt) {
  for (const bool sends : {false, true})
    expect_all_but(run_ranks(3, "host,opencl",
                             [=](const Here& here) {
                               if (here.rank == 1) die_soon();
                               if (!opencl_is_here(here)) return 0;
                               Own own(here, kLong);
                               Event done;
                               const auto start = Clock::now();
                               if (here.rank == 0) {
                                 own.ok(sends ? own.send(1, &done) : own.receive(1, &done), "a message");
                                 own.gave_up(done, start, "the message");
                               } else {
                                 std::this_thread::sleep_for(3 * kBefore);
                               }
                               own.fails(own.receive(1), IST_ERR_PEER_DEAD, {"rank 1 "}, "the next receive");
                               own.fails(own.send(1), IST_ERR_PEER_DEAD, {"rank 1 "}, "a send");
                               return own.wrong();
                             }),
                   1);
}

TEST(QueueFailures, WhatARankHadSentWhenItLeftIsReceivedAndNoMore) {
  expect_all(run_ranks(2, "host,opencl", [](const Here& here) {
    if (!opencl_is_here(here)) return 0;
    Own own(here);
    const auto bytes = [](unsigned char n) { return std::vector<unsigned char>(kBytes, n); };
    if (here.rank == 1) {
      for (unsigned char n = 1; n < 4; ++n) {
        own.queue().write(own.buffer(), bytes(n)).wait();
        own.ok(own.send(0), "a send");
      }
      own.queue().wait();
      return own.wrong();
    }
    std::this_thread::sleep_for(3 * kBefore);
    for (unsigned char n = 1; n < 4; ++n) {
      std::vector<unsigned char> seen(kBytes, 0xee);
      own.ok(own.receive(1), "receive " + std::to_string(n));
      own.queue().read(seen, own.buffer()).wait();
      own.that(seen == bytes(n), "message " + std::to_string(n) + " is whole");
    }
    Event done;
    const auto start = Clock::now();
    own.ok(own.receive(1, &done), "a receive too many");
    own.gave_up(done, start, "it");
    own.fails(own.receive(1), IST_ERR_PEER_LEFT, {"rank 1 ", "left", "tag 4"}, "the next receive");
    own.fails(own.send(1), IST_ERR_PEER_LEFT, {"rank 1 "}, "a send");
    return own.wrong();
  }));
}

// What waits in the queue, for its turn or for a message, ends with the world, and the world says so.
TEST(QueueFailures, AWorldThatIsDestroyedUnderWaitingWorkEndsItAndSaysSo) {
  for (const bool gated : {false, true})
    expect_all(run_ranks(2, "host,opencl", [=](const Here& here) {
      if (!opencl_is_here(here)) return 0;
      Own own(here);
      Event done;
      const Event gate = own.queue().user_event();
      const bool waits = gated && here.rank == 0;
      own.ok(waits ? own.behind(gate, 1 - here.rank, &done) : own.receive(1 - here.rank, &done), "a receive");
      const auto start = Clock::now();
      here.has_come_to(1);
      if (here.rank == 0) {
        here.wait_for(1, 1);
        std::this_thread::sleep_for(kBefore);
        ist_world world = here.world;
        own.fails(ist_world_destroy(&world), IST_ERR_PENDING, {"ist_world_destroy", "from rank 1", "tag 4", "\"world\""},
                  "the end of the world");
        own.that(world == IST_WORLD_NULL, "it is gone");
      }
      queues::api().clSetUserEventStatus(gate.get(), CL_COMPLETE);
      own.gave_up(done, start, "the receive");
      if (here.rank == 1) own.fails(own.receive(0), IST_ERR_PEER_LEFT, {"rank 0 "}, "the next receive");
      return own.wrong();
    }));
}

TEST(QueueFailures, AProgramThatPromisedOneThreadIsToldThatTheseCallsTakeASecond) {
  const Variables variables{{"ISTHMUS_THREADS", "single"}};
  expect_all(run_ranks(2, "host,opencl", [](const Here& here) {
    if (!opencl_is_here(here)) return 0;
    Own own(here);
    own.fails(own.send(1 - here.rank), IST_ERR_SETTING, {"ist_send_on_queue", "ISTHMUS_THREADS"}, "a send");
    return own.wrong();
  }));
}

TEST(QueueFailures, WithoutOpenclTheCallsSayWhatIsLacking) {
  expect_all(run_ranks(1, "host", [](const Here& here) {
    char byte = 0;
    const int code = ist_send_on_queue(&byte, ist_host(&byte), 1, IST_BYTE, 0, 0, here.comm, 0, nullptr, nullptr);
    const std::string text = ist_error_text();
    if (code == IST_ERR_KIND && text.find("opencl") != std::string::npos) return 0;
    std::fprintf(stderr, "%s: %s\n", ist_code_name(code), text.c_str());
    return 1;
  }));
}

}  // namespace
