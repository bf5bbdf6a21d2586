// Every operation with every element that it applies to: KERNEL(operation, element) for each, which whoever includes this has defined.
//
// Who calls this : cuda_kernels.cu, cuda_meeting_kernels.cu; once in each, hence no guard.
// Threads        : none.
// Ownership      : none.
// Errors         : what does not apply does not compile (memory/arithmetic.hpp).
#define INTEGER(element)       \
  NUMBER(element)              \
  KERNEL(logical_and, element) \
  KERNEL(logical_or, element)  \
  KERNEL(logical_xor, element) \
  KERNEL(bitwise_and, element) \
  KERNEL(bitwise_or, element)  \
  KERNEL(bitwise_xor, element)
#define NUMBER(element)    \
  COMPLEX(element)         \
  KERNEL(minimum, element) \
  KERNEL(maximum, element)
#define COMPLEX(element) \
  KERNEL(sum, element)   \
  KERNEL(product, element)
#define LOCATED(element)  \
  KERNEL(minloc, element) \
  KERNEL(maxloc, element)

INTEGER(int8)
INTEGER(uint8)
INTEGER(int16)
INTEGER(uint16)
INTEGER(int32)
INTEGER(uint32)
INTEGER(int64)
INTEGER(uint64)
NUMBER(float16)
NUMBER(bfloat16)
NUMBER(float32)
NUMBER(float64)
COMPLEX(complex32)
COMPLEX(complex64)
LOCATED(float32_int32)
LOCATED(float64_int32)
LOCATED(int64_int32)
LOCATED(int32_int32)
LOCATED(int16_int32)
LOCATED(int64_int64)
