// Which kinds are loaded, why others are not, and what a buffer that a user names turns into.
#include "memory/kinds.hpp"

#include <cstring>

#include "support.hpp"

namespace ist::test {
namespace {

const ist_buffer kNoObject{};

ist_buffer buffer_of(std::uint32_t kind, const void* object) {
  return ist_make_buffer(kind, reinterpret_cast<std::uint64_t>(object), 0, 0);
}

void expect_error(const Result<Piece>& result, Code code, std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status().text();
  for (const auto word : words)
    EXPECT_NE(result.status().text().find(word), std::string::npos)
        << "\"" << word << "\" is not in: " << result.status().text();
}

TEST(Kinds, every_known_kind_is_either_loaded_or_missing_with_a_reason) {
  const auto loaded = must(Kinds::load("all"));
  EXPECT_EQ(loaded->all().size() + loaded->missing().size(), 3U);
  EXPECT_EQ(&loaded->host(), loaded->all().front().get());
  for (const auto& kind : loaded->all()) EXPECT_EQ(loaded->find(kind->id()), kind.get());
  for (const auto& each : loaded->missing()) {
    EXPECT_FALSE(each.reason.empty()) << each.name;
    EXPECT_EQ(each.reason.find('\n'), std::string::npos) << each.reason;
  }
}

TEST(Kinds, host_is_always_there_and_what_the_list_leaves_out_says_so) {
  for (const char* list : {"host", "cuda", "opencl"})
    EXPECT_NE(must(Kinds::load(list))->find(KindId::host), nullptr) << list;
  const auto loaded = must(Kinds::load("host"));
  ASSERT_EQ(loaded->missing().size(), 2U);
  EXPECT_NE(loaded->missing()[0].reason.find("ISTHMUS_KINDS"), std::string::npos) << loaded->missing()[0].reason;
  EXPECT_EQ(loaded->find(KindId::opencl), nullptr);
}

TEST(Kinds, an_unknown_name_in_the_list_is_an_error_that_shows_it) {
  const auto result = Kinds::load("host,cuba");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), IST_ERR_SETTING);
  EXPECT_NE(result.status().text().find("\"host,cuba\""), std::string::npos) << result.status().text();
}

TEST(Kinds, loading_twice_gives_two_independent_lists) {
  const auto first = must(Kinds::load("all"));
  {
    const auto second = must(Kinds::load("all"));
    EXPECT_EQ(first->all().size(), second->all().size());
  }
  EXPECT_EQ(must(first->resolve(ist_host(this), Bytes{1})).kind, KindId::host);
}

// It is written twice where the compiler can copy wide words (isthmus.h).
TEST(Buffer, has_what_it_was_made_of_and_nothing_else) {
  const ist_buffer made = ist_make_buffer(0x89abcdef, 0x123456789abcdef0, 0xfedcba9876543210, 77);
  const ist_buffer expected = {0x89abcdef, -1, 0x123456789abcdef0, 0xfedcba9876543210, 77, 0, 0, {0, 0, 0, 0}, 0, 0};
  EXPECT_EQ(0, std::memcmp(&made, &expected, sizeof made));
}

TEST(Resolve, host_pointers_keep_address_offset_and_size) {
  const Data bytes(100);
  const Piece piece = must(kinds().resolve(ist_buffer_at(ist_host(bytes.data()), 10), Bytes{90}));
  EXPECT_EQ(piece.kind, KindId::host);
  EXPECT_EQ(piece.address(), reinterpret_cast<const std::byte*>(bytes.data()) + 10);
  EXPECT_EQ(piece.size.value, 90U);
}

TEST(Resolve, auto_takes_a_pointer_no_driver_knows_for_host_memory) {
  const Data bytes(100);
  EXPECT_EQ(must(kinds().resolve(ist_auto(bytes.data()), Bytes{100})).kind, KindId::host);
}

TEST(Resolve, nothing_is_asked_of_an_empty_buffer) {
  for (const ist_kind kind : {IST_KIND_AUTO, IST_KIND_HOST}) {
    ist_buffer buffer = kNoObject;
    buffer.kind = static_cast<std::uint32_t>(kind);
    EXPECT_EQ(must(kinds().resolve(buffer, Bytes{0})).size.value, 0U);
  }
  EXPECT_EQ(kinds().resolve(ist_opencl(nullptr, 0, nullptr), Bytes{0}).ok(), kinds().find(KindId::opencl) != nullptr);
}

TEST(Resolve, a_null_buffer_with_bytes_is_an_error) {
  for (const ist_kind kind : {IST_KIND_AUTO, IST_KIND_HOST, IST_KIND_CUDA, IST_KIND_OPENCL}) {
    ist_buffer buffer = kNoObject;
    buffer.kind = static_cast<std::uint32_t>(kind);
    expect_error(kinds().resolve(buffer, Bytes{12}), IST_ERR_ARGUMENT, {"null", "12"});
  }
}

TEST(Resolve, a_missing_kind_is_named_with_why_and_what_to_do) {
  const auto loaded = must(Kinds::load("host"));
  expect_error(loaded->resolve(ist_opencl(const_cast<Kinds*>(loaded.get()), 0, nullptr), Bytes{4}), IST_ERR_KIND,
               {"opencl", "left out", "ISTHMUS_KINDS"});
  expect_error(loaded->resolve(ist_cuda(loaded.get(), nullptr), Bytes{4}), IST_ERR_KIND, {"cuda", "left out"});
}

TEST(Resolve, unknown_kinds_and_flags_are_errors_and_not_crashes) {
  expect_error(kinds().resolve(buffer_of(IST_KIND_GL, this), Bytes{4}), IST_ERR_KIND, {"gl"});
  for (const std::uint32_t kind : {5U, 7U, 8U, 255U, 256U, 257U, 4294967295U})
    expect_error(kinds().resolve(buffer_of(kind, this), Bytes{4}), IST_ERR_KIND, {std::to_string(kind)});
  ist_buffer flagged = ist_host(this);
  flagged.flags = 3;
  expect_error(kinds().resolve(flagged, Bytes{4}), IST_ERR_ARGUMENT, {"flags 3", "IST_BUFFER_READY"});
}

TEST(Resolve, host_memory_past_the_end_of_the_address_space_is_an_error) {
  expect_error(kinds().resolve(ist_buffer_at(ist_host(this), ~std::size_t{0}), Bytes{4}), IST_ERR_ARGUMENT,
               {"address space"});
  expect_error(kinds().resolve(ist_host(this), Bytes{~std::uint64_t{0}}), IST_ERR_ARGUMENT, {"address space"});
}

TEST(Resolve, a_device_kind_counts_as_used_once_a_buffer_of_it_was_named) {
  const auto loaded = must(Kinds::load("all"));
  EXPECT_FALSE(loaded->used(KindId::opencl));
  const Data bytes(4);
  must(loaded->resolve(ist_host(bytes.data()), Bytes{4}));
  EXPECT_FALSE(loaded->used(KindId::opencl));
  if (!loaded->find(KindId::opencl)) GTEST_SKIP() << "SKIPPED: opencl is not loaded here";
  const Piece piece = must(loaded->find(KindId::opencl)->allocate(0, Bytes{16}));
  must(loaded->resolve(ist_make_buffer(IST_KIND_OPENCL, piece.object, 0, piece.queue), Bytes{16}));
  EXPECT_TRUE(loaded->used(KindId::opencl));
}

TEST(Copier, is_the_device_kind_wherever_host_is_on_the_other_side) {
  for (const auto& kind : kinds().all()) {
    EXPECT_EQ(kinds().copier(kind->id(), KindId::host), kind.get());
    EXPECT_EQ(kinds().copier(KindId::host, kind->id()), kind.get());
    EXPECT_EQ(kinds().copier(kind->id(), kind->id()), kind.get());
  }
  EXPECT_EQ(kinds().copier(KindId::cuda, KindId::opencl), nullptr);
  EXPECT_EQ(kinds().copier(KindId::none, KindId::host), nullptr);
}

TEST(Host, overlapping_bytes_move_as_if_through_a_second_buffer) {
  Data bytes = random_bytes(1000);
  const Data before = bytes;
  wait(must(kinds().host().copy(host_piece(&bytes[10], Bytes{900}), host_piece(bytes.data(), Bytes{900}), Ticket{})));
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 900, bytes.begin() + 10));
}

TEST(Host, allocations_begin_at_a_page) {
  const Memory memory{{KindId::host, 0}, 10};
  EXPECT_EQ(memory.piece().object % 4096, 0U);
}

TEST(Names, every_class_of_memory_has_one) {
  EXPECT_EQ(name_of(MemoryClass::pageable), "pageable");
  EXPECT_EQ(name_of(MemoryClass::pinned), "pinned");
  EXPECT_EQ(name_of(MemoryClass::registered), "registered");
  EXPECT_EQ(name_of(MemoryClass::device), "device");
  EXPECT_EQ(name_of(MemoryClass::vmm), "vmm");
  EXPECT_EQ(name_of(MemoryClass::pool), "pool");
  EXPECT_EQ(name_of(MemoryClass::managed), "managed");
}

}  // namespace
}  // namespace ist::test
