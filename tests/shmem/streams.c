/* Puts, gets, signals and barriers in the order of a CUDA stream, of memory of devices and of the host, with nobody waiting in between; and
 * the views that kernels take. */
#include <dlfcn.h>
#include <isthmus/team.h>

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

static void signals(unsigned char* device, unsigned char* own, int shared) {
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
    if (driver("fake_cuda_calls") != NULL && !shared) /* else short copies go in rows */
      CHECK(counted("cuMemcpyAsync") == copies + 1 && counted("cuStreamWriteValue64_v2") == stores + 1);
    CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, value) == value);
    shmem_getmem(own, device + 64, 1000, me);
    CHECK(filled(own, 1000, value + (uint64_t)left));
  }
  shmem_barrier_all();
}

/* Bytes of the host go right and are there behind a barrier, made by the processor or without it. (Memory that is not page-locked the driver
 * copies at once or later, so that the stream's next copy is not behind it.) */
static void meet(unsigned char* host, void* stream, int by_host) {
  for (int round = 1; round <= 5; ++round) {
    const unsigned char own = (unsigned char)(10 * round + me);
    const uint64_t calls = counted("cuLaunchHostFunc");
    shmemx_putmem_on_stream(host, &own, 1, right, stream);
    shmemx_barrier_all_on_stream(stream);
    CHECK(driver("cuStreamSynchronize")(stream, 0) == 0);
    CHECK(*(volatile unsigned char*)host == (unsigned char)(10 * round + left));
    shmemx_barrier_all_on_stream(stream);
    CHECK(driver("cuStreamSynchronize")(stream, 0) == 0);
    if (driver("fake_cuda_calls") != NULL) CHECK(counted("cuLaunchHostFunc") == calls + (by_host ? 2 : 0));
  }
}

/* What the stream does behind a signal finds the bytes that were put before it; of a value that is added, too. */
static void signals_in_stream(unsigned char* device, unsigned char* host, unsigned char* own, void* stream) {
  uint64_t* const words = (uint64_t*)shmemx_calloc_on(SHMEMX_KIND_CUDA, 2, sizeof(uint64_t));
  CHECK(words != NULL);
  if (words == NULL) return;
  for (uint64_t round = 1; round <= 6; ++round) {
    const int adds = round % 2 == 0, into_host = round % 3 == 0;
    unsigned char* const dest = into_host ? host : device;
    fill(own, 1000, 50 * round + (uint64_t)me);
    memset(own + 1000, 0, 1000);
    shmem_barrier_all();
    shmemx_putmem_signal_on_stream(dest, own, 1000, words + adds, adds ? 1 : round,
                                   adds ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, right, stream);
    shmemx_quiet_on_stream(stream);
    shmemx_signal_wait_until_on_stream(words + adds, SHMEM_CMP_GE, adds ? round / 2 : round, stream);
    if (!into_host) shmemx_getmem_on_stream(own + 1000, dest, 1000, me, stream);
    CHECK(driver("cuStreamSynchronize")(stream, 0) == 0);
    CHECK(filled(into_host ? host : own + 1000, 1000, 50 * round + (uint64_t)left));
  }
  shmem_barrier_all();
  CHECK(shmem_signal_fetch(words) == 5 && shmem_signal_fetch(words + 1) == 3);
  shmem_barrier_all();
  shmemx_putmem_signal_on_stream(NULL, NULL, 0, words, 9, SHMEM_SIGNAL_SET, right, stream); /* a signal alone */
  CHECK(shmem_signal_wait_until(words, SHMEM_CMP_EQ, 9) == 9);
  handled = 0;
  shmemx_set_error_handler(handler);
  shmemx_putmem_signal_on_stream(device, own, 8, words, 1, 7, right, stream); /* no such operation */
  shmemx_putmem_signal_on_stream(device, own, 8, (uint64_t*)host, 1, SHMEM_SIGNAL_SET, right,
                                 stream); /* not in CUDA memory */
  shmemx_putmem_signal_on_stream(own, own, 8, words, 1, SHMEM_SIGNAL_SET, right, stream);
  shmemx_signal_wait_until_on_stream(words, 6, 1, stream);
  shmemx_signal_wait_until_on_stream((uint64_t*)host, SHMEM_CMP_EQ, 1, stream);
  shmemx_set_error_handler(NULL);
  CHECK(handled == 5 && shmem_signal_fetch(words) == 9);
  shmem_barrier_all();
  shmem_free(words);
}

/* Of the own device, whichever is current: a copy behind a wait takes what is there when that is over, and nothing is in the other device's. */
static void default_streams(unsigned char* device, unsigned char* own, void* other) {
  uint64_t* const word = (uint64_t*)shmemx_calloc_on(SHMEMX_KIND_CUDA, 1, sizeof(uint64_t));
  CHECK(word != NULL);
  /* Before a stream is held: what is used for the first time may wait for all of the device. */
  shmemx_quiet_on_stream(NULL);
  shmem_signal_set(word, 0, me);
  for (uintptr_t stream = 0; stream <= 2; ++stream) { /* 0, cudaStreamLegacy, cudaStreamPerThread */
    void* const handle = (void*)stream;
    void* popped = NULL;
    const uint64_t value = stream + 1;
    fill(own, 1000, 90 + (uint64_t)me);
    shmem_putmem(device, own, 1000, me);
    CHECK(driver("cuCtxPushCurrent_v2")(other, 0) == 0);
    shmemx_signal_wait_until_on_stream(word, SHMEM_CMP_GE, value, handle);
    shmemx_getmem_on_stream(device + BYTES, device, 1000, me, handle);
    shmemx_quiet_on_stream(handle);
    CHECK(driver("cuStreamSynchronize")(handle, 0) == 0);
    CHECK(driver("cuCtxPopCurrent_v2")(&popped, 0) == 0 && popped == other);
    fill(own, 1000, 10 * value + (uint64_t)me);
    shmem_putmem(device, own, 1000, me);
    shmem_signal_set(word, value, me);
    CHECK(driver("cuStreamSynchronize")(handle, 0) == 0);
    shmem_getmem(own, device + BYTES, 1000, me);
    CHECK(filled(own, 1000, 10 * value + (uint64_t)me));
  }
  shmem_barrier_all();
  shmem_free(word);
}

static unsigned char* part_at(const ist_team_view* view, int pe, const void* own) {
  return (unsigned char*)((uintptr_t)own + (uint64_t)(int64_t)(pe - view->pe) * view->stride);
}
/* By value what kernels take: of all PEs, and of a team's, also one that counts backwards. */
static void views(unsigned char* device, unsigned char* host) {
  ist_team_view all, mine;
  ist_device_view kernels;
  CHECK(shmemx_view(SHMEMX_KIND_CUDA, &all) == 0 && all.pe == me && all.pes == pes && all.abort_word != NULL);
  CHECK(all.base + (uint64_t)me * all.stride < device && device < all.base + (uint64_t)me * all.stride + all.bytes);
  for (int pe = 0; pe < pes; ++pe) CHECK((void*)part_at(&all, pe, device) == shmemx_ptr(device, pe));
  CHECK(shmemx_device_view(SHMEMX_KIND_CUDA, &kernels) == 0 && kernels.team.base == all.base && kernels.ring == NULL);
  if (getenv("SHMEM_SYMMETRIC_SIZE") != NULL) /* all of which is page-locked */
    CHECK_OF(shmemx_device_view(SHMEMX_KIND_HOST, &kernels) == 0 && kernels.team.pe == me && kernels.ring != NULL,
             shmemx_error_text());
  CHECK(shmemx_view(SHMEMX_KIND_HOST, &mine) == 0 && (void*)part_at(&mine, right, host) == shmem_ptr(host, right));
  CHECK(shmemx_team_view(SHMEM_TEAM_WORLD, SHMEMX_KIND_CUDA, NULL, &mine) == 0 && memcmp(&mine, &all, sizeof all) == 0);
  CHECK(shmemx_view(SHMEMX_KIND_OPENCL, &mine) == -1 && strstr(shmemx_error_text(), "shmemx_malloc_on") != NULL);
  CHECK(shmemx_view(SHMEMX_KIND_CUDA, NULL) == -1 && shmemx_device_view(SHMEMX_KIND_CUDA, NULL) == -1);
  shmem_team_t team = SHMEM_TEAM_INVALID;
  const int members = (pes + 1) / 2;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 2 * (members - 1), -2, members, NULL, 0, &team) == 0);
  void* const area = shmemx_calloc_on(SHMEMX_KIND_CUDA, 1, SHMEMX_TEAM_SYNC_BYTES(members));
  CHECK(area != NULL);
  if (team == SHMEM_TEAM_INVALID) {
    CHECK(shmemx_team_view(team, SHMEMX_KIND_CUDA, area, &mine) == -1);
  } else {
    CHECK(shmemx_team_view(team, SHMEMX_KIND_CUDA, area, &mine) == 0);
    CHECK(mine.pe == shmem_team_my_pe(team) && mine.pes == members && mine.sync_bytes == IST_TEAM_SYNC_BYTES(members));
    for (int pe = 0; pe < members; ++pe) {
      const int in_world = shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
      unsigned char* const part = mine.base + (uint64_t)pe * mine.stride;
      CHECK((void*)part_at(&mine, pe, device) == shmemx_ptr(device, in_world));
      CHECK(part + mine.sync >= (unsigned char*)shmemx_ptr(area, in_world) && mine.sync % 128 == 0);
      CHECK(part + mine.sync + mine.sync_bytes <=
            (unsigned char*)shmemx_ptr(area, in_world) + SHMEMX_TEAM_SYNC_BYTES(members));
    }
    CHECK(shmemx_team_view(team, SHMEMX_KIND_CUDA, NULL, &mine) == -1 &&
          strstr(shmemx_error_text(), "sync is null") != NULL);
    CHECK(shmemx_team_view(team, SHMEMX_KIND_HOST, area, &mine) == -1 &&
          strstr(shmemx_error_text(), "not in the heap") != NULL);
  }
  shmem_barrier_all();
  shmem_free(area);
  shmem_team_destroy(team);
}

static void copies(unsigned char* device, unsigned char* host, unsigned char* own, void* stream) {
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
}

/* Where no atomic operation crosses a link: a team's view would not tell, and a view for kernels does; to meet needs none. */
static void without_atomics(unsigned char* host, void* stream) {
  ist_team_view team;
  ist_device_view kernels;
  meet(host, stream, 0);
  CHECK(shmemx_view(SHMEMX_KIND_CUDA, &team) == -1 && strstr(shmemx_error_text(), "atomic operations") != NULL);
  CHECK(shmemx_device_view(SHMEMX_KIND_CUDA, &kernels) == 0 && kernels.desk != NULL && kernels.team.pe == me);
  shmem_barrier_all();
}

int main(void) {
  shmem_init();
  find_pes();
  unsigned char* const host = (unsigned char*)memory(BYTES);
  void *context = NULL, *stream = NULL;
  int devices = 0, own_device = 0;
  if (driver("cuInit") == NULL || driver("cuInit")(NULL, 0) != 0 || driver("cuDeviceGetCount")(&devices, 0) != 0 ||
      devices == 0) {
    ist_team_view view;
    CHECK(shmemx_view(SHMEMX_KIND_CUDA, &view) == -1 && shmemx_malloc_on(SHMEMX_KIND_CUDA, 1) == NULL);
    if (me == 0) printf("left out, no memory of a device: %s\n", shmemx_error_text());
    CHECK(getenv("SHMEM_TEST_DEVICES") == NULL);
    return done();
  }
  own_device = me % devices;
  CHECK(driver("cuDevicePrimaryCtxRetain")(&context, (uintptr_t)own_device) == 0 &&
        driver("cuCtxPushCurrent_v2")(context, 0) == 0);
  CHECK(driver("cuStreamCreate")(&stream, 1) == 0);
  meet(host, stream, 1); /* there is no heap of CUDA memory yet */
  unsigned char* const device = (unsigned char*)shmemx_malloc_on(SHMEMX_KIND_CUDA, 2 * BYTES);
  CHECK(device != NULL);
  if (device == NULL) return done();
  if (getenv("FAKE_CUDA_ATOMICS") != NULL) {
    without_atomics(host, stream);
    return done();
  }
  const int shared = devices < pes;
  meet(host, stream, shared || getenv("FAKE_CUDA_LINKS") != NULL);
  if (getenv("FAKE_CUDA_LINKS") != NULL) return done(); /* where no stream gets to other parts */
  unsigned char* const own = (unsigned char*)malloc(BYTES);
  copies(device, host, own, stream);
  signals(device, own, shared);
  signals_in_stream(device, host, own, stream); /* where PEs have one device, by the turns of their processes */
  if (!shared && devices > 1) {
    void* other = NULL;
    CHECK(driver("cuDevicePrimaryCtxRetain")(&other, (uintptr_t)((own_device + 1) % devices)) == 0);
    default_streams(device, own, other);
  } else if (me == 0) {
    printf("left out, default streams beside another device's: %d of them for %d PEs\n", devices, pes);
  }
  views(device, host);
  handled = 0;
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
