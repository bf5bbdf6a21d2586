// Reductions: every operation on every type, order and reproducibility, operations of the user's, and what goes wrong. Run on
// 1 to 6 ranks.
#include <complex>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

// A type by how small whole numbers are written in it and read from it: what is computed with them is exact in all of them.
struct TypeCase {
  ist_type type;
  const char* name;
  std::size_t size;
  enum { integer, floating, complex, located } family;
  std::function<void(int value, int second, unsigned char* to)> write;
  std::function<std::pair<int, int>(const unsigned char* from)> read;
};

template <class T>
void put(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T get(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
TypeCase plain(ist_type type, const char* name) {
  return {type,
          name,
          sizeof(T),
          std::is_integral_v<T> ? TypeCase::integer : TypeCase::floating,
          [](int value, int, unsigned char* to) { put(to, static_cast<T>(value)); },
          [](const unsigned char* from) {
            return std::pair{static_cast<int>(get<T>(from)), 0};
          }};
}
template <class T>
TypeCase complex_of(ist_type type, const char* name) {
  return {type,
          name,
          sizeof(std::complex<T>),
          TypeCase::complex,
          [](int value, int second, unsigned char* to) {
            put(to, std::complex<T>(static_cast<T>(value), static_cast<T>(second)));
          },
          [](const unsigned char* from) {
            const auto read = get<std::complex<T>>(from);
            return std::pair{static_cast<int>(read.real()), static_cast<int>(read.imag())};
          }};
}
template <class T, class Index>
TypeCase located(ist_type type, const char* name) {
  struct Pair {
    T value;
    Index index;
  };
  return {type,
          name,
          sizeof(Pair),
          TypeCase::located,
          [](int value, int second, unsigned char* to) {
            std::memset(to, 0, sizeof(Pair));
            put(to, static_cast<T>(value));
            put(to + offsetof(Pair, index), static_cast<Index>(second));
          },
          [](const unsigned char* from) {
            return std::pair{static_cast<int>(get<T>(from)), static_cast<int>(get<Index>(from + offsetof(Pair, index)))};
          }};
}

// Whole numbers up to 2^11 in a half and up to 2^8 in a bfloat16, by their definition: sign, exponent, fraction.
std::uint16_t small_float(int value, int exponent_bias, int fraction_bits) {
  if (value == 0) return 0;
  int exponent = 0;
  while (value >> (exponent + 1) != 0) ++exponent;
  const int fraction = fraction_bits >= exponent ? (value - (1 << exponent)) << (fraction_bits - exponent)
                                                 : (value - (1 << exponent)) >> (exponent - fraction_bits);
  return static_cast<std::uint16_t>((exponent + exponent_bias) << fraction_bits | fraction);
}
int small_int(std::uint16_t bits, int exponent_bias, int fraction_bits) {
  if (bits == 0) return 0;
  const int exponent = (bits >> fraction_bits) - exponent_bias;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  return static_cast<int>(std::ldexp(1.0 + std::ldexp(fraction, -fraction_bits), exponent));
}
TypeCase sixteen_bits(ist_type type, const char* name, int bias, int fraction) {
  return {type,
          name,
          2,
          TypeCase::floating,
          [=](int value, int, unsigned char* to) { put(to, small_float(value, bias, fraction)); },
          [=](const unsigned char* from) {
            return std::pair{small_int(get<std::uint16_t>(from), bias, fraction), 0};
          }};
}

std::vector<TypeCase> types() {
  return {plain<char>(IST_CHAR, "char"),
          plain<std::int8_t>(IST_INT8, "int8"),
          plain<std::uint8_t>(IST_UINT8, "uint8"),
          plain<std::int16_t>(IST_INT16, "int16"),
          plain<std::uint16_t>(IST_UINT16, "uint16"),
          plain<std::int32_t>(IST_INT32, "int32"),
          plain<std::uint32_t>(IST_UINT32, "uint32"),
          plain<std::int64_t>(IST_INT64, "int64"),
          plain<std::uint64_t>(IST_UINT64, "uint64"),
          plain<float>(IST_FLOAT, "float"),
          plain<double>(IST_DOUBLE, "double"),
          plain<int>(IST_INT, "int"),
          plain<long>(IST_LONG, "long"),
          plain<short>(IST_SHORT, "short"),
          plain<unsigned>(IST_UNSIGNED, "unsigned"),
          plain<unsigned long>(IST_UNSIGNED_LONG, "unsigned long"),
          plain<long long>(IST_LONG_LONG, "long long"),
          plain<unsigned short>(IST_UNSIGNED_SHORT, "unsigned short"),
          plain<unsigned long long>(IST_UNSIGNED_LONG_LONG, "unsigned long long"),
          sixteen_bits(IST_HALF, "half", 15, 10),
          sixteen_bits(IST_BFLOAT16, "bfloat16", 127, 7),
          complex_of<float>(IST_COMPLEX_FLOAT, "complex float"),
          complex_of<double>(IST_COMPLEX_DOUBLE, "complex double"),
          located<float, int>(IST_FLOAT_INT, "float, int"),
          located<double, int>(IST_DOUBLE_INT, "double, int"),
          located<long, int>(IST_LONG_INT, "long, int"),
          located<int, int>(IST_INT_INT, "int, int"),
          located<short, int>(IST_SHORT_INT, "short, int"),
          located<std::int64_t, std::int64_t>(IST_INT64_INT64, "int64, int64")};
}

using Value = std::pair<int, int>;
struct OperationCase {
  ist_op op;
  const char* name;
  std::vector<int> families;
  std::function<Value(Value, Value)> of;
};

std::vector<OperationCase> operations() {
  const std::vector<int> numbers{TypeCase::integer, TypeCase::floating};
  const auto first = [](auto of) { return [of](Value a, Value b) { return Value{of(a.first, b.first), 0}; }; };
  const auto before = [](Value a, Value b) { return a.second < b.second ? a : b; };
  return {
      {IST_SUM,
       "sum",
       {TypeCase::integer, TypeCase::floating, TypeCase::complex},
       [](Value a, Value b) {
         return Value{a.first + b.first, a.second + b.second};
       }},
      {IST_PROD,
       "product",
       {TypeCase::integer, TypeCase::floating, TypeCase::complex},
       [](Value a, Value b) {
         return Value{a.first * b.first - a.second * b.second, a.first * b.second + a.second * b.first};
       }},
      {IST_MIN, "minimum", numbers, first([](int a, int b) { return std::min(a, b); })},
      {IST_MAX, "maximum", numbers, first([](int a, int b) { return std::max(a, b); })},
      {IST_MINLOC,
       "minloc",
       {TypeCase::located},
       [=](Value a, Value b) { return a.first == b.first  ? before(a, b)
                                      : a.first < b.first ? a
                                                          : b; }},
      {IST_MAXLOC,
       "maxloc",
       {TypeCase::located},
       [=](Value a, Value b) { return a.first == b.first  ? before(a, b)
                                      : a.first > b.first ? a
                                                          : b; }},
      {IST_LAND, "logical and", {TypeCase::integer}, first([](int a, int b) { return a != 0 && b != 0 ? 1 : 0; })},
      {IST_LOR, "logical or", {TypeCase::integer}, first([](int a, int b) { return a != 0 || b != 0 ? 1 : 0; })},
      {IST_LXOR, "logical xor", {TypeCase::integer}, first([](int a, int b) { return (a != 0) != (b != 0) ? 1 : 0; })},
      {IST_BAND, "bitwise and", {TypeCase::integer}, first([](int a, int b) { return a & b; })},
      {IST_BOR, "bitwise or", {TypeCase::integer}, first([](int a, int b) { return a | b; })},
      {IST_BXOR, "bitwise xor", {TypeCase::integer}, first([](int a, int b) { return a ^ b; })},
  };
}

// Rank r's i-th value: small enough that products of six are exact in every type.
Value value_of(int r, std::size_t i, bool parts) {
  const auto mixed = static_cast<unsigned>(i * 7 + static_cast<std::size_t>(r) * 3 + i / 5);
  return {static_cast<int>(mixed % 3), parts ? static_cast<int>((mixed / 3) % 2) : 0};
}

void check_operation(const OperationCase& operation, const TypeCase& type, std::size_t count, KindDraw& kinds) {
  const Member here{comm()};
  const std::string what = std::string{operation.name} + " of " + std::to_string(count) + " elements of " + type.name;
  const bool two = type.family == TypeCase::complex || type.family == TypeCase::located;
  // Room in whole 8-byte numbers; what is beyond the elements stays as it was.
  Bytes mine((count * type.size + 7) / 8 * 8, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Value value = value_of(here.rank, i, two);
    type.write(value.first, value.second, &mine[i * type.size]);
  }
  Bytes expected((count * type.size + 7) / 8 * 8, 0xa5);
  for (std::size_t i = 0; i < count; ++i) {
    Value result = value_of(0, i, two);
    for (int r = 1; r < here.size; ++r) result = operation.of(result, value_of(r, i, two));
    if (here.size == 1 && std::string{operation.name}.starts_with("logical")) result = value_of(0, i, two);
    type.write(result.first, result.second, &expected[i * type.size]);
  }
  const Numbers send{kinds.next(), mine};
  const Numbers recv{kinds.next(), mine.size() / 8};
  IST_OK_OR_FAIL(
      ist_allreduce(send.get(), recv.get(), static_cast<std::int64_t>(count), type.type, operation.op, here.comm));
  // A zero of a complex product may have either sign.
  if (type.family == TypeCase::complex) {
    Bytes found(expected.size());
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), recv.get(), found.size()));
    for (std::size_t i = 0; i < count; ++i) {
      const Value result = type.read(&found[i * type.size]);
      ASSERT_EQ(type.read(&expected[i * type.size]), result) << what << ", element " << i;
      type.write(result.first, result.second, &found[i * type.size]);
    }
    ASSERT_EQ(-1, first_difference(expected, found)) << what;
    return;
  }
  recv.expect(expected, what);
}

TEST(Reductions, EveryOperationOnEveryTypeIsTheSerialResultOrAnErrorThatNamesBoth) {
  KindDraw kinds{11};
  for (const OperationCase& operation : operations()) {
    for (const TypeCase& type : types()) {
      if (std::count(operation.families.begin(), operation.families.end(), type.family) > 0) {
        check_operation(operation, type, 37, kinds);
        if (testing::Test::HasFatalFailure()) return;
        continue;
      }
      std::uint64_t memory[8] = {};
      EXPECT_EQ(IST_ERR_ARGUMENT, ist_allreduce(ist_host(memory), ist_host(memory), 1, type.type, operation.op, comm()))
          << operation.name << " of " << type.name;
    }
  }
}

TEST(Reductions, LongVectorsOfEveryTypeAreCombinedWhereTheyLive) {
  KindDraw kinds{12};
  const auto all = operations();
  for (const TypeCase& type : types()) {
    const OperationCase& operation = type.family == TypeCase::located ? all[4] : all[0];
    check_operation(operation, type, 300007 / type.size, kinds);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Random floats, where every order gives other bits.
std::vector<float> random_floats(int of, std::size_t count) {
  std::mt19937 generator(static_cast<unsigned>(of) * 101 + 7);
  std::uniform_real_distribution<float> values(-1.0F, 1.0F);
  std::vector<float> floats(count);
  for (float& value : floats) value = values(generator) * std::pow(10.0F, static_cast<float>(generator() % 8));
  return floats;
}

TEST(Reductions, SameInputsGiveTheSameBitsOnEveryRankEveryTimeAndInEveryKind) {
  const Member here{comm()};
  KindDraw kinds{13};
  for (const std::size_t count : {std::size_t{6}, std::size_t{40000}, std::size_t{400000}}) {
    const auto floats = random_floats(here.rank, count);
    Bytes mine(count * 4);
    std::memcpy(mine.data(), floats.data(), mine.size());
    Bytes first;
    for (int time = 0; time < 4; ++time) {
      const Numbers send{time == 0 ? IST_KIND_HOST : kinds.next(), mine};
      const Numbers recv{time == 0 ? IST_KIND_HOST : kinds.next(), mine.size() / 8};
      IST_OK_OR_FAIL(ist_allreduce(send.get(), recv.get(), static_cast<std::int64_t>(count), IST_FLOAT, IST_SUM, here.comm));
      Bytes found(mine.size());
      IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), recv.get(), found.size()));
      if (time == 0) {
        first = found;
        // What rank 0 has is what everybody has.
        Bytes of_root = found;
        IST_OK_OR_FAIL(
            ist_bcast(ist_host(of_root.data()), static_cast<std::int64_t>(of_root.size()), IST_BYTE, 0, here.comm));
        EXPECT_EQ(-1, first_difference(of_root, found));
      }
      ASSERT_EQ(-1, first_difference(first, found)) << count << " floats, time " << time;
    }
  }
}

// x -> a x + b, composed: associative, and the order matters. `with` is applied first.
void compose(const void* with, void* into, std::int64_t count, ist_type type, void* user) {
  EXPECT_EQ(IST_INT64_INT64, type);
  ++*static_cast<int*>(user);
  const auto* left = static_cast<const std::uint64_t*>(with);
  auto* right = static_cast<std::uint64_t*>(into);
  for (std::int64_t i = 0; i < count; ++i, left += 2, right += 2) {
    right[1] = right[0] * left[1] + right[1];
    right[0] = left[0] * right[0];
  }
}

TEST(Reductions, AnOperationOfTheUsersThatDoesNotCommuteIsAppliedInTheOrderOfRanks) {
  on_communicators([](const Member& here) {
    KindDraw kinds{14};
    int calls = 0;
    ist_op op = IST_OP_NULL;
    IST_OK_OR_FAIL(ist_op_create(compose, &calls, 0, &op));
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{5000}, std::size_t{70001}}) {
      const auto number = static_cast<std::int64_t>(count);
      const Bytes mine = input_of(here.rank, count * 2, count);
      Bytes before;  // of the ranks below this one
      Bytes all = input_of(0, count * 2, count);
      int ignored = 0;
      for (int r = 1; r < here.size; ++r) {
        if (r == here.rank) before = all;
        Bytes next = input_of(r, count * 2, count);
        compose(all.data(), next.data(), number, IST_INT64_INT64, &ignored);
        all = next;
      }
      Bytes up_to_here = mine;
      if (here.rank > 0) compose(before.data(), up_to_here.data(), number, IST_INT64_INT64, &ignored);
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), count * 2};
      IST_OK_OR_FAIL(ist_allreduce(send.get(), recv.get(), number, IST_INT64_INT64, op, here.comm));
      recv.expect(all, "allreduce of " + std::to_string(count));
      for (int root = 0; root < here.size; ++root) {
        const Numbers at_root{kinds.next(), count * 2};
        IST_OK_OR_FAIL(ist_reduce(send.get(), at_root.get(), number, IST_INT64_INT64, op, root, here.comm));
        at_root.expect(here.rank == root ? all : Bytes{}, "reduce of " + std::to_string(count));
      }
      const Numbers scan{kinds.next(), count * 2};
      IST_OK_OR_FAIL(ist_scan(send.get(), scan.get(), number, IST_INT64_INT64, op, here.comm));
      scan.expect(up_to_here, "scan of " + std::to_string(count));
      const Numbers exscan{kinds.next(), count * 2};
      IST_OK_OR_FAIL(ist_exscan(send.get(), exscan.get(), number, IST_INT64_INT64, op, here.comm));
      exscan.expect(before, "exscan of " + std::to_string(count));
      const auto each = number / here.size;
      const Numbers part_of{kinds.next(), static_cast<std::size_t>(each) * 2};
      IST_OK_OR_FAIL(ist_reduce_scatter_block(send.get(), part_of.get(), each, IST_INT64_INT64, op, here.comm));
      part_of.expect(part(all, static_cast<std::size_t>(here.rank * each) * 2, static_cast<std::size_t>(each) * 2),
                     "reduce_scatter_block of " + std::to_string(count));
    }
    EXPECT_TRUE(calls > 0 || here.size == 1);
    IST_OK_OR_FAIL(ist_op_free(&op));
    EXPECT_EQ(IST_OP_NULL, op);
  });
}

TEST(Reductions, OperationsThatAreNoneAreErrors) {
  int value = 1;
  EXPECT_EQ(IST_ERR_HANDLE, ist_allreduce(ist_host(&value), ist_host(&value), 1, IST_INT, IST_OP_NULL, comm()));
  EXPECT_EQ(IST_ERR_HANDLE,
            ist_allreduce(ist_host(&value), ist_host(&value), 1, IST_INT, reinterpret_cast<ist_op>(0x777), comm()));
  ist_op op = IST_OP_NULL;
  int calls = 0;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_op_create(nullptr, nullptr, 1, &op));
  IST_OK_OR_FAIL(ist_op_create(compose, &calls, 0, &op));
  ist_op freed = op;
  IST_OK_OR_FAIL(ist_op_free(&op));
  EXPECT_EQ(IST_ERR_HANDLE, ist_op_free(&freed));
  EXPECT_EQ(IST_ERR_HANDLE, ist_allreduce(ist_host(&value), ist_host(&value), 1, IST_INT, freed, comm()));
  ist_op sum = IST_SUM;
  EXPECT_EQ(IST_ERR_HANDLE, ist_op_free(&sum));
}

TEST(Reductions, ArgumentsThatNoRankMayGiveAreErrorsBeforeAnythingIsSent) {
  int value = 1;
  EXPECT_EQ(IST_ERR_RANK, ist_bcast(ist_host(&value), 1, IST_INT, size(), comm()));
  EXPECT_NE(nullptr, std::strstr(ist_error_text(), "root is")) << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_bcast(ist_host(&value), -1, IST_INT, 0, comm()));
  EXPECT_EQ(IST_ERR_ARGUMENT,
            ist_allreduce(ist_host(&value), ist_host(&value), 1, static_cast<ist_type>(99), IST_SUM, comm()));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_iallreduce(ist_host(&value), ist_host(&value), 1, IST_INT, IST_SUM, comm(), nullptr));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_reduce_scatter(ist_host(&value), ist_host(&value), nullptr, IST_INT, IST_SUM, comm()));
  EXPECT_EQ(IST_ERR_HANDLE, ist_bcast(ist_host(&value), 1, IST_INT, 0, IST_COMM_NULL));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// Which error each rank gets where rank `faulty` has a buffer that is none.
TEST(Reductions, WhatOneRankCannotDoIsItsErrorAndThatOfThoseWhoDependOnItAndTheNextCallWorks) {
  const Member here{comm()};
  for (const std::size_t count : {std::size_t{4}, std::size_t{200000}}) {
    const auto number = static_cast<std::int64_t>(count);
    const int faulty = here.size - 1;
    std::vector<std::int64_t> in(count, 1);
    std::vector<std::int64_t> out(count, 0);
    ist_buffer send = ist_host(in.data());
    if (here.rank == faulty) send.kind = 250;
    const int code = ist_allreduce(send, ist_host(out.data()), number, IST_INT64, IST_SUM, here.comm);
    EXPECT_NE(IST_OK, code);
    if (here.rank != faulty && count == 4) {
      EXPECT_NE(nullptr, std::strstr(ist_error_text(), ("rank " + std::to_string(faulty)).c_str())) << ist_error_text();
    }
    IST_OK_OR_FAIL(ist_allreduce(ist_host(in.data()), ist_host(out.data()), number, IST_INT64, IST_SUM, here.comm));
    EXPECT_EQ(std::vector<std::int64_t>(count, here.size), out);
  }
}

TEST(Reductions, CountsThatDifferAreAnErrorAndNoHang) {
  const Member here{comm()};
  if (here.size == 1) GTEST_SKIP() << "needs two ranks";
  for (const std::int64_t count : {std::int64_t{3}, std::int64_t{50000}}) {
    const std::int64_t mine = here.rank == 0 ? count + 1 : count;
    std::vector<std::int64_t> in(static_cast<std::size_t>(mine), 1);
    std::vector<std::int64_t> out(static_cast<std::size_t>(mine), 0);
    const int code = ist_allreduce(ist_host(in.data()), ist_host(out.data()), mine, IST_INT64, IST_SUM, here.comm);
    int failed = code == IST_ERR_TRUNCATE ? 1 : 0;
    EXPECT_TRUE(code == IST_OK || code == IST_ERR_TRUNCATE) << ist_error_text();
    IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, ist_host(&failed), 1, IST_INT, IST_MAX, here.comm));
    EXPECT_EQ(1, failed) << "nobody noticed";
  }
}

TEST(Reductions, ARankThatLeftIsAnErrorThatNamesItOnAllOthers) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  ist_world other = IST_WORLD_NULL;
  IST_OK_OR_FAIL(ist_world_create(&other));
  ist_comm there = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_world_comm(other, &there));
  IST_OK_OR_FAIL(ist_barrier(there));
  if (rank() != 1) {
    std::int64_t in = 1;
    std::int64_t out = 0;
    EXPECT_EQ(IST_ERR_PEER_LEFT, ist_allreduce(ist_host(&in), ist_host(&out), 1, IST_INT64, IST_SUM, there));
    EXPECT_NE(nullptr, std::strstr(ist_error_text(), "rank 1")) << ist_error_text();
  }
  IST_OK_OR_FAIL(ist_world_destroy(&other));
}

}  // namespace
