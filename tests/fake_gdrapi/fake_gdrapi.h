/* What tests may ask of the fake gdrcopy beyond its own calls. Found with dlsym in the loaded libgdrapi.so.2.
 *
 * Who calls this : windows_test.cpp.
 * Threads        : any.
 * Ownership      : none.
 * Errors         : none.
 *
 * Variables, read by each gdr_open: FAKE_GDR_DRIVER (1; 0: there is none), FAKE_GDR_VERSION and FAKE_GDR_DRIVER_VERSION (2; the first
 * number of each). */
#ifndef FAKE_GDRAPI_H
#define FAKE_GDRAPI_H

#define FAKE_GDR_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Every call of that name returns this from now on; 0: none does. */
FAKE_GDR_EXPORT void fake_gdr_fail(const char* call, int result);
/* "sessions", "pins" and "maps" that exist now; "into", "out": copies made; "stale": copies through a window of memory that was freed,
 * which would end a process, or reach the memory of others. */
FAKE_GDR_EXPORT int fake_gdr_count(const char* what);

#ifdef __cplusplus
}
#endif
#endif
