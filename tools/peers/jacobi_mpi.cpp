// The Jacobi example in host memory by whatever MPI compiled this: the example's own sweep (examples/common/stencil.cpp), rows by persistent
// requests while the rows between are computed, and an allreduce of the norm. Rank 0 prints one JSON object; tools/peers/compare_jacobi.py
// reads it.
//
//   mpicxx -std=c++20 -O3 -ffp-contract=off -Iinclude -Iexamples jacobi_mpi.cpp examples/common/stencil.cpp -Lbuild/lib -listhmus
//   mpirun -n N ./jacobi_mpi NX NY ITERATIONS NCCHECK
//
// Nothing of Isthmus is called: the library is linked since the example's file also has what allocates by it. PEER_PROCESSORS=A,B,... binds
// rank 0 to processor A, and so on.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/stencil.hpp"
#include "jacobi/problem.hpp"

namespace {

struct Ranks {
  int rank = 0, all = 1;
  int up() const { return (rank + all - 1) % all; }
  int down() const { return (rank + 1) % all; }
};

void bind(int rank) {
  const char* left = std::getenv("PEER_PROCESSORS");
  for (int n = 0; left != nullptr; ++n) {
    if (n == rank) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<std::size_t>(std::atoi(left)), &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
    left = std::strchr(left, ',');
    if (left != nullptr) ++left;
  }
}

// Of each level, two receives and two sends. The two neighbours may be one rank, so that the tag says in which direction a row goes.
using Requests = std::array<std::array<MPI_Request, 4>, 2>;
Requests requests_of(const example::Field& field, const Ranks& ranks) {
  constexpr int kUpward = 0, kDownward = 1;
  const int columns = static_cast<int>(field.columns);
  Requests all{};
  for (int level = 0; level < 2; ++level) {
    auto& now = all[static_cast<std::size_t>(level)];
    MPI_Recv_init(field.cells(level, 0), columns, MPI_FLOAT, ranks.up(), kDownward, MPI_COMM_WORLD, &now[0]);
    MPI_Recv_init(field.cells(level, field.rows + 1), columns, MPI_FLOAT, ranks.down(), kUpward, MPI_COMM_WORLD, &now[1]);
    MPI_Send_init(field.cells(level, 1), columns, MPI_FLOAT, ranks.up(), kUpward, MPI_COMM_WORLD, &now[2]);
    MPI_Send_init(field.cells(level, field.rows), columns, MPI_FLOAT, ranks.down(), kDownward, MPI_COMM_WORLD, &now[3]);
  }
  return all;
}

// As host.cpp of the example.
jacobi::Solved solve(const jacobi::Problem& problem, const example::Field& field, Requests& requests, const Ranks& ranks) {
  example::Stencil stencil(problem.factor());
  example::fill(field, example::part_of(problem.cut_rows(), ranks.all, ranks.rank).first,
                [&](auto x, auto y) { return static_cast<float>(problem.start(x, y)); });
  jacobi::Solved solved;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (bool over = false; !over && solved.iterations < problem.iterations; ++solved.iterations) {
    const int now = solved.iterations % 2;
    const bool check = (solved.iterations + 1) % problem.nccheck == 0;
    auto& under_way = requests[static_cast<std::size_t>(now)];
    MPI_Startall(4, under_way.data());
    stencil.sweep(field, now, 2, field.rows - 1, check);
    MPI_Waitall(4, under_way.data(), MPI_STATUSES_IGNORE);
    stencil.sweep(field, now, 1, 1, check);
    if (field.rows > 1) stencil.sweep(field, now, field.rows, field.rows, check);
    if (!check) continue;
    float mine = stencil.change(), sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    solved.norm = std::sqrt(sum);
    if (solved.iterations == 0) solved.first_norm = solved.norm;
    over = static_cast<double>(solved.norm) <= problem.tolerance;
  }
  double took = MPI_Wtime() - begin;
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  solved.seconds = took / solved.iterations;
  return solved;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: jacobi_mpi NX NY ITERATIONS NCCHECK\n");
    return 2;
  }
  jacobi::Problem problem;
  problem.nx = std::atoll(argv[1]), problem.ny = std::atoll(argv[2]);
  problem.iterations = std::atoi(argv[3]), problem.nccheck = std::atoi(argv[4]);
  Ranks ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.all);
  bind(ranks.rank);
  example::Field field;
  field.rows = example::part_of(problem.cut_rows(), ranks.all, ranks.rank).count;
  field.columns = problem.nx;
  for (float*& level : field.levels)
    level = static_cast<float*>(std::aligned_alloc(4096, (field.level_bytes() + 4095) / 4096 * 4096));
  if (problem.nccheck < 1 || field.rows < 1 || field.levels[0] == nullptr || field.levels[1] == nullptr)
    MPI_Abort(MPI_COMM_WORLD, 2);
  Requests requests = requests_of(field, ranks);
  std::vector<jacobi::Solved> runs;
  for (int run = 0; run < 3; ++run) runs.push_back(solve(problem, field, requests, ranks));
  std::sort(runs.begin(), runs.end(), [](const auto& one, const auto& other) { return one.seconds < other.seconds; });
  const jacobi::Solved& median = runs[1];
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  version[std::strcspn(version.data(), ",\n\"\\")] = '\0';
  if (ranks.rank == 0)
    std::printf(
        "{\"peer_name\": \"%s\", \"ranks\": %d, \"iterations\": %d, \"seconds\": %.9f, \"rate\": %.5f, \"first_norm\": "
        "%.9g, \"norm\": %.9g}\n",
        version.data(), ranks.all, median.iterations, median.seconds, problem.gigapixels(median.seconds),
        static_cast<double>(median.first_norm), static_cast<double>(median.norm));
  for (auto& level : requests)
    for (MPI_Request& request : level) MPI_Request_free(&request);
  for (float* const level : field.levels) std::free(level);
  MPI_Finalize();
}
