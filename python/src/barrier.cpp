#include "barrier.hpp"

namespace isthmus_python {
namespace {
// Long objects use the tags below this one; 24 bits for the call's number and 5 for its round are above.
constexpr int kFirstTag = 1 << 30;

// The first error counts.
void look_at(Flight& flight, bool& over, Outcome& outcome) {
  if (over) return;
  Outcome own;
  over = flight.look(own);
  if (over && own.code != IST_OK && outcome.code == IST_OK) outcome = own;
}

}  // namespace

Rounds::Rounds(std::shared_ptr<Channels> channels, bool talks)
    : channels_(whole(std::move(channels))),
      bytes_(talks ? sizeof(Word) : 0),
      tag_(kFirstTag | static_cast<int>((channels_->barriers++ & 0xffffffU) << 5)) {}

void Rounds::start_round(Outcome& outcome) {
  const int reach = 1 << round_;
  const int size = channels_->size;
  const int rank = channels_->rank;
  const int tag = tag_ | round_;
  out_ = in_ = Flight{};
  told_ = heard_ = false;
  under_way_ = true;
  int code =
      ist_irecv(ist_host(&answer_), bytes_, IST_BYTE, (rank + size - reach) % size, tag, channels_->bodies, in_.out());
  if (code == IST_OK)
    code = ist_isend(ist_host(&said_), bytes_, IST_BYTE, (rank + reach) % size, tag, channels_->bodies, out_.out());
  if (code == IST_OK) return;
  outcome.code = code;
  outcome.text = ist_error_text();
  in_.cancel();  // empty handles are complete
}

// Where one of the two has failed, the other may never come: it is given up, and then waited for, since it holds a word.
bool Rounds::end_round(Outcome& outcome) {
  const bool failed_before = outcome.code != IST_OK;
  look_at(in_, heard_, outcome);
  look_at(out_, told_, outcome);
  if (!failed_before && outcome.code != IST_OK && !heard_) in_.cancel();
  return heard_ && told_;
}

bool Rounds::step(Outcome& outcome) {
  while ((1 << round_) < channels_->size) {
    if (!under_way_) start_round(outcome);
    if (!end_round(outcome)) return false;
    if (outcome.code != IST_OK) return true;
    under_way_ = false;
    ++round_;
    if (bytes_ > 0 && answer_.from > said_.from) said_ = answer_;
  }
  return true;
}

}  // namespace isthmus_python
