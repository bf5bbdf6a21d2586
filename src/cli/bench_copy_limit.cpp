#include "cli/bench_copy_limit.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "cli/bench_driver_copies.hpp"
#include "cli/bench_limits.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

// Long enough for a link's memory, short enough that the first row need not wait.
constexpr std::size_t kFirst = 1 << 20;

}  // namespace

int device_of(const isthmus::World& world, isthmus::Kind kind, const Kinds* kinds) {
  const isthmus::Memory memory = world.allocate(kind, 1);  // or says why there is no such memory
  if (kind != isthmus::Kind::cuda || kinds == nullptr || kinds->find(KindId::cuda) == nullptr) return Place::kAnyDevice;
  return kinds->recognise(reinterpret_cast<const void*>(memory.buffer().c().object)).device;
}

CopyLimit::CopyLimit(const isthmus::Comm& comm, const std::string& kind, int device, const Kinds* kinds)
    : comm_(comm), kinds_(kinds), places_{Place::read(kind), Place::read(kind)} {
  // The other rank may have another number for its device: of CUDA they have names that are the same everywhere.
  const DriverUuid mine = places_[0].kind == IST_KIND_CUDA ? driver_uuid(device) : DriverUuid{};
  std::vector<DriverUuid> all(static_cast<std::size_t>(comm.size()));
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof mine);
  comm.allgather(isthmus::Buffer::host(&mine), kBytes, isthmus::Buffer::host(all.data()), kBytes, IST_BYTE);
  for (std::size_t rank = 0; rank < 2; ++rank)
    if (places_[rank].kind == IST_KIND_CUDA) places_[rank].device = driver_device(all[std::min(rank, all.size() - 1)]);
  if (comm.rank() == 0) open(kFirst);
}

void CopyLimit::open(std::size_t most) {
  link_.reset();
  try {
    if (kinds_ == nullptr) throw Failure(1, "the kinds of memory cannot be loaded");
    if (places_[0].kind == IST_KIND_CUDA)
      for (const Place& place : places_)
        if (place.device == Place::kAnyDevice) throw Failure(1, "the other rank's device is none that this rank sees");
    link_ = BareLink::open({places_[0], places_[1], most, false, 0}, *kinds_);
    most_ = most;
    words_ = link_->words(BareForm::single);
  } catch (const Failure& failure) {
    words_ = std::string{"not measured: "} + failure.what();
  }
}

double CopyLimit::us(std::size_t bytes) {
  double found = std::numeric_limits<double>::quiet_NaN();
  if (comm_.rank() != 0) {
    auto over = comm_.irecv(isthmus::Buffer::host(&found), 1, IST_DOUBLE, 0);
    while (!over.test()) std::this_thread::sleep_for(std::chrono::milliseconds{2});
    return found;
  }
  if (bytes > most_ && link_ != nullptr) open(bytes);
  try {
    if (link_ != nullptr) found = link_->us(bytes, BareForm::single);
  } catch (const Failure& failure) {
    link_.reset();
    words_ = std::string{"not measured in every row: "} + failure.what();
  }
  for (int rank = 1; rank < comm_.size(); ++rank) comm_.send(isthmus::Buffer::host(&found), 1, IST_DOUBLE, rank);
  return found;
}

}  // namespace ist::cli
