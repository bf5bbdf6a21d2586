// What the tests of warnings share: what forked ranks say, and messages of memory that others do not open.
//
// Who calls this : fallbacks_test.cpp, fallbacks_memory_test.cpp.
// Threads        : one for each rank.
// Ownership      : what a rank allocates stays until its process ends.
// Errors         : counted by Checks.
#pragma once

#include "broken_driver.hpp"

namespace forked_ranks {

constexpr std::size_t kBytes = 300001;
constexpr int kMessages = 3;

// All lines that two ranks write.
inline std::string said_by(const char* kinds, const Body& body) {
  testing::internal::CaptureStderr();
  const auto ended = run_ranks(2, kinds, body);
  const std::string said = testing::internal::GetCapturedStderr();
  expect_all(ended);
  return said;
}

// Lines of a rank with these words.
inline std::vector<std::string> lines(const std::string& said, int rank, const std::string& words) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < said.size();) {
    const std::size_t end = std::min(said.find('\n', at), said.size());
    const std::string line = said.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("isthmus[" + std::to_string(rank) + "] ") && line.find(words) != std::string::npos)
      found.push_back(line);
  }
  return found;
}

// One warning of that rank, none of the other, and it names the remedy.
inline void expect_once(const std::string& said, int rank, const std::string& words, const std::string& remedy) {
  const auto found = lines(said, rank, words);
  ASSERT_EQ(1U, found.size()) << words << " in:\n" << said;
  EXPECT_NE(std::string::npos, found[0].find("] warning: ")) << found[0];
  EXPECT_NE(std::string::npos, found[0].find(remedy)) << found[0];
  EXPECT_TRUE(lines(said, 1 - rank, words).empty()) << said;
}

// From rank 0 to rank 1, so many messages, checked.
inline int carry(const Here& here, const ist_buffer& place, std::size_t bytes, int messages = kMessages) {
  Checks check(here);
  for (int n = 0; n < messages; ++n) {
    const Data data = random_bytes(bytes, static_cast<std::uint64_t>(n));
    if (here.rank == 0) {
      check.ok(ist_memory_copy(here.world, place, ist_host(data.data()), bytes), "fill");
      check.ok(ist_send(place, count(bytes), IST_BYTE, 1, 7, here.comm), "send");
    } else {
      const Data before(bytes, 0xa5);
      Data found(bytes);
      check.ok(ist_memory_copy(here.world, place, ist_host(before.data()), bytes), "poison");
      check.ok(ist_recv(place, count(bytes), IST_BYTE, 0, 7, here.comm, IST_STATUS_IGNORE), "receive");
      check.ok(ist_memory_copy(here.world, ist_host(found.data()), place, bytes), "read");
      check.that(found == data, "the bytes of message " + std::to_string(n));
    }
    check.ok(ist_barrier(here.comm), "one after the other");
  }
  return check.wrong();
}

#define DRIVER(name) driver_call<decltype(&::name)>(#name)

// What the work allocates on the rank's own device.
template <class Work>
ist_buffer on_device(const Here& here, const Work& work) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  CUdeviceptr address = 0;
  DRIVER(cuDevicePrimaryCtxRetain)(&context, here.rank);
  driver_call<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(context);
  work(&address);
  DRIVER(cuStreamSynchronize)(nullptr);
  driver_call<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(&popped);
  return ist_cuda(reinterpret_cast<void*>(address), nullptr);
}

// Until the process ends, as what follows.
inline ist_buffer managed(const Here& here, std::size_t bytes) {
  return on_device(here, [&](CUdeviceptr* made) { DRIVER(cuMemAllocManaged)(made, bytes, CU_MEM_ATTACH_GLOBAL); });
}

}  // namespace forked_ranks
