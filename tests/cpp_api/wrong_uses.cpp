// Uses of the C++ interface that must not compile, each beside its nearest right use.
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isthmus/isthmus.hpp"

namespace {

using isthmus::Comm;

template <class T>
concept can_send = requires(const Comm& comm, T data) {
  comm.send(std::forward<T>(data), 0, 1);
};
template <class T>
concept can_recv = requires(const Comm& comm, T data) {
  comm.recv(std::forward<T>(data), 0, 1);
};
template <class T>
concept can_isend = requires(const Comm& comm, T data) {
  comm.isend(std::forward<T>(data), 0, 1);
};
template <class T>
concept can_irecv = requires(const Comm& comm, T data) {
  comm.irecv(std::forward<T>(data), 0, 1);
};

template <class T>
concept can_issend = requires(const Comm& comm, T data) {
  comm.issend(std::forward<T>(data), 0, 1);
};
template <class T>
concept can_replace = requires(const Comm& comm, T data) {
  comm.sendrecv_replace(std::forward<T>(data), 0, 1, 0, 1);
};
template <class T>
concept can_send_again = requires(const Comm& comm, T data) {
  comm.send_init(std::forward<T>(data), 0, 1);
  comm.ssend_init(std::forward<T>(data), 0, 1);
};
template <class T>
concept can_recv_again = requires(const Comm& comm, T data) {
  comm.recv_init(std::forward<T>(data), 0, 1);
};

struct Point {
  float x, y;
};

// Objects whose bytes are not their value.
static_assert(can_send<std::span<Point>>);
static_assert(!can_send<std::span<std::string>>);
static_assert(!can_send<std::vector<std::vector<int>>>);
static_assert(!can_send<std::span<int*>>);
static_assert(!can_send<std::span<std::string_view>>);
static_assert(!can_send<std::vector<std::span<float>>>);
static_assert(!can_recv<std::span<std::string>>);
static_assert(!can_recv<std::span<const char*>>);

// Receiving into what cannot be written.
static_assert(can_recv<std::span<int>>);
static_assert(!can_recv<std::span<const int>>);
static_assert(can_recv<std::vector<int>&>);
static_assert(!can_recv<const std::vector<int>&>);
static_assert(!can_irecv<std::span<const double>>);
static_assert(!can_irecv<const std::array<double, 3>&>);
static_assert(can_replace<std::vector<int>&> && !can_replace<const std::vector<int>&>);
static_assert(!can_recv_again<const std::vector<int>&>);

// Sets of one sort of requests, of which only persistent ones start again.
template <class R>
concept can_wait_for = requires(R requests) {
  isthmus::wait_all(requests);
};
template <class R>
concept can_start = requires(R requests) {
  isthmus::start_all(requests);
};
static_assert(can_wait_for<std::vector<isthmus::Request>&> && can_wait_for<std::span<isthmus::PersistentRequest>>);
static_assert(!can_wait_for<const std::vector<isthmus::Request>&> && !can_wait_for<std::vector<int>&>);
static_assert(can_start<std::vector<isthmus::PersistentRequest>&> && !can_start<std::vector<isthmus::Request>&>);

// Ranges without contiguous memory.
static_assert(!can_send<std::vector<bool>>);

// Starting an operation on a container that is gone when the call returns.
static_assert(can_isend<std::vector<int>&>);
static_assert(can_isend<std::span<const int>>);
static_assert(!can_isend<std::vector<int>>);
static_assert(can_irecv<std::span<int>>);
static_assert(!can_irecv<std::vector<int>>);
static_assert(can_issend<std::vector<int>&> && !can_issend<std::vector<int>>);
static_assert(can_send_again<std::span<const int>> && !can_send_again<std::vector<int>>);
static_assert(can_recv_again<std::vector<int>&> && !can_recv_again<std::vector<int>>);

// A bare address says neither what it points to nor how much.
static_assert(!can_send<int*>);
static_assert(!can_recv<void*>);
static_assert(can_send<int (&)[3]>);

// Collective calls: alike elements on both sides, no temporaries under way, no arithmetic on structs or halves of a type.
template <class S, class R>
concept can_reduce = requires(const Comm& comm, S send, R recv) {
  comm.allreduce(std::forward<S>(send), std::forward<R>(recv), isthmus::op::sum);
};
template <class S, class R>
concept can_start_gather = requires(const Comm& comm, S send, R recv) {
  comm.iallgather(std::forward<S>(send), std::forward<R>(recv));
};
template <class T, class Function>
concept can_combine = requires(Function function) {
  isthmus::Operation::of<T>(function);
};
using isthmus::InPlace;
static_assert(can_reduce<const std::vector<int>&, std::vector<int>&> && can_reduce<InPlace, std::span<int>>);
static_assert(!can_reduce<std::vector<int>&, std::vector<float>&>);
static_assert(!can_reduce<std::vector<int>&, const std::vector<int>&>);
static_assert(!can_reduce<std::vector<int>&, InPlace>);
static_assert(!can_reduce<std::span<Point>, std::span<Point>>);
static_assert(can_start_gather<std::span<const Point>, std::span<Point>> && can_start_gather<InPlace, std::span<int>>);
static_assert(!can_start_gather<std::vector<int>, std::span<int>>);
static_assert(can_combine<int, int (*)(int, int) noexcept>);
static_assert(!can_combine<int, int (*)(int, int)>);  // an exception cannot pass through the library
static_assert(!can_combine<Point, Point (*)(Point, Point) noexcept>);

// Bools are combined by logical operations alone: tests/cpp_api/sum_of_bools.cpp does not compile.
static_assert(isthmus::detail::keeps_bools(isthmus::op::lor) && !isthmus::detail::keeps_bools(isthmus::op::sum));

// Members that are there before their communicators.
static_assert(std::is_default_constructible_v<Comm> && std::is_default_constructible_v<isthmus::Cart>);

// Owners have one owner.
static_assert(!std::is_copy_constructible_v<isthmus::World> && std::is_nothrow_move_constructible_v<isthmus::World>);
static_assert(!std::is_copy_constructible_v<isthmus::Request> && std::is_nothrow_move_assignable_v<isthmus::Request>);
static_assert(!std::is_copy_constructible_v<isthmus::Memory> && std::is_nothrow_move_assignable_v<isthmus::Memory>);
static_assert(!std::is_convertible_v<ist_world, isthmus::World>);  // who takes a world over says so
static_assert(std::is_copy_constructible_v<Comm> && std::is_copy_constructible_v<isthmus::Buffer>);

// A type that cannot travel has no C type.
template <class T>
concept has_type = requires {
  isthmus::type_of<T>;
};
static_assert(!has_type<std::string> && !has_type<int*>);
static_assert(isthmus::type_of<float> == IST_FLOAT && isthmus::type_of<double> == IST_DOUBLE);
static_assert(isthmus::type_of<char> == IST_CHAR && isthmus::type_of<signed char> == IST_INT8);
static_assert(isthmus::type_of<unsigned> == IST_UINT32 && isthmus::type_of<long> == IST_INT64);
static_assert(isthmus::type_of<unsigned long long> == IST_UINT64 && isthmus::type_of<short> == IST_INT16);
static_assert(isthmus::type_of<std::complex<float>> == IST_COMPLEX_FLOAT);
static_assert(isthmus::type_of<unsigned short> == IST_UINT16 &&
              isthmus::type_of<std::complex<double>> == IST_COMPLEX_DOUBLE);
static_assert(isthmus::type_of<std::byte> == IST_BYTE && isthmus::type_of<bool> == IST_UINT8);
static_assert(isthmus::type_of<Point> == IST_BYTE && isthmus::type_of<const float> == IST_FLOAT);

}  // namespace
