// A rank of a job on two hosts: talks to those of its own host, and is told by name why it cannot talk to the others.
//
//   two_hosts_rank OWN_HOST OTHER_HOST
#include <isthmus/isthmus.h>

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
  // The refused calls have disturbed nothing.
  expect(ist_sendrecv(ist_host(&rank), 1, IST_INT, neighbour, 2, ist_host(&local_rank), 1, IST_INT, neighbour, 2, comm,
                      IST_STATUS_IGNORE) == IST_OK &&
             local_rank == neighbour,
         "sendrecv after the refusals");
  expect(ist_world_destroy(&world) == IST_OK, "ist_world_destroy");
  if (failures == 0) std::printf("rank %d on %s is through\n", rank, own.c_str());
  return failures == 0 ? 0 : 1;
}
