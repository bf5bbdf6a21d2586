// Boot through the socket inherited from `isthmus run`.
//
// Who calls this : join_job.
// Threads        : any; one exchange of the process at a time.
// Ownership      : the socket belongs to the process: one per process, and it serves every world, one after another.
// Errors         : IST_ERR_BOOT; a process that is not a rank itself (a child of one) is told so and never touches the
//                  socket.
#pragma once

#include <memory>

#include "boot/boot.hpp"

namespace ist {

// Set by `isthmus run`, read here: the descriptor of the rank's socket, and its inode, by which a descriptor that has
// become something else is known.
inline constexpr const char* kBootDescriptor = "ISTHMUS_BOOT_FD";
inline constexpr const char* kBootInode = "ISTHMUS_BOOT_INODE";
// And the version of the start-up protocol that the command speaks: kFrameVersion. Version 1 did not say.
inline constexpr const char* kBootVersion = "ISTHMUS_BOOT_VERSION";
inline constexpr const char* kRank = "ISTHMUS_RANK";
inline constexpr const char* kSize = "ISTHMUS_SIZE";

// True if `isthmus run` set the environment of this process or of an ancestor.
bool launcher_environment();

Result<std::unique_ptr<Boot>> join_launcher(const Settings& settings);

}  // namespace ist
