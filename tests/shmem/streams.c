/* Puts, gets and barriers in the order of a CUDA stream, of memory of devices and of the host, with nobody waiting in between. */
#include <dlfcn.h>

#include "check.h"

enum { BYTES = 100003, ROUNDS = 20 };

typedef int (*driver_call)(void*, uintptr_t);
static driver_call driver(const char* name) {
  static void* library;
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
  union {
    void* address;
    driver_call call;
  } found;
  found.address = library == NULL ? NULL : dlsym(library, name);
  return found.call;
}

static int handled;
static void handler(const char* call, int pe, const char* cause) {
  handled += strncmp(call, "shmemx_", 7) == 0 && pe == me && strlen(cause) > 10;
}

/* Where the driver counts its calls: bytes are copied once, and their stream stores the word behind them. */
static uint64_t counted(const char* call) {
  union {
    driver_call found;
    uint64_t (*count)(const char*);
  } as;
  as.found = driver("fake_cuda_calls");
  return as.found == NULL ? 0 : as.count(call);
}

static void signals(unsigned char* device, unsigned char* own) {
  uint64_t* const word = (uint64_t*)device;
  const uint64_t none = 0;
  shmem_putmem(word, &none, sizeof none, me);
  for (uint64_t value = 1; value <= 4; ++value) {
    fill(own, 1000, value + (uint64_t)me);
    shmem_barrier_all();
    const uint64_t copies = counted("cuMemcpyAsync"), stores = counted("cuStreamWriteValue64_v2");
    if (value % 2 == 0)
      shmem_putmem_signal(device + 64, own, 1000, word, value, SHMEM_SIGNAL_SET, right);
    else
      shmem_putmem_signal_nbi(device + 64, own, 1000, word, value, SHMEM_SIGNAL_SET, right);
    if (driver("fake_cuda_calls") != NULL)
      CHECK(counted("cuMemcpyAsync") == copies + 1 && counted("cuStreamWriteValue64_v2") == stores + 1);
    CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, value) == value);
    shmem_getmem(own, device + 64, 1000, me);
    CHECK(filled(own, 1000, value + (uint64_t)left));
  }
  shmem_barrier_all();
}

int main(void) {
  shmem_init();
  find_pes();
  unsigned char* const device = (unsigned char*)shmemx_malloc_on(SHMEMX_KIND_CUDA, 2 * BYTES);
  if (device == NULL) {
    if (me == 0) printf("left out, no memory of a device: %s\n", shmemx_error_text());
    return done();
  }
  unsigned char* const host = (unsigned char*)memory(BYTES);
  unsigned char* const own = (unsigned char*)malloc(BYTES);
  void *context = NULL, *stream = NULL;
  CHECK(driver("cuDevicePrimaryCtxRetain")(&context, (uintptr_t)(me % 3)) == 0 &&
        driver("cuCtxPushCurrent_v2")(context, 0) == 0);
  CHECK(driver("cuStreamCreate")(&stream, 1) == 0);
  for (int round = 0; round < ROUNDS; ++round) {
    fill(own, BYTES, 1000 * (uint64_t)round + (uint64_t)me);
    memset(host, 0xee, BYTES);
    shmem_barrier_all();
    shmemx_putmem_on_stream(device, own, BYTES, right, stream); /* the host's, to a device */
    shmemx_barrier_all_on_stream(stream);
    shmemx_getmem_on_stream(device + BYTES, device, BYTES, right, stream); /* from a device to a device */
    shmemx_barrier_all_on_stream(stream);
    shmemx_putmem_on_stream(host, device + BYTES, BYTES, right, stream); /* from a device to another PE's heap of the host */
    shmemx_barrier_all_on_stream(stream);
    CHECK(driver("cuStreamSynchronize")(stream, 0) == 0);
    CHECK(filled(host, BYTES, 1000 * (uint64_t)round + (uint64_t)left));
    shmem_getmem(own, device, BYTES, me);
    CHECK(filled(own, BYTES, 1000 * (uint64_t)round + (uint64_t)left));
  }
  signals(device, own);
  shmemx_set_error_handler(handler);
  shmemx_putmem_on_stream(device, own, 1, pes, stream);
  shmemx_putmem_on_stream(own, own, 1, right, stream);
  shmemx_getmem_on_stream(own, own, 0, -1, stream);
  shmemx_set_error_handler(NULL);
  CHECK(handled == 3);
  CHECK(driver("cuStreamDestroy_v2")(stream, 0) == 0);
  free(own);
  return done();
}
