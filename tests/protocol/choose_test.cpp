// Which carrier for which message, on invented machines: every carrier wins somewhere, and every limit is where it is said.
#include "protocol/choose.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "invented_messages.hpp"

namespace ist {
namespace {

const std::vector<Case>& table() {
  static const MachineProfile usual;
  static const std::vector<Case> cases{
      {"nothing at all", usual, shape(0), IST_CARRIER_SLOT},
      {"one byte", usual, shape(1), IST_CARRIER_SLOT},
      {"one below the slot's limit", usual, shape(215), IST_CARRIER_SLOT},
      {"the slot's limit", usual, shape(216), IST_CARRIER_SLOT},
      {"one past the slot's limit", usual, shape(217), IST_CARRIER_CELL},
      {"one below the cell's limit", usual, shape(65535), IST_CARRIER_CELL},
      {"the cell's limit", usual, shape(65536), IST_CARRIER_CELL},
      {"one past the cell's limit", usual, shape(65537), IST_CARRIER_RING},
      {"few bytes where the receiver could copy them from their place", usual, shown(8), IST_CARRIER_SLOT},
      {"where one copy costs as much as the announcement", usual, shown(16384), IST_CARRIER_DIRECT},
      {"as much as fits a slot, from there", usual, shown(65536), IST_CARRIER_DIRECT},
      {"one past it", usual, shown(65537), IST_CARRIER_DIRECT},
      {"beyond 4 GiB", usual, shape((std::uint64_t{1} << 32) + 1), IST_CARRIER_RING},
      {"a cheap cell beats a dear slot", cheap_cells(), shape(8), IST_CARRIER_CELL},
      {"a device never writes into a slot", usual, shape(1, KindId::cuda), IST_CARRIER_CELL},
      {"nor does another kind of device", usual, shape(216, KindId::opencl), IST_CARRIER_CELL},
      {"a device at the cell's limit", usual, shape(65536, KindId::cuda), IST_CARRIER_CELL},
      {"a device one past the cell's limit", usual, shape(65537, KindId::cuda), IST_CARRIER_RING},
      {"an eager message is not announced, however cheap that is", free_handshake(), shape(100), IST_CARRIER_SLOT},
      {"not even to itself", free_handshake(), shape(65536, KindId::host, true), IST_CARRIER_CELL},
      {"one past the cell's limit, to itself", usual, shape(65537, KindId::host, true), IST_CARRIER_DIRECT},
      {"a device whose receiver lends", usual, lent(8), IST_CARRIER_DEVICE},
      {"much of it", usual, lent(mebibytes(64).value), IST_CARRIER_DEVICE},
      {"a device where copies between devices are dear", slow_link(), lent(mebibytes(1).value), IST_CARRIER_RING},
      {"a small one there", slow_link(), lent(8), IST_CARRIER_DEVICE},
      {"a small one with a worker", usual, with_worker(8), IST_CARRIER_DEVICE},
      {"a small one with a worker, where copies between devices are dear", dear_copies(), with_worker(8), IST_CARRIER_CELL},
      {"nothing, with a worker", usual, with_worker(0), IST_CARRIER_DEVICE},
      {"as much as it copies, where copies between devices are dear", dear_copies(), with_worker(2048), IST_CARRIER_CELL},
      {"one past what it copies", dear_copies(), with_worker(2049), IST_CARRIER_DEVICE},
      {"as much as it copies, where one copy costs less", usual, with_worker(2048), IST_CARRIER_DEVICE},
      {"a worker that copies nothing", usual, with_worker(8, 0), IST_CARRIER_DEVICE},
      {"a byte where there is a mailbox", usual, with_mailbox(1), IST_CARRIER_MAILBOX},
      {"a small one there", usual, with_mailbox(512), IST_CARRIER_MAILBOX},
      {"as much as it holds", dear_copies(), with_mailbox(2048), IST_CARRIER_MAILBOX},
      {"one past that", dear_copies(), with_mailbox(2049), IST_CARRIER_DEVICE},
      {"nothing, where there is a mailbox", usual, with_mailbox(0), IST_CARRIER_DEVICE},
      {"where it costs more than one copy", dear_mail(), with_mailbox(8), IST_CARRIER_DEVICE},
      {"a mailbox that holds nothing", usual, with_mailbox(8, 0), IST_CARRIER_DEVICE},
      {"a device to itself", usual, shape(mebibytes(8).value, KindId::cuda, true), IST_CARRIER_DIRECT},
  };
  return cases;
}

TEST(Choose, TheCheapestOfWhatIsPossible) {
  for (const Case& one : table()) EXPECT_EQ(choose(one.message, one.machine), one.carrier) << one.why;
}

TEST(Choose, EveryCarrierWinsSomewhere) {
  for (const ist_carrier carrier :
       {IST_CARRIER_SLOT, IST_CARRIER_CELL, IST_CARRIER_RING, IST_CARRIER_DIRECT, IST_CARRIER_DEVICE, IST_CARRIER_MAILBOX}) {
    int wins = 0;
    for (const Case& one : table()) wins += choose(one.message, one.machine) == carrier;
    EXPECT_GT(wins, 0) << ist_carrier{carrier};
  }
}

TEST(Choose, ALinkWithoutSlotsOrCellsAnnouncesEverythingItMust) {
  const MachineProfile machine;
  const MessageShape no_slots{Bytes{1}, KindId::host, false, Bytes{}, kCellLimit};
  EXPECT_EQ(choose(no_slots, machine), IST_CARRIER_CELL);
  const MessageShape nothing{Bytes{1}, KindId::host, false, Bytes{}, Bytes{}};
  EXPECT_EQ(choose(nothing, machine), IST_CARRIER_RING);
  const MessageShape device{Bytes{1}, KindId::cuda, true, Bytes{}, Bytes{}};
  EXPECT_EQ(choose(device, machine), IST_CARRIER_DIRECT);
}

using Price = double (*)(const MessageShape&, const MachineProfile&);
constexpr Price kPrices[] = {price::slot, price::cell, price::ring, price::direct, price::device, price::mailbox};

TEST(Price, NeverFallsWithTheNumberOfBytes) {
  for (const Price price : kPrices)
    for (const KindId kind : {KindId::host, KindId::cuda})
      for (const bool same_process : {false, true}) {
        double before = 0;
        for (std::uint64_t bytes = 0; bytes < (std::uint64_t{1} << 34); bytes = bytes * 3 / 2 + 1) {
          const double now = price(shape(bytes, kind, same_process), MachineProfile{});
          EXPECT_GT(now, 0) << bytes;
          EXPECT_GE(now, before) << bytes;
          before = now;
        }
      }
}

TEST(Price, RisesWithTheBytesWhereverTheCarrierIsPossible) {
  for (const KindId kind : {KindId::host, KindId::cuda}) {
    EXPECT_GT(price::cell(shape(65536, kind), MachineProfile{}), price::cell(shape(1, kind), MachineProfile{}));
    EXPECT_GT(price::ring(shape(65536, kind), MachineProfile{}), price::ring(shape(1, kind), MachineProfile{}));
    EXPECT_GT(price::direct(shape(65536, kind, true), MachineProfile{}),
              price::direct(shape(1, kind, true), MachineProfile{}));
  }
  EXPECT_GT(price::slot(shape(216), MachineProfile{}), price::slot(shape(1), MachineProfile{}));
}

TEST(Price, OfTheImpossibleIsInfinite) {
  const MachineProfile machine;
  EXPECT_TRUE(std::isinf(price::slot(shape(217), machine)));
  EXPECT_TRUE(std::isinf(price::slot(shape(1, KindId::cuda), machine)));
  EXPECT_TRUE(std::isinf(price::cell(shape(65537), machine)));
  EXPECT_TRUE(std::isinf(price::ring(shape(65537, KindId::host, true), machine)));
  EXPECT_TRUE(std::isinf(price::direct(shape(65537), machine)));
  EXPECT_TRUE(std::isinf(price::device(shape(65537, KindId::cuda), machine)));
  EXPECT_TRUE(std::isinf(price::mailbox(with_mailbox(2049), machine)));
  EXPECT_TRUE(std::isinf(price::mailbox(with_mailbox(0), machine)));
  EXPECT_TRUE(std::isinf(price::mailbox(with_worker(8), machine)));
}

// What people are shown is what was chosen by.
TEST(Price, IsTheSumOfTheTermsThatAreShownAndWhatIsRefusedHasAReason) {
  constexpr std::array kCarriers{IST_CARRIER_SLOT,   IST_CARRIER_CELL,   IST_CARRIER_RING,
                                 IST_CARRIER_DIRECT, IST_CARRIER_DEVICE, IST_CARRIER_MAILBOX};
  for (const MachineProfile& machine : {MachineProfile{}, cheap_cells(), free_handshake()})
    for (const KindId kind : {KindId::host, KindId::cuda})
      for (const bool same_process : {false, true})
        for (const std::uint64_t bytes : {0ULL, 1ULL, 216ULL, 217ULL, 65536ULL, 65537ULL, 1ULL << 33}) {
          const auto all = offers(shape(bytes, kind, same_process), machine);
          ASSERT_EQ(all.size(), std::size(kPrices));
          for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(all[i].carrier, kCarriers[i]);
            EXPECT_EQ(all[i].price.seconds(), kPrices[i](shape(bytes, kind, same_process), machine));
            EXPECT_EQ(all[i].price.refused() != nullptr, std::isinf(all[i].price.seconds()));
            double sum = 0;
            for (const Term& term : all[i].price.terms()) sum += term.seconds;
            if (all[i].price.refused() == nullptr) {
              EXPECT_EQ(sum, all[i].price.seconds());
            }
          }
        }
}

TEST(StoresInStream, AreShortAndTheMoreSoTheNarrowerTheWordsAre) {
  MachineProfile machine;
  machine.device_link_beta = 0;
  // Words of 16 bytes go by 36.6 ps a byte, and those of 8, 4 and 1 by 2, 4 and 16 times as much.
  const auto last = [&](std::uint64_t apart) {
    std::uint64_t bytes = 0;
    for (std::uint64_t step = 1 << 30; step > 0; step /= 2)
      if (stores_in_stream(Bytes{bytes + step}, apart, machine)) bytes += step;
    EXPECT_TRUE(stores_in_stream(Bytes{bytes}, apart, machine));
    EXPECT_FALSE(stores_in_stream(Bytes{bytes + 1}, apart, machine));
    return bytes;
  };
  machine.device_copy_alpha = 36.6e-6;
  EXPECT_NEAR(static_cast<double>(last(0)), 1e6, 1);
  EXPECT_EQ(last(1 << 20), last(0));
  EXPECT_NEAR(static_cast<double>(last(8)), 1e6 / 2, 1);
  EXPECT_NEAR(static_cast<double>(last(4)), 1e6 / 4, 1);
  EXPECT_NEAR(static_cast<double>(last(2)), 1e6 / 16, 1);
  EXPECT_NEAR(static_cast<double>(last(7)), 1e6 / 16, 1);
  machine.device_link_alpha = 3.66e-6;
  EXPECT_NEAR(static_cast<double>(last(0)), 1e5, 1);
  machine.device_link_beta = 0.0366e-9 / 2;
  EXPECT_NEAR(static_cast<double>(last(0)), 2e5, 1);
}

TEST(RingFill, BetweenHostsIsTheSettingWhateverTheMessage) {
  Settings settings;
  settings.ring_slot_host = kibibytes(48);
  for (const std::uint64_t bytes : {std::uint64_t{1}, kibibytes(48).value, mebibytes(64).value})
    EXPECT_EQ(ring_fill(Bytes{bytes}, true, settings), kibibytes(48)) << bytes;
}

TEST(RingFill, WithADeviceIsHalfTheMessageFrom256KiBUpToTheSetting) {
  Settings settings;
  settings.ring_slot_device = mebibytes(1);
  const auto fill = [&](std::uint64_t bytes) { return ring_fill(Bytes{bytes}, false, settings).value; };
  constexpr std::uint64_t kKibi = 1024;
  EXPECT_EQ(fill(1), 256 * kKibi);
  EXPECT_EQ(fill(512 * kKibi - 1), 256 * kKibi);
  EXPECT_EQ(fill(512 * kKibi), 256 * kKibi);
  EXPECT_EQ(fill(512 * kKibi + 2), 256 * kKibi + 1);
  EXPECT_EQ(fill(1024 * kKibi), 512 * kKibi);
  EXPECT_EQ(fill(2048 * kKibi - 1), 1024 * kKibi - 1);
  EXPECT_EQ(fill(2048 * kKibi), 1024 * kKibi);
  EXPECT_EQ(fill(2048 * kKibi + 2), 1024 * kKibi);
  EXPECT_EQ(fill(std::uint64_t{1} << 33), 1024 * kKibi);
}

TEST(RingFill, ASettingBelowTheLeastIsObeyed) {
  Settings settings;
  settings.ring_slot_device = kibibytes(16);
  for (const std::uint64_t bytes : {std::uint64_t{1}, kibibytes(512).value, mebibytes(8).value})
    EXPECT_EQ(ring_fill(Bytes{bytes}, false, settings), kibibytes(16)) << bytes;
}

// A piece is copied out while the next one is copied in; a device's memory takes no pieces, nor does who waits for nothing.
TEST(SlotPrice, OfALongMessageWhoseSenderBlocksIsThatOfOneCopyAndOfThePieceBehindIt) {
  const MachineProfile machine;
  const auto price_of = [&](std::uint64_t bytes, bool blocking, KindId to = KindId::none) {
    MessageShape message = shape(bytes);
    message.slot_limit = kibibytes(64);
    message.mode.blocking = blocking;
    message.to.kind = to;
    return (price::slot(message, machine) - machine.slot_alpha) / machine.host_copy_beta;
  };
  EXPECT_NEAR(2 * 65536, price_of(65536, false), 1);
  EXPECT_NEAR(65536 + 8192, price_of(65536, true), 1);
  EXPECT_NEAR(8193 + 8192, price_of(8193, true), 1);
  EXPECT_NEAR(2 * 8192, price_of(8192, true), 1);
  EXPECT_LT(2 * 65536, price_of(65536, true, KindId::cuda));
}

}  // namespace
}  // namespace ist
