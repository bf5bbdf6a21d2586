// Which of this program's pages hold its variables, and when two programs are one.
#include "face/shmem/executable.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace ist {
namespace {

std::uint64_t in_data = 1;
std::uint64_t in_bss[1000];
const std::uint64_t constant = 3;
// Relocated when the program is loaded, and read-only from then on.
const std::uint64_t* const relocated = &constant;

bool holds(const Executable& program, const void* address) {
  for (const VariableSegment& each : program.segments)
    if (address >= each.first && address < each.end) return true;
  return false;
}

TEST(ThisExecutable, HoldsItsVariablesAndNothingElse) {
  const Executable program = this_executable();
  EXPECT_TRUE(holds(program, &in_data));
  EXPECT_TRUE(holds(program, &in_bss[0]));
  EXPECT_TRUE(holds(program, &in_bss[999]));
  EXPECT_FALSE(holds(program, &constant));
  EXPECT_FALSE(holds(program, static_cast<const void*>(&relocated)));
  EXPECT_FALSE(holds(program, &program));
  EXPECT_FALSE(holds(program, program.segments.data()));
  EXPECT_EQ("executable_test", program.name);
}

// What the kernel says is there, of each page: private, readable, writable.
TEST(ThisExecutable, HasWholePagesThatAreItsOwn) {
  const Executable program = this_executable();
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const VariableSegment& each : program.segments) {
    const auto begin = reinterpret_cast<std::uintptr_t>(each.begin);
    EXPECT_EQ(0U, begin % page);
    EXPECT_EQ(0U, each.bytes.value % page);
    EXPECT_LE(each.begin, each.first);
    EXPECT_LT(each.first, each.end);
    EXPECT_LE(each.end, each.begin + each.bytes.value);
    EXPECT_LT(each.begin + each.bytes.value, each.end + page);
    for (std::uintptr_t at = begin; at < begin + each.bytes.value; at += page) {
      std::ifstream maps{"/proc/self/maps"};
      std::string found = "none";
      for (std::string line; std::getline(maps, line);) {
        std::istringstream words{line};
        std::uintptr_t from = 0;
        std::uintptr_t to = 0;
        char dash = 0;
        std::string rights;
        std::string offset;
        std::string device;
        std::string inode;
        std::string name;
        words >> std::hex >> from >> dash >> to >> rights >> offset >> device >> inode >> name;
        if (at >= from && at < to) found = rights + (name == "[heap]" ? " of the heap" : "");
      }
      EXPECT_EQ("rw-p", found);
    }
  }
}

TEST(Executables, AreOneIfNothingDiffers) {
  const ExecutableCard mine = card_of(this_executable());
  EXPECT_EQ("", difference(mine, card_of(this_executable()), 1));
  EXPECT_NE(0U, mine.segments);
  EXPECT_NE(0U, mine.plan);
}

ExecutableCard invented() {
  Executable program;
  program.name = "ring";
  program.build_id = "0123ab";
  program.plan = 17;
  program.base = 4096;
  auto* const begin = reinterpret_cast<std::byte*>(3 * 4096);  // NOLINT(performance-no-int-to-ptr)
  program.segments.push_back({begin, Bytes{8192}, begin + 16, begin + 5000});
  return card_of(program);
}

TEST(Executables, SayWhichPeDiffersInWhat) {
  const ExecutableCard first = invented();
  EXPECT_EQ("", difference(first, invented(), 1));
  ExecutableCard other = invented();
  std::strcpy(other.name.data(), "heat");
  other.extents[0].bytes = 4096;
  EXPECT_EQ("PE 3 runs heat, PE 0 ring: their variables have 4096 bytes at offset 8192, and 8192 at offset 8192",
            difference(first, other, 3));
  other = invented();
  other.build_id[0] = 'f';
  EXPECT_EQ("PE 1 runs ring, PE 0 ring: their build-ids are f123ab and 0123ab", difference(first, other, 1));
  other = invented();
  other.plan = 18;
  EXPECT_EQ("PE 1 runs ring, PE 0 ring: their code has other lengths or places", difference(first, other, 1));
  other = invented();
  other.segments = 2;
  EXPECT_EQ("PE 2 runs ring, PE 0 ring: they have 2 and 1 segments of variables", difference(first, other, 2));
}

// A name or an id that is longer than its place is cut off, and still ends.
TEST(Executables, HaveNamesOfAnyLength) {
  Executable program;
  program.name = std::string(500, 'n');
  program.build_id = std::string(500, 'b');
  program.segments.resize(100);
  const ExecutableCard card = card_of(program);
  EXPECT_EQ(card.name.size() - 1, std::strlen(card.name.data()));
  EXPECT_EQ(card.build_id.size() - 1, std::strlen(card.build_id.data()));
  EXPECT_EQ("", difference(card, card_of(program), 1));
}

}  // namespace
}  // namespace ist
