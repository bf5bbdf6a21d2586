/* Isthmus: what code of one PE, on the processor or in kernels, has to know of a team, or of a window, to reach the parts of all.
 *
 * Who calls this : heap.h and window.h give views; device.cuh and programs use them, copied by value, also as arguments of kernels.
 * Threads        : a view is a value and never changes; what it points at is used by any number of threads.
 * Ownership      : none. The parts, and the abort word, outlive every kernel that uses the view.
 * Errors         : none here. */
#ifndef ISTHMUS_TEAM_H
#define ISTHMUS_TEAM_H

#ifndef __CUDACC_RTC__
#include <stdint.h>
#else /* NVRTC has no such header */
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#endif

typedef struct ist_team_view {
  int32_t pe, pes;                     /* this PE and how many there are */
  unsigned char* base;                 /* address, in this process, host code or kernels, of PE 0's part */
  uint64_t stride;                     /* bytes from one PE's part to the next one's: part of p = base + p * stride */
  uint64_t bytes;                      /* bytes of each part that are there */
  uint64_t sync;                       /* offset in each part of the team's synchronisation area, zeroed when made */
  uint64_t sync_bytes;                 /* its length: IST_TEAM_SYNC_BYTES(pes) */
  const volatile uint32_t* abort_word; /* becomes other than 0 when a PE has died; readable from where the view is used */
} ist_team_view;
#define IST_TEAM_SYNC_BYTES(pes) (((pes) + 2) * 131072ull)

/* Of a window (isthmus/window.h), whose parts lie wherever their owners have them. Kernels take it as
 * `const __grid_constant__ ist_window_view`, so that its arrays are read where arguments are. */
#define IST_WINDOW_MOST_PES 64
typedef struct ist_window_view {
  int32_t pe, pes;                          /* this PE and how many there are */
  const volatile uint32_t* abort_word;      /* as above */
  uint64_t bytes[IST_WINDOW_MOST_PES];      /* that PE p has registered; 0 behind the last PE */
  unsigned char* base[IST_WINDOW_MOST_PES]; /* address, in this process, of PE p's first byte; null where it has none */
} ist_window_view;

/* The same for kernels on one device of this PE, of a heap in memory of any kind (ist_heap_device_view), with what they need to change words:
 * those of device memory they change themselves, those of host memory a thread of this process changes for them. */
typedef struct ist_device_view {
  ist_team_view
      team; /* addresses as kernels on that device use them; all calls of device.cuh take it but those that change words */
  int64_t shift;       /* from an address in this process's host code to the one that kernels use; 0 on most machines */
  unsigned char* ring; /* where kernels ask for changes (isthmus/device/proxy.cuh); null: they make them themselves */
  unsigned char*
      desk; /* memory of the device. With a ring: by which they agree on who asks next. Without: null, or a byte for each PE, other
                          than 0 where no atomic operation gets to its words, so that calls that change them are a misuse */
} ist_device_view;

#endif
