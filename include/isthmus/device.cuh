// Isthmus in kernels: reach the memory of other PEs, tell them, wait for them and meet them, with no processor between.
// docs/in-kernel.md shows how.
//
// Who calls this : kernels of programs, compiled by nvcc as C++17 or later; no -rdc, nothing to link, in any number of libraries. The
//                  same algorithms compile for processors, with crews of the program's own.
// Threads        : a call that takes a crew is made by all threads of it: Thread, Warp, Block or Grid (isthmus/device/crew.cuh).
// Ownership      : a view (isthmus/team.h) goes to kernels by value; it owns nothing.
// Errors         : whatever waits returns a Status; a dead PE ends every wait, and so does a deadline where there is one. Each must be
//                  looked at, since nothing is printed and no kernel is ended here.
#ifndef ISTHMUS_DEVICE_CUH
#define ISTHMUS_DEVICE_CUH

#include "isthmus/device/barrier.cuh"
#include "isthmus/device/calls.cuh"
#include "isthmus/device/crew.cuh"
#include "isthmus/device/move.cuh"
#include "isthmus/device/packets.cuh"
#include "isthmus/device/wait.cuh"

#endif
