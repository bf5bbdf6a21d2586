#include "face/shmem/errors.hpp"

#include <isthmus/isthmus.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "base/thread_text.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

std::atomic<shmemx_error_handler_t> handler{nullptr};

using LastError = ThreadText<World>;

// An exception that is under way is the program's own.
thread_local bool handler_threw = false;

// With no memory but what is there.
void tell(const char* call, const char* cause) {
  world().stay_behind();
  try {
    remember(std::string{call} + ": " + cause);
  } catch (const std::bad_alloc&) {
    LastError::clear();
  }
  if (const auto own = handler.load(); own != nullptr) {
    own(call, hot.pe, cause);
    return;
  }
  // One write, so that lines of several PEs do not mix.
  std::array<char, 4096> line{};
  const int pe = hot.pe;
  if (pe >= 0)
    std::snprintf(line.data(), line.size(), "isthmus: PE %d: %s: %s; ending the job\n", pe, call, cause);
  else
    std::snprintf(line.data(), line.size(), "isthmus: %s: %s; ending the job\n", call, cause);
  std::fputs(line.data(), stderr);
  world().end_job(1);
}

}  // namespace

void remember(const std::string& cause) { LastError::set(cause); }

void fail(const char* call, const std::string& cause) {
  try {
    tell(call, cause.c_str());
  } catch (...) {
    handler_threw = true;
    throw;
  }
}

void caught(const char* call) {
  if (std::exchange(handler_threw, false)) throw;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    tell(call, "no host memory is left; free some, or start fewer PEs on this host");
  } catch (const std::exception& exception) {
    tell(call, exception.what());
  }
}

bool failed(const char* call, int code) {
  if (code == IST_OK) return false;
  const std::string text = ist_error_text();
  if (code == IST_ERR_PEER_DEAD || code == IST_ERR_PEER_LEFT) world().end_with_the_others();
  fail(call, text);
  return true;
}

}  // namespace ist::shmem

extern "C" {

const char* shmemx_error_text() { return ist::shmem::LastError::get(); }

shmemx_error_handler_t shmemx_set_error_handler(shmemx_error_handler_t handler) {
  return ist::shmem::handler.exchange(handler);
}
}
