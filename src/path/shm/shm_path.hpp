// Ranks of one host through shared memory, without locks and without system calls unless somebody sleeps.
//
// Who calls this : paths.cpp makes it; then as Path.
// Threads        : as Path; wake() from any thread.
// Ownership      : owns its segment, the mappings of the peers' segments, and the links.
// Errors         : connect: IST_ERR_BOOT naming the rank whose segment did not come; locking: what the driver said.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "path/path.hpp"
#include "path/shm/segment.hpp"
#include "path/shm/shm_link.hpp"
#include "path/surroundings.hpp"

namespace ist {

class ShmPath final : public Path {
 public:
  // Collective among the ranks of this host: every one sends its segment to every other.
  static Result<std::unique_ptr<ShmPath>> connect(Surroundings surroundings);
  // With segments at hand, by place; all of them in this process's memory.
  ShmPath(Surroundings surroundings, std::vector<Segment> segments);
  ~ShmPath() override;
  ShmPath(const ShmPath&) = delete;
  ShmPath& operator=(const ShmPath&) = delete;

  // Must this rank's doorbell be rung? "spin" never sleeps, "sleep" may, "auto" may if ranks outnumber processors.
  static bool may_sleep(const Surroundings& surroundings);
  static SegmentShape shape(const Surroundings& surroundings);
  static std::size_t place_in(const Surroundings& surroundings);

  std::string_view name() const override { return "shm"; }
  Link* link(Rank peer) override;
  // Looks at each pair's slots and at the queue of cells, in turns that begin where something was last: no source waits for
  // more than kInARow messages of each other. With nothing new it costs one load per peer and one for the
  // queue, all of lines that stay in this core's cache until somebody writes them.
  std::optional<Arrival> next() override;
  void pass_turn() override;
  void release(const Arrival& arrival) override;
  void put_back(const Arrival& arrival) override;
  bool has_gap() const override { return arrivals_.has_gap(); }
  void mark_arrivals() override { arrivals_.mark(); }
  bool arrival_within(int looks) override;
  Status lock_memory() override;
  bool can_sleep() const override { return mine_.may_sleep != 0; }
  bool announce_sleep() override;
  void sleep_announced(std::chrono::microseconds longest) override;
  void wake() override;
  Lane* lane(Rank owner, std::size_t index) const override;
  void leave(Rank dead) override;
  bool has_left(Rank peer) const override;
  Rank death_told_by(Rank peer) const override;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static CellTable make_table(const std::vector<Segment>& segments);
  std::size_t place(Rank rank) const;
  void drop_held();
  bool cells_ready() const { return returned_ != kNoCell || arrivals_.ready(); }
  std::optional<Arrival> take_slot(std::size_t source);
  std::optional<Arrival> take_cell();
  bool news();

  struct Source {
    std::size_t place;
    PairSlotReader slots;
  };
  const Surroundings surroundings_;
  const std::size_t my_place_;
  const std::vector<Segment> segments_;
  const CellTable table_;
  Segment::Shared& mine_;
  CellPool pool_;
  CellQueueReader arrivals_;
  std::vector<Source> sources_;
  std::vector<std::unique_ptr<ShmLink>> links_;  // by place; none for this rank
  // Where something was, more is likely: so many in a row, and then the others have their turn.
  static constexpr int kInARow = 16;
  std::size_t turn_ = 0;  // source to look at first; sources_.size() is the queue
  int in_a_row_ = 0;
  CellName returned_ = kNoCell;  // by put_back()
  std::size_t held_ = kNone;     // source whose front slot the last arrival shows
  bool locked_ = false;          // lock_memory() was called
  std::atomic<bool> woken_{false};
};

}  // namespace ist
