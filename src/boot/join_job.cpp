#include "boot/boot.hpp"
#include "boot/environment_boot.hpp"
#include "boot/given_boot.hpp"
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

}  // namespace

Result<std::unique_ptr<Boot>> join_job(const Settings& settings) {
  if (boot_is_offered()) return join_offered();
  if (launcher_environment()) return join_launcher(settings);
  if (complete_job_environment()) return join_environment(settings);
  if (pmix_environment()) return join_pmix(settings);
  if (pmi_environment()) return join_pmi(settings);
  if (job_environment()) return join_environment(settings);
  return std::unique_ptr<Boot>{std::make_unique<AloneBoot>()};
}

}  // namespace ist
