// Collective calls against what one process computes: values of every type, input of every rank known to all.
#pragma once

#include <isthmus/collective.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "rank_test.hpp"

namespace collective_test {

// A communicator of the test, and this rank's place in it.
struct Member {
  ist_comm comm = IST_COMM_NULL;
  int rank = -1;
  int size = -1;
  explicit Member(ist_comm of) : comm(of) {
    EXPECT_EQ(IST_OK, ist_comm_rank(of, &rank)) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_comm_size(of, &size)) << ist_error_text();
  }
};

using Bytes = std::vector<unsigned char>;

// What rank `rank` gives as its `count` 64-bit numbers, in every process the same; `seed` tells calls apart.
inline Bytes input_of(int rank, std::size_t count, std::uint64_t seed) {
  return rank_test::random_bytes(count * 8, seed * 64 + static_cast<std::uint64_t>(rank));
}

// Sums of 64-bit numbers, which wrap: any order gives the same.
inline void add_to(Bytes& sum, const Bytes& more) {
  for (std::size_t i = 0; i + 8 <= sum.size(); i += 8) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, &sum[i], 8);
    std::memcpy(&b, &more[i], 8);
    a += b;
    std::memcpy(&sum[i], &a, 8);
  }
}
// Of the ranks from `first` up to `last`, which is not among them.
inline Bytes sum_of(int first, int last, std::size_t count, std::uint64_t seed) {
  Bytes sum(count * 8, 0);
  for (int r = first; r < last; ++r) add_to(sum, input_of(r, count, seed));
  return sum;
}
inline Bytes part(const Bytes& whole, std::size_t first, std::size_t count) {
  return {whole.begin() + static_cast<std::ptrdiff_t>(first * 8),
          whole.begin() + static_cast<std::ptrdiff_t>((first + count) * 8)};
}
inline Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& one : parts) all.insert(all.end(), one.begin(), one.end());
  return all;
}

// Whether a call returns when it is complete, or is under way with others of the test.
enum class Form { blocking, nonblocking };
inline std::string name_of(const testing::TestParamInfo<Form>& info) {
  return info.param == Form::blocking ? "blocking" : "nonblocking";
}

// Makes calls in one of the forms. Between a call and finish() its buffers, counts and displacements belong to it.
class Calls {
 public:
  explicit Calls(Form form) : form_(form) {}
  // `now` is ist_X, `later` ist_iX, which takes a request behind the same arguments.
  template <class Now, class Later, class... Given>
  int operator()(Now now, Later later, Given... given) {
    if (form_ == Form::blocking) return now(given...);
    return later(given..., &requests_.emplace_back(IST_REQUEST_NULL));
  }
  // Waits for all that is under way: every second time for each by itself, the last one first.
  int finish() {
    int code = IST_OK;
    if (backwards_)
      for (auto last = requests_.rbegin(); last != requests_.rend() && code == IST_OK; ++last)
        code = ist_wait(&*last, IST_STATUS_IGNORE);
    else
      code = ist_waitall(static_cast<int>(requests_.size()), requests_.data(), IST_STATUSES_IGNORE);
    requests_.clear();
    backwards_ = !backwards_;
    return code;
  }

 private:
  Form form_;
  bool backwards_ = false;
  std::vector<ist_request> requests_;
};

// The kinds that this rank's buffers live in; every rank draws its own, so that kinds are mixed within a call.
class KindDraw {
 public:
  explicit KindDraw(std::uint64_t seed, Form form = Form::blocking)
      : kinds_(rank_test::usable_kinds()),
        generator_((seed + 100 * static_cast<std::uint64_t>(form)) * 977 + static_cast<std::uint64_t>(rank_test::rank())) {}
  ist_kind next() { return kinds_[generator_() % kinds_.size()].kind; }

 private:
  std::vector<rank_test::KindName> kinds_;
  std::mt19937_64 generator_;
};

// Memory of 8-byte numbers, with guards, aligned.
class Numbers {
 public:
  Numbers(ist_kind kind, std::size_t count) : Numbers(kind, count * 8, Bytes{}) {}
  Numbers(ist_kind kind, const Bytes& values) : Numbers(kind, (values.size() + 7) / 8 * 8, values) {}
  ~Numbers() { EXPECT_EQ(IST_OK, ist_memory_free(rank_test::world(), whole_)) << ist_error_text(); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ist_buffer get() const { return ist_buffer_at(whole_, kGuard); }
  // From byte `at` of the numbers on.
  void fill(const Bytes& values, std::size_t at = 0) { store(values, kGuard + at); }
  // These bytes, and guards that nobody touched; an empty vector: everything is still poisoned.
  void expect(const Bytes& expected, const std::string& what) const {
    Bytes found(bytes_ + 2 * kGuard);
    ASSERT_EQ(IST_OK, ist_memory_copy(rank_test::world(), ist_host(found.data()), whole_, found.size())) << ist_error_text();
    if (rank_test::are_as_expected(found, expected, kGuard)) return;
    Bytes wanted(found.size(), 0xa5);
    std::copy(expected.begin(), expected.end(), wanted.begin() + kGuard);
    ASSERT_EQ(-1, rank_test::first_difference(wanted, found)) << what << " (guards of " << kGuard << " bytes)";
  }

 private:
  static constexpr std::size_t kGuard = 64;
  Numbers(ist_kind kind, std::size_t bytes, const Bytes& values) : bytes_(bytes) {
    int devices = 0;
    EXPECT_EQ(IST_OK, ist_kind_devices(rank_test::world(), kind, &devices));
    const int device = devices > 0 ? rank_test::rank() % devices : 0;
    EXPECT_EQ(IST_OK, ist_memory_alloc(rank_test::world(), kind, device, bytes_ + 2 * kGuard, &whole_)) << ist_error_text();
    Bytes whole(bytes_ + 2 * kGuard, 0xa5);
    std::copy(values.begin(), values.end(), whole.begin() + kGuard);
    store(whole, 0);
  }
  void store(const Bytes& bytes, std::size_t at) {
    if (bytes.empty()) return;
    EXPECT_EQ(IST_OK, ist_memory_copy(rank_test::world(), ist_buffer_at(whole_, at), ist_host(bytes.data()), bytes.size()))
        << ist_error_text();
  }
  std::size_t bytes_;
  ist_buffer whole_{};
};

// Numbers of 8 bytes: none, one, odd, and around what fits beside a slot's header (24 bytes), what travels in a slot, 2 KiB, what is read at
// a time of what a rank says to all (8 KiB), what is announced (16 KiB), where arithmetic
// stays on the device, and chunks, of whole vectors and of a rank's part.
inline const std::vector<std::size_t>& counts() {
  static const std::vector<std::size_t> all{0,    1,    3,    4,    7,    27,   28,    256,   257,   512,   513,    1023,
                                            1024, 1025, 2048, 2049, 8192, 8193, 16384, 16385, 65536, 65537, 131073, 200003};
  return all;
}

// Runs `check` with the world, and, of several ranks, with communicators of some of them in other orders; what does not block
// where all are, in another order, only, or of an odd number of ranks where some are.
inline void on_communicators(Form form, const std::function<void(const Member&)>& check) {
  const bool all = form == Form::blocking || rank_test::size() < 2;
  const bool some = form == Form::blocking || (rank_test::size() > 2 && rank_test::size() % 2 == 1);
  if (all) check(Member{rank_test::comm()});
  if (rank_test::size() < 2 || testing::Test::HasFatalFailure()) return;
  if (all || !some) {
    ist_comm reversed = IST_COMM_NULL;
    ASSERT_EQ(IST_OK, ist_comm_split(rank_test::comm(), 0, -rank_test::rank(), &reversed)) << ist_error_text();
    check(Member{reversed});
    EXPECT_EQ(IST_OK, ist_comm_free(&reversed));
  }
  if (!some) return;
  ist_comm parity = IST_COMM_NULL;
  ASSERT_EQ(IST_OK, ist_comm_split(rank_test::comm(), rank_test::rank() % 2, 0, &parity)) << ist_error_text();
  check(Member{parity});
  EXPECT_EQ(IST_OK, ist_comm_free(&parity));
}

}  // namespace collective_test
