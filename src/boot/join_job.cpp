#include <cstdlib>

#include "base/log.hpp"
#include "boot/boot.hpp"
#include "boot/environment_boot.hpp"
#include "boot/launcher_boot.hpp"
#include "boot/pmi_boot.hpp"
#include "boot/pmix_boot.hpp"

namespace ist {
namespace {

class AloneBoot final : public Boot {
 public:
  std::string_view name() const override { return "alone"; }
  Rank rank() const override { return Rank{0}; }
  int size() const override { return 1; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override { return std::vector<std::string>{mine}; }
};

// A world of one where a launcher started several processes is hardly what is meant, and nothing fails.
void warn_of_unheard_launchers() {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks && std::strtol(tasks, nullptr, 10) > 1 && std::getenv("SLURM_PROCID"))
    log::once(log::Level::warning,
              "srun started " + std::string{tasks} +
                  " processes, but offers them no way to find each other, so that this one makes a world of one: use srun "
                  "--mpi=pmix or srun --mpi=pmi2 (srun --mpi=list tells which there are)");
  if (std::getenv("PMI_PORT"))
    log::once(
        log::Level::warning,
        "PMI_PORT is set, but PMI is spoken over an inherited socket (PMI_FD) only, so that this process makes a world "
        "of one: start mpiexec without -pmi-port");
}

}  // namespace

Result<std::unique_ptr<Boot>> join_job(const Settings& settings) {
  if (launcher_environment()) return join_launcher(settings);
  if (complete_job_environment()) return join_environment(settings);
  if (pmix_environment()) return join_pmix(settings);
  if (pmi_environment()) return join_pmi(settings);
  if (job_environment()) return join_environment(settings);
  warn_of_unheard_launchers();
  return std::unique_ptr<Boot>{std::make_unique<AloneBoot>()};
}

}  // namespace ist
