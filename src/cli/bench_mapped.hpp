// Nodes of a device's memory by kernels that write and read page-locked host memory which the device has mapped: no copy, and no memory of
// the device's between.
//
// Who calls this : bench_halo.
// Threads        : one.
// Ownership      : the host memory, which goes with the object. The nodes and the kinds are the caller's, and stay as long.
// Errors         : a Failure that names the call.
#pragma once

#include <isthmus/isthmus.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/kinds.hpp"

namespace ist::cli {

class MappedNodes {
 public:
  // `nodes`: so many doubles, of a device; of them those that go and those that come, by their numbers.
  struct Lists {
    ist_buffer nodes{};
    std::int64_t count = 0;
    std::vector<std::int64_t> sends;
    std::vector<std::int64_t> receives;
  };
  static std::unique_ptr<MappedNodes> open(const Kinds& kinds, const Lists& lists);
  MappedNodes() = default;
  MappedNodes(const MappedNodes&) = delete;
  MappedNodes& operator=(const MappedNodes&) = delete;
  virtual ~MappedNodes() = default;

  // Brings those that go side by side into host memory; returns, when they are there, where that is until the next pack().
  virtual const double* pack() = 0;
  // Where those that come are to lie side by side, until the next unpack(), which returns when they are in their places.
  virtual double* room() = 0;
  virtual void unpack() = 0;
};

}  // namespace ist::cli
