#include "counted_allocations.hpp"

#include <cerrno>
#include <cstddef>

// The names under which the C library's allocator is still there once ours have taken the usual ones.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {
thread_local std::uint64_t made = 0;
}

std::uint64_t ist::test::allocations() { return made; }

// Shown to the library under test, whose calls are to come here too.
#define COUNTED extern "C" __attribute__((visibility("default")))

COUNTED void* malloc(std::size_t bytes) {
  ++made;
  return __libc_malloc(bytes);
}

COUNTED void* calloc(std::size_t count, std::size_t bytes) {
  ++made;
  return __libc_calloc(count, bytes);
}

COUNTED void* realloc(void* memory, std::size_t bytes) {
  ++made;
  return __libc_realloc(memory, bytes);
}

COUNTED void* memalign(std::size_t alignment, std::size_t bytes) {
  ++made;
  return __libc_memalign(alignment, bytes);
}

COUNTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

COUNTED int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory != nullptr ? 0 : ENOMEM;
}
