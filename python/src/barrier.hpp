// Rounds of small messages between all ranks, whose waiting can be interrupted: in round k a rank tells the one 2^k further on,
// and hears from the one 2^k back. With nothing to say they are a barrier; otherwise everybody learns the word of the highest
// rank that has one.
//
// Who calls this : comm.cpp (barrier), reducer.cpp (whether a reduction's function failed anywhere).
// Threads        : as every operation.
// Ownership      : holds the communicator's channels, and its words, until both messages of a round are over.
// Errors         : in the outcome, as every operation.
#pragma once

#include <array>

#include "comm.hpp"

namespace isthmus_python {

struct Word {
  std::int32_t from = -1;  // the rank that has something to say; -1: nobody
  std::array<char, 252> text{};
};

class Rounds {
 public:
  // Collective: its tag is that of the communicator's next call of this sort. `talks`: there may be words.
  Rounds(std::shared_ptr<Channels> channels, bool talks);
  // What this rank says, before the first step; what the ranks agreed on, after the last.
  Word& word() { return said_; }
  // True when the last round is over, or one has failed.
  bool step(Outcome& outcome);

 private:
  void start_round(Outcome& outcome);
  bool end_round(Outcome& outcome);
  std::shared_ptr<Channels> channels_;
  std::int64_t bytes_;
  int tag_;
  int round_ = 0;
  bool under_way_ = false;
  bool told_ = false;
  bool heard_ = false;
  Word said_;
  Word answer_;
  Flight out_;
  Flight in_;
};

class Barrier final : public Operation {
 public:
  explicit Barrier(std::shared_ptr<Channels> channels) : rounds_(std::move(channels), false) {}
  bool staged() const override { return true; }

 protected:
  bool step(Outcome& outcome) override { return rounds_.step(outcome); }

 private:
  Rounds rounds_;
};

}  // namespace isthmus_python
