#include "barrier.hpp"

namespace isthmus_python {
namespace {
// Long objects use the tags below this one; 24 bits for the barrier's number and 5 for its round are above.
constexpr int kFirstTag = 1 << 30;
}  // namespace

Barrier::Barrier(std::shared_ptr<Channels> channels)
    : channels_(std::move(channels)), tag_(kFirstTag | static_cast<int>((channels_->barriers++ & 0xffffffU) << 5)) {}

bool Barrier::start_round(Outcome& outcome) {
  const int reach = 1 << round_;
  const int size = channels_->size;
  const int tag = tag_ | round_;
  out_ = in_ = Flight{};
  told_ = heard_ = false;
  int code =
      ist_irecv(ist_host(nullptr), 0, IST_BYTE, (channels_->rank + size - reach) % size, tag, channels_->bodies, in_.out());
  if (code == IST_OK)
    code = ist_isend(ist_host(nullptr), 0, IST_BYTE, (channels_->rank + reach) % size, tag, channels_->bodies, out_.out());
  if (code == IST_OK) return true;
  outcome.code = code;
  outcome.text = ist_error_text();
  return false;
}

bool Barrier::step(Outcome& outcome) {
  while ((1 << round_) < channels_->size) {
    if (!under_way_ && !start_round(outcome)) return true;
    under_way_ = true;
    // Empty messages hold no buffer: after an error, the rest may be left to the library.
    if (!heard_ && !(heard_ = in_.look(outcome))) return false;
    if (outcome.code != IST_OK) return true;
    if (!told_ && !(told_ = out_.look(outcome))) return false;
    if (outcome.code != IST_OK) return true;
    under_way_ = false;
    ++round_;
  }
  return true;
}

}  // namespace isthmus_python
