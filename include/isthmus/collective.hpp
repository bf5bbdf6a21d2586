// Isthmus, C++ interface: collective calls of a communicator: barrier, broadcast and reductions. Every rank makes the same ones
// in the same order; isthmus/collective.h says what each does.
//
// Who calls this : isthmus.hpp includes it; Comm has these calls.
// Threads        : one collective call at a time on a communicator.
// Ownership      : a request keeps world and operation; the buffers are the caller's, and must live until it is complete.
// Errors         : Error, with the code and the library's text. Ranges that do not fit are told to the other ranks, too.
#ifndef ISTHMUS_COLLECTIVE_HPP
#define ISTHMUS_COLLECTIVE_HPP

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "isthmus/operation.hpp"
#include "isthmus/request.hpp"

namespace isthmus {

// What a collective call takes its input from: a range, or in_place.
template <class R>
concept Source = Sendable<R> || std::is_same_v<std::remove_cvref_t<R>, InPlace>;
// One that is still there when a non-blocking call has returned.
template <class R>
concept LastingSource = (Lasting<R> && Sendable<R>) || std::is_same_v<std::remove_cvref_t<R>, InPlace>;

namespace detail {

template <class R>
struct ElementOf {
  using type = std::remove_cvref_t<std::ranges::range_reference_t<R>>;
};
template <>
struct ElementOf<InPlace> {
  using type = void;
};
template <class R>
using element_of = typename ElementOf<std::remove_reference_t<R>>::type;

template <class R>
inline constexpr bool is_in_place = std::is_same_v<std::remove_cvref_t<R>, InPlace>;
template <class Send, class Recv>
concept AlikeElements = is_in_place<Send> || is_in_place<Recv> ||
    std::is_same_v<std::remove_cv_t<element_of<Send>>, std::remove_cv_t<element_of<Recv>>>;
template <class R>
concept ReducibleRange = Reducible<element_of<R>>;
// What combines the elements of a range.
template <class R>
using OperationFor = std::conditional_t<std::is_same_v<std::remove_cv_t<element_of<R>>, bool>, BoolOperation, Operation>;

// No call accepts it: whoever must refuse a call makes it with this, so that the others hear of it.
inline ist_buffer refused() {
  ist_buffer buffer = ist_in_place();
  --buffer.kind;
  return buffer;
}

// A range, counted in its elements. `unit`: how many the library counts for each.
struct Part {
  ist_buffer buffer = ist_in_place();
  std::int64_t elements = 0;
  std::int64_t unit = 1;
  Type type = IST_BYTE;
  bool in_place = true;  // or not looked at on this rank
};
template <class R>
Part part_of(R& range) {
  Part part;
  part.in_place = is_in_place<R>;
  if constexpr (!is_in_place<R>) {
    const Region region = region_of(range);
    part = {region.buffer, static_cast<std::int64_t>(std::ranges::size(range)), 1, region.type, false};
    if (part.type == IST_BYTE) part.unit = sizeof(element_of<R>);
  }
  return part;
}

// Two ranges of equal parts. Those of 0 parts are not looked at on this rank.
struct Matched {
  Matched(const Part& from, std::int64_t send_parts, const Part& to, std::int64_t recv_parts)
      : send(from.buffer), recv(to.buffer), type(from.in_place ? to.type : from.type) {
    const bool use_send = send_parts > 0 && !from.in_place;
    const bool use_recv = recv_parts > 0 && !to.in_place;
    const std::int64_t sent = use_send ? from.elements / send_parts : 0;
    const std::int64_t received = use_recv ? to.elements / recv_parts : 0;
    count = (use_send ? sent : received) * std::max(from.unit, to.unit);
    if ((!use_send || sent * send_parts == from.elements) && (!use_recv || received * recv_parts == to.elements) &&
        (!use_send || !use_recv || sent == received))
      return;
    wrong = "the ranges do not fit: " + std::to_string(from.elements) + " elements to send in " +
            std::to_string(send_parts) + " equal part(s), and room for " + std::to_string(to.elements) + " in " +
            std::to_string(recv_parts);
    // Still of the length that the others give: the algorithm follows from it.
    send = recv = refused();
    count = std::max<std::int64_t>(count, 1);
  }
  ist_buffer send;
  ist_buffer recv;
  Type type;
  std::int64_t count = 0;  // of one part, as the library counts
  std::string wrong;
};

// Makes the call, and then throws if it was made to be refused.
template <class Call>
auto explained(const std::string& wrong, const Call& call) {
  if (wrong.empty()) return call();
  try {
    if constexpr (std::is_void_v<decltype(call())>)
      call();
    else
      call().release();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): what is thrown below says it better
  }
  throw Error(IST_ERR_ARGUMENT, wrong);
}

}  // namespace detail

class Collectives {
 public:
  void barrier() const { detail::check(ist_barrier(comm_)); }
  Request ibarrier() const { return later(ist_ibarrier); }

  void bcast(const Buffer& buffer, std::int64_t count, Type type, int root) const {
    now(ist_bcast, buffer.c(), count, type, root);
  }
  Request ibcast(const Buffer& buffer, std::int64_t count, Type type, int root) const {
    return later(ist_ibcast, buffer.c(), count, type, root);
  }
  void reduce(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op, int root) const {
    now(ist_reduce, send.c(), recv.c(), count, type, op.c(type), root);
  }
  Request ireduce(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op,
                  int root) const {
    return keep(op, later(ist_ireduce, send.c(), recv.c(), count, type, op.c(type), root));
  }
  void allreduce(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op) const {
    now(ist_allreduce, send.c(), recv.c(), count, type, op.c(type));
  }
  Request iallreduce(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op) const {
    return keep(op, later(ist_iallreduce, send.c(), recv.c(), count, type, op.c(type)));
  }
  void reduce_scatter(const Buffer& send, const Buffer& recv, std::span<const std::int64_t> recv_counts, Type type,
                      const Operation& op) const {
    now(ist_reduce_scatter, send.c(), recv.c(), one_each(recv_counts), type, op.c(type));
  }
  Request ireduce_scatter(const Buffer& send, const Buffer& recv, std::span<const std::int64_t> recv_counts, Type type,
                          const Operation& op) const {
    return keep(op, later(ist_ireduce_scatter, send.c(), recv.c(), one_each(recv_counts), type, op.c(type)));
  }
  void reduce_scatter_block(const Buffer& send, const Buffer& recv, std::int64_t recv_count, Type type,
                            const Operation& op) const {
    now(ist_reduce_scatter_block, send.c(), recv.c(), recv_count, type, op.c(type));
  }
  Request ireduce_scatter_block(const Buffer& send, const Buffer& recv, std::int64_t recv_count, Type type,
                                const Operation& op) const {
    return keep(op, later(ist_ireduce_scatter_block, send.c(), recv.c(), recv_count, type, op.c(type)));
  }
  void scan(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op) const {
    now(ist_scan, send.c(), recv.c(), count, type, op.c(type));
  }
  Request iscan(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op) const {
    return keep(op, later(ist_iscan, send.c(), recv.c(), count, type, op.c(type)));
  }
  void exscan(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op) const {
    now(ist_exscan, send.c(), recv.c(), count, type, op.c(type));
  }
  Request iexscan(const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op) const {
    return keep(op, later(ist_iexscan, send.c(), recv.c(), count, type, op.c(type)));
  }

  // Ranges in host memory: counts are those of the ranges, and both have elements of one type.
  template <Receivable R>
  void bcast(R&& data, int root) const {
    const auto region = detail::region_of(data);
    bcast(region.buffer, region.count, region.type, root);
  }
  template <Lasting R>
  requires Receivable<R> Request ibcast(R&& data, int root)
  const {
    const auto region = detail::region_of(data);
    return ibcast(region.buffer, region.count, region.type, root);
  }
  // `recv` is looked at on the root alone; elsewhere it may be empty.
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R> && detail::ReducibleRange<R>
  void reduce(const S& send, R&& recv, const detail::OperationFor<R>& op, int root) const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), rank_is(root));
    detail::explained(both.wrong, [&] { reduce(both.send, both.recv, both.count, both.type, detail::plain(op), root); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> && detail::ReducibleRange<R> Request
  ireduce(S&& send, R&& recv, const detail::OperationFor<R>& op, int root)
  const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), rank_is(root));
    return detail::explained(both.wrong,
                             [&] { return ireduce(both.send, both.recv, both.count, both.type, detail::plain(op), root); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R> && detail::ReducibleRange<R>
  void allreduce(const S& send, R&& recv, const detail::OperationFor<R>& op) const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), 1);
    detail::explained(both.wrong, [&] { allreduce(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> && detail::ReducibleRange<R> Request
  iallreduce(S&& send, R&& recv, const detail::OperationFor<R>& op)
  const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), 1);
    return detail::explained(both.wrong,
                             [&] { return iallreduce(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  // In place, `recv` holds the parts of all.
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R> && detail::ReducibleRange<R>
  void reduce_scatter_block(const S& send, R&& recv, const detail::OperationFor<R>& op) const {
    const detail::Matched both(detail::part_of(send), ranks(), detail::part_of(recv), detail::is_in_place<S> ? ranks() : 1);
    detail::explained(both.wrong,
                      [&] { reduce_scatter_block(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> && detail::ReducibleRange<R> Request
  ireduce_scatter_block(S&& send, R&& recv, const detail::OperationFor<R>& op)
  const {
    const detail::Matched both(detail::part_of(send), ranks(), detail::part_of(recv), detail::is_in_place<S> ? ranks() : 1);
    return detail::explained(
        both.wrong, [&] { return ireduce_scatter_block(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R> && detail::ReducibleRange<R>
  void scan(const S& send, R&& recv, const detail::OperationFor<R>& op) const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), 1);
    detail::explained(both.wrong, [&] { scan(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> && detail::ReducibleRange<R> Request
  iscan(S&& send, R&& recv, const detail::OperationFor<R>& op)
  const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), 1);
    return detail::explained(both.wrong,
                             [&] { return iscan(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R> && detail::ReducibleRange<R>
  void exscan(const S& send, R&& recv, const detail::OperationFor<R>& op) const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), 1);
    detail::explained(both.wrong, [&] { exscan(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> && detail::ReducibleRange<R> Request
  iexscan(S&& send, R&& recv, const detail::OperationFor<R>& op)
  const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), 1);
    return detail::explained(both.wrong,
                             [&] { return iexscan(both.send, both.recv, both.count, both.type, detail::plain(op)); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R> && detail::ReducibleRange<R>
  void reduce_scatter(const S& send, R&& recv, std::span<const std::int64_t> recv_counts,
                      const detail::OperationFor<R>& op) const {
    const auto both = by_counts(detail::part_of(send), detail::part_of(recv), recv_counts);
    detail::explained(both.wrong, [&] { reduce_scatter(both.send, both.recv, recv_counts, both.type, detail::plain(op)); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> && detail::ReducibleRange<R> Request
  ireduce_scatter(S&& send, R&& recv, std::span<const std::int64_t> recv_counts, const detail::OperationFor<R>& op)
  const {
    const auto both = by_counts(detail::part_of(send), detail::part_of(recv), recv_counts);
    return detail::explained(
        both.wrong, [&] { return ireduce_scatter(both.send, both.recv, recv_counts, both.type, detail::plain(op)); });
  }

 protected:
  friend class Halo;      // halo.hpp
  friend class HaloGrid;  // halo.hpp
  friend class Heap;      // heap.hpp
  friend class Window;    // window.hpp
  friend class Layout;    // layout.hpp
  Collectives() = default;
  template <class Call, class... Arguments>
  void now(Call call, const Arguments&... arguments) const {
    detail::check(call(arguments..., comm_));
  }
  template <class Call, class... Arguments>
  Request later(Call call, const Arguments&... arguments) const {
    Request request;
    detail::check(call(arguments..., comm_, &request.handle_));
    request.world_ = world_;
    return request;
  }
  static Request keep(const Operation& op, Request request) {
    request.operation_ = op.owner_;
    return request;
  }
  int ask(int (*question)(ist_comm, int*)) const {
    int answer = 0;
    detail::check(question(comm_, &answer));
    return answer;
  }
  int ranks() const { return ask(ist_comm_size); }
  // Parts of a range that only the root looks at.
  int rank_is(int root) const { return ask(ist_comm_rank) == root ? 1 : 0; }
  std::string uneven(std::span<const std::int64_t> counts) const {
    if (counts.size() == static_cast<std::size_t>(ranks())) return {};
    return std::to_string(counts.size()) + " counts or displacements for " + std::to_string(ranks()) +
           " ranks: give one for each";
  }
  // Counts that all ranks give alike, so that nobody is left waiting.
  const std::int64_t* one_each(std::span<const std::int64_t> counts) const {
    if (const std::string wrong = uneven(counts); !wrong.empty()) throw Error(IST_ERR_ARGUMENT, wrong);
    return counts.data();
  }

  detail::SharedWorld world_;
  ist_comm comm_ = IST_COMM_NULL;

 private:
  detail::Matched by_counts(const detail::Part& send, const detail::Part& recv, std::span<const std::int64_t> counts) const {
    detail::Matched both(send, 0, recv, 0);
    const auto mine = static_cast<std::size_t>(ask(ist_comm_rank));
    std::int64_t all = 0;
    for (const std::int64_t count : counts) all += count;
    const bool fits =
        send.in_place ? recv.elements == all : send.elements == all && mine < counts.size() && recv.elements == counts[mine];
    if (fits) return both;
    both.wrong = "the ranges do not fit the counts: " + std::to_string(send.in_place ? recv.elements : send.elements) +
                 " elements to combine, and counts that add up to " + std::to_string(all);
    both.send = both.recv = detail::refused();
    return both;
  }
};

}  // namespace isthmus
#endif
