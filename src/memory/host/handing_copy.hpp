// Copies between processors: out of what another one has written, and into memory that it reads next, through the caches, by loops or by strings, or past
// them into memory, whichever is quickest.
//
// Who calls this : copy_across() and move_across() whoever copies what another process has written or will read: paths, engine, collective
//                  calls, puts and gets, layouts and halos. A HandingCopy of its own whoever fills the room of a pair's slots, or the slots of its ring,
//                  or of two ranks the slots of its lane; a TakingCopy who reads that room. copy_by_string() protocol/pipelined, where messages go round a ring so.
// Threads        : the writer's; a reader in another process is told by whatever release follows.
// Ownership      : none.
// Errors         : none.
//
// A line that is written must be taken from a reader that has looked at it, and a processor does that for one line after the other
// while its own cache has a copy. So bytes that go round in few lines cost the way of each line, whatever the loop that copies them: on two
// virtual processors of an AMD EPYC (Zen 4, 2026-11-26, a bare ring of blocks of 16 KiB and a bare line, GB/s, medians) with a line in
// 0.06 us 8 round 256 KiB, 25 round 2 MiB, which is twice the second cache, and 12 past the caches; with a line in 0.25 us 2.0, 2.4 and 13;
// between two threads of one core 24, 21 and 13. How far apart two processors are nobody says, and virtual ones move: so it is measured, for
// each pair and each size by itself, all the time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/pace.hpp"
#include "base/recent_places.hpp"
#include "base/run_pace.hpp"

namespace ist {

enum class HandingWay : std::uint8_t { through, past, string };
using CopyPace = Pace<HandingWay, 3>;

// Out of memory that another processor has written, or into it through the caches. Of so many bytes and more the copies of some C libraries are
// one instruction, which takes lines that come from another processor at half the speed or less: 4 KiB each in windows, both ends, with a line in
// 0.06 us: 8.6 and 22 GB/s (glibc 2.36, AMD EPYC, Zen 4, 2 processors, 2026-11-26). Intel's is as quick as a loop from 8 KiB on; AMD's has two
// speeds, which of them it takes changing from start to start (64 KiB 2.2 or 7.5 us, a loop 2.0 to 2.2 while the processors are near: Zen 3,
// 2026-11-27); others found that it is slow where source and destination begin at nearly the same place of their pages, and that glibc after
// 2.39 has mended that (its bug 30994). glibc 2.36 takes it up to a processor's second cache.
constexpr std::size_t kLeastByLines = 2048;
extern const std::size_t kEndOfLines;  // copies of as many bytes and more are the C library's
void copy_by_lines(std::byte* to, const std::byte* from, std::size_t size);
inline void copy_across(std::byte* to, const std::byte* from, std::size_t size) {
  if (size >= kLeastByLines && size < kEndOfLines)
    copy_by_lines(to, from, size);
  else
    std::memcpy(to, from, size);
}
// The same where the two may overlap.
inline void move_across(std::byte* to, const std::byte* from, std::size_t size) {
  if (size >= kLeastByLines && (to + size <= from || from + size <= to))
    copy_across(to, from, size);
  else
    std::memmove(to, from, size);
}

// By one instruction, which writes lines without asking for what another processor has in them. Some processors take several at a time so where a loop
// takes one after the other, and so copies that go round few lines are as quick as can be: slots of 64 KiB in a ring of eight, both ends by it,
// with a line in 0.06 us 60 GB/s for messages of 256 KiB where loops had 33, and 55 round 2 MiB; with a line in 0.28 us 34 and 8 (AMD EPYC, Zen 5, 2
// processors, 2026-11-28, a bare ring between two threads). But to read so what lies in the other one's second cache or beyond takes three times
// as long as a loop (20 GB/s out of 2 MiB). So it is measured, too: by a HandingCopy, whose readers read by loops or as TakingCopy finds out, and where messages go round a ring so at both ends
// (protocol/pipelined.hpp). Elsewhere it is memcpy.
void copy_by_string(std::byte* to, const std::byte* from, std::size_t size);

// Does the processor say that it is quick with strings of any length (FSRM)? Then messages of many bytes go by them until loops are more than kStringsLead times as
// quick. A bare ring of 4 to 8 MiB, slots of 64 and 128 KiB, windows of 64 messages of 64 to 512 KiB, both ends by strings, both by loops, and the writer
// alone by strings, GB/s: 73 to 78, 61 and 60 with a line in 0.06 us, and 31, 8 and 32 with one in 0.28 (AMD EPYC, Zen 5, 2 processors); 14, 13.5 and 14 up to
// 128 KiB, 16, 12 and 16 of more (Intel Xeon of the fourth generation, 16 processors). But a reader by strings that is close behind its writer may have 18 on
// that EPYC where loops have 60, mostly in the first 0.3 s of two processes: that ends by itself, sooner if nothing else is tried meanwhile. So they are left where
// they have been slow by a multiple for kStringsPatience runs (RunPace), and out of slots gone so into places that were used lately (TakingCopy). Compared as equals, run by run, loops stayed in one program of three (2026-11-30).
bool prefers_strings();
constexpr double kStringsLead = 1.3;
constexpr std::uint32_t kStringsPatience = 64;

// Out of memory that another processor has written, where many messages follow each other: by a loop or by one instruction, whichever was quicker lately
// between these two, or the one that the processor prefers. In windows of 32 and 64 KiB 70 to 74 GB/s by that instruction where a loop has 56 to 62; but for up to seconds, mostly after a rest, it
// has 19: both sides are slow then, of which the time of a copy by itself tells half (AMD EPYC, Zen 5, a line in 0.06 us, 2026-11-29; a bare ring, too).
// What goes where nothing went lately is another matter, and has a pace of its own, in which the two are equals: windows of 64 messages of 128 KiB into 8 MiB take 4.2 to
// 6.3 us a message by strings, 4.3 to 4.6 by loops where they are just written, 4.1 to 4.2 and 2.6 where not; of 64 KiB 1.82 (2.6 now and then) and 1.95, 1.24 (2.3) and
// 1.37 (same kind of machine, three runs each, 2026-11-30).
class TakingCopy {
 public:
  // Shorter ones go by copy_across(), which is as quick.
  static constexpr std::size_t kLeast = 32768;
  // True where they go into a place that was used lately.
  bool copy(std::byte* to, const std::byte* from, std::size_t size);
  // The time since the last one does not count.
  void waited() {
    again_.interrupted();
    elsewhere_.interrupted();
  }
  enum class Way : std::uint8_t { lines, string };
  // For tests, as HandingCopy's.
  static void force(std::optional<Way> way) { forced_ = way; }

 private:
  inline static std::optional<Way> forced_;
  RunPace<Way> again_ = prefers_strings() ? RunPace<Way>{Way::string, kStringsLead, kStringsPatience} : RunPace<Way>{};
  RunPace<Way> elsewhere_;
  RecentPlaces places_;
  bool was_again_ = false;  // the last one
};

class HandingCopy {
 public:
  // Shorter ones go through the caches: the wait for memory behind the others takes some 0.15 us.
  static constexpr std::size_t kLeast = 1024;

  // `to` is the start of a line, and does not overlap `from`. What is stored after it with release is seen after all of it.
  void copy(std::byte* to, const std::byte* from, std::size_t size) {
    if (size < kLeast)
      std::memcpy(to, from, size);
    else
      copy_much(to, from, size);
  }
  // That way, by itself: through the caches by a loop, past them, or through them by a string. Where a processor has no such stores, all are the same.
  static void copy(CopyPace::Way way, std::byte* to, const std::byte* from, std::size_t size);
  // Copies of so many bytes begin with that one, where nothing is forced: with a string from kLeastByStrings on, where the processor prefers them. Of the slots'
  // first 270 MiB nearly all were slow otherwise, in one program of ten: on both sides, until a string was tried in a good moment (windows of 256 KiB, AMD EPYC, Zen 5, 2026-11-30).
  static CopyPace::Way first_way(std::size_t size);
  static constexpr std::size_t kLeastByStrings = 32768;
  // For tests, before any copy: all of kLeast and more go that way, in every object. Nothing: the quickest way.
  static void force(std::optional<CopyPace::Way> way) { forced_ = way; }

 private:
  inline static std::optional<CopyPace::Way> forced_;
  static constexpr std::size_t kSizes = 9;  // octaves, and the last one for all above
  static constexpr std::size_t size_of(std::size_t bytes) {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes / kLeast)), kSizes) - 1;
  }
  void copy_much(std::byte* to, const std::byte* from, std::size_t size);
  static std::array<CopyPace, kSizes> first_paces();
  std::array<CopyPace, kSizes> paces_ = first_paces();
};

}  // namespace ist
