// The calls that `isthmus bench collective` and `overlap` time, and what each must leave behind.
//
// Who calls this : bench_options for the names, bench_collective on every rank.
// Threads        : one.
// Ownership      : a table; rows are never released.
// Errors         : the code of the library's call.
#pragma once

#include <isthmus/collective.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ist::cli {

// One rank's part of one call of `bytes`, the size of a row: what one rank has for one other, or for all alike; of unequal parts the
// mean. Only a reduce_scatter's is the whole input, as in the OSU benchmarks.
struct CallArguments {
  ist_buffer send;
  ist_buffer recv;
  std::size_t bytes;
  int rank;
  int ranks;
  ist_comm comm;
};

using Inputs = std::vector<std::vector<std::byte>>;  // by rank

// The most bytes that some rank has to send, or to receive, whatever the algorithm; and in words, of N ranks.
struct LeastMoved {
  std::size_t (*bytes)(std::size_t bytes, int ranks);
  const char* words;
};

struct CollectiveCall {
  const char* name;
  bool reduces;      // sums floats; the others move bytes
  bool many_inputs;  // input and result hold a part for every rank
  bool many_results;
  bool in_recv;  // works on one buffer, which holds the input on rank 0
  LeastMoved moved;
  int (*call)(const CallArguments& with);
  // Null, or: begins the same, with two requests at most.
  int (*start)(const CallArguments& with, ist_request* requests);
  // What `result`, the rank's receive buffer, holds afterwards; what the call must not touch stays as it is.
  void (*expect)(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result);

  // Null, or: puts it into the buffer's CUDA stream, for which `call` waits.
  int (*put)(const CallArguments& with) = nullptr;

  bool uneven = false;  // parts are up to twice the size of the row

  bool in_stream() const { return put != nullptr; }

  std::size_t element() const { return reduces ? sizeof(float) : 1; }
  bool moves_bytes() const { return expect != nullptr; }
  std::size_t input_bytes(std::size_t bytes, int ranks) const { return bytes * parts(many_inputs, ranks); }
  std::size_t result_bytes(std::size_t bytes, int ranks) const { return bytes * parts(many_results, ranks); }

 private:
  std::size_t parts(bool many, int ranks) const { return many ? static_cast<std::size_t>(ranks) : uneven ? 2 : 1; }
};

const std::vector<CollectiveCall>& collective_calls();
// Null if there is none of that name.
const CollectiveCall* find_call(const std::string& name);
// "barrier, bcast, ..."; or only those that can be started and waited for later.
std::string call_names(bool that_start = false);

}  // namespace ist::cli
