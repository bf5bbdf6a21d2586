// One copy or two for a message between host buffers, as programs on this machine found out while they ran, and up to which size slots are
// quicker, as the first two of them found out when they began: kept for the next ones in a file beside the profile's.
//
// Who calls this : load_profile(), behind what `isthmus model fit` measured, which counts; face/message/world, at its end; face/message/slots_trial.
// Threads        : values.
// Ownership      : none.
// Errors         : a file that cannot be read, or written, is as none: the next program finds out again.
#pragma once

#include <string>

#include "protocol/choose.hpp"
#include "protocol/copy_choice.hpp"

namespace ist {

// Is it one of the numbers that such a file has?
bool can_be_learned(double MachineProfile::*number);
// Empty where profile_path() is.
std::string learned_copies_path();
// Of the sizes about which that profile knows nothing. True: there was any.
bool add_learned_copies(const std::string& file, MachineProfile& machine);
// What a run found out about sizes of which the profile that it began with knows nothing, beside what the file has. True: it has more now.
bool keep_learned_copies(const std::string& file, const CopyChoice& found, const MachineProfile& began_with);
// Is it worth finding out up to which size slots are quicker? Not where that is known, was tried in vain a few times, or could not be kept.
bool lacks_slots(const std::string& file, const MachineProfile& machine);
// What one world found, which the next one is to find, too; 0: none did.
double slots_of_one_world(const std::string& file);
// Less than slots can take counts once a second world has found that, too, or less. 0: it was tried in vain. False: it could not be written.
bool keep_learned_slots(const std::string& file, double up_to);

}  // namespace ist
