#include <cstdlib>
#include <cstring>
#include <new>

#include "backend.hpp"

namespace stencil {
namespace {

std::shared_ptr<std::byte> host_memory(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(page, (bytes + page - 1) / page * page + page));
  if (!memory) throw std::bad_alloc();
  return {memory, [](std::byte* address) { std::free(address); }};
}

template <class T>
void step_rows(const T* from, T* to, const Extent& padded, T centre, T cardinal, T diagonal) {
  const std::int64_t pitch = padded.columns;
  for (std::int64_t row = 1; row + 1 < padded.rows; ++row) {
    const T* const here = from + row * pitch;
    const T *const above = here - pitch, *const below = here + pitch;
    T* __restrict const out = to + row * pitch;
    for (std::int64_t column = 1; column + 1 < pitch; ++column)
      out[column] = centre * here[column] +
                    cardinal * (above[column] + below[column] + here[column - 1] + here[column + 1]) +
                    diagonal * (above[column - 1] + above[column + 1] + below[column - 1] + below[column + 1]);
  }
}

// Loops on the calling thread; its queue is always empty.
class HostBackend final : public Backend {
 public:
  std::string kind() const override { return "host"; }
  std::string device() const override { return "one processor core per rank"; }

  void allocate(const Layout& layout, const Weights& weights) override {
    layout_ = layout;
    weights_ = weights;
    now_ = host_memory(layout.field_bytes());
    next_ = host_memory(layout.field_bytes());
    boxes_ = host_memory(layout.boxes_bytes());
  }
  void upload(const std::vector<std::byte>& field) override {
    std::memcpy(now_.get(), field.data(), field.size());
    std::memcpy(next_.get(), field.data(), field.size());
  }
  std::vector<std::byte> download() override { return {now_.get(), now_.get() + layout_.field_bytes()}; }

  void step() override {
    if (layout_.precision == Precision::single_precision)
      step_as<float>();
    else
      step_as<double>();
    std::swap(now_, next_);
  }
  void pack(Side side) override { move_columns(side, Direction::out); }
  void unpack(Side side) override { move_columns(side, Direction::in); }

  isthmus::Buffer at(const Place& place) override { return isthmus::Buffer::host(address(place)); }
  void read(const Place& place, void* to) override { std::memcpy(to, address(place), place.bytes); }
  void write(const Place& place, const void* from) override { std::memcpy(address(place), from, place.bytes); }
  std::shared_ptr<std::byte> staging(std::size_t bytes) override { return host_memory(bytes); }
  void finish() override {}

 private:
  std::byte* address(const Place& place) const { return (place.in_boxes ? boxes_ : now_).get() + place.offset; }

  template <class T>
  void step_as() {
    step_rows(reinterpret_cast<const T*>(now_.get()), reinterpret_cast<T*>(next_.get()), layout_.padded(),
              static_cast<T>(weights_.centre), static_cast<T>(weights_.cardinal), static_cast<T>(weights_.diagonal));
  }
  void move_columns(Side side, Direction direction) {
    const std::size_t length = static_cast<std::size_t>(layout_.halo) * layout_.element();
    const std::size_t pitch = static_cast<std::size_t>(layout_.padded().columns) * layout_.element();
    std::byte* box = address(layout_.strip(side, direction));
    std::byte* columns = now_.get() + static_cast<std::size_t>(layout_.box_column(side, direction)) * layout_.element();
    for (std::int64_t row = 0; row < layout_.padded().rows; ++row, box += length, columns += pitch) {
      if (direction == Direction::out)
        std::memcpy(box, columns, length);
      else
        std::memcpy(columns, box, length);
    }
  }

  Layout layout_;
  Weights weights_;
  std::shared_ptr<std::byte> now_, next_, boxes_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace stencil
