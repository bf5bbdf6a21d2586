// Messages between host memories that are too long for slots, but where they leave a place that others left lately: which way they go, and that they are whole.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <string>

#include "rank_test.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 3;
constexpr std::size_t kWhatever = 131072;  // and less always goes in slots
constexpr std::size_t kAgain = 262144;
constexpr int kWindow = 24;

// Where there is room for it.
bool has_room() { return size() <= 3; }
// `read`: did this rank read any of a window where it lay?
ist_carrier expected_of(std::size_t bytes, bool again, bool read) {
  // All tests with another setting than this one are of ranks for which one copy is the quicker way, where the system allows it.
  const char* const setting = std::getenv("ISTHMUS_SINGLE_COPY");
  const bool one_copy = (setting == nullptr || std::string{setting} != "never") && read;
  if (bytes <= kWhatever || (again && bytes <= kAgain && has_room() && !one_copy)) return IST_CARRIER_SLOT;
  return IST_CARRIER_RING;
}
bool is_way(int carrier, ist_carrier expected) {
  return carrier == expected || (expected == IST_CARRIER_RING && carrier == IST_CARRIER_DIRECT);
}

struct Window {
  std::size_t bytes;
  std::size_t places;  // that the messages leave in turn
  bool unexpected;
};

void send_window(const Window& window, std::uint64_t seed) {
  const auto bytes = random_bytes(window.bytes + window.places, seed);
  static std::deque<std::vector<unsigned char>> all;  // kept, so that no window's places are those of another one
  const std::size_t first = all.size();
  for (std::size_t place = 0; place < window.places; ++place)
    all.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(place), bytes.end());
  std::array<ist_request, kWindow> requests{};
  for (int i = 0; i < kWindow; ++i)
    IST_OK_OR_FAIL(ist_isend(ist_host(all[first + at(i) % window.places].data()), static_cast<std::int64_t>(window.bytes),
                             IST_BYTE, 1, kTag + i % 2, comm(), &requests[at(i)]));
  if (window.unexpected) IST_OK_OR_FAIL(ist_send(ist_host(nullptr), 0, IST_BYTE, 1, kTag + 2, comm()));
  IST_OK_OR_FAIL(ist_waitall(kWindow, requests.data(), IST_STATUSES_IGNORE));
}

void receive_window(const Window& window, std::uint64_t seed) {
  const auto bytes = random_bytes(window.bytes + window.places, seed);
  std::vector<std::vector<unsigned char>> to(kWindow, std::vector<unsigned char>(window.bytes + 2, 0xa5));
  std::array<ist_request, kWindow> requests{};
  std::array<ist_status, kWindow> statuses{};
  if (window.unexpected) IST_OK_OR_FAIL(ist_recv(ist_host(nullptr), 0, IST_BYTE, 0, kTag + 2, comm(), IST_STATUS_IGNORE));
  for (int i = 0; i < kWindow; ++i)
    IST_OK_OR_FAIL(ist_irecv(ist_host(to[at(i)].data() + 1), static_cast<std::int64_t>(window.bytes), IST_BYTE, 0,
                             kTag + i % 2, comm(), &requests[at(i)]));
  IST_OK_OR_FAIL(ist_waitall(kWindow, requests.data(), statuses.data()));
  const bool read = std::any_of(statuses.begin(), statuses.end(),
                                [](const ist_status& status) { return status.carrier == IST_CARRIER_DIRECT; });
  for (int i = 0; i < kWindow; ++i) {
    EXPECT_EQ(static_cast<std::int64_t>(window.bytes), statuses[at(i)].bytes);
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at(i) % window.places);
    EXPECT_TRUE(are_as_expected(to[at(i)], {first, first + static_cast<std::ptrdiff_t>(window.bytes)}, 1))
        << "message " << i;
    // With more than 1 MiB of other places in between, none counts as used lately.
    const bool again = at(i) >= window.places && (window.places - 1) * window.bytes <= (1U << 20);
    EXPECT_TRUE(is_way(statuses[at(i)].carrier, expected_of(window.bytes, again, read)))
        << "message " << i << " of " << window.bytes << " B out of " << window.places << " places went by "
        << ist_carrier_name(statuses[at(i)].carrier);
  }
}

TEST(SentAgain, WindowsGoInSlotsBehindTheirFirstMessages) {
  if (rank() > 1 || size() < 2) return;
  std::uint64_t seed = 100;
  for (const std::size_t bytes : {kWhatever, kWhatever + 1, std::size_t{200001}, kAgain, kAgain + 1})
    for (const std::size_t places : {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{kWindow}})
      for (const bool unexpected : {false, true}) {
        const Window window{bytes, places, unexpected};
        ++seed;
        if (rank() == 0)
          send_window(window, seed);
        else
          receive_window(window, seed);
        if (HasFailure()) FAIL() << bytes << " B out of " << places << " places" << (unexpected ? ", unexpected" : "");
      }
}

// Other calls than ist_isend() do not let them go in slots.
TEST(SentAgain, WhoWaitsForItGoesThroughTheRing) {
  if (rank() > 1 || size() < 2) return;
  const auto bytes = random_bytes(kAgain, 7);
  for (const bool synchronous : {false, true})
    for (int i = 0; i < 4; ++i) {
      if (rank() == 0) {
        const auto count = static_cast<std::int64_t>(bytes.size());
        const auto send = synchronous ? ist_ssend : ist_send;
        IST_OK_OR_FAIL(send(ist_host(bytes.data()), count, IST_BYTE, 1, kTag, comm()));
      } else {
        std::vector<unsigned char> found(kAgain + 2, 0xa5);
        ist_status status{};
        IST_OK_OR_FAIL(ist_recv(ist_host(found.data() + 1), kAgain, IST_BYTE, 0, kTag, comm(), &status));
        EXPECT_TRUE(are_as_expected(found, bytes, 1));
        EXPECT_TRUE(is_way(status.carrier, IST_CARRIER_RING)) << ist_carrier_name(status.carrier);
      }
    }
}

// As of any message in slots: its sender has its buffer back at once, and a receive that is too short has what fits.
TEST(SentAgain, ReceivesAreTruncatedAndProbed) {
  if (rank() > 1 || size() < 2 || !has_room()) return;
  static const auto bytes = random_bytes(kAgain, 8);
  const auto count = static_cast<std::int64_t>(kAgain);
  if (rank() == 0) {
    for (int i = 0; i < 3; ++i) {
      ist_request request = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_isend(ist_host(bytes.data()), count, IST_BYTE, 1, kTag, comm(), &request));
      IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
    }
    return;
  }
  std::vector<unsigned char> found(kAgain);
  ist_status status{};
  IST_OK_OR_FAIL(ist_recv(ist_host(found.data()), count, IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE));
  IST_OK_OR_FAIL(ist_probe(0, kTag, comm(), &status));
  EXPECT_EQ(count, status.bytes);
  std::vector<unsigned char> little(1000 + 2, 0xa5);
  EXPECT_EQ(IST_ERR_TRUNCATE, ist_recv(ist_host(little.data() + 1), 1000, IST_BYTE, 0, kTag, comm(), &status));
  EXPECT_TRUE(are_as_expected(little, {bytes.begin(), bytes.begin() + 1000}, 1));
  IST_OK_OR_FAIL(ist_recv(ist_host(found.data()), count, IST_BYTE, 0, kTag, comm(), &status));
  EXPECT_EQ(-1, first_difference(bytes, found));
}

}  // namespace
