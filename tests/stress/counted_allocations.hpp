// Counts what the C library's allocator is asked for, also by operator new and by the library under test.
//
// Who calls this : hot_path.cpp.
// Threads        : every thread has a count of its own.
// Ownership      : replaces the process's allocator by itself, with a counter in front; not for sanitizers, which do the same.
// Errors         : the allocator's own.
#pragma once

#include <cstdint>

namespace ist::test {

// How often the calling thread has asked for memory.
std::uint64_t allocations();

}  // namespace ist::test
