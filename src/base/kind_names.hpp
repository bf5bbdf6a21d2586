// Names of the kinds of memory, by their number in ist_kind less one: what ISTHMUS_KINDS takes and every list shows.
//
// Who calls this : settings; memory/ and cli/.
// Threads        : any.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ist {

inline constexpr std::array<std::string_view, 3> kKindNames{"host", "cuda", "opencl"};
std::string kind_names();                 // "host, cuda, opencl"
bool lists_kinds(std::string_view text);  // "all", or such names between commas

}  // namespace ist
