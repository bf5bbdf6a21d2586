// Every rank passes numbers to the next, in memory of the best kind the machine has. Run: isthmus run -n 2 hello_cpp
#include <isthmus/isthmus.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

int main() try {
  using isthmus::Buffer, isthmus::Kind;
  const isthmus::World world;
  const isthmus::Comm comm = world.comm();
  const Kind kind = world.devices(Kind::cuda) > 0 ? Kind::cuda : world.devices(Kind::opencl) > 0 ? Kind::opencl : Kind::host;
  const int count = 1 << 20, next = (comm.rank() + 1) % comm.size();
  const std::size_t bytes = count * sizeof(int);
  std::vector<int> numbers(count, comm.rank() + 100);
  const auto out = world.allocate(kind, bytes), in = world.allocate(kind, bytes);

  world.copy(out.buffer(), Buffer::host(numbers.data()), bytes);
  const auto status =
      comm.sendrecv(out.buffer(), count, IST_INT, next, 7, in.buffer(), count, IST_INT, isthmus::any_source, 7);
  world.copy(Buffer::host(numbers.data()), in.buffer(), bytes);

  const auto right = std::count(numbers.begin(), numbers.end(), status.source() + 100);
  std::printf("rank %d: %td of %d numbers from rank %d are right\n", comm.rank(), right, count, status.source());
} catch (const isthmus::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
