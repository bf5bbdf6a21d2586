// On GPUs: particles stay on the device, and what leaves is sent from where it lies there. The processor gets the list of those that leave.
#include <algorithm>

#include "common/cuda.hpp"
#include "common/cuda_device.hpp"
#include "kernels.hpp"

namespace particles {
namespace {

using example::cuda::check;

// Memory that grows, and of which nothing is kept then.
template <class T>
class Room {
 public:
  using Make = std::shared_ptr<T[]> (*)(std::size_t);
  explicit Room(Make make) : make_(make) {}
  T* get() const { return memory_.get(); }
  std::int64_t size() const { return size_; }
  void reserve(std::int64_t count) {
    if (count <= size_) return;
    memory_.reset();
    size_ = 0;
    memory_ = make_(static_cast<std::size_t>(count + count / 4));
    size_ = count + count / 4;
  }

 private:
  Make make_;
  std::shared_ptr<T[]> memory_;
  std::int64_t size_ = 0;
};

class Cuda final : public Machine {
 public:
  Cuda(const isthmus::World& world, example::cuda::Device device) : world_(world), device_(std::move(device)) {
    found_.reserve(1);
    list_.reserve(kFirstLimit);
  }
  std::string text() const override { return device_.name + (device_.shared ? ", which ranks share" : ""); }
  isthmus::Memory allocate(std::size_t bytes) const override {
    return world_.allocate(isthmus::Kind::cuda, bytes, device_.number);
  }
  isthmus::Buffer at(const double* address) const override { return isthmus::Buffer::cuda(address, stream_.get()).ready(); }
  void move(const Span& of, const Box& box, int own, Leaving& leaving) override {
    if (of.count == 0) return;
    part_.reserve(of.count);
    before_.reserve(blocks_of(of.count));
    launch_move(of, {{box.parts[0], box.parts[1], box.parts[2]}, own}, search(), stream_.get());
    list(of.count);
    const std::int64_t found = *found_.get();
    // More than there was room for: once more, behind which there is.
    if (found > list_.size()) {
      list_.reserve(found);
      list(of.count);
    }
    leaving.all.reserve(static_cast<std::size_t>(found));
    for (const Leaver& one : std::span(list_.get(), static_cast<std::size_t>(found))) {
      leaving.all.push_back(one.which);
      leaving.to_rank[static_cast<std::size_t>(box.ranks[static_cast<std::size_t>(one.part)])].push_back(one.which);
    }
  }
  void fill(const Span& of, std::span<const Fill> fills) override {
    if (fills.empty()) return;
    const auto count = static_cast<std::int64_t>(fills.size());
    fills_.reserve(count);
    fills_here_.reserve(count);
    std::copy(fills.begin(), fills.end(), fills_here_.get());
    check(cudaMemcpyAsync(fills_.get(), fills_here_.get(), fills.size_bytes(), cudaMemcpyHostToDevice, stream_.get()),
          "cudaMemcpyAsync");
    launch_fill(of, fills_.get(), count, stream_.get());
    stream_.wait();
  }

 private:
  static constexpr std::int64_t kFirstLimit = 256;

  Search search() const { return {part_.get(), before_.get(), found_.get(), list_.get(), list_.size()}; }
  void list(std::int64_t count) const {
    launch_list(count, search(), stream_.get());
    stream_.wait();
  }

  const isthmus::World& world_;
  const example::cuda::Device device_;
  example::cuda::Stream stream_;
  Room<std::int32_t> part_{example::cuda::memory<std::int32_t>}, before_{example::cuda::memory<std::int32_t>};
  Room<std::int64_t> found_{example::cuda::pinned<std::int64_t>};
  Room<Leaver> list_{example::cuda::pinned<Leaver>};
  Room<Fill> fills_{example::cuda::memory<Fill>}, fills_here_{example::cuda::pinned<Fill>};
};

}  // namespace

std::unique_ptr<Machine> make_cuda_machine(const isthmus::World& world) {
  return std::make_unique<Cuda>(world, example::cuda::take_device(world));
}

}  // namespace particles
