// Puts, gets, signals and atomics of symmetric heaps, in host memory and, where every rank has a device, in CUDA memory: each step by another way, every
// byte compared, and sums that all ranks add to.
#include <isthmus/heap.h>

#include <algorithm>
#include <cstdio>

#include "lane.hpp"

namespace soak {
namespace {

enum class Way { put_signal, put, get };
constexpr const char* kWays[] = {"put_signal", "put and barrier", "get"};
constexpr std::size_t kMost = 1 << 20;

class HeapLane final : public Lane {
 public:
  HeapLane(Rank& rank, Tally& tally, int number) : Lane(rank, tally, number, "heap") {
    // Buffers of OpenCL have tests of their own.
    std::ranges::copy_if(rank.classes, std::back_inserter(classes_), [](Class one) { return one != Class::opencl; });
  }

 private:
  struct Symmetric {
    const char* name;
    ist_heap heap = IST_HEAP_NULL;
    void* room = nullptr;
    std::uint64_t* words = nullptr;  // what the left rank signals, and what everybody adds to
    std::uint64_t signals = 0, sum = 0;
  };
  // Once for all rounds: a heap that the world takes along. One call of each kind, so that nothing is loaded while kernels of other lanes wait.
  void open() override {
    if (!heaps_.empty() || classes_.empty()) return;
    SOAK_IST(ist_comm_dup, rank_.comm, &comm_);
    make("host", IST_KIND_HOST, IST_OWN_DEVICE);
    if (std::ranges::find(rank_.classes, Class::cuda) != rank_.classes.end())
      make("cuda", IST_KIND_CUDA, rank_.place.device);
  }
  void make(const char* name, ist_kind kind, int device) {
    Symmetric& of = heaps_.emplace_back(Symmetric{name});
    void* words = nullptr;
    SOAK_IST(ist_heap_create, comm_, kind, device, 2 * kMost, 2 * kMost, &of.heap);
    SOAK_IST(ist_heap_alloc, of.heap, kMost, &of.room);
    SOAK_IST(ist_heap_calloc, of.heap, 2, sizeof(std::uint64_t), &words);
    of.words = static_cast<std::uint64_t*>(words);
    add_everywhere(of);
    SOAK_IST(ist_heap_barrier, of.heap);
  }
  void add_everywhere(Symmetric& of) const {
    const auto mine = static_cast<std::uint64_t>(rank_.rank) + 1, all = static_cast<std::uint64_t>(rank_.size);
    for (int pe = 0; pe < rank_.size; ++pe)
      SOAK_IST(ist_heap_atomic64, of.heap, IST_ATOMIC_ADD, of.words + 1, mine, nullptr, pe);
    of.sum += all * (all + 1) / 2;
  }
  // The left rank's bytes are in the own part when this returns, or, of a get, in its own.
  void bring(Symmetric& of, Way way, ist_buffer source, std::size_t bytes) const {
    switch (way) {
      case Way::put_signal:
        SOAK_IST(ist_heap_put_signal, of.heap, of.room, source, bytes, of.words, ++of.signals, IST_SIGNAL_SET,
                 rank_.right());
        SOAK_IST(ist_heap_wait_until, of.heap, of.words, IST_UINT64, IST_COMPARE_GE, static_cast<std::int64_t>(of.signals));
        return;
      case Way::put:
        SOAK_IST(ist_heap_put_nbi, of.heap, of.room, source, bytes, rank_.right());
        return ok(ist_heap_barrier(of.heap), "ist_heap_barrier");
      case Way::get:
        SOAK_IST(ist_heap_put, of.heap, of.room, source, bytes, rank_.rank);
        return ok(ist_heap_barrier(of.heap), "ist_heap_barrier");
    }
  }
  void step(std::uint64_t step) override;

  ist_comm comm_ = IST_COMM_NULL;
  std::vector<Symmetric> heaps_;
  std::vector<Class> classes_;
};

void HeapLane::step(std::uint64_t step) {
  if (heaps_.empty()) return;
  Dice shared{seed_of(step, 0, 0), 30};
  Dice mine{seed_of(step, rank_.rank, 0), 31};
  Symmetric& of = heaps_[shared.below(heaps_.size())];
  const auto way = static_cast<Way>(shared.below(3));
  const std::size_t bytes = std::min(some_size(shared, rank_.options.most), kMost);
  Held source = hold(mine.of(classes_), bytes, mine), target = hold(mine.of(classes_), bytes, mine);
  fill(source, bytes, seed_of(step, rank_.rank, 1), false);
  poison(target, false);
  const std::string what = std::string{kWays[static_cast<int>(way)]} + " of " + std::to_string(bytes) + " B, " + of.name +
                           " heap, from " + name_of(source.memory->of()) + ", read into " + name_of(target.memory->of());
  working(what);
  bring(of, way, source.get(stream()), bytes);
  SOAK_IST(ist_heap_get, of.heap, target.get(stream()), of.room, bytes, way == Way::get ? rank_.left() : rank_.rank);
  check(target, bytes, seed_of(step, rank_.left(), 1), what,
        std::string{"heap, "} + of.name + ", " + kWays[static_cast<int>(way)]);
  add_everywhere(of);
  SOAK_IST(ist_heap_barrier, of.heap);
  std::uint64_t found = 0;
  SOAK_IST(ist_heap_atomic64, of.heap, IST_ATOMIC_FETCH, of.words + 1, 0, &found, rank_.rank);
  if (found != of.sum) {
    std::fprintf(stderr, "MISMATCH on rank %d: %s: %llu was added to the word instead of %llu\n", rank_.rank, what.c_str(),
                 static_cast<unsigned long long>(found), static_cast<unsigned long long>(of.sum));
    tally_.mismatch();
  }
  give_back(std::move(source), mine);
  give_back(std::move(target), mine);
  // Before anybody's next step changes what was read.
  SOAK_IST(ist_heap_barrier, of.heap);
}

}  // namespace

std::unique_ptr<Lane> make_heap_lane(Rank& rank, Tally& tally, int number) {
  return std::make_unique<HeapLane>(rank, tally, number);
}

}  // namespace soak
