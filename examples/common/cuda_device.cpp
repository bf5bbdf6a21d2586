#include "common/cuda_device.hpp"

#include <cstring>

#include "common/cuda.hpp"
#include "common/program.hpp"

namespace example::cuda {
namespace {

std::string why_none(cudaError_t code) {
  if (code == cudaSuccess) return "the driver lists none";
  if (code == cudaErrorInsufficientDriver) return "there is no NVIDIA driver, or it is too old";
  return cudaGetErrorString(code);
}

// How many this rank's driver lists, where every rank has one.
int count_devices(const isthmus::World& world) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  const bool lacks = code != cudaSuccess || count == 0;
  const int first = world.size() - largest(world.comm(), lacks ? world.size() - world.rank() : 0);
  if (first == world.size()) return count;
  // Whichever rank tells of it, these are that one's words.
  int why = code;
  world.comm().bcast(std::span(&why, 1), first);
  throw Mistake("--device cuda cannot be used here: no CUDA device: rank " + std::to_string(first) +
                " finds none: " + why_none(static_cast<cudaError_t>(why)) + "; take --device host");
}

bool some_are_one(const isthmus::World& world, const cudaUUID_t& uuid) {
  std::vector<std::uint8_t> mine(sizeof uuid), all(mine.size() * static_cast<std::size_t>(world.size()));
  std::memcpy(mine.data(), &uuid, sizeof uuid);
  world.comm().allgather(mine, all);
  const auto of = [&](int rank) { return all.data() + static_cast<std::size_t>(rank) * mine.size(); };
  for (int one = 0; one < world.size(); ++one)
    for (int other = 0; other < one; ++other)
      if (std::memcmp(of(one), of(other), mine.size()) == 0) return true;
  return false;
}

}  // namespace

Device take_device(const isthmus::World& world) {
  const int number = world.local_rank() % count_devices(world);
  check(cudaSetDevice(number), "cudaSetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  return {number, properties.name, some_are_one(world, properties.uuid)};
}

}  // namespace example::cuda
