// The OpenCL calls this program makes, loaded at run time, so that it starts where there is no OpenCL.
//
// Who calls this : backend_opencl.cpp.
// Threads        : load() may be called from any thread; the table is constant afterwards.
// Ownership      : the library stays loaded until the process ends.
// Errors         : null and a reason.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace stencil {

struct OpenclApi {
#define STENCIL2D_OPENCL_CALLS(call)                                                                                   \
  call(GetPlatformIDs) call(GetDeviceIDs) call(GetDeviceInfo) call(CreateContext) call(CreateCommandQueue)             \
      call(CreateProgramWithSource) call(BuildProgram) call(GetProgramBuildInfo) call(CreateKernel) call(SetKernelArg) \
          call(CreateBuffer) call(EnqueueNDRangeKernel) call(EnqueueReadBuffer) call(EnqueueWriteBuffer) call(Finish)  \
              call(ReleaseMemObject) call(ReleaseKernel) call(ReleaseProgram) call(ReleaseCommandQueue)                \
                  call(ReleaseContext)
#define STENCIL2D_MEMBER(name) decltype(&::cl##name) name = nullptr;
  STENCIL2D_OPENCL_CALLS(STENCIL2D_MEMBER)
#undef STENCIL2D_MEMBER

  static const OpenclApi* load(std::string& reason);
};

}  // namespace stencil
