#include "stacks.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace soak {
namespace {

constexpr int kDeepest = 48;
constexpr int kSignal = SIGURG;  // which nobody else sends here, and which is ignored where it comes too late

std::array<void*, kDeepest> found;
std::atomic<int> depth{0};

void answer(int) { depth.store(::backtrace(found.data(), kDeepest)); }

// "function at file:line", as binutils know it; what the linker knows, where they are not there.
std::string name_of(void* address) {
  Dl_info facts{};
  link_map* module = nullptr;
  if (::dladdr1(address, &facts, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0) return "?";
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address) - module->l_addr));
  const std::string plain = std::string{facts.dli_fname} + " +" + offset +
                            (facts.dli_sname != nullptr ? std::string{" near "} + facts.dli_sname : "");
  const std::string command = "addr2line -Cfpe '" + std::string{facts.dli_fname} + "' " + offset + " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  char line[400] = "";
  if (!pipe || std::fgets(line, sizeof line, pipe.get()) == nullptr || line[0] == '?') return plain;
  std::string text{line};
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

}  // namespace

void print_stacks() {
  void* once = nullptr;
  ::backtrace(&once, 1);  // what it needs is loaded outside of the signal's handler
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ::sigaction(kSignal, &action, nullptr);
  std::map<void*, std::string> names;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::stoi(thread.path().filename().string());
    if (id == ::gettid()) continue;
    depth.store(0);
    if (::syscall(SYS_tgkill, ::getpid(), id, kSignal) != 0) continue;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
    while (depth.load() == 0 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    std::string text = "thread " + std::to_string(id) + " (" + first_line(thread.path() / "comm") + ", " +
                       first_line(thread.path() / "wchan") + ")" + (depth.load() == 0 ? " does not answer" : "") + "\n";
    // The first two are the handler and what called it.
    for (int i = 2; i < depth.load(); ++i) {
      std::string& name = names[found[static_cast<std::size_t>(i)]];
      if (name.empty()) name = name_of(found[static_cast<std::size_t>(i)]);
      text += "    " + name.substr(0, 180) + "\n";
    }
    std::fputs(text.c_str(), stderr);
  }
  std::fflush(stderr);
}

}  // namespace soak
