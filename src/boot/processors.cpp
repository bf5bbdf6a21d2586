#include "boot/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

namespace ist {
namespace {

// "max 100000" or "150000 100000" (control groups, version 2).
double quota_of(const std::string& folder) {
  std::ifstream file{folder + "/cpu.max"};
  double quota = 0;
  double period = 0;
  if (file >> quota >> period && period > 0) return quota / period;
  return 0;
}

// Version 1 keeps the two numbers in two files, and -1 for no limit.
double old_quota_of(const std::string& folder) {
  std::ifstream quota_file{folder + "/cpu.cfs_quota_us"};
  std::ifstream period_file{folder + "/cpu.cfs_period_us"};
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

double smaller_limit(double a, double b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

// A group is limited by every group above it.
double quota_up_to_root(const std::string& root, std::string group, double (*read)(const std::string&)) {
  double limit = read(root);
  while (group.size() > 1) {
    limit = smaller_limit(limit, read(root + group));
    group.resize(group.rfind('/'));
  }
  return limit;
}

bool give_processor(std::size_t rank, const std::vector<std::vector<int>>& masks, std::map<int, std::size_t>& owner,
                    std::set<int>& asked) {
  for (const int processor : masks[rank]) {
    if (!asked.insert(processor).second) continue;
    const auto found = owner.find(processor);
    if (found == owner.end() || give_processor(found->second, masks, owner, asked)) {
      owner[processor] = rank;
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<int> own_processors() {
  // The kernel's mask may be wider than cpu_set_t; it says EINVAL until the set is large enough.
  for (int most = CPU_SETSIZE; most <= (1 << 18); most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set{CPU_ALLOC(static_cast<std::size_t>(most)),
                                                               [](cpu_set_t* s) { CPU_FREE(s); }};
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    if (!set || ::sched_getaffinity(0, size, set.get()) != 0) continue;
    std::vector<int> processors;
    for (int i = 0; i < most; ++i)
      if (CPU_ISSET_S(static_cast<std::size_t>(i), size, set.get())) processors.push_back(i);
    return processors;
  }
  return {};
}

double processor_quota(const std::string& root, const std::string& own_groups) {
  double limit = 0;
  std::ifstream groups{own_groups};
  for (std::string line; std::getline(groups, line);) {
    // "4:cpu,cpuacct:/some/group" (version 1) or "0::/some/group" (version 2)
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) limit = smaller_limit(limit, quota_up_to_root(root, group, quota_of));
    std::stringstream list{controllers};
    for (std::string controller; std::getline(list, controller, ',');)
      if (controller == "cpu") limit = smaller_limit(limit, quota_up_to_root(root + "/cpu", group, old_quota_of));
  }
  return limit;
}

bool each_has_a_processor(const std::vector<std::vector<int>>& masks) {
  // The usual cases without a search: too many ranks for all processors together, or all ranks free to use the same ones.
  std::set<int> all;
  for (const auto& mask : masks) all.insert(mask.begin(), mask.end());
  if (masks.size() > all.size()) return false;
  if (std::all_of(masks.begin(), masks.end(), [&](const auto& mask) { return mask.size() == all.size(); })) return true;
  std::map<int, std::size_t> owner;
  for (std::size_t rank = 0; rank < masks.size(); ++rank) {
    std::set<int> asked;
    if (!give_processor(rank, masks, owner, asked)) return false;
  }
  return true;
}

bool are_crowded(std::vector<std::vector<int>> masks, double quota) {
  if (quota > 0 && static_cast<double>(masks.size()) > std::ceil(quota)) return true;
  std::erase_if(masks, [](const std::vector<int>& mask) { return mask.empty(); });
  return !each_has_a_processor(masks);
}

int processors_each(const std::vector<std::vector<int>>& masks, std::size_t mine) {
  const std::vector<int>& own = masks[mine];
  const auto sharing = std::count_if(masks.begin(), masks.end(), [&](const std::vector<int>& other) {
    return std::any_of(own.begin(), own.end(),
                       [&](int each) { return std::binary_search(other.begin(), other.end(), each); });
  });
  return std::max(1, static_cast<int>(own.size()) / std::max(1, static_cast<int>(sharing)));
}

}  // namespace ist
