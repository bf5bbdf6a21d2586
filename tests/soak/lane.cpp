#include "lane.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace soak {
namespace {

constexpr unsigned char kPoison = 0xa5;

void CUDA_CB sleep_in_stream(void* microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds{reinterpret_cast<std::uintptr_t>(microseconds)});
}

}  // namespace

std::size_t some_size(Dice& dice, std::size_t most) {
  static const std::vector<std::size_t> borders{0,       1,       7,       8,       24,      25,      215,    216,
                                                217,     4095,    4096,    4097,    8191,    8192,    8193,   16383,
                                                16384,   16385,   65535,   65536,   65537,   262143,  262144, 262145,
                                                1048575, 1048576, 1048577, 2097151, 2097152, 2097153, 4194305};
  const std::uint64_t roll = dice.below(100);
  std::size_t size = 0;
  if (roll < 45) {
    size = dice.of(borders);
  } else {
    // As many between 1 and 2 bytes as between 1 and 2 MiB.
    const std::uint64_t bits = dice.below(23);
    size = (std::size_t{1} << bits) + dice.below(std::uint64_t{1} << bits);
  }
  // Long ones take most of the time; three in four of them become short.
  if (size > (256 << 10) && !dice.one_in(4)) size = dice.below(20000);
  return std::min(size, most);
}

std::vector<unsigned char> sum_of(int ranks, const std::function<std::vector<unsigned char>(int rank)>& numbers_of) {
  std::vector<unsigned char> sum = numbers_of(0);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<unsigned char> more = numbers_of(rank);
    for (std::size_t at = 0; at + 8 <= sum.size(); at += 8) {
      std::uint64_t total = 0;
      std::uint64_t value = 0;
      std::memcpy(&total, &sum[at], 8);
      std::memcpy(&value, &more[at], 8);
      total += value;
      std::memcpy(&sum[at], &total, 8);
    }
  }
  return sum;
}

Lane::Lane(Rank& rank, Tally& tally, int number, const char* kind)
    : rank_(rank), tally_(tally), number_(number), kind_(kind), shelf_(rank.place) {}

void Lane::run(std::uint64_t round) {
  round_ = round;
  if (rank_.place.device >= 0) {
    SOAK_CUDA(cuCtxSetCurrent, rank_.place.context);
    stream_ = std::make_unique<UserStream>();
  }
  step_ = 0;
  working("beginning");
  begin();
  for (step_ = 0; step_ < rank_.options.steps; ++step_) {
    step(step_);
    if (stream_) stream_->wait();
    staged_.clear();
  }
  shelf_.clear();
  stream_.reset();
  progress_.set({});
}

void Lane::working(const std::string& what) {
  progress_.set(std::string{kind_} + " lane " + std::to_string(number_) + ", round " + std::to_string(round_) + ", step " +
                std::to_string(step_) + ": " + what);
}

std::uint64_t Lane::seed_of(std::uint64_t step, int sender, std::uint64_t message) const {
  return hash(
      {rank_.options.seed, round_, static_cast<std::uint64_t>(number_), step, static_cast<std::uint64_t>(sender), message});
}

Lane::Held Lane::hold(Class of, std::size_t room, Dice& dice, std::size_t aligned) {
  static const std::vector<std::size_t> shifts{0, 0, 0, 1, 3, 8, 16, 61};
  const std::size_t offset = kGuard + dice.of(shifts) / aligned * aligned;
  return {shelf_.take(of, offset + room + kGuard, dice), offset, room};
}

void Lane::put(const Held& held, const std::vector<unsigned char>& bytes, std::size_t at, bool later) {
  if (bytes.empty()) return;
  const ist_buffer to = held.memory->at(at, stream());
  if (later && on_device(held.memory->of())) {
    const std::uintptr_t microseconds = 50 + bytes.size() % 700;
    SOAK_CUDA(cuLaunchHostFunc, stream(), sleep_in_stream, reinterpret_cast<void*>(microseconds));
    SOAK_CUDA(cuMemcpyAsync, to.object, reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size(), stream());
    return;
  }
  SOAK_IST(ist_memory_copy, rank_.place.world, to, ist_host(bytes.data()), bytes.size());
}

void Lane::fill(const Held& held, std::size_t bytes, std::uint64_t seed, bool later) {
  std::vector<unsigned char>& made = staged_.emplace_back(bytes);
  make_bytes(made.data(), bytes, seed);
  put(held, made, held.offset, later);
}

void Lane::poison(const Held& held, bool later) {
  put(held, staged_.emplace_back(held.offset + held.room + kGuard, kPoison), 0, later);
}

bool Lane::check(const Held& held, std::size_t bytes, std::uint64_t seed, const std::string& what, const std::string& kind) {
  std::vector<unsigned char> message(bytes);
  make_bytes(message.data(), bytes, seed);
  return check_against(held, message, what, kind);
}

bool Lane::check_against(const Held& held, const std::vector<unsigned char>& message, const std::string& what,
                         const std::string& kind) {
  std::vector<unsigned char> found(held.offset + held.room + kGuard);
  SOAK_IST(ist_memory_copy, rank_.place.world, ist_host(found.data()), held.memory->at(0, stream()), found.size());
  std::vector<unsigned char> wanted(found.size(), kPoison);
  std::copy(message.begin(), message.end(), wanted.begin() + static_cast<std::ptrdiff_t>(held.offset));
  if (tally_.next_compared() == rank_.options.spoil) found[held.offset + message.size() / 2] ^= 1;
  tally_.add(kind, message.size());
  if (found == wanted) return true;
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = found.size(); i-- > 0;) {
    if (found[i] == wanted[i]) continue;
    ++wrong;
    first = i;
  }
  tally_.mismatch();
  const Options& options = rank_.options;
  std::string text = "MISMATCH on rank " + std::to_string(rank_.rank) + ", " + kind_ + " lane " + std::to_string(number_) +
                     ", round " + std::to_string(round_) + ", step " + std::to_string(step_) + ": " + what + ", " +
                     std::to_string(message.size()) + " bytes: " + std::to_string(wrong) + " wrong, the first is byte " +
                     std::to_string(static_cast<std::ptrdiff_t>(first) - static_cast<std::ptrdiff_t>(held.offset)) +
                     " of the message (negative or beyond its end: beside it), " + std::to_string(found[first]) +
                     " in place of " + std::to_string(wanted[first]) + "\n  that round again: --seed " +
                     std::to_string(options.seed) + " --first-round " + std::to_string(round_) + " --rounds 1 --lanes " +
                     std::to_string(options.lanes) + " --steps " + std::to_string(options.steps) + " --most " +
                     std::to_string(options.most) + "\n";
  std::fputs(text.c_str(), stderr);
  return false;
}

}  // namespace soak
