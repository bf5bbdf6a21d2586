// What each row of a table is measured beside, in the same run: a bare link for what the row moves, and the ratio to it.
//
// Who calls this : bench, on every rank, after the check; all make the same calls in the same order.
// Threads        : one.
// Ownership      : owns the link, whose memory is rank 0's; looks at the session, which outlives it.
// Errors         : none of its own: what cannot be measured here is no number in the rows, and words() say why.
//
// Messages are measured beside a single copy of their size, or a window of them, between the same two places; calls beside such a copy of
// the bytes that the busiest rank has to send or receive by any algorithm. Messages in streams one at a
// time have the bare pair of kernels besides (bench_stream).
#pragma once

#include <memory>
#include <string>

#include "cli/bench_bare_link.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_session.hpp"

namespace ist::cli {

class RowLimit {
 public:
  RowLimit(Session& session, const Limits& limits);
  // For the head of the table and the report; empty where rows have none from here, and on ranks other than 0.
  const std::string& words() const { return words_; }
  // Adds to the row of `bytes` what added_names() has last. The other ranks, whose row is empty, sleep meanwhile, or measure along where
  // all are at it at once.
  void add(std::uint64_t bytes, Row& row);

 private:
  BareEnds ends();
  bool both_hosts() const;
  void describe(const std::string& reason);
  void add_memcpy(std::uint64_t bytes, Row& row) const;
  double alone_us(std::uint64_t bytes, const Row& row);
  double together_us(std::uint64_t bytes);

  Session& session_;
  const BenchOptions& options_;
  const Limits limits_;
  double lines_us_ = 0;  // of rate between host memory
  int links_ = 1;        // of several pairs, those with places of their own
  std::unique_ptr<BareLink> link_;
  std::string words_;
};

}  // namespace ist::cli
