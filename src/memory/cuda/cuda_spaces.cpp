#include "memory/cuda/cuda_spaces.hpp"

#include <cstring>

#include "memory/cuda/cuda_mapping.hpp"

namespace ist {
namespace {

// What travels in a space's card.
struct DeviceCard {
  CudaLinks::Uuid device{};
  DoorAddress door;
};
static_assert(sizeof(DeviceCard) <= sizeof(SpaceCard) && std::is_trivially_copyable_v<DeviceCard>);

CUmemAllocationProp properties_on(const CudaContexts& contexts, const CudaContext& home) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = contexts.device(home.device);
  properties.requestedHandleTypes = kPosixDescriptor;
  return properties;
}

}  // namespace

// ---- all spaces ----

Status CudaSpaces::check(CudaContext& context) const {
  const bool there = api_.cuMemCreate != nullptr && api_.cuMemExportToShareableHandle != nullptr &&
                     api_.cuMemGetAllocationGranularity != nullptr && api_.cuMemsetD8Async != nullptr &&
                     opens(api_, Loan::Way::descriptor);
  if (!there)
    return {IST_ERR_KIND,
            "this CUDA driver lacks calls that map memory of other processes (cuMemCreate and those around it); "
            "install one for CUDA 11 or later, or make a heap of IST_KIND_HOST"};
  const CUmemAllocationProp properties = properties_on(contexts_, context);
  std::size_t granularity = 0;
  const CUresult result = api_.cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemGetAllocationGranularity");
  if (granularity == 0 || page().value % granularity != 0)
    return {IST_ERR_DEVICE, "cuda device " + std::to_string(context.device) + " maps memory in pieces of " +
                                std::to_string(granularity) + " bytes; symmetric heaps are made of pieces of " +
                                std::to_string(page().value) + "; make a heap of IST_KIND_HOST"};
  return {};
}

// Devices that reach each other's memory do not always do so with atomic operations (over PCI Express); only the driver knows.
Status CudaSpaces::atomics_between(const CudaContext& home, const CudaLinks::Uuid& device, Rank rank) const {
  const std::string which = CudaLinks::words_for(home, device, rank);
  const int peer = contexts_.ordinal_of(device);
  if (peer < 0)
    return {IST_ERR_UNSUPPORTED, "whether atomic operations cross " + which +
                                     ", is not known: this process does not see that device; let CUDA_VISIBLE_DEVICES name "
                                     "both devices, and choose by number"};
  const auto crosses = atomics_cross(contexts_.device(home.device), contexts_.device(peer));
  if (!crosses.ok()) return {crosses.status().code(), crosses.status().text() + " of " + which};
  if (*crosses) return {};
  return {IST_ERR_UNSUPPORTED, "atomic operations do not cross " + which +
                                   "; use words in a heap of IST_KIND_HOST, or let the PE that has the word change it"};
}

Result<bool> CudaSpaces::atomics_cross(CUdevice from, CUdevice to) const {
  int crosses = 0;
  const CUresult result =
      api_.cuDeviceGetP2PAttribute == nullptr
          ? CUDA_ERROR_NOT_SUPPORTED
          : api_.cuDeviceGetP2PAttribute(&crosses, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from, to);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuDeviceGetP2PAttribute of atomic operations");
  return crosses != 0;
}

bool CudaSpaces::words_apart(int one, int other) {
  if (one == other || apart(one, other)) return false;
  const CUdevice from = contexts_.device(one), to = contexts_.device(other);
  for (const auto& crosses : {atomics_cross(from, to), atomics_cross(to, from)})
    if (crosses.ok() && !*crosses) return true;
  return false;
}

bool CudaSpaces::apart(int one, int other) {
  if (one == other || api_.cuDeviceCanAccessPeer == nullptr) return false;
  const auto reaches = [&](int from, int to) {
    int can = 0;
    return api_.cuDeviceCanAccessPeer(&can, contexts_.device(from), contexts_.device(to)) == CUDA_SUCCESS && can != 0;
  };
  return !reaches(one, other) || !reaches(other, one);
}

Result<std::unique_ptr<Space>> CudaSpaces::open(const SpaceShape& shape) {
  const auto context = contexts_.primary(shape.device);
  if (!context.ok()) return context.status();
  IST_TRY(check(**context));
  const std::uint64_t length = shape.stride.value * static_cast<std::uint64_t>(shape.pes);
  CUdeviceptr base = 0;
  const CUresult result = api_.cuMemAddressReserve(&base, length, page().value, 0, 0);
  if (result != CUDA_SUCCESS)
    return Status{IST_ERR_MEMORY, cuda_error(api_, result,
                                             "cuMemAddressReserve for " + std::to_string(shape.pes) + " parts of " +
                                                 std::to_string(shape.stride.value) + " bytes; let the heap grow to less")
                                      .text()};
  add({base, length, *context});
  return std::unique_ptr<Space>{std::make_unique<CudaSpace>(*this, **context, base, shape)};
}

// ---- one space ----

CudaSpace::~CudaSpace() {
  const std::uint64_t length = shape_.stride.value * static_cast<std::uint64_t>(shape_.pes);
  spaces_.remove(base_, length);
  for (const Mapping& each : mappings_) unmap(each);
  const DriverScope scope(api_, nullptr);
  api_.cuMemAddressFree(base_, length);
}

SpaceCard CudaSpace::card() {
  const DeviceCard mine{spaces_.contexts_.uuid(home_.device), spaces_.lending_.door()};
  SpaceCard card{};
  std::memcpy(card.data(), &mine, sizeof mine);
  return card;
}

// What kernels store over a link that does not hold what it promises would be lost without a word.
Status CudaSpace::meet(Rank rank, const SpaceCard& card) {
  DeviceCard theirs;
  std::memcpy(&theirs, card.data(), sizeof theirs);
  if (theirs.device == spaces_.contexts_.uuid(home_.device)) {
    beside_.insert(rank.value);
    return {};
  }
  if (const Status lack = spaces_.atomics_between(home_, theirs.device, rank); !lack.ok())
    lack_[rank.value] = {lack, lack.code() == IST_ERR_UNSUPPORTED && spaces_.contexts_.ordinal_of(theirs.device) >= 0};
  Loan loan;
  loan.device = theirs.device;
  loan.door = theirs.door;
  const Status found = spaces_.links_.believe(home_, loan, rank, ends_);
  if (found.ok()) return {};
  const std::string which = CudaLinks::words_for(home_, theirs.device, rank);
  if (spaces_.links_.off(home_, theirs.device)) return {IST_ERR_UNREACHABLE, which + ", is off: " + found.text()};
  return {IST_ERR_DEVICE, which + ", could not be tried: " + found.text() + kNamespaces};
}

Status CudaSpace::changes_words_of(Rank rank) const {
  const auto lack = lack_.find(rank.value);
  return lack == lack_.end() ? Status{} : lack->second.why;
}

Status CudaSpace::kernels_change_words_of(Rank rank) const {
  const auto lack = lack_.find(rank.value);
  return lack == lack_.end() || !lack->second.is_known ? Status{} : lack->second.why;
}

Result<CUmemGenericAllocationHandle> CudaSpace::create(Bytes size) const {
  const CUmemAllocationProp properties = properties_on(spaces_.contexts_, home_);
  CUmemGenericAllocationHandle memory = 0;
  const CUresult result = api_.cuMemCreate(&memory, size.value, &properties, 0);
  if (result == CUDA_SUCCESS) return memory;
  const Status why = cuda_error(api_, result, "cuMemCreate of " + std::to_string(size.value) + " bytes" + place());
  return result == CUDA_ERROR_OUT_OF_MEMORY ? Status{IST_ERR_MEMORY, why.text()} : why;
}

Result<FileDescriptor> CudaSpace::make(Offset from, Bytes size) {
  const ContextScope scope(api_, home_);
  IST_TRY(scope.status());
  const auto memory = create(size);
  if (!memory.ok()) return memory.status();
  int descriptor = -1;
  const CUresult result = api_.cuMemExportToShareableHandle(&descriptor, *memory, kPosixDescriptor, 0);
  FileDescriptor exported{result == CUDA_SUCCESS ? descriptor : -1};
  const Status mapped = result == CUDA_SUCCESS ? map(shape_.pe, from, size, *memory)
                                               : cuda_error(api_, result, "cuMemExportToShareableHandle" + place());
  api_.cuMemRelease(*memory);  // the mapping holds it
  IST_TRY(mapped);
  IST_TRY(zero(mappings_.back().start, size));
  return exported;
}

Status CudaSpace::attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) {
  const ContextScope scope(api_, home_);
  IST_TRY(scope.status());
  const std::string whose = " of PE " + std::to_string(pe.value) + "'s part" + place();
  CUmemGenericAllocationHandle memory = 0;
  void* const as_handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get()));
  const CUresult result = api_.cuMemImportFromShareableHandle(&memory, as_handle, kPosixDescriptor);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemImportFromShareableHandle" + whose);
  const Status mapped = map(pe, from, size, memory);
  api_.cuMemRelease(memory);
  return mapped.ok() ? mapped : Status{mapped.code(), mapped.text() + whose};
}

Status CudaSpace::map(Pe pe, Offset from, Bytes size, CUmemGenericAllocationHandle memory) {
  const CUdeviceptr start = base_ + static_cast<std::uint64_t>(pe.value) * shape_.stride.value + from.value;
  CUresult result = api_.cuMemMap(start, size.value, 0, memory, 0);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemMap of " + std::to_string(size.value) + " bytes");
  mappings_.push_back({start, from, size});
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = spaces_.contexts_.device(home_.device);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result = api_.cuMemSetAccess(start, size.value, &access, 1);
  return result == CUDA_SUCCESS ? Status{} : cuda_error(api_, result, "cuMemSetAccess for" + place());
}

// In a stream of its own: the others may wait for other ranks.
Status CudaSpace::zero(CUdeviceptr start, Bytes size) const {
  CUstream stream = nullptr;
  CUresult result = api_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuStreamCreate" + place());
  result = api_.cuMemsetD8Async(start, 0, size.value, stream);
  if (result == CUDA_SUCCESS) result = api_.cuStreamSynchronize(stream);
  api_.cuStreamDestroy_v2(stream);
  return result == CUDA_SUCCESS ? Status{}
                                : cuda_error(api_, result, "cuMemsetD8Async of a part of a symmetric heap" + place());
}

void CudaSpace::unmap(const Mapping& mapping) const {
  const DriverScope scope(api_, nullptr);  // these belong to no context
  api_.cuMemUnmap(mapping.start, mapping.size.value);
}

void CudaSpace::take_back(Offset from, Bytes size) {
  std::erase_if(mappings_, [&](const Mapping& each) {
    if (each.from != from || each.size != size) return false;
    unmap(each);
    return true;
  });
}

}  // namespace ist
