/* What tests may ask of the fake driver beyond the driver's own calls. Found with dlsym in the loaded libcuda.so.1: if these
 * are not there, the driver is a real one, and a test that needs them skips.
 *
 * Who calls this : tests.
 * Threads        : any.
 * Ownership      : none.
 * Errors         : none.
 *
 * Variables, read by each cuInit after a reset: FAKE_CUDA_DEVICES (2), FAKE_CUDA_DELAY_US (50), FAKE_CUDA_MEMORY_MIB (1024
 * per device), FAKE_CUDA_INIT (a CUresult that cuInit returns), FAKE_CUDA_PEER (1), FAKE_CUDA_VISIBLE (0; 1:
 * CUDA_VISIBLE_DEVICES chooses, as with the driver; a machine's own list must not change the tests), FAKE_CUDA_LAZY (0; 1: kernels
 * come with their first launch, which then waits for all that runs in the context, unless CUDA_MODULE_LOADING is EAGER), FAKE_CUDA_LINKS
 * ("0-1:spoiled,0-2:refused": what one of these devices copies to or from memory of the other comes wrong; the driver lets neither
 * reach the other's memory. Numbers are those without CUDA_VISIBLE_DEVICES; "0-0" is between two processes on one device),
 * FAKE_CUDA_OUT_US (0: so much longer takes a copy from a device into page-locked memory), FAKE_CUDA_STRICT (1: whoever frees, unmaps, unlocks or closes memory of which a copy has not happened yet is ended).
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

#define FAKE_CUDA_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* As in a process that has not called cuInit. Nothing may be in use. */
FAKE_CUDA_EXPORT void fake_cuda_reset(void);
/* One operation in four starts up to this much late; 0: none. */
FAKE_CUDA_EXPORT void fake_cuda_delay(unsigned most_us);
/* After `skip` more calls of that name, one returns `result` and does nothing. "cuMemcpyAsync", say. */
FAKE_CUDA_EXPORT void fake_cuda_fail(const char* call, int skip, int result);
/* Takes back all of the above that has not happened. */
FAKE_CUDA_EXPORT void fake_cuda_heal(void);
/* How often a call was made. */
FAKE_CUDA_EXPORT uint64_t fake_cuda_calls(const char* call);
/* From now on (0: no more) the calls are noted that put work into a stream (cuMemcpyAsync, cuLaunchKernel, cuStreamWriteValue64) or ask
 * whether it is over (cuEventQuery, cuEventSynchronize, cuStreamSynchronize); what was noted before is forgotten. */
FAKE_CUDA_EXPORT void fake_cuda_note(int on);
/* The call of that number, from 0 on, and of which stream or event it was; 0: there were fewer. */
FAKE_CUDA_EXPORT int fake_cuda_noted(int number, const char** call, const void** of);
/* How many exist now: "contexts", "streams", "events", "allocations" (registered host memory is one), "captures",
 * "pools" (imported ones among them; default ones are not). */
FAKE_CUDA_EXPORT int fake_cuda_count(const char* what);
/* A kernel that writes where it must not: when it runs, its context is lost. */
FAKE_CUDA_EXPORT void fake_cuda_bad_kernel(void* stream);
/* Where the bytes of a device address really are; null if it is none. */
FAKE_CUDA_EXPORT void* fake_cuda_bytes(uint64_t address);

#ifdef __cplusplus
}
#endif
#endif
