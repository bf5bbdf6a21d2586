// The kernels of reductions in OpenCL C: one source, compiled once for each element that is used.
//
// Who calls this : opencl_programs.cpp.
// Threads        : constants and pure functions.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <string>

#include "memory/element.hpp"

namespace ist {

// The same steps as in memory/arithmetic.hpp. Kernels are named as kernel_name() says, without the element.
extern const char* const kOpenclSource;
// What makes the source that of an element: "-DINTEGER -DVALUE=int -DWIDE=uint".
std::string opencl_options(Element element);
// Needs cl_khr_fp64.
bool needs_double(Element element);
// Needs floats that are smaller than the smallest normal one.
bool needs_small_floats(Element element);

}  // namespace ist
