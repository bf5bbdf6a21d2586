// Isthmus, C++ interface: halo exchange. Beside isthmus.hpp, which has the communicators.
//
// Who calls this : programs; over isthmus/halo.h, which says what each call means and what is collective.
// Threads        : as in C: different exchanges from different threads, the calls on one of them one at a time.
// Ownership      : HaloGrid and Halo are shared values, freed with their last copies, and keep their world; a one-sided exchange, which
//                  is freed collectively, by destroy() alone, or with its world.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_HALO_HPP
#define ISTHMUS_HALO_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "isthmus/halo.h"
#include "isthmus/request.hpp"

namespace isthmus {

class Comm;  // isthmus.hpp

// minus, plus, begin, end (both inclusive), total_length of one dimension: halo.h.
using HaloRange = ist_halo_range;

enum class HaloPacking : int {
  automatic = IST_HALO_AUTO,
  calls = IST_HALO_CALLS,
  layouts = IST_HALO_LAYOUTS,
  loops = IST_HALO_LOOPS
};
enum class HaloWay : int { messages = IST_HALO_MESSAGES, one_sided = IST_HALO_ONE_SIDED };

// reach: in how many dimensions at once a neighbour may lie; 0 all.
struct HaloOptions {
  int reach = 0;
  HaloPacking packing = HaloPacking::automatic;
  HaloWay way = HaloWay::messages;
};

// A grid of ranks. All but dims is in the order of the data's dimensions.
//
//   HaloGrid grid(world.comm(), std::array{0, 0}, std::array{1, 1});
class HaloGrid {
 public:
  // Collective. dims: of the grid's own dimensions, 0 for what is to be chosen. process_map: the grid's dimension for each of the data's.
  template <class Of>
  HaloGrid(const Of& comm, std::span<const int> dims, std::span<const int> periods, std::span<const int> process_map = {}) {
    if (periods.size() != dims.size() || (!process_map.empty() && process_map.size() != dims.size()))
      throw Error(IST_ERR_ARGUMENT, "HaloGrid() needs as many periods, and entries of a process map, as dims");
    auto owner = std::make_shared<Owner>(comm.world_);
    detail::check(ist_halo_grid_create(comm.c(), static_cast<int>(dims.size()), dims.data(), periods.data(),
                                       process_map.empty() ? nullptr : process_map.data(), &owner->grid));
    owner_ = std::move(owner);
  }
  // Ahead of a grid: the ranks of comm in an order in which those side by side have the quickest links, as messages of `bytes` from and
  // into the buffer show. Collective. dims and periods are the grid's own.
  template <class Of>
  static Of order(const Of& comm, std::span<const int> dims, std::span<const int> periods, const Buffer& buffer,
                  std::int64_t bytes) {
    if (periods.size() != dims.size()) throw Error(IST_ERR_ARGUMENT, "order() needs as many periods as dims");
    return comm.made([&](ist_comm* out) {
      return ist_halo_order(comm.c(), static_cast<int>(dims.size()), dims.data(), periods.data(), buffer.c(), bytes, out);
    });
  }
  // False: this rank has no place in it.
  explicit operator bool() const noexcept { return owner_->grid != IST_HALO_GRID_NULL; }
  int dimensions() const {
    int found = 0;
    detail::check(ist_halo_grid_ndims(c(), &found));
    return found;
  }
  std::vector<int> dims() const { return get(0); }
  std::vector<int> periods() const { return get(1); }
  std::vector<int> coords() const { return get(2); }
  // A step of -1, 0 or 1 in each dimension away; proc_null past an edge.
  int neighbour(std::span<const int> direction) const {
    if (static_cast<int>(direction.size()) != dimensions())
      throw Error(IST_ERR_ARGUMENT, "neighbour() needs one step per dimension");
    int rank = 0;
    detail::check(ist_halo_grid_neighbour(c(), direction.data(), &rank));
    return rank;
  }
  // For kernels that exchange the halos of a symmetric field by themselves: isthmus/device/halo.cuh.
  ist_halo_sides sides(std::span<const HaloRange> ranges, std::int64_t element, int reach = 0,
                       std::span<const int> layout_map = {}) const {
    ist_halo_sides found{};
    const ist_halo_field field = symmetric(ranges, element, layout_map);
    detail::check(ist_halo_sides_of(c(), &field, reach, &found));
    return found;
  }
  // The same of more than 26 neighbours, of which there are up to 80 in four dimensions.
  ist_halo_all_sides all_sides(std::span<const HaloRange> ranges, std::int64_t element, int reach = 0,
                               std::span<const int> layout_map = {}) const {
    ist_halo_all_sides found{};
    const ist_halo_field field = symmetric(ranges, element, layout_map);
    detail::check(ist_halo_all_sides_of(c(), &field, reach, &found));
    return found;
  }
  // The ranks of the grid.
  template <class Found = Comm>
  Found comm() const {
    Found found;
    detail::check(ist_halo_grid_comm(c(), &found.comm_));
    found.world_ = owner_->world;
    found.owner_ = decltype(found.owner_)(owner_, nullptr);  // keeps the grid, which owns it
    return found;
  }
  ist_halo_grid c() const noexcept { return owner_->grid; }

 private:
  friend class Halo;
  struct Owner {
    explicit Owner(detail::SharedWorld of) : world(std::move(of)) {}
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      if (grid != IST_HALO_GRID_NULL) ist_halo_grid_free(&grid);
    }
    detail::SharedWorld world;
    ist_halo_grid grid = IST_HALO_GRID_NULL;
  };
  ist_halo_field symmetric(std::span<const HaloRange> ranges, std::int64_t element, std::span<const int> layout_map) const {
    if (static_cast<int>(ranges.size()) != dimensions())
      throw Error(IST_ERR_ARGUMENT, "sides of a field need a range for each dimension");
    if (!layout_map.empty() && layout_map.size() != ranges.size())
      throw Error(IST_ERR_ARGUMENT, "sides of a field need an entry of the layout map for each dimension, or no map");
    return {ist_host(nullptr), element, ranges.data(), layout_map.empty() ? nullptr : layout_map.data()};
  }
  std::vector<int> get(int which) const {
    std::vector<int> found(static_cast<std::size_t>(dimensions()));
    int* const places[] = {which == 0 ? found.data() : nullptr, which == 1 ? found.data() : nullptr,
                           which == 2 ? found.data() : nullptr};
    detail::check(ist_halo_grid_get(c(), static_cast<int>(found.size()), places[0], places[1], places[2]));
    return found;
  }
  std::shared_ptr<Owner> owner_;
};

// An array with its halos, in any kind of memory. layout_map: place of each dimension by decreasing stride; empty for C's order.
class HaloField {
 public:
  HaloField(const Buffer& buffer, std::int64_t element, std::span<const HaloRange> ranges,
            std::span<const int> layout_map = {})
      : buffer_(buffer),
        element_(element),
        ranges_(ranges.begin(), ranges.end()),
        map_(layout_map.begin(), layout_map.end()) {}
  // Of elements of a type.
  template <Element T>
  static HaloField of(const Buffer& buffer, std::span<const HaloRange> ranges, std::span<const int> layout_map = {}) {
    return HaloField(buffer, sizeof(T), ranges, layout_map);
  }
  // In host memory.
  template <Receivable R>
  static HaloField of(R& data, std::span<const HaloRange> ranges, std::span<const int> layout_map = {}) {
    std::size_t cells = 1;
    for (const HaloRange& range : ranges) cells *= static_cast<std::size_t>(std::max<std::int64_t>(range.total_length, 0));
    if (std::ranges::size(data) < cells)
      throw Error(IST_ERR_ARGUMENT, "the ranges are of " + std::to_string(cells) + " elements, and the field has " +
                                        std::to_string(std::ranges::size(data)));
    using T = std::remove_reference_t<std::ranges::range_reference_t<R>>;
    return HaloField(Buffer::host(std::ranges::data(data)), sizeof(T), ranges, layout_map);
  }
  // Of cells that are listed: no number beyond the data's.
  template <Receivable R>
  static HaloField listed(R& data) {
    using T = std::remove_reference_t<std::ranges::range_reference_t<R>>;
    return listed(Buffer::host(std::ranges::data(data)), sizeof(T), static_cast<std::int64_t>(std::ranges::size(data)));
  }
  // The same of so many elements of `element` bytes in any kind of memory.
  static HaloField listed(const Buffer& buffer, std::int64_t element, std::int64_t elements) {
    return HaloField(buffer, element, std::array{HaloRange{0, 0, 0, elements - 1, elements}});
  }
  const std::vector<HaloRange>& ranges() const noexcept { return ranges_; }

 private:
  friend class Halo;
  Buffer buffer_;
  std::int64_t element_;
  std::vector<HaloRange> ranges_;
  std::vector<int> map_;
};

// Cells from `first` to `last`, both inclusive, of each dimension.
struct HaloBox {
  std::array<std::int64_t, IST_HALO_MOST_DIMENSIONS> first{};
  std::array<std::int64_t, IST_HALO_MOST_DIMENSIONS> last{};
  bool empty(std::size_t dimensions) const {
    for (std::size_t d = 0; d < dimensions; ++d)
      if (last[d] < first[d]) return true;
    return false;
  }
};

// The inner cells in two: those whose stencil (the ranges' widths) stays among inner cells, and boxes with the rest, each cell once.
struct HaloSplit {
  HaloBox interior;
  std::vector<HaloBox> border;
};
inline HaloSplit halo_split(std::span<const HaloRange> ranges) {
  ist_halo_box interior, border[2 * IST_HALO_MOST_DIMENSIONS];
  int boxes = 0;
  detail::check(ist_halo_split(static_cast<int>(ranges.size()), ranges.data(), &interior, border, &boxes));
  const auto of = [](const ist_halo_box& box) {
    HaloBox made;
    for (std::size_t d = 0; d < made.first.size(); ++d) made.first[d] = box.first[d], made.last[d] = box.last[d];
    return made;
  };
  HaloSplit split{of(interior), {}};
  for (int b = 0; b < boxes; ++b) split.border.push_back(of(border[b]));
  return split;
}

// Of one rank: which elements of each field go to it, and which come from it, by number.
struct HaloLists {
  int rank = 0;
  std::vector<std::int64_t> sends;
  std::vector<std::int64_t> receives;
};

// An exchange of fields between neighbours.
//
//   Halo halo(grid, std::array{HaloField::of(temperature, ranges), HaloField::of(velocity, ranges)});
//   halo.update();
class Halo {
 public:
  // Collective over the grid.
  Halo(const HaloGrid& grid, std::span<const HaloField> fields, const HaloOptions& options = {})
      : owner_(std::make_shared<Owner>(grid.owner_->world, options.way, grid.dimensions())) {
    const Described given(fields, owner_->dimensions);
    const auto wanted = in_c(options);
    detail::check(ist_halo_create(grid.c(), given.count(), given.fields(), &wanted, &owner_->halo));
  }
  // The same of cells that are listed, over all ranks of comm.
  template <class Of>
  Halo(const Of& comm, std::span<const HaloLists> lists, std::span<const HaloField> fields, const HaloOptions& options = {})
      : owner_(std::make_shared<Owner>(comm.world_, options.way, 0)) {
    const Described given(fields, 0);
    std::vector<int> ranks;
    std::vector<std::int64_t> send_counts, receive_counts;
    std::vector<const std::int64_t*> sends, receives;
    for (const HaloLists& of : lists) {
      ranks.push_back(of.rank);
      send_counts.push_back(static_cast<std::int64_t>(of.sends.size())), sends.push_back(of.sends.data());
      receive_counts.push_back(static_cast<std::int64_t>(of.receives.size())), receives.push_back(of.receives.data());
    }
    const ist_halo_lists all{static_cast<int>(lists.size()), ranks.data(),   send_counts.data(), sends.data(),
                             receive_counts.data(),          receives.data()};
    const auto wanted = in_c(options);
    detail::check(ist_halo_create_lists(comm.c(), &all, given.count(), given.fields(), &wanted, &owner_->halo));
  }
  // Other ones from here on; local, and the same on all ranks.
  void set_fields(std::span<const HaloField> fields) const {
    const Described given(fields, owner_->dimensions);
    detail::check(ist_halo_set_fields(c(), given.count(), given.fields()));
  }
  void pack() const { detail::check(ist_halo_pack(c())); }
  void exchange() const { detail::check(ist_halo_exchange(c())); }
  void start_exchange() const { detail::check(ist_halo_start_exchange(c())); }
  void wait() const { detail::check(ist_halo_wait(c())); }
  // Instead of wait(): true where it is over, and then unpack is next.
  bool test() const {
    int over = 0;
    detail::check(ist_halo_test(c(), &over));
    return over != 0;
  }
  void unpack() const { detail::check(ist_halo_unpack(c())); }
  // All three steps.
  void update() const { pack(), exchange(), unpack(); }
  // All three when a CUDA stream comes to them, also from a graph: ist_halo_exchange_on.
  void exchange_on(void* stream) const { detail::check(ist_halo_exchange_on(c(), stream)); }
  void prepare_on(void* stream) const { detail::check(ist_halo_prepare_on(c(), stream)); }
  // A sweep over all inner cells, whose interior hides the exchange: `sweep` is called with boxes, first with the interior, while cells are
  // under way, and then with those at the borders. It reads the fields as the ranges' widths allow, and writes others.
  template <class Sweep>
  void overlap(std::span<const HaloRange> ranges, Sweep&& sweep) const {
    const HaloSplit split = halo_split(ranges);
    pack();
    start_exchange();
    if (!split.interior.empty(ranges.size())) sweep(split.interior);
    wait();
    unpack();
    for (const HaloBox& box : split.border) sweep(box);
  }
  // For people.
  std::string text() const {
    std::size_t needed = 0;
    detail::check(ist_halo_text(c(), nullptr, 0, &needed));
    std::string text(needed, '\0');
    detail::check(ist_halo_text(c(), text.data(), text.size(), nullptr));
    text.resize(needed - 1);
    return text;
  }
  // Collective where the exchange is one-sided. All copies are void then.
  void destroy() const { detail::check(ist_halo_free(&owner_->halo)); }
  ist_halo c() const noexcept { return owner_->halo; }

 private:
  struct Owner {
    Owner(detail::SharedWorld of, HaloWay by, int in) : world(std::move(of)), way(by), dimensions(in) {}
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      if (halo != IST_HALO_NULL && way == HaloWay::messages) ist_halo_free(&halo);
    }
    detail::SharedWorld world;
    HaloWay way;
    int dimensions;  // of the grid; of listed cells 0
    ist_halo halo = IST_HALO_NULL;
  };
  // Fields as C has them, for the length of one call.
  class Described {
   public:
    Described(std::span<const HaloField> fields, int dimensions) {
      for (const HaloField& field : fields) {
        if (dimensions > 0) must_fit(field, static_cast<std::size_t>(dimensions));
        fields_.push_back({field.buffer_.c(), field.element_, field.ranges_.empty() ? nullptr : field.ranges_.data(),
                           field.map_.empty() ? nullptr : field.map_.data()});
      }
    }
    int count() const { return static_cast<int>(fields_.size()); }
    const ist_halo_field* fields() const { return fields_.data(); }

   private:
    // C is told where they begin, and takes as many as the grid has dimensions.
    void must_fit(const HaloField& field, std::size_t dimensions) const {
      const auto refuse = [&](std::size_t found, const char* what) {
        throw Error(IST_ERR_ARGUMENT, "field " + std::to_string(fields_.size()) + " has " + std::to_string(found) + what +
                                          ", and its grid has " + std::to_string(dimensions) +
                                          " dimensions: give one for each");
      };
      if (field.ranges_.size() != dimensions) refuse(field.ranges_.size(), " ranges");
      if (!field.map_.empty() && field.map_.size() != dimensions) refuse(field.map_.size(), " entries of a layout map");
    }
    std::vector<ist_halo_field> fields_;
  };
  static ist_halo_options in_c(const HaloOptions& options) {
    return {sizeof(ist_halo_options), options.reach, static_cast<std::int32_t>(options.packing),
            static_cast<std::int32_t>(options.way), 0};
  }
  std::shared_ptr<Owner> owner_;
};

}  // namespace isthmus
#endif
