#include <isthmus/halo.hpp>

#include <vector>

#include "exchange_parts.hpp"

namespace stencil {
namespace {

// What a program writes that leaves packing and neighbours to the library: one exchange along rows, of which every column takes part, and one along columns, of which every row
// does, corners and what lies at walls with them.
class HaloExchange final : public Exchange {
 public:
  explicit HaloExchange(const Parts& parts) : parts_(parts), grid_(parts.comm, dims_of(parts), std::array{0, 0}) {
    const Extent padded = parts_.layout.padded();
    for (const bool along_rows : {true, false}) {
      const std::array ranges{range(padded.rows, along_rows), range(padded.columns, !along_rows)};
      const std::array now{field(ranges)};
      halos_.emplace_back(grid_, now);
      ranges_.push_back(ranges);
    }
  }

  void fill_halos() override {
    for (std::size_t n = 0; n < halos_.size(); ++n) {
      // Old and new field take turns.
      const std::array now{field(ranges_[n])};
      halos_[n].set_fields(now);
      halos_[n].update();
    }
  }

 private:
  using Ranges = std::array<isthmus::HaloRange, 2>;

  // From one rank to the one below it are as many as a row of the grid has.
  static std::array<int, 2> dims_of(const Parts& parts) {
    const int rank = parts.comm.rank(), size = parts.comm.size();
    const int north = parts.tile.neighbour(Side::north), south = parts.tile.neighbour(Side::south);
    const int columns = south != Tile::wall ? south - rank : north != Tile::wall ? rank - north : size;
    return {size / columns, columns};
  }
  isthmus::HaloRange range(std::int64_t length, bool exchanged) const {
    const std::int64_t width = exchanged ? parts_.layout.halo : 0;
    return {width, width, width, length - width - 1, length};
  }
  isthmus::HaloField field(const Ranges& ranges) const {
    const Place all{false, 0, parts_.layout.field_bytes()};
    return {parts_.backend.at(all), static_cast<std::int64_t>(parts_.layout.element()), ranges};
  }

  Parts parts_;
  isthmus::HaloGrid grid_;
  std::vector<Ranges> ranges_;
  std::vector<isthmus::Halo> halos_;
};

}  // namespace

std::unique_ptr<Exchange> make_halo_exchange(const Parts& parts) { return std::make_unique<HaloExchange>(parts); }

}  // namespace stencil
