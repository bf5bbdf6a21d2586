// Launches the kernel that goes through all iterations.
#include "persistent.cuh"

#include <isthmus/launch.cuh>
#include <stdexcept>

namespace jacobi {
namespace {

template <int kBatch>
Launch launch(const Job& job, cudaStream_t stream) {
  Room room;
  Launch launched = room_for(persistent_kernel<kBatch>, kThreads, 0, 0, &room);
  if (!launched.ok()) return launched;
  const long long items = plan_of(job.cells.columns, job.cells.rows, job.height, job.fine_rows).items,
                  blocks = room.blocks();
  return launch_grid(persistent_kernel<kBatch>, static_cast<unsigned>(items < blocks ? items : blocks), kThreads, 0, stream,
                     0, job);
}

}  // namespace

void launch_persistent(const Job& job, int batch, cudaStream_t stream) {
  const Launch launched = batch > 4 ? launch<8>(job, stream) : launch<4>(job, stream);
  if (!launched.ok()) throw std::runtime_error("--exchange kernel: " + launched.text);
}

}  // namespace jacobi
