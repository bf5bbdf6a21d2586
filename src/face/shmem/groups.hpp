// Some of the PEs, and how they wait for each other.
//
// Who calls this : collectives, teams, ordering.
// Threads        : one at a time per slot and PE, which InCall sees to where several share a slot.
// Ownership      : none; counters are in the heap (world.hpp).
// Errors         : by fail(), when a PE died or left.
//
// Each PE counts, at each other PE and for each slot, how often it has arrived there; who waits for it knows how often it has to have.
// Two PEs need to agree on nothing but the order of what they do together, so that groups of any members need no words of their own.
#pragma once

#include "face/shmem/world.hpp"

namespace ist::shmem {

struct Group {
  int start = 0;
  int stride = 1;
  int size = 0;
  int me = -1;  // this PE's index
  int slot = kWorldSlot;
  int at(int index) const { return start + index * stride; }
  // -1: not a member.
  int index_of(int pe) const {
    const int distance = pe - start;
    if (size == 1) return distance == 0 ? 0 : -1;
    if (stride == 0 || distance % stride != 0) return -1;
    const int index = distance / stride;
    return index >= 0 && index < size ? index : -1;
  }
};

// While it lives, this thread is inside a call on a group's words. False: it is not, and fail() was called, since another thread of this
// PE is inside one on words that several teams, or several pSync arrays, share; or remember() was, since this thread itself is, and its
// handler of errors makes the call.
class InCall {
 public:
  InCall(const char* call, const Group& group);
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  std::atomic<const void*>* shared_ = nullptr;  // null: the words are the group's own
  bool entered_ = true;
};

void reset_groups();
void drop_groups();

// What was written before is there for whom awaited it.
void arrive(const Group& group, int index);
bool await(const char* call, const Group& group, int index);
// All have called. False: fail() was called.
bool sync(const char* call, const Group& group);

// The group of a call that names an active set; size 0, and fail() was called, where there is none such.
Group active_group(const char* call, int start, int log_stride, int size, const long* words);

}  // namespace ist::shmem
