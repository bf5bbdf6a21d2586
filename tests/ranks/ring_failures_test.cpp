// A receiver that cannot open the ring of a pair: what is in it fails on both sides, nobody waits for ever, and the next message makes
// another ring.
#include <fcntl.h>
#include <sys/resource.h>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

// Three times as long as the ring; and what fits into it, so that the send may be over before anybody has looked.
constexpr std::size_t kLong = 3 << 20;
constexpr std::size_t kShort = (300 << 10) + 1;

// While there is one, this process opens no file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    // No fewer than kOpen: below the limit, whoever only waits for several files at once is refused, too.
    int first_free = another();
    for (; first_free >= 0 && first_free < kOpen; first_free = another()) held_.push_back(first_free);
    ::close(first_free);
    const rlimit little{static_cast<rlim_t>(first_free), usual_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &little);
  }
  ~NoMoreFiles() {
    ::setrlimit(RLIMIT_NOFILE, &usual_);
    for (const int file : held_) ::close(file);
  }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  static constexpr int kOpen = 32;
  static int another() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
  rlimit usual_{};
  std::vector<int> held_;
};

// From rank 0 to rank 1, with all its bytes.
void expect_message(const Here& here, Checks& check, std::size_t bytes, const std::string& what) {
  const Data data = random_bytes(bytes, bytes + 3);
  Data in(bytes, 0xa5);
  if (here.rank == 0) {
    check.ok(ist_send(ist_host(data.data()), count(bytes), IST_BYTE, 1, 4, here.comm), what + ", its send");
  } else {
    check.ok(ist_recv(ist_host(in.data()), count(bytes), IST_BYTE, 0, 4, here.comm, IST_STATUS_IGNORE),
             what + ", its receive");
    check.that(first_difference(data, in) < 0, what + ": its bytes");
  }
}

// So many at once, for which rank 1 has no ring.
void expect_failures(const Here& here, Checks& check, const std::vector<std::size_t>& sizes) {
  std::vector<ist_request> requests(sizes.size(), IST_REQUEST_NULL);
  std::vector<Data> data;
  for (const std::size_t bytes : sizes) data.emplace_back(bytes, static_cast<unsigned char>(0xa5));
  const int other = 1 - here.rank;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const ist_buffer buffer = ist_host(data[i].data());
    check.ok(here.rank == 0 ? ist_isend(buffer, count(sizes[i]), IST_BYTE, other, 4, here.comm, &requests[i])
                            : ist_irecv(buffer, count(sizes[i]), IST_BYTE, other, 4, here.comm, &requests[i]),
             "start");
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string what =
        std::to_string(i + 1) + " of " + std::to_string(sizes.size()) + ", " + std::to_string(sizes[i]) + " bytes";
    const int code = ist_wait(&requests[i], IST_STATUS_IGNORE);
    if (here.rank == 1) {
      check.fails(code, IST_ERR_SYSTEM, {"rank 0 ", "too many open files"}, "the receive, " + what);
    } else if (code != IST_OK || sizes[i] == kLong) {
      check.fails(code, IST_ERR_SYSTEM, {"rank 1 ", "could not open the ring"}, "the send, " + what);
    }
  }
}

int lose_rings(const Here& here) {
  Checks check(here);
  const std::vector<std::vector<std::size_t>> rounds{
      {kLong}, {kShort}, {kLong, kShort, kLong}, {kShort, kShort, kLong}, {kLong}};
  for (const auto& sizes : rounds) {
    {
      const auto limit = here.rank == 1 ? std::make_unique<NoMoreFiles>() : nullptr;
      check.ok(ist_barrier(here.comm), "no more files");
      expect_failures(here, check, sizes);
      expect_message(here, check, 100, "a small message meanwhile");
    }
    check.ok(ist_barrier(here.comm), "files again");
    expect_message(here, check, 200, "a small message afterwards");
  }
  expect_message(here, check, kLong, "a message as long as the lost ones");
  expect_message(here, check, kShort, "a shorter one");
  // A ring that is open stays so.
  const auto limit = here.rank == 1 ? std::make_unique<NoMoreFiles>() : nullptr;
  check.ok(ist_barrier(here.comm), "no more files, and none needed");
  expect_message(here, check, kLong, "a message through the open ring");
  return check.wrong();
}

TEST(RingFailures, ARingThatItsReceiverCannotOpenEndsWhatIsInItOnBothSidesAndTheNextMessageMakesAnother) {
  const Variables way{{"ISTHMUS_SINGLE_COPY", "never"}};
  expect_all(run_ranks(2, "host", lose_rings));
}

TEST(RingFailures, TheSameWhereRanksSleep) {
  const Variables way{{"ISTHMUS_SINGLE_COPY", "never"}, {"ISTHMUS_WAIT", "sleep"}};
  expect_all(run_ranks(2, "host", lose_rings));
}

}  // namespace
