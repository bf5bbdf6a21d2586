// What messages with layouts and halo exchanges are measured beside: a bare copy of as many bytes in one piece between the memory of the first two
// ranks, or within that of one by itself, and nothing of the library.
//
// Who calls this : bench_layout, bench_halo, on all ranks, in the same order.
// Threads        : one.
// Ownership      : owns the link, whose memory is rank 0's.
// Errors         : none of its own: what cannot be measured is no number, and words() say why.
#pragma once

#include <array>
#include <isthmus/isthmus.hpp>
#include <memory>
#include <string>

#include "cli/bench_bare_link.hpp"
#include "cli/bench_options.hpp"

namespace ist::cli {

// Which device this rank's memory of that kind is on, where such memory has addresses; else Place::kAnyDevice.
int device_of(const isthmus::World& world, isthmus::Kind kind, const Kinds* kinds);

class CopyLimit {
 public:
  // `kind`: of the memory of all ranks, and `device` which one of it this rank has, or Place::kAnyDevice. `kinds`: null where none are there.
  CopyLimit(const isthmus::Comm& comm, const std::string& kind, int device, const Kinds* kinds);
  // Microseconds of such a copy, which rank 0 makes while the others sleep; not a number where there is none.
  double us(std::size_t bytes);
  // For the head of the table and the report.
  const std::string& words() const { return words_; }

 private:
  void open(std::size_t most);

  const isthmus::Comm comm_;
  const Kinds* const kinds_;
  std::array<Place, 2> places_;
  std::size_t most_ = 0;
  std::unique_ptr<BareLink> link_;
  std::string words_;
};

}  // namespace ist::cli
