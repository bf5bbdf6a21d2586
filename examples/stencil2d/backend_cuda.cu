#include <cuda_runtime.h>

#include <stdexcept>
#include <utility>

#include "backend.hpp"

namespace stencil {
namespace {

void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + call + " failed: " + cudaGetErrorString(code));
}

template <class T>
__global__ void step_points(const T* __restrict__ from, T* __restrict__ to, int rows, int columns, T centre, T cardinal,
                            T diagonal) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) + 1;
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) + 1;
  if (row + 1 >= rows || column + 1 >= columns) return;
  const T* const here = from + static_cast<std::int64_t>(row) * columns + column;
  const T *const above = here - columns, *const below = here + columns;
  to[here - from] = centre * here[0] + cardinal * (above[0] + below[0] + here[-1] + here[1]) +
                    diagonal * (above[-1] + above[1] + below[-1] + below[1]);
}

// `pitch` and `length` count elements; one thread per element of the box.
template <class T>
__global__ void move_columns(T* columns, T* box, int rows, int pitch, int length, bool into_box) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index >= rows * length) return;
  T* const point = columns + static_cast<std::int64_t>(index / length) * pitch + index % length;
  if (into_box)
    box[index] = *point;
  else
    *point = box[index];
}

std::shared_ptr<std::byte> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return {static_cast<std::byte*>(memory), [](std::byte* address) { cudaFree(address); }};
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int ordinal) : ordinal_(ordinal) {
    check(cudaSetDevice(ordinal), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~CudaBackend() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  std::string kind() const override { return "cuda"; }
  std::string device() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
    return properties.name;
  }

  void allocate(const Layout& layout, const Weights& weights) override {
    layout_ = layout;
    weights_ = weights;
    now_ = device_memory(layout.field_bytes());
    next_ = device_memory(layout.field_bytes());
    boxes_ = device_memory(layout.boxes_bytes());
  }
  void upload(const std::vector<std::byte>& field) override {
    for (const auto& target : {now_, next_})
      check(cudaMemcpyAsync(target.get(), field.data(), field.size(), cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
    finish();
  }
  std::vector<std::byte> download() override {
    std::vector<std::byte> field(layout_.field_bytes());
    read({false, 0, field.size()}, field.data());
    return field;
  }

  void step() override {
    if (layout_.precision == Precision::single_precision)
      step_as<float>();
    else
      step_as<double>();
    check(cudaGetLastError(), "the launch of step_points");
    std::swap(now_, next_);
  }
  void pack(Side side) override { move(side, Direction::out); }
  void unpack(Side side) override { move(side, Direction::in); }

  isthmus::Buffer at(const Place& place) override { return isthmus::Buffer::cuda(address(place), stream_); }
  void read(const Place& place, void* to) override {
    check(cudaMemcpyAsync(to, address(place), place.bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    finish();
  }
  void write(const Place& place, const void* from) override {
    check(cudaMemcpyAsync(address(place), from, place.bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
    finish();
  }
  std::shared_ptr<std::byte> staging(std::size_t bytes) override {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    return {static_cast<std::byte*>(memory), [](std::byte* address) { cudaFreeHost(address); }};
  }
  void finish() override { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  std::byte* address(const Place& place) const { return (place.in_boxes ? boxes_ : now_).get() + place.offset; }

  template <class T>
  void step_as() {
    const dim3 block(64, 4);
    const Extent padded = layout_.padded();
    const dim3 grid(static_cast<unsigned>((padded.columns - 2 + 63) / 64), static_cast<unsigned>((padded.rows - 2 + 3) / 4));
    step_points<T><<<grid, block, 0, stream_>>>(reinterpret_cast<const T*>(now_.get()), reinterpret_cast<T*>(next_.get()),
                                                static_cast<int>(padded.rows), static_cast<int>(padded.columns),
                                                static_cast<T>(weights_.centre), static_cast<T>(weights_.cardinal),
                                                static_cast<T>(weights_.diagonal));
  }
  void move(Side side, Direction direction) {
    if (layout_.precision == Precision::single_precision)
      move_as<float>(side, direction);
    else
      move_as<double>(side, direction);
    check(cudaGetLastError(), "the launch of move_columns");
  }
  template <class T>
  void move_as(Side side, Direction direction) {
    const Extent padded = layout_.padded();
    const auto elements = static_cast<unsigned>(padded.rows * layout_.halo);
    move_columns<T><<<(elements + 127) / 128, 128, 0, stream_>>>(
        reinterpret_cast<T*>(now_.get()) + layout_.box_column(side, direction),
        reinterpret_cast<T*>(address(layout_.strip(side, direction))), static_cast<int>(padded.rows),
        static_cast<int>(padded.columns), layout_.halo, direction == Direction::out);
  }

  int ordinal_;
  cudaStream_t stream_ = nullptr;
  Layout layout_;
  Weights weights_;
  std::shared_ptr<std::byte> now_, next_, boxes_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int local_rank, std::string& reason) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    // Without a driver the runtime speaks of an insufficient version.
    const bool no_driver = code == cudaErrorInsufficientDriver;
    reason = std::string("no CUDA device: ") + (no_driver             ? "there is no NVIDIA driver, or it is too old"
                                                : code == cudaSuccess ? "the driver lists none"
                                                                      : cudaGetErrorString(code));
    return nullptr;
  }
  return std::make_unique<CudaBackend>(local_rank % count);
}

}  // namespace stencil
