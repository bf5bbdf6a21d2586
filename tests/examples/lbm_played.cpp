// lbm's kernels, played by the processor over the fake driver: each launch is a host function in
// its stream, so that exchanges, streams and the heap between processes are run where there is no GPU. What a launch does to each cell is the
// kernels' own code. Captures take all that is launched into one stream, one after the other.
#include <sched.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "isthmus/device/move.cuh"
#include "lbm/cell.hpp"
#include "lbm/kernels.hpp"
#include "played_driver.hpp"

namespace {

using played::driver, played::host, played::told;

CUstream capturing = nullptr;

void post(cudaStream_t stream, std::function<void()> work) {
  played::post(capturing != nullptr ? capturing : stream, std::move(work));
}

template <class Do>
void each_of(const lbm::Box& box, const Do& act) {
  for (int z = 0; z < box.count[0]; ++z)
    for (int y = 0; y < box.count[1]; ++y)
      for (int x = 0; x < box.count[2]; ++x) act(box.first[0] + z, box.first[1] + y, box.first[2] + x);
}

using lbm::D3Q19;

void step(const lbm::Sweep& of, const lbm::Place& place, const lbm::Crossing* crossing) {
  const auto cell = of.has_walls ? lbm::stepped<D3Q19, true, lbm::PlainMemory>(of.from, of.shape, place, of.omega, of.lid)
                                 : lbm::stepped<D3Q19, false, lbm::PlainMemory>(of.from, of.shape, place, of.omega, of.lid);
  lbm::store<lbm::PlainMemory>(cell, of.to, of.shape, place);
  if (crossing != nullptr) lbm::cross(cell, *crossing, of.shape, place);
}
void step(const lbm::Sweep& of, const lbm::Border& border, const lbm::Crossing* crossing) {
  lbm::Place place{};
  for (int block = 0; block < border.blocks(); ++block)
    for (int thread = 0; thread < lbm::kBorderBlock; ++thread)
      if (lbm::border_cell(border, of.shape, block, thread, place)) step(of, place, crossing);
}

lbm::Sweep on_host(lbm::Sweep of) {
  of.from = host(const_cast<float*>(of.from));
  of.to = host(of.to);
  return of;
}

bool comes(const std::uint64_t* flag, const lbm::Waits& waits) {
  const auto begun = std::chrono::steady_clock::now();
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < waits.step) {
    if (std::chrono::steady_clock::now() - begun > std::chrono::nanoseconds(waits.deadline)) return false;
    sched_yield();
  }
  return true;
}

lbm::Parcels on_host(lbm::Parcels parcels) {
  for (int n = 0; n < parcels.count; ++n) parcels.parcel[n].buffer = host(parcels.parcel[n].buffer);
  return parcels;
}

}  // namespace

namespace lbm {

void sweep(const Sweep& of, const Box& box, const Tile& /*tile*/, cudaStream_t stream) {
  post(stream, [=, here = on_host(of)] {
    each_of(box, [&](int z, int y, int x) { step(here, look(here.shape, z, y, x), nullptr); });
  });
}
void sweep_border(const Sweep& of, const Border& border, cudaStream_t stream) {
  post(stream, [=, here = on_host(of)] { step(here, border, nullptr); });
}
void sweep_border(const Sweep& of, const Border& border, const Crossing& crossing, const Waits& waits, cudaStream_t stream) {
  Crossing there{};
  std::uint64_t *flags[kDirections]{}, *flags_there[kDirections]{};
  for (int number = 0; number < kDirections; ++number) {
    if (waits.pe[number] < 0) continue;
    // Where a cell of that side comes to, of which the address is one of the neighbour's memory.
    const int steps[3] = {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
    int cell[3];
    for (int d = 0; d < 3; ++d) cell[d] = steps[d] > 0 ? of.shape.cells[d] - 1 : 0;
    const int place = of.shape.place(cell[0], cell[1], cell[2]);
    there.to[number] = host(crossing.to[number] + place) - place;
    flags[number] = host(waits.flags + number);
    flags_there[number] =
        host(ist::device::peer_ptr(waits.view, waits.flags + (kDirections - 1 - number), waits.pe[number]));
  }
  int* const lost = host(waits.lost);
  post(stream, [=, here = on_host(of)] {
    for (int number = 0; number < kDirections; ++number)
      if (flags[number] != nullptr && *lost == 0 && !comes(flags[number], waits)) *lost = 1 + number;
    if (*lost != 0) return;
    step(here, border, &there);
    for (std::uint64_t* const flag : flags_there)
      if (flag != nullptr) __atomic_store_n(flag, waits.step + 1, __ATOMIC_RELEASE);
  });
}

void pack(const Parcels& parcels, const Shape& shape, const float* field, cudaStream_t stream) {
  post(stream, [=, here = host(const_cast<float*>(field)), packed = on_host(parcels)] {
    for (int i = 0; i < packed.begin[packed.count]; ++i) {
      const Element element = element_of(packed, shape, i);
      *element.packed = here[element.place];
    }
  });
}
void unpack(const Parcels& parcels, const Shape& shape, float* field, cudaStream_t stream) {
  post(stream, [=, here = host(field), packed = on_host(parcels)] {
    for (int i = 0; i < packed.begin[packed.count]; ++i) {
      const Element element = element_of(packed, shape, i);
      here[element.place] = *element.packed;
    }
  });
}

void begin(const Start& start, const Shape& shape, float* field, cudaStream_t stream) {
  const Angle *x_at = host(const_cast<Angle*>(start.x)), *y_at = host(const_cast<Angle*>(start.y));
  const double* across_at = host(const_cast<double*>(start.across));
  Box box{};
  for (int d = 0; d < 3; ++d) {
    const int layer = shape.margin[d] == 0 ? 0 : 1;
    box.first[d] = -layer;
    box.count[d] = shape.cells[d] + 2 * layer;
  }
  post(stream, [=, here = host(field)] {
    each_of(box, [&](int z, int y, int x) {
      const int cell[3] = {z, y, x};
      int place[3];
      for (int d = 0; d < 3; ++d) place[d] = (start.first[d] + cell[d] + start.all[d]) % start.all[d];
      begin_cell<D3Q19>(vortex(start.vortices, x_at[place[2]], y_at[place[1]], across_at[place[0]]), start.tau,
                        [&](std::size_t q, float value) {
                          here[static_cast<std::size_t>(shape.size) * q + static_cast<std::size_t>(shape.place(z, y, x))] =
                              value;
                        });
    });
  });
}

void measure(const Shape& shape, const float* field, double2* layers, cudaStream_t stream) {
  post(stream, [=, here = host(const_cast<float*>(field)), sums = host(layers)] {
    for (int z = 0; z < shape.cells[0]; ++z) {
      sums[z] = {0, 0};
      each_of({{z, 0, 0}, {1, shape.cells[1], shape.cells[2]}}, [&](int, int y, int x) {
        double density = 0, u[3] = {0, 0, 0};
        for (std::size_t q = 0; q < D3Q19::kCount; ++q) {
          const double value =
              here[static_cast<std::size_t>(shape.size) * q + static_cast<std::size_t>(shape.place(z, y, x))];
          density += value;
          for (std::size_t d = 0; d < 3; ++d) u[d] += D3Q19::kVelocities[q][d] * value;
        }
        sums[z].x += density;
        sums[z].y += (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]) / ((1 + density) * (1 + density));
      });
    }
  });
}
void print(const Start& start, const Shape& shape, const float* field, std::uint64_t* prints, cudaStream_t stream) {
  post(stream, [=, here = host(const_cast<float*>(field)), sums = host(prints)] {
    each_of({{0, 0, 0}, {shape.cells[0], shape.cells[1], shape.cells[2]}}, [&](int z, int y, int x) {
      const auto at = [&](int d, int cell) {
        return static_cast<std::uint64_t>(start.first[d]) + static_cast<std::uint64_t>(cell);
      };
      const std::uint64_t number =
          (at(0, z) * static_cast<std::uint64_t>(start.all[1]) + at(1, y)) * static_cast<std::uint64_t>(start.all[2]) +
          at(2, x);
      for (std::uint64_t q = 0; q < D3Q19::kCount; ++q) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &here[static_cast<std::size_t>(shape.size) * q + static_cast<std::size_t>(shape.place(z, y, x))],
                    sizeof bits);
        sums[q * static_cast<std::uint64_t>(start.all[0]) + at(0, z)] += print_of(bits, number, q);
      }
    });
  });
}
void copy(const float* from, float* to, std::int64_t count, cudaStream_t stream) {
  post(stream, [=, there = host(to), here = host(const_cast<float*>(from))] {
    std::memcpy(there, here, static_cast<std::size_t>(count) * sizeof(float));
  });
}

}  // namespace lbm

// ---- events and graphs: all is in one stream while it is captured ----

extern "C" {

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return capturing != nullptr ? cudaSuccess : told(DRIVER(cuEventRecord)(event, stream));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return capturing != nullptr ? cudaSuccess : told(DRIVER(cuStreamWaitEvent)(stream, event, flags));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  capturing = stream;
  return told(driver<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(
      stream, static_cast<CUstreamCaptureMode>(mode)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  capturing = nullptr;
  return told(DRIVER(cuStreamEndCapture)(stream, graph));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  return told(
      driver<CUresult(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags")(made, graph, flags));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return told(DRIVER(cuGraphLaunch)(graph, stream));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return told(DRIVER(cuGraphExecDestroy)(graph)); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return told(DRIVER(cuGraphDestroy)(graph)); }

}  // extern "C"
