// Every rank sends to itself through the C++ interface, and adds to the others' numbers.
#include <cstdio>
#include <isthmus/isthmus.hpp>
#include <numeric>
#include <vector>

int main() {
  const isthmus::World world;
  const isthmus::Comm comm = world.comm();
  std::vector<double> out(12347);
  std::vector<double> in(out.size(), -1.0);
  std::iota(out.begin(), out.end(), 0.5);
  isthmus::Request request = comm.irecv(in, comm.rank(), 3);
  comm.send(out, comm.rank(), 3);
  const isthmus::Status status = request.wait();
  if (in != out || status.tag() != 3) {
    std::fprintf(stderr, "outside C++ program: what arrived differs\n");
    return 1;
  }
  std::vector<int> ones(77, 1);
  comm.allreduce(isthmus::in_place, ones, isthmus::op::sum);
  if (ones != std::vector<int>(77, comm.size())) {
    std::fprintf(stderr, "outside C++ program: the sum of %d ones differs\n", comm.size());
    return 1;
  }
  std::printf("outside C++ program: %zu numbers arrived\n", in.size());
}
