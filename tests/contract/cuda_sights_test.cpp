// Copies whose end is seen before their event: out of a device by the bytes themselves, and few bytes into one as values of the stream.
#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "cuda_support.hpp"
#include "memory/cuda/cuda_sights.hpp"

namespace ist::test {
namespace {

TEST(CudaSight, sees_bytes_only_when_none_of_their_eights_is_what_it_was) {
  constexpr std::uint64_t kBefore = 0x1122334455667788;
  for (const std::size_t size : {1U, 3U, 7U, 8U, 9U, 15U, 16U, 63U, 64U, 65U}) {
    alignas(8) std::array<std::byte, 72> place{};
    for (std::size_t i = 0; i < place.size(); i += 8) std::memcpy(&place[i], &kBefore, 8);
    CudaSight sight{place.data(), size, kBefore};
    EXPECT_FALSE(sight.empty());
    // The last ones first: what is seen must not depend on the order.
    for (std::size_t end = size; end > 0; end = (end - 1) / 8 * 8) {
      EXPECT_FALSE(sight.came()) << size << " bytes, up to " << end << " not there";
      place[end - 1] ^= std::byte{1};
    }
    EXPECT_TRUE(sight.came()) << size;
  }
}

TEST(CudaSight, is_asked_after_where_nothing_comes_for_long) {
  EXPECT_TRUE(CudaSight{}.empty());
  const std::uint64_t before = 1;
  const CudaSight sight{reinterpret_cast<const std::byte*>(&before), sizeof before, before};
  std::this_thread::sleep_for(2 * CudaSight::kPatience);
  EXPECT_TRUE(sight.should_ask());
}

class CudaSightsOfCopies : public CudaCopyTest {
 protected:
  static constexpr unsigned char kPoison = 0xa5;
  static constexpr std::uint64_t kAround = 64;
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped()) take_memory();
  }
  Piece own(std::uint64_t at, std::uint64_t size) const { return own_host_piece(bytes() + at, Bytes{size}); }
  Piece device(std::uint64_t at, std::uint64_t size) const { return piece.part(Offset{at}, Bytes{size}); }
  // Fills the device's memory.
  void set(const Data& data, std::uint64_t at = 0) {
    Data copy = data;
    Ticket in = must(kind->copy(device(at, copy.size()), host_piece(copy.data(), Bytes{copy.size()}), {}));
    must(finish(in));
  }
  Data get(std::uint64_t at, std::uint64_t size) {
    Data out(size);
    Ticket ticket = must(kind->copy(host_piece(out.data(), Bytes{size}), device(at, size), {}));
    must(finish(ticket));
    return out;
  }
  static std::uint64_t calls(const char* call) { return is_fake() ? fake_calls(call) : 0; }
  // Into the device at `at`, whatever carries it: all of the bytes and nothing beside them.
  void put_and_compare(std::uint64_t at, std::uint64_t size) {
    const Data data = random_bytes(size);
    set(Data(size + 2 * kAround, kPoison), at - kAround);
    std::copy(data.begin(), data.end(), bytes());
    Ticket in = must(kind->copy(device(at, size), host(0, size), {}));
    must(finish(in));
    Data right(size + 2 * kAround, kPoison);
    std::copy(data.begin(), data.end(), right.begin() + kAround);
    EXPECT_TRUE(get(at - kAround, right.size()) == right) << size << " bytes at " << at;
  }
};

TEST_F(CudaSightsOfCopies, bytes_out_of_a_device_are_all_there_when_they_are_seen) {
  for (const std::uint64_t size :
       std::initializer_list<std::uint64_t>{0, 1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 1023, 1024, 1025, 4096}) {
    for (const std::uint64_t at : std::initializer_list<std::uint64_t>{0, 8, 4, 1}) {
      const std::uint64_t start = size % 3 == 0 ? 0 : size % 3 == 1 ? 8 : 3;
      const Data data = random_bytes(size);
      if (size > 0) set(data, start);
      std::fill_n(bytes(), size + 2 * kAround, kPoison);
      Ticket out = must(kind->copy(own(kAround + at, size), device(start, size), {}));
      must(finish(out));
      EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes() + kAround + at)) << size << " bytes to " << at;
      EXPECT_EQ(std::count(bytes(), bytes() + kAround + at, kPoison), static_cast<std::ptrdiff_t>(kAround + at)) << size;
      EXPECT_EQ(std::count(bytes() + kAround + at + size, bytes() + 2 * kAround + size, kPoison),
                static_cast<std::ptrdiff_t>(kAround - at))
          << size;
    }
  }
}

TEST_F(CudaSightsOfCopies, bytes_that_are_what_stood_there_are_told_of_by_the_event) {
  std::unique_ptr<MemoryKind> fresh = must(make_cuda_kind(api));  // its first filling is known
  const std::uint64_t filling = CudaSights::kFirstFilling;
  Data data(512);
  for (std::size_t i = 0; i < data.size(); i += 8) std::memcpy(&data[i], &filling, 8);
  CUstream stream = make_stream(primary());
  Piece behind = piece.part(Offset{}, Bytes{data.size()});
  behind.queue = reinterpret_cast<std::uint64_t>(stream);
  set(data);
  std::fill_n(bytes(), data.size(), kPoison);
  Gate gate;
  gate.close(api, stream);
  Ticket ready = must(fresh->streams()->ready(behind));
  Ticket out = must(fresh->copy(own(0, data.size()), behind, ready));
  // The place is full of what will come, and that says nothing.
  EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes()));
  for (int look = 0; look < 1000; ++look) EXPECT_FALSE(must(fresh->finished(out)));
  const std::uint64_t asked = calls("cuEventQuery");
  gate.open();
  must(finish(out));
  if (is_fake()) {
    EXPECT_GT(calls("cuEventQuery"), asked);
  }
}

TEST_F(CudaSightsOfCopies, what_comes_after_pending_work_is_not_seen_before_it) {
  CUstream stream = make_stream(primary());
  Piece behind = device(0, 256);
  behind.queue = reinterpret_cast<std::uint64_t>(stream);
  for (const bool in_order : {false, true}) {
    set(Data(256, 1));
    Gate gate;
    fill_behind(gate, stream, piece.object, 256, 7);
    Ticket ready = must(in_order ? kind->streams()->in_order(behind) : kind->streams()->ready(behind));
    Ticket out = must(kind->copy(own(0, 256), behind, ready));
    for (int look = 0; look < 1000; ++look) EXPECT_FALSE(must(kind->finished(out)));
    gate.open();
    must(finish(out));
    EXPECT_EQ(std::count(bytes(), bytes() + 256, 7), 256) << in_order;
  }
}

// What a device of no vendor's might do: 8 bytes in two halves.
TEST_F(CudaSightsOfCopies, bytes_that_come_after_they_were_seen_end_the_trial_and_are_waited_for) {
  CudaSights sights{api};
  const Piece from = device(0, 64);
  std::array<std::uint64_t, 8> words{};
  const auto see = [&](std::uint64_t value) {
    CudaSight sight = sights.expect(0, own_host_piece(words.data(), Bytes{sizeof words}), from);
    if (sight.empty()) return sight;
    EXPECT_FALSE(sight.came());
    words.fill(value);
    EXPECT_TRUE(sight.came());
    if (sight.on_trial()) sight.note();
    return sight;
  };
  sights.judge(0, see(5));
  EXPECT_TRUE(see(6).on_trial());
  for (int i = 0; i < CudaSights::kTrials; ++i) sights.judge(0, see(7));
  EXPECT_FALSE(see(8).empty());
  EXPECT_FALSE(see(8).on_trial()) << "once believed";
  const CudaSight late = sights.expect(1, own_host_piece(words.data(), Bytes{sizeof words}), from);
  EXPECT_EQ(late.was_right(), std::nullopt) << "never seen: the event was first";
  CudaSight torn = late;
  words.fill(9);
  EXPECT_TRUE(torn.came());
  torn.note();
  words[7] = 10;
  torn.note();
  EXPECT_EQ(torn.was_right(), false);
  sights.judge(1, torn);
  EXPECT_TRUE(sights.expect(1, own_host_piece(words.data(), Bytes{sizeof words}), from).empty());
  EXPECT_FALSE(see(11).empty()) << "the other device's are seen";
}

TEST_F(CudaSightsOfCopies, are_all_on_trial_where_that_is_wanted) {
  for (const bool check : {false, true}) {
    const std::unique_ptr<MemoryKind> checked = must(make_cuda_kind(api, {.check = check}));
    std::uint64_t asked = 0;
    for (int i = 0; i < CudaSights::kTrials + 200; ++i) {
      const Data data = random_bytes(64);
      set(data);
      const std::uint64_t before = calls("cuEventQuery");
      Ticket out = must(checked->copy(own(0, 64), device(0, 64), {}));
      must(finish(out));
      asked += calls("cuEventQuery") > before ? 1 : 0;
      EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes())) << i;
    }
    if (is_fake()) {
      EXPECT_GE(asked, check ? CudaSights::kTrials + 200U : std::uint64_t{CudaSights::kTrials});
    }
  }
}

TEST_F(CudaSightsOfCopies, few_bytes_into_a_device_are_values_and_nothing_beside_them_changes) {
  for (const std::uint64_t size : std::initializer_list<std::uint64_t>{1, 2, 3, 4, 5, 8, 12, 16, 20, 24, 25, 28, 32}) {
    for (const std::uint64_t at : std::initializer_list<std::uint64_t>{256, 260, 258, 257}) {
      const std::uint64_t before = calls("cuStreamBatchMemOp_v2");
      put_and_compare(at, size);
      if (is_fake()) {
        EXPECT_EQ(calls("cuStreamBatchMemOp_v2") - before, size % 4 == 0 && at % 4 == 0 && size <= 24 ? 1U : 0U)
            << size << " bytes at " << at;
      }
    }
  }
}

// The word of each is its own, and there are only so many: the others are copied.
TEST_F(CudaSightsOfCopies, as_many_under_way_as_have_words_and_more) {
  constexpr std::uint64_t kEach = 16;
  constexpr std::uint64_t kCopies = 700;
  for (int round = 0; round < 3; ++round) {
    const Data data = random_bytes(kCopies * kEach);
    std::copy(data.begin(), data.end(), bytes());
    std::vector<Ticket> under_way;
    for (std::uint64_t i = 0; i < kCopies; ++i)
      under_way.push_back(must(kind->copy(device(i * kEach, kEach), host(i * kEach, kEach), {})));
    for (std::size_t i = 0; i < under_way.size(); ++i) must(finish(under_way[(i * 37) % under_way.size()]));
    EXPECT_TRUE(get(0, data.size()) == data) << round;
    const std::uint64_t before = calls("cuStreamBatchMemOp_v2");
    put_and_compare(256, 8);
    if (is_fake()) {
      EXPECT_EQ(calls("cuStreamBatchMemOp_v2"), before + 1) << "words are free again";
    }
  }
}

TEST_F(CudaSightsOfCopies, where_the_driver_refuses_values_they_are_copied_and_it_is_not_asked_again) {
  NEEDS_FAKE("refuse a call");
  fake_fail("cuStreamBatchMemOp_v2", 0, CUDA_ERROR_NOT_SUPPORTED);
  const std::uint64_t before = calls("cuStreamBatchMemOp_v2");
  for (int i = 0; i < 3; ++i) put_and_compare(256, 8);
  EXPECT_EQ(calls("cuStreamBatchMemOp_v2"), before + 1);
}

TEST_F(CudaSightsOfCopies, one_error_of_the_driver_is_no_reason_to_write_no_values) {
  NEEDS_FAKE("refuse a call");
  const std::uint64_t before = calls("cuStreamBatchMemOp_v2");
  fake_fail("cuStreamBatchMemOp_v2", 0, CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 3; ++i) put_and_compare(256, 8);
  EXPECT_EQ(calls("cuStreamBatchMemOp_v2"), before + 3);
}

TEST_F(CudaSightsOfCopies, bytes_that_do_not_lie_alike_wait_for_the_event) {
  NEEDS_FAKE("count calls");
  fake_delay(0);
  const Data data = random_bytes(64);
  set(data, 3);
  const std::uint64_t asked = calls("cuEventQuery");
  Ticket out = must(kind->copy(own(0, 64), device(3, 64), {}));
  must(finish(out));
  EXPECT_GT(calls("cuEventQuery"), asked);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes()));
}

// By then the copy is over, too.
TEST_F(CudaSightsOfCopies, what_does_not_come_and_cannot_be_asked_after_is_an_error) {
  NEEDS_FAKE("refuse a question");
  CUstream stream = make_stream(primary());
  for (const bool into_device : {false, true}) {
    Piece there = device(0, 8);
    there.queue = reinterpret_cast<std::uint64_t>(stream);
    const auto value = static_cast<unsigned char>(into_device ? 3 : 4);
    std::fill_n(bytes(), 8, value);
    Gate gate;
    fill_behind(gate, stream, there.object, 8, into_device ? 8 : value);
    Ticket before = must(kind->streams()->ready(there));
    Ticket copied = must(into_device ? kind->copy(there, host(0, 8), before) : kind->copy(own(64, 8), there, before));
    std::atomic<bool> opened{false};
    std::thread opener = open_later(gate, opened);
    fake_fail("cuEventQuery", 0, CUDA_ERROR_UNKNOWN);
    const Status status = finish(copied);
    EXPECT_TRUE(opened) << "the copy still waits for the work before it";
    EXPECT_EQ(status.code(), IST_ERR_DEVICE) << into_device;
    EXPECT_NE(status.text().find("cuEventQuery"), std::string::npos) << status.text();
    opener.join();
    must(finish(before));
    EXPECT_EQ(into_device ? fake_bytes(there.object, 8) : Data(bytes() + 64, bytes() + 72), Data(8, value)) << into_device;
  }
}

TEST_F(CudaSightsOfCopies, values_whose_event_is_refused_are_copied) {
  NEEDS_FAKE("refuse a call");
  set(Data(8, kPoison), 256);
  const Data data = random_bytes(8);
  std::copy(data.begin(), data.end(), bytes());
  fake_fail("cuEventRecord", 0, CUDA_ERROR_UNKNOWN);
  Ticket in = must(kind->copy(device(256, 8), host(0, 8), {}));
  must(finish(in));
  EXPECT_TRUE(get(256, 8) == data);
}

TEST_F(CudaSightsOfCopies, a_lost_context_is_an_error_and_nobody_waits) {
  NEEDS_FAKE("lose a context");
  CUcontext mine = make_context();
  const Current scope(api, mine);
  CUdeviceptr memory = 0;
  must(api, api.cuMemAlloc_v2(&memory, 64), "cuMemAlloc");
  Piece there = device_piece(memory, 8);
  must(kind->check(there));
  CUstream stream = make_stream(mine);
  Gate gate;
  gate.close(api, stream);
  fake_bad_kernel(stream);
  there.queue = reinterpret_cast<std::uint64_t>(stream);
  Ticket ready = must(kind->streams()->ready(there));
  Ticket out = must(kind->copy(own(0, 8), there, ready));
  gate.open();
  EXPECT_EQ(finish(out).code(), IST_ERR_DEVICE);
}

}  // namespace
}  // namespace ist::test
