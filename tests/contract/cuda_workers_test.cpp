// The resident worker: every byte of what it copies, and what is not for it.
#include <random>

#include "cuda_workers_support.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kRoom = kWorkerRoom;

TEST_F(CudaWorker, copies_every_byte_of_every_small_size_wherever_it_lies) {
  awaken();
  for (const std::uint64_t size : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 63, 64, 511, 512, 513, 1000, 1024, 2047, 2048}) {
    for (const std::uint64_t shift : {0, 1, 2, 4, 5, 8}) {
      const Data all = fresh(kRoom);
      Ticket whole = into(0, all);  // too much for it
      ASSERT_FALSE(by_worker(whole));
      must(finish(whole));
      const Data sent = fresh(size);
      Ticket there = into(worker::kMost + shift, sent);
      EXPECT_TRUE(by_worker(there));
      must(finish(there));
      Data back(size + 2, 0xEE);
      Ticket here = must(kind->copy(host_piece(back.data() + 1, Bytes{size}), at(worker::kMost + shift, size), {}));
      EXPECT_TRUE(by_worker(here));
      must(finish(here));
      EXPECT_EQ(0xEE, back.front());
      EXPECT_EQ(0xEE, back.back());
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), back.begin() + 1)) << size << " bytes at " << shift;
      Data found(kRoom);
      Ticket rest = out(found, 0);
      must(finish(rest));
      Data expected = all;
      std::copy(sent.begin(), sent.end(), expected.begin() + static_cast<std::ptrdiff_t>(worker::kMost + shift));
      EXPECT_EQ(expected, found) << size << " bytes at " << shift;
    }
  }
}

TEST_F(CudaWorker, leaves_larger_copies_nothing_and_what_comes_after_pending_work_to_the_driver) {
  awaken();
  Data data = fresh(worker::kMost + 1);
  Ticket longer = into(0, data);
  EXPECT_FALSE(by_worker(longer));
  must(finish(longer));
  EXPECT_TRUE(must(kind->copy(at(0, 0), host_piece(data.data(), Bytes{0}), {})).empty());
  CUstream stream = make_stream(primary());
  Piece piece = at(0, 100);
  piece.queue = reinterpret_cast<std::uint64_t>(stream);
  Gate gate;
  fill_behind(gate, stream, piece.object, 100, 0x5A);
  const Ticket pending = must(kind->streams()->in_order(piece));
  ASSERT_FALSE(pending.empty());
  Data back(100, 0xEE);
  std::thread opens([&] { gate.open(); });
  Ticket behind = must(kind->copy(host_piece(back.data(), Bytes{100}), piece, pending));
  opens.join();
  EXPECT_FALSE(by_worker(behind));
  must(finish(behind));
  EXPECT_EQ(Data(100, 0x5A), back);
  // Idle: the question is asked at once, since no copy goes into that queue.
  synchronise(stream);
  awaken();
  EXPECT_TRUE(must(kind->streams()->in_order(piece)).empty());
}

TEST_F(CudaWorker, does_not_touch_managed_memory_mappings_or_memory_of_other_contexts) {
  awaken();
  CUcontext own = make_context();
  CUdeviceptr address = 0;
  {
    const Current scope(api, own);
    must(api, api.cuMemAlloc_v2(&address, 64), "cuMemAlloc");
  }
  Piece foreign = device_piece(address, 64);
  must(kind->check(foreign));
  const Data data = fresh(64);
  Ticket ticket = must(kind->copy(foreign, host_piece(data.data(), Bytes{64}), {}));
  EXPECT_FALSE(by_worker(ticket));
  must(finish(ticket));
  const Current scope(api, primary());
  if (api.cuMemAllocManaged != nullptr) {
    must(api, api.cuMemAllocManaged(&address, 64, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
    Piece managed = device_piece(address, 64);
    must(kind->check(managed));
    Ticket copied = must(kind->copy(managed, host_piece(data.data(), Bytes{64}), {}));
    EXPECT_FALSE(by_worker(copied));
    must(finish(copied));
    must(api, api.cuMemFree_v2(address), "cuMemFree");
  }
}

TEST_F(CudaWorker, more_orders_than_it_has_places_for_go_by_the_driver_and_all_arrive) {
  awaken();
  constexpr std::size_t kCount = 5 * worker::kSlots;
  constexpr std::size_t kSize = kRoom / kCount;
  std::vector<Data> sent;
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(fresh(kSize));
    tickets.push_back(into(i * kSize, sent.back()));
  }
  const auto count = static_cast<std::size_t>(std::count_if(tickets.begin(), tickets.end(), by_worker));
  EXPECT_EQ(worker::kSlots, count);  // nobody has asked yet whether one is over
  for (Ticket& ticket : tickets) must(finish(ticket));
  std::vector<Data> back(kCount, Data(kSize, 0xEE));
  tickets.clear();
  for (std::size_t i = 0; i < kCount; ++i) tickets.push_back(out(back[i], i * kSize));
  for (std::size_t i = kCount; i-- > 0;) must(finish(tickets[i]));
  EXPECT_EQ(sent, back);
}

TEST_F(CudaWorker, what_comes_after_an_order_comes_after_it) {
  awaken();
  for (int round = 0; round < 100; ++round) {
    const Data sent = fresh(200);
    Data middle(200, 0xEE);
    Data back(200, 0xEE);
    const Piece held = host_piece(middle.data(), Bytes{200});
    Ticket first = into(0, sent);
    Ticket second = must(kind->copy(held, at(0, 200), first));
    Ticket third = must(kind->copy(at(5000, 200), held, second));
    Ticket none = must(kind->copy(at(0, 0), host_piece(nullptr, Bytes{0}), third));
    Ticket within = must(kind->copy(at(9000, 200), at(5000, 200), third));
    EXPECT_FALSE(by_worker(within));
    must(finish(within));
    Ticket last = out(back, 9000);
    for (Ticket* each : {&last, &first, &second, &third, &none}) must(finish(*each));
    EXPECT_EQ(sent, middle);
    EXPECT_EQ(sent, back);
  }
}

TEST_F(CudaWorker, forgotten_orders_leave_memory_alone_and_their_places_free) {
  awaken();
  std::vector<Data> buffers(20 * worker::kSlots, Data(100, 0xEE));
  for (Data& each : buffers) const Ticket forgotten = out(each, 0);
  const std::vector<Data> before = buffers;
  const Data sent = fresh(100);
  Ticket ticket = into(0, sent);
  EXPECT_TRUE(by_worker(ticket));
  must(finish(ticket));
  EXPECT_EQ(before, buffers);
}

TEST_F(CudaWorker, that_comes_and_goes_copies_every_byte_all_the_same) {
  go_soon();
  int workers = 0;
  for (int i = 0; i < 3000; ++i) {
    const Data sent = fresh(1 + static_cast<std::size_t>(i) % 600);
    Ticket there = into(0, sent);
    workers += by_worker(there) ? 1 : 0;
    must(finish(there));
    Data back(sent.size(), 0xEE);
    Ticket here = out(back, 0);
    workers += by_worker(here) ? 1 : 0;
    must(finish(here));
    ASSERT_EQ(sent, back);
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  RecordProperty("by_worker", workers);
  EXPECT_GT(launches(), 1U);
}

TEST_F(CudaWorker, several_threads_give_orders_at_once_and_each_gets_its_own_bytes) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([this, t] {
      std::mt19937 random(static_cast<unsigned>(t) + 1);
      const std::uint64_t place = kRoom / kThreads * static_cast<std::uint64_t>(t);
      for (int i = 0; i < 300; ++i) {
        Data sent(1 + random() % (kRoom / kThreads));
        for (std::uint8_t& byte : sent) byte = static_cast<std::uint8_t>(random());
        Ticket there = into(place, sent);
        must(finish(there));
        Data back(sent.size(), 0xEE);
        Ticket here = out(back, place);
        must(finish(here));
        ASSERT_EQ(sent, back);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaWorker, needs_no_call_of_the_driver_but_to_ask_whose_the_memory_is) {
  NEEDS_FAKE("count its calls");
  awaken();
  Data data = fresh(64);
  const std::uint64_t launched = launches();
  const char* const calls[] = {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery", "cuStreamWaitEvent"};
  std::vector<std::uint64_t> before;
  for (const char* call : calls) before.push_back(fake_calls(call));
  for (int i = 0; i < 50; ++i) {
    Ticket there = into(0, data);
    must(finish(there));
    Ticket here = out(data, 0);
    must(finish(here));
  }
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], fake_calls(calls[i])) << calls[i];
  EXPECT_EQ(launched, launches());
}

}  // namespace
}  // namespace ist::test
