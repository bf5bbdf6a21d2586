// Isthmus in kernels: long copies by one thread, which the multiprocessor's copy unit (the TMA of GPUs since sm_90) makes by way of shared memory, so
// that a block's other threads go on computing.
//
// Who calls this : kernels, beside device.cuh; processors that play them, and devices before sm_90, copy word by word.
// Threads        : one thread of a block makes the object and all its calls.
// Ownership      : the room is the caller's, in shared memory, and nobody else's while the object lives.
// Errors         : none.
//
// compute-sanitizer's racecheck does not order what the unit does, of the asynchronous proxy, and reports hazards between its loads and stores of the
// room: each such pair is ordered by the load's barrier or by a wait for the unit's stores.
//
// One thread keeps a link nearly as busy as a block of 512 that loads and stores, and some 32 of them, in as many blocks, fill it. Where all
// threads of a block have nothing else to do, put() and get() are as quick and need no room (docs/in-kernel.md has figures).
#ifndef ISTHMUS_DEVICE_BULK_CUH
#define ISTHMUS_DEVICE_BULK_CUH

#include "isthmus/device/move.cuh"

namespace ist::device {

// For so many pieces of so many bytes that are on their way at once. As large as it is, a multiple of 128 bytes.
template <unsigned kPiece = 8192, unsigned kPieces = 4>
struct alignas(128) BulkRoom {
  static_assert(kPiece % 128 == 0 && kPiece > 0 && kPiece < (1U << 20) && kPieces >= 2,
                "pieces of 128 bytes, and two of them");
  unsigned char piece[kPieces][kPiece];
  std::uint64_t come[kPieces];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// What the copy unit is told. Its loads and stores are of the asynchronous proxy: a fence lets it see what ordinary stores have left, and
// when an operation of its own is known to be over, ordinary loads and stores see what that did (PTX ISA, "Async proxy").
namespace bulk {

IST_DEVICE_CODE std::uint32_t shared(const void* at) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(at)); }

IST_DEVICE_CODE void set_up(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(barrier)) : "memory");
}
IST_DEVICE_CODE void take_down(std::uint64_t* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared(barrier)) : "memory");
}
IST_DEVICE_CODE void fence_of_set_up() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
IST_DEVICE_CODE void see_ordinary_stores() { asm volatile("fence.proxy.async;" ::: "memory"); }

IST_DEVICE_CODE void load(void* to, const unsigned char* from, std::uint32_t bytes, std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(barrier)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)),
               "l"(from), "r"(bytes), "r"(shared(barrier))
               : "memory");
}
IST_DEVICE_CODE void await_load(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t over = 0;
  while (over == 0)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}\n"
                 : "=r"(over)
                 : "r"(shared(barrier)), "r"(parity)
                 : "memory");
}
IST_DEVICE_CODE void store(unsigned char* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// All stores but the last one have read what they store.
IST_DEVICE_CODE void await_reads_but_one() { asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); }
// All stores are done.
IST_DEVICE_CODE void await_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

}  // namespace bulk
#endif

template <class Room>
class Bulk {
 public:
  // Sets up the room. Who makes another object in the same room meets this one's thread before.
  IST_DEVICE_CODE explicit Bulk(Room& room) : room_(room) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    for (std::uint64_t& barrier : room_.come) bulk::set_up(&barrier);
    bulk::fence_of_set_up();
#endif
  }
  // The room is free for anything else, once others have met this thread.
  IST_DEVICE_CODE ~Bulk() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    for (std::uint64_t& barrier : room_.come) bulk::take_down(&barrier);
#endif
  }
  Bulk(const Bulk&) = delete;
  Bulk& operator=(const Bulk&) = delete;

  // As put() and get(), by this thread: any sizes and addresses, quick where both lie alike within 16 bytes. What was stored is done when
  // this returns, and both sides may be changed; a signal or a release of this thread's behind it tells others.
  IST_DEVICE_CODE void put(const ist_team_view& view, void* mine, const void* source, std::uint64_t bytes, int pe) {
    copy(peer_ptr(view, static_cast<unsigned char*>(mine), pe), source, bytes);
  }
  IST_DEVICE_CODE void get(const ist_team_view& view, void* destination, const void* mine, std::uint64_t bytes, int pe) {
    copy(destination, peer_ptr(view, static_cast<const unsigned char*>(mine), pe), bytes);
  }
  IST_DEVICE_CODE void put_signal(const ist_team_view& view, void* mine, const void* source, std::uint64_t bytes,
                                  std::uint64_t* mine_signal, std::uint64_t value, Signal how, int pe) {
    put(view, mine, source, bytes, pe);
    signal(view, mine_signal, value, how, pe);
  }
  // Between any two places of global memory that this device reaches, a window's among them.
  IST_DEVICE_CODE void copy(void* to, const void* from, std::uint64_t bytes) {
    auto* const target = static_cast<unsigned char*>(to);
    const auto* const source = static_cast<const unsigned char*>(from);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    constexpr std::uint64_t kUnit = 16;
    const auto at = reinterpret_cast<std::uintptr_t>(to);
    const std::uint64_t head = (kUnit - at % kUnit) % kUnit;
    if ((at ^ reinterpret_cast<std::uintptr_t>(from)) % kUnit == 0 && bytes >= head + kUnit) {
      const std::uint64_t whole = (bytes - head) / kUnit * kUnit, behind = head + whole;
      copy_pieces(target + head, source + head, whole);
      copy_words<unsigned char>(target, source, head, 0, 1);
      copy_words<unsigned char>(target + behind, source + behind, bytes - behind, 0, 1);
      return;
    }
#endif
    copy_by(0, 1, target, source, bytes);
  }

 private:
  static constexpr unsigned kPieces = sizeof(Room::come) / sizeof(std::uint64_t);
  static constexpr std::uint64_t kPiece = sizeof(Room::piece) / kPieces;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  // Pieces take turns in the room. A load may follow the store of the piece before it there once that has been read: the store that was begun last is left
  // alone, so that the two directions are busy at once.
  IST_DEVICE_CODE void copy_pieces(unsigned char* to, const unsigned char* from, std::uint64_t bytes) {
    const std::uint64_t count = (bytes + kPiece - 1) / kPiece;
    const auto size_of = [&](std::uint64_t n) {
      return static_cast<std::uint32_t>(n + 1 < count ? kPiece : bytes - n * kPiece);
    };
    const auto load = [&](std::uint64_t n) {
      const auto place = static_cast<unsigned>((first_ + n) % kPieces);
      bulk::load(room_.piece[place], from + n * kPiece, size_of(n), &room_.come[place]);
    };
    bulk::see_ordinary_stores();
    for (std::uint64_t n = 0; n < kPieces && n < count; ++n) load(n);
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::uint64_t number = first_ + n;
      const auto place = static_cast<unsigned>(number % kPieces);
      bulk::await_load(&room_.come[place], static_cast<std::uint32_t>(number / kPieces % 2));
      bulk::store(to + n * kPiece, room_.piece[place], size_of(n));
      if (n == 0 || n - 1 + kPieces >= count) continue;
      bulk::await_reads_but_one();
      load(n - 1 + kPieces);
    }
    bulk::await_stores();
    first_ += count;
  }
#endif

  Room& room_;
  std::uint64_t first_ = 0;  // pieces of earlier calls: which place is next, and which of its turns
};

}  // namespace ist::device

#endif
