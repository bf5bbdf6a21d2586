// Where a PE's copy of a symmetric address is: the one place where addresses are translated.
//
// Who calls this : all of face/shmem, for what reach() of hot.hpp does not know.
// Threads        : find() any; regions are added inside shmem_init, before other threads call.
// Ownership      : looks at memory that others own.
// Errors         : by fail(): a PE that there is none, an address that is not symmetric.
//
// The heap of host memory is looked at first, then the regions in the order they were added, then the heap of device memory.
#pragma once

#include <isthmus/heap.h>

#include <span>
#include <vector>

#include "face/shmem/hot.hpp"

namespace ist::shmem {

// Memory beside the heap that every PE has at addresses of its own, all of them mapped here: a program's globals.
struct Region {
  const std::byte* begin = nullptr;  // this PE's own
  std::size_t bytes = 0;
  std::vector<std::byte*> peers;  // where this process has PE p's copy
};

void add_region(Region region);
void drop_regions();

struct Place {
  std::byte* at = nullptr;    // that PE's copy; of a device for kernels and copies alone
  ist_heap device = nullptr;  // the heap of device memory that it is in, or null
};
// `at` is null if there is none, and whoever asked has been told by fail().
Place find(const char* call, const volatile void* address, std::size_t bytes, int pe);
// The same without a word.
Place look(const volatile void* address, std::size_t bytes, int pe);
bool check_pe(const char* call, int pe);

}  // namespace ist::shmem
