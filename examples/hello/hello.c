/* Two ranks exchange memory of the best kind the machine has. Run: isthmus run -n 2 hello_c */
#include <isthmus/isthmus.h>
#include <stdio.h>

#define TRY(call) \
  if ((call) != IST_OK) return fprintf(stderr, "%s\n", ist_error_text()), 1
enum { COUNT = 1 << 20, BYTES = COUNT * sizeof(int) };
static int numbers[COUNT];

int main(void) {
  ist_world world;
  ist_comm comm;
  ist_buffer out, in;
  ist_status status;
  ist_kind kind = IST_KIND_OPENCL;
  int rank, size, local, devices = 0;
  TRY(ist_world_create(&world));
  TRY(ist_world_comm(world, &comm));
  TRY(ist_comm_rank(comm, &rank));
  TRY(ist_comm_size(comm, &size));
  TRY(ist_comm_local_rank(comm, &local));
  if (ist_kind_devices(world, IST_KIND_CUDA, &devices) == IST_OK && devices > 0) kind = IST_KIND_CUDA;
  if (ist_kind_devices(world, kind, &devices) != IST_OK || devices == 0) kind = IST_KIND_HOST, devices = 1;
  TRY(ist_memory_alloc(world, kind, local % devices, BYTES, &out));
  TRY(ist_memory_alloc(world, kind, local % devices, BYTES, &in));

  for (int i = 0; i < COUNT; ++i) numbers[i] = rank + 100;
  TRY(ist_memory_copy(world, out, ist_host(numbers), BYTES));
  TRY(ist_sendrecv(out, COUNT, IST_INT, (rank + 1) % size, 7, in, COUNT, IST_INT, IST_ANY_SOURCE, 7, comm, &status));
  TRY(ist_memory_copy(world, ist_host(numbers), in, BYTES));
  printf("rank %d: %d numbers from rank %d, all %d\n", rank, COUNT, status.source, numbers[COUNT - 1]);
  TRY(ist_memory_free(world, out));
  TRY(ist_memory_free(world, in));
  TRY(ist_world_destroy(&world));
  return 0;
}
