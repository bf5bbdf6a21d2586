#include "memory/cuda/cuda_pointer.hpp"

namespace ist {

namespace {

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
};

// The driver does not say whether it allocated page-locked memory or only locked it. But what it allocates is cut from
// mappings of 2 MiB, while what it locked is mapped page by page, exactly as long as what was registered. A registered range
// that happens to be made of whole 2 MiB blocks is taken for allocated; both are used in the same way.
MemoryClass class_of_host_memory(const PointerFacts& facts, const Mapping& mapping) {
  constexpr std::uint64_t kHostMapping = 2u << 20;
  constexpr std::uint64_t kPage = 4096;
  const bool in_blocks = mapping.start % kHostMapping == 0 && mapping.size % kHostMapping == 0;
  const bool exact = mapping.start + kPage > facts.start && mapping.start + mapping.size < facts.start + facts.size + kPage;
  return exact && !in_blocks ? MemoryClass::registered : MemoryClass::pinned;
}

std::string name_found(const PointerFacts& facts) {
  if (!facts.known) return "not known to the CUDA driver (host memory? then name it with ist_host; or released already)";
  return std::string(name_of(facts.memory_class)) + " host memory; name it with ist_host";
}

}  // namespace

PointerFacts ask_driver(const CudaApi& api, std::uint64_t address) {
  // The driver writes its booleans as 4 bytes.
  unsigned type = 0;
  unsigned managed = 0;
  unsigned mapped = 0;
  int device = -1;
  unsigned long long buffer_id = 0;
  CUmemoryPool pool = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  CUdeviceptr mapping_start = 0;
  std::size_t mapping_size = 0;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,       CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_MAPPED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,    CU_POINTER_ATTRIBUTE_BUFFER_ID,        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
      CU_POINTER_ATTRIBUTE_CONTEXT,           CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
  void* answers[] = {&type,    &managed, &mapped, &device,        &buffer_id,   &pool,
                     &context, &start,   &size,   &mapping_start, &mapping_size};
  PointerFacts facts;
  facts.result = api.cuPointerGetAttributes(std::size(attributes), attributes, answers, address);
  // A reserved range without memory has a start and a size, but is not mapped.
  if (facts.result != CUDA_SUCCESS || mapped == 0) return facts;
  facts.known = true;
  facts.on_host = type == CU_MEMORYTYPE_HOST && managed == 0;
  facts.device = device;
  facts.context = context;
  facts.buffer_id = buffer_id;
  facts.start = start;
  facts.size = size;
  facts.mapping_start = mapping_start;
  facts.mapping_size = mapping_size;
  facts.pool = pool;
  if (managed != 0) {
    facts.memory_class = MemoryClass::managed;
    if (device < 0) facts.device = 0;  // it lives on the host just now; any device reaches it
  } else if (facts.on_host) {
    facts.memory_class = class_of_host_memory(facts, {mapping_start, mapping_size});
  } else if (pool != nullptr) {
    facts.memory_class = MemoryClass::pool;
  } else {
    facts.memory_class = context == nullptr ? MemoryClass::vmm : MemoryClass::device;
  }
  return facts;
}

std::string describe_piece(const Piece& piece) {
  std::string text = std::to_string(piece.size.value) + " bytes at " + hexadecimal(piece.object);
  if (piece.offset.value != 0) text += " + " + std::to_string(piece.offset.value);
  return text + (piece.kind == KindId::cuda ? " (cuda)" : " (host)");
}

void KeptFacts::keep(Piece& piece, const PointerFacts& facts) {
  const std::lock_guard lock(mutex_);
  if (++names_ == 0) ++names_;
  piece.facts = names_;
  entries_[names_ % entries_.size()] = {names_, piece.object + piece.offset.value, facts};
}

PointerFacts KeptFacts::of(const Piece& piece) const {
  const std::uint64_t address = piece.object + piece.offset.value;
  if (piece.facts != 0) {
    const std::lock_guard lock(mutex_);
    const Entry& entry = entries_[piece.facts % entries_.size()];
    if (entry.name == piece.facts && entry.address == address) return entry.facts;
  }
  return ask_driver(api_, address);
}

Status check_cuda_piece(const CudaApi& api, Piece& piece, PointerFacts* found) {
  if (piece.size.value == 0) return {};
  const std::string_view asked = "cuda buffer: ";
  const std::uint64_t address = piece.object + piece.offset.value;
  if (piece.object == 0) return {IST_ERR_ARGUMENT, std::string(asked) + describe_piece(piece) + " asked of a null address"};
  PointerFacts facts = ask_driver(api, address);
  if (facts.result != CUDA_SUCCESS)
    return cuda_error(api, facts.result, "cuPointerGetAttributes of " + describe_piece(piece));
  const bool same_allocation = facts.known && address >= piece.object && facts.start <= piece.object;
  if (!same_allocation && piece.offset.value != 0) {
    // Past the end, or in some other allocation: say how long the object itself is, if it is one.
    facts = ask_driver(api, piece.object);
  }
  if (!facts.known || facts.on_host) {
    return {IST_ERR_ARGUMENT, std::string(asked) + describe_piece(piece) + " asked, but " + hexadecimal(piece.object) +
                                  " is " + name_found(facts)};
  }
  const std::uint64_t before = piece.object - facts.start;  // bytes of the allocation in front of the object
  const std::uint64_t room = facts.size - before;
  if (!same_allocation || piece.offset.value > room || piece.size.value > room - piece.offset.value) {
    return {IST_ERR_ARGUMENT, std::string(asked) + "asked " + std::to_string(piece.size.value) + " bytes at offset " +
                                  std::to_string(before + piece.offset.value) + " of an allocation of " +
                                  std::to_string(facts.size) + " bytes at " + hexadecimal(facts.start)};
  }
  if (piece.device >= 0 && piece.device != facts.device && facts.memory_class != MemoryClass::managed) {
    return {IST_ERR_ARGUMENT, std::string(asked) + describe_piece(piece) + " is said to be on device " +
                                  std::to_string(piece.device) + " but is on device " + std::to_string(facts.device)};
  }
  if (piece.device < 0) piece.device = facts.device;
  if (found != nullptr) *found = facts;
  return {};
}

}  // namespace ist
