// Python's HaloGrid, HaloField and Halo: fields that are cut over a grid of ranks, and their halos.
//
// Who calls this : module.cpp binds the classes; comm.cpp's class gets the calls that make grids and exchanges of lists.
// Threads        : the caller holds the GIL, which every step of an exchange lets go of.
// Ownership      : a Halo keeps its arrays and its world; freed when it is dropped, but one-sided ones, which free() frees, collectively.
// Errors         : raised.
#pragma once

#include <isthmus/halo.h>

#include <variant>

#include "comm.hpp"

namespace isthmus_python {

struct HaloField;

class HaloGrid {
 public:
  HaloGrid(std::shared_ptr<Session> session, ist_halo_grid grid) : session_(std::move(session)), grid_(grid) {}
  HaloGrid(const HaloGrid&) = delete;
  HaloGrid& operator=(const HaloGrid&) = delete;
  ~HaloGrid();
  const std::shared_ptr<Session>& session() const { return session_; }
  ist_halo_grid handle() const { return grid_; }
  int ndims() const;
  std::vector<int> dims() const { return get(0); }
  std::vector<bool> periods() const;
  std::vector<int> coords() const { return get(2); }
  int neighbour(const std::vector<int>& direction) const;
  // As bytes, for kernels.
  nb::bytes sides(const HaloField& field, int reach) const;
  nb::bytes all_sides(const HaloField& field, int reach) const;
  std::string text() const;

 private:
  std::vector<int> get(int which) const;
  template <class Sides>
  nb::bytes sides_by(int (*find)(ist_halo_grid, const ist_halo_field*, int, Sides*), const HaloField& field,
                     int reach) const;
  std::shared_ptr<Session> session_;
  ist_halo_grid grid_;
};

// An array, and which of its cells are whose.
struct HaloField {
  using Ranges = std::vector<std::vector<std::int64_t>>;  // minus, plus, and perhaps begin, end of each dimension
  using Widths = std::variant<std::int64_t, Ranges>;      // one number: on both sides of all dimensions of the array
  HaloField(nb::object array, const Widths& halo, const std::optional<std::vector<std::int64_t>>& shape,
            std::optional<std::int64_t> item_size, const std::optional<std::vector<int>>& layout_map);
  nb::object array;
  std::int64_t element = 1;
  std::vector<ist_halo_range> ranges;
  std::vector<int> layout_map;
};

class Halo {
 public:
  // What is exchanged of each array; without ranges where cells are listed.
  struct Field {
    nb::object array;
    Region region;
    std::int64_t element = 1;
    std::vector<ist_halo_range> ranges;
    std::vector<int> layout_map;
  };
  using Make = std::function<int(int, const ist_halo_field*, ist_halo*)>;
  // `ndims`: of the grid; 0 where cells are listed.
  Halo(std::shared_ptr<Session> session, std::vector<Field> fields, int ndims, bool one_sided);
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  ~Halo();
  int ndims() const { return ndims_; }
  void make(const Make& make);
  void set_fields(std::vector<Field> fields);
  void pack();
  void exchange();
  void start_exchange();
  // A signal ends it, and then the exchange goes on.
  void wait();
  bool test();
  void unpack();
  void update();
  // When the stream comes to it.
  void exchange_on(nb::handle stream);
  void prepare_on(nb::handle stream);
  void free();
  std::string text() const;

 private:
  template <class Call>
  void step(const Call& call);
  // Where device memory is now; `streams`: or the stream that is current.
  void look_again(bool streams);
  std::vector<ist_halo_field> in_c() const;
  std::shared_ptr<Session> session_;
  std::vector<Field> fields_;
  ist_halo halo_ = IST_HALO_NULL;
  int ndims_;
  bool one_sided_;
};

// In bytes; empty where the array tells none.
std::vector<std::int64_t> strides_of(nb::handle array, std::int64_t item_size);

void bind_halos(nb::module_& module, Bound<Comm>& comm);

}  // namespace isthmus_python
