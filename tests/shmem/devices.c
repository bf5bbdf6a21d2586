/* Memory of devices beside that of the host: how it is allocated and freed, copies from each to each, order, what is refused, and
 * what is only of devices. Every call of every type is in the other programs here. Without a device it says so.
 * devices cuda | opencl [start]: with a heap from the start */
#include <isthmus/team.h>
#include <unistd.h>

#include "check.h"

enum { BYTES = 300001 };
static unsigned char local[BYTES], expected[BYTES];

static int reached, apart; /* kernels of every PE reach every part; none does */

static int handled;
static void handler(const char* call, int pe, const char* cause) {
  handled += strstr(cause, "device memory") != NULL && pe == me && strncmp(call, "shmem_", 6) == 0;
}
static int counted;
static void count_signals(const char* call, int pe, const char* cause) {
  counted += cause != NULL && pe == me && strcmp(call, "shmem_putmem_signal") == 0;
}

static void expected_to_fail(const char* call, int pe, const char* cause) {
  handled += cause != NULL && pe == me && strcmp(call, "shmemx_opencl_buffer") == 0;
}

/* What this PE has there, seen from the host. */
static int has(const void* device, size_t bytes, uint64_t seed) {
  memset(local, 0xdd, sizeof local);
  shmem_getmem(local, device, bytes, me);
  return filled(local, bytes, seed) && (bytes == sizeof local || local[bytes] == 0xdd);
}

static void allocated(int of) {
  unsigned char* const zero = (unsigned char*)shmemx_calloc_on(of, 5, 100);
  unsigned char* const page = (unsigned char*)shmemx_align_on(of, 65536, 1);
  CHECK(zero != NULL && page != NULL && (uintptr_t)page % 65536 == 0);
  memset(local, 0xdd, 500);
  if (zero != NULL) shmem_getmem(local, zero, 500, right);
  CHECK(all_are(local, 500, 0));
  CHECK(shmemx_align_on(of, 48, 1) == NULL && strstr(shmemx_error_text(), "power of two") != NULL);
  CHECK(shmemx_align_on(of, (size_t)1 << 40, 1) == NULL && strstr(shmemx_error_text(), "at most") != NULL);
  CHECK(shmemx_calloc_on(of, SIZE_MAX, 2) == NULL && strstr(shmemx_error_text(), "more than there are") != NULL);
  CHECK(shmemx_calloc_on(of, 0, 2) == NULL && shmemx_align_on(of, 64, 0) == NULL);
  CHECK(shmemx_malloc_on(of, SIZE_MAX) == NULL && shmemx_calloc_on(of, SIZE_MAX, 1) == NULL);
  CHECK(shmemx_align_on(of, 4096, SIZE_MAX - 100) == NULL);
  shmem_barrier_all();
  shmem_free(page);
  shmem_free(zero);
}

static void copies(unsigned char* device, unsigned char* host) {
  fill(expected, BYTES, 10 + (uint64_t)me);
  shmem_putmem(device, expected, BYTES, right); /* from memory of the host */
  shmem_barrier_all();
  CHECK(has(device, BYTES, 10 + (uint64_t)left));
  shmem_barrier_all();
  shmem_getmem(host, device, BYTES, right); /* from a device into the heap of the host */
  CHECK(filled(host, BYTES, 10 + (uint64_t)me));
  shmem_barrier_all();
  unsigned char* const other = (unsigned char*)shmemx_malloc_on(kind, BYTES);
  CHECK(other != NULL && shmem_ptr(other, right) == NULL);
  CHECK(!reached || shmemx_ptr(other, right) != NULL);
  CHECK(!apart || me == right || shmemx_ptr(other, right) == NULL);
  CHECK(shmem_addr_accessible(other, right));
  shmem_putmem_nbi(other, device, BYTES, right); /* from a device to a device */
  shmem_quiet();
  shmem_barrier_all();
  CHECK(has(other, BYTES, 10 + (uint64_t)((me + pes - 2) % pes)));
  memset(host, 0, BYTES);
  shmem_barrier_all();
  shmem_putmem(host, other, BYTES, right); /* from a device into another PE's heap of the host */
  shmem_barrier_all();
  CHECK(filled(host, BYTES, 10 + (uint64_t)((me + 2 * pes - 3) % pes)));
  shmem_getmem_nbi(host, device, BYTES, right);
  shmem_quiet();
  CHECK(filled(host, BYTES, 10 + (uint64_t)me));
  shmem_barrier_all();
  shmem_free(other);
  /* Words and strides. */
  long* const words = (long*)device;
  long values[4] = {1 + me, 2 + me, 3 + me, 4 + me};
  for (int i = 0; i < 8; ++i) shmem_long_p(words + i, -1, right);
  shmem_long_iput(words, values, 2, 1, 4, right);
  shmem_barrier_all();
  for (int i = 0; i < 8; ++i) CHECK(shmem_long_g(words + i, me) == (i % 2 == 0 ? i / 2 + 1 + left : -1));
  memset(values, 0, sizeof values);
  shmem_long_iget(values, words, 1, 2, 4, right);
  for (int i = 0; i < 4; ++i) CHECK(values[i] == i + 1 + me);
  shmem_barrier_all();
}

static void words(unsigned char* device, long* host) {
  uint64_t* const word = (uint64_t*)device;
  const uint64_t none = 0;
  shmem_putmem(word, &none, sizeof none, me);
  shmem_barrier_all();
  long value = 7 + me;
  shmem_long_put_signal((long*)device + 1, &value, 1, word, 3, SHMEM_SIGNAL_SET, right);
  CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, 3) == 3);
  CHECK(shmem_long_g((long*)device + 1, me) == 7 + left && shmem_signal_fetch(word) == 3);
  CHECK(shmem_ulong_test((unsigned long*)word, SHMEM_CMP_GE, 3) == 1);
  shmem_barrier_all();
  /* Nothing is put, from nowhere; so nobody hears that something was. */
  shmemx_set_error_handler(count_signals);
  for (int i = 0; i <= 1; ++i)
    shmem_putmem_signal(i == 0 ? (void*)(word + 1) : (void*)host, NULL, 8, word, 4, SHMEM_SIGNAL_SET, me);
  shmemx_set_error_handler(NULL);
  CHECK(counted == 2 && shmem_signal_fetch(word) == 3);
  *host = 0;
  shmem_barrier_all();
  shmem_long_atomic_inc(host, right); /* of the host's heap as ever */
  shmem_barrier_all();
  CHECK(*host == 1);
}

/* PEs of a context are those of its team, and order is kept: what was put before the word is there with it. */
static void order(unsigned char* device) {
  unsigned char *const there = device, *const here = device + 4096;
  uint64_t* const word = (uint64_t*)(device + 8192);
  shmem_team_t part = SHMEM_TEAM_INVALID; /* backwards, and without PE 0 where there are more than two */
  const int members = pes > 2 ? pes - 1 : pes;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, members, NULL, 0, &part) == 0);
  GIVE(uint64_t, word, 0);
  fill(expected, 100, 30 + (uint64_t)me);
  shmem_putmem(here, expected, 100, me);
  shmem_barrier_all();
  const int index = shmem_team_my_pe(part), n = shmem_team_n_pes(part);
  if (index >= 0) {
    shmem_ctx_t own;
    CHECK(shmem_team_create_ctx(part, SHMEM_CTX_PRIVATE, &own) == 0);
    const int next = (index + 1) % n;
    shmem_ctx_putmem(own, there, here, 100, next);
    shmem_ctx_fence(own);
    shmem_ctx_uint64_p(own, word, 1, next);
    shmem_ctx_pe_quiet(own, &next, 1);
    shmem_uint64_wait_until(word, SHMEM_CMP_EQ, 1);
    CHECK(has(there, 100, 30 + (uint64_t)shmem_team_translate_pe(part, (index + n - 1) % n, SHMEM_TEAM_WORLD)));
    CHECK(shmem_team_ptr(part, there, next) == NULL); /* no address for the processor */
    CHECK(shmem_team_sync(part) == 0);
    shmem_ctx_destroy(own);
  }
  shmem_barrier_all();
  shmem_team_destroy(part);
}

/* What is not done there says so, and what to take instead. */
static void refused(unsigned char* device) {
  handled = 0;
  shmemx_set_error_handler(handler);
  CHECK(shmem_realloc(device, 10) == NULL);
  shmem_set_lock((long*)device);
  CHECK(shmem_test_lock((long*)device) == 1);
  shmem_clear_lock((long*)device);
  shmemx_set_error_handler(NULL);
  CHECK(handled == 4);
  shmem_barrier_all();
}

/* By the device, for every host. */
static void atomics(unsigned char* device) {
  long* const word = (long*)device + 1;
  int* const small = (int*)device + 8;
  float* const real = (float*)device + 9;
  const long zeros[8] = {0};
  shmem_putmem(device, zeros, sizeof zeros, me);
  shmem_barrier_all();
  if (me == 0) {
    const int pe = pes - 1;
    shmem_long_atomic_set(word, 12, pe);
    CHECK(shmem_long_atomic_fetch(word, pe) == 12 && shmem_long_atomic_fetch_add(word, -5, pe) == 12);
    CHECK(shmem_long_atomic_swap(word, 0x3c, pe) == 7 && shmem_long_atomic_compare_swap(word, 1, 2, pe) == 0x3c);
    CHECK(shmem_long_atomic_compare_swap(word, 0x3c, -1, pe) == 0x3c && shmem_long_atomic_fetch_inc(word, pe) == -1);
    CHECK(shmem_ulong_atomic_fetch_or((unsigned long*)word, 0x81, pe) == 0);
    CHECK(shmem_ulong_atomic_fetch_and((unsigned long*)word, 0x0f, pe) == 0x81);
    CHECK(shmem_ulong_atomic_fetch_xor((unsigned long*)word, 3, pe) == 1 && shmem_long_atomic_fetch(word, pe) == 2);
    shmem_float_atomic_set(real, 1.5f, pe);
    CHECK(shmem_float_atomic_swap(real, -2.25f, pe) == 1.5f && shmem_float_atomic_fetch(real, pe) == -2.25f);
  }
  shmem_barrier_all();
  for (int i = 0; i < 50; ++i)
    for (int pe = 0; pe < pes; ++pe) shmem_int_atomic_add(small, i % 2 == 0 ? 3 : -1, pe);
  uint64_t* const signal = (uint64_t*)device + 6;
  for (int pe = 0; pe < pes; ++pe) shmem_long_put_signal((long*)device + 5, zeros, 1, signal, 2, SHMEM_SIGNAL_ADD, pe);
  shmem_barrier_all();
  CHECK(shmem_int_g(small, me) == 50 * pes && shmem_signal_fetch(signal) == 2 * (uint64_t)pes);
  CHECK(shmem_long_g((long*)device, me) == 0 && shmem_long_g((long*)device + 5, me) == 0);
  shmem_barrier_all();
}

static void together(unsigned char* device) {
  long* const from = (long*)device;
  long* const to = (long*)device + 2000;
  for (size_t n = 1; n <= 1000; n += 999) {
    for (size_t i = 0; i < n; ++i) ((long*)expected)[i] = (long)i + me;
    shmem_long_put(from, (long*)expected, n, me);
    shmem_barrier_all();
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, n) == 0);
    shmem_long_get((long*)local, to, n, me);
    for (size_t i = 0; i < n; ++i) CHECK(((long*)local)[i] == (long)i * pes + (long)pes * (pes - 1) / 2);
    CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, n) == 0);
    shmem_long_get((long*)local, to, n * (size_t)pes, me);
    for (int pe = 0; pe < pes; ++pe) CHECK(((long*)local)[(size_t)pe * n + n - 1] == (long)n - 1 + pe);
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, n, pes - 1) == 0);
    shmem_long_get((long*)local, to, n, me);
    CHECK(((long*)local)[n - 1] == (long)n - 1 + pes - 1);
    shmem_barrier_all();
  }
}

/* Where kernels of OpenCL find it: what is put there by its address is in the buffer, which another address of it names, too. */
static void buffers(unsigned char* device, unsigned char* host) {
  void *one = NULL, *other = NULL;
  size_t at = 1, behind = 0;
  CHECK(shmemx_opencl_buffer(device, &one, &at) == 0 && shmemx_opencl_buffer(device + 100, &other, &behind) == 0);
  CHECK(one != NULL && one == other && behind == at + 100);
  handled = 0;
  shmemx_set_error_handler(expected_to_fail);
  CHECK(shmemx_opencl_buffer(host, &one, &at) == -1 && shmemx_opencl_buffer(device, NULL, NULL) == -1);
  shmemx_set_error_handler(NULL);
  CHECK(handled == 2);
}

static const char* size_variable(void) {
  return kind == SHMEMX_KIND_CUDA ? "SHMEMX_SYMMETRIC_SIZE_CUDA" : "SHMEMX_SYMMETRIC_SIZE_OPENCL";
}
/* A heap from the start, where there is memory for one: before anything is allocated there. Then another beginning. */
static void from_the_start(int asked) {
  static const char* const kNone = "no heap of that kind yet";
  if (asked) setenv(size_variable(), "24M", 1);
  shmem_init();
  find_pes();
  ist_team_view view;
  const int got = shmemx_view(kind, &view);
  CHECK((got != 0 && strstr(shmemx_error_text(), kNone) != NULL) != asked);
  if (got == 0) CHECK(view.bytes >= (uint64_t)24 << 20 && view.bytes < (uint64_t)48 << 20);
  shmem_finalize();
}

int main(int count, char** arguments) {
  kind = count > 1 && strcmp(arguments[1], "opencl") == 0 ? SHMEMX_KIND_OPENCL : SHMEMX_KIND_CUDA;
  from_the_start(count > 2 &&
                 (kind == SHMEMX_KIND_OPENCL || getenv("FAKE_CUDA_DEVICES") != NULL || access("/dev/nvidia0", F_OK) == 0));
  if (!started(count, arguments)) return done();
  apart = getenv("FAKE_CUDA_LINKS") != NULL || getenv("ISTHMUS_DEVICE_IPC") != NULL;
  reached = !apart && kind == SHMEMX_KIND_CUDA; /* of OpenCL it depends on the driver */
  CHECK(shmemx_malloc_on(kind, 0) == NULL);
  unsigned char* const host = (unsigned char*)memory(BYTES);
  unsigned char* const device = (unsigned char*)symmetric(BYTES);
  allocated(kind);
  allocated(SHMEMX_KIND_HOST);
  copies(device, host);
  words(device, (long*)host);
  order(device);
  refused(device);
  atomics(device);
  together(device);
  if (kind == SHMEMX_KIND_OPENCL) buffers(device, host);
  unsigned char* const large = (unsigned char*)shmemx_malloc_on(kind, (size_t)100 << 20); /* it grows */
  CHECK(large != NULL);
  shmem_putmem(large + ((size_t)100 << 20) - BYTES, expected, BYTES, right);
  shmem_barrier_all();
  shmem_free(large);
  shmem_free(device);
  return done();
}
