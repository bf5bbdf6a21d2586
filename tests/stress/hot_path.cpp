// The hot path of a small message, alone: two ranks in this one process, and one thread that sends from the one and receives
// in the other, so that every message takes the same instructions in every run.
//
//   hot_path prove      no allocation and no system call in any message up to the eager limit, broadcast or reduce; status 77: system calls cannot
//                       be forbidden here
//   hot_path count N    N messages each way, for instructions.py under callgrind
//   hot_path windows N  N messages in windows of 64, which wait for all
//   hot_path calls N    N broadcasts from rank 0, and N reduces to rank 1
#include <isthmus/boot.h>
#include <isthmus/collective.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <thread>

#include "counted_allocations.hpp"

namespace {

constexpr int kSkipped = 77;
// Every slot of the pair was used, and every array has grown to its size.
constexpr int kWarmUp = 512;
constexpr int kProven = 10000;
constexpr int kTag = 7;
constexpr int kWindow = 64;

// ---- two worlds in one process ----

struct Meeting {
  std::barrier<> barrier{2};
  std::array<const void*, 2> given{};
};

struct Seat {
  Meeting* meeting;
  std::size_t rank;
};

int all_gather(void* context, const void* mine, void* all, std::size_t bytes) {
  const auto& [meeting, rank] = *static_cast<Seat*>(context);
  meeting->given[rank] = mine;
  meeting->barrier.arrive_and_wait();
  for (std::size_t from = 0; from < 2; ++from)
    std::memcpy(static_cast<char*>(all) + from * bytes, meeting->given[from], bytes);
  meeting->barrier.arrive_and_wait();  // until then the other one reads
  return 0;
}

struct Ranks {
  std::array<ist_world, 2> worlds{};
  std::array<ist_comm, 2> comms{};
};

bool good(int code, const char* call) {
  if (code != IST_OK) std::fprintf(stderr, "%s: %s\n", call, ist_error_text());
  return code == IST_OK;
}

bool create(Ranks& ranks) {
  Meeting meeting;
  std::array<bool, 2> created{};
  const auto join = [&](std::size_t rank) {
    Seat seat{&meeting, rank};
    const ist_boot_functions functions{
        sizeof(ist_boot_functions), &seat, static_cast<std::int32_t>(rank), 2, all_gather, nullptr, nullptr};
    created[rank] = good(ist_world_create_with(&functions, &ranks.worlds[rank]), "ist_world_create_with") &&
                    good(ist_world_comm(ranks.worlds[rank], &ranks.comms[rank]), "ist_world_comm");
  };
  std::thread other{join, 1};
  join(0);
  other.join();
  return created[0] && created[1];
}

// This thread and one watcher for each world, which sleeps: nobody else executes anything while messages are counted.
// One that has been waited for is still listed for a moment.
bool alone() {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{});
  };
  auto threads = count();
  for (int n = 0; n < 1000 && threads != 3; ++n, threads = count())
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  if (threads != 3) std::fprintf(stderr, "%td threads; expected this one and the watchers of two worlds\n", threads);
  return threads == 3;
}

// ---- messages of 8 bytes from rank 0 to rank 1, each with other bytes ----

class Bytes {
 public:
  std::uint64_t next() { return state_ = state_ * 6364136223846793005U + 1442695040888963407U; }

 private:
  std::uint64_t state_ = std::random_device{}();
};

bool arrived(std::uint64_t sent, std::uint64_t received, const ist_status& status) {
  return received == sent && status.source == 0 && status.tag == kTag && status.code == IST_OK && status.bytes == 8 &&
         status.carrier == IST_CARRIER_SLOT;
}

bool send_and_receive(const Ranks& ranks, Bytes& bytes, int messages) {
  for (int i = 0; i < messages; ++i) {
    const std::uint64_t sent = bytes.next();
    std::uint64_t received = ~sent;
    ist_status status{};
    if (ist_send(ist_host(&sent), 1, IST_UINT64, 1, kTag, ranks.comms[0]) != IST_OK ||
        ist_recv(ist_host(&received), 1, IST_UINT64, 0, kTag, ranks.comms[1], &status) != IST_OK ||
        !arrived(sent, received, status))
      return false;
  }
  return true;
}

// The receive is posted before the message comes. The send's request is null: there is nothing to wait for.
bool post_and_wait(const Ranks& ranks, Bytes& bytes, int messages) {
  for (int i = 0; i < messages; ++i) {
    const std::uint64_t sent = bytes.next();
    std::uint64_t received = ~sent;
    ist_status status{};
    ist_request receive = IST_REQUEST_NULL;
    ist_request send = IST_REQUEST_NULL;
    if (ist_irecv(ist_host(&received), 1, IST_UINT64, 0, kTag, ranks.comms[1], &receive) != IST_OK ||
        ist_isend(ist_host(&sent), 1, IST_UINT64, 1, kTag, ranks.comms[0], &send) != IST_OK || send != IST_REQUEST_NULL ||
        ist_wait(&receive, &status) != IST_OK || receive != IST_REQUEST_NULL || !arrived(sent, received, status))
      return false;
  }
  return true;
}

// As bandwidths are measured: all receives are posted, then all messages come.
bool in_windows(const Ranks& ranks, Bytes& bytes, int messages) {
  std::array<std::uint64_t, kWindow> sent{};
  std::array<std::uint64_t, kWindow> received{};
  std::array<ist_status, kWindow> statuses{};
  std::array<ist_request, kWindow> receives{};
  for (int first = 0; first < messages; first += kWindow) {
    for (std::size_t n = 0; n < kWindow; ++n) {
      sent[n] = bytes.next();
      received[n] = ~sent[n];
      if (ist_irecv(ist_host(&received[n]), 1, IST_UINT64, 0, kTag, ranks.comms[1], &receives[n]) != IST_OK) return false;
    }
    for (std::size_t n = 0; n < kWindow; ++n) {
      ist_request send = IST_REQUEST_NULL;
      if (ist_isend(ist_host(&sent[n]), 1, IST_UINT64, 1, kTag, ranks.comms[0], &send) != IST_OK || send != IST_REQUEST_NULL)
        return false;
    }
    if (ist_waitall(kWindow, receives.data(), statuses.data()) != IST_OK) return false;
    for (std::size_t n = 0; n < kWindow; ++n)
      if (receives[n] != IST_REQUEST_NULL || !arrived(sent[n], received[n], statuses[n])) return false;
  }
  return true;
}

// Each of the two calls returns on the rank that only says something.
bool in_calls(const Ranks& ranks, Bytes& bytes, int calls) {
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t told = bytes.next();
    std::uint64_t sent = told;
    std::uint64_t received = ~told;
    if (ist_bcast(ist_host(&sent), 1, IST_UINT64, 0, ranks.comms[0]) != IST_OK ||
        ist_bcast(ist_host(&received), 1, IST_UINT64, 0, ranks.comms[1]) != IST_OK || sent != told || received != told)
      return false;
  }
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t told = bytes.next();
    const std::uint64_t other = bytes.next();
    std::uint64_t sum = ~(told + other);
    if (ist_reduce(ist_host(&told), ist_host(nullptr), 1, IST_UINT64, IST_SUM, 1, ranks.comms[0]) != IST_OK ||
        ist_reduce(ist_host(&other), ist_host(&sum), 1, IST_UINT64, IST_SUM, 1, ranks.comms[1]) != IST_OK ||
        sum != told + other)
      return false;
  }
  return true;
}

// Nothing, and both sides of what one cell of a pair and its neighbours take, up to the longest that goes ahead of its receive; from a named rank
// or from any.
bool of_sizes(const Ranks& ranks, Bytes& bytes, int messages) {
  static std::array<unsigned char, 16384> sent;
  static std::array<unsigned char, 16384> received;
  for (const std::size_t size : {0, 1, 8, 215, 216, 217, 1000, 2048, 2049, 4096, 8192, 8193, 16384})
    for (int n = 0; n < messages / 16; ++n) {
      for (std::size_t at = 0; at < size; ++at) {
        if (at % 64 == 0) sent[at] = static_cast<unsigned char>(bytes.next() >> 56U);
        received[at] = static_cast<unsigned char>(~sent[at]);
      }
      const bool named = n % 2 == 0;
      const auto count = static_cast<std::int64_t>(size);
      ist_status status{};
      if (ist_send(ist_host(sent.data()), count, IST_BYTE, 1, kTag, ranks.comms[0]) != IST_OK ||
          ist_recv(ist_host(received.data()), count, IST_BYTE, named ? 0 : IST_ANY_SOURCE, named ? kTag : IST_ANY_TAG,
                   ranks.comms[1], &status) != IST_OK ||
          status.source != 0 || status.tag != kTag || status.bytes != count ||
          std::memcmp(sent.data(), received.data(), size) != 0)
        return false;
    }
  return true;
}

bool both_ways(const Ranks& ranks, Bytes& bytes, int messages) {
  return send_and_receive(ranks, bytes, messages) && post_and_wait(ranks, bytes, messages);
}

bool all_ways(const Ranks& ranks, Bytes& bytes, int messages) {
  return both_ways(ranks, bytes, messages) && in_windows(ranks, bytes, messages) && in_calls(ranks, bytes, messages) &&
         of_sizes(ranks, bytes, messages);
}

// ---- proofs ----

bool no_allocation(const Ranks& ranks, Bytes& bytes) {
  const std::uint64_t before = ist::test::allocations();
  const bool right = all_ways(ranks, bytes, kProven);
  const std::uint64_t made = ist::test::allocations() - before;
  // That none is counted says something only because those of the worlds' creation were.
  std::printf(
      "%d messages each way and in windows, calls, and messages of other sizes: %s, %llu allocations (%llu before the first "
      "message)\n",
      kProven, right ? "every byte right" : "wrong bytes", static_cast<unsigned long long>(made),
      static_cast<unsigned long long>(before));
  return right && made == 0 && before > 0;
}

// From here on this process may do nothing but end by exit(2): any other system call kills it.
bool forbid_system_calls() {
  std::array<sock_filter, 4> rules{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)}};
  const sock_fprog program{rules.size(), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// How a forked child ends that may make no system call while it executes `body`, which tells whether all went well. The child
// has this thread alone; the worlds' shared memory is its parent's, who sends nothing after it. By _Fork(): after fork() the library refuses its calls.
template <class Body>
int end_without_system_calls(const Body& body) {
  std::fflush(nullptr);
  const pid_t child = ::_Fork();
  if (child == 0) {
    ::prctl(PR_SET_DUMPABLE, 0);  // no core of the one that is to be killed
    if (!forbid_system_calls()) ::_exit(kSkipped);
    ::syscall(SYS_exit, body() ? 0 : 1);
  }
  int end = -1;
  ::waitpid(child, &end, 0);
  return end;
}

bool killed(int end) { return WIFSIGNALED(end) && WTERMSIG(end) == SIGSYS; }

int no_system_call(const Ranks& ranks, Bytes& bytes) {
  // One that does make a call must be caught, or the proof is none.
  const int caught = end_without_system_calls([] { return ::syscall(SYS_getppid) > 0; });
  if (WIFEXITED(caught) && WEXITSTATUS(caught) == kSkipped) {
    std::printf("skipped: system calls are not covered here, because this machine permits no filter of them\n");
    return kSkipped;
  }
  const int end = end_without_system_calls([&] { return all_ways(ranks, bytes, kProven); });
  const bool right = WIFEXITED(end) && WEXITSTATUS(end) == 0;
  std::printf("%d messages each way and in windows, calls, and messages of other sizes: %s\n", kProven,
              right         ? "no system call"
              : killed(end) ? "killed at a system call; strace -f shows which"
                            : "failed where system calls are forbidden");
  if (!killed(caught)) std::printf("a system call was not caught where it is forbidden: status %d\n", caught);
  return right && killed(caught) ? 0 : 1;
}

// What is executed before it, callgrind forgets: allocations of the warm-up are not the same in every run.
extern "C" [[gnu::noinline, gnu::used]] void counting_begins() { asm volatile("" ::: "memory"); }

int usage() {
  std::fprintf(stderr,
               "usage: hot_path prove | hot_path count MESSAGES | hot_path windows MESSAGES | hot_path calls CALLS\n");
  return 2;
}

int run(const std::string& what, int messages) {
  Ranks ranks;
  if (!create(ranks) || !alone()) return 1;
  Bytes bytes;
  int status = all_ways(ranks, bytes, kWarmUp) ? 0 : 1;
  if (status != 0) {
    std::fprintf(stderr, "a message failed, or came with other bytes, status or carrier: %s\n", ist_error_text());
  } else if (what == "count") {
    counting_begins();
    status = both_ways(ranks, bytes, messages) ? 0 : 1;
  } else if (what == "windows") {
    counting_begins();
    status = in_windows(ranks, bytes, messages) ? 0 : 1;
  } else if (what == "calls") {
    counting_begins();
    status = in_calls(ranks, bytes, messages) ? 0 : 1;
  } else {
    status = no_allocation(ranks, bytes) ? no_system_call(ranks, bytes) : 1;
  }
  for (ist_world& world : ranks.worlds)
    if (!good(ist_world_destroy(&world), "ist_world_destroy")) status = 1;
  return status;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const bool counts = what == "count" || what == "windows" || what == "calls";
  if (!(what == "prove" && count == 2) && !(counts && count == 3)) return usage();
  // Nothing sleeps, nobody but this thread moves messages, no driver is loaded; the lock is taken, as by default.
  ::setenv("ISTHMUS_WAIT", "spin", 1);
  ::setenv("ISTHMUS_PROGRESS_THREAD", "0", 1);
  ::setenv("ISTHMUS_KINDS", "host", 1);
  ::setenv("ISTHMUS_THREADS", "multiple", 1);
  return run(what, counts ? static_cast<int>(std::strtol(words[2], nullptr, 10)) : 0);
}
