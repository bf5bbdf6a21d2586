#include "cli/run_binding.hpp"

#include <hwloc.h>
#include <sched.h>

#include <climits>
#include <memory>

namespace ist::cli {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

// The processors and caches this process may use. Devices are left out: looking for them would load drivers.
Topology usable_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology{raw};
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) return nullptr;
  const Bitmap own{hwloc_bitmap_alloc()};
  if (own && hwloc_get_cpubind(raw, own.get(), HWLOC_CPUBIND_PROCESS) == 0) hwloc_topology_restrict(raw, own.get(), 0);
  return topology;
}

std::vector<int> numbers_in(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(set); i != -1; i = hwloc_bitmap_next(set, i)) numbers.push_back(i);
  return numbers;
}

}  // namespace

std::vector<std::vector<int>> processor_shares(int ranks, Binding binding) {
  if (binding == Binding::never) return {};
  const Topology topology = usable_topology();
  if (!topology) return {};
  const int cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  // Bound ranks that share a core are at the mercy of the order in which they were started: the scheduler does better.
  if (binding == Binding::when_cores_suffice && ranks > cores) return {};
  hwloc_obj_t root = hwloc_get_root_obj(topology.get());
  std::vector<hwloc_cpuset_t> sets(static_cast<std::size_t>(ranks), nullptr);
  if (hwloc_distrib(topology.get(), &root, 1, sets.data(), static_cast<unsigned>(ranks), INT_MAX, 0) != 0) return {};
  std::vector<std::vector<int>> shares;
  for (const hwloc_cpuset_t set : sets) {
    const Bitmap owned{set};
    shares.push_back(numbers_in(set));
  }
  return shares;
}

void bind_to(const std::vector<int>& processors) {
  if (processors.empty()) return;
  const auto most = static_cast<std::size_t>(processors.back()) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set{CPU_ALLOC(most), [](cpu_set_t* s) { CPU_FREE(s); }};
  if (!set) return;
  const std::size_t size = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(size, set.get());
  for (const int processor : processors) CPU_SET_S(static_cast<std::size_t>(processor), size, set.get());
  ::sched_setaffinity(0, size, set.get());
}

}  // namespace ist::cli
