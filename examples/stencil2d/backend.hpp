// What computes a rank's tile, and in whose memory: the host, an OpenCL device or a CUDA device.
//
// Who calls this : run.cpp and the exchanges. Who implements it: backend_host.cpp, backend_opencl.cpp, backend_cuda.cu.
// Threads        : one.
// Ownership      : a back-end owns its memory, its queue and its kernels; places and buffers are views.
// Errors         : std::runtime_error naming the driver's call; make_backend also says what is missing on this machine.
#pragma once

#include <memory>
#include <string>

#include "field.hpp"
#include "isthmus/isthmus.hpp"

namespace stencil {

// Work is queued and runs in order: step, pack and unpack may return before it is done. upload, download, read and write
// first let it finish, and have finished when they return.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string kind() const = 0;    // "host", "opencl" or "cuda"
  virtual std::string device() const = 0;  // for people

  // Memory for two padded fields, which take turns, and for the boxes. Once, before anything below.
  virtual void allocate(const Layout& layout, const Weights& weights) = 0;
  virtual void upload(const std::vector<std::byte>& field) = 0;
  virtual std::vector<std::byte> download() = 0;

  // New values for every point of the padded field but its outermost ring; then old and new take turns.
  virtual void step() = 0;
  // West or east: columns of the tile to the box that goes out, or the box that came in to columns of the halo.
  virtual void pack(Side side) = 0;
  virtual void unpack(Side side) = 0;

  // A place of the current field, or of the boxes, as Isthmus takes it: with the queue whose work it must wait for.
  virtual isthmus::Buffer at(const Place& place) = 0;
  // The same by hand, to and from host memory.
  virtual void read(const Place& place, void* to) = 0;
  virtual void write(const Place& place, const void* from) = 0;
  // Host memory that read and write are fastest with.
  virtual std::shared_ptr<std::byte> staging(std::size_t bytes) = 0;
  virtual void finish() = 0;
};

// `wanted` is host, opencl, cuda, or auto: the first of cuda, opencl and host that works here. Ranks of one host share its
// devices in turn.
std::unique_ptr<Backend> make_backend(const std::string& wanted, int local_rank, Precision precision);

// One per kind. Null and a reason if this machine has none.
std::unique_ptr<Backend> make_host_backend();
std::unique_ptr<Backend> make_opencl_backend(int local_rank, Precision precision, std::string& reason);
std::unique_ptr<Backend> make_cuda_backend(int local_rank, std::string& reason);

}  // namespace stencil
