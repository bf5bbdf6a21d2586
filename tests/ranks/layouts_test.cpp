// Messages of layouts between all kinds of memory: what is sent by one layout is received by another, every byte in its place and none
// beside them. Run on 1 to 3 ranks; each sends to its neighbour.
#include <isthmus/layout.h>

#include "laid.hpp"

namespace {

using namespace rank_test;

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }
std::uint64_t seed_of(int from, std::uint64_t what) { return what * 1000 + static_cast<std::uint64_t>(from); }

void exchange(const Laid& out, const Laid& in, ist_kind from, ist_kind to, std::uint64_t what) {
  GuardedBuffer source{from, out.reach}, target{to, in.reach};
  source.fill(random_bytes(out.reach, seed_of(rank(), what)));
  ist_request requests[2] = {};
  ist_status statuses[2] = {};
  IST_OK_OR_FAIL(ist_irecv_layout(target.get(), 1, in.layout, left(), 3, comm(), &requests[0]));
  IST_OK_OR_FAIL(ist_isend_layout(source.get(), 1, out.layout, right(), 3, comm(), &requests[1]));
  IST_OK_OR_FAIL(ist_waitall(2, requests, statuses));
  EXPECT_EQ(statuses[0].bytes, static_cast<std::int64_t>(in.places.size()));
  EXPECT_EQ(statuses[0].source, left());
  target.expect(unpacked(in, packed(out, random_bytes(out.reach, seed_of(left(), what)))), "the layout received");
}

TEST(Layouts, of_any_form_between_any_kinds_arrive_in_their_places) {
  std::uint64_t what = 0;
  for (const std::int64_t count : {4, 60, 1000, 40000, 800000}) {
    const auto vector = strided(count), list = listed(count), row = in_a_row(count);
    for (const KindName& from : usable_kinds())
      for (const KindName& to : usable_kinds())
        for (const auto& [out, in] : {std::pair{vector.get(), list.get()},
                                      {list.get(), vector.get()},
                                      {row.get(), vector.get()},
                                      {list.get(), row.get()}}) {
          if (count > 100000 && out == row.get()) continue;
          exchange(*out, *in, from.kind, to.kind, ++what);
          if (testing::Test::HasFailure()) FAIL() << count << " ints from " << from.name << " to " << to.name;
        }
  }
}

// The receive is there when the message comes, out of memory that both ranks see: such a one ends while its arrival is looked at.
TEST(Layouts, that_wait_for_their_message_are_unpacked_when_it_comes) {
  const auto vector = strided(40000), row = in_a_row(40000);
  GuardedBuffer source{IST_KIND_HOST, row->reach}, target{IST_KIND_HOST, vector->reach};
  for (std::uint64_t round = 0; round < 200; ++round) {
    source.fill(random_bytes(row->reach, seed_of(rank(), 7000 + round)));
    target.poison();
    ist_request requests[2] = {};
    IST_OK_OR_FAIL(ist_irecv_layout(target.get(), 1, vector->layout, left(), 4, comm(), &requests[0]));
    IST_OK_OR_FAIL(ist_barrier(comm()));
    IST_OK_OR_FAIL(ist_isend_layout(source.get(), 1, row->layout, right(), 4, comm(), &requests[1]));
    IST_OK_OR_FAIL(ist_wait(&requests[0], IST_STATUS_IGNORE));
    target.expect(unpacked(*vector, packed(*row, random_bytes(row->reach, seed_of(left(), 7000 + round)))), "what came");
    IST_OK_OR_FAIL(ist_wait(&requests[1], IST_STATUS_IGNORE));
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Layouts, and_plain_messages_match_each_other_in_the_order_in_which_they_were_sent) {
  const auto vector = strided(4000);
  for (const KindName& from : usable_kinds()) {
    GuardedBuffer first{from.kind, vector->reach}, second{from.kind, 16000}, third{from.kind, vector->reach};
    const Bytes one = random_bytes(vector->reach, seed_of(rank(), 1)), two = random_bytes(16000, seed_of(rank(), 2)),
                three = random_bytes(vector->reach, seed_of(rank(), 3));
    first.fill(one), second.fill(two), third.fill(three);
    ist_request requests[3] = {};
    IST_OK_OR_FAIL(ist_isend_layout(first.get(), 1, vector->layout, right(), 5, comm(), &requests[0]));
    IST_OK_OR_FAIL(ist_isend(second.get(), 4000, IST_INT32, right(), 5, comm(), &requests[1]));
    IST_OK_OR_FAIL(ist_isend_layout(third.get(), 1, vector->layout, right(), 5, comm(), &requests[2]));
    GuardedBuffer a{from.kind, 16000}, b{from.kind, vector->reach}, c{from.kind, 16000};
    IST_OK_OR_FAIL(ist_recv(a.get(), 4000, IST_INT32, left(), 5, comm(), IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_recv_layout(b.get(), 1, vector->layout, IST_ANY_SOURCE, IST_ANY_TAG, comm(), IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_recv(c.get(), 4000, IST_INT32, left(), 5, comm(), IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_waitall(3, requests, IST_STATUSES_IGNORE));
    a.expect(packed(*vector, random_bytes(vector->reach, seed_of(left(), 1))), "the first");
    b.expect(unpacked(*vector, random_bytes(16000, seed_of(left(), 2))), "the second, into a layout");
    c.expect(packed(*vector, random_bytes(vector->reach, seed_of(left(), 3))), "the third");
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

TEST(Layouts, many_at_once_with_several_in_one_count) {
  constexpr int kMany = 20;
  const auto one = strided(8);
  ist_layout spread = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_resized(one->layout, 0, 100, &spread));
  IST_OK_OR_FAIL(ist_layout_commit(spread));
  for (const KindName& kind : usable_kinds()) {
    std::vector<std::unique_ptr<GuardedBuffer>> from, to;
    std::vector<ist_request> requests(2 * kMany);
    for (int i = 0; i < kMany; ++i) {
      to.push_back(std::make_unique<GuardedBuffer>(kind.kind, static_cast<std::size_t>(i * 100 + 48)));
      IST_OK_OR_FAIL(ist_irecv_layout(to.back()->get(), i + 1, spread, left(), i, comm(), &requests[at(i)]));
    }
    for (int i = kMany - 1; i >= 0; --i) {
      from.push_back(std::make_unique<GuardedBuffer>(kind.kind, static_cast<std::size_t>(i * 100 + 48)));
      from.back()->fill(
          random_bytes(static_cast<std::size_t>(i * 100 + 48), seed_of(rank(), static_cast<std::uint64_t>(i))));
      IST_OK_OR_FAIL(ist_isend_layout(from.back()->get(), i + 1, spread, right(), i, comm(), &requests[at(kMany + i)]));
    }
    IST_OK_OR_FAIL(ist_waitall(2 * kMany, requests.data(), IST_STATUSES_IGNORE));
    for (int i = 0; i < kMany; ++i) {
      const Bytes sent =
          random_bytes(static_cast<std::size_t>(i * 100 + 48), seed_of(left(), static_cast<std::uint64_t>(i)));
      Bytes expected(sent.size(), 0xa5);
      for (int each = 0; each <= i; ++each)
        for (const std::size_t place : one->places) expected[at(each) * 100 + place] = sent[at(each) * 100 + place];
      to[at(i)]->expect(expected, "message " + std::to_string(i));
    }
  }
  IST_OK_OR_FAIL(ist_layout_free(&spread));
}

TEST(Layouts, too_long_is_truncated_and_too_short_fills_the_first_bytes) {
  const auto out = strided(4000), small = strided(1000), in = listed(4000);
  for (const KindName& kind : usable_kinds()) {
    GuardedBuffer source{kind.kind, out->reach}, target{kind.kind, in->reach}, little{kind.kind, small->reach};
    source.fill(random_bytes(out->reach, seed_of(rank(), 9)));
    const Bytes sent = packed(*out, random_bytes(out->reach, seed_of(left(), 9)));
    ist_request request = IST_REQUEST_NULL;
    ist_status status{};
    IST_OK_OR_FAIL(ist_irecv_layout(little.get(), 1, small->layout, left(), 6, comm(), &request));
    IST_OK_OR_FAIL(ist_sendrecv_layout(source.get(), 1, out->layout, right(), 6, little.get(), 0, small->layout,
                                       IST_PROC_NULL, 6, comm(), IST_STATUS_IGNORE));
    EXPECT_EQ(IST_ERR_TRUNCATE, ist_wait(&request, &status));
    EXPECT_EQ(status.bytes, 4000);
    little.expect(unpacked(*small, Bytes(sent.begin(), sent.begin() + 4000)), "what had room");
    IST_OK_OR_FAIL(ist_irecv_layout(target.get(), 1, in->layout, left(), 7, comm(), &request));
    IST_OK_OR_FAIL(ist_send(source.get(), 999, IST_INT32, right(), 7, comm()));
    IST_OK_OR_FAIL(ist_wait(&request, &status));
    EXPECT_EQ(status.bytes, 3996);
    const Bytes whole = random_bytes(out->reach, seed_of(left(), 9));
    target.expect(unpacked(*in, Bytes(whole.begin(), whole.begin() + 3996)), "the first bytes");
  }
}

TEST(Layouts, to_and_from_nobody_move_nothing_and_say_so) {
  const auto vector = strided(100);
  GuardedBuffer buffer{IST_KIND_HOST, vector->reach};
  ist_request request = IST_REQUEST_NULL;
  ist_status status{};
  IST_OK_OR_FAIL(ist_send_layout(buffer.get(), 1, vector->layout, IST_PROC_NULL, 1, comm()));
  IST_OK_OR_FAIL(ist_irecv_layout(buffer.get(), 1, vector->layout, IST_PROC_NULL, 1, comm(), &request));
  EXPECT_NE(request, IST_REQUEST_NULL);
  IST_OK_OR_FAIL(ist_wait(&request, &status));
  EXPECT_EQ(status.source, IST_PROC_NULL);
  IST_OK_OR_FAIL(ist_recv_layout(buffer.get(), 1, vector->layout, IST_PROC_NULL, 1, comm(), &status));
  EXPECT_EQ(status.source, IST_PROC_NULL);
  EXPECT_EQ(status.bytes, 0);
}

TEST(Layouts, that_cannot_be_sent_or_received_are_refused_before_anything_is) {
  ist_layout raw = IST_LAYOUT_NULL, twice = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(4, 1, 2, ist_layout_of(IST_INT), &raw));
  IST_OK_OR_FAIL(ist_layout_vector(4, 2, 1, ist_layout_of(IST_INT), &twice));
  IST_OK_OR_FAIL(ist_layout_commit(twice));
  Bytes bytes(100);
  const ist_buffer buffer = ist_host(bytes.data());
  ist_request request = reinterpret_cast<ist_request>(1);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_send_layout(buffer, 1, raw, right(), 1, comm()));
  EXPECT_NE(std::string{ist_error_text()}.find("ist_send_layout: the layout, vector("), std::string::npos)
      << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_irecv_layout(buffer, 1, twice, left(), 1, comm(), &request));
  EXPECT_EQ(request, IST_REQUEST_NULL);
  EXPECT_EQ(IST_ERR_HANDLE, ist_isend_layout(buffer, 1, IST_LAYOUT_NULL, right(), 1, comm(), &request));
  EXPECT_EQ(IST_ERR_RANK, ist_send_layout(buffer, 1, twice, size(), 1, comm()));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_send_layout(buffer, 1, twice, right(), -5, comm()));
  EXPECT_EQ(IST_ERR_HANDLE, ist_recv_layout(buffer, 1, twice, left(), 1, IST_COMM_NULL, IST_STATUS_IGNORE));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_isend_layout(buffer, 1, twice, right(), 1, comm(), nullptr));
  IST_OK_OR_FAIL(ist_layout_free(&raw));
  IST_OK_OR_FAIL(ist_layout_free(&twice));
}

TEST(Layouts, are_explained_with_how_they_are_packed) {
  const auto vector = strided(4000), row = in_a_row(4000);
  for (const KindName& kind : usable_kinds()) {
    GuardedBuffer buffer{kind.kind, vector->reach};
    std::string text(6000, '\0');
    IST_OK_OR_FAIL(ist_explain_layout(buffer.get(), 1, vector->layout, right(), comm(), text.data(), text.size(), nullptr));
    EXPECT_NE(text.find("1000 blocks of 16 bytes from 0: 1000 every 32"), std::string::npos) << text;
    EXPECT_NE(text.find(kind.kind == IST_KIND_HOST ? "by the processor" : "by one kernel"), std::string::npos) << text;
    EXPECT_NE(text.find("(16000 bytes) from"), std::string::npos) << text;
    IST_OK_OR_FAIL(ist_explain_layout(buffer.get(), 1, row->layout, right(), comm(), text.data(), text.size(), nullptr));
    EXPECT_NE(text.find("nothing is packed"), std::string::npos) << text;
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));  // who has left is not explained any more
}

}  // namespace
