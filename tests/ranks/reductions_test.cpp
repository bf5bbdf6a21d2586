// Reductions: every operation on every type, order and reproducibility, operations of the user's, and what goes wrong. Run on
// 1 to 6 ranks.
#include <map>

#include "reduction_cases.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

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
    // The sum, of pairs the least, and of bytes what all have; of two of these, since each operation is a kernel that is compiled, the greatest, too.
    std::vector<OperationCase> some{type.family == TypeCase::located ? all[4]
                                    : type.family == TypeCase::bits  ? all[9]
                                                                     : all[0]};
    if (type.type == IST_FLOAT_INT || type.type == IST_INT64_INT64) some.push_back(all[5]);
    for (const OperationCase& operation : some) {
      check_operation(operation, type, 300007 / type.size, kinds);
      if (testing::Test::HasFatalFailure()) return;
    }
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

// The first parts are one byte longer than the others: if those go without their receive, these may not.
TEST(Reductions, PartsAroundWhatGoesWithoutItsReceiveAllArrive) {
  for (const std::size_t part :
       {std::size_t{8} << 10, std::size_t{16} << 10, std::size_t{32} << 10, std::size_t{64} << 10, std::size_t{128} << 10})
    for (int longer = 0; longer < size(); ++longer) {
      const std::size_t all = part * static_cast<std::size_t>(size()) + static_cast<std::size_t>(longer);
      std::vector<unsigned char> greatest(all);
      for (int rank = 0; rank < size(); ++rank) {
        const auto theirs = random_bytes(all, 10 + static_cast<std::uint64_t>(rank));
        std::transform(theirs.begin(), theirs.end(), greatest.begin(), greatest.begin(),
                       [](unsigned char one, unsigned char other) { return std::max(one, other); });
      }
      auto mine = random_bytes(all, 10 + static_cast<std::uint64_t>(rank()));
      IST_OK_OR_FAIL(
          ist_allreduce(IST_IN_PLACE, ist_host(mine.data()), static_cast<std::int64_t>(all), IST_UINT8, IST_MAX, comm()));
      EXPECT_EQ(-1, first_difference(greatest, mine)) << all << " bytes";
    }
}

TEST(Reductions, AnOperationOfTheUsersThatDoesNotCommuteIsAppliedInTheOrderOfRanks) {
  on_communicators(Form::blocking, [](const Member& here) {
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

// The sum of numbers that wrap: any order gives the same.
void add(const void* with, void* into, std::int64_t count, ist_type type, void* user) {
  EXPECT_EQ(IST_UINT64, type);
  ++*static_cast<int*>(user);
  const auto* from = static_cast<const std::uint64_t*>(with);
  auto* sum = static_cast<std::uint64_t*>(into);
  for (std::int64_t i = 0; i < count; ++i) sum[i] += from[i];
}

class UsersOperation : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Each, UsersOperation, testing::Values(Form::blocking, Form::nonblocking), name_of);

// Short, and so long that the library's own operations would be carried out on the device.
TEST_P(UsersOperation, CombinesOnTheHostWhatAllRanksHaveOnDevices) {
  const Member here{comm()};
  for (const KindName& kind : usable_kinds()) {
    if (kind.kind == IST_KIND_HOST) continue;
    int added = 0;
    int composed = 0;
    ist_op commutes = IST_OP_NULL;
    ist_op ordered = IST_OP_NULL;
    IST_OK_OR_FAIL(ist_op_create(add, &added, 1, &commutes));
    IST_OK_OR_FAIL(ist_op_create(compose, &composed, 0, &ordered));
    for (const std::size_t count : {std::size_t{5}, std::size_t{300}, std::size_t{140002}}) {
      const auto number = static_cast<std::int64_t>(count);
      const Bytes mine = input_of(here.rank, count * 2, count);
      Bytes all = input_of(0, count * 2, count);
      int ignored = 0;
      for (int r = 1; r < here.size; ++r) {
        Bytes next = input_of(r, count * 2, count);
        compose(all.data(), next.data(), number, IST_INT64_INT64, &ignored);
        all = next;
      }
      const Numbers send{kind.kind, mine};
      const Numbers sum{kind.kind, count * 2};
      const Numbers at_root{kind.kind, count * 2};
      const Numbers in_order{kind.kind, count * 2};
      const Numbers in_place{kind.kind, mine};
      Calls calls{GetParam()};
      IST_OK_OR_FAIL(
          calls(ist_allreduce, ist_iallreduce, send.get(), sum.get(), 2 * number, IST_UINT64, commutes, here.comm));
      IST_OK_OR_FAIL(
          calls(ist_reduce, ist_ireduce, send.get(), at_root.get(), 2 * number, IST_UINT64, commutes, 0, here.comm));
      IST_OK_OR_FAIL(
          calls(ist_allreduce, ist_iallreduce, send.get(), in_order.get(), number, IST_INT64_INT64, ordered, here.comm));
      IST_OK_OR_FAIL(
          calls(ist_allreduce, ist_iallreduce, IST_IN_PLACE, in_place.get(), number, IST_INT64_INT64, ordered, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      const std::string what = std::to_string(count) + " in " + kind.name;
      sum.expect(sum_of(0, here.size, count * 2, count), "allreduce of " + what);
      at_root.expect(here.rank == 0 ? sum_of(0, here.size, count * 2, count) : Bytes{}, "reduce of " + what);
      in_order.expect(all, "allreduce in order of " + what);
      in_place.expect(all, "allreduce in order and in place of " + what);
      if (HasFatalFailure()) return;
    }
    // Somewhere: by some algorithms not every rank combines.
    int most[2] = {added, composed};
    IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, ist_host(most), 2, IST_INT, IST_MAX, here.comm));
    EXPECT_TRUE((most[0] > 0 && most[1] > 0) || here.size == 1);
    IST_OK_OR_FAIL(ist_op_free(&commutes));
    IST_OK_OR_FAIL(ist_op_free(&ordered));
  }
}

TEST(Types, HaveTheSizesThatTheirElementsHaveInC) {
  const std::map<ist_type, std::size_t> sizes{{IST_BYTE, 1},
                                              {IST_CHAR, 1},
                                              {IST_INT8, 1},
                                              {IST_UINT8, 1},
                                              {IST_INT16, 2},
                                              {IST_UINT16, 2},
                                              {IST_INT32, 4},
                                              {IST_UINT32, 4},
                                              {IST_INT64, 8},
                                              {IST_UINT64, 8},
                                              {IST_FLOAT, 4},
                                              {IST_DOUBLE, 8},
                                              {IST_INT, sizeof(int)},
                                              {IST_LONG, sizeof(long)},
                                              {IST_SHORT, sizeof(short)},
                                              {IST_UNSIGNED, sizeof(unsigned)},
                                              {IST_UNSIGNED_LONG, sizeof(unsigned long)},
                                              {IST_LONG_LONG, sizeof(long long)},
                                              {IST_UNSIGNED_SHORT, sizeof(unsigned short)},
                                              {IST_UNSIGNED_LONG_LONG, sizeof(unsigned long long)},
                                              {IST_HALF, 2},
                                              {IST_BFLOAT16, 2},
                                              {IST_COMPLEX_FLOAT, 8},
                                              {IST_COMPLEX_DOUBLE, 16},
                                              {IST_FLOAT_INT, 8},
                                              {IST_DOUBLE_INT, 16},
                                              {IST_LONG_INT, 16},
                                              {IST_INT_INT, 8},
                                              {IST_SHORT_INT, 8},
                                              {IST_INT64_INT64, 16}};
  EXPECT_EQ(std::size_t{IST_INT64_INT64 + 1}, sizes.size()) << "a type is missing here";
  for (const auto& [type, bytes] : sizes) EXPECT_EQ(bytes, ist_type_size(type)) << "type " << type;
  for (const TypeCase& type : types()) EXPECT_EQ(type.size, ist_type_size(type.type)) << type.name;
  for (const int none : {-1, IST_INT64_INT64 + 1, 1000})
    EXPECT_EQ(0U, ist_type_size(static_cast<ist_type>(none))) << "type " << none;
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
