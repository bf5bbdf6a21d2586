// Two ranks exchange memory of the best kind the machine has. Run: isthmus run -n 2 hello_cpp
#include <isthmus/isthmus.hpp>

#include <cstdio>
#include <vector>

int main() try {
  using isthmus::Kind;
  const isthmus::World world;
  const isthmus::Comm comm = world.comm();
  const Kind kind = world.devices(Kind::cuda) > 0 ? Kind::cuda : world.devices(Kind::opencl) > 0 ? Kind::opencl : Kind::host;
  const int device = world.local_rank() % world.devices(kind), count = 1 << 20;

  std::vector<int> numbers(count, comm.rank() + 100);
  const auto out = world.allocate(kind, count * sizeof(int), device), in = world.allocate(kind, count * sizeof(int), device);
  world.copy(out.buffer(), isthmus::Buffer::host(numbers.data()), count * sizeof(int));

  const int next = (comm.rank() + 1) % comm.size();
  const auto status =
      comm.sendrecv(out.buffer(), count, IST_INT, next, 7, in.buffer(), count, IST_INT, isthmus::any_source, 7);
  world.copy(isthmus::Buffer::host(numbers.data()), in.buffer(), count * sizeof(int));
  std::printf("rank %d: %d numbers from rank %d, all %d\n", comm.rank(), count, status.source(), numbers.back());
} catch (const isthmus::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
