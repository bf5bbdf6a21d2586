// The sizes of the symmetric heaps that the environment asks for.
//
// Who calls this : world.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : by fail(), for what cannot be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ist::shmem {

// SHMEM_SYMMETRIC_SIZE, or the older names that other implementations read; 0: none is set.
std::uint64_t heap_size_from_environment(const char* call);
// That variable's alone.
std::uint64_t size_from_environment(const char* call, const char* name);
// "64M", "1.5G", "1048576": bytes, with K, M, G or T for powers of 1024.
std::optional<std::uint64_t> read_size(std::string_view text);

// Behind the largest number there is no more to be had.
constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace ist::shmem
