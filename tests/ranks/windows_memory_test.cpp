// Windows of device memory of every class as programs get it: what can be exported is reached, and what cannot is refused by its
// allocator's name. Run as messages_test.cpp is; needs ranks with CUDA devices.
#include "device_ranks.hpp"
#include "driver_memory.hpp"
#include "windows_support.hpp"

namespace {

using namespace rank_test;

class WindowsOf : public ::testing::TestWithParam<const char*> {};

TEST_P(WindowsOf, MemoryThatCanBeExportedAreReachedAtEveryByte) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 700001;
  constexpr std::size_t kFirst = 333;
  const std::size_t mine_bytes = kBytes + static_cast<std::size_t>(rank()) * 11;
  for (std::uint64_t round = 0; round < 3; ++round) {
    const Memory memory(GetParam(), kBytes + 1000);
    memory.fill(std::vector<unsigned char>(kBytes + 1000, 0xa5));
    ist_window window = IST_WINDOW_NULL;
    IST_OK_OR_FAIL(ist_window_create(comm(), memory.get(kFirst), mine_bytes, &window));
    IST_OK_OR_FAIL(ist_barrier(comm()));
    const auto bytes = random_bytes(kBytes - 7, round * 10 + static_cast<std::uint64_t>(rank()));
    IST_OK_OR_FAIL(ist_window_put(window, 7, ist_host(bytes.data()), bytes.size(), right()));
    IST_OK_OR_FAIL(ist_window_quiet(window));
    IST_OK_OR_FAIL(ist_barrier(comm()));
    std::vector<unsigned char> wanted(kBytes + 1000, 0xa5);
    const auto theirs = random_bytes(kBytes - 7, round * 10 + static_cast<std::uint64_t>(left()));
    std::copy(theirs.begin(), theirs.end(), wanted.begin() + kFirst + 7);
    EXPECT_EQ(-1, first_difference(wanted, memory.read(wanted.size()))) << GetParam();
    std::vector<unsigned char> back(bytes.size(), 0x11);
    IST_OK_OR_FAIL(ist_window_get(window, ist_host(back.data()), 7, back.size(), right()));
    EXPECT_EQ(-1, first_difference(bytes, back)) << GetParam();
    IST_OK_OR_FAIL(ist_window_free(&window));
  }
}

INSTANTIATE_TEST_SUITE_P(Exported, WindowsOf, ::testing::Values("cuda", "shared_pool", "own_pool", "shared_vmm"),
                         [](const auto& word) { return std::string{word.param}; });

// The same memory, closed and opened again, also while it is open in another window.
TEST_P(WindowsOf, MemoryThatCanBeExportedAreMadeAgainAndAgain) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 70001;
  const Memory memory(GetParam(), kBytes);
  for (std::uint64_t round = 0; round < 4; ++round) {
    ist_window one = IST_WINDOW_NULL;
    ist_window other = IST_WINDOW_NULL;
    IST_OK_OR_FAIL(ist_window_create(comm(), memory.get(), kBytes, &one));
    IST_OK_OR_FAIL(ist_window_create(comm(), memory.get(1000), kBytes - 1000, &other));
    IST_OK_OR_FAIL(ist_window_free(&one));
    const auto mine = random_bytes(kBytes - 1000, round * 10 + static_cast<std::uint64_t>(rank()));
    IST_OK_OR_FAIL(ist_window_put(other, 0, ist_host(mine.data()), mine.size(), right()));
    IST_OK_OR_FAIL(ist_window_free(&other));
    EXPECT_EQ(-1, first_difference(random_bytes(kBytes - 1000, round * 10 + static_cast<std::uint64_t>(left())),
                                   memory.read(kBytes - 1000, 1000)))
        << GetParam() << ", round " << round;
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

struct Refused {
  const char* word;
  const char* says;
};

class WindowsRefusedOf : public ::testing::TestWithParam<Refused> {};

TEST_P(WindowsRefusedOf, MemoryThatCannotBeExportedNameItsAllocator) {
  NEEDS_DEVICES();
  const Memory memory(GetParam().word, std::size_t{5} << 20);
  expect_refused(memory.get(100), std::size_t{4} << 20, IST_ERR_UNSUPPORTED, GetParam().says);
  // At one PE alone.
  const Memory good("cuda", 70000);
  const bool wrong = rank() == size() - 1;
  expect_refused(wrong ? memory.get(0) : good.get(0), 70000, IST_ERR_UNSUPPORTED,
                 (wrong ? "its memory is" : "PE " + std::to_string(size() - 1) + ": its memory is"));
  ist_window window = IST_WINDOW_NULL;
  IST_OK_OR_FAIL(ist_window_create(comm(), good.get(0), 70000, &window));
  IST_OK_OR_FAIL(ist_window_free(&window));
}

INSTANTIATE_TEST_SUITE_P(Unexported, WindowsRefusedOf,
                         ::testing::Values(Refused{"managed", "managed memory (cudaMallocManaged)"},
                                           Refused{"pool", "pool memory (cudaMallocAsync)"},
                                           Refused{"vmm", "vmm memory (cuMemCreate)"}),
                         [](const auto& each) { return std::string{each.param.word}; });

// Of cudaMallocHost: the driver says whose it is.
TEST(WindowsRefused, PageLockedMemoryOfADriver) {
  NEEDS_DEVICES();
  if (driver_call<void()>("fake_cuda_reset") != nullptr)
    GTEST_SKIP() << "not covered here: page-locked memory of a driver; the fake one's is a file, and may be registered";
  const InContext scope(rank() % own_devices());
  void* memory = nullptr;
  driver_ok(driver_call<CUresult(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&memory, 1 << 20, 0));
  std::memset(memory, 0, 1 << 20);
  expect_refused(ist_host(memory), 1 << 20, IST_ERR_UNSUPPORTED, "page-locked memory of a driver (cudaMallocHost)");
  driver_ok(driver_call<CUresult(void*)>("cuMemFreeHost")(memory));
}

// As PyTorch's expandable segments are: one piece of it can be registered, and not two at once.
TEST(WindowsRefused, MemoryThatLiesInSeveralMappings) {
  NEEDS_DEVICES();
  const Memory memory("side_by_side", std::size_t{6} << 20);
  const std::size_t granule = memory.granule();
  expect_refused(memory.get(granule - 1), 2, IST_ERR_UNSUPPORTED, "it lies in several mappings");
  memory.fill(std::vector<unsigned char>(4096, 0xa5), granule);
  ist_window window = IST_WINDOW_NULL;
  IST_OK_OR_FAIL(ist_window_create(comm(), memory.get(granule), 4096, &window));
  const auto mine = random_bytes(4000, static_cast<std::uint64_t>(rank()) + 3);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_window_put(window, 1, ist_host(mine.data()), mine.size(), right()));
  IST_OK_OR_FAIL(ist_window_quiet(window));
  IST_OK_OR_FAIL(ist_barrier(comm()));
  std::vector<unsigned char> wanted(4096, 0xa5);
  const auto theirs = random_bytes(4000, static_cast<std::uint64_t>(left()) + 3);
  std::copy(theirs.begin(), theirs.end(), wanted.begin() + 1);
  EXPECT_EQ(-1, first_difference(wanted, memory.read(4096, granule)));
  IST_OK_OR_FAIL(ist_window_free(&window));
}

}  // namespace
