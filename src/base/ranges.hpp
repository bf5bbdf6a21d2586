// Ranges of time with a name, which tools such as nsys show beside what the devices do (NVTX). Nothing where no tool is there.
//
// Who calls this : the C calls that move bytes or wait, and copies of devices; a world's creation looks whether a tool is there.
// Threads        : any; a range ends on the thread that began it, and lies within those that began before it.
// Ownership      : names are literals.
// Errors         : none.
#pragma once

#include <atomic>

namespace ist {

namespace ranges {
// Was NVTX there when this was built?
bool compiled();
// From now on ranges are told, if a tool has put itself into this process. Such a tool names itself before the process starts.
void look_for_tool();
void push(const char* name);
void pop();
extern std::atomic<bool> told;
}  // namespace ranges

// From here to the end of the block.
class Range {
 public:
  // Is a tool there? The short ways of small messages have no range, since that alone would lengthen them, and are not taken then.
  static bool told() { return ranges::told.load(std::memory_order_relaxed); }
  explicit Range(const char* name) : told_(told()) {
    if (told_) [[unlikely]]
      ranges::push(name);
  }
  ~Range() {
    if (told_) [[unlikely]]
      ranges::pop();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  const bool told_;
};

}  // namespace ist
