#include "memory/cuda/cuda_links.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/log.hpp"
#include "memory/cuda/cuda_door.hpp"

namespace ist {
namespace {

// Pages of several sizes are crossed, and it is over in microseconds.
constexpr std::size_t kPattern = 256 << 10;

using Words = std::vector<std::uint64_t>;

// Two seeds give patterns that agree nowhere for long.
Words pattern(std::uint64_t seed) {
  Words words(kPattern / sizeof(std::uint64_t));
  std::mt19937_64 generator{seed};
  for (auto& word : words) word = generator();
  return words;
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

Status compare(const Words& wanted, const Words& found, const char* what) {
  const auto* a = reinterpret_cast<const unsigned char*>(wanted.data());
  const auto* b = reinterpret_cast<const unsigned char*>(found.data());
  const auto differs = std::mismatch(a, a + kPattern, b);
  if (differs.first == a + kPattern) return {};
  return {IST_ERR_DEVICE,
          "of a pattern of " + std::to_string(kPattern) + " bytes that was " + what + ", byte " +
              std::to_string(differs.first - a) + " came as " + std::to_string(*differs.second) + " instead of " +
              std::to_string(*differs.first) +
              "; copies between devices go wrong where PCIe access control (ACS) or an IOMMU redirects them: "
              "turn both off for these devices, and see isthmus info --links"};
}

std::string name_of_device(const CudaLinks::Uuid& uuid) {
  std::string text = "the GPU whose UUID begins with ";
  constexpr char kDigits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(uuid[i]);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

}  // namespace

// A block of device memory, and a stream to fill, copy and read it in. Kept, since freeing memory waits for the whole device.
class CudaLinks::Bench {
 public:
  static Result<std::unique_ptr<Bench>> make(const CudaApi& api, CudaContext& context) {
    std::unique_ptr<Bench> made{new Bench{api, context}};
    const ContextScope scope(api, context);
    IST_TRY(scope.status());
    CUresult result = api.cuStreamCreate(&made->stream_, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuStreamCreate to try a link with");
    result = api.cuMemAlloc_v2(&made->block_, kPattern);
    if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuMemAlloc of a block to try a link with");
    return made;
  }
  ~Bench() {
    const ContextScope scope(api_, context);
    if (!scope.status().ok()) return;
    if (block_ != 0) api_.cuMemFree_v2(block_);
    if (stream_ != nullptr) api_.cuStreamDestroy_v2(stream_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Status fill(std::uint64_t seed) {
    const Words words = pattern(seed);
    return copy(block_, reinterpret_cast<CUdeviceptr>(words.data()));
  }
  // Does the block hold it?
  Status holds(std::uint64_t seed, const char* what) {
    Words found(kPattern / sizeof(std::uint64_t));
    IST_TRY(copy(reinterpret_cast<CUdeviceptr>(found.data()), block_));
    return compare(pattern(seed), found, what);
  }
  // Over the link: this device copies.
  Status fetch(CUdeviceptr far) { return copy(block_, far); }
  Status put(CUdeviceptr far) { return copy(far, block_); }
  CUdeviceptr block() const { return block_; }

  CudaContext& context;

 private:
  Bench(const CudaApi& api, CudaContext& in) : context(in), api_(api) {}
  Status copy(CUdeviceptr to, CUdeviceptr from) {
    const ContextScope scope(api_, context);
    IST_TRY(scope.status());
    CUresult result = api_.cuMemcpyAsync(to, from, kPattern, stream_);
    if (result == CUDA_SUCCESS) result = api_.cuStreamSynchronize(stream_);
    return result == CUDA_SUCCESS ? Status{} : cuda_error(api_, result, "a copy that tries a link");
  }
  const CudaApi& api_;
  CUdeviceptr block_ = 0;
  CUstream stream_ = nullptr;
};

CudaLinks::CudaLinks(const CudaApi& api, CudaContexts& contexts) : api_(api), contexts_(contexts) {}
CudaLinks::~CudaLinks() {
  for (const auto& [context, address] : opened_) {
    const ContextScope scope(api_, *context);
    if (scope.status().ok()) api_.cuIpcCloseMemHandle(address);
  }
}

Result<std::shared_ptr<CudaLinks::Bench>> CudaLinks::bench(CudaContext& context) {
  std::unique_ptr<Bench> found;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&](const std::unique_ptr<Bench>& one) { return &one->context == &context; };
    if (const auto at = std::find_if(spare_.begin(), spare_.end(), fits); at != spare_.end()) {
      found = std::move(*at);
      spare_.erase(at);
    }
  }
  if (!found) {
    auto made = Bench::make(api_, context);
    if (!made.ok()) return made.status();
    found = std::move(*made);
  }
  return std::shared_ptr<Bench>{found.release(), [this](Bench* used) {
                                  const std::lock_guard lock(mutex_);
                                  spare_.emplace_back(used);
                                }};
}

// ---- with the lender ----

bool CudaLinks::off(int device, const Uuid& other) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find({device, other});
  return known != known_.end() && !known->second.ok();
}

std::string CudaLinks::words_for(const CudaContext& context, const Uuid& other, Rank lender) {
  return "the link between cuda device " + std::to_string(context.device) + " and " + name_of_device(other) +
         (lender == kNobody ? "" : ", of rank " + std::to_string(lender.value));
}

Status CudaLinks::note(const CudaContext& context, const Uuid& other, Rank lender, const Status& found) {
  {
    const std::lock_guard lock(mutex_);
    known_.emplace(Pair{context.device, other}, found);
  }
  if (!found.ok())
    log::once(log::Level::warning, words_for(context, other, lender) +
                                       ", is off, and messages go through host memory, which is slower: " + found.text());
  return found;
}

Status CudaLinks::believe(CudaContext& context, const Loan& loan, Rank lender, const std::atomic<bool>& ends) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find({context.device, loan.device}); known != known_.end()) return known->second;
  }
  bool tried = false;
  const Status found = try_with_lender(context, loan, ends, tried);
  return tried ? note(context, loan.device, lender, found) : found;
}

// `tried`: what is returned is about the link.
Status CudaLinks::try_with_lender(CudaContext& context, const Loan& loan, const std::atomic<bool>& ends, bool& tried) {
  auto own = bench(context);
  if (!own.ok()) return own.status();
  auto call = DoorCall::connect(loan.door, ends);
  if (!call.ok()) return call.status();
  const std::uint64_t theirs = fresh_seed();
  DoorNote question = door_note(DoorSubject::proof, theirs);
  put_into(question, loan.device);
  const auto answer = call->ask(question);
  if (!answer.ok()) return answer.status();
  CUdeviceptr far = 0;
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  const CUresult result =
      api_.cuIpcOpenMemHandle_v2(&far, taken_from<CUipcMemHandle>(*answer), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (result != CUDA_SUCCESS) {
    tried = result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED || result == CUDA_ERROR_TOO_MANY_PEERS;
    return cuda_error(api_, result, "cuIpcOpenMemHandle of a block to try the link with");
  }
  const std::uint64_t mine = fresh_seed();
  Status found = (*own)->fetch(far);
  if (found.ok()) found = (*own)->holds(theirs, "read over it");
  if (found.ok()) found = (*own)->fill(mine);
  if (found.ok()) found = (*own)->put(far);
  {
    // Closed at the end: that waits for the device, where a kernel may wait for other ranks.
    const std::lock_guard lock(mutex_);
    opened_.push_back({&context, far});
  }
  tried = true;  // also where a copy failed: nothing better is to be hoped for from the next one
  if (!found.ok()) return found;
  const auto verdict = call->ask(door_note(DoorSubject::written, mine));
  // Of a lender that ended meanwhile nothing was learnt.
  const Code code = verdict.ok() ? IST_OK : verdict.status().code();
  tried = code != IST_ERR_SYSTEM && code != IST_ERR_PEER_LEFT;
  return verdict.status();
}

Result<Door::Answer> CudaLinks::prepare(const DoorNote& asked, std::shared_ptr<void>& kept) {
  const auto wanted = taken_from<Uuid>(asked);
  for (int ordinal = 0; ordinal < contexts_.count(); ++ordinal) {
    if (contexts_.uuid(ordinal) != wanted) continue;
    const auto context = contexts_.primary(ordinal);
    if (!context.ok()) return context.status();
    auto own = bench(**context);
    if (!own.ok()) return own.status();
    IST_TRY((*own)->fill(asked.number));
    CUipcMemHandle handle{};
    const ContextScope scope(api_, **context);
    IST_TRY(scope.status());
    if (const CUresult result = api_.cuIpcGetMemHandle(&handle, (*own)->block()); result != CUDA_SUCCESS)
      return cuda_error(api_, result, "cuIpcGetMemHandle of a block to try a link with");
    Door::Answer answer;
    put_into(answer.note, handle);
    kept = *own;
    return answer;
  }
  return Status{IST_ERR_DEVICE, "the lender has no such device"};
}

std::optional<Door::Answer> CudaLinks::answer(const DoorNote& asked, std::shared_ptr<void>& kept) {
  const auto subject = static_cast<DoorSubject>(asked.subject);
  if (subject == DoorSubject::proof) {
    auto answer = prepare(asked, kept);
    if (!answer.ok()) return Door::Answer{DoorNote::refusal(answer.status()), {}};
    return std::move(*answer);
  }
  if (subject != DoorSubject::written || kept == nullptr) return std::nullopt;
  const Status found = static_cast<Bench*>(kept.get())->holds(asked.number, "written over it");
  return Door::Answer{found.ok() ? DoorNote{} : DoorNote::refusal(found), {}};
}

// ---- within this process ----

Status CudaLinks::believe_within(CudaContext& context, const Uuid& other) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find({context.device, other}); known != known_.end()) return known->second;
  }
  for (int ordinal = 0; ordinal < contexts_.count(); ++ordinal)
    if (contexts_.uuid(ordinal) == other) return note(context, other, kNobody, try_within(context.device, ordinal));
  return {IST_ERR_INTERNAL, "no device of this process is the other end of the link"};
}

Status CudaLinks::try_within(int from, int to) {
  const auto near = contexts_.primary(from);
  if (!near.ok()) return near.status();
  const auto far = contexts_.primary(to);
  if (!far.ok()) return far.status();
  {
    const ContextScope scope(api_, **near);
    IST_TRY(scope.status());
    const CUresult result = api_.cuCtxEnablePeerAccess((*far)->handle, 0);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      return cuda_error(api_, result, "cuCtxEnablePeerAccess");
  }
  auto own = bench(**near);
  if (!own.ok()) return own.status();
  auto other = bench(**far);
  if (!other.ok()) return other.status();
  const std::uint64_t theirs = fresh_seed();
  const std::uint64_t mine = fresh_seed();
  IST_TRY((*other)->fill(theirs));
  IST_TRY((*own)->fetch((*other)->block()));
  IST_TRY((*own)->holds(theirs, "read over it"));
  IST_TRY((*own)->fill(mine));
  IST_TRY((*own)->put((*other)->block()));
  return (*other)->holds(mine, "written over it");
}

std::vector<LinkFacts> CudaLinks::try_all() {
  std::vector<LinkFacts> found;
  for (int from = 0; from < contexts_.count(); ++from)
    for (int to = 0; to < contexts_.count(); ++to) {
      if (from == to) continue;
      LinkFacts facts;
      facts.from = from;
      facts.to = to;
      int can = 0;
      const bool asks = api_.cuDeviceCanAccessPeer != nullptr && api_.cuCtxEnablePeerAccess != nullptr;
      const CUresult result =
          asks ? api_.cuDeviceCanAccessPeer(&can, contexts_.device(from), contexts_.device(to)) : CUDA_ERROR_NOT_SUPPORTED;
      facts.access = result == CUDA_SUCCESS && can != 0;
      if (result != CUDA_SUCCESS)
        facts.pattern = cuda_error(api_, result, "cuDeviceCanAccessPeer");
      else if (can == 0)
        facts.pattern = {
            IST_ERR_DEVICE,
            "the driver lets neither reach the other's memory, as where they hang on different processors, or in a "
            "virtual machine; nvidia-smi topo -p2p r says why. Messages between them go through host memory"};
      else
        facts.pattern = try_within(from, to);
      found.push_back(std::move(facts));
    }
  return found;
}

}  // namespace ist
