#include "cli/bench_session.hpp"

#include <isthmus/stream.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "cli/bench_room.hpp"
#include "cli/failure.hpp"
#include "face/message/handles.hpp"

namespace ist::cli {
namespace {

// What one rank tells the others about its preparation.
struct Report {
  std::array<char, 1000> error;  // empty: prepared
  int device;
  int result_device;
};

}  // namespace

Session::Session(const BenchOptions& options, const char* settings) : options_(options) {
  must(ist_world_create_configured(settings, &world_), "ist_world_create");
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
  result_places_ = places_;
  if (options.into) result_places_.assign(places_.size(), *options.into);
}

Session::~Session() {
  staging_ = {};
  lane_.reset();
  if (beside_.object != 0) ist_memory_free(world_, beside_);
  for (RankBuffer* one : {result_.get(), buffer_.get()})
    if (one != nullptr) one->give_back();
  if (world_ != IST_WORLD_NULL) ist_world_destroy(&world_);
}

void Session::prepare(const Settings& settings) {
  // Before any rank takes some.
  const std::uint64_t there = from_first(free_host_bytes());
  Report mine{};
  try {
    must_have_room(options_, size(), there);
    take_memory(settings);
  } catch (const Failure& failure) {
    std::strncpy(mine.error.data(), failure.what(), mine.error.size() - 1);
  }
  mine.device = place(rank_).device;
  mine.result_device = result_place(rank_).device;
  const auto reports = from_all(std::span<const Report>{&mine, 1});
  for (std::size_t r = 0; r < reports.size(); ++r) {
    places_[r].device = reports[r].device;
    result_places_[r].device = reports[r].result_device;
  }
  for (const Report& report : reports)
    if (report.error[0] != '\0') throw Failure(1, rank_ == 0 ? report.error.data() : "");
}

void Session::choose_device(Place& place, int local_rank) const {
  int devices = 0;
  must(ist_kind_devices(world_, place.kind, &devices), place.word.c_str());
  if (place.device >= devices)
    throw Failure(2, place.text() + " is not there: this machine has " + std::to_string(devices) + " device(s) of kind " +
                         place.kind_name());
  if (place.device == Place::kAnyDevice) place.device = place.on_device() ? local_rank % std::max(devices, 1) : 0;
}

void Session::take_memory(const Settings& settings) {
  auto kinds = Kinds::load(settings);
  if (!kinds.ok()) throw Failure(kinds.status());
  kinds_ = std::move(kinds).value();
  Place& place = places_[static_cast<std::size_t>(rank_)];
  Place& result_place = result_places_[static_cast<std::size_t>(rank_)];
  int local_rank = 0;
  must(ist_comm_local_rank(comm_, &local_rank), "ist_comm_local_rank");
  choose_device(place, local_rank);
  choose_device(result_place, local_rank);
  const BufferLayout layout = layout_of(options_, size());
  capacity_ = layout.capacity;
  recv_offset_ = layout.recv_offset;
  const Bytes by_hand = stages() ? PinnedPool::rounded(Bytes{staging_bytes(options_, size())}) : Bytes{};
  pool_ = std::make_unique<PinnedPool>(*kinds_, std::max(settings.pinned_pool_limit, by_hand));
  buffer_ = std::make_unique<RankBuffer>(world_, *kinds_, place, layout.whole, local_rank);
  named_ = buffer_->named(options_);
  if (layout.result != 0) {
    result_ = std::make_unique<RankBuffer>(world_, *kinds_, result_place, layout.result, local_rank);
    named_result_ = result_->named(options_);
  }
  if (options_.ordered()) open_lane(place, local_rank);
}

// Memory of the host has no queue of its own: that of some memory beside it is taken.
void Session::open_lane(const Place& place, int local_rank) {
  std::uint64_t handle = buffer_->buffer().queue;
  if (options_.queue() && place.kind != IST_KIND_OPENCL) {
    int devices = 0;
    must(ist_kind_devices(world_, IST_KIND_OPENCL, &devices), "opencl");
    if (devices == 0) throw Failure(2, "messages in queues need an OpenCL device, and none was found: see isthmus info");
    must(ist_memory_alloc(world_, IST_KIND_OPENCL, local_rank % devices, 1, &beside_), "ist_memory_alloc");
    handle = beside_.queue;
  }
  lane_ = Lane::open(options_, place, reinterpret_cast<void*>(handle));  // NOLINT(performance-no-int-to-ptr)
}

void Session::write(std::span<const std::byte> bytes, std::size_t offset) {
  must(ist_memory_copy(world_, at(offset), ist_host(bytes.data()), bytes.size()), "ist_memory_copy");
}

void Session::read(std::span<std::byte> bytes, std::size_t offset) {
  must(ist_memory_copy(world_, ist_host(bytes.data()), at(offset), bytes.size()), "ist_memory_copy");
}

void Session::write_lines(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  auto* const first = reinterpret_cast<unsigned char*>(named_.object);
  for (std::size_t at = 0; at < bytes; at += kLine) ++first[at];
}

std::string Session::path_name(int carrier) const {
  const bool by_hand = options_.staged && (places_.front().on_device() || places_.back().on_device());
  return std::string{by_hand ? "staged+" : ""} + "shm/" + ist_carrier_name(carrier);
}

bool Session::stages() const { return options_.staged && places_[static_cast<std::size_t>(rank_)].on_device(); }

const CopyChoice& Session::copies() const { return look_up(world_)->world->engine().copies(); }

// Page-locked, as anybody would who stages by hand and cares.
void Session::grow_staging(std::size_t bytes) {
  if (staging_.size().value >= bytes) return;
  staging_ = {};
  auto block = pool_->take(Bytes{bytes});
  if (!block.ok()) throw Failure(block.status());
  staging_ = std::move(*block);
}

void Session::send(std::size_t offset, std::size_t bytes) {
  if (lane_) {
    put_send(offset, bytes);
    return lane_->wait();
  }
  ist_buffer source = at(offset);
  if (stages()) {
    grow_staging(bytes);
    must(ist_memory_copy(world_, ist_host(staging_.data()), source, bytes), "ist_memory_copy");
    source = ist_host(staging_.data());
  }
  const auto send = synchronous_ ? ist_ssend : ist_send;
  must(send(source, static_cast<std::int64_t>(bytes), IST_BYTE, other(), kDataTag, comm_), "ist_send");
}

void Session::put_send(std::size_t offset, std::size_t bytes) {
  must(lane_->send(at(offset), bytes, {other(), kDataTag, comm_}), "a send in the stream or queue");
}

void Session::put_receive(std::size_t offset, std::size_t bytes) {
  must(lane_->receive(at(offset), bytes, {other(), kDataTag, comm_}), "a receive in the stream or queue");
}

void Session::put_exchange(std::size_t from, std::size_t into, std::size_t bytes) {
  must(lane_->exchange(at(from), at(into), bytes, {other(), kDataTag, comm_}), "both in the stream or queue");
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
  if (lane_) {
    put_receive(offset, bytes);
    return lane_->wait();
  }
  if (stages()) grow_staging(bytes);
  const ist_buffer target = stages() ? ist_host(staging_.data()) : at(offset);
  must(ist_recv(target, static_cast<std::int64_t>(bytes), IST_BYTE, other(), kDataTag, comm_, statuses_.data()), "ist_recv");
  carrier_ = statuses_[0].carrier;
  if (stages()) must(ist_memory_copy(world_, at(offset), target, bytes), "ist_memory_copy");
}

// A buffer that was just put together word by word costs the call that it is copied into more than a message of 8 bytes takes
// (ist_make_buffer). Where all messages of a window have the same one, it is made before.
void Session::start_sends(int count, std::size_t stride, std::size_t bytes) {
  const int to = other();
  const ist_buffer same = at(0);
  const auto start = synchronous_ ? ist_issend : ist_isend;
  for (int n = 0; n < count; ++n) {
    const auto index = static_cast<std::size_t>(n);
    must(start(stride == 0 ? same : at(index * stride), static_cast<std::int64_t>(bytes), IST_BYTE, to, kDataTag, comm_,
               &requests_[index]),
         "ist_isend");
  }
}

void Session::start_receives(int count, std::size_t stride, std::size_t bytes, std::size_t first_request) {
  const int from = other();
  const ist_buffer same = at(recv_offset_);
  for (int n = 0; n < count; ++n) {
    const auto index = static_cast<std::size_t>(n);
    must(ist_irecv(stride == 0 ? same : at(recv_offset_ + index * stride), static_cast<std::int64_t>(bytes), IST_BYTE, from,
                   kDataTag, comm_, &requests_[first_request + index]),
         "ist_irecv");
  }
}

void Session::finish_receives(int count, std::size_t first_request) {
  must(ist_waitall(count, &requests_[first_request], statuses_.data()), "ist_waitall");
  carrier_ = statuses_[static_cast<std::size_t>(count) - 1].carrier;
}

// As many messages are under way as have a place of their own in host memory, so that the copy of one may run beside the message before
// it. Ranks that exchange take what has come before they wait for what they have sent.
void Session::window_by_hand(std::size_t messages, std::size_t stride, std::size_t bytes, const Ways& ways) {
  const std::size_t places = std::min(messages, places_by_hand(bytes));
  grow_staging((ways.out && ways.in ? 2 : 1) * places * bytes);
  std::byte* const theirs = staging_.data() + (ways.out ? places * bytes : 0);
  const auto elements = static_cast<std::int64_t>(bytes);
  const auto post = [&](std::size_t n) {
    must(ist_irecv(ist_host(theirs + n % places * bytes), elements, IST_BYTE, other(), kDataTag, comm_,
                   &requests_[kWindow + n]),
         "ist_irecv");
  };
  const auto finish = [&](std::size_t n) {
    must(ist_wait(&requests_[kWindow + n], &statuses_[n]), "ist_wait");
    must(ist_memory_copy(world_, at(recv_offset_ + n * stride), ist_host(theirs + n % places * bytes), bytes),
         "ist_memory_copy");
  };
  for (std::size_t n = 0; ways.in && n < places; ++n) post(n);
  for (std::size_t n = 0; n < messages; ++n) {
    if (ways.in && n >= places) {
      finish(n - places);
      post(n);
    }
    if (!ways.out) continue;
    if (n >= places) must(ist_wait(&requests_[n - places], IST_STATUS_IGNORE), "ist_wait");
    const ist_buffer stage = ist_host(staging_.data() + n % places * bytes);
    must(ist_memory_copy(world_, stage, at(n * stride), bytes), "ist_memory_copy");
    must(ist_isend(stage, elements, IST_BYTE, other(), kDataTag, comm_, &requests_[n]), "ist_isend");
  }
  for (std::size_t n = messages - places; ways.in && n < messages; ++n) finish(n);
  if (ways.in) carrier_ = statuses_[messages - 1].carrier;
  if (ways.out) must(ist_waitall(static_cast<int>(messages), requests_.data(), IST_STATUSES_IGNORE), "ist_waitall");
}

void Session::send_window(int count, std::size_t stride, std::size_t bytes) {
  const auto messages = static_cast<std::size_t>(count);
  if (lane_) {
    for (std::size_t n = 0; n < messages; ++n) put_send(n * stride, bytes);
    return lane_->wait();
  }
  if (stages()) return window_by_hand(messages, stride, bytes, {true, false});
  start_sends(count, stride, bytes);
  must(ist_waitall(count, requests_.data(), statuses_.data()), "ist_waitall");
}

void Session::receive_window(int count, std::size_t stride, std::size_t bytes) {
  const auto messages = static_cast<std::size_t>(count);
  if (lane_) {
    for (std::size_t n = 0; n < messages; ++n) put_receive(n * stride, bytes);
    return lane_->wait();
  }
  if (stages()) return window_by_hand(messages, stride, bytes, {false, true});
  start_receives(count, stride, bytes, 0);
  finish_receives(count, 0);
}

void Session::exchange_window(int count, std::size_t stride, std::size_t bytes) {
  const auto messages = static_cast<std::size_t>(count);
  if (lane_) {
    for (std::size_t n = 0; n < messages; ++n) put_exchange(n * stride, recv_offset_ + n * stride, bytes);
    return lane_->wait();
  }
  if (stages()) return window_by_hand(messages, stride, bytes, {true, true});
  start_receives(count, stride, bytes, kWindow);
  start_sends(count, stride, bytes);
  finish_receives(count, kWindow);
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
