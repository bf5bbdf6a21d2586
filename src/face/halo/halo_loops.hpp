// Loops written for boxes: what a program that packs its halos by hand would have.
//
// Who calls this : halo_packing.cpp, for host memory.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "memory/packing.hpp"

namespace ist::halo {

void pack_by_loops(const Form& form, const std::byte* base, std::byte* packed);
void unpack_by_loops(const Form& form, std::byte* base, const std::byte* packed);

}  // namespace ist::halo
