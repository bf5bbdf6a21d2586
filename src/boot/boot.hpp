// Who is where: rank, size, and one collective exchange of blobs.
//
// Who calls this : face/message/world at start. Who implements it: the *_boot files.
// Threads        : one at a time; worlds of one process are created one after another.
// Ownership      : a Boot owns its connection, except that to a launcher or its server, which belongs to the process and
//                  serves every world it creates.
// Errors         : IST_ERR_BOOT naming the ranks that did not come, the address tried and the time waited.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

class Boot {
 public:
  virtual ~Boot() = default;
  virtual std::string_view name() const = 0;  // "launcher", "environment", "pmix", "pmi", "given", "alone"
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  // Every rank gives a blob; every rank gets all of them, by rank. Collective, in the same order everywhere.
  virtual Result<std::vector<std::string>> all_gather(const std::string& mine) = 0;
  // This rank cannot make the world, for a reason that the others have not heard: they are told, where the way allows that,
  // and nobody comes to a further exchange. Waits for no rank.
  virtual void withdraw(const std::string& reason) { static_cast<void>(reason); }
};

// Chooses by what the environment holds:
// ISTHMUS_BOOT_FD (set by `isthmus run`), all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, a PMIx server, a PMI
// connection, some of the four (an error that names the others), and else a world of one. docs/launchers.md says why in this
// order.
Result<std::unique_ptr<Boot>> join_job(const Settings& settings);

}  // namespace ist
