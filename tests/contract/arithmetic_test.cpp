// What kinds that combine promise: on each of their devices the bits that the processor gives.
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <thread>

#include "memory/opencl/opencl_api.hpp"
#include "operands.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

struct Case {
  Place place;
  Reduction reduction;
};
std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.place << ", " << name_of(each.reduction);
}

std::vector<Place> places_that_combine() {
  std::vector<Place> all;
  for (const Place& place : all_places())
    if (place.get().arithmetic()) all.push_back(place);
  return all;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const Place& place : places_that_combine())
    for (const Reduction reduction : all_reductions()) all.push_back({place, reduction});
  return all;
}

// One type for each element: the others are the same kernel.
std::vector<ist_type> types_of(const Place& place, Reduction reduction) {
  std::vector<ist_type> all;
  std::vector<Element> seen;
  for (const Combination& each : all_combinations()) {
    const Element element = *element_of(each.type);
    if (each.reduction != reduction || std::count(seen.begin(), seen.end(), element) != 0) continue;
    seen.push_back(element);
    if (place.get().arithmetic()->can(reduction, each.type, place.device).ok()) all.push_back(each.type);
  }
  return all;
}

Elements expected_of(const Combination& each, const Elements& into, const Elements& with) {
  Elements result = into;
  const auto count = static_cast<std::int64_t>(into.size() / size_of(each.type).value);
  combine_on_host(each.reduction, each.type, result.data(), with.data(), count);
  return result;
}

// Combines two parts of two buffers; all around must stay.
void expect_combined(const Place& place, const Combination& each, std::int64_t count, std::uint64_t into_at,
                     std::uint64_t with_at) {
  constexpr std::uint64_t kGuard = 48;
  const Elements into = random_elements(each.type, count);
  const Elements with = random_elements(each.type, count);
  const Memory target{place, into_at + into.size() + kGuard};
  const Memory source{place, with_at + with.size() + kGuard};
  Data target_bytes = random_bytes(target.piece().size.value);
  Data source_bytes = random_bytes(source.piece().size.value);
  std::copy(into.begin(), into.end(), target_bytes.begin() + static_cast<std::ptrdiff_t>(into_at));
  std::copy(with.begin(), with.end(), source_bytes.begin() + static_cast<std::ptrdiff_t>(with_at));
  write(target.piece(), target_bytes);
  write(source.piece(), source_bytes);
  wait(must(place.get().arithmetic()->combine(each.reduction, each.type, target.part(into_at, into.size()),
                                              source.part(with_at, with.size()), Ticket{})));
  Data found = read(target.piece());
  const auto begin = found.begin() + static_cast<std::ptrdiff_t>(into_at);
  const Elements result(begin, begin + static_cast<std::ptrdiff_t>(into.size()));
  EXPECT_EQ(difference(each.type, result, expected_of(each, into, with)), "")
      << name_of(each.reduction) << ", " << count << " elements at " << into_at << " and " << with_at;
  std::copy(into.begin(), into.end(), begin);
  EXPECT_EQ(found, target_bytes) << "bytes outside of the piece changed";
  EXPECT_EQ(read(source.piece()), source_bytes) << "the right-hand side changed";
}

class KindArithmetic : public testing::TestWithParam<Case> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KindArithmetic);

TEST_P(KindArithmetic, gives_the_bits_of_the_processor_for_every_type) {
  const auto& [place, reduction] = GetParam();
  for (const ist_type type : types_of(place, reduction))
    for (const std::int64_t count : {1, 2, 3, 17, 255, 257, 20003}) expect_combined(place, {reduction, type}, count, 0, 0);
}

TEST_P(KindArithmetic, takes_pieces_at_every_offset_that_an_element_may_have) {
  const auto& [place, reduction] = GetParam();
  for (const ist_type type : types_of(place, reduction)) {
    const std::uint64_t step = alignment_of(*element_of(type)).value;
    for (const auto& [into_at, with_at] :
         {std::pair{step, std::uint64_t{0}}, {std::uint64_t{16}, step}, {3 * step, 3 * step}})
      expect_combined(place, {reduction, type}, 1001, into_at, with_at);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KindArithmetic, testing::ValuesIn(all_cases()), [](const auto& each) {
  return name_of(each.param.place) + "_" + std::string{name_of(each.param.reduction)};
});

class KindCombines : public testing::TestWithParam<Place> {
 protected:
  Arithmetic& arithmetic() const { return *GetParam().get().arithmetic(); }
  Result<Ticket> combine(const Piece& into, const Piece& with, const Ticket& after) const {
    return arithmetic().combine(Reduction::sum, IST_INT32, into, with, after);
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KindCombines);

// A sum, with the copies before and after it in the same chain of tickets.
TEST_P(KindCombines, begins_after_the_ticket_it_is_given_and_is_waited_for_by_its_own) {
  constexpr std::int64_t kCount = 100003;
  constexpr std::uint64_t kSize = kCount * 4;
  MemoryKind& kind = GetParam().get();
  const Memory into{GetParam(), kSize};
  const Memory with{GetParam(), kSize};
  for (int round = 0; round < (long_tests() ? 200 : 20); ++round) {
    const Elements a = random_elements(IST_INT32, kCount);
    const Elements b = random_elements(IST_INT32, kCount);
    Data found(kSize, 0xEE);
    const Ticket first = must(kind.copy(into.piece(), host_piece(a.data(), Bytes{kSize}), Ticket{}));
    const Ticket second = must(kind.copy(with.piece(), host_piece(b.data(), Bytes{kSize}), first));
    const Ticket nothing = must(combine(into.part(0, 0), with.part(0, 0), second));
    const Ticket once = must(combine(into.piece(), with.piece(), nothing));
    const Ticket twice = must(combine(into.piece(), with.piece(), once));
    wait(must(kind.copy(host_piece(found.data(), Bytes{kSize}), into.piece(), twice)));
    const Combination sum{Reduction::sum, IST_INT32};
    ASSERT_EQ(found, expected_of(sum, expected_of(sum, a, b), b)) << "round " << round;
  }
}

TEST_P(KindCombines, a_million_elements_and_three_of_some_types) {
  for (const Combination& each : {Combination{Reduction::sum, IST_FLOAT},
                                  {Reduction::maximum, IST_INT8},
                                  {Reduction::product, IST_BFLOAT16},
                                  {Reduction::minloc, IST_FLOAT_INT}})
    expect_combined(GetParam(), each, 1000003, 0, 0);
}

TEST_P(KindCombines, the_first_use_may_be_by_four_threads_at_once) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (std::size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&, t] {
      try {
        for (const ist_type type : {IST_INT64, IST_FLOAT, IST_INT16, IST_HALF})
          expect_combined(GetParam(), {Reduction::sum, type}, 1000 + static_cast<std::int64_t>(t), 0, 0);
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  for (auto& each : threads) each.join();
  for (const auto& each : errors) EXPECT_EQ(each, "");
}

TEST_P(KindCombines, tickets_may_be_dropped_unfinished) {
  constexpr std::uint64_t kSize = 64 << 10;
  const Memory into{GetParam(), kSize};
  const Memory with{GetParam(), kSize};
  const Elements a = random_elements(IST_INT32, kSize / 4);
  const Elements b = random_elements(IST_INT32, kSize / 4);
  write(into.piece(), a);
  write(with.piece(), b);
  Ticket before;
  Elements expected = a;
  for (int i = 0; i < 50; ++i) {
    before = must(combine(into.piece(), with.piece(), before));
    expected = expected_of({Reduction::sum, IST_INT32}, expected, b);
  }
  wait(before);
  EXPECT_EQ(read(into.piece()), expected);
}

TEST_P(KindCombines, refuses_in_words_what_cannot_be_combined) {
  const Memory memory{GetParam(), 64};
  const Data bytes = random_bytes(64);
  write(memory.piece(), bytes);
  const auto refusal = [&](Reduction reduction, ist_type type, std::uint64_t into_size, std::uint64_t with_at,
                           std::uint64_t with_size) {
    const auto result =
        arithmetic().combine(reduction, type, memory.part(0, into_size), memory.part(with_at, with_size), {});
    EXPECT_EQ(result.status().code(), IST_ERR_ARGUMENT);
    return result.status().text();
  };
  EXPECT_NE(refusal(Reduction::sum, IST_INT32, 16, 32, 20).find("20 bytes"), std::string::npos);
  EXPECT_NE(refusal(Reduction::sum, IST_INT32, 15, 32, 15).find("IST_INT32"), std::string::npos);
  EXPECT_NE(refusal(Reduction::bitwise_or, IST_FLOAT, 16, 32, 16).find("bitwise_or"), std::string::npos);
  EXPECT_NE(refusal(Reduction::sum, static_cast<ist_type>(77), 16, 32, 16).find("77"), std::string::npos);
  if (GetParam().kind != KindId::host) {
    const std::string text = refusal(Reduction::sum, IST_DOUBLE, 16, 36, 16);
    EXPECT_NE(text.find("multiple of 8"), std::string::npos) << text;
  }
  EXPECT_EQ(read(memory.piece()), bytes) << "a refused reduction changed bytes";
  EXPECT_FALSE(arithmetic().can(Reduction::minimum, IST_COMPLEX_FLOAT, GetParam().device).ok());
  EXPECT_TRUE(arithmetic().can(Reduction::sum, IST_FLOAT, GetParam().device).ok());
  EXPECT_FALSE(arithmetic().can(Reduction::sum, IST_FLOAT, 1000).ok());
}

// What an OpenCL device says that it cannot do; of every other, nothing.
struct Lacks {
  bool doubles = false;
  bool small_floats = false;
  explicit Lacks(const Place& place) {
    if (place.kind != KindId::opencl) return;
    const OpenclApi& api = **OpenclApi::get();
    const Memory memory{place, 64};
    cl_device_id device = nullptr;
    must(opencl_status(api.clGetCommandQueueInfo(queue_of(memory.piece()), CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
                       "device"));
    cl_device_fp_config numbers = 0;
    doubles = api.clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof numbers, &numbers, nullptr) != CL_SUCCESS ||
              numbers == 0;
    must(
        opencl_status(api.clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof numbers, &numbers, nullptr), "floats"));
    small_floats = (numbers & CL_FP_DENORM) == 0;
  }
};

// The tests of every type leave out what is refused here: so nothing may be that the device can do. Halves are kept in sixteen bits
// and computed as floats, which needs no device that knows them.
TEST_P(KindCombines, every_type_that_the_device_can_do) {
  const Lacks lacks{GetParam()};
  if (lacks.doubles) std::printf("not covered here: %s has no double precision\n", name_of(GetParam()).c_str());
  if (lacks.small_floats)
    std::printf("not covered here: %s takes the smallest floats for zero\n", name_of(GetParam()).c_str());
  const auto is_one_of = [](ist_type type, std::initializer_list<ist_type> those) {
    return std::count(those.begin(), those.end(), type) != 0;
  };
  for (const Combination& each : all_combinations()) {
    const bool refused =
        (lacks.doubles && is_one_of(each.type, {IST_DOUBLE, IST_COMPLEX_DOUBLE, IST_DOUBLE_INT})) ||
        (lacks.small_floats && is_one_of(each.type, {IST_FLOAT, IST_BFLOAT16, IST_COMPLEX_FLOAT, IST_FLOAT_INT}));
    const Status can = arithmetic().can(each.reduction, each.type, GetParam().device);
    EXPECT_EQ(can.ok(), !refused) << name_of(each.reduction) << " of type " << each.type << ": " << can.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KindCombines, testing::ValuesIn(places_that_combine()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace ist::test
