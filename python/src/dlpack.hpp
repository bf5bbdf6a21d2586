// The structures of DLPack 1.0, as its specification lays them out.
//
// Who calls this : region_dlpack.cpp.
// Threads        : plain data.
// Ownership      : the capsule that carries one of the two managed structures owns it, and frees it when it is dropped unused.
// Errors         : none.
#pragma once

#include <cstdint>

namespace isthmus_python::dlpack {

constexpr std::uint8_t kBfloat = 4;
enum DeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, opencl = 4, cuda_managed = 13 };

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;  // 0 signed, 1 unsigned, 2 floating point, kBfloat, 5 complex, others
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: contiguous
  std::uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr std::uint64_t kReadOnly = 1;

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace isthmus_python::dlpack
