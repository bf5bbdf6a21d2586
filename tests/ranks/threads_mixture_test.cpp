// Eight threads of a rank in the midst of different calls: collective ones, operations of the user's, messages set aside, synchronous ones,
// communicators in the making, persistent requests, calls with parts, and waits for some of many. Run on 2 and 3 ranks, and with the thread sanitizer.
#include <isthmus/collective.h>

#include <array>
#include <atomic>
#include <thread>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

constexpr int kThreads = 8;
constexpr int kRounds = 12;

using Words = std::vector<std::uint64_t>;

// x -> a x + b, composed: associative, and the order matters. `with` is applied first. Counts in how many calls.
void compose(const void* with, void* into, std::int64_t count, ist_type, void* user) {
  ++*static_cast<std::atomic<int>*>(user);
  const auto* left = static_cast<const std::uint64_t*>(with);
  auto* right = static_cast<std::uint64_t*>(into);
  for (std::int64_t i = 0; i < count; ++i, left += 2, right += 2) {
    right[1] = right[0] * left[1] + right[1];
    right[0] = left[0] * right[0];
  }
}

// One thread, alone in its communicator with the same thread of every other rank.
class Mixture {
 public:
  Mixture(ist_comm comm, int thread, ist_op op) : comm_(comm), thread_(thread), op_(op) {}

  // Every thread begins elsewhere, so that different calls are under way at once.
  void run() {
    make();
    for (int round = 0; round < kRounds && !testing::Test::HasFatalFailure(); ++round) {
      round_ = round;
      for (int step = 0; step < 8; ++step) switch ((thread_ + step) % 8) {
          case 0:
            reduce();
            break;
          case 1:
            exchange();
            break;
          case 2:
            set_aside(round % 2 == 0);
            break;
          case 3:
            start_again();
            break;
          case 4:
            collect();
            break;
          case 5:
            replace();
            break;
          case 6:
            collect_parts();
            break;
          default:
            take_some(round % 2 == 0);
        }
    }
    for (ist_request& request : persistent_) ASSERT_EQ(IST_OK, ist_request_free(&request)) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_barrier(comm_)) << ist_error_text();
  }

 private:
  static int right() { return (rank() + 1) % size(); }
  static int left() { return (rank() + size() - 1) % size(); }
  // Of a rank, for what and in which round: two seeds agree nowhere.
  std::uint64_t seed(int of, int what) const {
    return static_cast<std::uint64_t>(((of * kThreads + thread_) * kRounds + round_) * 16 + what);
  }
  Words numbers(int of, int what, std::size_t count) const {
    const auto bytes = random_bytes(count * 8, seed(of, what));
    Words all(count);
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }
  // Short ones and long ones in turn.
  std::size_t count() const { return round_ % 3 == 0 ? 20001 : static_cast<std::size_t>(3 + round_); }
  std::string where(const char* call) const {
    return std::string{call} + " of thread " + std::to_string(thread_) + " in round " + std::to_string(round_);
  }

  void reduce() {
    const auto pairs = static_cast<std::int64_t>(count());
    const Words mine = numbers(rank(), 0, 2 * count());
    Words expected = numbers(0, 0, 2 * count());
    std::atomic<int> ignored = 0;
    for (int r = 1; r < size(); ++r) {
      Words next = numbers(r, 0, 2 * count());
      compose(expected.data(), next.data(), pairs, IST_INT64_INT64, &ignored);
      expected = next;
    }
    Words found(2 * count(), kPoison);
    ASSERT_EQ(IST_OK, ist_allreduce(ist_host(mine.data()), ist_host(found.data()), pairs, IST_INT64_INT64, op_, comm_))
        << ist_error_text();
    ASSERT_EQ(expected, found) << where("allreduce");
  }

  void exchange() {
    const std::size_t each = count();
    const Words out = numbers(rank(), 1, each * at(size()));
    Words found(out.size(), kPoison);
    ist_request request = IST_REQUEST_NULL;
    ASSERT_EQ(IST_OK, ist_ialltoall(ist_host(out.data()), ist_host(found.data()), static_cast<std::int64_t>(each),
                                    IST_UINT64, comm_, &request))
        << ist_error_text();
    for (int completed = round_ % 2; completed == 0; std::this_thread::yield())
      ASSERT_EQ(IST_OK, ist_test(&request, &completed, IST_STATUS_IGNORE)) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_wait(&request, IST_STATUS_IGNORE)) << ist_error_text();
    for (int r = 0; r < size(); ++r) {
      const Words theirs = numbers(r, 1, out.size());
      ASSERT_EQ(0, std::memcmp(&theirs[each * at(rank())], &found[each * at(r)], each * 8)) << where("ialltoall");
    }
  }

  // What short ways in memory that all ranks see carry, and what messages do.
  void collect() {
    const std::size_t each = count();
    const auto number = static_cast<std::int64_t>(each);
    const int root = round_ % size();
    std::vector<Words> given;
    for (int r = 0; r < size(); ++r) given.push_back(numbers(r, 6, each));
    Words upto(each);
    Words sum(each);
    Words all;
    for (int r = 0; r < size(); ++r) {
      for (std::size_t i = 0; i < each; ++i) sum[i] += given[at(r)][i];
      if (r == rank()) upto = sum;
      all.insert(all.end(), given[at(r)].begin(), given[at(r)].end());
    }
    const ist_buffer mine = ist_host(given[at(rank())].data());
    Words found(each, kPoison);
    const ist_buffer into = ist_host(found.data());
    ASSERT_EQ(IST_OK, ist_allreduce(mine, into, number, IST_UINT64, IST_SUM, comm_)) << ist_error_text();
    ASSERT_EQ(sum, found) << where("allreduce");
    ASSERT_EQ(IST_OK, ist_scan(mine, into, number, IST_UINT64, IST_SUM, comm_)) << ist_error_text();
    ASSERT_EQ(upto, found) << where("scan");
    Words together(all.size(), kPoison);
    ASSERT_EQ(IST_OK, ist_gather(mine, number, ist_host(together.data()), number, IST_UINT64, root, comm_))
        << ist_error_text();
    ASSERT_EQ(rank() == root ? all : Words(all.size(), kPoison), together) << where("gather");
    ASSERT_EQ(IST_OK, ist_scatter(ist_host(together.data()), number, into, number, IST_UINT64, root, comm_))
        << ist_error_text();
    ASSERT_EQ(given[at(rank())], found) << where("scatter");
    ASSERT_EQ(IST_OK, ist_allgather(into, number, ist_host(together.data()), number, IST_UINT64, comm_)) << ist_error_text();
    ASSERT_EQ(all, together) << where("allgather");
    ASSERT_EQ(IST_OK, ist_bcast(into, number, IST_UINT64, root, comm_)) << ist_error_text();
    ASSERT_EQ(given[at(root)], found) << where("bcast");
    ASSERT_EQ(IST_OK, ist_reduce_scatter_block(ist_host(together.data()), into, number, IST_UINT64, IST_MAX, comm_))
        << ist_error_text();
    ASSERT_EQ(given[at(rank())], found) << where("reduce_scatter_block");
  }

  // Parts of several lengths, all calls under way at once; they are over one by one, or as many as there are.
  void collect_parts() {
    const std::size_t ranks = at(size());
    const int root = round_ % size();
    std::vector<std::int64_t> counts, displs, mine(ranks, static_cast<std::int64_t>(part(rank()))), apart;
    std::size_t before = 0;
    Words sum(part(0));
    Words all;
    for (int r = 0; r < size(); ++r) {
      counts.push_back(static_cast<std::int64_t>(part(r)));
      displs.push_back(static_cast<std::int64_t>(before));
      apart.push_back(static_cast<std::int64_t>(part(rank()) * at(r)));
      before += part(r);
      const Words theirs = numbers(r, 8, part(r));
      all.insert(all.end(), theirs.begin(), theirs.end());
      const Words first = numbers(r, 9, part(0));
      for (std::size_t i = 0; r < rank() && i < part(0); ++i) sum[i] += first[i];
    }
    const Words given = numbers(rank(), 8, part(rank()));
    const Words first = numbers(rank(), 9, part(0));
    const Words out = numbers(rank(), 10, part(rank()) * ranks);
    Words gathered(before, kPoison), together(before, kPoison), scattered(part(rank()), kPoison), exchanged(before, kPoison),
        up_to(part(0), kPoison);
    std::array<ist_request, 5> calls{};
    ASSERT_EQ(IST_OK, ist_igatherv(ist_host(given.data()), counts[at(rank())], ist_host(gathered.data()), counts.data(),
                                   displs.data(), IST_UINT64, root, comm_, &calls[0]))
        << ist_error_text();
    ASSERT_EQ(IST_OK, ist_iscatterv(ist_host(all.data()), counts.data(), displs.data(), ist_host(scattered.data()),
                                    counts[at(rank())], IST_UINT64, root, comm_, &calls[1]))
        << ist_error_text();
    ASSERT_EQ(IST_OK, ist_iallgatherv(ist_host(given.data()), counts[at(rank())], ist_host(together.data()), counts.data(),
                                      displs.data(), IST_UINT64, comm_, &calls[2]))
        << ist_error_text();
    ASSERT_EQ(IST_OK, ist_ialltoallv(ist_host(out.data()), mine.data(), apart.data(), ist_host(exchanged.data()),
                                     counts.data(), displs.data(), IST_UINT64, comm_, &calls[3]))
        << ist_error_text();
    ASSERT_EQ(IST_OK,
              ist_iexscan(ist_host(first.data()), ist_host(up_to.data()), counts[0], IST_UINT64, IST_SUM, comm_, &calls[4]))
        << ist_error_text();
    finish(calls);
    ASSERT_EQ(rank() == root ? all : Words(before, kPoison), gathered) << where("igatherv");
    ASSERT_EQ(given, scattered) << where("iscatterv");
    ASSERT_EQ(all, together) << where("iallgatherv");
    for (int r = 0; r < size(); ++r) {
      const Words theirs = numbers(r, 10, part(r) * ranks);
      ASSERT_EQ(0, std::memcmp(&theirs[part(r) * at(rank())], &exchanged[at(static_cast<int>(displs[at(r)]))], part(r) * 8))
          << where("ialltoallv");
    }
    ASSERT_EQ(rank() == 0 ? Words(part(0), kPoison) : sum, up_to) << where("iexscan");
  }
  // Of that rank: never as long as another one's.
  std::size_t part(int of) const { return count() / 2 + 1 + 3 * at(of); }
  void finish(std::array<ist_request, 5>& calls) {
    constexpr int kCalls = 5;
    for (int index = 0, completed = 0; index != IST_UNDEFINED;) {
      if (round_ % 2 == 0) {
        ASSERT_EQ(IST_OK, ist_testany(kCalls, calls.data(), &index, &completed, IST_STATUS_IGNORE)) << ist_error_text();
        if (completed == 0) {
          index = 0;
          std::this_thread::yield();
        }
        continue;
      }
      std::array<int, kCalls> indices{};
      ASSERT_EQ(IST_OK, ist_waitsome(kCalls, calls.data(), &completed, indices.data(), IST_STATUSES_IGNORE))
          << ist_error_text();
      if (completed == IST_UNDEFINED) index = IST_UNDEFINED;
    }
    for (const ist_request call : calls) ASSERT_EQ(IST_REQUEST_NULL, call) << where("calls with parts");
  }

  // In a grid of the listed ranks, which is made and freed meanwhile.
  void replace() {
    std::vector<int> everybody(at(size()));
    for (int r = 0; r < size(); ++r) everybody[at(r)] = size() - 1 - r;
    ist_comm listed = IST_COMM_NULL;
    ist_comm grid = IST_COMM_NULL;
    const int all = size();
    const int periodic = 1;
    int from = -1;
    int to = -1;
    ASSERT_EQ(IST_OK, ist_comm_create_group(comm_, all, everybody.data(), round_, &listed)) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_cart_create(listed, 1, &all, &periodic, 0, &grid)) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_cart_shift(grid, 0, 1, &from, &to)) << ist_error_text();
    const auto number = static_cast<std::int64_t>(count());
    Words both = numbers(rank(), 7, count());
    ASSERT_EQ(IST_OK,
              ist_sendrecv_replace(ist_host(both.data()), number, IST_UINT64, to, 1, from, 1, grid, IST_STATUS_IGNORE))
        << ist_error_text();
    ASSERT_EQ(numbers(right(), 7, count()), both) << where("sendrecv_replace");  // they are listed the other way round
    ist_request send = IST_REQUEST_NULL;
    Words back(count(), kPoison);
    ASSERT_EQ(IST_OK, ist_issend(ist_host(both.data()), number, IST_UINT64, from, 2, grid, &send)) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_recv(ist_host(back.data()), number, IST_UINT64, to, 2, grid, IST_STATUS_IGNORE))
        << ist_error_text();
    ASSERT_EQ(IST_OK, ist_wait(&send, IST_STATUS_IGNORE)) << ist_error_text();
    ASSERT_EQ(numbers(rank(), 7, count()), back) << where("issend");
    ASSERT_EQ(IST_OK, ist_comm_free(&grid)) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_comm_free(&listed)) << ist_error_text();
  }

  // The message is found, by one call that waits or by many that do not, and then received by its handle.
  void set_aside(bool waits) {
    const auto mine = numbers(rank(), 2, count());
    std::vector<std::uint64_t> found(count(), 0xa5);
    const auto number = static_cast<std::int64_t>(count());
    ist_request send = IST_REQUEST_NULL;
    ASSERT_EQ(IST_OK, ist_isend(ist_host(mine.data()), number, IST_UINT64, right(), 5, comm_, &send)) << ist_error_text();
    ist_message message = IST_MESSAGE_NULL;
    ist_status status{};
    for (int there = 0; round_ % 4 == 3 && there == 0; std::this_thread::yield())
      ASSERT_EQ(IST_OK, ist_iprobe(left(), 5, comm_, &there, &status)) << ist_error_text();
    if (waits) {
      ASSERT_EQ(IST_OK, ist_mprobe(left(), 5, comm_, &message, &status)) << ist_error_text();
    } else {
      for (int there = 0; there == 0; std::this_thread::yield())
        ASSERT_EQ(IST_OK, ist_improbe(IST_ANY_SOURCE, IST_ANY_TAG, comm_, &there, &message, &status)) << ist_error_text();
    }
    ASSERT_EQ(number * 8, status.bytes) << where("probe");
    if (waits) {
      ASSERT_EQ(IST_OK, ist_mrecv(ist_host(found.data()), number, IST_UINT64, &message, &status)) << ist_error_text();
    } else {
      ist_request receive = IST_REQUEST_NULL;
      ASSERT_EQ(IST_OK, ist_imrecv(ist_host(found.data()), number, IST_UINT64, &message, &receive)) << ist_error_text();
      ASSERT_EQ(IST_OK, ist_wait(&receive, &status)) << ist_error_text();
    }
    ASSERT_EQ(IST_OK, ist_wait(&send, IST_STATUS_IGNORE)) << ist_error_text();
    ASSERT_EQ(left(), status.source) << where("mrecv");
    ASSERT_EQ(numbers(left(), 2, count()), found) << where("mrecv");
  }

  // Two receives and two sends, which are started anew in every round with what the buffers hold then.
  void make() {
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(IST_OK,
                ist_recv_init(ist_host(in_[at(i)].data()), kKept, IST_UINT64, left(), 10 + i, comm_, &persistent_[at(i)]));
      ASSERT_EQ(IST_OK, ist_send_init(ist_host(out_[at(i)].data()), kKept, IST_UINT64, right(), 10 + i, comm_,
                                      &persistent_[at(2 + i)]));
    }
  }
  void start_again() {
    for (int i = 0; i < 2; ++i) {
      std::ranges::copy(numbers(rank(), 3 + i, kKept), out_[at(i)].begin());
      std::ranges::fill(in_[at(i)], kPoison);
    }
    ASSERT_EQ(IST_OK, ist_startall(4, persistent_.data())) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_waitall(4, persistent_.data(), IST_STATUSES_IGNORE)) << ist_error_text();
    for (int i = 0; i < 2; ++i) ASSERT_EQ(numbers(left(), 3 + i, kKept), in_[at(i)]) << where("startall");
  }

  // Receives and sends as they become complete: one by one, or as many as there are at a look.
  void take_some(bool one_by_one) {
    constexpr int kMessages = 4;
    std::vector<Words> out, in(kMessages, Words(count(), kPoison));
    std::vector<ist_request> requests(2 * kMessages, IST_REQUEST_NULL);
    const auto number = static_cast<std::int64_t>(count());
    for (int i = 0; i < kMessages; ++i) {
      out.push_back(numbers(rank(), 5, count() * at(i + 1)));
      ASSERT_EQ(IST_OK, ist_irecv(ist_host(in[at(i)].data()), number, IST_UINT64, left(), 20 + i, comm_, &requests[at(i)]));
    }
    for (int i = kMessages - 1; i >= 0; --i)  // its last `count` numbers
      ASSERT_EQ(IST_OK, ist_isend(ist_host(&out[at(i)][count() * at(i)]), number, IST_UINT64, right(), 20 + i, comm_,
                                  &requests[at(kMessages + i)]));
    // Until none is there: a send that is over at once has left none.
    for (int completed = 0; completed != IST_UNDEFINED;) {
      std::array<int, 2 * kMessages> indices{};
      if (one_by_one) {
        ASSERT_EQ(IST_OK, ist_waitany(2 * kMessages, requests.data(), indices.data(), IST_STATUS_IGNORE))
            << ist_error_text();
        completed = indices[0] == IST_UNDEFINED ? IST_UNDEFINED : 1;
      } else {
        ASSERT_EQ(IST_OK, ist_testsome(2 * kMessages, requests.data(), &completed, indices.data(), IST_STATUSES_IGNORE))
            << ist_error_text();
        if (completed == 0) std::this_thread::yield();
      }
      for (int i = 0; i < completed; ++i) ASSERT_EQ(IST_REQUEST_NULL, requests[at(indices[at(i)])]) << where("some of many");
    }
    for (int i = 0; i < kMessages; ++i) {
      const Words theirs = numbers(left(), 5, count() * at(i + 1));
      ASSERT_EQ(0, std::memcmp(&theirs[count() * at(i)], in[at(i)].data(), count() * 8)) << where("some of many");
    }
  }

  static constexpr std::uint64_t kPoison = 0xa5a5a5a5a5a5a5a5;
  static constexpr std::size_t kKept = 700;
  ist_comm comm_;
  int thread_;
  ist_op op_;
  int round_ = 0;
  std::array<Words, 2> in_{Words(kKept), Words(kKept)};
  std::array<Words, 2> out_{Words(kKept), Words(kKept)};
  std::array<ist_request, 4> persistent_{};
};

TEST(Threads, EightOfThemMixCollectiveCallsProbesSynchronousMessagesGridsPersistentRequestsAndWaitsForSome) {
  std::atomic<int> composed = 0;
  ist_op op = IST_OP_NULL;
  IST_OK_OR_FAIL(ist_op_create(compose, &composed, 0, &op));
  std::vector<ist_comm> comms(kThreads);
  for (ist_comm& one : comms) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { Mixture(comms[at(t)], t, op).run(); });
  for (std::thread& thread : threads) thread.join();
  for (ist_comm& one : comms) IST_OK_OR_FAIL(ist_comm_free(&one));
  IST_OK_OR_FAIL(ist_op_free(&op));
}

}  // namespace
