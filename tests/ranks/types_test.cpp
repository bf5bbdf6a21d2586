// With the setting check, a receive of other types than its message's is told so, and where; and one of the same types never is. Each rank
// sends to its neighbour; run on 1 to 3 ranks.
#include <isthmus/heap.h>
#include <malloc.h>

#include <chrono>
#include <thread>

#include "checked_types.hpp"

namespace {

using namespace rank_test;

class Types : public CheckedTypes {
 protected:
  void SetUp() override { open(0); }
  static int right() { return (rank() + 1) % size(); }
  static int left() { return (rank() + size() - 1) % size(); }
  // Bytes arrive whatever the types are.
  void expect_bytes(const GuardedBuffer& target, const Side& in, const Side& out, ist_kind kind) {
    const std::int64_t bytes = std::min(bytes_of(out), bytes_of(in));
    GuardedBuffer same{kind, kBytes};
    same.fill(random_bytes(kBytes, seed_ * 10 + static_cast<std::uint64_t>(left())));
    EXPECT_EQ(-1, first_difference(packed(same, out, bytes), packed(target, in, bytes)));
  }
  // The code of the receive.
  int exchange(const Side& out, const Side& in, bool late = false, ist_kind kind = IST_KIND_HOST) {
    ist_request requests[2] = {};
    GuardedBuffer source{kind, kBytes}, target{kind, kBytes};
    source.fill(random_bytes(kBytes, ++seed_ * 10 + static_cast<std::uint64_t>(rank())));
    const auto receive = [&] { return ist_irecv_layout(target.get(), in.count, in.layout, left(), 5, comm_, &requests[0]); };
    if (!late) {
      EXPECT_EQ(IST_OK, receive()) << ist_error_text();
      EXPECT_EQ(IST_OK, ist_barrier(comm_)) << ist_error_text();
    }
    EXPECT_EQ(IST_OK, ist_isend_layout(source.get(), out.count, out.layout, right(), 5, comm_, &requests[1]));
    if (late) {
      EXPECT_EQ(IST_OK, ist_barrier(comm_)) << ist_error_text();
      EXPECT_EQ(IST_OK, receive()) << ist_error_text();
    }
    ist_status status{};
    const int code = ist_wait(&requests[0], &status);
    const std::string text = ist_error_text();
    EXPECT_EQ(IST_OK, ist_wait(&requests[1], IST_STATUS_IGNORE)) << ist_error_text();
    EXPECT_EQ(code, status.code);
    expect_bytes(target, in, out, kind);
    text_ = code == IST_OK ? "" : text;
    return code;
  }
  void expect_alike(const Side& out, const Side& in) {
    for (const bool late : {false, true})
      for (const KindName& each : usable_kinds())
        EXPECT_EQ(IST_OK, exchange(out, in, late, each.kind)) << each.name << text_;
  }
  void expect_told(const Side& out, const Side& in, const std::string& where) {
    for (const bool late : {false, true})
      for (const KindName& each : usable_kinds()) {
        EXPECT_EQ(IST_ERR_ARGUMENT, exchange(out, in, late, each.kind)) << where;
        EXPECT_NE(std::string::npos, text_.find(where)) << text_;
        EXPECT_NE(std::string::npos, text_.find("from rank " + std::to_string(left()))) << text_;
      }
  }

  std::string text_;
  static constexpr std::size_t kBytes = 1 << 20;
  std::uint64_t seed_ = 0;
};

TEST_F(Types, ThatAreTheSameAreNoError) {
  for (const std::int64_t count : {0, 1, 40, 40000}) {
    expect_alike(basic(count, IST_DOUBLE), basic(count, IST_DOUBLE));
    expect_alike({count, mixed()}, {count, mixed()});
  }
  // Described otherwise; of the same representation; shorter than the receive; untyped on either side.
  const Side strided{1, every_second(60, ist_layout_of(IST_DOUBLE))};
  expect_alike(strided, basic(60, IST_DOUBLE));
  expect_alike({1, every_second(30, mixed())}, {30, mixed()});
  expect_alike(basic(10, IST_INT), basic(10, IST_INT32));
  expect_alike(basic(7, IST_LONG), basic(9, IST_INT64));
  expect_alike({20, mixed()}, {30, mixed()});
  expect_alike({20, mixed()}, basic(320, IST_BYTE));
  expect_alike(basic(320, IST_BYTE), {20, mixed()});
}

TEST_F(Types, ThatDifferAreToldWithTheFirstElement) {
  expect_told(basic(10, IST_DOUBLE), basic(20, IST_FLOAT),
              "element 0 is IST_DOUBLE in the message and IST_FLOAT in the receive");
  expect_told(basic(100000, IST_INT32), basic(100000, IST_FLOAT), "element 0 is IST_INT32 in the message and IST_FLOAT");
  expect_told({10, mixed()}, {10, mixed(IST_FLOAT)}, "element 1 is IST_INT32 in the message and IST_FLOAT in the receive");
  // The third of these has another type than the message's, which comes to it after five others.
  const std::int64_t lengths[] = {2, 1}, places[] = {0, 32};
  const ist_layout olds[] = {mixed(), ist_layout_of(IST_INT64)};
  ist_layout layout = IST_LAYOUT_NULL;
  const int code = ist_layout_struct(2, lengths, places, olds, &layout);
  expect_told({5000, mixed()}, {2000, keep(code, layout)},
              "element 6 is IST_DOUBLE in the message and IST_INT64 in the receive");
  expect_told(basic(8, IST_UINT32), basic(8, IST_INT32), "element 0 is IST_UINT32");
  expect_told({1, every_second(50, ist_layout_of(IST_DOUBLE))}, basic(50, IST_INT64), "element 0 is IST_DOUBLE");
}

// More runs of types than are told beside the message: up to there by element, and behind it that something differs.
TEST_F(Types, OfManyRunsAreComparedToTheLast) {
  std::vector<ist_layout> olds;
  std::vector<std::int64_t> lengths(200, 1), places;
  for (std::int64_t i = 0; i < 200; ++i) {
    olds.push_back(ist_layout_of(i % 3 == 0 ? IST_DOUBLE : i % 3 == 1 ? IST_INT64 : IST_UINT64));
    places.push_back(8 * i);
  }
  const auto made = [&] {
    ist_layout layout = IST_LAYOUT_NULL;
    const int code = ist_layout_struct(200, lengths.data(), places.data(), olds.data(), &layout);
    return Side{1, keep(code, layout)};
  };
  const Side message = made();
  expect_alike(message, made());
  olds[199] = ist_layout_of(IST_DOUBLE);
  expect_told(message, made(),
              "the first 18 elements of the message and the receive are of the same types, and later ones are not");
  olds[7] = ist_layout_of(IST_DOUBLE);
  expect_told(message, made(), "element 7 is IST_INT64 in the message and IST_DOUBLE in the receive");
}

TEST_F(Types, OfPlainCallsAreComparedToo) {
  std::vector<double> out(100, 1.5);
  std::vector<double> in(100, 0.0);
  const auto expect = [&](int code, const char* call) {
    EXPECT_EQ(IST_ERR_ARGUMENT, code) << call;
    const std::string text = ist_error_text();
    EXPECT_NE(std::string::npos, text.find("element 0 is IST_DOUBLE in the message and IST_INT64 in the receive")) << text;
    EXPECT_EQ(out, in) << call;
    in.assign(100, 0.0);
  };
  const ist_buffer from = ist_host(out.data()), to = ist_host(in.data());
  for (int i = 0; i < 3; ++i) {
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_isend(from, 100, IST_DOUBLE, right(), 1, comm_, &request));
    expect(ist_recv(to, 100, IST_INT64, IST_ANY_SOURCE, 1, comm_, IST_STATUS_IGNORE), "recv");
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
    expect(ist_sendrecv(from, 100, IST_DOUBLE, right(), 2, to, 100, IST_INT64, left(), 2, comm_, IST_STATUS_IGNORE),
           "sendrecv");
    // By a probe, which takes the message before it is known what it is received as.
    IST_OK_OR_FAIL(ist_isend(from, 100, IST_DOUBLE, right(), 3, comm_, &request));
    ist_message message = IST_MESSAGE_NULL;
    IST_OK_OR_FAIL(ist_mprobe(left(), 3, comm_, &message, IST_STATUS_IGNORE));
    expect(ist_mrecv(to, 100, IST_INT64, &message, IST_STATUS_IGNORE), "mrecv");
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  }
  ist_request requests[2] = {};
  IST_OK_OR_FAIL(ist_send_init(from, 100, IST_DOUBLE, right(), 4, comm_, &requests[0]));
  IST_OK_OR_FAIL(ist_recv_init(to, 100, IST_INT64, left(), 4, comm_, &requests[1]));
  for (int i = 0; i < 3; ++i) {
    IST_OK_OR_FAIL(ist_startall(2, requests));
    expect(ist_wait(&requests[1], IST_STATUS_IGNORE), "a persistent request");
    IST_OK_OR_FAIL(ist_wait(&requests[0], IST_STATUS_IGNORE));
  }
  for (ist_request& request : requests) IST_OK_OR_FAIL(ist_request_free(&request));
  // Of layouts, too: the last element first, on both sides.
  std::vector<std::int64_t> places(100);
  for (std::size_t i = 0; i < 100; ++i) places[i] = static_cast<std::int64_t>(99 - i);
  const auto backwards = [&](ist_type type) {
    ist_layout layout = IST_LAYOUT_NULL;
    const int code = ist_layout_indexed_block(100, 1, places.data(), ist_layout_of(type), &layout);
    return keep(code, layout);
  };
  IST_OK_OR_FAIL(ist_send_layout_init(from, 1, backwards(IST_DOUBLE), right(), 5, comm_, &requests[0]));
  IST_OK_OR_FAIL(ist_recv_layout_init(to, 1, backwards(IST_INT64), left(), 5, comm_, &requests[1]));
  for (int i = 0; i < 3; ++i) {
    IST_OK_OR_FAIL(ist_startall(2, requests));
    expect(ist_wait(&requests[1], IST_STATUS_IGNORE), "a persistent request with a layout");
    IST_OK_OR_FAIL(ist_wait(&requests[0], IST_STATUS_IGNORE));
  }
  for (ist_request& request : requests) IST_OK_OR_FAIL(ist_request_free(&request));
}

TEST_F(Types, AreToldBesideAReceiveThatIsTooShort) {
  EXPECT_EQ(IST_ERR_TRUNCATE, exchange(basic(100, IST_DOUBLE), basic(100, IST_FLOAT)));
  EXPECT_NE(std::string::npos, text_.find("element 0 is IST_DOUBLE")) << text_;
}

// A plain call has one type for both sides: what replaces a message of another one is told.
TEST_F(Types, OfAMessageThatIsReplacedAreCompared) {
  std::vector<std::int64_t> mine(100, 7 + rank());
  std::vector<double> out(100, 1.5), in(100, 0.0);
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_isend(ist_host(out.data()), 100, IST_DOUBLE, right(), 6, comm_, &request));
  EXPECT_EQ(IST_ERR_ARGUMENT,
            ist_sendrecv_replace(ist_host(mine.data()), 100, IST_INT64, right(), 7, left(), 6, comm_, IST_STATUS_IGNORE));
  EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find("element 0 is IST_DOUBLE in the message and IST_INT64"))
      << ist_error_text();
  EXPECT_EQ(0, std::memcmp(mine.data(), out.data(), 800));
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_recv(ist_host(in.data()), 100, IST_DOUBLE, left(), 7, comm_, IST_STATUS_IGNORE));
}

// Nor is what was told of a message that never came.
TEST_F(Types, OfSendsAndReceivesThatAreCancelledAreNotKept) {
  std::vector<double> out(100000, 1.5);
  std::vector<std::int64_t> in(10);
  const auto cancel_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ist_request requests[2] = {};
      IST_OK_OR_FAIL(ist_isend(ist_host(out.data()), 100000, IST_DOUBLE, right(), 5, comm_, &requests[0]));
      IST_OK_OR_FAIL(ist_irecv(ist_host(in.data()), 10, IST_INT64, left(), 6, comm_, &requests[1]));
      for (ist_request& request : requests) {
        ist_status status{};
        IST_OK_OR_FAIL(ist_cancel(request));
        IST_OK_OR_FAIL(ist_wait(&request, &status));
        EXPECT_EQ(IST_CANCELLED, status.code);
      }
      if (i % 20 == 19) IST_OK_OR_FAIL(ist_barrier(comm_));
    }
  };
  cancel_some(100);
  const std::size_t before = mallinfo2().uordblks;
  cancel_some(1000);
  EXPECT_LT(mallinfo2().uordblks, before + 64 * 1024);
  EXPECT_EQ(IST_OK, exchange(basic(10, IST_DOUBLE), basic(10, IST_DOUBLE))) << text_;
}

// Nor of a receive that nothing can come for.
TEST_F(Types, OfReceivesFromARankThatHasLeftAreNotKept) {
  const int last = size() - 1;
  if (rank() == last) {
    IST_OK_OR_FAIL(ist_world_destroy(&world_));
    return;
  }
  std::vector<double> in(10);
  const auto receive = [&] {
    ist_request request = IST_REQUEST_NULL;
    const int code = ist_irecv(ist_host(in.data()), 10, IST_DOUBLE, last, 5, comm_, &request);
    return code != IST_OK ? code : ist_wait(&request, IST_STATUS_IGNORE);
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(IST_ERR_PEER_LEFT, receive()) << ist_error_text();
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(IST_ERR_PEER_LEFT, receive()) << ist_error_text();
  EXPECT_LT(mallinfo2().uordblks, before + 64 * 1024);
}

// Messages take cells where what they are made of waits for a slot, and each meets its own.
TEST_F(Types, OfMoreMessagesThanSlotsAreThoseOfEach) {
  constexpr int kMessages = 200;
  const int to = size() - 1;
  std::vector<std::vector<double>> out;
  std::vector<ist_request> requests(rank() == 0 ? kMessages : 0);
  for (ist_request& request : requests) {
    out.emplace_back(500, static_cast<double>(out.size()));
    IST_OK_OR_FAIL(ist_isend(ist_host(out.back().data()), 500, IST_DOUBLE, to, 5, comm_, &request));
  }
  int gone = 0;
  for (ist_request& request : requests) {
    int is = 0;
    IST_OK_OR_FAIL(ist_test(&request, &is, IST_STATUS_IGNORE));
    gone += is;
  }
  EXPECT_GE(gone, rank() == 0 ? 100 : 0) << "of " << kMessages << " messages that nobody has received";
  if (rank() == to) {
    if (to != 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // looks for none meanwhile
    std::vector<double> in(500);
    for (int i = 0; i < kMessages; ++i) {
      const bool same = i % 3 != 0;
      EXPECT_EQ(same ? IST_OK : IST_ERR_ARGUMENT,
                ist_recv(ist_host(in.data()), 500, same ? IST_DOUBLE : IST_INT64, 0, 5, comm_, IST_STATUS_IGNORE))
          << i << ": " << ist_error_text();
      EXPECT_EQ(std::vector<double>(500, i), in) << i;
    }
  }
  for (ist_request& request : requests) IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
}

// By whatever carrier.
TEST_F(Types, ThatDifferAreCountedAsMessages) {
  const auto received = [&] {
    ist_traffic traffic{};
    traffic.size = sizeof traffic;
    EXPECT_EQ(IST_OK, ist_world_traffic(world_, left(), IST_CARRIER_NONE, &traffic)) << ist_error_text();
    return std::pair{traffic.messages_received, traffic.bytes_received};
  };
  for (const std::int64_t count : {10, 1000, 100000})
    for (const KindName& each : usable_kinds()) {
      const auto told = [&](ist_type type) {
        const auto before = received();
        exchange(basic(count, IST_DOUBLE), basic(count, type), true, each.kind);
        const auto after = received();
        return std::pair{after.first - before.first, after.second - before.second};
      };
      const auto alike = told(IST_DOUBLE);
      EXPECT_GE(alike.first, 1U);
      EXPECT_EQ(alike, told(IST_INT64)) << count << " in memory of " << each.name;
    }
}

TEST_F(Types, OfPutsAndGetsAreComparedHere) {
  ist_heap heap = IST_HEAP_NULL;
  void* part = nullptr;
  IST_OK_OR_FAIL(ist_heap_create(comm_, IST_KIND_HOST, 0, 1 << 16, 0, &heap));
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 10, 8, &part));
  std::vector<double> mine(10, 2.5);
  const ist_layout number = ist_layout_of(IST_DOUBLE), integer = ist_layout_of(IST_INT64);
  const auto expect = [](int code, const char* where) {
    EXPECT_EQ(IST_ERR_ARGUMENT, code);
    EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find(where)) << ist_error_text();
  };
  expect(ist_heap_put_layout(heap, part, 10, integer, ist_host(mine.data()), 10, number, right()),
         "element 0 is IST_DOUBLE in source and IST_INT64 in dest (source: 10 IST_DOUBLE; dest: 10 IST_INT64); name the "
         "same types");
  expect(ist_heap_get_layout(heap, ist_host(mine.data()), 10, number, part, 10, integer, right()),
         "element 0 is IST_INT64 in source and IST_DOUBLE in dest");
  IST_OK_OR_FAIL(ist_heap_put_layout(heap, part, 80, ist_layout_of(IST_BYTE), ist_host(mine.data()), 10, number, right()));
  IST_OK_OR_FAIL(ist_heap_barrier(heap));
  const auto* const put = static_cast<const double*>(part);
  EXPECT_EQ(mine, std::vector<double>(put, put + 10));
  IST_OK_OR_FAIL(ist_heap_destroy(&heap));
}

}  // namespace
