#include "memory/opencl/opencl_source.hpp"

namespace ist {

const char* const kOpenclSource = R"(
#pragma OPENCL FP_CONTRACT OFF
#ifdef DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b)

/* TYPE: an element. UNIT: what the address counts, since elements may begin between vectors of their size. */
#if defined(COMPLEX)
#define TYPE JOINED(VALUE, 2)
#define UNIT VALUE
#define LOAD(place, i) vload2(i, place)
#define STORE(element, place, i) vstore2(element, i, place)
#elif defined(LOCATED)
#define TYPE JOINED(uint, WORDS)
#define UNIT uint
#define LOAD(place, i) JOINED(vload, WORDS)(i, place)
#define STORE(element, place, i) JOINED(vstore, WORDS)(element, i, place)
#else
#define TYPE VALUE
#define UNIT VALUE
#define LOAD(place, i) place[i]
#define STORE(element, place, i) place[i] = element
#endif

#define KERNEL(name, result)                                                                                  \
  kernel void JOINED(isthmus_, name)(global uchar* into_start, ulong into_at, global const uchar* with_start, \
                                     ulong with_at, ulong count) {                                            \
    global UNIT* target = (global UNIT*)(into_start + into_at);                                               \
    global const UNIT* source = (global const UNIT*)(with_start + with_at);                                   \
    for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) {                                    \
      const TYPE with = LOAD(source, i);                                                                      \
      const TYPE into = LOAD(target, i);                                                                      \
      STORE((result), target, i);                                                                             \
    }                                                                                                         \
  }

#ifdef INTEGER
KERNEL(sum, (TYPE)((WIDE)with + (WIDE)into))
KERNEL(product, (TYPE)((WIDE)with * (WIDE)into))
KERNEL(minimum, with < into ? with : into)
KERNEL(maximum, with > into ? with : into)
KERNEL(logical_and, (TYPE)(with != 0 && into != 0))
KERNEL(logical_or, (TYPE)(with != 0 || into != 0))
KERNEL(logical_xor, (TYPE)((with != 0) != (into != 0)))
KERNEL(bitwise_and, (TYPE)(with & into))
KERNEL(bitwise_or, (TYPE)(with | into))
KERNEL(bitwise_xor, (TYPE)(with ^ into))
#endif

#ifdef FLOATING
#if defined(HALF)
float widen(ushort bits) { return vload_half(0, (const half*)&bits); }
ushort narrow(float value) {
  ushort bits;
  vstore_half_rte(value, 0, (half*)&bits);
  return bits;
}
#elif defined(BFLOAT16)
float widen(ushort bits) { return as_float((uint)bits << 16); }
ushort narrow(float value) {
  const uint bits = as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (ushort)((bits >> 16) | 0x40u);
  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#else
#define widen(value) (value)
#define narrow(value) (value)
#endif
KERNEL(sum, narrow(widen(with) + widen(into)))
KERNEL(product, narrow(widen(with) * widen(into)))
KERNEL(minimum, widen(with) < widen(into) ? with : into)
KERNEL(maximum, widen(with) > widen(into) ? with : into)
#endif

#ifdef COMPLEX
KERNEL(sum, with + into)
KERNEL(product, (TYPE)(with.x * into.x - with.y * into.y, with.x * into.y + with.y * into.x))
#endif

#ifdef LOCATED
bool less_or_before(TYPE a, TYPE b) { return VALUE_OF(a) < VALUE_OF(b) || (VALUE_OF(a) == VALUE_OF(b) && INDEX_OF(a) < INDEX_OF(b)); }
bool greater_or_before(TYPE a, TYPE b) { return VALUE_OF(a) > VALUE_OF(b) || (VALUE_OF(a) == VALUE_OF(b) && INDEX_OF(a) < INDEX_OF(b)); }
KERNEL(minloc, less_or_before(with, into) ? with : into)
KERNEL(maxloc, greater_or_before(with, into) ? with : into)
#endif
)";

std::string opencl_options(Element element) {
  switch (element) {
    case Element::int8:
      return "-DINTEGER -DVALUE=char -DWIDE=uint";
    case Element::uint8:
      return "-DINTEGER -DVALUE=uchar -DWIDE=uint";
    case Element::int16:
      return "-DINTEGER -DVALUE=short -DWIDE=uint";
    case Element::uint16:
      return "-DINTEGER -DVALUE=ushort -DWIDE=uint";
    case Element::int32:
      return "-DINTEGER -DVALUE=int -DWIDE=uint";
    case Element::uint32:
      return "-DINTEGER -DVALUE=uint -DWIDE=uint";
    case Element::int64:
      return "-DINTEGER -DVALUE=long -DWIDE=ulong";
    case Element::uint64:
      return "-DINTEGER -DVALUE=ulong -DWIDE=ulong";
    case Element::float16:
      return "-DFLOATING -DHALF -DVALUE=ushort";
    case Element::bfloat16:
      return "-DFLOATING -DBFLOAT16 -DVALUE=ushort";
    case Element::float32:
      return "-DFLOATING -DVALUE=float";
    case Element::float64:
      return "-DFLOATING -DDOUBLE -DVALUE=double";
    case Element::complex32:
      return "-DCOMPLEX -DVALUE=float";
    case Element::complex64:
      return "-DCOMPLEX -DDOUBLE -DVALUE=double";
    case Element::float32_int32:
      return "-DLOCATED -DWORDS=2 -DVALUE_OF(a)=as_float(a.x) -DINDEX_OF(a)=as_int(a.y)";
    case Element::float64_int32:
      return "-DLOCATED -DDOUBLE -DWORDS=4 -DVALUE_OF(a)=as_double(a.xy) -DINDEX_OF(a)=as_int(a.z)";
    case Element::int64_int32:
      return "-DLOCATED -DWORDS=4 -DVALUE_OF(a)=as_long(a.xy) -DINDEX_OF(a)=as_int(a.z)";
    case Element::int32_int32:
      return "-DLOCATED -DWORDS=2 -DVALUE_OF(a)=as_int(a.x) -DINDEX_OF(a)=as_int(a.y)";
    case Element::int16_int32:
      return "-DLOCATED -DWORDS=2 -DVALUE_OF(a)=as_short2(a.x).x -DINDEX_OF(a)=as_int(a.y)";
    case Element::int64_int64:
      return "-DLOCATED -DWORDS=4 -DVALUE_OF(a)=as_long(a.xy) -DINDEX_OF(a)=as_long(a.zw)";
  }
  return {};
}

bool needs_double(Element element) {
  return element == Element::float64 || element == Element::complex64 || element == Element::float64_int32;
}

// The least half is no small float.
bool needs_small_floats(Element element) {
  return element == Element::float32 || element == Element::bfloat16 || element == Element::complex32 ||
         element == Element::float32_int32;
}

}  // namespace ist
