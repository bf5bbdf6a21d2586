// The functions of gdrcopy's library, found at run time: device memory that a processor reads and writes itself. With gdr_api.cpp the
// only place that touches it.
//
// Who calls this : cuda_windows.cpp; tests name a file of their own.
// Threads        : any, after load(); a session is used under its owner's lock.
// Ownership      : the library stays loaded; a session is closed by whoever opened it.
// Errors         : in one line: no library, one that is too old, or no driver behind it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace ist::gdr {

// gdrcopy's own types, as its versions 2 have them.
struct Session;  // gdr_t points to it
struct Handle {
  unsigned long number = 0;
};
// Its caller gives the room: more than any version has filled so far.
struct Info {
  std::uint64_t start = 0;  // of what is pinned, on the device
  std::uint64_t size = 0;
  std::uint32_t page_size = 0;
  std::array<std::byte, 108> more{};
};

struct Api {
  Session* (*gdr_open)() = nullptr;
  int (*gdr_close)(Session*) = nullptr;
  int (*gdr_pin_buffer)(Session*, unsigned long address, std::size_t size, std::uint64_t token, std::uint32_t space,
                        Handle*) = nullptr;
  int (*gdr_unpin_buffer)(Session*, Handle) = nullptr;
  int (*gdr_get_info_v2)(Session*, Handle, Info*) = nullptr;
  int (*gdr_map)(Session*, Handle, void** place, std::size_t size) = nullptr;
  int (*gdr_unmap)(Session*, Handle, void* place, std::size_t size) = nullptr;
  int (*gdr_copy_to_mapping)(Handle, void* place, const void* from, std::size_t size) = nullptr;
  int (*gdr_copy_from_mapping)(Handle, void* to, const void* place, std::size_t size) = nullptr;
  void (*gdr_runtime_get_version)(int* major, int* minor) = nullptr;
  int (*gdr_driver_get_version)(Session*, int* major, int* minor) = nullptr;
  std::string file;
};

inline constexpr const char* kLibrary = "libgdrapi.so.2";

Result<Api> load_api(const std::string& file = kLibrary);

// A session with the kernel's driver, and which versions work together: "2.5, driver 2.5".
struct Opened {
  Session* session = nullptr;
  std::string versions;
};
Result<Opened> open(const Api& api);

}  // namespace ist::gdr
