// What the contract tests share: the loaded kinds, random bytes, and copies that are compared with every byte.
//
// Who calls this : every test of this folder.
// Threads        : any.
// Ownership      : the kinds live as long as the program.
// Errors         : a failed step throws, and so ends the test with its text.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/kinds.hpp"

namespace ist::test {

using Data = std::vector<std::uint8_t>;

// Everything that loads on this machine.
const Kinds& kinds();

// One kind on one of its devices.
struct Place {
  KindId kind;
  int device;
  MemoryKind& get() const { return *kinds().find(kind); }
};
std::string name_of(const Place& place);
std::ostream& operator<<(std::ostream& out, const Place& place);
std::vector<Place> all_places();

// True where longer sets are wanted (ISTHMUS_TEST_LONG=1).
bool long_tests();

// Bytes that no other call of this run has given.
Data random_bytes(std::uint64_t size);

inline void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}
template <class T>
T must(Result<T> result) {
  must(result.status());
  return std::move(result).value();
}

// Steps until the ticket has finished; fails after ten seconds.
void wait(Ticket& ticket);
inline void wait(Ticket&& ticket) { wait(ticket); }

// Memory of a place, released at the end of the scope.
class Memory {
 public:
  Memory(const Place& place, std::uint64_t size)
      : kind_(place.get()), piece_(must(kind_.allocate(place.device, Bytes{size}))) {}
  Memory(Memory&& other) noexcept : kind_(other.kind_), piece_(std::exchange(other.piece_, Piece{})) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (piece_.object == 0) return;
    EXPECT_TRUE(kind_.release(piece_).ok());
  }
  const Piece& piece() const { return piece_; }
  Piece part(std::uint64_t from, std::uint64_t size) const { return piece_.part(Offset{from}, Bytes{size}); }

 private:
  MemoryKind& kind_;
  Piece piece_;
};

// Both wait until the bytes have arrived. They do not wait for the piece's queue.
void write(const Piece& to, const Data& bytes);
Data read(const Piece& from);
// Between any two pieces, staged where it must be; waits for their queues, and until the bytes have arrived.
void transfer(const Piece& to, const Piece& from);

}  // namespace ist::test
