// Two ranks with a buffer of fake device memory each, and messages with layouts from the first to the second: every byte compared, and kernels
// and copies counted on each side.
//
// Who calls this : layouts_link_test.cpp, layouts_relay_test.cpp, layouts_rows_test.cpp.
// Threads        : one per rank.
// Ownership      : a Pair owns its buffer, a Form its layout.
// Errors         : told to the Checks.
#pragma once

#include <isthmus/layout.h>

#include "broken_driver.hpp"

namespace laid_pairs {

using namespace forked_ranks;

inline constexpr std::size_t kRoom = 1 << 20;

// A committed layout of bytes, with their places in pack order.
class Form {
 public:
  Form(Checks& check, const std::function<int(ist_layout*)>& make, std::vector<std::size_t> where)
      : places(std::move(where)), check_(check) {
    check_.ok(make(&layout_), "a layout");
    check_.ok(ist_layout_commit(layout_), "commit");
  }
  ~Form() { check_.ok(ist_layout_free(&layout_), "free"); }
  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;
  ist_layout get() const { return layout_; }
  const std::vector<std::size_t> places;

 private:
  Checks& check_;
  ist_layout layout_ = IST_LAYOUT_NULL;
};
using FormPointer = std::unique_ptr<Form>;

inline FormPointer vector(Checks& check, std::int64_t blocks, std::int64_t length, std::int64_t stride) {
  std::vector<std::size_t> places;
  for (std::int64_t i = 0; i < blocks * length; ++i)
    places.push_back(static_cast<std::size_t>(i / length * stride + i % length));
  return std::make_unique<Form>(
      check, [&](ist_layout* made) { return ist_layout_hvector(blocks, length, stride, ist_layout_of(IST_BYTE), made); },
      std::move(places));
}
inline FormPointer row(Checks& check, std::int64_t bytes) { return vector(check, 1, bytes, bytes); }
// The last blocks first, in pairs, so that it has strides; or at irregular places, which a device has to be told the first time.
inline constexpr std::int64_t kIrregular = 1021;
inline FormPointer list(Checks& check, std::int64_t blocks, std::int64_t length, std::int64_t period = 2) {
  std::vector<std::int64_t> displacements;
  std::vector<std::size_t> places;
  for (std::int64_t i = blocks - 1; i >= 0; --i) {
    displacements.push_back((3 * i + i * i % period % 2) * length);
    for (std::int64_t b = 0; b < length; ++b) places.push_back(static_cast<std::size_t>(displacements.back() + b));
  }
  return std::make_unique<Form>(
      check,
      [&](ist_layout* made) {
        return ist_layout_hindexed_block(blocks, length, displacements.data(), ist_layout_of(IST_BYTE), made);
      },
      std::move(places));
}
// A list of ten blocks at irregular places, again and again, and the whole of it twice, the second one before the first.
inline FormPointer lists(Checks& check, std::int64_t times, std::int64_t length) {
  constexpr std::int64_t kBlocks = 10;
  const std::int64_t apart = 5 * kBlocks * length, half = times * apart;
  std::vector<std::int64_t> displacements;
  std::vector<std::size_t> places;
  for (std::int64_t i = 0; i < kBlocks; ++i) displacements.push_back((4 * i + i * i % 3) * length);
  for (std::int64_t t = 0; t < 2 * times; ++t)
    for (const std::int64_t displacement : displacements)
      for (std::int64_t b = 0; b < length; ++b)
        places.push_back(static_cast<std::size_t>((t < times ? half : -half) + t * apart + displacement + b));
  return std::make_unique<Form>(
      check,
      [&](ist_layout* made) {
        ist_layout block = IST_LAYOUT_NULL, again = IST_LAYOUT_NULL;
        check.ok(ist_layout_hindexed_block(kBlocks, length, displacements.data(), ist_layout_of(IST_BYTE), &block),
                 "a list");
        check.ok(ist_layout_hvector(times, 1, apart, block, &again), "a list again and again");
        const std::int64_t halves[] = {half, 0};
        const int code = ist_layout_hindexed_block(2, 1, halves, again, made);
        check.ok(ist_layout_free(&block), "free"), check.ok(ist_layout_free(&again), "free");
        return code;
      },
      std::move(places));
}
// A box of cells of eight bytes.
inline FormPointer box(Checks& check) {
  constexpr std::int64_t kSizes[] = {20, 12, 10}, kPart[] = {11, 7, 5}, kBegins[] = {3, 2, 4};
  std::vector<std::size_t> places;
  for (std::int64_t i = 0; i < kPart[0]; ++i)
    for (std::int64_t j = 0; j < kPart[1]; ++j)
      for (std::int64_t b = 0; b < kPart[2] * 8; ++b)
        places.push_back(
            static_cast<std::size_t>((((i + kBegins[0]) * kSizes[1] + j + kBegins[1]) * kSizes[2] + kBegins[2]) * 8 + b));
  return std::make_unique<Form>(
      check,
      [&](ist_layout* made) {
        return ist_layout_subarray(3, kSizes, kPart, kBegins, IST_ORDER_C, ist_layout_of(IST_DOUBLE), made);
      },
      std::move(places));
}

inline std::uint64_t calls(const char* name) { return driver_call<decltype(&::fake_cuda_calls)>("fake_cuda_calls")(name); }

// What both ranks know of one message.
struct Carried {
  int code[2] = {IST_OK, IST_OK};
  int launches[2] = {0, 0};
  int copies[2] = {0, 0};
  int rows[2] = {0, 0};  // of those copies
  int carrier = IST_CARRIER_NONE;
  bool moved_by(int kernels_of_0, int kernels_of_1) const {
    return launches[0] == kernels_of_0 && launches[1] == kernels_of_1 && copies[0] + copies[1] == 0;
  }
  std::string text() const {
    std::string said = std::string{"carrier "} + ist_carrier_name(carrier);
    for (const int rank : {0, 1})
      said += ", rank " + std::to_string(rank) + ": " + ist_code_name(code[rank]) + ", " + std::to_string(launches[rank]) +
              " kernels, " + std::to_string(copies[rank]) + " copies, " + std::to_string(rows[rank]) + " of them of rows";
    return said;
  }
};

// The buffers stay, so that they are opened once. Messages go from rank 0 to rank 1.
class Pair {
 public:
  Pair(const Here& here, Checks& check, std::size_t room = kRoom, ist_kind sender = IST_KIND_CUDA,
       ist_kind receiver = IST_KIND_CUDA)
      : here_(here),
        check_(check),
        room_(room),
        buffer(here, room, here.rank == 0 ? sender : receiver,
               (here.rank == 0 ? sender : receiver) == IST_KIND_CUDA ? here.rank : 0) {}

  Carried carry(const Form& out, const Form& in, std::uint64_t seed, std::size_t begin = 0) {
    const Data sent = random_bytes(room_, seed);
    buffer.fill(here_.rank == 0 ? sent : Data(room_, 0xa5));
    const std::uint64_t launched = calls("cuLaunchKernel"), copied = all_copies(), in_rows = calls("cuMemcpy3DAsync_v2");
    ist_status status{};
    const ist_buffer at = ist_buffer_at(buffer.get(), begin);
    const int code = here_.rank == 0 ? ist_send_layout(at, 1, out.get(), 1, 7, here_.comm)
                                     : ist_recv_layout(at, 1, in.get(), 0, 7, here_.comm, &status);
    Carried carried = together(code, calls("cuLaunchKernel") - launched, all_copies() - copied,
                               calls("cuMemcpy3DAsync_v2") - in_rows, status.carrier);
    if (here_.rank == 1 && (code == IST_OK || code == IST_ERR_TRUNCATE)) expect(out, in, sent, begin, carried);
    if (here_.rank == 0) check_.that(buffer.read() == sent, "what was sent from is as it was");
    return carried;
  }
  // Until memory and blocks are open, copies and rings carry them.
  void open(const Form& out, const Form& in, int kernels_of_0, int kernels_of_1) {
    Carried last;
    for (std::uint64_t n = 0; n < 2000; ++n) {
      last = carry(out, in, n);
      if (last.moved_by(kernels_of_0, kernels_of_1)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    check_.that(false, "kernels move it alone: " + last.text());
  }

 private:
  static std::uint64_t all_copies() {
    return calls("cuMemcpyAsync") + calls("cuMemcpyBatchAsync_v2") + calls("cuMemcpyBatchAsync") +
           calls("cuMemcpy3DAsync_v2");
  }
  Carried together(int code, std::uint64_t launches, std::uint64_t copies, std::uint64_t rows, int carrier) {
    int mine[5] = {code, static_cast<int>(launches), static_cast<int>(copies), carrier, static_cast<int>(rows)},
        theirs[5] = {};
    check_.ok(ist_sendrecv(ist_host(mine), 5, IST_INT, 1 - here_.rank, 9, ist_host(theirs), 5, IST_INT, 1 - here_.rank, 9,
                           here_.comm, IST_STATUS_IGNORE),
              "what was counted");
    Carried carried;
    for (const bool other : {false, true}) {
      const int* from = other ? theirs : mine;
      const int rank = other ? 1 - here_.rank : here_.rank;
      carried.code[rank] = from[0], carried.launches[rank] = from[1], carried.copies[rank] = from[2];
      carried.rows[rank] = from[4];
      if (rank == 1) carried.carrier = from[3];
    }
    return carried;
  }
  void expect(const Form& out, const Form& in, const Data& sent, std::size_t begin, const Carried& carried) {
    Data wanted(room_, 0xa5);
    for (std::size_t i = 0; i < std::min(out.places.size(), in.places.size()); ++i)
      wanted[begin + in.places[i]] = sent[begin + out.places[i]];
    const auto wrong = first_difference(wanted, buffer.read());
    check_.that(wrong < 0, "every byte is in its place, but for that at " + std::to_string(wrong) + ": " + carried.text());
  }

  const Here& here_;
  Checks& check_;
  const std::size_t room_;

 public:
  Buffer buffer;
};

inline void expect_moved(Checks& check, Pair& pair, const Form& out, const Form& in, int kernels_of_0, int kernels_of_1,
                         const std::string& what) {
  std::uint64_t seed = 5000;
  for (const std::size_t begin : {0, 1, 2, 4, 8, 16}) {
    const Carried carried = pair.carry(out, in, ++seed, begin);
    check.that(carried.moved_by(kernels_of_0, kernels_of_1) && carried.carrier == IST_CARRIER_DEVICE,
               what + " at " + std::to_string(begin) + " is moved by kernels alone: " + carried.text());
  }
}

// A kernel of the user's works on the buffer of rank `late` when the message begins: nothing of it is read before, the receiver takes the bytes in a
// block where it is late, so that the send ends, and no call waits for that kernel. Every byte is compared.
inline void expect_waits(const Here& here, Checks& check, Pair& pair, const Form& out, const Form& in, int late) {
  Gate gate;
  pair.buffer.fill(Data(kRoom, 0xa5));
  if (here.rank == late) fill_behind(gate, pair.buffer, kRoom, 0x3c);
  ist_request request = IST_REQUEST_NULL;
  check.ok(here.rank == 0 ? ist_isend_layout(pair.buffer.get(), 1, out.get(), 1, 7, here.comm, &request)
                          : ist_irecv_layout(pair.buffer.get(), 1, in.get(), 0, 7, here.comm, &request),
           "start");
  if (late == 1 && here.rank == 0) check.ok(ist_wait(&request, IST_STATUS_IGNORE), "the send ends before the kernel");
  int word = here.rank;
  check.ok(
      ist_sendrecv_replace(ist_host(&word), 1, IST_INT, 1 - here.rank, 9, 1 - here.rank, 9, here.comm, IST_STATUS_IGNORE),
      "another message passes");
  int completed = 0;
  if (late == 0 || here.rank == 1) check.ok(ist_test(&request, &completed, IST_STATUS_IGNORE), "test");
  check.that(completed == 0 && !gate.opened_itself(), "nothing is over, and nothing waited for the kernel");
  gate.open();
  check.ok(ist_wait(&request, IST_STATUS_IGNORE), "wait");
  // Of rank 0 what the kernel wrote; on rank 1 the message over what the kernel wrote.
  Data wanted(kRoom, late == 0 ? 0xa5 : 0x3c);
  for (const std::size_t place : in.places) wanted[place] = late == 0 ? 0x3c : 0xa5;
  if (here.rank == 1) check.that(pair.buffer.read() == wanted, "the bytes, late on rank " + std::to_string(late));
}

}  // namespace laid_pairs
