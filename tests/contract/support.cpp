#include "support.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "memory/transfer.hpp"

namespace ist::test {

const Kinds& kinds() {
  // Never destroyed: drivers do not like to be called while the program ends.
  static const Kinds* loaded = must(Kinds::load("all")).release();
  return *loaded;
}

std::string name_of(const Place& place) { return std::string{place.get().name()} + "_" + std::to_string(place.device); }

std::ostream& operator<<(std::ostream& out, const Place& place) { return out << name_of(place); }

std::vector<Place> all_places() {
  std::vector<Place> places;
  for (const auto& kind : kinds().all())
    for (const DeviceInfo& device : kind->devices()) places.push_back({kind->id(), device.ordinal});
  return places;
}

bool long_tests() {
  const char* wanted = std::getenv("ISTHMUS_TEST_LONG");
  return wanted && std::string_view{wanted} == "1";
}

Data random_bytes(std::uint64_t size) {
  static std::atomic<std::uint64_t> state{std::random_device{}()};
  std::mt19937_64 engine{state.fetch_add(0x9E3779B97F4A7C15)};
  Data data(size + 7);
  for (std::size_t i = 0; i + 8 <= data.size(); i += 8) {
    const std::uint64_t word = engine();
    std::memcpy(&data[i], &word, sizeof word);
  }
  data.resize(size);
  return data;
}

void wait(Ticket& ticket) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!ticket.empty()) {
    if (must(ticket.kind()->finished(ticket))) {
      if (!ticket.empty()) throw std::runtime_error("a finished ticket is not empty");
      return;
    }
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("a ticket has not finished within 10 s");
    std::this_thread::yield();
  }
}

namespace {

void copy_and_wait(const Piece& to, const Piece& from) {
  MemoryKind* copier = kinds().copier(to, from);
  if (!copier) throw std::runtime_error("no kind copies this pair directly");
  wait(must(copier->copy(to, from, Ticket{})));
}

}  // namespace

void write(const Piece& to, const Data& bytes) {
  if (to.size.value != bytes.size()) throw std::runtime_error("sizes differ");
  copy_and_wait(to, host_piece(bytes.data(), to.size));
}

Data read(const Piece& from) {
  Data bytes(from.size.value, 0xEE);
  copy_and_wait(host_piece(bytes.data(), from.size), from);
  return bytes;
}

void transfer(const Piece& to, const Piece& from) {
  static auto* pool = new PinnedPool{kinds(), mebibytes(4)};  // as long as the kinds
  Transfer copy{kinds(), *pool, to, from};
  while (!must(copy.step())) std::this_thread::yield();
}

}  // namespace ist::test
