// Windows: every call, on whatever kinds there are, every byte compared; and what cannot be registered. Run as messages_test.cpp is.
#include <fcntl.h>
#include <isthmus/collective.h>
#include <sys/mman.h>
#include <unistd.h>
#include <isthmus/device/window.cuh>

#include "windows_support.hpp"

namespace {

using namespace rank_test;

std::uint64_t seed_of(int pe, std::size_t size) { return size * 100 + static_cast<std::uint64_t>(pe) + 7; }

// Sizes at places of a part that are as odd.
constexpr std::pair<std::size_t, std::size_t> kStretches[]{
    {0, 0}, {1, 3}, {7, 8}, {8, 4093}, {63, 1}, {4097, 4095}, {65535, 12289}, {262144, 16}, {262145, 33}, {1048579, 51421}};

TEST(Windows, PutReachesTheRightBytesOfTheRightPeFromEveryKind) {
  for (const KindName& of : window_kinds()) {
    const TestWindow window{of.kind, bytes_of(rank())};
    for (const KindName& from : usable_kinds())
      for (const auto& [bytes, offset] : kStretches)
        for (const bool nbi : {false, true}) {
          GuardedBuffer source{from.kind, bytes};
          source.fill(random_bytes(bytes, seed_of(rank(), bytes)));
          const auto put = nbi ? ist_window_put_nbi : ist_window_put;
          IST_OK_OR_FAIL(put(window, offset, source.get(), bytes, right()));
          window.barrier();
          window.expect(random_bytes(bytes, seed_of(left(), bytes)), offset,
                        std::to_string(bytes) + " bytes from " + from.name + " into a window of " + of.name);
          window.barrier();
          window.poison();
          window.barrier();
        }
  }
}

TEST(Windows, GetBringsTheBytesOfTheRightPeIntoEveryKind) {
  for (const KindName& of : window_kinds()) {
    const TestWindow window{of.kind, bytes_of(rank())};
    window.store(random_bytes(window.bytes(), seed_of(rank(), 1)));
    window.barrier();
    for (const KindName& to : usable_kinds())
      for (const auto& [bytes, offset] : kStretches)
        for (const bool nbi : {false, true})
          for (const int pe : {right(), rank()}) {
            GuardedBuffer dest{to.kind, bytes};
            const auto get = nbi ? ist_window_get_nbi : ist_window_get;
            IST_OK_OR_FAIL(get(window, dest.get(), offset, bytes, pe));
            if (nbi) IST_OK_OR_FAIL(ist_window_quiet(window));
            const auto all = random_bytes(bytes_of(pe), seed_of(pe, 1));
            const auto first = all.begin() + static_cast<std::ptrdiff_t>(offset);
            dest.expect({first, first + static_cast<std::ptrdiff_t>(bytes)},
                        std::to_string(bytes) + " bytes of PE " + std::to_string(pe) + " from a window of " + of.name);
          }
    window.barrier();
  }
}

TEST(Windows, ViewsSayWhereEverythingIsAndOwnMemoryIsWhereItWas) {
  for (const KindName& of : window_kinds()) {
    const TestWindow window{of.kind, bytes_of(rank())};
    const ist_window_view view = window.view();
    EXPECT_EQ(rank(), view.pe);
    EXPECT_EQ(size(), view.pes);
    EXPECT_NE(nullptr, view.abort_word);
    EXPECT_EQ(window.own().object + window.own().offset, reinterpret_cast<std::uint64_t>(view.base[rank()]));
    for (int pe = 0; pe < IST_WINDOW_MOST_PES; ++pe) {
      EXPECT_EQ(pe < size() ? bytes_of(pe) : 0, view.bytes[pe]) << pe;
      EXPECT_EQ(pe < size(), view.base[pe] != nullptr) << pe;
      if (pe >= size()) continue;
      void* address = nullptr;
      IST_OK_OR_FAIL(ist_window_pointer(window, 4097, pe, &address));
      EXPECT_EQ(view.base[pe] + 4097, address);
      EXPECT_EQ(address, ist::device::peer_ptr(view, std::uint64_t{4097}, pe));
    }
    // Addresses of the view are memory as any other, for this rank's copies.
    const auto mine = random_bytes(65537, seed_of(rank(), 2));
    IST_OK_OR_FAIL(ist_window_put(window, 1001, ist_host(mine.data()), mine.size(), right()));
    window.barrier();
    std::vector<unsigned char> found(mine.size(), 0x11);
    const ist_buffer there{window.kind() == IST_KIND_HOST ? ist_host(view.base[right()] + 1001)
                                                          : ist_cuda(view.base[right()] + 1001, nullptr)};
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), there, found.size()));
    EXPECT_EQ(-1, first_difference(mine, found)) << of.name;
    window.barrier();
  }
}

TEST(Windows, PointersReachHostMemoryItself) {
  const TestWindow window{IST_KIND_HOST, bytes_of(rank())};
  const ist_window_view view = window.view();
  const auto mine = random_bytes(40000, seed_of(rank(), 3));
  std::memcpy(ist::device::peer_ptr<unsigned char>(view, 12345, right()), mine.data(), mine.size());
  window.barrier();
  window.expect(random_bytes(40000, seed_of(left(), 3)), 12345, "bytes that the neighbour stored");
  window.barrier();
}

// Some give none, one after the other; those reach the others' all the same.
TEST(Windows, MayHaveNothingAtSomePes) {
  for (const KindName& of : window_kinds())
    for (int has = 0; has < size(); ++has) {
      const TestWindow window{of.kind, rank() == has ? 5001U : 0U};
      const ist_window_view view = window.view();
      for (int pe = 0; pe < size(); ++pe) {
        EXPECT_EQ(pe == has ? 5001U : 0U, view.bytes[pe]);
        EXPECT_EQ(pe == has, view.base[pe] != nullptr);
      }
      const auto stretch = static_cast<std::uint64_t>(rank()) * 100;
      const auto mine = random_bytes(100, seed_of(rank(), 4));
      IST_OK_OR_FAIL(ist_window_put(window, stretch, ist_host(mine.data()), mine.size(), has));
      window.barrier();
      std::vector<unsigned char> wanted;
      for (int pe = 0; pe < size(); ++pe)
        for (const unsigned char byte : random_bytes(100, seed_of(pe, 4))) wanted.push_back(byte);
      if (rank() == has) window.expect(wanted, 0, "what all put");
      std::vector<unsigned char> found(wanted.size(), 0x11);
      IST_OK_OR_FAIL(ist_window_get(window, ist_host(found.data()), 0, found.size(), has));
      EXPECT_EQ(-1, first_difference(wanted, found)) << of.name;
      const int none = (has + 1) % size();
      if (none != has)
        expect_error(IST_ERR_ARGUMENT, "which has registered 0", ist_window_put(window, 0, ist_host(mine.data()), 1, none));
      window.barrier();
    }
  ist_window window = IST_WINDOW_NULL;
  IST_OK_OR_FAIL(ist_window_create(comm(), ist_auto(nullptr), 0, &window));
  IST_OK_OR_FAIL(ist_window_free(&window));
}

TEST(Windows, SeveralLieInOneAllocationAndGoOneByOne) {
  for (const KindName& of : window_kinds()) {
    constexpr std::size_t kEach = 30001;
    ist_buffer whole{};
    IST_OK_OR_FAIL(ist_memory_alloc(world(), of.kind, IST_OWN_DEVICE, 4 * kEach, &whole));
    std::vector<ist_window> windows(4, IST_WINDOW_NULL);
    // The last two are the same memory.
    const auto place = [](std::size_t n) { return std::min<std::size_t>(n, 2) * kEach; };
    for (std::size_t n = 0; n < windows.size(); ++n)
      IST_OK_OR_FAIL(ist_window_create(comm(), ist_buffer_at(whole, place(n)), kEach - n, &windows[n]));
    for (std::size_t gone = 0; gone < windows.size(); ++gone) {
      for (std::size_t n = gone; n < windows.size(); ++n) {
        const auto mine = random_bytes(kEach - n, seed_of(rank(), 10 * gone + n));
        IST_OK_OR_FAIL(ist_window_put(windows[n], 0, ist_host(mine.data()), mine.size(), right()));
        IST_OK_OR_FAIL(ist_window_quiet(windows[n]));
        IST_OK_OR_FAIL(ist_barrier(comm()));
        std::vector<unsigned char> found(kEach - n, 0x11);
        IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), ist_buffer_at(whole, place(n)), found.size()));
        EXPECT_EQ(-1, first_difference(random_bytes(kEach - n, seed_of(left(), 10 * gone + n)), found))
            << n << " of " << of.name;
        IST_OK_OR_FAIL(ist_barrier(comm()));
      }
      IST_OK_OR_FAIL(ist_window_free(&windows[gone]));
    }
    IST_OK_OR_FAIL(ist_memory_free(world(), whole));
  }
}

// Messages of the same memory go on beside a window and behind it.
TEST(Windows, LeaveMessagesOfTheSameMemoryAlone) {
  for (const KindName& of : window_kinds()) {
    constexpr std::size_t kBytes = 300001;
    ist_buffer memory{};
    ist_window window = IST_WINDOW_NULL;
    IST_OK_OR_FAIL(ist_memory_alloc(world(), of.kind, IST_OWN_DEVICE, 2 * kBytes, &memory));
    const auto exchange = [&](std::uint64_t seed) {
      const auto mine = random_bytes(kBytes, seed_of(rank(), seed));
      IST_OK_OR_FAIL(ist_memory_copy(world(), memory, ist_host(mine.data()), kBytes));
      IST_OK_OR_FAIL(ist_sendrecv(memory, kBytes, IST_BYTE, right(), 1, ist_buffer_at(memory, kBytes), kBytes, IST_BYTE,
                                  left(), 1, comm(), IST_STATUS_IGNORE));
      std::vector<unsigned char> found(kBytes, 0x11);
      IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(found.data()), ist_buffer_at(memory, kBytes), kBytes));
      EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(left(), seed)), found)) << of.name;
    };
    for (std::uint64_t round = 0; round < 3; ++round) {
      for (std::uint64_t n = 0; n < 5; ++n) exchange(n);
      IST_OK_OR_FAIL(ist_window_create(comm(), memory, 2 * kBytes, &window));
      for (std::uint64_t n = 5; n < 10; ++n) exchange(n);
      IST_OK_OR_FAIL(ist_window_free(&window));
    }
    IST_OK_OR_FAIL(ist_memory_free(world(), memory));
  }
}

// ---- what is refused ----

TEST(WindowsRefused, PlacesThatNobodyHasRegistered) {
  for (const KindName& of : window_kinds()) {
    const TestWindow window{of.kind, bytes_of(rank())};
    std::vector<unsigned char> bytes(64);
    const ist_buffer local = ist_host(bytes.data());
    const std::uint64_t all = bytes_of(right());
    expect_error(IST_ERR_RANK, "pe is -1; this window has PEs 0 to", ist_window_put(window, 0, local, 1, -1));
    expect_error(IST_ERR_RANK, "pe is", ist_window_get(window, local, 0, 0, size()));
    expect_error(IST_ERR_ARGUMENT, "were named, which has registered", ist_window_put(window, all - 63, local, 64, right()));
    expect_error(IST_ERR_ARGUMENT, "were named", ist_window_get(window, local, all, 1, right()));
    expect_error(IST_ERR_ARGUMENT, "were named", ist_window_put_nbi(window, ~std::uint64_t{0}, local, 2, right()));
    expect_error(IST_ERR_ARGUMENT, "null", ist_window_put(window, 0, ist_host(nullptr), 1, right()));
    void* address = &bytes;
    expect_error(IST_ERR_ARGUMENT, "were named", ist_window_pointer(window, all, right(), &address));
    EXPECT_EQ(nullptr, address);
    expect_error(IST_ERR_ARGUMENT, "null", ist_window_pointer(window, 0, 0, nullptr));
    expect_error(IST_ERR_ARGUMENT, "null", ist_window_view_of(window, nullptr));
    window.barrier();
    window.expect({}, 0, "nothing was written");
    window.barrier();
  }
  ist_window none = IST_WINDOW_NULL;
  expect_error(IST_ERR_HANDLE, "the window is null", ist_window_quiet(none));
  expect_error(IST_ERR_HANDLE, "the window is null", ist_window_free(&none));
  expect_error(IST_ERR_ARGUMENT, "null", ist_window_free(nullptr));
  expect_error(IST_ERR_HANDLE, "no window of this process", ist_window_quiet(reinterpret_cast<ist_window>(comm())));
  expect_error(IST_ERR_ARGUMENT, "null", ist_window_create(comm(), ist_host(nullptr), 0, nullptr));
  ist_window freed = IST_WINDOW_NULL;
  IST_OK_OR_FAIL(ist_window_create(comm(), ist_host(nullptr), 0, &freed));
  ist_window copy = freed;
  IST_OK_OR_FAIL(ist_window_free(&freed));
  expect_error(IST_ERR_HANDLE, "was it released", ist_window_quiet(copy));
}

TEST(WindowsRefused, HostMemoryThatNoOtherProcessCanMap) {
  static std::vector<unsigned char> variable(1);
  std::vector<unsigned char> few(100);
  const auto many = std::make_unique<unsigned char[]>(8 << 20);
  expect_refused(ist_host(few.data()), few.size(), IST_ERR_UNSUPPORTED, "ist_memory_alloc gives of IST_KIND_HOST");
  expect_refused(ist_host(many.get()), 8 << 20, IST_ERR_UNSUPPORTED, "private memory of this process, as malloc");
  unsigned char here = 0;
  expect_refused(ist_host(&here), 1, IST_ERR_UNSUPPORTED, "private to this process");
  static unsigned char constant[4096] = {1};
  expect_refused(ist_host(constant), sizeof constant, IST_ERR_UNSUPPORTED, "as static variables are");
  void* const shared = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  expect_refused(ist_host(shared), 8192, IST_ERR_UNSUPPORTED, "MAP_SHARED | MAP_ANONYMOUS");
  ::munmap(shared, 8192);
  expect_refused(ist_host(shared), 8192, IST_ERR_ARGUMENT, "not mapped in this process");
  expect_refused(ist_host(nullptr), 8, IST_ERR_ARGUMENT, "null buffer");
  // At one PE alone: the others quote it.
  const bool wrong = rank() == size() - 1;
  ist_buffer good{};
  IST_OK_OR_FAIL(ist_memory_alloc(world(), IST_KIND_HOST, 0, 65536, &good));
  const std::string says =
      wrong ? "private memory of this process" : "PE " + std::to_string(size() - 1) + ": the host memory at";
  expect_refused(wrong ? ist_host(many.get()) : good, 65536, IST_ERR_UNSUPPORTED, says);
  // And the next one is as it should be.
  ist_window window = IST_WINDOW_NULL;
  IST_OK_OR_FAIL(ist_window_create(comm(), good, 65536, &window));
  IST_OK_OR_FAIL(ist_window_free(&window));
  IST_OK_OR_FAIL(ist_memory_free(world(), good));
}

// A program's own shared memory, as NumPy's and PyTorch's is: of a file without a name, and of one that has a name and no descriptor.
TEST(Windows, TakeSharedMappingsOfFiles) {
  constexpr std::size_t kBytes = 12288;
  const std::string path = "/dev/shm/isthmus-window-test-" + std::to_string(::getpid());
  for (const bool named : {false, true}) {
    const int file =
        named ? ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) : ::memfd_create("window", MFD_CLOEXEC);
    ASSERT_LE(0, file);
    ASSERT_EQ(0, ::ftruncate(file, kBytes));
    void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ASSERT_NE(MAP_FAILED, mapped);
    if (named) ::close(file);
    auto* const bytes = static_cast<unsigned char*>(mapped);
    // One mapping in two halves of the system's list.
    ASSERT_EQ(0, ::madvise(bytes + 4096, 4096, MADV_DONTDUMP));
    std::memset(bytes, 0xa5, kBytes);
    ist_window window = IST_WINDOW_NULL;
    IST_OK_OR_FAIL(ist_window_create(comm(), ist_host(bytes + 100), kBytes - 200, &window));
    const auto mine = random_bytes(kBytes - 300, seed_of(rank(), 6));
    IST_OK_OR_FAIL(ist_barrier(comm()));
    IST_OK_OR_FAIL(ist_window_put(window, 50, ist_host(mine.data()), mine.size(), right()));
    IST_OK_OR_FAIL(ist_window_quiet(window));
    IST_OK_OR_FAIL(ist_barrier(comm()));
    std::vector<unsigned char> wanted(kBytes, 0xa5);
    const auto theirs = random_bytes(kBytes - 300, seed_of(left(), 6));
    std::copy(theirs.begin(), theirs.end(), wanted.begin() + 150);
    EXPECT_EQ(-1, first_difference(wanted, {bytes, bytes + kBytes}));
    IST_OK_OR_FAIL(ist_window_free(&window));
    // For reading alone, and where nobody could open it.
    ASSERT_EQ(0, ::mprotect(mapped, kBytes, PROT_READ));
    expect_refused(ist_host(bytes), kBytes, IST_ERR_UNSUPPORTED, "for reading alone");
    ASSERT_EQ(0, ::mprotect(mapped, kBytes, PROT_READ | PROT_WRITE));
    named ? ::unlink(path.c_str()) : ::close(file);
    expect_refused(ist_host(bytes), kBytes, IST_ERR_UNSUPPORTED, "of which no descriptor for reading and writing is open");
    ::munmap(mapped, kBytes);
  }
}

TEST(WindowsRefused, OtherKindsAndKindsThatDiffer) {
  for (const KindName& each : usable_kinds()) {
    ist_buffer memory{};
    IST_OK_OR_FAIL(ist_memory_alloc(world(), each.kind, IST_OWN_DEVICE, 65536, &memory));
    if (each.kind == IST_KIND_OPENCL)
      expect_refused(memory, 65536, IST_ERR_UNSUPPORTED, "memory of kind opencl cannot be opened by other processes");
    if (each.kind == IST_KIND_CUDA) {
      // Its address as the host's.
      expect_refused(ist_host(reinterpret_cast<void*>(memory.object)), 65536, IST_ERR_KIND, "memory of kind cuda");
      ist_buffer host{};
      IST_OK_OR_FAIL(ist_memory_alloc(world(), IST_KIND_HOST, 0, 65536, &host));
      if (size() > 1)
        expect_refused(rank() == 1 ? memory : host, 65536, IST_ERR_KIND,
                       "PE 0 registers memory of kind host, and PE 1 of kind cuda; all PEs of a window register one kind");
      IST_OK_OR_FAIL(ist_memory_free(world(), host));
    }
    IST_OK_OR_FAIL(ist_memory_free(world(), memory));
  }
}

}  // namespace
