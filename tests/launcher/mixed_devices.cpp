// A rank among ranks that see other devices than it does: sends from each place it has into each place that another has, and takes
// part in collective calls from each of its places.
//
//   mixed_devices PLACES...     how many places (host memory is one, and so is each device) each rank should find
#include <isthmus/collective.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

int failures = 0;

bool expect(int code, const char* what) {
  if (code == IST_OK) return true;
  ++failures;
  std::printf("failed: %s (%s)\n", what, ist_error_text());
  return false;
}

// Place 0 is host memory, place n device n - 1.
ist_buffer allocate(ist_world world, int place, std::size_t bytes) {
  ist_buffer buffer = ist_host(nullptr);
  expect(ist_memory_alloc(world, place == 0 ? IST_KIND_HOST : IST_KIND_CUDA, place == 0 ? 0 : place - 1, bytes, &buffer),
         "ist_memory_alloc");
  return buffer;
}

Bytes pattern(int seed, std::size_t length) {
  const char* salt = std::getenv("ISTHMUS_TEST_SALT");
  std::seed_seq seeds{seed, static_cast<int>(length), salt ? std::atoi(salt) : 0};
  std::mt19937_64 engine{seeds};
  Bytes bytes(length);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(engine());
  return bytes;
}

class Rank {
 public:
  explicit Rank(ist_world world) : world_(world) {
    expect(ist_world_comm(world_, &comm_), "ist_world_comm");
    expect(ist_comm_rank(comm_, &rank), "ist_comm_rank");
    expect(ist_comm_size(comm_, &size), "ist_comm_size");
    expect(ist_kind_devices(world_, IST_KIND_CUDA, &devices), "ist_kind_devices");
  }
  void send(int to, int place, int seed, std::size_t length) {
    const Bytes bytes = pattern(seed, length);
    const ist_buffer buffer = allocate(world_, place, length + 1);
    expect(ist_memory_copy(world_, buffer, ist_host(bytes.data()), length), "copy in");
    expect(ist_send(buffer, static_cast<int64_t>(length), IST_BYTE, to, seed, comm_), "ist_send");
    expect(ist_memory_free(world_, buffer), "ist_memory_free");
  }
  void receive(int from, int place, int seed, std::size_t length) {
    Bytes got(length + 1, 0xee);
    const Bytes poison(length + 1, 0x5a);
    const ist_buffer buffer = allocate(world_, place, length + 1);
    expect(ist_memory_copy(world_, buffer, ist_host(poison.data()), length + 1), "poison");
    expect(ist_recv(buffer, static_cast<int64_t>(length), IST_BYTE, from, seed, comm_, IST_STATUS_IGNORE), "ist_recv");
    expect(ist_memory_copy(world_, ist_host(got.data()), buffer, length + 1), "copy out");
    expect(ist_memory_free(world_, buffer), "ist_memory_free");
    Bytes wanted = pattern(seed, length);
    wanted.push_back(0x5a);
    if (got == wanted) return;
    ++failures;
    std::printf("failed: %zu bytes of rank %d came out wrong in place %d of rank %d\n", length, from, place, rank);
  }
  // `bytes` in a place of this rank's, poisoned behind them.
  ist_buffer given(int place, const Bytes& bytes) const {
    Bytes whole = bytes;
    whole.push_back(0x5a);
    const ist_buffer buffer = allocate(world_, place, whole.size());
    expect(ist_memory_copy(world_, buffer, ist_host(whole.data()), whole.size()), "copy in");
    return buffer;
  }
  // What is there now, and nothing behind it.
  void take(const ist_buffer& buffer, const char* call, int place, Bytes wanted) const {
    wanted.push_back(0x5a);
    Bytes got(wanted.size(), 0xee);
    expect(ist_memory_copy(world_, ist_host(got.data()), buffer, got.size()), "copy out");
    expect(ist_memory_free(world_, buffer), "ist_memory_free");
    if (got == wanted) return;
    ++failures;
    std::printf("failed: %s of %zu bytes came out wrong in place %d of rank %d\n", call, wanted.size() - 1, place, rank);
  }
  // Calls on vectors with `length` bytes for each rank, sent from one place and received in another.
  void meet(int from, int into, int root, int seed, std::size_t length) {
    const auto count = static_cast<int64_t>(length);
    const auto ranks = static_cast<std::size_t>(size);
    const auto part = [&](const Bytes& of, int r) {
      const auto first = of.begin() + static_cast<std::ptrdiff_t>(length) * r;
      return Bytes(first, first + static_cast<std::ptrdiff_t>(length));
    };
    std::vector<Bytes> all;
    Bytes greatest(length * ranks), exchanged;
    for (int r = 0; r < size; ++r) {
      const Bytes& theirs = all.emplace_back(pattern(seed + r, length * ranks));
      std::transform(greatest.begin(), greatest.end(), theirs.begin(), greatest.begin(),
                     [](unsigned char one, unsigned char other) { return std::max(one, other); });
      const Bytes mine = part(theirs, rank);
      exchanged.insert(exchanged.end(), mine.begin(), mine.end());
    }
    const Bytes& own = all[static_cast<std::size_t>(rank)];
    const Bytes& of_root = all[static_cast<std::size_t>(root)];
    const ist_buffer send = given(from, own);
    const ist_buffer reduced = given(into, Bytes(length * ranks, 0xee));
    const ist_buffer told = given(into, rank == root ? of_root : Bytes(length * ranks, 0xee));
    const ist_buffer swapped = given(into, Bytes(length * ranks, 0xee));
    expect(ist_allreduce(send, reduced, size * count, IST_UINT8, IST_MAX, comm_), "ist_allreduce");
    expect(ist_bcast(told, size * count, IST_BYTE, root, comm_), "ist_bcast");
    expect(ist_alltoall(send, swapped, count, IST_BYTE, comm_), "ist_alltoall");
    take(reduced, "allreduce", into, greatest);
    take(told, "bcast", into, of_root);
    take(swapped, "alltoall", into, exchanged);
    take(send, "the input", from, own);
  }
  void allocate_own() const {
    ist_buffer buffer = ist_host(nullptr);
    const int code = ist_memory_alloc(world_, IST_KIND_CUDA, IST_OWN_DEVICE, 100, &buffer);
    if (devices == 0) {
      failures += code == IST_ERR_KIND ? 0 : 1;
    } else if (expect(code, "ist_memory_alloc on its own device")) {
      failures += buffer.device == rank % devices ? 0 : 1;
      expect(ist_memory_free(world_, buffer), "ist_memory_free");
    }
  }
  int rank = -1;
  int size = 0;
  int devices = -1;

 private:
  ist_world world_;
  ist_comm comm_ = IST_COMM_NULL;
};

}  // namespace

int main(int argc, char** argv) {
  ist_world world = IST_WORLD_NULL;
  if (!expect(ist_world_create(&world), "ist_world_create")) return 1;
  {
    Rank me{world};
    if (argc != me.size + 1 || std::atoi(argv[me.rank + 1]) != me.devices + 1) {
      std::printf("failed: rank %d of %d found %d devices\n", me.rank, me.size, me.devices);
      ++failures;
    }
    me.allocate_own();
    int seed = 0;
    for (int from = 0; from < me.size; ++from)
      for (int to = 0; to < me.size; ++to)
        for (int source = 0; source < std::atoi(argv[from + 1]); ++source)
          for (int target = 0; target < std::atoi(argv[to + 1]); ++target)
            for (const std::size_t length : {0UL, 1UL, 8193UL, 300001UL}) {
              ++seed;
              if (from == to) continue;
              if (me.rank == from) me.send(to, source, seed, length);
              if (me.rank == to) me.receive(from, target, seed, length);
            }
    // Each rank goes through its own places: as many turns as the one with the most needs. Up to 128 KiB arithmetic is done on the
    // host, above on the device: also a rank's part of the longest vector is more.
    int most = 1;
    for (int r = 1; r <= me.size; ++r) most = std::max(most, std::atoi(argv[r]));
    const int places = me.devices + 1;
    for (int turn = 0; turn < most * most; ++turn)
      for (const std::size_t length : {1UL, 8193UL, 150001UL})
        me.meet(turn % places, turn / most % places, turn % me.size, 1000 + turn * me.size, length);
    if (failures == 0) std::printf("rank %d with %d devices is through\n", me.rank, me.devices);
  }
  expect(ist_world_destroy(&world), "ist_world_destroy");
  return failures == 0 ? 0 : 1;
}
