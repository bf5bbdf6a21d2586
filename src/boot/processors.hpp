// Which processors this process may run on, and whether the ranks of a host can each have one.
//
// Who calls this : peers; face/shmem, of its PEs.
// Threads        : any.
// Ownership      : values.
// Errors         : what the system does not tell is taken as no limit.
#pragma once

#include <string>
#include <vector>

namespace ist {

// Numbers of the processors in this process's affinity mask, ascending.
std::vector<int> own_processors();

// Processors' worth of time that the control group grants (a container's --cpus); 0 if unlimited.
double processor_quota(const std::string& root = "/sys/fs/cgroup", const std::string& own_groups = "/proc/self/cgroup");

// True if every rank can run on a processor of its own: masks[i] is what rank i may use. A union that is large enough does
// not suffice, as two ranks may be bound to the same one.
bool each_has_a_processor(const std::vector<std::vector<int>>& masks);

// True if ranks of one host, which may use masks[i] and all together so many processors' worth of time, cannot all run at once. Of whom
// the mask is empty nothing is known, and 0 is no limit.
bool are_crowded(std::vector<std::vector<int>> masks, double quota);

// How many processors each rank has to itself, where all share what they may run on evenly: of those in masks[mine], as many as
// there are for each rank whose mask overlaps; at least 1.
int processors_each(const std::vector<std::vector<int>>& masks, std::size_t mine);

}  // namespace ist
