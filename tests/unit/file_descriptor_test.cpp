#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

namespace ist {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(FileDescriptor, the_owner_closes_and_a_moved_owner_does_not) {
  const int raw = ::dup(0);
  {
    FileDescriptor first{raw};
    FileDescriptor second = std::move(first);
    EXPECT_TRUE(second.valid());
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(FileDescriptor, assignment_closes_what_was_owned_before_and_release_gives_up) {
  const int kept = ::dup(0);
  const int lost = ::dup(0);
  FileDescriptor owner{lost};
  owner = FileDescriptor{kept};
  EXPECT_FALSE(is_open(lost));
  EXPECT_EQ(owner.release(), kept);
  EXPECT_FALSE(owner.valid());
  EXPECT_TRUE(is_open(kept));
  ::close(kept);
}

TEST(SharedMemory, what_one_mapping_writes_the_other_reads) {
  auto created = SharedMemory::create("unit-test", Bytes{8192});
  ASSERT_TRUE(created.ok()) << created.status().text();
  auto opened = SharedMemory::open(FileDescriptor{::dup(created->descriptor())}, Bytes{8192});
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_NE(created->data(), opened->data());
  for (std::size_t i = 0; i < 8192; ++i) created->data()[i] = static_cast<std::byte>(i * 7 + 3);
  EXPECT_EQ(std::memcmp(created->data(), opened->data(), 8192), 0);
}

TEST(SharedMemory, a_mapping_outlives_the_move_of_its_owner) {
  auto first = SharedMemory::create("unit-test", Bytes{4096});
  ASSERT_TRUE(first.ok());
  SharedMemory second = std::move(*first);
  second.data()[4095] = std::byte{9};
  auto third = SharedMemory::create("unit-test", Bytes{4096});
  ASSERT_TRUE(third.ok());
  *third = std::move(second);
  EXPECT_EQ(third->data()[4095], std::byte{9});
  EXPECT_EQ(third->size(), Bytes{4096});
}

TEST(SharedMemory, a_peers_object_that_is_too_small_is_refused_with_both_sizes) {
  auto created = SharedMemory::create("unit-test", Bytes{4096});
  ASSERT_TRUE(created.ok());
  const auto opened = SharedMemory::open(FileDescriptor{::dup(created->descriptor())}, Bytes{4097});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().text().find("4096"), std::string::npos) << opened.status().text();
  EXPECT_NE(opened.status().text().find("4097"), std::string::npos) << opened.status().text();
}

TEST(SharedMemory, a_descriptor_that_is_none_is_a_system_error) {
  const auto opened = SharedMemory::open(FileDescriptor{}, Bytes{1});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), IST_ERR_SYSTEM);
}

TEST(SharedMemory, an_impossible_size_is_an_error_that_names_it) {
  const auto created = SharedMemory::create("unit-test", Bytes{std::uint64_t{1} << 62});
  ASSERT_FALSE(created.ok());
  EXPECT_NE(created.status().text().find("4611686018427387904"), std::string::npos) << created.status().text();
}

}  // namespace
}  // namespace ist
