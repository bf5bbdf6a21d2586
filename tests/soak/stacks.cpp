#include "stacks.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
  std::string text = std::string{"+"} + offset + " " + line;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

struct Code {
  std::uintptr_t address;
  bool found;
};
int look_for(dl_phdr_info* module, std::size_t, void* data) {
  auto& code = *static_cast<Code*>(data);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& part = module->dlpi_phdr[i];
    const std::uintptr_t begin = module->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 && code.address >= begin && code.address < begin + part.p_memsz)
      code.found = true;
  }
  return code.found ? 1 : 0;
}

// Of a thread that takes no signals: what on its stack may be where a call returns to. Some of it may be left from earlier calls.
std::vector<void*> scanned(const std::filesystem::path& thread) {
  std::uintptr_t top = 0;
  std::uintptr_t at = 0;
  for (int tries = 0; tries < 200 && top == 0; ++tries) {
    const std::string state = first_line(thread / "syscall");  // "number, six arguments, stack, place", or "running"
    const auto place = state.rfind(' ');
    const auto stack = place == std::string::npos ? place : state.rfind(' ', place - 1);
    if (stack != std::string::npos) {
      top = std::stoull(state.substr(stack), nullptr, 16);
      at = std::stoull(state.substr(place), nullptr, 16);
    }
    if (top == 0) std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  if (top == 0) return {};
  std::vector<std::uintptr_t> words(1024);
  iovec here{words.data(), words.size() * sizeof words[0]};
  iovec there{reinterpret_cast<void*>(top), words.size() * sizeof words[0]};
  const auto read = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
  words.resize(read < 0 ? 0 : static_cast<std::size_t>(read) / sizeof words[0]);
  std::vector<void*> all{reinterpret_cast<void*>(at)};
  for (const std::uintptr_t word : words) {
    Code code{word, false};
    ::dl_iterate_phdr(look_for, &code);
    if (code.found && all.size() < kDeepest) all.push_back(reinterpret_cast<void*>(word));
  }
  return all;
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
    std::vector<void*> calls;
    // The first two are the handler and what called it.
    for (int i = 2; i < depth.load(); ++i) calls.push_back(found[static_cast<std::size_t>(i)]);
    if (calls.empty()) calls = scanned(thread.path());
    std::string text = "thread " + std::to_string(id) + " (" + first_line(thread.path() / "comm") + ", " +
                       first_line(thread.path() / "wchan") + ")" + (depth.load() == 0 ? ", on its stack:" : "") + "\n";
    for (void* call : calls) {
      std::string& name = names[call];
      if (name.empty()) name = name_of(call);
      text += "    " + name.substr(0, 180) + "\n";
    }
    std::fputs(text.c_str(), stderr);
  }
  std::fflush(stderr);
}

}  // namespace soak
