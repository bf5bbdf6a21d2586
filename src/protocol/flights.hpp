// Copies in flight, in their order, in places that are made beforehand: who has taken a slot of a ring has one for what is in it, also where
// memory runs out.
//
// Who calls this : ring_sender.cpp, ring_receiver.cpp.
// Threads        : as its caller.
// Ownership      : owns what is in flight.
// Errors         : none; one more than were asked for is the caller's mistake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ist {

template <class Flight>
class Flights {
 public:
  explicit Flights(std::uint64_t most) : places_(most > 0 ? most : 1) {}
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == places_.size(); }
  Flight& front() { return places_[first_]; }
  void push_back(Flight&& flight) { places_[place(count_++)] = std::move(flight); }
  void pop_front() {
    places_[first_] = Flight{};
    first_ = place(1);
    --count_;
  }
  template <class Each>
  void each(const Each& each) {
    for (std::size_t i = 0; i < count_; ++i) each(places_[place(i)]);
  }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  std::size_t place(std::size_t behind) const {
    const std::size_t at = first_ + behind;
    return at < places_.size() ? at : at - places_.size();
  }
  std::vector<Flight> places_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ist
