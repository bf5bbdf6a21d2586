/* Page-locked and CUDA memory for mpi_bench.c, by the driver loaded at run time: no CUDA compiler or header is needed. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long device_pointer;

static struct {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*device)(int*, int);
  int (*retain)(void**, int);
  int (*current)(void*);
  int (*alloc)(device_pointer*, size_t);
  int (*host_alloc)(void**, size_t, unsigned);
  int (*copy)(device_pointer, device_pointer, size_t);
} driver;

static void must_work(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "mpi_bench: %s: CUDA error %d\n", what, result);
  exit(1);
}

static void* find_call(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found) return found;
  fprintf(stderr, "mpi_bench: the CUDA driver has no %s\n", name);
  exit(1);
}

/* GPU `number`, or the last one where there are fewer, is the current one from here on. Before MPI_Init, as UCX wants it. */
static void use_gpu(int number) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* context = NULL;
  int device = 0, count = 0;
  if (!library) {
    fprintf(stderr, "mpi_bench: %s\n", dlerror());
    exit(1);
  }
  *(void**)&driver.init = find_call(library, "cuInit");
  *(void**)&driver.count = find_call(library, "cuDeviceGetCount");
  *(void**)&driver.device = find_call(library, "cuDeviceGet");
  *(void**)&driver.retain = find_call(library, "cuDevicePrimaryCtxRetain");
  *(void**)&driver.current = find_call(library, "cuCtxSetCurrent");
  *(void**)&driver.alloc = find_call(library, "cuMemAlloc_v2");
  *(void**)&driver.host_alloc = find_call(library, "cuMemHostAlloc");
  *(void**)&driver.copy = find_call(library, "cuMemcpy");
  must_work(driver.init(0), "cuInit");
  must_work(driver.count(&count), "cuDeviceGetCount");
  must_work(driver.device(&device, number < count ? number : count - 1), "cuDeviceGet");
  must_work(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
  must_work(driver.current(context), "cuCtxSetCurrent");
}

/* `bytes` of memory of that kind (host, pinned or cuda), each byte `value`. */
static char* take_memory(const char* kind, size_t bytes, int value) {
  void* host = NULL;
  device_pointer device = 0;
  if (strcmp(kind, "pinned") == 0)
    must_work(driver.host_alloc(&host, bytes, 1), "cuMemHostAlloc");
  else
    host = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!host) return NULL;
  memset(host, value, bytes);
  if (strcmp(kind, "cuda") != 0) return host;
  must_work(driver.alloc(&device, bytes), "cuMemAlloc");
  must_work(driver.copy(device, (device_pointer)(size_t)host, bytes), "cuMemcpy");
  free(host);
  return (char*)(size_t)device;
}

/* How many of the first `bytes` are not `value`. */
__attribute__((unused)) static size_t wrong_bytes(const char* kind, const char* memory, size_t bytes, int value) {
  size_t wrong = 0;
  char* seen = malloc(bytes);
  if (!seen) return bytes;
  if (strcmp(kind, "cuda") == 0)
    must_work(driver.copy((device_pointer)(size_t)seen, (device_pointer)(size_t)memory, bytes), "cuMemcpy");
  else
    memcpy(seen, memory, bytes);
  for (size_t n = 0; n < bytes; ++n) wrong += seen[n] != (char)value;
  free(seen);
  return wrong;
}
