// An invented device: copies run by themselves, end late and in any order, move their bytes only then, and fail where a test
// wants them to. Whoever shows, re-uses or gives back memory too early is seen, by wrong bytes or by name.
//
// Who calls this : tests of this folder.
// Threads        : one.
// Ownership      : nothing; pieces are views of the test's data.
// Errors         : as fails_at_start and fails_at_end say, per copy, counted from 0.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "invented_kind.hpp"

namespace ist::test {

class LateKind final : public InventedKind {
 public:
  explicit LateKind(unsigned seed, int latest) : random_(seed), latest_(latest) {}

  std::string_view name() const override { return "late"; }

  Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket&) override {
    pass_time();
    expect_owned(to);
    expect_owned(from);
    const int number = started++;
    if (fails_at_start && fails_at_start(number)) {
      note_failure(to, from);
      return Status{IST_ERR_DEVICE, "an invented refusal"};
    }
    const bool fails = fails_at_end && fails_at_end(number);
    const std::uint64_t late = random_() % static_cast<unsigned>(latest_ + 1);
    copies_[++last_id_] = {to, from, now_ + late, fails, false};
    most_at_once = std::max(most_at_once, copies_.size());
    return Ticket{this, last_id_};
  }

  Result<bool> finished(Ticket& ticket) override {
    pass_time();
    const Copy copy = copies_.at(ticket.id());
    if (!copy.over) return false;
    copies_.erase(ticket.id());
    ticket.forget();
    if (copy.fails) return Status{IST_ERR_DEVICE, "an invented failure on the device"};
    return true;
  }
  void drop(std::uint64_t id) override {
    ADD_FAILURE() << "nobody waited for a copy";
    copies_.erase(id);
  }

  // The user may do with this memory what he likes: no copy touches it any more.
  void given_back(const Piece& piece) {
    free_.insert(begin_and_end(piece));
    for (const auto& [id, copy] : copies_) {
      EXPECT_FALSE(!copy.over && (overlap(copy.to, piece) || overlap(copy.from, piece))) << "given back while a copy runs";
    }
  }

  std::size_t running() const { return copies_.size(); }
  // Did a copy from or to this memory fail?
  bool failed_on(const Piece& piece) const {
    for (const auto& [begin, end] : failed_)
      if (begin < begin_and_end(piece).second && end > begin_and_end(piece).first) return true;
    return false;
  }

  int started = 0;
  std::size_t most_at_once = 0;
  std::function<bool(int)> fails_at_start;
  std::function<bool(int)> fails_at_end;

 private:
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  struct Copy {
    Piece to;
    Piece from;
    std::uint64_t due = 0;
    bool fails = false;
    bool over = false;
  };

  static Range begin_and_end(const Piece& piece) {
    const auto begin = reinterpret_cast<std::uint64_t>(piece.address());
    return {begin, begin + piece.size.value};
  }
  static bool overlap(const Piece& a, const Piece& b) {
    return begin_and_end(a).first < begin_and_end(b).second && begin_and_end(a).second > begin_and_end(b).first;
  }

  void expect_owned(const Piece& piece) const {
    const auto [begin, end] = begin_and_end(piece);
    for (const auto& [free_begin, free_end] : free_)
      EXPECT_FALSE(begin < free_end && end > free_begin) << "a copy touches memory that was given back";
  }

  void note_failure(const Piece& to, const Piece& from) {
    failed_.push_back(begin_and_end(to));
    failed_.push_back(begin_and_end(from));
  }

  // Every question is a moment. What fails has written rubbish.
  void pass_time() {
    ++now_;
    for (auto& [id, copy] : copies_) {
      if (copy.over || copy.due > now_) continue;
      copy.over = true;
      expect_owned(copy.to);
      expect_owned(copy.from);
      if (copy.fails) {
        std::memset(copy.to.address(), 0xdd, copy.to.size.value);
        note_failure(copy.to, copy.from);
      } else {
        std::memcpy(copy.to.address(), copy.from.address(), copy.to.size.value);
      }
    }
  }

  std::mt19937 random_;
  int latest_;
  std::map<std::uint64_t, Copy> copies_;
  std::uint64_t last_id_ = 0;
  std::uint64_t now_ = 0;
  std::set<Range> free_;
  std::vector<Range> failed_;
};

// The kinds of one side: host memory, and an invented device.
struct Side {
  Side(unsigned seed, int latest) : kinds(std::move(Kinds::load("host")).value()) {
    auto made = std::make_unique<LateKind>(seed, latest);
    device = made.get();
    kinds->add("late", std::unique_ptr<MemoryKind>(std::move(made)));
  }
  std::unique_ptr<Kinds> kinds;
  LateKind* device = nullptr;
};

inline Piece late_piece(const void* address, Bytes size) {
  Piece piece = host_piece(address, size);
  piece.kind = LateKind::kId;
  piece.device = 0;
  return piece;
}

}  // namespace ist::test
