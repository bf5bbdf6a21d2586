#include "cuda_borders.hpp"

#include <algorithm>

namespace himeno {

Borders::Borders(const isthmus::HaloGrid& grid, const Field& field, const example::cuda::Stream& stream)
    : comm_(grid.comm()), field_(field), stream_(stream.get()), plane_(shape_of(field.part()).plane) {
  const auto dims = grid.dims();
  const auto& ranges = field.part().ranges;
  if (dims[1] > 1 || dims[2] > 1) {
    for (int level = 0; level < 2; ++level)
      fields_.push_back(isthmus::HaloField::of<float>(isthmus::Buffer::cuda(field.level(level), stream_), ranges));
    halo_.emplace(grid, std::span(fields_).first(1), isthmus::HaloOptions{2});  // faces and edges
    return;
  }
  const auto plane = [&](std::int64_t i) { return static_cast<std::size_t>(i * plane_); };
  const int low = grid.neighbour(std::array{-1, 0, 0}), high = grid.neighbour(std::array{1, 0, 0});
  if (low != isthmus::proc_null) neighbours_.push_back({low, plane(ranges[0].begin), plane(ranges[0].begin - 1), 0, 1});
  if (high != isthmus::proc_null) neighbours_.push_back({high, plane(ranges[0].end), plane(ranges[0].end + 1), 1, 0});
  // Pairs at a time: the even ranks with the one above first, the odd ones with the one below.
  if (grid.coords()[0] % 2 == 0) std::reverse(neighbours_.begin(), neighbours_.end());
}

isthmus::Buffer Borders::buffer(int level, std::size_t at) const {
  return isthmus::Buffer::cuda(field_.level(level) + at, stream_);
}
void Borders::set(int level) const { halo_->set_fields(std::span(fields_).subspan(static_cast<std::size_t>(level), 1)); }

void Borders::exchange(int level) const {
  if (halo_) {
    set(level);
    halo_->update();
    return;
  }
  std::vector<isthmus::Request> requests;
  for (const Neighbour& of : neighbours_)
    requests.push_back(comm_.irecv(buffer(level, of.in), plane_, IST_FLOAT, of.rank, of.in_tag));
  for (const Neighbour& of : neighbours_)
    requests.push_back(comm_.isend(buffer(level, of.out), plane_, IST_FLOAT, of.rank, of.out_tag));
  for (isthmus::Request& request : requests) request.wait();
}

void Borders::prepare_on() const {
  if (halo_)
    for (int level = 0; level < 2; ++level) {
      set(level);
      halo_->prepare_on(stream_);
    }
  for (const Neighbour& of : neighbours_) {
    comm_.prepare_on(stream_, of.rank, of.out_tag, IST_SENDS);
    comm_.prepare_on(stream_, of.rank, of.in_tag, IST_RECEIVES);
  }
}

void Borders::exchange_on(int level) const {
  if (halo_) {
    set(level);
    halo_->exchange_on(stream_);
  }
  for (const Neighbour& of : neighbours_)
    comm_.sendrecv_on(stream_, buffer(level, of.out), plane_, IST_FLOAT, of.rank, of.out_tag, buffer(level, of.in), plane_,
                      IST_FLOAT, of.rank, of.in_tag);
}

}  // namespace himeno
