// Starts the command `isthmus` and keeps what it said.
//
// Who calls this : tests/cli.
// Threads        : one.
// Ownership      : none.
// Errors         : a command that cannot be started has status -1.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace ist::test {

struct Ran {
  int status = -1;     // 128 plus the signal if one ended it
  std::string output;  // standard output, and standard error unless it was sent elsewhere
};

// `environment`: NAME=value words in front of the command. A rank of another job must not be taken for ours.
inline Ran run_program(const std::string& arguments, const std::string& environment = "", int seconds = 150) {
  const std::string command = "env -u RANK -u WORLD_SIZE -u ISTHMUS_SIZE -u ISTHMUS_RANK -u ISTHMUS_BOOT_FD " + environment +
                              " timeout -k 5 " + std::to_string(seconds) + " " PROGRAM " " + arguments + " 2>&1 </dev/null";
  Ran ran;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return ran;
  std::array<char, 4096> chunk;
  for (std::size_t got = 0; (got = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) ran.output.append(chunk.data(), got);
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

inline bool says(const Ran& ran, const std::string& words) { return ran.output.find(words) != std::string::npos; }

}  // namespace ist::test
