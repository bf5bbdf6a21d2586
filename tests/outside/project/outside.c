/* Every rank sends to itself; every byte is compared, an error has a text, and all add to one sum. */
#include <isthmus/collective.h>
#include <isthmus/isthmus.h>
#include <stdio.h>
#include <string.h>

static int check(int code, const char* what) {
  if (code != IST_OK) fprintf(stderr, "%s: %s: %s\n", what, ist_code_name(code), ist_error_text());
  return code != IST_OK;
}

int main(void) {
  enum { kCount = 100003 };
  static unsigned char out[kCount], in[kCount];
  for (int i = 0; i < kCount; ++i) out[i] = (unsigned char)(i * 31 + 7);
  memset(in, 0xEE, sizeof in);

  ist_world world = IST_WORLD_NULL;
  ist_comm comm = IST_COMM_NULL;
  ist_request request = IST_REQUEST_NULL;
  ist_status status;
  int rank = -1;
  if (check(ist_world_create(&world), "ist_world_create") || check(ist_world_comm(world, &comm), "ist_world_comm")) return 1;
  if (check(ist_comm_rank(comm, &rank), "ist_comm_rank")) return 1;
  if (check(ist_irecv(ist_host(in), kCount, IST_BYTE, rank, 5, comm, &request), "ist_irecv")) return 1;
  if (check(ist_send(ist_host(out), kCount, IST_BYTE, rank, 5, comm), "ist_send")) return 1;
  if (check(ist_wait(&request, &status), "ist_wait")) return 1;
  if (memcmp(in, out, kCount) != 0 || status.bytes != kCount || status.tag != 5) {
    fprintf(stderr, "%lld bytes came with tag %d, and they differ\n", (long long)status.bytes, status.tag);
    return 1;
  }
  if (ist_send(ist_host(out), -1, IST_BYTE, rank, 5, comm) == IST_OK || strlen(ist_error_text()) == 0) return 1;
  int64_t sum = 1;
  int size = 0;
  if (check(ist_comm_size(comm, &size), "ist_comm_size")) return 1;
  if (check(ist_allreduce(IST_IN_PLACE, ist_host(&sum), 1, IST_INT64, IST_SUM, comm), "ist_allreduce")) return 1;
  if (sum != size) return fprintf(stderr, "the sum of %d ones is %lld\n", size, (long long)sum), 1;
  if (check(ist_world_destroy(&world), "ist_world_destroy")) return 1;
  printf("outside C program: Isthmus %s, %d bytes arrived\n", ist_version(), kCount);
  return 0;
}
