// What the kernels do: everybody's input is laid open to everybody, who takes what the call wants.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fake_nccl.hpp"
#include "memory/reduction.hpp"

namespace fake_nccl {
namespace {

ist_type type_of(Type type) {
  switch (type) {
    case Type::int8:
      return IST_INT8;
    case Type::uint8:
      return IST_UINT8;
    case Type::int32:
      return IST_INT32;
    case Type::uint32:
      return IST_UINT32;
    case Type::int64:
      return IST_INT64;
    case Type::uint64:
      return IST_UINT64;
    case Type::float16:
      return IST_HALF;
    case Type::bfloat16:
      return IST_BFLOAT16;
    case Type::float32:
      return IST_FLOAT;
    case Type::float64:
      return IST_DOUBLE;
  }
  std::abort();
}

ist::Reduction reduction_of(Operation operation) {
  switch (operation) {
    case Operation::sum:
      return ist::Reduction::sum;
    case Operation::product:
      return ist::Reduction::product;
    case Operation::minimum:
      return ist::Reduction::minimum;
    case Operation::maximum:
      return ist::Reduction::maximum;
  }
  std::abort();
}

}  // namespace

std::size_t size_of(Type type) { return ist::size_of(type_of(type)).value; }

Wire::Wire(Shared* shared, int rank, int ranks, const std::atomic<bool>& aborted)
    : shared_(shared), rank_(rank), ranks_(ranks), aborted_(aborted) {
  descriptor_ = ::memfd_create("fake_nccl_rank", MFD_CLOEXEC);
  if (descriptor_ < 0) std::abort();
}

Wire::~Wire() { ::close(descriptor_); }

bool Wire::wait_for(const std::atomic<std::uint64_t>& word, std::uint64_t value) const {
  while (word.load(std::memory_order_acquire) < value) {
    if (aborted_.load()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

bool Wire::join() {
  Shared::Rank& mine = shared_->ranks[rank_];
  mine.process = ::getpid();
  mine.descriptor = descriptor_;
  mine.joined.store(1, std::memory_order_release);
  for (int rank = 0; rank < ranks_; ++rank)
    while (shared_->ranks[rank].joined.load(std::memory_order_acquire) == 0) {
      if (aborted_.load()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return true;
}

bool Wire::connect() {
  shared_->ranks[rank_].connected.store(++connected_, std::memory_order_release);
  for (int rank = 0; rank < ranks_; ++rank)
    if (!wait_for(shared_->ranks[rank].connected, connected_)) return false;
  return true;
}

void Wire::give(const std::byte* bytes, std::size_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) std::abort();
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = ::pwrite(descriptor_, bytes + done, size - done, static_cast<off_t>(done));
    if (wrote <= 0) std::abort();
    done += static_cast<std::size_t>(wrote);
  }
}

// In the order of the ranks.
void Wire::combine(const Call& call, std::size_t first, std::size_t count, std::byte* into) const {
  const std::size_t size = size_of(call.type);
  std::vector<std::byte> sum(count * size);
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::byte* input = inputs_[rank] + first * size;
    if (rank == 0)
      std::memcpy(sum.data(), input, sum.size());
    else
      ist::combine_on_host(reduction_of(call.operation), type_of(call.type), sum.data(), input,
                           static_cast<std::int64_t>(count));
  }
  std::memcpy(into, sum.data(), sum.size());
}

bool Wire::run(const Call& call) {
  const std::size_t part = call.count * size_of(call.type);
  const auto ranks = static_cast<std::size_t>(ranks_);
  const bool many = call.what == Call::What::reduce_scatter || call.what == Call::What::exchange;
  const std::size_t given = many ? part * ranks : part;
  Shared::Rank& mine = shared_->ranks[rank_];
  ++round_;
  give(static_cast<const std::byte*>(call.send), given);
  mine.given.store(round_, std::memory_order_release);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!wait_for(shared_->ranks[rank].given, round_)) return false;
    const std::string path =
        "/proc/" + std::to_string(shared_->ranks[rank].process) + "/fd/" + std::to_string(shared_->ranks[rank].descriptor);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* mapped = fd < 0 ? MAP_FAILED : ::mmap(nullptr, given, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) ::close(fd);
    if (mapped == MAP_FAILED) return false;  // the process is gone
    inputs_[rank] = static_cast<const std::byte*>(mapped);
  }
  auto* recv = static_cast<std::byte*>(call.recv);
  const auto me = static_cast<std::size_t>(rank_);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (call.what == Call::What::all_gather) std::memcpy(recv + r * part, inputs_[r], part);
    if (call.what == Call::What::exchange) std::memcpy(recv + r * part, inputs_[r] + me * part, part);
  }
  if (call.what == Call::What::broadcast) std::memcpy(recv, inputs_[call.root], part);
  if (call.what == Call::What::all_reduce || (call.what == Call::What::reduce && call.root == rank_))
    combine(call, 0, call.count, recv);
  if (call.what == Call::What::reduce_scatter) combine(call, me * call.count, call.count, recv);
  for (std::size_t r = 0; r < ranks; ++r) ::munmap(const_cast<std::byte*>(inputs_[r]), given);
  mine.taken.store(round_, std::memory_order_release);
  for (int rank = 0; rank < ranks_; ++rank)
    if (!wait_for(shared_->ranks[rank].taken, round_)) return false;
  return true;
}

}  // namespace fake_nccl
