// Device memory: the CUDA array interface, pyopencl's arrays, and PyTorch's tensors.
#include "heap.hpp"
#include "memory.hpp"
#include "region.hpp"

namespace isthmus_python {
namespace {

// Streams 1 and 2 are the interface's names for the default streams; the library calls the legacy one 0.
std::uint64_t queue_of_stream(std::uint64_t stream) { return stream == 1 ? 0 : stream; }

std::uint64_t opencl_pointer(nb::handle object, nb::handle holder, const char* what) {
  const nb::object pointer = attribute(holder, "int_ptr");
  if (!pointer.is_valid())
    throw nb::type_error(("the " + std::string(what) + " of this " + class_name(object) + " is a " + class_name(holder) +
                          ", which has no int_ptr; only arrays in pyopencl.Buffer can travel")
                             .c_str());
  return nb::cast<std::uint64_t>(pointer);
}

// Numba's arrays name no stream also while kernels of Numba's write them, which it launches into the default one; those of a symmetric
// heap know of no kernel of the program's.
bool leaves_stream_out(nb::handle object) {
  return class_name(object).rfind("numba.", 0) == 0 || nb::isinstance<SymmetricArray>(object);
}

}  // namespace

std::optional<Region> from_cuda_array(nb::handle object) {
  const nb::object found = attribute(object, "__cuda_array_interface__");
  if (!found.is_valid()) return {};
  // Before version 3 nothing says whose work is pending; DLPack then knows more.
  const nb::object version = found.attr("get")("version");
  const bool tells_stream = !version.is_none() && nb::cast<int>(version) >= 3;
  if (!tells_stream && attribute(object, "__dlpack__").is_valid()) return {};
  Region region = read_array_interface(object, found, true);
  const nb::object stream = found.attr("get")("stream");
  if (!stream.is_none()) {
    const auto number = nb::cast<std::uint64_t>(stream);
    if (number == 0)
      throw nb::value_error(("the CUDA array interface of this " + class_name(object) +
                             " names stream 0, which its definition forbids; 1 is the default stream, None no pending work")
                                .c_str());
    region.place.queue = queue_of_stream(number);
  } else if (tells_stream && !leaves_stream_out(object)) {
    // By the interface's definition nothing is pending. The legacy default stream would wait for all blocking ones.
    region.place = ist_buffer_ready(region.place);
  }
  return region;
}

std::optional<Region> from_opencl_array(nb::handle object) {
  nb::object memory = attribute(object, "base_data");
  if (!memory.is_valid()) memory = attribute(object, "data");
  const nb::object queue = attribute(object, "queue");
  const nb::object dtype = attribute(object, "dtype");
  const nb::object offset = attribute(object, "offset");
  if (!memory.is_valid() || !queue.is_valid() || !dtype.is_valid() || !offset.is_valid()) return {};
  Region region;
  region.item_size = nb::cast<std::int64_t>(dtype.attr("itemsize"));
  const std::string text = nb::cast<std::string>(dtype.attr("str"));
  set_type(region, text.size() > 1 && !is_of_other_order(text) ? text[1] : 'V', text);
  const Shape shape{to_numbers(object.attr("shape")), to_numbers(object.attr("strides"))};
  region.view = view_of(object, shape, region.item_size);
  region.count = elements_of(shape);
  region.owner = nb::borrow(object);
  if (memory.is_none()) {
    if (region.count != 0) throw nb::value_error(("this " + class_name(object) + " has no memory yet").c_str());
    region.place = ist_host(nullptr);
    return region;
  }
  if (queue.is_none())
    throw nb::value_error(("this " + class_name(object) +
                           " names no queue, so nobody can tell when its pending work ends; use array.with_queue(queue)")
                              .c_str());
  const std::uint64_t named = opencl_pointer(object, queue, "queue");
  region.place =
      ist_make_buffer(IST_KIND_OPENCL, opencl_pointer(object, memory, "memory"), nb::cast<std::uint64_t>(offset), named);
  // Work of other queues on this array: pyopencl keeps its events, and the array's own queue need not have waited for them.
  if (const nb::object events = attribute(object, "events"); events.is_valid() && !events.is_none())
    for (const nb::handle event : events)
      if (opencl_pointer(object, event.attr("command_queue"), "event's queue") != named) event.attr("wait")();
  return region;
}

// PyTorch: neither of its protocols names the stream that is current, and arrays under differentiation refuse both.
std::optional<Region> from_torch(nb::handle object) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object torch = modules.attr("get")("torch");
  if (torch.is_none()) return {};
  const nb::object tensor = attribute(torch, "Tensor");
  if (!tensor.is_valid() || PyObject_IsInstance(object.ptr(), tensor.ptr()) != 1) return {};
  const bool differentiated = nb::cast<bool>(object.attr("requires_grad"));
  const nb::object plain = differentiated ? object.attr("detach")() : nb::borrow(object);
  Region region;
  if (nb::cast<bool>(plain.attr("is_cuda"))) {
    const nb::object stream = torch.attr("cuda").attr("current_stream")(plain.attr("device"));
    region = read_dlpack(plain, -1, nb::cast<std::uint64_t>(stream.attr("cuda_stream")));
  } else {
    region = read_dlpack(plain, {}, 0);
  }
  // Writing behind the back of differentiation gives wrong gradients; tensor.detach() says that it is meant.
  region.read_only = region.read_only || differentiated;
  return region;
}

}  // namespace isthmus_python
