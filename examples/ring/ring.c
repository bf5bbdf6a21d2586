/* A number goes round a ring of PEs: each adds one to it and puts it to the next, with a signal. Nobody receives.
 * Run: isthmus run -n 4 build/bin/ring */
#include <isthmus/heap.h>
#include <stdio.h>

static int check(int code) {
  if (code != IST_OK) fprintf(stderr, "%s: %s\n", ist_code_name(code), ist_error_text());
  return code != IST_OK;
}

int main(void) {
  enum { rounds = 1000 };
  ist_world world;
  ist_comm comm;
  ist_heap heap;
  void* memory;
  int pe, pes;
  if (check(ist_world_create(&world)) || check(ist_world_comm(world, &comm))) return 1;
  if (check(ist_heap_create(comm, IST_KIND_HOST, IST_OWN_DEVICE, 1 << 20, 0, &heap))) return 1;
  if (check(ist_heap_pe(heap, &pe)) || check(ist_heap_pes(heap, &pes))) return 1;
  if (check(ist_heap_calloc(heap, 2, sizeof(uint64_t), &memory))) return 1;
  uint64_t* number = memory;     /* the caller's copy; every PE has one */
  uint64_t* signal = number + 1; /* how many rounds it has come */
  for (int64_t round = 1; round <= rounds; ++round) {
    if (pe != 0 && check(ist_heap_wait_until(heap, signal, IST_UINT64, IST_COMPARE_GE, round))) return 1;
    const uint64_t next = *number + 1;
    if (check(ist_heap_put_signal(heap, number, ist_host(&next), sizeof next, signal, 1, IST_SIGNAL_ADD, (pe + 1) % pes)))
      return 1;
    if (pe == 0 && check(ist_heap_wait_until(heap, signal, IST_UINT64, IST_COMPARE_GE, round))) return 1;
  }
  if (check(ist_heap_barrier(heap))) return 1;
  if (pe == 0) printf("%llu, after %d rounds of %d PEs\n", (unsigned long long)*number, (int)rounds, pes);
  const int wrong = pe == 0 && *number != (uint64_t)rounds * (uint64_t)pes;
  if (check(ist_heap_destroy(&heap)) || check(ist_world_destroy(&world))) return 1;
  return wrong;
}
