// An MPI program in C++, compiled by each MPI of the machine: worlds of its communicators as C++ has them.
#include <isthmus/mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

#include "isthmus/isthmus.hpp"

namespace {

using isthmus::Comm;
using isthmus::World;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::printf("failed: %s\n", what);
}

template <class Call>
void expect_refused(const Call& call, std::string_view text) {
  try {
    call();
    expect(false, "an error of the world that cannot be made");
  } catch (const isthmus::Error& error) {
    expect(error.code() == IST_ERR_BOOT && std::string_view{error.what()}.find(text) != std::string_view::npos,
           error.what());
  }
}

World world_of(MPI_Comm comm) {
  return World::create_with([=](ist_world* out) { return ist_world_from_mpi(comm, out); });
}

std::vector<std::uint64_t> numbers_of(int rank, std::size_t count) {
  std::mt19937_64 generator(count * 64 + static_cast<std::size_t>(rank));
  std::vector<std::uint64_t> made(count);
  std::generate(made.begin(), made.end(), std::ref(generator));
  return made;
}

// Ranks and bytes are those of the MPI communicator.
void exchange(MPI_Comm mpi, const Comm& comm) {
  int rank = -1, size = -1;
  MPI_Comm_rank(mpi, &rank);
  MPI_Comm_size(mpi, &size);
  expect(comm.rank() == rank && comm.size() == size, "the rank numbers are MPI's");
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (const std::size_t count : {0UL, 1UL, 1023UL, 70001UL}) {
    const auto sent = numbers_of(rank, count);
    std::vector<std::uint64_t> got(count, 7), by_mpi(count, 7);
    comm.sendrecv(sent, right, 3, got, left, 3);
    MPI_Sendrecv(sent.data(), static_cast<int>(count), MPI_UINT64_T, right, 3, by_mpi.data(), static_cast<int>(count),
                 MPI_UINT64_T, left, 3, mpi, MPI_STATUS_IGNORE);
    expect(got == numbers_of(left, count) && by_mpi == got, "the bytes of the left neighbour");
  }
}

void use_all_ways() {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const World whole = world_of(MPI_COMM_WORLD);
  exchange(MPI_COMM_WORLD, whole.comm());
  // Backwards, made in C and taken over.
  MPI_Comm backwards = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &backwards);
  ist_world made = IST_WORLD_NULL;
  expect(ist_world_from_mpi(backwards, &made) == IST_OK, "ist_world_from_mpi");
  {
    const World taken(made);
    exchange(backwards, taken.comm());
    exchange(MPI_COMM_WORLD, whole.comm());
  }
  int ignored = 0;
  ist_comm comm = IST_COMM_NULL;
  expect(ist_world_comm(made, &comm) == IST_ERR_HANDLE, "the world that was taken over is gone with its object");
  expect(ist_comm_rank(whole.comm().c(), &ignored) == IST_OK, "the other one is not");
  MPI_Comm_free(&backwards);
}

}  // namespace

int main(int argc, char** argv) {
  expect_refused([] { world_of(MPI_COMM_WORLD); }, "MPI_Init");
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    use_all_ways();
    expect_refused([] { world_of(MPI_COMM_NULL); }, "MPI_COMM_NULL");
    const World outlives = world_of(MPI_COMM_WORLD);
    MPI_Finalize();
    outlives.comm().barrier();
    expect_refused([] { world_of(MPI_COMM_WORLD); }, "finalised");
  } catch (const isthmus::Error& error) {
    expect(false, error.what());
  }
  if (failures == 0) std::printf("rank %d of %d is through\n", rank, size);
  return failures == 0 ? 0 : 1;
}
