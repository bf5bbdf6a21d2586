#include "cli/own_ranks.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/failure.hpp"

namespace ist::cli {

bool inside_a_world() {
  for (const char* variable : {"ISTHMUS_BOOT_FD", "ISTHMUS_SIZE", "WORLD_SIZE"})
    if (std::getenv(variable)) return true;
  // Of mpirun and srun, how many they started: a shell that one of them started alone is nobody's rank.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* ranks = std::getenv(variable); ranks && std::strtol(ranks, nullptr, 10) > 1) return true;
  return false;
}

[[noreturn]] void become_ranks(int ranks, const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) throw Failure(1, "cannot find this program by /proc/self/exe: " + error.message());
  std::vector<std::string> words{self, "run", "-n", std::to_string(ranks), self};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::cout.flush();
  execv(self.c_str(), pointers.data());
  throw Failure(1, "cannot start " + self + ": " + std::strerror(errno));
}

}  // namespace ist::cli
