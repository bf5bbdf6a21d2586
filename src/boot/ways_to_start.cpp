#include "boot/ways_to_start.hpp"

#include "boot/pmix_api.hpp"

namespace ist {
namespace {

// "OpenPMIx 4.2.2 (PMIx Standard: 4.2, ...), repo rev: ..." is cut: the rest names standards, a commit and a day.
std::string version_of(const PmixApi& api) {
  const char* text = api.PMIx_Get_version();
  const std::string version = text ? text : "a version that it does not tell";
  const auto end = version.find_first_of(",(");
  return version.substr(0, end == std::string::npos ? end : version.find_last_not_of(' ', end - 1) + 1);
}

WayToStart by_pmix() {
  WayToStart way{"PMIx", "mpirun, prterun, srun --mpi=pmix", "", ""};
  const auto api = PmixApi::get();
  if (api.ok()) {
    way.detail = version_of(**api);
  } else {
    way.off = api.status().text();
  }
  return way;
}

}  // namespace

std::vector<WayToStart> ways_to_start() {
  return {{"MPI_Comm", "ist_world_from_mpi", "", ""},
          {"launcher", "isthmus run", "", ""},
          {"environment", "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them", "", ""},
          by_pmix(),
          {"PMI", "srun --mpi=pmi2, mpiexec of MPICH", "versions 2.0 and 1.1", ""}};
}

}  // namespace ist
