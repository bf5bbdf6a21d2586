// Isthmus, C++ interface: collective calls of layouts. Beside isthmus.hpp, which has the communicators; isthmus/layout_collective.h says
// what each does, and isthmus/collective.h what is true of all.
//
// Who calls this : programs.
// Threads        : one collective call at a time on a communicator.
// Ownership      : a request keeps the world; buffers are the caller's, and must live until it is complete. Layouts, counts and
//                  displacements are read before a call returns.
// Errors         : Error, with the code and the library's text; lists that are not one for each rank are IST_ERR_ARGUMENT here.
#ifndef ISTHMUS_LAYOUT_COLLECTIVE_HPP
#define ISTHMUS_LAYOUT_COLLECTIVE_HPP

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isthmus/layout.hpp"
#include "isthmus/layout_collective.h"

namespace isthmus {

// Of each rank's part: how many, where in bytes, and of which layout.
struct LaidParts {
  std::span<const std::int64_t> counts;
  std::span<const std::int64_t> displs;
  std::span<const Layout> layouts;
};

// A column of a matrix on rank 0 as everybody's row:
//
//   LayoutCollectives(world.comm()).bcast({Buffer::cuda(matrix), rank == 0 ? column : row}, 0);
//
// As the send side, and for scatter's root as the receive side, in_place() stands where C has IST_IN_PLACE.
template <class Comm>
class LayoutCollectives {
 public:
  explicit LayoutCollectives(const Comm& comm) : comm_(comm) {}
  static Laid in_place() { return {Buffer(IST_IN_PLACE), type_of<std::byte>, 0}; }

  void bcast(const Laid& data, int root) const { now(ist_bcast_layout, data.buffer.c(), data.count, c(data), root); }
  Request ibcast(const Laid& data, int root) const {
    return later(ist_ibcast_layout, data.buffer.c(), data.count, c(data), root);
  }
  void gather(const Laid& send, const Laid& recv, int root) const {
    now(ist_gather_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv), root);
  }
  Request igather(const Laid& send, const Laid& recv, int root) const {
    return later(ist_igather_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv), root);
  }
  void scatter(const Laid& send, const Laid& recv, int root) const {
    now(ist_scatter_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv), root);
  }
  Request iscatter(const Laid& send, const Laid& recv, int root) const {
    return later(ist_iscatter_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv), root);
  }
  void allgather(const Laid& send, const Laid& recv) const {
    now(ist_allgather_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv));
  }
  Request iallgather(const Laid& send, const Laid& recv) const {
    return later(ist_iallgather_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv));
  }
  void alltoall(const Laid& send, const Laid& recv) const {
    now(ist_alltoall_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv));
  }
  Request ialltoall(const Laid& send, const Laid& recv) const {
    return later(ist_ialltoall_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), recv.count, c(recv));
  }
  // Parts by counts and displacements, in layouts and their extents; of what only a root looks at they may be empty elsewhere.
  void gatherv(const Laid& send, const Laid& recv, const auto& parts, int root) const {
    check(parts, root);
    now(ist_gatherv_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), parts.counts.data(), parts.displs.data(),
        c(recv), root);
  }
  Request igatherv(const Laid& send, const Laid& recv, const auto& parts, int root) const {
    check(parts, root);
    return later(ist_igatherv_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), parts.counts.data(),
                 parts.displs.data(), c(recv), root);
  }
  void scatterv(const Laid& send, const auto& parts, const Laid& recv, int root) const {
    check(parts, root);
    now(ist_scatterv_layout, send.buffer.c(), parts.counts.data(), parts.displs.data(), c(send), recv.buffer.c(), recv.count,
        c(recv), root);
  }
  Request iscatterv(const Laid& send, const auto& parts, const Laid& recv, int root) const {
    check(parts, root);
    return later(ist_iscatterv_layout, send.buffer.c(), parts.counts.data(), parts.displs.data(), c(send), recv.buffer.c(),
                 recv.count, c(recv), root);
  }
  void allgatherv(const Laid& send, const Laid& recv, const auto& parts) const {
    check(parts, comm_.rank());
    now(ist_allgatherv_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), parts.counts.data(),
        parts.displs.data(), c(recv));
  }
  Request iallgatherv(const Laid& send, const Laid& recv, const auto& parts) const {
    check(parts, comm_.rank());
    return later(ist_iallgatherv_layout, send.buffer.c(), send.count, c(send), recv.buffer.c(), parts.counts.data(),
                 parts.displs.data(), c(recv));
  }
  void alltoallv(const Laid& send, const auto& sent, const Laid& recv, const auto& received) const {
    check(sent, received, send.buffer);
    now(ist_alltoallv_layout, send.buffer.c(), sent.counts.data(), sent.displs.data(), c(send), recv.buffer.c(),
        received.counts.data(), received.displs.data(), c(recv));
  }
  Request ialltoallv(const Laid& send, const auto& sent, const Laid& recv, const auto& received) const {
    check(sent, received, send.buffer);
    return later(ist_ialltoallv_layout, send.buffer.c(), sent.counts.data(), sent.displs.data(), c(send), recv.buffer.c(),
                 received.counts.data(), received.displs.data(), c(recv));
  }
  void alltoallw(const Buffer& send, const LaidParts& sent, const Buffer& recv, const LaidParts& received) const {
    const std::vector<ist_layout> ours = c(sent, send), theirs = c(received, recv);
    now(ist_alltoallw, send.c(), sent.counts.data(), sent.displs.data(), ours.data(), recv.c(), received.counts.data(),
        received.displs.data(), theirs.data());
  }
  Request ialltoallw(const Buffer& send, const LaidParts& sent, const Buffer& recv, const LaidParts& received) const {
    const std::vector<ist_layout> ours = c(sent, send), theirs = c(received, recv);
    return later(ist_ialltoallw, send.c(), sent.counts.data(), sent.displs.data(), ours.data(), recv.c(),
                 received.counts.data(), received.displs.data(), theirs.data());
  }

 private:
  static bool is_in_place(const Buffer& buffer) { return buffer.c().kind == ist_in_place().kind; }
  static ist_layout c(const Laid& laid) { return laid.layout.commit().c(); }
  std::vector<ist_layout> c(const LaidParts& parts, const Buffer& buffer) const {
    if (is_in_place(buffer)) return {};
    check_length(parts.counts.size());
    check_length(parts.displs.size());
    check_length(parts.layouts.size());
    std::vector<ist_layout> handles;
    for (const Layout& layout : parts.layouts) handles.push_back(layout.commit().c());
    return handles;
  }
  void check(const auto& parts, int root) const {  // a Parts of isthmus.hpp
    if (root != comm_.rank()) return;
    check_length(parts.counts.size());
    check_length(parts.displs.size());
  }
  void check(const auto& sent, const auto& received, const Buffer& send) const {
    if (!is_in_place(send)) check(sent, comm_.rank());
    check(received, comm_.rank());
  }
  void check_length(std::size_t length) const {
    if (length != static_cast<std::size_t>(comm_.size()))
      throw Error(IST_ERR_ARGUMENT, "a list has " + std::to_string(length) + " entries, and the communicator " +
                                        std::to_string(comm_.size()) + " ranks; give one for each rank");
  }
  template <class Call, class... Arguments>
  void now(Call call, const Arguments&... arguments) const {
    detail::check(call(arguments..., comm_.c()));
  }
  template <class Call, class... Arguments>
  Request later(Call call, const Arguments&... arguments) const {
    Request request;
    detail::check(call(arguments..., comm_.c(), &request.handle_));
    request.world_ = comm_.world_;
    return request;
  }
  Comm comm_;
};

}  // namespace isthmus
#endif
