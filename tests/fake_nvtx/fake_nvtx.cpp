// A tool that counts NVTX ranges: what nsys puts into a process, by the same door. NVTX loads it where NVTX_INJECTION64_PATH names
// it.
#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

#define FAKE_NVTX_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::mutex mutex;
std::map<std::string, int> begun;
int open_ranges = 0;
int wrong = 0;
thread_local int depth = 0;
char the_domain = 0;

nvtxDomainHandle_t domain() { return reinterpret_cast<nvtxDomainHandle_t>(&the_domain); }

nvtxDomainHandle_t NVTX_API create(const char* name) {
  const std::lock_guard lock(mutex);
  if (name != std::string{"isthmus"}) ++wrong;
  return domain();
}

int NVTX_API push(nvtxDomainHandle_t in, const nvtxEventAttributes_t* range) {
  const std::lock_guard lock(mutex);
  if (in != domain() || range->version != NVTX_VERSION || range->messageType != NVTX_MESSAGE_TYPE_ASCII) ++wrong;
  ++begun[range->message.ascii];
  ++open_ranges;
  return depth++;
}

int NVTX_API pop(nvtxDomainHandle_t in) {
  const std::lock_guard lock(mutex);
  if (in != domain() || depth == 0) ++wrong;
  --open_ranges;
  return --depth;
}

template <class Function>
void set(NvtxFunctionTable table, unsigned size, unsigned place, Function* function) {
  if (place < size && table[place] != nullptr)
    *table[place] = reinterpret_cast<NvtxFunctionPointer>(function);
  else
    ++wrong;
}

}  // namespace

// NVTX calls it once, before the first range.
FAKE_NVTX_EXPORT int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(find(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  set(table, size, NVTX_CBID_CORE2_DomainCreateA, create);
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}

// How many ranges of that name began.
FAKE_NVTX_EXPORT int fake_nvtx_begun(const char* name) {
  const std::lock_guard lock(mutex);
  return begun[name];
}
// How many have not ended.
FAKE_NVTX_EXPORT int fake_nvtx_open() {
  const std::lock_guard lock(mutex);
  return open_ranges;
}
// What a tool would not understand.
FAKE_NVTX_EXPORT int fake_nvtx_wrong() {
  const std::lock_guard lock(mutex);
  return wrong;
}
