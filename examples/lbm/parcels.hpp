// What crosses to each neighbour, packed: 5 populations of a face and 1 of an edge of D3Q19.
//
// Who calls this : kernels.cu, which moves it; messages.cpp, which has the buffers; the tests.
// Threads        : values; each element by itself.
// Ownership      : buffers are the exchange's.
// Errors         : none.
#ifndef LBM_PARCELS_HPP
#define LBM_PARCELS_HPP

#include "shape.hpp"

namespace lbm {

constexpr int kMostParcels = 18, kMostInParcel = 5;
struct Parcel {
  float* buffer;  // populations one after the other, each with all cells of the box
  Box box;
  int populations[kMostInParcel], count;
};
struct Parcels {
  int count;
  Parcel parcel[kMostParcels];
  int begin[kMostParcels + 1];  // the first element of each, and behind the last one how many there are
};

// One of all parcels.
struct Element {
  float* packed;
  std::ptrdiff_t place;  // in the field, of all populations
};
LBM_BOTH inline Element element_of(const Parcels& parcels, const Shape& shape, int i) {
  int n = 0;
  while (i >= parcels.begin[n + 1]) ++n;
  const Parcel& parcel = parcels.parcel[n];
  const Box& box = parcel.box;
  const int at = i - parcels.begin[n], cells = box.cells(), cell = at % cells, row = cell / box.count[2];
  const int place =
      shape.place(box.first[0] + row / box.count[1], box.first[1] + row % box.count[1], box.first[2] + cell % box.count[2]);
  return {parcel.buffer + at, static_cast<std::ptrdiff_t>(shape.size) * parcel.populations[at / cells] + place};
}

// The parcel that goes in that direction, or comes from there where it is the rank's halo that is filled: `along` is how they move.
inline void add_parcel(Parcels& parcels, const Box& box, const Velocity& along, float* buffer) {
  Parcel& parcel = parcels.parcel[parcels.count];
  parcel = {buffer, box, {}, 0};
  for (std::size_t q = 1; q < D3Q19::kCount && parcel.count < kMostInParcel; ++q) {
    bool crosses = true;
    for (std::size_t d = 0; d < 3; ++d) crosses = crosses && (along[d] == 0 || along[d] == D3Q19::kVelocities[q][d]);
    if (crosses) parcel.populations[parcel.count++] = static_cast<int>(q);
  }
  parcels.begin[parcels.count + 1] = parcels.begin[parcels.count] + parcel.count * box.cells();
  ++parcels.count;
}

}  // namespace lbm
#endif
