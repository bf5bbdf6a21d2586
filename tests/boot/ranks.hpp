// Ranks made by fork(), for tests that need several processes but no launcher program.
//
// Who calls this : the boot tests.
// Threads        : the calling process must have one thread.
// Ownership      : every child is reaped before the call returns.
// Errors         : a failed expectation in a child is printed there and becomes its exit code 1.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ist::test {

// Runs `body(rank)` in `size` processes that believe to be started by `isthmus run`, and returns how each ended: an exit
// code, or minus the signal. A body that returns true and failed no expectation exits with 0.
std::vector<int> run_launched(int size, const std::function<void(int)>& body);

// The same with RANK, WORLD_SIZE, MASTER_ADDR=127.0.0.1 and a free MASTER_PORT.
std::vector<int> run_with_environment(int size, const std::function<void(int)>& body);

// How many children ended in another way than with exit code 0.
int failures(const std::vector<int>& ends);

int free_port();
// Seconds since some moment: differences count.
double now();
// Random bytes, different on every call and run.
std::string random_bytes(std::size_t length);

}  // namespace ist::test
