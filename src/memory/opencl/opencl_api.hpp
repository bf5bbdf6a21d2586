// The functions of libOpenCL, found at run time. With opencl_api.cpp the only place that touches the library.
//
// Who calls this : the other files of this folder, and tests that act as a user of OpenCL.
// Threads        : any, after get().
// Ownership      : the table lives as long as the process; so does the library.
// Errors         : get() tells why there is no OpenCL here; check() turns a cl_int into a Status with its name.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

#include "base/status.hpp"
#include "memory/piece.hpp"

namespace ist {

// Every function that is used, once. All are of OpenCL 1.2, so that any driver of the last ten years has them.
#define IST_OPENCL_FUNCTIONS(F)  \
  F(clGetPlatformIDs)            \
  F(clGetPlatformInfo)           \
  F(clGetDeviceIDs)              \
  F(clGetDeviceInfo)             \
  F(clCreateContext)             \
  F(clReleaseContext)            \
  F(clGetContextInfo)            \
  F(clCreateCommandQueue)        \
  F(clReleaseCommandQueue)       \
  F(clGetCommandQueueInfo)       \
  F(clCreateBuffer)              \
  F(clCreateSubBuffer)           \
  F(clRetainMemObject)           \
  F(clReleaseMemObject)          \
  F(clGetMemObjectInfo)          \
  F(clCreateProgramWithSource)   \
  F(clBuildProgram)              \
  F(clGetProgramBuildInfo)       \
  F(clReleaseProgram)            \
  F(clCreateKernel)              \
  F(clReleaseKernel)             \
  F(clSetKernelArg)              \
  F(clEnqueueNDRangeKernel)      \
  F(clEnqueueReadBuffer)         \
  F(clEnqueueWriteBuffer)        \
  F(clEnqueueCopyBuffer)         \
  F(clEnqueueCopyBufferRect)     \
  F(clEnqueueReadBufferRect)     \
  F(clEnqueueWriteBufferRect)    \
  F(clEnqueueFillBuffer)         \
  F(clEnqueueMapBuffer)          \
  F(clEnqueueUnmapMemObject)     \
  F(clEnqueueMarkerWithWaitList) \
  F(clCreateUserEvent)           \
  F(clSetUserEventStatus)        \
  F(clSetEventCallback)          \
  F(clGetEventInfo)              \
  F(clWaitForEvents)             \
  F(clRetainEvent)               \
  F(clReleaseEvent)              \
  F(clFlush)                     \
  F(clFinish)

struct OpenclApi {
#define IST_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  IST_OPENCL_FUNCTIONS(IST_OPENCL_MEMBER)
#undef IST_OPENCL_MEMBER

  // The one table of the process, loaded on first use.
  static Result<const OpenclApi*> get();
};

// "CL_INVALID_VALUE (-30)".
std::string opencl_error_name(cl_int error);
// Success, or `code` with "call: CL_... (n)" and what the caller adds.
Status opencl_status(cl_int error, const std::string& call, Code code = IST_ERR_DEVICE, const std::string& more = {});

inline cl_mem memory_of(const Piece& piece) { return reinterpret_cast<cl_mem>(piece.object); }
inline cl_command_queue queue_of(const Piece& piece) { return reinterpret_cast<cl_command_queue>(piece.queue); }

}  // namespace ist
