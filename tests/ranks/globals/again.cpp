// Globals of a C++ program through OpenSHMEM's calls, from shmem_init to shmem_finalize and once more, with threads and children.
#include <shmem.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 3;
constexpr int kAdditions = 500;

// Objects whose constructors have run long before.
std::atomic<long> counter{7};
std::string text = "a text that is too long for any string to keep it within itself";
std::vector<int> numbers{1, 2, 3};
std::mutex mutex;
std::atomic<bool> over{false};
volatile long stored = 0;
long word = 0;
int wrong_anywhere = 0;
int wrong = 0;

struct Counted {
  static inline long made = 0;
  static long& of_function() {
    static long within = 100;
    return within;
  }
  Counted() { ++made; }
};
Counted one;
Counted two;

void expect(bool is, const char* what) {
  if (is) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

void meet_peers(int round) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int right = (me + 1) % pes;
  expect(counter == 7 + round * (kAdditions * pes + kAdditions), "what an atomic had at the beginning");
  expect(text.size() > 60 && numbers.size() == 3 && Counted::made == 2, "objects are as they were");
  shmem_barrier_all();
  // By each PE's own atomics, through a pointer, and by the library's.
  auto* const theirs = static_cast<std::atomic<long>*>(shmem_ptr(&counter, right));
  expect(theirs != nullptr, "a pointer to a global");
  for (int i = 0; theirs != nullptr && i < kAdditions; ++i) theirs->fetch_add(1);
  for (int pe = 0; pe < pes; ++pe)
    for (int i = 0; i < kAdditions; ++i) shmem_long_atomic_inc(reinterpret_cast<long*>(&counter), pe);
  shmem_long_p(&Counted::of_function(), 1000 + me, right);
  shmem_long_p(&Counted::made, 2, right);
  shmem_barrier_all();
  expect(Counted::of_function() == 1000 + (me + pes - 1) % pes, "a static of a function");
  expect(counter == 7 + (round + 1) * (kAdditions * pes + kAdditions), "an atomic that everybody has added to");
  shmem_barrier_all();
}

void fork_a_child() {
  word = 5;
  shmem_barrier_all();
  const pid_t child = fork();
  if (child == 0) {
    word = 6;
    text += " and more";
    ::_exit(word == 6 && counter > 7 ? 0 : 1);
  }
  int status = -1;
  expect(waitpid(child, &status, 0) == child && status == 0, "a child");
  expect(word == 5, "what a child has stored is its own");
  shmem_barrier_all();
  shmem_long_atomic_inc(&word, (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  expect(word == 6, "a global after a child");
}

}  // namespace

int main() {
  std::unique_lock lock(mutex);
  std::thread storing{[] {
    while (!over) stored = stored + 1;
    const std::lock_guard until_main_is_done(mutex);
    stored = -stored;
  }};
  for (int round = 0; round < kRounds; ++round) {
    shmem_init();
    meet_peers(round);
    fork_a_child();
    text.replace(0, 1, 1, static_cast<char>('a' + round));
    shmem_finalize();
    expect(text[0] == 'a' + round && word == 6, "what was stored before the end");
  }
  over = true;
  lock.unlock();
  storing.join();
  expect(stored < 0, "a thread that has stored meanwhile");
  shmem_init();
  for (int pe = 0; pe < shmem_n_pes(); ++pe) shmem_int_atomic_add(&wrong_anywhere, wrong, pe);
  shmem_barrier_all();
  shmem_finalize();
  return wrong_anywhere == 0 ? 0 : 1;
}
