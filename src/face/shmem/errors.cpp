#include "face/shmem/errors.hpp"

#include <isthmus/isthmus.h>

#include <atomic>
#include <cstdio>

#include "base/thread_text.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

std::atomic<shmemx_error_handler_t> handler{nullptr};

using LastError = ThreadText<World>;

}  // namespace

void remember(const std::string& cause) { LastError::set(cause); }

void fail(const char* call, const std::string& cause) {
  world().stay_behind();
  remember(std::string{call} + ": " + cause);
  if (const auto own = handler.load(); own != nullptr) {
    own(call, hot.pe, cause.c_str());
    return;
  }
  // One write, so that lines of several PEs do not mix.
  const std::string line = "isthmus: " + (hot.pe >= 0 ? "PE " + std::to_string(hot.pe) + ": " : std::string{}) +
                           LastError::get() + "; ending the job\n";
  std::fputs(line.c_str(), stderr);
  world().end_job(1);
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
