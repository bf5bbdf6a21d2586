// The mistake that an exception must tell of, with an operation under way that nobody will ever answer. Two ranks; what is under way, and
// whether only rank 0 errs, are its arguments.
#include <cstdio>
#include <string_view>
#include <vector>

#include "isthmus/isthmus.hpp"

namespace {

void err(const isthmus::Comm& comm) { comm.send(std::vector<double>(8), comm.rank() + 2); }

void run(std::string_view what, bool alone) {
  const isthmus::World world;
  const isthmus::Comm comm = world.comm();
  const int other = 1 - comm.rank();
  std::vector<double> halo(8);
  std::vector<double> big(1 << 20);
  // The other one makes another call, or none, and waits for what rank 0 would send later.
  const bool call = what != "irecv" && what != "isend" && what != "vector" && !what.ends_with("_init");
  if (alone && comm.rank() == 1 && call) comm.recv(halo, other, 99);
  if (alone && comm.rank() == 1) return comm.barrier();
  if (what == "irecv") {
    auto request = comm.irecv(halo, other);
    err(comm);
    request.wait();
  } else if (what == "isend") {
    auto request = comm.isend(big, other);
    err(comm);
    request.wait();
  } else if (what == "vector") {
    std::vector<isthmus::Request> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(comm.irecv(halo, other, i));
    for (int i = 0; i < 5; ++i) requests.push_back(comm.isend(big, other, 10 + i));
    err(comm);
    isthmus::wait_all(requests);
  } else if (what == "recv_init") {
    auto request = comm.recv_init(halo, other);
    const auto never_started = comm.recv_init(halo, other);
    request.start();
    err(comm);
    request.wait();
  } else if (what == "ibarrier") {
    auto request = comm.ibarrier();
    err(comm);
    request.wait();
  } else if (what == "iallreduce" || what == "iallreduce of few") {
    if (what != "iallreduce") big.resize(8);
    std::vector<double> sum(big.size());
    auto request = comm.iallreduce(big, sum, isthmus::op::sum);
    err(comm);
    request.wait();
  } else if (what == "calls") {
    std::vector<double> gathered(2 * big.size());
    std::vector<double> exchanged(big.size());
    std::vector<isthmus::Request> requests;
    requests.push_back(comm.ibcast(halo, 1));
    requests.push_back(comm.iallgather(big, gathered));
    requests.push_back(comm.ialltoall(big, exchanged));
    err(comm);
    isthmus::wait_all(requests);
  } else if (what == "send_init") {
    auto request = comm.send_init(big, other);
    request.start();
    err(comm);
    request.wait();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  run(argv[1], std::string_view{argv[2]} == "alone");
  std::puts("no error");
} catch (const isthmus::Error& error) {
  std::printf("told: %s\n", error.what());
  return 1;
}
