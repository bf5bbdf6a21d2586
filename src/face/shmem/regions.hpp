// Where a PE's copy of a symmetric address is, whatever memory it is of, and what is wrong where there is none.
//
// Who calls this : all of face/shmem, for what reach() of hot.hpp does not know.
// Threads        : any.
// Ownership      : looks at memory that others own.
// Errors         : by fail(): a PE that there is none, an address that is not symmetric.
//
// The spans of hot.hpp are looked at first, then the heaps of device memory.
#pragma once

#include <isthmus/heap.h>

#include "face/shmem/hot.hpp"

namespace ist::shmem {

struct Place {
  std::byte* at = nullptr;    // that PE's copy; of device memory this PE's own, which names it
  ist_heap device = nullptr;  // the heap of device memory that it is in, or null
};
// `at` is null if there is none, and whoever asked has been told by fail().
Place find(const char* call, const volatile void* address, std::size_t bytes, int pe);
// The same without a word.
Place look(const volatile void* address, std::size_t bytes, int pe);
// That PE's copy of device memory as kernels and streams reach it; null, and ist_error_text() says why, where they do not.
void* reach_on_device(const Place& place, int pe);
// The span that a symmetric address in host memory is in; null: none.
const Span* span_of(const volatile void* address, std::size_t bytes);
bool check_pe(const char* call, int pe);

}  // namespace ist::shmem
