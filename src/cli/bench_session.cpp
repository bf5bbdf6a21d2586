#include "cli/bench_session.hpp"

#include <isthmus/stream.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "cli/failure.hpp"
#include "face/message/handles.hpp"

namespace ist::cli {
namespace {

// What one rank tells the others about its preparation.
struct Report {
  std::array<char, 1000> error;  // empty: prepared
  int device;
};

// A message of the check may be one byte longer than the longest timed one, and has a guard behind it.
constexpr std::size_t kBeyondMost = 4096;
// Small messages of a checked window get places of their own in this much.
constexpr std::size_t kLeastCapacity = 1 << 20;
// What comes both ways at once lies as if it were allocated by itself.
constexpr std::size_t kDevicePage = 2 << 20;

}  // namespace

void fail(int code, const char* call) {
  throw Failure(1, std::string{call} + ": " + ist_code_name(code) + ": " + ist_error_text());
}

Session::Session(const BenchOptions& options) : options_(options) {
  must(ist_world_create(&world_), "ist_world_create");
  must(ist_world_comm(world_, &comm_), "ist_world_comm");
  int size = 0;
  must(ist_comm_rank(comm_, &rank_), "ist_comm_rank");
  must(ist_comm_size(comm_, &size), "ist_comm_size");
  const int wanted = options.timed_call() ? options.ranks : options.pairs() ? size / 2 * 2 : 2;
  if (wanted != 0 && size != wanted) {
    const std::string ranks = std::to_string(wanted);
    const Failure failure(2, rank_ != 0
                                 ? ""
                                 : "a benchmark takes " + ranks + " ranks and found " + std::to_string(size) +
                                       ": start it with isthmus run -n " + ranks + ", or alone, and it starts its own");
    ist_world_destroy(&world_);
    throw failure;
  }
  places_.assign(static_cast<std::size_t>(size), options.to);
  places_[0] = options.from;
  if (options.pairs()) std::fill_n(places_.begin(), size / 2, options.from);
}

Session::~Session() {
  staging_ = {};
  if (pins_) pins_->unpin(reinterpret_cast<void*>(buffer_.object));
  if (taken_) ist_memory_free(world_, buffer_);
  if (world_ != IST_WORLD_NULL) ist_world_destroy(&world_);
}

void Session::prepare(const Settings& settings) {
  Report mine{};
  try {
    take_memory(settings);
  } catch (const Failure& failure) {
    std::strncpy(mine.error.data(), failure.what(), mine.error.size() - 1);
  }
  mine.device = places_[static_cast<std::size_t>(rank_)].device;
  const auto reports = from_all(std::span<const Report>{&mine, 1});
  for (std::size_t r = 0; r < reports.size(); ++r) places_[r].device = reports[r].device;
  for (const Report& report : reports)
    if (report.error[0] != '\0') throw Failure(1, rank_ == 0 ? report.error.data() : "");
}

void Session::take_memory(const Settings& settings) {
  auto kinds = Kinds::load(settings.kinds, settings.worker);
  if (!kinds.ok()) throw Failure(kinds.status());
  kinds_ = std::move(kinds).value();
  Place& place = places_[static_cast<std::size_t>(rank_)];
  int devices = 0;
  must(ist_kind_devices(world_, place.kind, &devices), place.word.c_str());
  if (place.device >= devices)
    throw Failure(2, place.text() + " is not there: this machine has " + std::to_string(devices) + " device(s) of kind " +
                         place.kind_name());
  int local_rank = 0;
  must(ist_comm_local_rank(comm_, &local_rank), "ist_comm_local_rank");
  if (place.device == Place::kAnyDevice) place.device = place.on_device() ? local_rank % std::max(devices, 1) : 0;
  const std::size_t longest = options_.most + kBeyondMost;
  const CollectiveCall* const call = options_.timed_call();
  capacity_ = std::max(longest, kLeastCapacity);
  if (call) recv_offset_ = call->input_bytes(longest, size());
  if (options_.bidirectional() || options_.stream()) recv_offset_ = capacity_ = (capacity_ / kDevicePage + 1) * kDevicePage;
  std::size_t whole = recv_offset_ + capacity_;
  if (recv_offset_ != 0 && call) capacity_ = whole = recv_offset_ + call->result_bytes(longest, size());
  if (place.classed()) {
    classed_ = ClassedMemory::take(place, whole);
    buffer_ = classed_->buffer();
  } else {
    must(ist_memory_alloc(world_, place.kind, place.device, whole, &buffer_), "ist_memory_alloc");
    taken_ = true;
  }
  named_ = buffer_;
  if (options_.automatic) name_nothing(place);
  if (options_.ready) named_ = ist_buffer_ready(named_);
  pool_ = std::make_unique<PinnedPool>(*kinds_, settings.pinned_pool_limit);
  if (place.on_device()) start_device(*kinds_->find(static_cast<KindId>(place.kind)), place.device);
  if (!place.pinned()) return;
  for (const auto& kind : kinds_->all()) {
    Pins* const pins = kind->pins();
    if (!pins || kind->devices().empty()) continue;
    start_device(*kind, local_rank % static_cast<int>(kind->devices().size()));
    if (const Status status = pins->pin(reinterpret_cast<void*>(buffer_.object), Bytes{whole}); !status.ok())
      throw Failure(status);
    pins_ = pins;
    return;
  }
  throw Failure(
      2, "pinned memory needs a device that host memory can be page-locked for, and none was found: see isthmus info");
}

void Session::name_nothing(const Place& place) {
  if (place.kind == IST_KIND_OPENCL)
    throw Failure(2, "--auto is for memory with addresses; a buffer of opencl is an object and must be named");
  named_ = ist_auto(reinterpret_cast<const void*>(buffer_.object));  // NOLINT(performance-no-int-to-ptr)
  named_.queue = buffer_.queue;
}

void Session::write(std::span<const std::byte> bytes, std::size_t offset) {
  must(ist_memory_copy(world_, at(offset), ist_host(bytes.data()), bytes.size()), "ist_memory_copy");
}

void Session::read(std::span<std::byte> bytes, std::size_t offset) {
  must(ist_memory_copy(world_, ist_host(bytes.data()), at(offset), bytes.size()), "ist_memory_copy");
}

std::string Session::path_name(int carrier) const {
  const bool by_hand = options_.staged && (places_.front().on_device() || places_.back().on_device());
  return std::string{by_hand ? "staged+" : ""} + "shm/" + ist_carrier_name(carrier);
}

bool Session::stages() const { return options_.staged && places_[static_cast<std::size_t>(rank_)].on_device(); }

// A kind page-locks nothing before it has used a device: it has not been told which one.
void Session::start_device(MemoryKind& kind, int device) {
  auto piece = kind.allocate(device, Bytes{1});
  if (!piece.ok()) throw Failure(piece.status());
  if (const Status released = kind.release(*piece); !released.ok()) throw Failure(released);
  kinds_->mark_used(kind.id());
}

const CopyChoice& Session::copies() const { return look_up(world_)->world->engine().copies(); }

// Page-locked, as anybody would who stages by hand and cares.
void Session::grow_staging(std::size_t bytes) {
  if (staging_.size().value >= bytes) return;
  staging_ = {};
  auto block = pool_->take(Bytes{bytes});
  if (!block.ok()) throw Failure(block.status());
  staging_ = std::move(*block);
}

// Of messages in streams the check is the same; they go by the stream that the buffer came with.
void Session::send(std::size_t offset, std::size_t bytes) {
  if (options_.stream()) return send_on(reinterpret_cast<void*>(buffer_.queue), offset, bytes, kDataTag);
  ist_buffer source = at(offset);
  if (stages()) {
    grow_staging(bytes);
    must(ist_memory_copy(world_, ist_host(staging_.data()), source, bytes), "ist_memory_copy");
    source = ist_host(staging_.data());
  }
  must(ist_send(source, static_cast<std::int64_t>(bytes), IST_BYTE, other(), kDataTag, comm_), "ist_send");
}

void Session::prepare_on(void* stream, int tag) {
  must(ist_prepare_on(stream, other(), tag, IST_SENDS + IST_RECEIVES, comm_), "ist_prepare_on");
}

void Session::send_on(void* stream, std::size_t offset, std::size_t bytes, int tag) {
  must(ist_send_on(stream, at(offset), static_cast<std::int64_t>(bytes), IST_BYTE, other(), tag, comm_), "ist_send_on");
}

void Session::receive_on(void* stream, std::size_t offset, std::size_t bytes, int tag) {
  must(ist_recv_on(stream, at(offset), static_cast<std::int64_t>(bytes), IST_BYTE, other(), tag, comm_), "ist_recv_on");
}

void Session::receive(std::size_t offset, std::size_t bytes) {
  if (options_.stream()) return receive_on(reinterpret_cast<void*>(buffer_.queue), offset, bytes, kDataTag);
  if (stages()) grow_staging(bytes);
  const ist_buffer target = stages() ? ist_host(staging_.data()) : at(offset);
  must(ist_recv(target, static_cast<std::int64_t>(bytes), IST_BYTE, other(), kDataTag, comm_, statuses_.data()), "ist_recv");
  carrier_ = statuses_[0].carrier;
  if (stages()) must(ist_memory_copy(world_, at(offset), target, bytes), "ist_memory_copy");
}

// By hand, each message has a place of its own in host memory, so that the copy of one may run beside the message before it.
void Session::start_sends(int count, std::size_t stride, std::size_t bytes) {
  const bool staged = stages();
  const int to = other();
  for (int n = 0; n < count; ++n) {
    const auto index = static_cast<std::size_t>(n);
    ist_buffer source = at(index * stride);
    if (staged) {
      const ist_buffer stage = ist_host(staging_.data() + index * bytes);
      must(ist_memory_copy(world_, stage, source, bytes), "ist_memory_copy");
      source = stage;
    }
    must(ist_isend(source, static_cast<std::int64_t>(bytes), IST_BYTE, to, kDataTag, comm_, &requests_[index]), "ist_isend");
  }
}

void Session::start_receives(int count, std::size_t stride, std::size_t bytes, const Into& into) {
  const bool staged = stages();
  const int from = other();
  for (int n = 0; n < count; ++n) {
    const auto index = static_cast<std::size_t>(n);
    const ist_buffer target =
        staged ? ist_host(staging_.data() + into.stage + index * bytes) : at(into.offset + index * stride);
    must(ist_irecv(target, static_cast<std::int64_t>(bytes), IST_BYTE, from, kDataTag, comm_,
                   &requests_[into.request + index]),
         "ist_irecv");
  }
}

void Session::finish_receives(int count, std::size_t stride, std::size_t bytes, const Into& into) {
  if (!stages()) {
    must(ist_waitall(count, &requests_[into.request], statuses_.data()), "ist_waitall");
  } else {
    for (int n = 0; n < count; ++n) {
      const auto index = static_cast<std::size_t>(n);
      must(ist_wait(&requests_[into.request + index], &statuses_[index]), "ist_wait");
      must(ist_memory_copy(world_, at(into.offset + index * stride), ist_host(staging_.data() + into.stage + index * bytes),
                           bytes),
           "ist_memory_copy");
    }
  }
  carrier_ = statuses_[static_cast<std::size_t>(count) - 1].carrier;
}

void Session::send_window(int count, std::size_t stride, std::size_t bytes) {
  if (stages()) grow_staging(bytes * static_cast<std::size_t>(count));
  start_sends(count, stride, bytes);
  must(ist_waitall(count, requests_.data(), statuses_.data()), "ist_waitall");
}

void Session::receive_window(int count, std::size_t stride, std::size_t bytes) {
  if (stages()) grow_staging(bytes * static_cast<std::size_t>(count));
  start_receives(count, stride, bytes, {});
  finish_receives(count, stride, bytes, {});
}

void Session::exchange_window(int count, std::size_t stride, std::size_t bytes) {
  const auto messages = static_cast<std::size_t>(count);
  if (stages()) grow_staging(2 * bytes * messages);
  const Into into{recv_offset_, bytes * messages, kWindow};
  start_receives(count, stride, bytes, into);
  start_sends(count, stride, bytes);
  finish_receives(count, stride, bytes, into);
  must(ist_waitall(count, requests_.data(), statuses_.data()), "ist_waitall");
}

void Session::tell_bytes(const void* data, std::size_t bytes) {
  must(ist_send(ist_host(data), static_cast<std::int64_t>(bytes), IST_BYTE, other(), kTalkTag, comm_), "ist_send");
}

void Session::hear_bytes(void* data, std::size_t bytes) {
  must(ist_recv(ist_host(data), static_cast<std::int64_t>(bytes), IST_BYTE, other(), kTalkTag, comm_, IST_STATUS_IGNORE),
       "ist_recv");
}

void Session::meet_asleep() {
  ist_request request = IST_REQUEST_NULL;
  must(ist_ibarrier(comm_, &request), "ist_ibarrier");
  for (int completed = 0; completed == 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    must(ist_test(&request, &completed, IST_STATUS_IGNORE), "ist_test");
  }
}

}  // namespace ist::cli
