// Persistent requests with layouts: started often, with the bytes of each start, into another layout than they came from. Run on 1 to 3 ranks.
#include "laid.hpp"

namespace {

using namespace rank_test;

constexpr int kTag = 21;

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }

// Single bytes, every third one, and pairs with gaps of five, the last of them perhaps half: as many bytes by two layouts.
std::unique_ptr<Laid> thirds(std::int64_t bytes) {
  auto made = std::make_unique<Laid>();
  EXPECT_EQ(IST_OK, ist_layout_hvector(bytes, 1, 3, ist_layout_of(IST_BYTE), &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout));
  for (std::int64_t i = 0; i < bytes; ++i) made->add(static_cast<std::size_t>(i) * 3, 1);
  return made;
}
std::unique_ptr<Laid> pairs(std::int64_t bytes) {
  auto made = std::make_unique<Laid>();
  std::vector<std::int64_t> lengths, places;
  for (std::int64_t i = 0; i < bytes; i += 2) {
    lengths.push_back(std::min<std::int64_t>(2, bytes - i));
    places.push_back(i / 2 * 7);
    made->add(static_cast<std::size_t>(places.back()), static_cast<std::size_t>(lengths.back()));
  }
  EXPECT_EQ(IST_OK, ist_layout_indexed(static_cast<std::int64_t>(lengths.size()), lengths.data(), places.data(),
                                       ist_layout_of(IST_BYTE), &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout));
  return made;
}

struct Exchange {
  Exchange(const Laid& out, const Laid& in, ist_kind from, ist_kind to)
      : out_(out),
        in_(in),
        source_(from, std::max<std::size_t>(out.reach, 1)),
        target_(to, std::max<std::size_t>(in.reach, 1)) {
    EXPECT_EQ(IST_OK, ist_recv_layout_init(target_.get(), 1, in.layout, left(), kTag, comm(), &both[0])) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_send_layout_init(source_.get(), 1, out.layout, right(), kTag, comm(), &both[1]))
        << ist_error_text();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    for (ist_request& request : both) EXPECT_EQ(IST_OK, ist_request_free(&request)) << ist_error_text();
  }
  void fill(std::uint64_t round) {
    source_.fill(random_bytes(out_.reach, round * 10 + at(rank())));
    target_.poison();
  }
  void expect(std::uint64_t round) const {
    const Bytes came = packed(out_, random_bytes(out_.reach, round * 10 + at(left())));
    target_.expect(unpacked(in_, came), "round " + std::to_string(round));
  }

  ist_request both[2] = {};

 private:
  const Laid& out_;
  const Laid& in_;
  GuardedBuffer source_;
  GuardedBuffer target_;
};

TEST(PersistentLayouts, StartAgainAndAgainWithWhatTheBufferHoldsThen) {
  for (const std::int64_t bytes : {0, 1, 7, 300, 5001, 200003})
    for (const KindName& from : usable_kinds())
      for (const KindName& to : usable_kinds()) {
        const auto out = thirds(bytes), in = pairs(bytes);
        Exchange exchange(*out, *in, from.kind, to.kind);
        const ist_request kept[2] = {exchange.both[0], exchange.both[1]};
        for (std::uint64_t round = 1; round <= 5; ++round) {
          exchange.fill(round);
          IST_OK_OR_FAIL(ist_startall(2, exchange.both));
          EXPECT_EQ(IST_ERR_PENDING, ist_start(&exchange.both[0]));
          ist_status statuses[2] = {};
          IST_OK_OR_FAIL(ist_waitall(2, exchange.both, statuses));
          EXPECT_EQ(kept[0], exchange.both[0]);
          EXPECT_EQ(kept[1], exchange.both[1]);
          EXPECT_EQ(statuses[0].bytes, bytes);
          EXPECT_EQ(statuses[0].source, left());
          exchange.expect(round);
        }
        if (testing::Test::HasFailure()) FAIL() << bytes << " bytes from " << from.name << " to " << to.name;
      }
}

// The other way round, and both by regular layouts, through blocks that are used by turns.
TEST(PersistentLayouts, ManyRequestsOfDifferentLayoutsAreStartedTogether) {
  for (const KindName& kind : usable_kinds()) {
    const auto one = strided(4000), other = listed(4000);
    Exchange first(*one, *other, kind.kind, kind.kind), second(*other, *one, kind.kind, kind.kind);
    ist_request all[4] = {first.both[0], second.both[0], second.both[1], first.both[1]};
    // Of one tag: sends are started in the order of their receives.
    std::swap(all[2], all[3]);
    for (std::uint64_t round = 1; round <= 20; ++round) {
      first.fill(round), second.fill(round + 100);
      IST_OK_OR_FAIL(ist_startall(4, all));
      IST_OK_OR_FAIL(ist_waitall(4, all, IST_STATUSES_IGNORE));
      first.expect(round), second.expect(round + 100);
    }
  }
}

TEST(PersistentLayouts, NeedTheLayoutNoMoreOnceTheyAreMade) {
  for (const KindName& kind : usable_kinds()) {
    const auto out = listed(400), in = strided(400);
    ist_layout first = IST_LAYOUT_NULL, second = IST_LAYOUT_NULL;
    IST_OK_OR_FAIL(ist_layout_dup(out->layout, &first));
    IST_OK_OR_FAIL(ist_layout_dup(in->layout, &second));
    GuardedBuffer source(kind.kind, out->reach), target(kind.kind, in->reach);
    ist_request both[2] = {};
    IST_OK_OR_FAIL(ist_recv_layout_init(target.get(), 1, second, left(), kTag, comm(), &both[0]));
    IST_OK_OR_FAIL(ist_send_layout_init(source.get(), 1, first, right(), kTag, comm(), &both[1]));
    IST_OK_OR_FAIL(ist_layout_free(&first));
    IST_OK_OR_FAIL(ist_layout_free(&second));
    source.fill(random_bytes(out->reach, at(rank())));
    IST_OK_OR_FAIL(ist_startall(2, both));
    IST_OK_OR_FAIL(ist_waitall(2, both, IST_STATUSES_IGNORE));
    target.expect(unpacked(*in, packed(*out, random_bytes(out->reach, at(left())))), kind.name);
    for (ist_request& request : both) IST_OK_OR_FAIL(ist_request_free(&request));
  }
}

TEST(PersistentLayouts, ASynchronousOneIsOverWhenItsReceiveHasBegun) {
  for (const KindName& kind : usable_kinds()) {
    const auto out = thirds(100);
    GuardedBuffer source(kind.kind, out->reach), target(kind.kind, 100);
    ist_request send = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_ssend_layout_init(source.get(), 1, out->layout, right(), kTag, comm(), &send));
    for (std::uint64_t round = 1; round <= 3; ++round) {
      source.fill(random_bytes(out->reach, round * 10 + at(rank())));
      IST_OK_OR_FAIL(ist_start(&send));
      IST_OK_OR_FAIL(ist_barrier(comm()));
      int over = 1;
      IST_OK_OR_FAIL(ist_test(&send, &over, IST_STATUS_IGNORE));
      EXPECT_EQ(0, over) << "nobody has begun to receive it";
      IST_OK_OR_FAIL(ist_barrier(comm()));
      IST_OK_OR_FAIL(ist_recv(target.get(), 100, IST_BYTE, left(), kTag, comm(), IST_STATUS_IGNORE));
      target.expect(packed(*out, random_bytes(out->reach, round * 10 + at(left()))), kind.name);
      IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
    }
    IST_OK_OR_FAIL(ist_request_free(&send));
  }
}

TEST(PersistentLayouts, TellOfALongerMessageAndOfAShorterOneAndAreStartedAgain) {
  for (const KindName& kind : usable_kinds()) {
    const auto in = pairs(5001);
    GuardedBuffer source(kind.kind, 6000), target(kind.kind, in->reach);
    ist_request receive = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_recv_layout_init(target.get(), 1, in->layout, left(), kTag, comm(), &receive));
    for (const std::int64_t bytes : {6000, 4999, 5001, 0, 5002, 1}) {
      source.fill(random_bytes(6000, at(rank()) + 7));
      target.poison();
      IST_OK_OR_FAIL(ist_start(&receive));
      ist_request send = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_isend(source.get(), bytes, IST_BYTE, right(), kTag, comm(), &send));
      ist_status status{};
      EXPECT_EQ(bytes > 5001 ? IST_ERR_TRUNCATE : IST_OK, ist_wait(&receive, &status)) << bytes;
      EXPECT_EQ(status.bytes, std::min<std::int64_t>(bytes, 5001));
      Bytes came = random_bytes(6000, at(left()) + 7);
      came.resize(at(static_cast<int>(std::min<std::int64_t>(bytes, 5001))));
      target.expect(unpacked(*in, came), std::to_string(bytes) + " bytes of " + kind.name);
      IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
    }
    IST_OK_OR_FAIL(ist_request_free(&receive));
  }
}

TEST(PersistentLayouts, AreTakenBackAndStartedAgain) {
  const auto in = strided(4000);
  GuardedBuffer source(IST_KIND_HOST, 16000), target(IST_KIND_HOST, in->reach);
  ist_request receive = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_recv_layout_init(target.get(), 1, in->layout, left(), kTag, comm(), &receive));
  IST_OK_OR_FAIL(ist_start(&receive));
  IST_OK_OR_FAIL(ist_cancel(receive));
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&receive, &status));
  EXPECT_EQ(IST_CANCELLED, status.code);
  target.expect({}, "nothing came");
  IST_OK_OR_FAIL(ist_barrier(comm()));
  source.fill(random_bytes(16000, at(rank())));
  IST_OK_OR_FAIL(ist_start(&receive));
  IST_OK_OR_FAIL(ist_send(source.get(), 4000, IST_INT32, right(), kTag, comm()));
  IST_OK_OR_FAIL(ist_wait(&receive, &status));
  target.expect(unpacked(*in, random_bytes(16000, at(left()))), "what came then");
  IST_OK_OR_FAIL(ist_request_free(&receive));
}

TEST(PersistentLayouts, ToAndFromNobodyMoveNothingAndMistakesAreToldWhenTheyAreMade) {
  const auto vector = strided(100);
  GuardedBuffer buffer(IST_KIND_HOST, vector->reach);
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_recv_layout_init(buffer.get(), 1, vector->layout, IST_PROC_NULL, 1, comm(), &request));
  ist_status status{};
  for (int round = 0; round < 2; ++round) {
    IST_OK_OR_FAIL(ist_start(&request));
    IST_OK_OR_FAIL(ist_wait(&request, &status));
    EXPECT_EQ(status.source, IST_PROC_NULL);
  }
  IST_OK_OR_FAIL(ist_request_free(&request));
  buffer.expect({}, "from nobody");
  ist_layout raw = IST_LAYOUT_NULL, twice = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(4, 1, 2, ist_layout_of(IST_INT), &raw));
  IST_OK_OR_FAIL(ist_layout_vector(4, 2, 1, ist_layout_of(IST_INT), &twice));
  IST_OK_OR_FAIL(ist_layout_commit(twice));
  request = reinterpret_cast<ist_request>(1);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_send_layout_init(buffer.get(), 1, raw, right(), 1, comm(), &request));
  EXPECT_NE(std::string{ist_error_text()}.find("ist_send_layout_init: the layout, vector("), std::string::npos)
      << ist_error_text();
  EXPECT_EQ(IST_REQUEST_NULL, request);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_recv_layout_init(buffer.get(), 1, twice, left(), 1, comm(), &request));
  EXPECT_NE(std::string{ist_error_text()}.find("twice"), std::string::npos) << ist_error_text();
  EXPECT_EQ(IST_ERR_HANDLE, ist_ssend_layout_init(buffer.get(), 1, IST_LAYOUT_NULL, right(), 1, comm(), &request));
  EXPECT_EQ(IST_ERR_RANK, ist_send_layout_init(buffer.get(), 1, twice, size(), 1, comm(), &request));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_send_layout_init(buffer.get(), -1, twice, right(), 1, comm(), &request));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_send_layout_init(buffer.get(), 1, twice, right(), 1, comm(), nullptr));
  IST_OK_OR_FAIL(ist_layout_free(&raw));
  IST_OK_OR_FAIL(ist_layout_free(&twice));
}

}  // namespace
