/* Every rank passes numbers to the next, in memory of the best kind the machine has. Run: isthmus run -n 2 hello_c */
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
  int rank, size, cuda, opencl, right = 0;
  TRY(ist_world_create(&world));
  TRY(ist_world_comm(world, &comm));
  TRY(ist_comm_rank(comm, &rank));
  TRY(ist_comm_size(comm, &size));
  TRY(ist_kind_devices(world, IST_KIND_CUDA, &cuda));
  TRY(ist_kind_devices(world, IST_KIND_OPENCL, &opencl));
  const ist_kind kind = cuda > 0 ? IST_KIND_CUDA : opencl > 0 ? IST_KIND_OPENCL : IST_KIND_HOST;
  TRY(ist_memory_alloc(world, kind, IST_OWN_DEVICE, BYTES, &out));
  TRY(ist_memory_alloc(world, kind, IST_OWN_DEVICE, BYTES, &in));

  for (int i = 0; i < COUNT; ++i) numbers[i] = rank + 100;
  TRY(ist_memory_copy(world, out, ist_host(numbers), BYTES));
  TRY(ist_sendrecv(out, COUNT, IST_INT, (rank + 1) % size, 7, in, COUNT, IST_INT, IST_ANY_SOURCE, 7, comm, &status));
  TRY(ist_memory_copy(world, ist_host(numbers), in, BYTES));

  for (int i = 0; i < COUNT; ++i) right += numbers[i] == status.source + 100;
  printf("rank %d: %d of %d numbers from rank %d are right\n", rank, right, COUNT, status.source);
  TRY(ist_memory_free(world, out));
  TRY(ist_memory_free(world, in));
  TRY(ist_world_destroy(&world));
  return 0;
}
