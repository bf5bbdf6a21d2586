// Collective calls on all combinations of kinds, and nonblocking ones of several communicators under way together. Run on 1 to 6
// ranks.
#include <array>
#include <set>
#include <type_traits>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

// The kinds of one rank's buffers in a round of the sweep.
struct Used {
  ist_kind send;
  ist_kind recv;
  ist_kind bcast;
};

// Ranks with even numbers send from kind `a`, those with odd ones from kind `b`. The root broadcasts from kind `a`; behind it
// kinds `recv` and `b` take turns.
Used used_by(int rank, int root, const Member& here, ist_kind a, ist_kind recv, ist_kind b) {
  const int behind = (rank - root + here.size) % here.size;
  return {rank % 2 == 0 ? a : b, recv, behind == 0 ? a : (behind % 2 == 1 ? recv : b)};
}

using Triples = std::set<std::array<ist_kind, 3>>;

// One round: an allreduce, a broadcast, an allgather and an alltoall of so many bytes from each rank to each.
class Round {
 public:
  Round(const Member& here, int root, std::size_t bytes, std::uint64_t seed)
      : here_(here), root_(root), bytes_(bytes), sum_(bytes, 0) {
    for (int r = 0; r < here.size; ++r) {
      given_.push_back(random_bytes(bytes * at(here.size), seed * 64 + static_cast<std::uint64_t>(r)));
      const Bytes first = to(r, 0);
      all_.insert(all_.end(), first.begin(), first.end());
      const Bytes mine = to(r, here.rank);
      exchanged_.insert(exchanged_.end(), mine.begin(), mine.end());
      for (std::size_t i = 0; i < bytes; ++i) sum_[i] = static_cast<unsigned char>(sum_[i] + first[i]);
    }
  }
  void run(const Used& used, Form form, const std::string& what) {
    const std::size_t one = (bytes_ + 7) / 8;
    const std::size_t each = (bytes_ * at(here_.size) + 7) / 8;
    const Numbers send{used.send, given_[at(here_.rank)]};
    const Numbers sum{used.recv, one};
    const Numbers all{used.recv, each};
    const Numbers exchanged{used.recv, each};
    const Numbers bcast{used.bcast, here_.rank == root_ ? to(root_, 0) : Bytes(bytes_, 0x33)};
    const auto number = static_cast<std::int64_t>(bytes_);
    Calls calls{form};
    IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, send.get(), sum.get(), number, IST_UINT8, IST_SUM, here_.comm));
    IST_OK_OR_FAIL(calls(ist_bcast, ist_ibcast, bcast.get(), number, IST_UINT8, root_, here_.comm));
    IST_OK_OR_FAIL(calls(ist_allgather, ist_iallgather, send.get(), number, all.get(), number, IST_BYTE, here_.comm));
    IST_OK_OR_FAIL(calls(ist_alltoall, ist_ialltoall, send.get(), exchanged.get(), number, IST_BYTE, here_.comm));
    IST_OK_OR_FAIL(calls.finish());
    sum.expect(sum_, "allreduce of " + what);
    bcast.expect(to(root_, 0), "bcast of " + what);
    all.expect(all_, "allgather of " + what);
    exchanged.expect(exchanged_, "alltoall of " + what);
    send.expect(given_[at(here_.rank)], "the input of " + what);
    const auto kind_of = [](const Numbers& numbers) { return static_cast<ist_kind>(numbers.get().kind); };
    used_ = {kind_of(send), kind_of(sum), kind_of(bcast)};
  }
  // Adds this round's triples: what this rank sent from and received in, and what another rank sent from; and of the broadcast
  // what the root and two other ranks had, where there are so many.
  void tell(Triples& everybodys, Triples& broadcasts) const {
    std::vector<Used> used(at(here_.size));
    const auto size = static_cast<std::int64_t>(sizeof(Used));
    IST_OK_OR_FAIL(ist_allgather(ist_host(&used_), size, ist_host(used.data()), size, IST_BYTE, here_.comm));
    const Used& mine = used[at(here_.rank)];
    for (int peer = 0; peer < here_.size; ++peer) {
      if (peer != here_.rank) everybodys.insert({mine.send, mine.recv, used[at(peer)].send});
      for (int third = 0; third < here_.size; ++third)
        if (peer != root_ && third != peer && (third != root_ || here_.size == 2))
          broadcasts.insert({used[at(root_)].bcast, used[at(peer)].bcast, used[at(third)].bcast});
    }
  }

 private:
  Bytes to(int from, int rank) const {
    const Bytes& given = given_[at(from)];
    const auto first = given.begin() + static_cast<std::ptrdiff_t>(bytes_) * rank;
    return {first, first + static_cast<std::ptrdiff_t>(bytes_)};
  }
  Member here_;
  int root_;
  std::size_t bytes_;
  std::vector<Bytes> given_;  // by each rank: part r for rank r, and part 0 for the others' calls
  Bytes sum_, all_, exchanged_;
  Used used_{};
};

class Sweep : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Each, Sweep, testing::Values(Form::blocking, Form::nonblocking), name_of);

// Short, and one byte past 2 KiB and past what is announced.
TEST_P(Sweep, EveryTripleOfKindsMeetsAtEverySize) {
  const Member here{comm()};
  if (here.size < 2) return;  // nobody to meet
  const auto kinds = usable_kinds();
  for (const std::size_t bytes : {std::size_t{9}, std::size_t{2049}, std::size_t{16385}}) {
    Triples everybodys, broadcasts;
    std::uint64_t round = 0;
    for (const KindName& a : kinds) {
      for (const KindName& recv : kinds) {
        for (const KindName& b : kinds) {
          const int root = static_cast<int>(++round) % here.size;
          const std::string what = std::to_string(bytes) + " bytes, kinds " + a.name + ", " + recv.name + ", " + b.name;
          Round one{here, root, bytes, round * 100000 + bytes};
          one.run(used_by(here.rank, root, here, a.kind, recv.kind, b.kind), GetParam(), what);
          if (!HasFatalFailure()) one.tell(everybodys, broadcasts);
          if (HasFatalFailure()) return;
        }
      }
    }
    // On this rank, of any peer; of the broadcasts, on any three ranks.
    const std::size_t pairs = kinds.size() * kinds.size();
    EXPECT_EQ(pairs * kinds.size(), everybodys.size()) << bytes << " bytes";
    EXPECT_EQ(here.size > 2 ? pairs * kinds.size() : pairs, broadcasts.size()) << bytes << " bytes";
  }
}

TEST(Nonblocking, ManyNonblockingOnesRunAtOnceOnSeveralCommunicators) {
  ist_comm twin = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &twin));
  KindDraw kinds{8};
  std::vector<std::unique_ptr<Numbers>> inputs;
  std::vector<std::unique_ptr<Numbers>> results;
  std::vector<ist_request> requests;
  std::vector<Bytes> expected;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const std::size_t count = counts()[seed % counts().size()];
    const Member here{seed % 2 == 0 ? comm() : twin};
    inputs.push_back(std::make_unique<Numbers>(kinds.next(), input_of(here.rank, count, seed)));
    results.push_back(std::make_unique<Numbers>(kinds.next(), count));
    requests.emplace_back();
    const auto number = static_cast<std::int64_t>(count);
    const ist_buffer in = inputs.back()->get();
    const ist_buffer out = results.back()->get();
    if (seed % 3 == 0) {
      IST_OK_OR_FAIL(ist_iallreduce(in, out, number, IST_INT64, IST_SUM, here.comm, &requests.back()));
      expected.push_back(sum_of(0, here.size, count, seed));
    } else if (seed % 3 == 1) {
      IST_OK_OR_FAIL(ist_iscan(in, out, number, IST_INT64, IST_SUM, here.comm, &requests.back()));
      expected.push_back(sum_of(0, here.rank + 1, count, seed));
    } else {
      IST_OK_OR_FAIL(
          ist_iscatter(in, number / here.size, out, number / here.size, IST_INT64, 0, here.comm, &requests.back()));
      const auto each = static_cast<std::size_t>(number / here.size);
      expected.push_back(part(input_of(0, count, seed), static_cast<std::size_t>(here.rank) * each, each));
    }
    // Messages of the user's go on between them.
    int token = static_cast<int>(seed);
    IST_OK_OR_FAIL(ist_sendrecv_replace(ist_host(&token), 1, IST_INT, (here.rank + 1) % here.size, 3,
                                        (here.rank + here.size - 1) % here.size, 3, here.comm, IST_STATUS_IGNORE));
    EXPECT_EQ(static_cast<int>(seed), token);
  }
  requests.emplace_back();
  IST_OK_OR_FAIL(ist_ibarrier(comm(), &requests.back()));
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
  for (std::size_t i = 0; i < expected.size(); ++i) results[i]->expect(expected[i], "call " + std::to_string(i));
  IST_OK_OR_FAIL(ist_comm_free(&twin));
}

void expect_that_nobody_passes(const Member& here) {
  for (int late = 0; late < here.size; ++late) {
    ist_request request = IST_REQUEST_NULL;
    if (here.rank == late) {
      // Everybody else waits for this message's answer in vain until the late one has come.
      for (int other = 0; other < here.size; ++other)
        if (other != late) IST_OK_OR_FAIL(ist_send(ist_host(&late), 1, IST_INT, other, 9, here.comm));
      for (int other = 0; other < here.size; ++other) {
        int done = -1;
        if (other != late) IST_OK_OR_FAIL(ist_recv(ist_host(&done), 1, IST_INT, other, 9, here.comm, IST_STATUS_IGNORE));
        EXPECT_EQ(other == late ? -1 : 0, done) << "rank " << other << " passed before rank " << late << " came";
      }
      IST_OK_OR_FAIL(ist_ibarrier(here.comm, &request));
      IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
      continue;
    }
    IST_OK_OR_FAIL(ist_ibarrier(here.comm, &request));
    int from = -1;
    IST_OK_OR_FAIL(ist_recv(ist_host(&from), 1, IST_INT, late, 9, here.comm, IST_STATUS_IGNORE));
    int done = 0;
    for (int i = 0; i < 20; ++i) IST_OK_OR_FAIL(ist_test(&request, &done, IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_send(ist_host(&done), 1, IST_INT, late, 9, here.comm));
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  }
}

TEST(Nonblocking, NobodyPassesANonblockingBarrierBeforeEverybodyHasCome) {
  on_communicators(Form::blocking, expect_that_nobody_passes);
}

// Programs hold it by value: what ist_in_place() gave them is what they go on giving.
TEST(InPlace, IsTheSameBufferForEver) {
  ist_buffer frozen{};
  frozen.kind = 0xffffffffU;
  frozen.device = -1;
  const ist_buffer found = IST_IN_PLACE;
  static_assert(std::has_unique_object_representations_v<ist_buffer>);
  EXPECT_EQ(0, std::memcmp(&frozen, &found, sizeof found));
}

}  // namespace
