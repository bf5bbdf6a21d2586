// Collective calls where the host's memory runs out on their way: no step is lost, and the call ends.
#include <cstring>
#include <memory>

#include "little_memory.hpp"
#include "request/action.hpp"
#include "request/schedule.hpp"
#include "staged_engine.hpp"

namespace ist::test {
namespace {

constexpr std::int32_t kFirstTag = -1000;

class KeepingSchedules : public StagedEngine {
 protected:
  KeepingSchedules() { link_.takes = true; }
  std::unique_ptr<Schedule> schedule() const {
    return std::make_unique<Schedule>("a call", Scope{kContext, nullptr}, kFirstTag);
  }
  static Piece of(std::array<char, 16>& bytes) { return host_piece(bytes.data(), Bytes{bytes.size()}); }
  void say(Rank from, std::uint32_t number, char letter) {
    path_->publish(from, number, std::string(came_.size(), letter));
    path_->last().tag = kFirstTag;
  }
  // Until it is over, or nothing more can be done.
  void move(int memory) {
    left = memory;
    for (int look = 0; look < 3; ++look) {
      try {
        engine_->progress();
      } catch (const std::bad_alloc&) {
        continue;
      }
    }
    left = kEnough;
    look();
  }
  static Piece nothing() { return host_piece(nullptr, Bytes{}); }
  std::uint32_t number_ = 0;  // of the next message
  NoLink& link_ = path_->only_link();
  std::array<char, 16> came_{};
  std::array<char, 16> copied_{};
  std::array<char, 16> then_{};
};

// Wherever memory runs out the call ends, and is right or says that there was none.
TEST_F(KeepingSchedules, AStepThatFindsNoMemoryBeginsLater) {
  int failed = 0;
  for (int given = 0; given < 40; ++given) {
    SCOPED_TRACE("memory " + std::to_string(given) + " times");
    came_ = {}, copied_ = {}, then_ = {};
    auto steps = schedule();
    const auto heard = steps->receive(of(came_), Rank{0}, 0, {});
    const auto moved = steps->copy(of(copied_), of(came_), {heard});
    // Several, which a table of operations has no room for.
    auto last = moved;
    for (int i = 0; i < 70; ++i) last = steps->receive(i == 69 ? of(then_) : nothing(), Rank{0}, 1, {moved});
    steps->send(nothing(), Rank{2}, 0, {last});
    const auto started = engine_->start_schedule(std::move(steps));
    ASSERT_TRUE(started.ok());
    say(Rank{0}, number_++, 'x');
    const int told = link_.taken;
    move(given);
    EXPECT_EQ(told, link_.taken) << "the last step began before what it needs";
    for (int i = 0; i < 70; ++i) {
      path_->publish(Rank{0}, number_++, i == 69 ? std::string(16, 'z') : std::string{});
      path_->last().tag = kFirstTag + 1;
    }
    for (int i = 0; i < 40; ++i) look();
    ASSERT_TRUE(Engine::complete(*engine_->find(*started))) << "a step is lost";
    EXPECT_EQ(told + 1, link_.taken) << "the other rank hears of it once, whatever became of it";
    const Outcome outcome = engine_->take(*started);
    failed += outcome.status.ok() ? 0 : 1;
    if (outcome.status.ok()) {
      EXPECT_EQ('x', copied_[15]);
      EXPECT_EQ('z', then_[15]);
    } else {
      EXPECT_EQ(IST_ERR_MEMORY, outcome.status.code()) << outcome.status.text();
    }
  }
  EXPECT_GT(failed, 0) << "memory ran out in no step";
}

// Writes down another receive, of a part whose memory it takes first.
class Writes : public Action {
 public:
  explicit Writes(Piece piece) : piece_(piece) {}
  Result<bool> step(Moment& now) override {
    const std::vector<char> part(piece_.size.value);
    now.schedule.receive(piece_, Rank{0}, 1, {});
    return true;
  }

 private:
  Piece piece_;
};

TEST_F(KeepingSchedules, AnActionThatFindsNoMemoryFailsTheCallAndEndsIt) {
  int failed = 0;
  for (int given = 0; given < 40; ++given) {
    auto steps = schedule();
    const auto heard = steps->receive(of(came_), Rank{0}, 0, {});
    const auto acted = steps->act(std::make_unique<Writes>(of(then_)), {heard});
    steps->send(nothing(), Rank{2}, 0, {acted});
    const auto started = engine_->start_schedule(std::move(steps));
    ASSERT_TRUE(started.ok());
    say(Rank{0}, number_++, 'y');
    move(given);
    say(Rank{0}, number_++, 'z');
    path_->last().tag = kFirstTag + 1;
    look();
    ASSERT_TRUE(Engine::complete(*engine_->find(*started))) << "memory " << given << " times";
    failed += engine_->take(*started).status.ok() ? 0 : 1;
  }
  EXPECT_GT(failed, 0) << "memory ran out in no step";
}

}  // namespace
}  // namespace ist::test
