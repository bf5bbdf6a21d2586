// Windows of messages between two devices, of which several are copied by one call: every byte arrives, also where the driver has no such
// call, or refuses it; and where their copies fail, all of a call have failed, and nobody else's.
#include <isthmus/collective.h>

#include <algorithm>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr int kMessages = 40;
constexpr std::size_t kRoom = 1 << 17;  // of each message
constexpr const char* kTogether = "cuMemcpyBatchAsync_v2";

std::size_t bytes_of(int message) {
  constexpr std::size_t kSizes[] = {kRoom, 1, 100003, 8, 65536, 4097, 70001, 16385};
  return kSizes[static_cast<std::size_t>(message) % std::size(kSizes)];
}

std::uint64_t calls_together() { return driver_call<decltype(&::fake_cuda_calls)>("fake_cuda_calls")(kTogether); }

class Window {
 public:
  Window(const Here& here, Checks& check)
      : here_(here), check_(check), buffer_(here, kMessages * kRoom, IST_KIND_CUDA, here.rank) {}

  // From rank 0 to rank 1. Each rank's codes, and how many were carried by the device.
  struct Carried {
    std::vector<int> codes;
    int by_device = 0;
  };
  // `call`: refused the first `times` that rank 0 makes it for these messages.
  Carried carry(std::uint64_t seed, const char* call = nullptr, CUresult result = CUDA_SUCCESS, int times = 1) {
    Data data;
    for (int i = 0; i < kMessages; ++i) {
      const Data part = random_bytes(kRoom, seed + static_cast<std::uint64_t>(i));
      data.insert(data.end(), part.begin(), part.end());
    }
    buffer_.fill(here_.rank == 0 ? data : Data(data.size(), 0xa5));
    check_.ok(ist_barrier(here_.comm), "filled");
    std::vector<ist_request> requests(kMessages, IST_REQUEST_NULL);
    std::vector<ist_status> statuses(kMessages);
    for (int i = 0; here_.rank == 0 && call != nullptr && i < times; ++i) break_call(call, 0, result);
    for (int i = 0; i < kMessages; ++i) start(i, requests[static_cast<std::size_t>(i)]);
    const int code = ist_waitall(kMessages, requests.data(), statuses.data());
    if (here_.rank == 0 && call != nullptr) heal();
    check_.that(code == IST_OK || code == IST_ERR_IN_STATUS, "all have ended");
    Carried carried;
    for (const ist_status& status : statuses) {
      carried.codes.push_back(status.code);
      carried.by_device += status.carrier == IST_CARRIER_DEVICE ? 1 : 0;
    }
    if (here_.rank == 1) compare(data, carried.codes);
    return carried;
  }
  // Until the receiver's memory is open, others carry the messages.
  void open() {
    for (std::uint64_t n = 0; n < 500; ++n) {
      std::int32_t all = carry(n).by_device == kMessages ? 1 : 0;
      check_.ok(ist_bcast(ist_host(&all), 1, IST_INT32, 1, here_.comm), "are all carried by the device?");
      if (all == 1) return;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    check_.that(false, "the receiver's memory is opened");
  }

 private:
  void start(int message, ist_request& request) {
    ist_buffer place = ist_buffer_ready(buffer_.get());
    place.offset += static_cast<std::uint64_t>(message) * kRoom;
    const std::int64_t bytes = count(bytes_of(message));
    check_.ok(here_.rank == 0 ? ist_isend(place, bytes, IST_BYTE, 1, message, here_.comm, &request)
                              : ist_irecv(place, bytes, IST_BYTE, 0, message, here_.comm, &request),
              "start of " + std::to_string(message));
  }
  // What arrived is what was sent, and around it nothing was touched.
  void compare(const Data& sent, const std::vector<int>& codes) {
    const Data found = buffer_.read();
    for (int i = 0; i < kMessages; ++i) {
      if (codes[static_cast<std::size_t>(i)] != IST_OK) continue;
      const auto first = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * kRoom);
      Data wanted(sent.begin() + first, sent.begin() + first + static_cast<std::ptrdiff_t>(bytes_of(i)));
      wanted.resize(kRoom, 0xa5);
      const Data part(found.begin() + first, found.begin() + first + static_cast<std::ptrdiff_t>(kRoom));
      check_.that(part == wanted, "the bytes of message " + std::to_string(i));
    }
  }

  const Here& here_;
  Checks& check_;
  Buffer buffer_;
};

int all_ok(const std::vector<int>& codes) { return static_cast<int>(std::count(codes.begin(), codes.end(), IST_OK)); }

int windows(const Here& here) {
  Checks check(here);
  driver_call<decltype(&::fake_cuda_delay)>("fake_cuda_delay")(200);
  Window window(here, check);
  window.open();
  const std::uint64_t before = calls_together();
  check.that(all_ok(window.carry(7000).codes) == kMessages, "a window");
  const std::uint64_t made = calls_together() - before;
  check.that(here.rank == 1 ? made == 0 : made > 0 && made < kMessages / 2, std::to_string(made) + " calls for several");
  // A driver that has no such call, one that refuses it once, and an event that is not recorded.
  check.that(all_ok(window.carry(7100, kTogether, CUDA_ERROR_NOT_SUPPORTED).codes) == kMessages, "one by one");
  check.that(all_ok(window.carry(7200, kTogether, CUDA_ERROR_INVALID_VALUE).codes) == kMessages, "refused together");
  check.that(window.carry(7300).by_device == kMessages, "and later again by the device");
  const std::uint64_t once_more = calls_together();
  check.that(all_ok(window.carry(7350).codes) == kMessages, "a window after refusals");
  check.that(here.rank == 1 || calls_together() > once_more, "two refusals, not in turn, are forgotten");

  const auto failed = window.carry(7400, "cuEventQuery", CUDA_ERROR_UNKNOWN);
  const int whole = all_ok(failed.codes);
  check.that(whole < kMessages && whole >= kMessages - 8, std::to_string(whole) + " of those whose copies fail are whole");
  check.that(
      static_cast<std::ptrdiff_t>(kMessages - whole) == std::count(failed.codes.begin(), failed.codes.end(), IST_ERR_DEVICE),
      "the others failed by the device");
  check.that(window.carry(7500).by_device == kMessages, "after copies that failed");
  return check.wrong();
}

// It is asked for no more than three times in turn.
int never_together(const Here& here) {
  Checks check(here);
  driver_call<decltype(&::fake_cuda_delay)>("fake_cuda_delay")(200);
  Window window(here, check);
  window.open();
  std::uint64_t before = 0;
  for (std::uint64_t n = 0; n < 8; ++n) {
    before = calls_together();
    check.that(window.carry(8000 + 50 * n, kTogether, CUDA_ERROR_INVALID_VALUE, kMessages).by_device == kMessages,
               "one by one");
  }
  check.that(calls_together() == before, "the last window asked for nothing that was refused before");
  check.that(all_ok(window.carry(9000).codes) == kMessages, "and all arrives");
  return check.wrong();
}

TEST(TogetherFailures, OfADriverThatAlwaysRefuses) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", never_together));
}

TEST(TogetherFailures, OfWindowsBetweenTwoDevices) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", windows));
}

}  // namespace
