// What all ranks do together besides exchanging halos: agree, compare, cut a field into tiles and put it together again.
//
// Who calls this : main.cpp and run.cpp. Every call is made by all ranks in the same order.
// Threads        : one.
// Ownership      : values.
// Errors         : isthmus::Error.
#pragma once

#include <string>
#include <vector>

#include "grid.hpp"
#include "isthmus/isthmus.hpp"

namespace stencil {

// True if no rank has an error to tell; rank 0 prints what there is, the same text once.
bool agree(const isthmus::Comm& comm, const std::string& error);

// The largest of the ranks' numbers, on every rank.
double largest(const isthmus::Comm& comm, double value);

// Rank 0's number, on every rank.
std::int64_t from_first(const isthmus::Comm& comm, std::int64_t value);

// The field lies row by row on rank 0 and is empty elsewhere; each rank has its tile.
std::vector<double> scatter(const isthmus::Comm& comm, const Extent& grid, const Extent& extent,
                            const std::vector<double>& field);
std::vector<double> gather(const isthmus::Comm& comm, const Extent& grid, const Extent& extent,
                           const std::vector<double>& tile);

}  // namespace stencil
