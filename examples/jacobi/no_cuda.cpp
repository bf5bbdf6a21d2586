// Where there is no CUDA compiler.
#include "common/program.hpp"
#include "way.hpp"

namespace jacobi {

std::unique_ptr<Backend> make_cuda_backend(const isthmus::World& /*world*/, const Problem& /*problem*/) {
  throw example::Mistake("--device cuda cannot be used here: this program was built without a CUDA compiler");
}

}  // namespace jacobi
