// The operations of a world by their ids, and the receives that need less than an operation.
//
// Who calls this : request/engine alone.
// Threads        : under the world's lock.
// Ownership      : the table owns operations; an id names one until it is released, and never another one by mistake.
// Errors         : find() is null for an id that was released.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "request/operation.hpp"

namespace ist {

// A receive into host memory, from its start to its end, while nothing about it is out of the ordinary: one line, all that is
// touched of it. Whoever asks the table for the operation of that id has one made of it, and it is plain no longer.
struct alignas(64) PlainReceive {
  enum class Stage : std::uint8_t {
    free,    // the id names nothing
    whole,   // an Operation has it
    posted,  // no message yet
    done     // its message has come, in a slot, whole
  };
  std::uint64_t generation = 0;
  std::byte* buffer = nullptr;
  Bytes room;
  Bytes bytes;              // of the message
  std::int32_t source = 0;  // that was asked for (any: -1), or matched
  std::int32_t tag = 0;     // of the message
  const Group* group =
      nullptr;  // of the communicator, which lives, or keep() has made an operation of it; null: the world's
  std::uint32_t next_free = 0;
  Stage stage = Stage::free;
};
static_assert(sizeof(PlainReceive) == 64 && std::is_trivially_destructible_v<PlainReceive>);

class OperationTable {
 public:
  using Stage = PlainReceive::Stage;

  // Ids of one world are no ids of the next one in its place: generations begin at a time of day.
  // `listed`: always has room for the index of every operation, so that none is forgotten where memory runs out.
  explicit OperationTable(std::vector<std::uint32_t>* listed = nullptr)
      : listed_(listed),
        first_generation_(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) >> 10 &
                          ((std::uint64_t{1} << 35) - 1)) {}
  // Null where there are too many.
  OperationId add() {
    OperationId id;
    if (first_free_ == kMost && !grow()) return id;
    take_first(id).stage = Stage::whole;
    ++whole_;
    return id;
  }
  // Would add() give one?
  bool has_room() { return first_free_ != kMost || grow(); }
  // As add(), of a receive that is posted; the caller fills in what it waits for. Also null where the table would have to grow.
  PlainReceive* add_plain(OperationId& id) {
    if (first_free_ == kMost) [[unlikely]]
      return nullptr;
    PlainReceive& line = take_first(id);
    line.stage = Stage::posted;
    return &line;
  }
  Operation* find(OperationId id) { return find_line(id) != nullptr ? &at(id.index()) : nullptr; }
  // The line of whatever the id names, plain or not.
  PlainReceive* find_line(OperationId id) {
    if (id.index() >= size_) [[unlikely]]
      return nullptr;
    PlainReceive& line = lines_[id.index()];
    return line.generation == id.value >> 20 && line.stage != Stage::free ? &line : nullptr;
  }
  // The line of a receive that is plain and has its message.
  PlainReceive* find_done(OperationId id) {
    if (id.index() >= size_) [[unlikely]]
      return nullptr;
    PlainReceive& line = lines_[id.index()];
    return line.generation == id.value >> 20 && line.stage == Stage::done ? &line : nullptr;
  }
  // By the 32 bits that travelled; null if that operation is over.
  Operation* find_wire(std::uint32_t wire) {
    const std::uint32_t index = wire & 0xfffff;
    if (index >= size_ || lines_[index].stage == Stage::free) return nullptr;
    return (lines_[index].generation & 0xfff) == wire >> 20 ? &at(index) : nullptr;
  }
  OperationId id_of(std::uint32_t index) const { return {lines_[index].generation << 20 | index}; }
  void release(std::uint32_t index) {
    if (lines_[index].stage == Stage::whole) {
      operations_[index]->clear();
      --whole_;
    }
    release_plain(lines_[index], index);
  }
  // The same of one that has never been more.
  void release_plain(PlainReceive& line, std::uint32_t index) {
    const std::uint64_t next = (line.generation + 1) & ((std::uint64_t{1} << 36) - 1);
    line.generation = next == 0 ? 1 : next;
    line.stage = Stage::free;
    line.next_free = first_free_;
    first_free_ = index;
    --used_;
  }
  bool empty() const { return used_ == 0; }
  // Are all of them plain?
  bool all_plain() const { return whole_ == 0; }
  bool used(std::uint32_t index) const { return lines_[index].stage != Stage::free; }
  // Those that are posted, until one is added: by the 32 bits of one; null if it is not plain.
  struct PostedOnes {
    PlainReceive* lines;
    PlainReceive* find(std::uint32_t wire) const {
      PlainReceive& line = lines[wire & 0xfffff];
      return line.stage == Stage::posted ? &line : nullptr;
    }
  };
  PostedOnes posted() { return {lines_.data()}; }
  Operation& at(std::uint32_t index) {
    if (lines_[index].stage > Stage::whole) make_whole(index);
    return *operations_[index];
  }
  // Null: nothing, or a plain one.
  Operation* whole_at(std::uint32_t index) {
    return lines_[index].stage == Stage::whole ? operations_[index].get() : nullptr;
  }
  std::uint32_t size() const { return size_; }
  // The communicator of that group goes: what was started on it remembers it from now on.
  void keep(const Group* group);

 private:
  static constexpr std::uint32_t kMost = 1U << 20;

  PlainReceive& take_first(OperationId& id) {
    PlainReceive& line = lines_[first_free_];
    id = {line.generation << 20 | first_free_};
    first_free_ = line.next_free;
    ++used_;
    return line;
  }
  [[gnu::noinline, gnu::cold]] bool grow();
  [[gnu::noinline, gnu::cold]] void make_whole(std::uint32_t index);

  std::vector<std::uint32_t>* listed_;
  std::uint64_t first_generation_;
  std::vector<PlainReceive> lines_;
  std::vector<std::unique_ptr<Operation>> operations_;  // addresses stay
  std::uint32_t size_ = 0;
  std::uint32_t first_free_ = kMost;  // none
  std::uint32_t used_ = 0;
  std::uint32_t whole_ = 0;
};

}  // namespace ist
