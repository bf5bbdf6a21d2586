// Whatever speaks DLPack: PyTorch, JAX, CuPy, and arrays nobody has met yet.
#include <string_view>

#include "dlpack.hpp"
#include "region.hpp"

namespace isthmus_python {
namespace {

// The library's name of the legacy default stream is 0, DLPack's for CUDA is 1.
constexpr std::int64_t kLegacyStream = 1;

struct Exported {
  nb::object capsule;
  const dlpack::Tensor* tensor = nullptr;
  bool read_only = false;
};

// Producers from before DLPack 1.0 do not know max_version.
nb::object call_producer(nb::handle object, std::optional<std::int64_t> stream) {
  const nb::object call = object.attr("__dlpack__");
  nb::dict options;
  if (stream) options["stream"] = *stream;
  options["max_version"] = nb::make_tuple(1, 0);
  try {
    return call(**options);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  PyDict_DelItemString(options.ptr(), "max_version");
  return call(**options);
}

Exported open(nb::handle object, nb::object capsule) {
  Exported found;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto* managed = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major > 1)
      throw nb::buffer_error((class_name(object) + " answers with DLPack " + std::to_string(managed->version.major) +
                              ", of which only 1 is known here; export it by the buffer protocol or an array interface")
                                 .c_str());
    found.tensor = &managed->tensor;
    found.read_only = (managed->flags & dlpack::kReadOnly) != 0;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    found.tensor = &static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))->tensor;
  } else {
    throw nb::type_error(("__dlpack__ of " + class_name(object) + " gave no DLPack capsule").c_str());
  }
  // The capsule keeps its name, so that dropping it frees the producer's structure.
  found.capsule = std::move(capsule);
  return found;
}

ist_buffer place_of(nb::handle object, const dlpack::Tensor& tensor, std::uint64_t queue) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
  switch (tensor.device.type) {
    case dlpack::cpu:
    case dlpack::cuda_host:
      return ist_make_buffer(IST_KIND_HOST, address, tensor.byte_offset, 0);
    case dlpack::cuda:
    case dlpack::cuda_managed:
      return ist_make_buffer(IST_KIND_CUDA, address, tensor.byte_offset, queue);
    case dlpack::opencl:
      throw nb::buffer_error(("DLPack does not tell the queue of this " + class_name(object) +
                              "; name it: isthmus.Buffer(\"opencl\", cl_mem, count, typestr, queue=...)")
                                 .c_str());
    default:
      throw nb::buffer_error((class_name(object) + " is on a device of DLPack's type " + std::to_string(tensor.device.type) +
                              "; host, CUDA and OpenCL memory can travel: copy it there first")
                                 .c_str());
  }
}

void set_type_of_dlpack(Region& region, const dlpack::DataType& type) {
  constexpr std::string_view kKinds = "iufVVcb";  // by code
  const bool known = type.lanes == 1 && type.code < kKinds.size();
  set_type(region, known ? kKinds[type.code] : 'V', "");
  if (type.lanes == 1 && type.code == dlpack::kBfloat && region.item_size == 2) region.type = IST_BFLOAT16;
  if (region.type == IST_BYTE)
    region.element = "code " + std::to_string(type.code) + ", bits " + std::to_string(type.bits) + ", lanes " +
                     std::to_string(type.lanes) + " of DLPack";
}

// Neither of the two has memory, and what JAX itself says of that speaks of DLPack or of None.
void require_memory_of_jax(nb::handle object) {
  if (!attribute(object, "__dlpack_device__").is_valid())
    throw nb::type_error((class_name(object) +
                          " stands for a value while JAX traces a function (jit, grad, vmap), and has no memory; send what "
                          "the function returns, or send from inside it by jax.experimental.io_callback")
                             .c_str());
  const nb::object is_deleted = attribute(object, "is_deleted");
  if (is_deleted.is_valid() && nb::cast<bool>(is_deleted()))
    throw nb::value_error(("this " + class_name(object) +
                           " was deleted, by delete() or by a function that it was donated to; send what that function "
                           "returned")
                              .c_str());
}

}  // namespace

Region read_dlpack(nb::handle object, std::optional<std::int64_t> stream, std::uint64_t queue) {
  Exported found = open(object, call_producer(object, stream));
  const dlpack::Tensor& tensor = *found.tensor;
  const int bits = tensor.dtype.bits * tensor.dtype.lanes;
  if (bits == 0 || bits % 8 != 0)
    throw nb::buffer_error(("elements of this " + class_name(object) + " have " + std::to_string(bits) +
                            " bits; only whole bytes can travel: view it as bytes first")
                               .c_str());
  Region region;
  region.item_size = bits / 8;
  Shape shape;
  for (std::int32_t at = 0; at < tensor.ndim; ++at) {
    shape.extents.push_back(tensor.shape[at]);
    if (tensor.strides != nullptr) shape.strides.push_back(tensor.strides[at] * region.item_size);
  }
  region.view = view_of(object, shape, region.item_size);
  region.count = elements_of(shape);
  set_type_of_dlpack(region, tensor.dtype);
  region.place = place_of(object, tensor, queue);
  // JAX arrays never change, whatever version of DLPack says so or cannot say so.
  region.read_only = found.read_only || is_of_jax(object);
  region.owner = std::move(found.capsule);
  return region;
}

std::optional<Region> from_dlpack(nb::handle object) {
  if (!attribute(object, "__dlpack__").is_valid()) return {};
  if (is_of_jax(object)) require_memory_of_jax(object);
  const nb::object device = attribute(object, "__dlpack_device__");
  if (!device.is_valid())
    throw nb::type_error((class_name(object) + " has __dlpack__ but no __dlpack_device__, which DLPack asks for").c_str());
  const nb::object answer = device();
  const auto type = nb::cast<std::int64_t>(answer[0]);
  // The producer makes our stream wait for its own, on the device; the library then waits for that stream.
  if (type == dlpack::cuda || type == dlpack::cuda_managed) return read_dlpack(object, kLegacyStream, 0);
  return read_dlpack(object, {}, 0);
}

}  // namespace isthmus_python
