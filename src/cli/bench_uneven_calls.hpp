// Calls with parts of unequal length, as `isthmus bench collective` and `overlap` time them, and what each must leave behind.
//
// Who calls this : bench_calls, for its table, and whoever asks how much a call moves.
// Threads        : any.
// Ownership      : values.
// Errors         : the code of the library's call.
#pragma once

#include "cli/bench_calls.hpp"

namespace ist::cli {

// Bytes of part `part` of that many, where the size of the row is `bytes`: 2 * (part + 1) / (parts + 1) of it, rounded down. So the first
// part is the shortest, the last one nearly twice the size of the row, and all together are no more than equal ones would be.
std::size_t uneven_part(std::size_t bytes, int part, int parts);
// Which part rank `from` has for rank `to` in an alltoallv: each rank has one of every length to send, and one to receive.
inline int part_between(int from, int to, int ranks) { return (from + to) % ranks; }

int gatherv(const CallArguments& with);
int scatterv(const CallArguments& with);
int allgatherv(const CallArguments& with);
int alltoallv(const CallArguments& with);
int start_gatherv(const CallArguments& with, ist_request* requests);
int start_scatterv(const CallArguments& with, ist_request* requests);
int start_allgatherv(const CallArguments& with, ist_request* requests);
int start_alltoallv(const CallArguments& with, ist_request* requests);

void expect_gatherv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result);
void expect_scatterv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result);
void expect_allgatherv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result);
void expect_alltoallv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result);

}  // namespace ist::cli
