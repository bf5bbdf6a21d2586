#include <algorithm>
#include <vector>

#include "exchange_parts.hpp"
#include "isthmus/heap.hpp"

namespace stencil {
namespace {

// Strips are put into the neighbours' symmetric memory, each with a signal, and nobody answers. A neighbour can be one exchange ahead, and
// no further, since it waits for this rank's strip of the one before: so there are two boxes for each side, which take turns.
class OneSidedExchange final : public Exchange {
 public:
  explicit OneSidedExchange(const Parts& parts) : parts_(parts), box_(largest_strip(parts)), heap_(heap_for(parts, box_)) {
    boxes_ = heap_.alloc<std::byte>(box_ * sides.size() * 2, 256);
    signals_ = heap_.calloc<std::uint64_t>(sides.size());
  }

  void fill_halos() override {
    ++exchanges_;
    fill_halos_by(parts_, [this](const Pair& pair) { transfer(pair); });
  }

 private:
  // Every rank's boxes are alike, also where tiles are not.
  static std::uint64_t largest_strip(const Parts& parts) {
    std::vector<std::uint64_t> mine{0}, largest{0};
    for (const Side side : sides) mine[0] = std::max<std::uint64_t>(mine[0], parts.layout.strip(side, Direction::in).bytes);
    parts.comm.allreduce(mine, largest, isthmus::op::max);
    return (largest[0] + 255) / 256 * 256;
  }
  static isthmus::Heap heap_for(const Parts& parts, std::uint64_t box) {
    const auto kind = parts.backend.kind() == "cuda" ? isthmus::Kind::cuda : isthmus::Kind::host;
    return {parts.comm, kind, box * sides.size() * 2 + 4096};
  }
  void transfer(const Pair& pair) {
    parts_.for_neighbours(pair, [&](Side side, int neighbour) {
      const Place out = parts_.layout.strip(side, Direction::out);
      heap_.put_signal(box(opposite(side)), parts_.backend.at(out), out.bytes, signal(opposite(side)), exchanges_,
                       neighbour);
    });
    parts_.for_neighbours(pair, [&](Side side, int) {
      const Place in = parts_.layout.strip(side, Direction::in);
      heap_.wait_until(signal(side), isthmus::Compare::greater_equal, exchanges_);
      heap_.get(parts_.backend.at(in), box(side), in.bytes, heap_.pe());
    });
  }
  // What comes from that side.
  std::byte* box(Side side) const { return boxes_ + (static_cast<std::size_t>(side) * 2 + exchanges_ % 2) * box_; }
  std::uint64_t* signal(Side side) const { return signals_ + static_cast<std::size_t>(side); }

  Parts parts_;
  std::uint64_t box_;
  isthmus::Heap heap_;  // goes with its world: that nobody puts into it any more, all ranks would have to agree on
  std::byte* boxes_ = nullptr;
  std::uint64_t* signals_ = nullptr;
  std::uint64_t exchanges_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_one_sided_exchange(const Parts& parts) { return std::make_unique<OneSidedExchange>(parts); }

}  // namespace stencil
