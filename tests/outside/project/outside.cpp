// Every rank sends to itself through the C++ interface.
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
  std::printf("outside C++ program: %zu numbers arrived\n", in.size());
}
