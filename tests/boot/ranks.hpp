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

#include "base/file_descriptor.hpp"
#include "boot/boot.hpp"

namespace ist::test {

// Runs `body(rank)` in `size` processes that believe to be started by `isthmus run`, and returns how each ended: an exit
// code, or minus the signal. A body that returns true and failed no expectation exits with 0.
std::vector<int> run_launched(int size, const std::function<void(int)>& body);

// The same with RANK, WORLD_SIZE, MASTER_ADDR=127.0.0.1 and a free MASTER_PORT.
std::vector<int> run_with_environment(int size, const std::function<void(int)>& body);

// What this process does for ranks that each have a socket to it, until the last of them has ended.
struct RankServer {
  std::function<void(int rank, FileDescriptor socket)> connected;
  std::function<void()> serve;  // waits a moment, and answers what came
  std::function<void(int rank, int end)> ended = [](int, int) {};
};
std::vector<int> run_served(int size, const RankServer& server, const std::function<void(int, int)>& body);

// How many children ended in another way than with exit code 0.
int failures(const std::vector<int>& ends);

// Runs `holds` in a child that this rank forks and that ends as a careless one would, with the handlers of exit().
bool holds_in_forked_child(const std::function<bool()>& holds);

// What a rank gives in a round: random bytes, others in every run, that every rank knows.
std::string blob_of(int rank, int round, std::size_t length);
// Rank r gives r bytes more, so that the lengths differ; compares every byte.
void exchange_and_compare(Boot& boot, int round, std::size_t length);
// Five worlds, and then two at once.
void exchange_in_several_worlds();
// A child of this rank is refused, and does not disturb it.
void expect_forked_child_refused();

int free_port();
// Seconds since some moment: differences count.
double now();
// Random bytes, different on every call and run.
std::string random_bytes(std::size_t length);

}  // namespace ist::test
