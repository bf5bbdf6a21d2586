// Sums whose bits tell the order they were made in: the same in every form, kind of memory and order of processes. Run on 1 to
// 12 ranks.
#include <complex>
#include <cstdlib>
#include <map>
#include <numeric>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

// A type by random elements of it, of many magnitudes: they cancel and are rounded, so that every order gives other bits.
struct Summed {
  ist_type type;
  const char* name;
  std::size_t size;
  std::function<void(std::mt19937_64&, unsigned char*)> write;
};

template <class T>
T random_float(std::mt19937_64& generator) {
  return std::ldexp(static_cast<T>(static_cast<std::int64_t>(generator()) >> 11), static_cast<int>(generator() % 24) - 60);
}
template <class T>
Summed plain(ist_type type, const char* name) {
  return {type, name, sizeof(T), [](std::mt19937_64& generator, unsigned char* to) {
            const T value = random_float<T>(generator);
            std::memcpy(to, &value, sizeof value);
          }};
}
template <class T>
Summed complex_of(ist_type type, const char* name) {
  return {type, name, 2 * sizeof(T), [](std::mt19937_64& generator, unsigned char* to) {
            const T values[2] = {random_float<T>(generator), random_float<T>(generator)};
            std::memcpy(to, values, sizeof values);
          }};
}
// Of sixteen bits: any sign and fraction, and one of `exponents` exponents from the first on.
Summed small(ist_type type, const char* name, int fraction_bits, unsigned first, unsigned exponents) {
  return {type, name, 2, [=](std::mt19937_64& generator, unsigned char* to) {
            const std::uint64_t random = generator();
            const auto sign_and_fraction = static_cast<unsigned>(random) & (0x8000U | ((1U << fraction_bits) - 1));
            const unsigned exponent = first + static_cast<unsigned>((random >> 32) % exponents);
            const auto value = static_cast<std::uint16_t>(sign_and_fraction | exponent << fraction_bits);
            std::memcpy(to, &value, sizeof value);
          }};
}

std::vector<Summed> summed_types() {
  return {small(IST_HALF, "half", 10, 8, 12),
          small(IST_BFLOAT16, "bfloat16", 7, 118, 14),
          plain<float>(IST_FLOAT, "float"),
          plain<double>(IST_DOUBLE, "double"),
          complex_of<float>(IST_COMPLEX_FLOAT, "complex float"),
          complex_of<double>(IST_COMPLEX_DOUBLE, "complex double")};
}

// What the rank of that number in a communicator gives, whichever process it is.
Bytes input_of(const Summed& type, int rank, std::size_t count) {
  std::mt19937_64 generator(static_cast<std::uint64_t>(rank) * 7919 + count);
  Bytes bytes(count * type.size);
  for (std::size_t i = 0; i < count; ++i) type.write(generator, &bytes[i * type.size]);
  return bytes;
}

// A call, the part of its `count` elements that a rank gets, and how it is made.
struct Sum {
  const char* name;
  std::int64_t (*gets)(const Member&, std::int64_t count);
  int (*make)(const Member&, Calls&, ist_buffer send, ist_buffer recv, std::int64_t count, ist_type, std::int64_t* parts);
};

std::vector<Sum> sums() {
  const auto all = [](const Member&, std::int64_t count) { return count; };
  return {
      {"allreduce", all,
       [](const Member& here, Calls& calls, ist_buffer send, ist_buffer recv, std::int64_t count, ist_type type,
          std::int64_t*) { return calls(ist_allreduce, ist_iallreduce, send, recv, count, type, IST_SUM, here.comm); }},
      {"reduce", [](const Member& here, std::int64_t count) { return here.rank == here.size - 1 ? count : 0; },
       [](const Member& here, Calls& calls, ist_buffer send, ist_buffer recv, std::int64_t count, ist_type type,
          std::int64_t*) {
         return calls(ist_reduce, ist_ireduce, send, recv, count, type, IST_SUM, here.size - 1, here.comm);
       }},
      {"reduce_scatter_block", [](const Member& here, std::int64_t count) { return count / here.size; },
       [](const Member& here, Calls& calls, ist_buffer send, ist_buffer recv, std::int64_t count, ist_type type,
          std::int64_t*) {
         return calls(ist_reduce_scatter_block, ist_ireduce_scatter_block, send, recv, count / here.size, type, IST_SUM,
                      here.comm);
       }},
      // The first rank gets half as many as each of the others.
      {"reduce_scatter", [](const Member& here, std::int64_t count) { return count / here.size / (here.rank == 0 ? 2 : 1); },
       [](const Member& here, Calls& calls, ist_buffer send, ist_buffer recv, std::int64_t, ist_type type,
          std::int64_t* parts) {
         return calls(ist_reduce_scatter, ist_ireduce_scatter, send, recv, parts, type, IST_SUM, here.comm);
       }},
      {"scan", all,
       [](const Member& here, Calls& calls, ist_buffer send, ist_buffer recv, std::int64_t count, ist_type type,
          std::int64_t*) { return calls(ist_scan, ist_iscan, send, recv, count, type, IST_SUM, here.comm); }},
      {"exscan", [](const Member& here, std::int64_t count) { return here.rank == 0 ? 0 : count; },
       [](const Member& here, Calls& calls, ist_buffer send, ist_buffer recv, std::int64_t count, ist_type type,
          std::int64_t*) { return calls(ist_exscan, ist_iexscan, send, recv, count, type, IST_SUM, here.comm); }},
  };
}

// What each call gave the first time, by its name, all that the order may depend on, and the rank.
using First = std::map<std::string, Bytes>;
std::string text(const Sum& sum, const Summed& type, std::int64_t count, int rank, int ranks) {
  return std::string{sum.name} + " of " + std::to_string(count) + " x " + type.name + " on " + std::to_string(rank) +
         " of " + std::to_string(ranks);
}

// Every call once, in kinds as they come, or all in host memory.
void sum_once(const Member& here, const Summed& type, std::int64_t count, Form form, KindDraw* kinds, First& first) {
  const auto kind = [&] { return kinds == nullptr ? IST_KIND_HOST : kinds->next(); };
  const Bytes mine = input_of(type, here.rank, static_cast<std::size_t>(count));
  Calls calls{form};
  const Numbers send{kind(), mine};
  std::vector<std::unique_ptr<Numbers>> results;
  std::vector<std::int64_t> parts(at(here.size), count / here.size);
  parts[0] /= 2;
  for (const Sum& sum : sums()) {
    results.push_back(std::make_unique<Numbers>(kind(), (mine.size() + 7) / 8));
    IST_OK_OR_FAIL(sum.make(here, calls, send.get(), results.back()->get(), count, type.type, parts.data()));
  }
  IST_OK_OR_FAIL(calls.finish());
  for (std::size_t s = 0; s < results.size(); ++s) {
    Bytes found(static_cast<std::size_t>(sums()[s].gets(here, count)) * type.size);
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), results[s]->get(), found.size()));
    const std::string what = text(sums()[s], type, count, here.rank, here.size);
    const auto [place, is_first] = first.try_emplace(what, found);
    ASSERT_EQ(-1, first_difference(place->second, found)) << what << (form == Form::blocking ? "" : ", nonblocking");
  }
}

// The world's rank and the one that has its number in the reversed communicator tell each other what they have got.
void tell_the_opposite(const Summed& type, std::int64_t count, First& first) {
  const int opposite = size() - 1 - rank();
  if (opposite == rank()) return;
  for (const Sum& sum : sums()) {
    const Bytes& mine = first.at(text(sum, type, count, rank(), size()));
    Bytes theirs(static_cast<std::size_t>(count) * type.size);
    ist_status status{};
    IST_OK_OR_FAIL(ist_sendrecv(ist_host(mine.data()), static_cast<std::int64_t>(mine.size()), IST_BYTE, opposite, 60,
                                ist_host(theirs.data()), static_cast<std::int64_t>(theirs.size()), IST_BYTE, opposite, 60,
                                comm(), &status));
    theirs.resize(static_cast<std::size_t>(status.bytes));
    first.emplace(text(sum, type, count, opposite, size()), theirs);
  }
}

class SameBits : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Each, SameBits, testing::Range(std::size_t{0}, summed_types().size()),
                         [](const auto& each) { return "type" + std::to_string(summed_types()[each.param].type); });

// The n-th rank of the reversed communicator gives what the world's gave, and so gets the same, though it is another process.
// Short, longer than what goes in one message, and where devices combine, of up to three ranks also parts.
TEST_P(SameBits, ComeOfTheSameInputsInEveryFormInEveryKindAndWhicheverProcessHasWhichRank) {
  const Summed type = summed_types()[GetParam()];
  for (const std::size_t bytes : {std::size_t{48}, std::size_t{40016}, std::size_t{400016}}) {
    const auto count = static_cast<std::int64_t>(bytes / type.size);
    KindDraw kinds{15};
    First first;
    on_communicators(Form::blocking, [&](const Member& here) {
      sum_once(here, type, count, Form::blocking, nullptr, first);
      if (here.comm == comm() && !testing::Test::HasFatalFailure()) tell_the_opposite(type, count, first);
      for (const Form form : {Form::blocking, Form::nonblocking})
        if (!testing::Test::HasFatalFailure()) sum_once(here, type, count, form, &kinds, first);
    });
    if (HasFatalFailure()) return;
    const std::size_t all = sums().size();
    // Of this rank and the opposite one in the world, and in the communicator of some where that has not as many ranks.
    EXPECT_GE(first.size(), size() < 2 || size() - 1 == 2 * rank() ? all : 2 * all);
  }
}

// Without this the test above would prove nothing.
template <class T>
void expect_that_order_matters(const Summed& type) {
  constexpr std::size_t kCount = 1000;
  const Bytes a = input_of(type, 0, kCount);
  const Bytes b = input_of(type, 1, kCount);
  const Bytes c = input_of(type, 2, kCount);
  int other = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    T x{}, y{}, z{};
    std::memcpy(&x, &a[i * sizeof(T)], sizeof(T));
    std::memcpy(&y, &b[i * sizeof(T)], sizeof(T));
    std::memcpy(&z, &c[i * sizeof(T)], sizeof(T));
    if ((x + y) + z != x + (y + z)) ++other;
  }
  EXPECT_GT(other, 100) << type.name;
}

TEST(SameBitsInputs, AreOfNumbersOfWhichEveryOrderGivesOtherOnes) {
  expect_that_order_matters<float>(summed_types()[2]);
  expect_that_order_matters<double>(summed_types()[3]);
  expect_that_order_matters<std::complex<float>>(summed_types()[4]);
  expect_that_order_matters<std::complex<double>>(summed_types()[5]);
}

// The order is of the ranks, and not of who gets the result: the same bits at every root, also where operands keep their sides.
TEST(SameBitsAtEveryRoot, ComeOfTheSameInputs) {
  ist_op ordered = IST_OP_NULL;
  IST_OK_OR_FAIL(ist_op_create(
      [](const void* left, void* right, std::int64_t count, ist_type, void*) {
        for (std::int64_t i = 0; i < count; ++i) static_cast<float*>(right)[i] += 3 * static_cast<const float*>(left)[i];
      },
      nullptr, 0, &ordered));
  const Summed type = summed_types()[2];
  ASSERT_EQ(IST_FLOAT, type.type);
  for (const std::int64_t count : {1, 16, 400, 512, 600, 1200, 7000, 30000}) {
    const Bytes mine = input_of(type, rank(), static_cast<std::size_t>(count));
    for (const ist_op op : {IST_SUM, ordered}) {
      Bytes of_first(mine.size());
      for (int root = 0; root < size(); ++root) {
        for (const Form form : {Form::blocking, Form::nonblocking}) {
          Bytes found = mine;
          const ist_buffer to = ist_host(found.data());
          const bool in_place = root % 2 == 1 && rank() == root;
          Calls calls{form};
          IST_OK_OR_FAIL(calls(ist_reduce, ist_ireduce, in_place ? IST_IN_PLACE : ist_host(mine.data()), to, count,
                               IST_FLOAT, op, root, comm()));
          IST_OK_OR_FAIL(calls.finish());
          IST_OK_OR_FAIL(ist_bcast(to, static_cast<std::int64_t>(found.size()), IST_BYTE, root, comm()));
          if (root == 0 && form == Form::blocking) of_first = found;
          ASSERT_EQ(-1, first_difference(of_first, found))
              << (op == ordered ? "ordered " : "") << "reduce of " << count << " to rank " << root;
        }
      }
    }
  }
  IST_OK_OR_FAIL(ist_op_free(&ordered));
}

// The machine of the tests may choose orders by its numbers, if it is an invented one.
bool order_is_fixed() {
  const char* const profile = std::getenv("ISTHMUS_PROFILE");
  return profile == nullptr || std::string{profile}.find(".json") == std::string::npos;
}

using Doubles = std::vector<double>;
// left + right, in place of right.
void put_before(const Doubles& left, Doubles& right) {
  for (std::size_t i = 0; i < right.size(); ++i) right[i] = left[i] + right[i];
}

// By the prices that are built in, whatever else is set: up to so many bytes scans are combined by rank.
std::size_t scanned_by_rank_up_to(int ranks) { return ranks <= 3 ? 65536 : ranks == 5 ? 17000 : 4000; }

// What one process computes of the inputs of all ranks.
struct Expected {
  Doubles mine;
  Doubles all;      // from left to right
  Doubles ordered;  // from right to left
  Doubles scan;
  explicit Expected(std::size_t count) {
    std::vector<Doubles> inputs(at(size()), Doubles(count));
    for (int r = 0; r < size(); ++r) {
      const Bytes bytes = input_of(plain<double>(IST_DOUBLE, "double"), r, count);
      std::memcpy(inputs[at(r)].data(), bytes.data(), bytes.size());
    }
    mine = inputs[at(rank())];
    all = inputs.front();
    scan = all;
    for (int r = 1; r < size(); ++r) {
      put_before(inputs[at(r)], all);
      if (r == rank()) scan = all;
    }
    ordered = inputs.back();
    for (int r = size() - 2; r >= 0; --r) put_before(inputs[at(r)], ordered);
    if (count * sizeof(double) <= scanned_by_rank_up_to(size())) return;
    // In rounds, in each of which a rank hears of those twice as far before it.
    for (int distance = 1; distance < size(); distance *= 2)
      for (int r = size() - 1; r >= distance; --r) put_before(inputs[at(r - distance)], inputs[at(r)]);
    scan = inputs[at(rank())];
  }
};

void expect_same(const Doubles& expected, const Doubles& found, const std::string& what) {
  ASSERT_EQ(expected.size(), found.size());
  EXPECT_EQ(0, std::memcmp(expected.data(), found.data(), expected.size() * sizeof(double))) << what;
}

void add_ordered(const void* left, void* right, std::int64_t count, ist_type, void*) {
  for (std::int64_t i = 0; i < count; ++i) static_cast<double*>(right)[i] += static_cast<const double*>(left)[i];
}

// What the calls of a communicator of all ranks give must be that.
void expect_fixed_orders(ist_comm on, const Expected& expected, ist_op ordered) {
  const auto n = static_cast<std::int64_t>(expected.mine.size());
  const ist_buffer mine = ist_host(expected.mine.data());
  for (const Form form : {Form::blocking, Form::nonblocking}) {
    const std::string what = std::to_string(n) + " doubles" + (form == Form::blocking ? "" : ", nonblocking");
    Calls calls{form};
    Doubles found(expected.mine.size());
    const ist_buffer to = ist_host(found.data());
    IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, mine, to, n, IST_DOUBLE, IST_SUM, on));
    IST_OK_OR_FAIL(calls.finish());
    expect_same(expected.all, found, "allreduce of " + what);
    found = expected.mine;
    IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, IST_IN_PLACE, to, n, IST_DOUBLE, IST_SUM, on));
    IST_OK_OR_FAIL(calls.finish());
    expect_same(expected.all, found, "allreduce in place of " + what);
    if (rank() == 0) found.assign(found.size(), 0);
    IST_OK_OR_FAIL(calls(ist_reduce, ist_ireduce, mine, to, n, IST_DOUBLE, IST_SUM, 0, on));
    IST_OK_OR_FAIL(calls.finish());
    expect_same(expected.all, found, "reduce of " + what);
    IST_OK_OR_FAIL(calls(ist_scan, ist_iscan, mine, to, n, IST_DOUBLE, IST_SUM, on));
    IST_OK_OR_FAIL(calls.finish());
    expect_same(expected.scan, found, "scan of " + what);
    IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, mine, to, n, IST_DOUBLE, ordered, on));
    IST_OK_OR_FAIL(calls.finish());
    expect_same(expected.ordered, found, "allreduce, whose operands keep their order, of " + what);
    const std::int64_t part = n / size();
    if (part == 0) continue;
    IST_OK_OR_FAIL(calls(ist_reduce_scatter_block, ist_ireduce_scatter_block, mine, to, part, IST_DOUBLE, IST_SUM, on));
    IST_OK_OR_FAIL(calls.finish());
    found.resize(static_cast<std::size_t>(part));
    const auto first = expected.all.begin() + part * rank();
    expect_same(Doubles(first, first + part), found, "reduce_scatter_block of " + what);
  }
}

// A zero has two signs: which one a minimum takes shows who was asked first.
void expect_the_same_zero(ist_comm on, int signs) {
  const double mine = (signs >> rank() & 1) != 0 ? -0.0 : 0.0;
  double of_world = 1;
  double found = 1;
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&mine), ist_host(&of_world), 1, IST_DOUBLE, IST_MIN, comm()));
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&mine), ist_host(&found), 1, IST_DOUBLE, IST_MIN, on));
  EXPECT_EQ(std::signbit(of_world), std::signbit(found)) << "signs " << signs;
}

// A communicator of all ranks: one that sees their memory, one that never does, and one for which none was left.
enum class Made { world, group, last_of_40_copies };
std::string name_of(const testing::TestParamInfo<Made>& info) {
  const char* const names[] = {"world", "group", "last_of_40_copies"};
  return names[static_cast<int>(info.param)];
}
class SameBitsEverywhere : public testing::TestWithParam<Made> {};
INSTANTIATE_TEST_SUITE_P(On, SameBitsEverywhere, testing::Values(Made::world, Made::group, Made::last_of_40_copies),
                         name_of);

// Whatever else is set, and whichever devices there are: one process without any of that computes what they must give.
TEST_P(SameBitsEverywhere, ComeOfTheSameInputsOnEveryCommunicatorAndWhateverIsSet) {
  if (!order_is_fixed() || size() > 6)
    GTEST_SKIP() << "not covered here: orders; the numbers choose them, or there is another one for long vectors";
  std::vector<ist_comm> made(GetParam() == Made::last_of_40_copies ? 40 : GetParam() == Made::group ? 1 : 0, IST_COMM_NULL);
  std::vector<int> ranks(at(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  for (ist_comm& one : made) {
    if (GetParam() == Made::group) IST_OK_OR_FAIL(ist_comm_create_group(comm(), size(), ranks.data(), 5, &one));
    if (GetParam() != Made::group) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
  }
  const ist_comm on = made.empty() ? comm() : made.back();
  static std::map<std::size_t, Expected> expected;  // of every communicator
  ist_op ordered = IST_OP_NULL;
  IST_OK_OR_FAIL(ist_op_create(add_ordered, nullptr, 0, &ordered));
  for (const std::size_t count :
       {1U, 8U, 24U, 27U, 28U, 216U, 256U, 257U, 450U, 1024U, 1025U, 2049U, 3000U, 8000U, 8193U, 131072U})
    if (!HasFatalFailure()) expect_fixed_orders(on, expected.try_emplace(count, count).first->second, ordered);
  for (int signs = 0; signs < 1 << size(); signs += 3) expect_the_same_zero(on, signs);
  IST_OK_OR_FAIL(ist_op_free(&ordered));
  for (ist_comm& one : made) IST_OK_OR_FAIL(ist_comm_free(&one));
}

}  // namespace
