#include "kernels.hpp"

#include "cell.hpp"
#include "common/cuda.hpp"
#include "isthmus/device/crew.cuh"
#include "isthmus/device/move.cuh"

namespace lbm {
namespace {

using Lattice = D3Q19;

// Sectors that two warps read stay where they are found.
template <bool kIn>
struct StreamingMemory {
  template <bool kAgain>
  __device__ static float read(const float* at) {
    if constexpr (kIn && !kAgain) return __ldcs(at);
    return *at;
  }
  __device__ static void write(float* at, float value) { __stcs(at, value); }
};

// One thread for each cell, the contiguous dimension along x.
template <bool kWalls, class Memory>
__global__ void __launch_bounds__(kMostThreads)
    sweep_cells(const Shape shape, const float* __restrict__ from, float* __restrict__ to, const Box box, const float omega,
                const float lid) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
            y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= box.count[2] || y >= box.count[1]) return;
  const Place place = look(shape, box.first[0] + static_cast<int>(blockIdx.z), box.first[1] + y, box.first[2] + x);
  store<Memory>(stepped<Lattice, kWalls, Memory>(from, shape, place, omega, lid), to, shape, place);
}

template <bool kWalls>
__global__ void __launch_bounds__(kBorderBlock) sweep_border_cells(const Sweep of, const Border border) {
  Place place;
  if (!border_cell(border, of.shape, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x), place)) return;
  store<PlainMemory>(stepped<Lattice, kWalls, PlainMemory>(of.from, of.shape, place, of.omega, of.lid), of.to, of.shape,
                     place);
}

// Waits, computes, stores into the neighbours' halos, tells them. The last block to end tells: then all have stored, and none reads halos of
// this step any more. After a wait that failed nothing is computed or told, by this launch or a later one, so that the neighbours give up, too.
template <bool kWalls>
__global__ void __launch_bounds__(kBorderBlock)
    sweep_border_and_store(const Sweep of, const Border border, const Crossing crossing, const Waits waits) {
  namespace in_kernel = ist::device;
  __shared__ bool is_last;
  const auto side = static_cast<int>(threadIdx.x);
  const bool has_neighbour = side < kDirections && waits.pe[side] >= 0;
  bool failed = false;
  if (has_neighbour) {
    failed = *static_cast<volatile int*>(waits.lost) != 0;
    if (!failed && in_kernel::wait_until(waits.view, waits.flags + side, in_kernel::Compare::greater_equal, waits.step,
                                         waits.deadline) != in_kernel::Status::ok) {
      failed = true;
      atomicCAS(waits.lost, 0, 1 + side);
    }
  }
  if (__syncthreads_or(failed) != 0) return;
  Place place;
  if (border_cell(border, of.shape, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x), place)) {
    const Cell<Lattice> cell = stepped<Lattice, kWalls, PlainMemory>(of.from, of.shape, place, of.omega, of.lid);
    store<PlainMemory>(cell, of.to, of.shape, place);
    cross(cell, crossing, of.shape, place);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    in_kernel::fence_system();
    is_last = atomicAdd(waits.done, 1U) == gridDim.x - 1;
    in_kernel::fence_system();
    if (is_last) *waits.done = 0;
  }
  __syncthreads();
  if (is_last && has_neighbour)
    in_kernel::signal(waits.view, waits.flags + (kDirections - 1 - side), waits.step + 1, in_kernel::Signal::set,
                      waits.pe[side]);
}

template <bool kIn>
__global__ void move_parcels(const Parcels parcels, const Shape shape, float* field) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= parcels.begin[parcels.count]) return;
  const Element element = element_of(parcels, shape, i);
  if constexpr (kIn)
    field[element.place] = *element.packed;
  else
    *element.packed = field[element.place];
}

__global__ void begin_cells(const Start start, const Shape shape, float* field, const Box box) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= box.count[2]) return;
  const int cell[3] = {box.first[0] + static_cast<int>(blockIdx.z), box.first[1] + static_cast<int>(blockIdx.y),
                       box.first[2] + x};
  int place[3];
  for (int d = 0; d < 3; ++d) place[d] = (start.first[d] + cell[d] + start.all[d]) % start.all[d];
  float* const here = field + shape.place(cell[0], cell[1], cell[2]);
  begin_cell<Lattice>(vortex(start.vortices, start.x[place[2]], start.y[place[1]], start.across[place[0]]), start.tau,
                      [&](std::size_t q, float value) { here[static_cast<std::size_t>(shape.size) * q] = value; });
}

constexpr int kSumThreads = 256;

// Over the threads of a block; the whole is with thread 0. In one order always.
template <class T>
__device__ T sum_of_block(T mine) {
  __shared__ T of[kSumThreads];
  of[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = kSumThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) of[threadIdx.x] += of[threadIdx.x + half];
    __syncthreads();
  }
  const T sum = of[0];
  __syncthreads();
  return sum;
}

template <std::size_t Q>
__device__ void add_population(double value, double& density, double (&u)[3]) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  density += value;
  for (int d = 0; d < 3; ++d) u[d] += c[d] * value;
}
template <std::size_t... Q>
__device__ void add_cell(const float* here, std::size_t size, double& density, double (&u)[3],
                         std::index_sequence<Q...> /*all*/) {
  (add_population<Q>(here[size * Q], density, u), ...);
}

// A block for each layer.
__global__ void __launch_bounds__(kSumThreads) measure_layers(const Shape shape, const float* field, double2* layers) {
  double density = 0, energy = 0;
  for (int cell = static_cast<int>(threadIdx.x); cell < shape.cells[1] * shape.cells[2]; cell += kSumThreads) {
    const float* const here =
        field + shape.place(static_cast<int>(blockIdx.x), cell / shape.cells[2], cell % shape.cells[2]);
    double mine = 0, u[3] = {0, 0, 0};
    add_cell(here, static_cast<std::size_t>(shape.size), mine, u, std::make_index_sequence<Lattice::kCount>{});
    density += mine;
    energy += (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]) / ((1 + mine) * (1 + mine));
  }
  const double all_density = sum_of_block(density), all_energy = sum_of_block(energy);
  if (threadIdx.x == 0) layers[blockIdx.x] = {all_density, all_energy};
}

// A block for each layer and population.
__global__ void __launch_bounds__(kSumThreads)
    print_layers(const Start start, const Shape shape, const float* field, std::uint64_t* prints) {
  const auto z = static_cast<int>(blockIdx.x);
  const std::uint64_t q = blockIdx.y, layer = static_cast<std::uint64_t>(start.first[0] + z);
  const float* const population = field + static_cast<std::size_t>(shape.size) * q;
  std::uint64_t sum = 0;
  for (int cell = static_cast<int>(threadIdx.x); cell < shape.cells[1] * shape.cells[2]; cell += kSumThreads) {
    const int y = cell / shape.cells[2], x = cell % shape.cells[2];
    const std::uint64_t number =
        (layer * static_cast<std::uint64_t>(start.all[1]) + static_cast<std::uint64_t>(start.first[1] + y)) *
            static_cast<std::uint64_t>(start.all[2]) +
        static_cast<std::uint64_t>(start.first[2] + x);
    sum += print_of(__float_as_uint(population[shape.place(z, y, x)]), number, q);
  }
  const std::uint64_t all = sum_of_block(sum);
  if (threadIdx.x == 0) prints[q * static_cast<std::uint64_t>(start.all[0]) + layer] = all;
}

__global__ void copy_vectors(const float4* __restrict__ from, float4* __restrict__ to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

unsigned blocks_for(std::int64_t threads, std::int64_t of_block) {
  return static_cast<unsigned>((threads + of_block - 1) / of_block);
}
void launched(const char* what) { example::cuda::check(cudaGetLastError(), what); }

template <bool kWalls>
auto kernel_for(Caching caching) {
  return caching == Caching::plain        ? sweep_cells<kWalls, PlainMemory>
         : caching == Caching::stream_out ? sweep_cells<kWalls, StreamingMemory<false>>
                                          : sweep_cells<kWalls, StreamingMemory<true>>;
}

}  // namespace

void sweep(const Sweep& of, const Box& box, const Tile& tile, cudaStream_t stream) {
  if (box.cells() <= 0) return;
  const dim3 block(static_cast<unsigned>(tile.x), static_cast<unsigned>(tile.y));
  const dim3 grid(blocks_for(box.count[2], tile.x), blocks_for(box.count[1], tile.y), static_cast<unsigned>(box.count[0]));
  const auto kernel = of.has_walls ? kernel_for<true>(tile.caching) : kernel_for<false>(tile.caching);
  kernel<<<grid, block, 0, stream>>>(of.shape, of.from, of.to, box, of.omega, of.lid);
  launched("the launch of a sweep");
}

void sweep_border(const Sweep& of, const Border& border, cudaStream_t stream) {
  if (border.boxes == 0) return;
  const auto kernel = of.has_walls ? sweep_border_cells<true> : sweep_border_cells<false>;
  kernel<<<static_cast<unsigned>(border.blocks()), kBorderBlock, 0, stream>>>(of, border);
  launched("the launch of a border");
}

void sweep_border(const Sweep& of, const Border& border, const Crossing& crossing, const Waits& waits, cudaStream_t stream) {
  if (border.boxes == 0) return;
  const auto kernel = of.has_walls ? sweep_border_and_store<true> : sweep_border_and_store<false>;
  kernel<<<static_cast<unsigned>(border.blocks()), kBorderBlock, 0, stream>>>(of, border, crossing, waits);
  launched("the launch of a border that stores");
}

void pack(const Parcels& parcels, const Shape& shape, const float* field, cudaStream_t stream) {
  if (parcels.count == 0) return;
  move_parcels<false>
      <<<blocks_for(parcels.begin[parcels.count], 256), 256, 0, stream>>>(parcels, shape, const_cast<float*>(field));
  launched("the launch of a packing");
}
void unpack(const Parcels& parcels, const Shape& shape, float* field, cudaStream_t stream) {
  if (parcels.count == 0) return;
  move_parcels<true><<<blocks_for(parcels.begin[parcels.count], 256), 256, 0, stream>>>(parcels, shape, field);
  launched("the launch of an unpacking");
}

void begin(const Start& start, const Shape& shape, float* field, cudaStream_t stream) {
  Box box{};
  for (int d = 0; d < 3; ++d) {
    const int layer = shape.margin[d] == 0 ? 0 : 1;
    box.first[d] = -layer;
    box.count[d] = shape.cells[d] + 2 * layer;
  }
  const dim3 grid(blocks_for(box.count[2], 128), static_cast<unsigned>(box.count[1]), static_cast<unsigned>(box.count[0]));
  begin_cells<<<grid, 128, 0, stream>>>(start, shape, field, box);
  launched("the launch of the first state");
}

void measure(const Shape& shape, const float* field, double2* layers, cudaStream_t stream) {
  measure_layers<<<static_cast<unsigned>(shape.cells[0]), kSumThreads, 0, stream>>>(shape, field, layers);
  launched("the launch of sums");
}
void print(const Start& start, const Shape& shape, const float* field, std::uint64_t* prints, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(shape.cells[0]), static_cast<unsigned>(Lattice::kCount));
  print_layers<<<grid, kSumThreads, 0, stream>>>(start, shape, field, prints);
  launched("the launch of prints");
}
void copy(const float* from, float* to, std::int64_t count, cudaStream_t stream) {
  copy_vectors<<<blocks_for(count / 4, 256), 256, 0, stream>>>(reinterpret_cast<const float4*>(from),
                                                               reinterpret_cast<float4*>(to), count / 4);
  launched("the launch of a copy");
}

}  // namespace lbm
