// Which bytes of a buffer, in which order; and kinds that bring such bytes together on their devices.
//
// Who calls this : layout/, which makes forms; face/ and request/, which have them packed. Who implements it: cuda/, opencl/.
// Threads        : forms are values; Packing from any thread.
// Ownership      : a form owns its runs. What a kind keeps of one on a device goes some time after the form does.
// Errors         : returned by pack_bytes(), as by MemoryKind::copy().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/memory_kind.hpp"

namespace ist {

// Bytes that lie next to each other.
struct Run {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool operator==(const Run&) const = default;
};

struct Dimension {
  std::int64_t count = 0;
  std::int64_t stride = 0;  // bytes, of either sign
  bool operator==(const Dimension&) const = default;
};
inline constexpr std::size_t kMostDimensions = 4;

// Blocks of one length in up to four dimensions, or a list of runs in pack order that comes again in up to as many. It is a function of
// the sequence of bytes alone: runs are merged wherever one begins where the one before it ends; then the outermost dimension is the
// shortest beginning of them of which all are repetitions at equal distances, the next one that of this beginning, and so on. What is
// left is one block, or the list.
struct Form {
  std::int64_t offset = 0;  // of the first block; of a list 0, since its runs say where they lie
  std::int64_t block = 0;   // bytes; 0: the form is empty, or has runs
  std::size_t dimensions = 0;
  std::array<Dimension, kMostDimensions> dimension{};  // the innermost first; each count is 2 or more
  std::vector<Run> runs;                               // the list, once; empty: the form is strided
  std::vector<std::int64_t> begins;                    // of each run, where it lies in the packed stream of the list
  std::int64_t size = 0;                               // bytes, packed, with all repetitions
  bool operator==(const Form&) const = default;
  bool strided() const { return runs.empty(); }
  // Packed bytes of a list, once.
  std::int64_t list_bytes() const { return runs.empty() ? 0 : begins.back() + runs.back().bytes; }
  bool in_one_piece() const { return strided() && dimensions == 0; }
};
using SharedForm = std::shared_ptr<const Form>;

// Bytes `from` up to `to` of a form's packed stream, between the memory that it describes and a piece with those bytes in a row.
struct PackWork {
  SharedForm form;
  Piece memory;             // from the first byte that the form reaches to the last
  std::int64_t origin = 0;  // where in it the form's byte 0 lies; perhaps outside
  Piece packed;             // its first byte is byte `from` of the stream
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool unpacks = false;
  bool rows =
      false;  // by copies of rows, which a copy engine makes, and no kernel: one side may then be page-locked host memory

  // `size` of its bytes, from byte `first` of the stream on; a block that is as long as the work is divided with them.
  PackWork part(std::int64_t first, Bytes size) const {
    PackWork work = *this;
    work.packed = packed.part(Offset{static_cast<std::uint64_t>(first - from)}, size);
    work.from = first;
    work.to = first + static_cast<std::int64_t>(size.value);
    return work;
  }
  // The same bytes in another piece.
  PackWork in(const Piece& other) const {
    PackWork work = *this;
    work.packed = other;
    return work;
  }
};

// A strided form of memory that is lent, as it travels behind the loan.
struct LentForm {
  std::int64_t origin = 0;  // in that memory: where the form's byte 0 lies; perhaps outside
  std::uint64_t room = 0;   // bytes of that memory
  std::int64_t offset = 0, block = 0, size = 0;
  std::uint64_t dimensions = 0;
  std::array<Dimension, kMostDimensions> dimension{};
};
LentForm lent_form(const PackWork& work);
// Is it worth lending so? Only blocks of 64 bytes or more, since a device loads sectors of 32 bytes over a link, and as much as one kernel
// counts. Of CUDA memory.
bool lies_apart(const PackWork& work);
// Of the same memory, which lies at `memory` here: bytes `from` up to `to`, with no packed side.
PackWork lent_work(const LentForm& lent, const Piece& memory, std::int64_t from, std::int64_t to);

class Packing {
 public:
  virtual ~Packing() = default;
  // Why this device cannot do it; ok if it can.
  virtual Status can_pack(int device) = 0;
  // Why what copies here cannot do the work in rows (PackWork::rows), from or to a device of this kind; null if it can. Of a packed side that
  // is `memory` itself only the form is looked at: where the bytes go is not known yet.
  virtual const char* refuses_rows(const PackWork&) { return "this kind of memory has no copies of rows"; }
  // Why no kernel of the device that has that memory packs into this host memory of the library's, or out of it (empty: into any); null if it does.
  virtual const char* refuses_mapped(const Piece&, std::span<const std::byte>) {
    return "kernels of this kind of device reach no host memory";
  }
  // Starts it on the device that holds both pieces, after `after` (of this kind, or empty) has finished; from < to. As copy(), it
  // does not wait for the pieces' queues, and where it returns an error nothing touches the pieces any more.
  virtual Result<Ticket> pack_bytes(const PackWork& work, const Ticket& after) = 0;
};

// Several works of one device, all of them packing or all unpacking, of which as many as can go in one launch.
class BoxPacking {
 public:
  virtual ~BoxPacking() = default;
  // As pack_bytes(); at least one.
  virtual Result<Ticket> pack_boxes(std::span<const PackWork> works, const Ticket& after) = 0;
  // In the user's stream, when it comes there. Capturable, once the same works have been prepared.
  virtual Status pack_in(std::uint64_t stream, std::span<const PackWork> works) = 0;
  // The bytes of one form into those of another of as many, in the user's stream, by one kernel of the device that both pieces name. Capturable,
  // once lists of runs are on the device: after the same call.
  virtual Status relay_in(std::uint64_t stream, const PackWork& from, const PackWork& to) = 0;
  // Brings whatever pack_in() needs of the works' forms to the device.
  virtual Status prepare_packing(std::span<const PackWork> works) = 0;
  // Both for a whole form in the primary context of that device, at addresses that its kernels can use (Channels::admit()); of what is
  // unpacked only as many of the first bytes as the word at `came` says then, which 0 means all.
  virtual Status pack_at(int device, std::uint64_t stream, const PackWork& work, std::uint64_t came) = 0;
  virtual Status prepare_at(int device, const PackWork& work) = 0;
};

// What a device keeps of a form's runs, of a list that comes again once. A unit's place is one division away where all are as long, and is searched where they are not:
// runs are cut into pieces of one length where that makes at most twice as many.
struct RunList {
  std::vector<std::int64_t> numbers;  // offsets; where lengths differ, then where each begins in the packed stream
  std::int64_t each = 0;              // bytes of every run; 0: they differ
  std::uint64_t runs = 0;
};
RunList run_list(const Form& form);

// The offsets of runs that are all as long, counted in `unit` bytes, of which each is a multiple; empty where one needs more than 32 bits
// or the runs differ. A device that reads half as much finds its units sooner.
std::vector<std::int32_t> short_offsets(const RunList& list, std::int64_t unit);

// The most bytes of 16 that every number of the form, and each of `more` (all of them or-ed together), is a multiple of: what a
// device may move at once.
std::int64_t pack_width(const Form& form, std::uint64_t more);

// The same of a work's memory. Of a list each run would have to be looked at: its units are taken to be words.
std::int64_t width_of(const PackWork& work);

}  // namespace ist
