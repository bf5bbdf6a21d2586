// Isthmus, C++ interface: collective calls that move parts between ranks: gather, scatter, allgather and alltoall.
// isthmus/collective.h says what each does.
//
// Who calls this : isthmus.hpp includes it; Comm has these calls.
// Threads        : one collective call at a time on a communicator.
// Ownership      : a request keeps the world; the buffers are the caller's, and must live until it is complete. Counts and
//                  displacements are read before a call returns.
// Errors         : Error, with the code and the library's text. What does not fit on one rank is told to the others, too.
#ifndef ISTHMUS_GATHER_HPP
#define ISTHMUS_GATHER_HPP

#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isthmus/collective.hpp"

namespace isthmus {

// How many elements each rank's part has, and where in the buffer it begins; of a range, in its elements.
struct Parts {
  std::span<const std::int64_t> counts;
  std::span<const std::int64_t> displs;
};

// Displacements of parts that lie one after the other.
inline std::vector<std::int64_t> packed(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> displs(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), displs.begin(), std::int64_t{0});
  return displs;
}

namespace detail {

// A range with its parts, as the library counts. Parts that the range does not hold are an error.
struct Varied {
  Varied(const Part& part, const Parts& parts) : buffer(part.buffer) {
    if (part.in_place) return;
    for (std::size_t i = 0; i < parts.counts.size() && i < parts.displs.size(); ++i) {
      const std::int64_t count = parts.counts[i];
      const std::int64_t place = parts.displs[i];
      if (count != 0 && (count < 0 || place < 0 || count > part.elements - place))
        wrong = "part " + std::to_string(i) + ", " + std::to_string(count) + " elements from " + std::to_string(place) +
                " on, is not inside of a range of " + std::to_string(part.elements);
      counts.push_back(count * part.unit);
      displs.push_back(place * part.unit);
    }
    if (parts.counts.size() != parts.displs.size()) wrong = "counts and displacements must be as many";
    if (!wrong.empty()) buffer = refused();
  }
  Parts parts() const { return {counts, displs}; }
  ist_buffer buffer;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displs;
  std::string wrong;
};

}  // namespace detail

class Gathers : public Collectives {
 public:
  // Parts of the same length.
  void gather(const Buffer& send, std::int64_t send_count, const Buffer& recv, std::int64_t recv_count, Type type,
              int root) const {
    now(ist_gather, send.c(), send_count, recv.c(), recv_count, type, root);
  }
  Request igather(const Buffer& send, std::int64_t send_count, const Buffer& recv, std::int64_t recv_count, Type type,
                  int root) const {
    return later(ist_igather, send.c(), send_count, recv.c(), recv_count, type, root);
  }
  void scatter(const Buffer& send, std::int64_t send_count, const Buffer& recv, std::int64_t recv_count, Type type,
               int root) const {
    now(ist_scatter, send.c(), send_count, recv.c(), recv_count, type, root);
  }
  Request iscatter(const Buffer& send, std::int64_t send_count, const Buffer& recv, std::int64_t recv_count, Type type,
                   int root) const {
    return later(ist_iscatter, send.c(), send_count, recv.c(), recv_count, type, root);
  }
  void allgather(const Buffer& send, std::int64_t send_count, const Buffer& recv, std::int64_t recv_count, Type type) const {
    now(ist_allgather, send.c(), send_count, recv.c(), recv_count, type);
  }
  Request iallgather(const Buffer& send, std::int64_t send_count, const Buffer& recv, std::int64_t recv_count,
                     Type type) const {
    return later(ist_iallgather, send.c(), send_count, recv.c(), recv_count, type);
  }
  void alltoall(const Buffer& send, const Buffer& recv, std::int64_t count, Type type) const {
    now(ist_alltoall, send.c(), recv.c(), count, type);
  }
  Request ialltoall(const Buffer& send, const Buffer& recv, std::int64_t count, Type type) const {
    return later(ist_ialltoall, send.c(), recv.c(), count, type);
  }
  // Parts by their counts and displacements.
  void gatherv(const Buffer& send, std::int64_t send_count, const Buffer& recv, const Parts& recv_parts, Type type,
               int root) const {
    const Table of = table(recv_parts, root);
    detail::explained(of.wrong, [&] { now(ist_gatherv, send.c(), send_count, recv.c(), of.counts, of.displs, type, root); });
  }
  Request igatherv(const Buffer& send, std::int64_t send_count, const Buffer& recv, const Parts& recv_parts, Type type,
                   int root) const {
    const Table of = table(recv_parts, root);
    return detail::explained(
        of.wrong, [&] { return later(ist_igatherv, send.c(), send_count, recv.c(), of.counts, of.displs, type, root); });
  }
  void scatterv(const Buffer& send, const Parts& send_parts, const Buffer& recv, std::int64_t recv_count, Type type,
                int root) const {
    const Table of = table(send_parts, root);
    detail::explained(of.wrong,
                      [&] { now(ist_scatterv, send.c(), of.counts, of.displs, recv.c(), recv_count, type, root); });
  }
  Request iscatterv(const Buffer& send, const Parts& send_parts, const Buffer& recv, std::int64_t recv_count, Type type,
                    int root) const {
    const Table of = table(send_parts, root);
    return detail::explained(
        of.wrong, [&] { return later(ist_iscatterv, send.c(), of.counts, of.displs, recv.c(), recv_count, type, root); });
  }
  void allgatherv(const Buffer& send, std::int64_t send_count, const Buffer& recv, const Parts& recv_parts,
                  Type type) const {
    const Table of = table(recv_parts);
    detail::explained(of.wrong, [&] { now(ist_allgatherv, send.c(), send_count, recv.c(), of.counts, of.displs, type); });
  }
  Request iallgatherv(const Buffer& send, std::int64_t send_count, const Buffer& recv, const Parts& recv_parts,
                      Type type) const {
    const Table of = table(recv_parts);
    return detail::explained(
        of.wrong, [&] { return later(ist_iallgatherv, send.c(), send_count, recv.c(), of.counts, of.displs, type); });
  }
  // In place, `send_parts` is not looked at.
  void alltoallv(const Buffer& send, const Parts& send_parts, const Buffer& recv, const Parts& recv_parts, Type type) const {
    const Table to = table(recv_parts);
    const Table from = send.c().kind == ist_in_place().kind ? Table{} : table(send_parts);
    const std::string& wrong = to.wrong.empty() ? from.wrong : to.wrong;
    detail::explained(wrong,
                      [&] { now(ist_alltoallv, send.c(), from.counts, from.displs, recv.c(), to.counts, to.displs, type); });
  }
  Request ialltoallv(const Buffer& send, const Parts& send_parts, const Buffer& recv, const Parts& recv_parts,
                     Type type) const {
    const Table to = table(recv_parts);
    const Table from = send.c().kind == ist_in_place().kind ? Table{} : table(send_parts);
    const std::string& wrong = to.wrong.empty() ? from.wrong : to.wrong;
    return detail::explained(wrong, [&] {
      return later(ist_ialltoallv, send.c(), from.counts, from.displs, recv.c(), to.counts, to.displs, type);
    });
  }

  // Ranges in host memory, both with elements of one type. What only the root looks at may be empty elsewhere.
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R>
  void gather(const S& send, R&& recv, int root) const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), rank_is(root) * ranks());
    detail::explained(both.wrong, [&] { gather(both.send, both.count, both.recv, both.count, both.type, root); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> Request igather(S&& send, R&& recv, int root)
  const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), rank_is(root) * ranks());
    return detail::explained(both.wrong,
                             [&] { return igather(both.send, both.count, both.recv, both.count, both.type, root); });
  }
  template <Sendable S, class R>
  requires(Receivable<R> || detail::is_in_place<R>) && detail::AlikeElements<S, R> void scatter(const S& send, R&& recv,
                                                                                                int root) const {
    const detail::Matched both(detail::part_of(send), rank_is(root) * ranks(), detail::part_of(recv), 1);
    detail::explained(both.wrong, [&] { scatter(both.send, both.count, both.recv, both.count, both.type, root); });
  }
  template <Lasting S, LastingSource R>
  requires Sendable<S> &&(Receivable<R> || detail::is_in_place<R>)&&detail::AlikeElements<S, R> Request
      iscatter(S&& send, R&& recv, int root) const {
    const detail::Matched both(detail::part_of(send), rank_is(root) * ranks(), detail::part_of(recv), 1);
    return detail::explained(both.wrong,
                             [&] { return iscatter(both.send, both.count, both.recv, both.count, both.type, root); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R>
  void allgather(const S& send, R&& recv) const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), ranks());
    detail::explained(both.wrong, [&] { allgather(both.send, both.count, both.recv, both.count, both.type); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> Request iallgather(S&& send, R&& recv)
  const {
    const detail::Matched both(detail::part_of(send), 1, detail::part_of(recv), ranks());
    return detail::explained(both.wrong,
                             [&] { return iallgather(both.send, both.count, both.recv, both.count, both.type); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R>
  void alltoall(const S& send, R&& recv) const {
    const detail::Matched both(detail::part_of(send), ranks(), detail::part_of(recv), ranks());
    detail::explained(both.wrong, [&] { alltoall(both.send, both.recv, both.count, both.type); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> Request ialltoall(S&& send, R&& recv)
  const {
    const detail::Matched both(detail::part_of(send), ranks(), detail::part_of(recv), ranks());
    return detail::explained(both.wrong, [&] { return ialltoall(both.send, both.recv, both.count, both.type); });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R>
  void gatherv(const S& send, R&& recv, const Parts& recv_parts, int root) const {
    const detail::Part own = detail::part_of(send);
    const detail::Part whole = detail::part_of(recv);
    const detail::Varied parts(rank_is(root) != 0 ? whole : detail::Part{}, recv_parts);
    detail::explained(parts.wrong,
                      [&] { gatherv(own.buffer, own.elements * own.unit, parts.buffer, parts.parts(), whole.type, root); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> Request igatherv(S&& send, R&& recv, const Parts& recv_parts,
                                                                         int root)
  const {
    const detail::Part own = detail::part_of(send);
    const detail::Part whole = detail::part_of(recv);
    const detail::Varied parts(rank_is(root) != 0 ? whole : detail::Part{}, recv_parts);
    return detail::explained(parts.wrong, [&] {
      return igatherv(own.buffer, own.elements * own.unit, parts.buffer, parts.parts(), whole.type, root);
    });
  }
  template <Sendable S, class R>
  requires(Receivable<R> || detail::is_in_place<R>) && detail::AlikeElements<S, R> void scatterv(const S& send,
                                                                                                 const Parts& send_parts,
                                                                                                 R&& recv, int root) const {
    const detail::Part own = detail::part_of(recv);
    const detail::Part whole = detail::part_of(send);
    const detail::Varied parts(rank_is(root) != 0 ? whole : detail::Part{}, send_parts);
    detail::explained(parts.wrong,
                      [&] { scatterv(parts.buffer, parts.parts(), own.buffer, own.elements * own.unit, whole.type, root); });
  }
  template <Lasting S, LastingSource R>
  requires Sendable<S> &&(Receivable<R> || detail::is_in_place<R>)&&detail::AlikeElements<S, R> Request
      iscatterv(S&& send, const Parts& send_parts, R&& recv, int root) const {
    const detail::Part own = detail::part_of(recv);
    const detail::Part whole = detail::part_of(send);
    const detail::Varied parts(rank_is(root) != 0 ? whole : detail::Part{}, send_parts);
    return detail::explained(parts.wrong, [&] {
      return iscatterv(parts.buffer, parts.parts(), own.buffer, own.elements * own.unit, whole.type, root);
    });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R>
  void allgatherv(const S& send, R&& recv, const Parts& recv_parts) const {
    const detail::Part own = detail::part_of(send);
    const detail::Part whole = detail::part_of(recv);
    const detail::Varied parts(whole, recv_parts);
    detail::explained(parts.wrong,
                      [&] { allgatherv(own.buffer, own.elements * own.unit, parts.buffer, parts.parts(), whole.type); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> Request iallgatherv(S&& send, R&& recv, const Parts& recv_parts)
  const {
    const detail::Part own = detail::part_of(send);
    const detail::Part whole = detail::part_of(recv);
    const detail::Varied parts(whole, recv_parts);
    return detail::explained(parts.wrong, [&] {
      return iallgatherv(own.buffer, own.elements * own.unit, parts.buffer, parts.parts(), whole.type);
    });
  }
  template <Source S, Receivable R>
  requires detail::AlikeElements<S, R>
  void alltoallv(const S& send, const Parts& send_parts, R&& recv, const Parts& recv_parts) const {
    const detail::Part into = detail::part_of(recv);
    const detail::Varied from(detail::part_of(send), send_parts);
    const detail::Varied to(into, recv_parts);
    const std::string& wrong = to.wrong.empty() ? from.wrong : to.wrong;
    detail::explained(wrong, [&] { alltoallv(from.buffer, from.parts(), to.buffer, to.parts(), into.type); });
  }
  template <LastingSource S, Lasting R>
  requires Receivable<R> && detail::AlikeElements<S, R> Request ialltoallv(S&& send, const Parts& send_parts, R&& recv,
                                                                           const Parts& recv_parts)
  const {
    const detail::Part into = detail::part_of(recv);
    const detail::Varied from(detail::part_of(send), send_parts);
    const detail::Varied to(into, recv_parts);
    const std::string& wrong = to.wrong.empty() ? from.wrong : to.wrong;
    return detail::explained(wrong, [&] { return ialltoallv(from.buffer, from.parts(), to.buffer, to.parts(), into.type); });
  }

 private:
  // Counts and displacements as C takes them; null, which the library refuses and tells, where they are not one for each rank.
  struct Table {
    const std::int64_t* counts = nullptr;
    const std::int64_t* displs = nullptr;
    std::string wrong;
  };
  Table table(const Parts& parts) const {
    std::string wrong = uneven(parts.counts);
    if (wrong.empty()) wrong = uneven(parts.displs);
    if (!wrong.empty()) return {nullptr, nullptr, std::move(wrong)};
    return {parts.counts.data(), parts.displs.data(), {}};
  }
  // They matter on the root alone.
  Table table(const Parts& parts, int root) const { return rank_is(root) != 0 ? table(parts) : Table{}; }
};

}  // namespace isthmus
#endif
