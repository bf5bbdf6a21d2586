// A small PMI server that behaves as Slurm's mpi/pmi2 does towards its tasks, and ranks made by fork() that use it.
//
// Who calls this : the PMI tests. Slurm itself cannot run on a machine that is not a cluster.
// Threads        : the calling process must have one thread.
// Ownership      : every child is reaped before the call returns.
// Errors         : a request that the real server would refuse is answered as it would, and counted.
#pragma once

#include <functional>
#include <vector>

namespace ist::test {

enum class PmiManner {
  slurm,         // knows 2.0 and 1.1; the first version that is asked for holds for all
  mpich,         // the same, but a value that is not there is an answer without "found"
  old,           // knows 1.1 alone
  foreign,       // answers with something that is no PMI
  hangs_up,      // closes the connection after the greeting
  no_length,     // after the greeting of version 2, sends text without its length
  refuses_puts,  // has no room for values
  deaf           // never answers a fence
};

struct PmiRun {
  std::vector<int> ends;  // as in run_launched
  int refused = 0;        // requests that the real server would refuse
  int finalized = 0;      // ranks that took their leave
  int version = 0;
};

PmiRun run_with_pmi(int size, PmiManner manner, const std::function<void(int)>& body);

}  // namespace ist::test
