// One copy or two for a long message between host buffers, as programs on this machine found out while they ran: kept for the next ones in a
// file beside the profile's.
//
// Who calls this : load_profile(), behind what `isthmus model fit` measured, which counts; face/message/world, at its end.
// Threads        : values.
// Ownership      : none.
// Errors         : a file that cannot be read, or written, is as none: the next program finds out again.
#pragma once

#include <string>

#include "protocol/choose.hpp"
#include "protocol/copy_choice.hpp"

namespace ist {

// Empty where profile_path() is.
std::string learned_copies_path();
// Of the sizes about which that profile knows nothing. True: there was any.
bool add_learned_copies(const std::string& file, MachineProfile& machine);
// What a run found out about sizes of which the profile that it began with knows nothing, beside what the file has. True: it has more now.
bool keep_learned_copies(const std::string& file, const CopyChoice& found, const MachineProfile& began_with);

}  // namespace ist
