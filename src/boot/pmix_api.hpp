// PMIx, the exchange that job managers offer to the processes they start, loaded at run time: libpmix.so.2 of any version.
//
// Who calls this : pmix_boot; ways_to_start for `isthmus info`. No other file knows PMIx.
// Threads        : get() from any; PMIx's own calls may be made from any thread.
// Ownership      : the library stays loaded until the process ends.
// Errors         : IST_ERR_BOOT saying which library or which of its functions was not found, and what to install.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace ist {

// The few types of the PMIx standard that are needed, as versions 2 to 5 lay them out: no header of PMIx is needed to build.
namespace pmix {

using Code = int;
inline constexpr Code kSuccess = 0;
inline constexpr Code kDone = -157;  // PMIX_OPERATION_SUCCEEDED: done at once, and the callback will not be called
inline constexpr Code kUnreachable = -25;
inline constexpr Code kNotFound = -46;
inline constexpr Code kPartial = -52;                        // PMIX_ERR_PARTIAL_SUCCESS
inline constexpr std::uint32_t kEveryRank = UINT32_MAX - 1;  // PMIX_RANK_WILDCARD
inline constexpr std::uint8_t kGlobal = 3;                   // PMIX_GLOBAL: a value for ranks of all hosts
inline constexpr std::uint16_t kBool = 1;
inline constexpr std::uint16_t kUint32 = 14;
inline constexpr std::uint16_t kByteObject = 27;

struct Proc {
  char job[256] = {};
  std::uint32_t rank = 0;
};

struct ByteObject {
  char* bytes;
  std::size_t size;
};

struct Value {
  std::uint16_t type = 0;
  union {
    bool flag;
    std::uint32_t number;
    ByteObject bytes;
    std::uint64_t room[4];  // no version's union is larger
  } data = {};
};

struct Info {
  char key[512] = {};
  std::uint32_t flags = 0;
  Value value;
};

using OperationDone = void (*)(Code, void*);

}  // namespace pmix

#define IST_PMIX_FUNCTIONS(F)                                                                                   \
  F(PMIx_Init, pmix::Code (*)(pmix::Proc*, const pmix::Info*, std::size_t))                                     \
  F(PMIx_Finalize, pmix::Code (*)(const pmix::Info*, std::size_t))                                              \
  F(PMIx_Put, pmix::Code (*)(std::uint8_t, const char*, pmix::Value*))                                          \
  F(PMIx_Commit, pmix::Code (*)())                                                                              \
  F(PMIx_Fence_nb,                                                                                              \
    pmix::Code (*)(const pmix::Proc*, std::size_t, const pmix::Info*, std::size_t, pmix::OperationDone, void*)) \
  F(PMIx_Get, pmix::Code (*)(const pmix::Proc*, const char*, const pmix::Info*, std::size_t, pmix::Value**))    \
  F(PMIx_Error_string, const char* (*)(pmix::Code))                                                             \
  F(PMIx_Get_version, const char* (*)())

struct PmixApi {
#define IST_PMIX_MEMBER(name, ...)     \
  using name##_function = __VA_ARGS__; \
  name##_function name = nullptr;
  IST_PMIX_FUNCTIONS(IST_PMIX_MEMBER)
#undef IST_PMIX_MEMBER

  // Loads on the first call, and gives the same answer from then on.
  static Result<const PmixApi*> get();
  // "PMIX_ERR_TIMEOUT (-24)"
  std::string error_name(pmix::Code code) const;
};

}  // namespace ist
