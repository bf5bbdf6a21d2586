// A rank of a job on two hosts: talks to those of its own host, and is told by name why it cannot talk to the others.
//
//   two_hosts_rank OWN_HOST OTHER_HOST
#include <isthmus/collective.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("failed: %s (%s)\n", what.c_str(), ist_error_text());
}

std::vector<unsigned char> bytes_of(int rank, std::size_t length) {
  std::mt19937_64 engine{static_cast<unsigned>(rank) * 1000 + length};
  std::vector<unsigned char> bytes(length);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(engine());
  return bytes;
}

bool names_both(int code, const std::string& own, const std::string& other) {
  const std::string text = ist_error_text();
  return code == IST_ERR_UNREACHABLE && text.find(" on " + own + ")") != std::string::npos &&
         text.find(" on " + other + ")") != std::string::npos;
}

int through(int rank, const std::string& own) {
  if (failures == 0) std::printf("rank %d on %s is through\n", rank, own.c_str());
  return failures == 0 ? 0 : 1;
}

// Those of the host's own ranks are as anywhere; of one that reaches further every rank is told so, also those that reach all of the
// ranks that they would talk to.
void communicators(ist_comm comm, int rank, const std::string& own, const std::string& other) {
  ist_comm local = IST_COMM_NULL, pair = IST_COMM_NULL, none = IST_COMM_NULL;
  int place = -1, size = -1;
  expect(ist_comm_split_local(comm, -rank, &local) == IST_OK, "split_local");
  expect(ist_comm_rank(local, &place) == IST_OK && place == 1 - rank % 2, "ranks of one host by key");
  expect(ist_comm_size(local, &size) == IST_OK && size == 2, "two of one host");
  int sum = 0;
  expect(ist_allreduce(ist_host(&rank), ist_host(&sum), 1, IST_INT32, IST_SUM, local) == IST_OK, "allreduce on one host");
  expect(sum == rank + (rank ^ 1), "what one host's ranks sum up to");
  const int both[] = {rank & 2, rank | 1};
  expect(ist_comm_create_group(comm, 2, both, 7, &pair) == IST_OK && ist_barrier(pair) == IST_OK, "a group of one host");
  const int all[] = {0, 1, 2, 3};
  expect(names_both(ist_comm_create_group(comm, 4, all, 8, &none), own, other), "a group of all");
  expect(names_both(ist_comm_dup(comm, &none), own, other), "a duplicate of all");
  expect(names_both(ist_comm_split(comm, rank / 2, 0, &none), own, other), "a split that all would have to agree on");
  expect(none == IST_COMM_NULL, "no communicator of two hosts");
  expect(names_both(ist_barrier(comm), own, other), "a barrier of all");
  expect(names_both(ist_allreduce(ist_host(&rank), ist_host(&sum), 1, IST_INT32, IST_SUM, comm), own, other),
         "an allreduce of all");
  expect(ist_barrier(local) == IST_OK, "a barrier of one host after that");
  for (ist_comm* const each : {&local, &pair}) expect(ist_comm_free(each) == IST_OK, "ist_comm_free");
}

// Nobody is on this host but this rank: what it asks of anybody never comes.
int alone(ist_world world, ist_comm comm, const std::string& own, const std::string& other) {
  int rank = -1;
  expect(ist_comm_rank(comm, &rank) == IST_OK, "ist_comm_rank");
  unsigned char byte = 1;
  ist_status status{};
  ist_request request = IST_REQUEST_NULL;
  const auto refused = [&](int code, const char* what) { expect(names_both(code, own, other), what); };
  refused(ist_recv(ist_host(&byte), 1, IST_BYTE, IST_ANY_SOURCE, 1, comm, &status), "receive from anybody");
  refused(ist_irecv(ist_host(&byte), 1, IST_BYTE, IST_ANY_SOURCE, 1, comm, &request), "irecv from anybody");
  refused(ist_probe(IST_ANY_SOURCE, 1, comm, &status), "probe of anybody");
  expect(ist_world_destroy(&world) == IST_OK, "ist_world_destroy");
  return through(rank, own);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 8;
  const std::string own = argv[1];
  const std::string other = argv[2];
  ist_world world = IST_WORLD_NULL;
  if (ist_world_create(&world) != IST_OK) {
    std::printf("no world: %s\n", ist_error_text());
    return 5;
  }
  ist_comm comm = IST_COMM_NULL;
  int rank = -1, size = -1, local_rank = -1, local_size = -1;
  expect(ist_world_comm(world, &comm) == IST_OK, "ist_world_comm");
  if (ist_comm_size(comm, &size) == IST_OK && size == 2) return alone(world, comm, own, other);
  expect(ist_comm_rank(comm, &rank) == IST_OK && ist_comm_size(comm, &size) == IST_OK && size == 4, "four ranks");
  expect(ist_comm_local_rank(comm, &local_rank) == IST_OK && local_rank == rank % 2, "local rank");
  expect(ist_comm_local_size(comm, &local_size) == IST_OK && local_size == 2, "two ranks a host");

  const int neighbour = rank ^ 1;
  const int far = rank ^ 2;
  for (const std::size_t length : {0UL, 1UL, 8192UL, 100001UL}) {
    const auto mine = bytes_of(rank, length);
    std::vector<unsigned char> got(length, 0xee);
    expect(ist_sendrecv(ist_host(mine.data()), static_cast<int64_t>(length), IST_BYTE, neighbour, 1, ist_host(got.data()),
                        static_cast<int64_t>(length), IST_BYTE, neighbour, 1, comm, IST_STATUS_IGNORE) == IST_OK,
           "sendrecv on the host");
    expect(got == bytes_of(neighbour, length), "bytes from the neighbour");
  }
  unsigned char byte = 1;
  ist_request request = IST_REQUEST_NULL;
  expect(names_both(ist_send(ist_host(&byte), 1, IST_BYTE, far, 1, comm), own, other), "send to the other host");
  expect(names_both(ist_recv(ist_host(&byte), 1, IST_BYTE, far, 1, comm, IST_STATUS_IGNORE), own, other),
         "receive from the other host");
  expect(names_both(ist_isend(ist_host(&byte), 1, IST_BYTE, far, 1, comm, &request), own, other), "isend to the other host");
  expect(request == IST_REQUEST_NULL, "no request");
  expect(names_both(ist_send(ist_host(&byte), 0, IST_BYTE, far, 1, comm), own, other), "send of nothing to the other host");
  communicators(comm, rank, own, other);
  // The refused calls have disturbed nothing.
  expect(ist_sendrecv(ist_host(&rank), 1, IST_INT, neighbour, 2, ist_host(&local_rank), 1, IST_INT, neighbour, 2, comm,
                      IST_STATUS_IGNORE) == IST_OK &&
             local_rank == neighbour,
         "sendrecv after the refusals");
  expect(ist_world_destroy(&world) == IST_OK, "ist_world_destroy");
  return through(rank, own);
}
