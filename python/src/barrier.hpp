// A barrier whose waiting can be interrupted: in round k a rank tells the one 2^k further on, and hears from the one 2^k back.
//
// Who calls this : comm.cpp.
// Threads        : as every operation.
// Ownership      : holds the communicator's channels until it is complete.
// Errors         : in the outcome, as every operation.
#pragma once

#include "comm.hpp"

namespace isthmus_python {

class Barrier final : public Operation {
 public:
  explicit Barrier(std::shared_ptr<Channels> channels);
  bool staged() const override { return true; }

 protected:
  bool step(Outcome& outcome) override;

 private:
  bool start_round(Outcome& outcome);
  std::shared_ptr<Channels> channels_;
  int tag_;
  int round_ = 0;
  bool under_way_ = false;
  bool told_ = false;
  bool heard_ = false;
  Flight out_;
  Flight in_;
};

}  // namespace isthmus_python
