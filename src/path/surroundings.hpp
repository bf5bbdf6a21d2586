// What paths need from outside, as plain functions, so that tests run them without a job or a driver.
//
// Who calls this : self/ and shm/. Who fills it: paths.cpp, from Peers and PinnedPool; tests.
// Threads        : as the paths'.
// Ownership      : whatever the functions look at outlives the paths.
// Errors         : as Peers and PinnedPool.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/settings.hpp"

namespace ist {

class SharedHeap;

struct Surroundings {
  Rank rank;
  std::vector<Rank> local;  // ranks of this host, this one included, ascending: equal on all of them
  bool oversubscribed = false;
  Settings settings;
  std::function<Status(Rank to, std::uint32_t purpose, int descriptor)> send_descriptor;
  // Without waiting; false: there is no room for it now.
  std::function<Result<bool>(Rank to, std::uint32_t purpose, int descriptor)> try_send_descriptor;
  std::function<Result<std::optional<FileDescriptor>>(Rank from, std::uint32_t purpose, double seconds)> take_descriptor;
  // The process id of a rank of this host as this process sees it; 0: it does not. Null where nobody knows.
  std::function<int(Rank peer)> process_of = nullptr;
  SharedHeap* heap = nullptr;  // from which peers may copy; null: there is none
  // Page-locks for the kinds in use; again adds those that came into use since. Unlock follows also where it failed.
  std::function<Status(void* address, Bytes size)> lock;
  std::function<void(void* address)> unlock;
};

// What descriptors are for.
constexpr std::uint32_t kSegmentPurpose = 0x73656731;
constexpr std::uint32_t kRingPurpose = 0x72696e67;
constexpr std::uint32_t kHeapPurpose = 0x68656170;

}  // namespace ist
