// Order, lanes, and events that are used again.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "cuda_support.hpp"

namespace {
// What this thread has allocated, counted while it asks for it.
thread_local bool counting = false;
thread_local int allocations = 0;
}  // namespace

__attribute__((noinline)) void* operator new(std::size_t size) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ist::test {
namespace {

std::atomic<int> waits{0};
decltype(CudaApi::cuStreamWaitEvent) real_wait = nullptr;
CUresult counted_wait(CUstream stream, CUevent event, unsigned flags) {
  ++waits;
  return real_wait(stream, event, flags);
}

class CudaTickets : public CudaCopyTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    real_wait = api.cuStreamWaitEvent;
    CudaApi counted = api;
    counted.cuStreamWaitEvent = counted_wait;
    kind = must(make_cuda_kind(counted));
    waits = 0;
    take_memory();
  }
};

TEST_F(CudaTickets, a_copy_after_one_of_its_own_direction_follows_without_an_event) {
  Ticket before;
  for (int i = 0; i < 20; ++i) before = must(kind->copy(piece, host(), before));
  EXPECT_EQ(waits, 0);
  Ticket other_way = must(kind->copy(host(), piece, before));
  EXPECT_EQ(waits, 1) << "the other direction has its own lanes";
  must(finish(other_way));
}

TEST_F(CudaTickets, copies_chained_by_tickets_run_in_order_in_all_directions) {
  const Piece second = must(kind->allocate(0, Bytes{kSize}));
  for (int round = 0; round < 20; ++round) {
    const Data data = random_bytes(kSize);
    std::copy(data.begin(), data.end(), bytes());
    Ticket a = must(kind->copy(piece, host(), {}));
    Ticket b = must(kind->copy(second, piece, a));
    Ticket c = must(kind->copy(host(), second, b));
    Ticket d = must(kind->copy(piece.part(Offset{0}, Bytes{0}), second.part(Offset{0}, Bytes{0}), c));
    must(finish(d));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes())) << "round " << round;
    for (Ticket* each : {&a, &b, &c}) EXPECT_TRUE(must(kind->finished(*each))) << "what was before is finished";
  }
  must(kind->release(second));
}

TEST_F(CudaTickets, an_idle_stream_is_ready_at_once_and_a_busy_one_when_its_work_is_done) {
  CUstream blocking = make_stream(primary(), 0);
  CUstream free_stream = make_stream(primary());
  const Current scope(api, primary());
  const std::array<CUstream, 4> streams{blocking, free_stream, nullptr, CU_STREAM_LEGACY};
  unsigned char value = 1;
  for (CUstream stream : streams) {
    piece.queue = reinterpret_cast<std::uint64_t>(stream);
    EXPECT_TRUE(must(kind->streams()->ready(piece)).empty());
    Gate gate;
    fill_behind(gate, stream, piece.object, kSize, ++value);
    Ticket ready = must(kind->streams()->ready(piece));
    Ticket out = must(kind->copy(host(), piece, ready));
    EXPECT_FALSE(ready.empty());
    EXPECT_FALSE(must(kind->finished(ready)));
    EXPECT_FALSE(must(kind->finished(out)));
    gate.open();
    must(finish(out));
    EXPECT_TRUE(must(kind->finished(ready)));
    EXPECT_EQ(std::count(bytes(), bytes() + kSize, value), static_cast<std::ptrdiff_t>(kSize));
    EXPECT_TRUE(must(kind->streams()->ready(piece)).empty());
  }
}

TEST_F(CudaTickets, the_default_stream_is_busy_while_a_stream_it_waits_for_is) {
  CUstream blocking = make_stream(primary(), 0);
  const Current scope(api, primary());
  Gate gate;
  fill_behind(gate, blocking, piece.object, kSize, 3);
  piece.queue = 0;
  Ticket ready = must(kind->streams()->ready(piece));
  EXPECT_FALSE(ready.empty());
  EXPECT_FALSE(must(kind->finished(ready)));
  gate.open();
  must(finish(ready));
  EXPECT_EQ(api.cuStreamQuery(blocking), CUDA_SUCCESS);
}

TEST_F(CudaTickets, the_threads_own_default_stream_is_passed_through) {
  const Current scope(api, primary());
  Gate gate;
  fill_behind(gate, CU_STREAM_PER_THREAD, piece.object, kSize, 5);
  piece.queue = reinterpret_cast<std::uint64_t>(CU_STREAM_PER_THREAD);
  Ticket ready = must(kind->streams()->ready(piece));
  EXPECT_FALSE(ready.empty());
  Ticket out = must(kind->copy(host(), piece, ready));
  gate.open();
  must(finish(out));
  EXPECT_EQ(std::count(bytes(), bytes() + kSize, 5), static_cast<std::ptrdiff_t>(kSize));
  synchronise(CU_STREAM_PER_THREAD);
}

TEST_F(CudaTickets, copies_that_wait_for_slow_streams_do_not_hold_up_others) {
  std::vector<Ticket> slow;
  Gate gate;
  for (std::uint64_t i = 0; i < 3; ++i) {
    CUstream stream = make_stream(primary());
    fill_behind(gate, stream, piece.object + i * 16, 16, 1);
    piece.queue = reinterpret_cast<std::uint64_t>(stream);
    Ticket ready = must(kind->streams()->ready(piece));
    slow.push_back(must(kind->copy(host(i * 16, 16), piece.part(Offset{i * 16}, Bytes{16}), ready)));
  }
  for (int i = 0; i < 20; ++i) {
    Ticket quick = must(kind->copy(host(4096, 4096), piece.part(Offset{4096}, Bytes{4096}), {}));
    must(finish(quick));
  }
  for (Ticket& each : slow) EXPECT_FALSE(must(kind->finished(each)));
  gate.open();
  for (Ticket& each : slow) must(finish(each));
}

TEST_F(CudaTickets, waits_in_streams_need_no_events_and_are_known_to_be_over) {
  StreamOrder* const order = kind->stream_order();
  if (order == nullptr)
    GTEST_SKIP() << "not covered here: kernels in users' streams, since this driver has not what they need";
  if (is_fake()) fake_delay(0);
  std::fill(bytes(), bytes() + sizeof(std::uint64_t), static_cast<unsigned char>(0));
  WordWait met{WordWait::How::greater_equal};
  met.abort_word = reinterpret_cast<const std::uint32_t*>(bytes());
  const Piece word = piece.part(Offset{0}, Bytes{8});
  const auto wait_on = [&](CUstream stream) { must(order->wait_in(reinterpret_cast<std::uint64_t>(stream), word, met)); };
  // The answer takes a copy, and is no where it does not come soon.
  const auto comes_over = [&] {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (!cuda().over() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return cuda().over();
  };
  constexpr std::size_t kHeld = 20;
  const CUstream held = make_stream(primary()), passing = make_stream(primary());
  for (std::size_t i = 0; i < 200; ++i) {
    wait_on(passing);
    synchronise(passing);
  }
  EXPECT_TRUE(comes_over());
  Gate gate;
  fill_behind(gate, held, piece.object + 8, 8, 1);
  for (std::size_t i = 0; i < kHeld; ++i) wait_on(held);
  for (std::size_t i = 0; i < 400; ++i) {
    wait_on(passing);
    synchronise(passing);
  }
  EXPECT_FALSE(cuda().over()) << "those behind the gate still hold their stream";
  gate.open();
  synchronise(held);
  EXPECT_TRUE(comes_over());
  EXPECT_EQ(cuda().events(), 0U);
}

TEST_F(CudaTickets, puts_with_signals_in_streams_are_one_launch_or_a_copy_and_a_word) {
  StreamOrder* const order = kind->stream_order();
  if (order == nullptr)
    GTEST_SKIP() << "not covered here: kernels in users' streams, since this driver has not what they need";
  const CUstream stream = make_stream(primary());
  constexpr std::uint64_t kFrom = 1 << 16, kTo = 1 << 18, kMost = 8209, kAround = 32, kHalf = std::uint64_t{1} << 40;
  const Piece word = piece.part(Offset{0}, Bytes{8});
  std::fill(bytes(), bytes() + kSize, static_cast<unsigned char>(0));
  Ticket zeros = must(kind->copy(piece, host(), {}));
  must(finish(zeros));
  std::uint64_t expected = 0;
  const auto count = [](const char* call) { return is_fake() ? fake_calls(call) : 0; };
  const auto put = [&](std::uint64_t size, std::uint64_t off, bool adds, bool stores, bool from_host) {
    const std::string what = std::to_string(size) + " bytes" + (off != 0 ? " that lie otherwise" : "") +
                             (adds ? ", added" : ", set") + (stores ? ", stored" : ", copied") +
                             (from_host ? ", of the host" : "");
    const Data data = random_bytes(size);
    std::copy(data.begin(), data.end(), bytes() + kFrom + off);
    std::fill_n(bytes() + kTo - kAround, size + 2 * kAround, static_cast<unsigned char>(0xa5));
    Ticket ready = must(kind->copy(piece.part(Offset{kFrom}, Bytes{kSize - kFrom}), host(kFrom, kSize - kFrom), {}));
    must(finish(ready));
    StreamPut one{piece.part(Offset{kTo}, Bytes{size}),
                  piece.part(Offset{kFrom + off}, Bytes{size}),
                  word,
                  kHalf + size,
                  adds,
                  stores};
    if (from_host) one.from = host(kFrom + off, size);
    if (size == 0) one.to = one.from = {};
    expected = adds ? expected + one.value : one.value;
    const std::uint64_t launches = count("cuLaunchKernel"), copies = count("cuMemcpyAsync"),
                        words = count("cuStreamWriteValue64_v2");
    must(order->put_signal_in(reinterpret_cast<std::uint64_t>(stream), piece, one));
    const bool copied = size != 0 && (from_host || !stores);
    const bool by_kernel = !copied || adds;
    if (is_fake()) {
      EXPECT_EQ(count("cuLaunchKernel"), launches + (by_kernel ? 1 : 0)) << what;
      EXPECT_EQ(count("cuMemcpyAsync"), copies + (copied ? 1 : 0)) << what;
      EXPECT_EQ(count("cuStreamWriteValue64_v2"), words + (by_kernel ? 0 : 1)) << what;
    }
    synchronise(stream);
    Ticket back = must(kind->copy(host(), piece, {}));
    must(finish(back));
    Data found(bytes() + kTo - kAround, bytes() + kTo + size + kAround), right(size + 2 * kAround, 0xa5);
    std::copy(data.begin(), data.end(), right.begin() + kAround);
    EXPECT_TRUE(found == right) << what;
    std::uint64_t came = 0;
    std::memcpy(&came, bytes(), sizeof came);
    EXPECT_EQ(came, expected) << what;
  };
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{15}, std::uint64_t{16}, kMost - 1, kMost})
    for (const std::uint64_t off : {0, 1, 4, 8})
      for (const bool adds : {false, true})
        for (const bool stores : {false, true}) put(size, off, adds, stores, false);
  for (const bool adds : {false, true}) put(kMost, 0, adds, true, true);
}

TEST_F(CudaTickets, a_hundred_thousand_copies_need_no_more_events_than_were_in_flight) {
  if (is_fake()) fake_delay(0);
  const int copies = is_fake() && !long_tests() ? 20000 : 100000;
  std::array<Ticket, 8> flight;
  for (int i = 0; i < copies; ++i) {
    Ticket& slot = flight[static_cast<std::size_t>(i) % flight.size()];
    must(finish(slot));
    slot = i % 2 ? must(kind->copy(piece.part(Offset{0}, Bytes{8}), host(0, 8), {}))
                 : must(kind->copy(host(8, 8), piece.part(Offset{8}, Bytes{8}), {}));
  }
  for (Ticket& each : flight) must(finish(each));
  EXPECT_LE(cuda().events(), flight.size());
  if (is_fake()) fake_delay(50);
}

TEST_F(CudaTickets, dropped_tickets_give_their_events_back_when_the_work_is_done) {
  for (int i = 0; i < 2000; ++i) {
    Ticket dropped = must(kind->copy(piece.part(Offset{0}, Bytes{64}), host(0, 64), {}));
    if (i % 50 == 49) must(finish(dropped));
  }
  CUstream stream = make_stream(primary());
  piece.queue = reinterpret_cast<std::uint64_t>(stream);
  Gate gate;
  fill_behind(gate, stream, piece.object, 16, 1);
  for (int i = 0; i < 100; ++i) static_cast<void>(must(kind->streams()->ready(piece)));
  gate.open();
  synchronise(stream);
  const std::size_t events = cuda().events();
  for (int i = 0; i < 100; ++i) {
    Ticket after = must(kind->copy(piece.part(Offset{0}, Bytes{64}), host(0, 64), {}));
    must(finish(after));
  }
  EXPECT_EQ(cuda().events(), events) << "there were spare ones";
}

TEST_F(CudaTickets, a_finished_ticket_is_empty_and_its_number_is_never_believed_again) {
  Ticket first = must(kind->copy(piece, host(), {}));
  const std::uint64_t id = first.id();
  must(finish(first));
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(first.id(), 0u);
  Ticket stale{kind.get(), id};
  EXPECT_FALSE(kind->finished(stale).ok());
  kind->drop(id);
  kind->drop(~std::uint64_t{0});
  Ticket second = must(kind->copy(piece, host(), {}));
  EXPECT_NE(second.id(), id);
  kind->drop(id);
  must(finish(second));
  stale.forget();
}

TEST_F(CudaTickets, nothing_moves_and_nothing_is_started_for_no_bytes) {
  EXPECT_TRUE(must(kind->copy(device_piece(0, 0), host_piece(nullptr, Bytes{0}), {})).empty());
  EXPECT_TRUE(must(kind->streams()->ready(device_piece(0, 0))).empty());
  EXPECT_FALSE(kind->copy(piece, host(0, 16), {}).ok()) << "sizes differ";
  EXPECT_FALSE(kind->copy(host(0, 16), host(16, 16), {}).ok()) << "nothing of this kind";
}

TEST_F(CudaTickets, four_threads_share_lanes_and_events_without_mixing_bytes) {
  const int rounds = long_tests() ? 20000 : 1500;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::uint64_t at = t * 4096;
      for (int i = 0; i < rounds; ++i) {
        const auto value = static_cast<unsigned char>(static_cast<std::uint64_t>(i) * 7 + t);
        std::fill_n(bytes() + at, 1000, value);
        std::fill_n(bytes() + at + 2000, 1000, static_cast<unsigned char>(~value));
        Ticket in = must(kind->copy(piece.part(Offset{at}, Bytes{1000}), host(at, 1000), {}));
        Ticket out = must(kind->copy(host(at + 2000, 1000), piece.part(Offset{at}, Bytes{1000}), in));
        if (i % 3 != 0) must(finish(in));
        must(finish(out));
        if (std::count(bytes() + at + 2000, bytes() + at + 3000, value) != 1000) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

// A driver that does nothing, at once: what is left is the kind's own work.
CUresult no_copy(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) { return CUDA_SUCCESS; }
CUresult no_record(CUevent, CUstream) { return CUDA_SUCCESS; }
CUresult no_query(CUevent) { return CUDA_SUCCESS; }
CUresult no_push(CUcontext) { return CUDA_SUCCESS; }
CUresult no_pop(CUcontext*) { return CUDA_SUCCESS; }
CUresult no_exchange(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
CUresult no_wait(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
PointerFacts known_facts;
CUresult known_pointer(unsigned, CUpointer_attribute*, void** data, CUdeviceptr) {
  *static_cast<unsigned*>(data[0]) = CU_MEMORYTYPE_DEVICE;
  *static_cast<unsigned*>(data[2]) = 1;
  *static_cast<int*>(data[3]) = 0;
  *static_cast<CUcontext*>(data[6]) = known_facts.context;
  return CUDA_SUCCESS;
}

TEST_F(CudaTickets, a_copy_allocates_nothing_once_warm) {
  known_facts = ask_driver(api, piece.object);
  CudaApi quick = api;
  quick.cuMemcpyAsync = no_copy;
  quick.cuEventRecord = no_record;
  quick.cuEventQuery = no_query;
  quick.cuThreadExchangeStreamCaptureMode = no_exchange;
  quick.cuStreamWaitEvent = no_wait;
  quick.cuPointerGetAttributes = known_pointer;
  const auto own = must(make_cuda_kind(quick));
  const auto round = [&] {
    Ticket in = must(own->copy(piece, host(), {}));
    Ticket out = must(own->copy(host(), piece, in));
    { const Ticket dropped = must(own->copy(piece, host(), out)); }
    must(own->finished(in));
    must(own->finished(out));
  };
  for (int i = 0; i < 100; ++i) round();
  // Only from here on, because events and lanes are made in a context.
  quick.cuCtxPushCurrent_v2 = no_push;
  quick.cuCtxPopCurrent_v2 = no_pop;
  counting = true;
  for (int i = 0; i < 1000; ++i) round();
  counting = false;
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace ist::test
