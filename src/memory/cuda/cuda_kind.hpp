// CUDA device and managed memory, through the driver API.
//
// Who calls this : kinds.cpp makes it; after that everybody goes through MemoryKind.
// Threads        : every call from any thread, with any context current or none; the caller's is restored.
// Ownership      : contexts are retained by their first use, not by making the kind.
// Errors         : no driver, no device, driver too old: one line that says so and what to install.
#pragma once

#include <memory>

#include "memory/kind_options.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

struct CudaApi;

// Where a worker may be wanted and CUDA is started only now, it is told so by the environment: CUDA_MODULE_LOADING and
// CUDA_DEVICE_MAX_CONNECTIONS, unless they are set.
Result<std::unique_ptr<MemoryKind>> make_cuda_kind(const KindOptions& options = {});
// With a table of the caller's, which is copied.
Result<std::unique_ptr<MemoryKind>> make_cuda_kind(const CudaApi& api, const KindOptions& options = {});

}  // namespace ist
