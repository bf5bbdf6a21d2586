#include "cli/machine.hpp"

#include <hwloc.h>
#include <sched.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>

#include "path/shm/peer_memory.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist::cli {
namespace {

// For machines whose topology has no model: virtual ones mostly.
std::string model_in_cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

// As the engine does: ranks that sleep may share processors.
Bytes slots_between_ranks(const Settings& settings, const MachineProfile& machine) {
  const Bytes measured = slots_up_to(machine, settings);
  const bool all = measured.value >= kPairPayload;
  return all || settings.wait == "sleep" || !PeerMemory::possible().ok() ? kNoLimit : measured;
}

Processors find_processors() {
  Processors found;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0) {
      const auto count = [&](hwloc_obj_type_t type) { return hwloc_get_nbobjs_by_type(topology, type); };
      found.packages = count(HWLOC_OBJ_PACKAGE);
      found.numa_nodes = count(HWLOC_OBJ_NUMANODE);
      found.cores = count(HWLOC_OBJ_CORE);
      found.threads = count(HWLOC_OBJ_PU);
      const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
      const char* model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr;
      if (model) found.model = model;
    }
    hwloc_topology_destroy(topology);
  }
  if (found.model == "unknown") found.model = model_in_cpuinfo();
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) found.usable = CPU_COUNT(&mask);
  return found;
}

std::string describe_machine(const Processors& processors, const Kinds& kinds) {
  std::string text = processors.model + ", " + std::to_string(processors.threads) + " processors";
  std::map<std::string, int> devices;
  if (const MemoryKind* cuda = kinds.find(KindId::cuda))
    for (const DeviceInfo& device : cuda->devices()) ++devices[device.name];
  for (const auto& [name, count] : devices) text += ", " + std::to_string(count) + " x " + name;
  return text;
}

DevicesNamed devices_here(const Settings& settings) {
  const auto kinds = Kinds::load(settings);
  return kinds.ok() ? devices_of(**kinds) : DevicesNamed{};
}

std::string in_words(Bytes size) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(size.value);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value == static_cast<double>(static_cast<long>(value)) ? "%.0f %s" : "%.1f %s",
                value, kUnits[unit]);
  return text.data();
}

}  // namespace ist::cli
