#include "backend.hpp"

#include <stdexcept>

namespace stencil {

#ifndef STENCIL2D_CUDA
std::unique_ptr<Backend> make_cuda_backend(int /*local_rank*/, std::string& reason) {
  reason = "this program was built without a CUDA compiler";
  return nullptr;
}
#endif

std::unique_ptr<Backend> make_backend(const std::string& wanted, int local_rank, Precision precision) {
  std::string cuda, opencl;
  const bool any = wanted == "auto";
  if (any || wanted == "cuda")
    if (auto backend = make_cuda_backend(local_rank, cuda)) return backend;
  if (any || wanted == "opencl")
    if (auto backend = make_opencl_backend(local_rank, precision, opencl)) return backend;
  if (any || wanted == "host") return make_host_backend();
  throw std::runtime_error("--device " + wanted + " cannot be used here: " + cuda + opencl + "; try --device auto");
}

}  // namespace stencil
