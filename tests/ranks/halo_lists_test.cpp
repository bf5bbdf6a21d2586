// Exchanges of elements that are listed, in all kinds of memory. Run on 1, 2, 3, 4, 5 and 8 ranks.
#include <dlfcn.h>

#include "halo_support.hpp"

namespace {

using namespace rank_test;

// Kernels so far, as the fake driver counts them; -1 with another one, or none.
std::int64_t launches() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* const calls = driver == nullptr ? nullptr : ::dlsym(driver, "fake_cuda_calls");
  return calls == nullptr
             ? -1
             : static_cast<std::int64_t>(reinterpret_cast<std::uint64_t (*)(const char*)>(calls)("cuLaunchKernel"));
}

// Every rank has 40 elements of its own, and behind them three from each rank: those with numbers 7, 3 and 30 there.
TEST(HaloLists, of_every_kind_by_every_packing_and_way_bring_the_elements_that_were_named) {
  constexpr std::int64_t kSend[] = {7, 3, 30};
  const auto all = static_cast<std::size_t>(size()), elements = 40 + 3 * all;
  std::vector<std::array<std::int64_t, 3>> places(all);
  std::vector<int> ranks;
  std::vector<std::int64_t> counts(all, 3);
  std::vector<const std::int64_t*> sends(all, kSend), receives;
  for (std::size_t r = 0; r < all; ++r) {
    const auto at = static_cast<std::int64_t>(40 + 3 * r);
    places[r] = {at + 2, at, at + 1};  // in another order
    ranks.push_back(static_cast<int>(all - 1 - r));
    receives.push_back(places[r].data());
  }
  const ist_halo_lists lists{size(), ranks.data(), counts.data(), sends.data(), counts.data(), receives.data()};
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_packing packing : {IST_HALO_AUTO, IST_HALO_CALLS, IST_HALO_LAYOUTS, IST_HALO_LOOPS})
      for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
        if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
        GuardedBuffer eights(kind, 8 * elements), threes(kind, 3 * elements);
        const ist_halo_field fields[] = {{threes.get(), 3, nullptr, nullptr}, {eights.get(), 8, nullptr, nullptr}};
        const ist_halo_options options{sizeof options, 0, packing, way, 0};
        ist_halo halo = IST_HALO_NULL;
        IST_OK_OR_FAIL(ist_halo_create_lists(comm(), &lists, 2, fields, &options, &halo));
        for (int step = 0; step < 2; ++step) {
          const auto seed = [&](std::size_t from, std::size_t element) {
            return from * 100 + element * 10 + static_cast<std::size_t>(step);
          };
          eights.poison(), threes.poison();
          eights.fill(random_bytes(8 * 40, seed(at(rank()), 8))), threes.fill(random_bytes(3 * 40, seed(at(rank()), 3)));
          const std::int64_t before = launches();
          IST_OK_OR_FAIL(ist_halo_pack(halo));
          const std::int64_t packed = launches();
          IST_OK_OR_FAIL(ist_halo_exchange(halo));
          const std::int64_t exchanged = launches();
          IST_OK_OR_FAIL(ist_halo_unpack(halo));
          if (kind == IST_KIND_CUDA && packing == IST_HALO_LOOPS && before >= 0) {
            EXPECT_EQ(packed - before, 1) << "lists of both fields for all ranks";
            EXPECT_EQ(launches() - exchanged, 1);
          }
          for (const std::size_t element : {std::size_t{8}, std::size_t{3}}) {
            auto expected = random_bytes(element * 40, seed(at(rank()), element));
            expected.resize(element * elements, 0xa5);
            for (std::size_t r = 0; r < all; ++r) {
              const auto theirs = random_bytes(element * 40, seed(at(ranks[r]), element));
              for (std::size_t i = 0; i < 3; ++i)
                std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(element) * kSend[i], element,
                            expected.begin() + static_cast<std::ptrdiff_t>(element) * places[r][i]);
            }
            (element == 8 ? eights : threes).expect(expected, "elements of " + std::to_string(element));
          }
        }
        IST_OK_OR_FAIL(ist_halo_free(&halo));
        if (HasFailure()) FAIL() << "kind " << kind << ", packing " << packing << ", way " << way;
      }
}

// As many from one rank to another as they say, none among them, of one to four fields.
std::vector<std::int64_t> named(int from, int to, int number) {
  std::vector<std::int64_t> elements;
  for (int i = 0; i < (5 * from + 3 * to + number) % 7; ++i) elements.push_back((7 * i + 11 * from + 3 * to + number) % 40);
  return elements;
}

// The elements of this rank's field, those of the others among them where they were exchanged.
std::vector<unsigned char> picture(std::size_t element, int number, bool exchanged) {
  const auto own = [&](int of) { return random_bytes(element * 40, at(of) * 1000 + at(number) * 20 + element); };
  auto bytes = own(rank());
  bytes.resize(element * at(40 + 7 * size()), 0xa5);
  for (int from = 0; from < size() && exchanged; ++from) {
    const auto theirs = own(from);
    const auto elements = named(from, rank(), number);
    for (std::size_t i = 0; i < elements.size(); ++i)
      std::copy_n(&theirs[element * static_cast<std::size_t>(elements[i])], element,
                  &bytes[element * (at(40 + 7 * from) + elements.size() - 1 - i)]);
  }
  return bytes;
}

void exchange_lists(ist_kind kind, const ist_halo_options& options, int number) {
  std::vector<int> ranks;
  std::vector<std::vector<std::int64_t>> out, in;
  std::vector<std::int64_t> sent, received;
  std::vector<const std::int64_t*> sends, receives;
  for (int other = 0; other < size(); ++other) {
    ranks.push_back(other);
    out.push_back(named(rank(), other, number));
    in.emplace_back(named(other, rank(), number));
    for (std::size_t i = 0; i < in.back().size(); ++i)
      in.back()[i] = 40 + 7 * other + static_cast<std::int64_t>(in.back().size() - 1 - i);
    sent.push_back(std::ssize(out.back())), received.push_back(std::ssize(in.back()));
  }
  for (const auto& each : out) sends.push_back(each.data());
  for (const auto& each : in) receives.push_back(each.data());
  const ist_halo_lists lists{size(), ranks.data(), sent.data(), sends.data(), received.data(), receives.data()};
  constexpr std::size_t kElements[] = {8, 3, 16, 1};
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<ist_halo_field> fields;
  for (int f = 0; f <= number % 4; ++f) {
    buffers.push_back(std::make_unique<GuardedBuffer>(kind, kElements[f] * at(40 + 7 * size())));
    buffers.back()->fill(picture(kElements[f], number, false));
    fields.push_back({buffers.back()->get(), static_cast<std::int64_t>(kElements[f]), nullptr, nullptr});
  }
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create_lists(comm(), &lists, static_cast<int>(fields.size()), fields.data(), &options, &halo));
  step(halo, number % 2 == 1);
  for (std::size_t f = 0; f < buffers.size(); ++f)
    buffers[f]->expect(picture(kElements[f], number, true), "field " + std::to_string(f));
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

TEST(HaloLists, of_all_lengths_and_numbers_of_fields_are_exchanged_in_every_kind_packing_and_way) {
  for (const ist_kind kind : all_kinds()) {
    int number = 0;
    for (const ist_halo_packing packing : {IST_HALO_CALLS, IST_HALO_LAYOUTS, IST_HALO_LOOPS})
      for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED})
        for (int fields = 0; fields < 4; ++fields, ++number) {
          if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
          exchange_lists(kind, {sizeof(ist_halo_options), 0, packing, way, 0}, number);
          if (HasFailure()) FAIL() << "kind " << kind << ", packing " << packing << ", way " << way << ", number " << number;
        }
  }
}

// The last rank has no elements, and so no memory; each of the others sends one to all of them.
TEST(HaloLists, of_a_rank_that_has_none_need_no_buffer) {
  const bool none = rank() == size() - 1;
  const auto others = at(size() - 1);
  std::vector<int> ranks(others);
  std::vector<std::int64_t> places(others + 1), counts(others + 1, 1);
  std::vector<const std::int64_t*> sends(others + 1, places.data()), receives(others + 1);
  for (std::size_t r = 0; r < others; ++r) {
    ranks[r] = static_cast<int>(r);
    places[r + 1] = static_cast<std::int64_t>(r + 1);
    receives[r] = &places[r + 1];
  }
  const ist_halo_lists lists{none ? 0 : size() - 1, ranks.data(),  counts.data(),
                             sends.data(),          counts.data(), receives.data()};
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
      if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
      GuardedBuffer elements(kind, 8 * at(size()));
      ist_halo_field field{elements.get(), 8, nullptr, nullptr};
      if (none) field.buffer.object = 0, field.buffer.offset = 0;
      const ist_halo_options options{sizeof options, 0, IST_HALO_AUTO, way, 0};
      ist_halo halo = IST_HALO_NULL;
      IST_OK_OR_FAIL(ist_halo_create_lists(comm(), &lists, 1, &field, &options, &halo));
      std::vector<unsigned char> expected;
      if (!none) {
        expected = random_bytes(8, at(rank()));
        elements.fill(expected);
        for (const int other : ranks) {
          const auto theirs = random_bytes(8, at(other));
          expected.insert(expected.end(), theirs.begin(), theirs.end());
        }
      }
      step(halo, false);
      elements.expect(expected, "kind " + std::to_string(kind) + ", way " + std::to_string(way));
      IST_OK_OR_FAIL(ist_halo_free(&halo));
    }
}

TEST(HaloLists, that_cannot_be_are_refused_at_all_ranks) {
  std::vector<double> field(10);
  const ist_halo_field given{ist_host(field.data()), 8, nullptr, nullptr};
  std::int64_t numbers[] = {1, 2}, places[] = {3, 4}, two = 2, none = 0;
  const std::int64_t *send = numbers, *receive = places;
  int other = rank();
  ist_halo_lists lists{1, &other, &two, &send, &two, &receive};
  const auto refused = [&](int code, const char* words) {
    ist_halo halo = IST_HALO_NULL;
    EXPECT_EQ(code, ist_halo_create_lists(comm(), &lists, 1, &given, nullptr, &halo));
    EXPECT_NE(std::string{ist_error_text()}.find(words), std::string::npos) << words << " in: " << ist_error_text();
  };
  places[1] = 3;
  refused(IST_ERR_ARGUMENT, "element 3 is received twice");
  places[1] = -4;
  refused(IST_ERR_ARGUMENT, "has element -4 at 1");
  places[1] = 4, other = size();
  refused(IST_ERR_RANK, "the communicator has ranks 0 to");
  other = rank(), lists.send_counts = &none;
  refused(IST_ERR_ARGUMENT, "would send 0 bytes of field 0, and this rank has room for 16 of it");
  lists.send_counts = &two;
  // The last of five elements is number 4, for whoever says that there are five.
  ist_halo_range length{0, 0, 0, 3, 4};
  ist_halo_field known = given;
  known.ranges = &length;
  ist_halo halo = IST_HALO_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_create_lists(comm(), &lists, 1, rank() == 0 ? &known : &given, nullptr, &halo));
  EXPECT_NE(std::string{ist_error_text()}.find("rank 0: field 0 has 4 elements, and element 4 is listed"), std::string::npos)
      << ist_error_text();
  length.total_length = 5;
  IST_OK_OR_FAIL(ist_halo_create_lists(comm(), &lists, 1, &known, nullptr, &halo));
  length.total_length = 4;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 1, &known));
  IST_OK_OR_FAIL(ist_halo_set_fields(halo, 1, &given));
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  lists.sends = nullptr;
  refused(IST_ERR_ARGUMENT, "is null; give one for each neighbour");
}

}  // namespace
