// Where there is no CUDA compiler.
#include "common/program.hpp"
#include "machine.hpp"

namespace particles {

std::unique_ptr<Machine> make_cuda_machine(const isthmus::World& /*world*/) {
  throw example::Mistake("--device cuda cannot be used here: this program was built without a CUDA compiler");
}

}  // namespace particles
