#include "base/ranges.hpp"

#ifdef ISTHMUS_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace ist::ranges {

std::atomic<bool> told{false};

#ifdef ISTHMUS_HAVE_NVTX

namespace {

// Made at the first use, and never destroyed: ranges may end while the process does. Null: no tool is there.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("isthmus");
  return made;
}

}  // namespace

bool compiled() { return true; }

void look_for_tool() { told.store(domain() != nullptr, std::memory_order_relaxed); }

void push(const char* name) {
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &range);
}

void pop() { nvtxDomainRangePop(domain()); }

#else

bool compiled() { return false; }
void look_for_tool() {}
void push(const char*) {}
void pop() {}

#endif

}  // namespace ist::ranges
