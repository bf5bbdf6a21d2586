// Messages of layouts that streams send and receive, by calls and in graphs: each byte in its place, and none beside them.
#include <isthmus/layout_stream.h>

#include <optional>

#include "laid.hpp"
#include "streams_support.hpp"

using namespace rank_test;

namespace {

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }

// Single bytes, every third one; and pairs, seven apart, of which the last may be half, from behind: no regular layout.
std::unique_ptr<Laid> thirds(std::size_t bytes) {
  auto made = std::make_unique<Laid>();
  EXPECT_EQ(IST_OK, ist_layout_hvector(count(bytes), 1, 3, ist_layout_of(IST_BYTE), &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout));
  for (std::size_t i = 0; i < bytes; ++i) made->add(i * 3, 1);
  return made;
}
std::unique_ptr<Laid> scattered(std::size_t bytes) {
  auto made = std::make_unique<Laid>();
  std::vector<std::int64_t> lengths, places;
  for (std::size_t i = 0; i < bytes; i += 2) {
    lengths.push_back(count(std::min<std::size_t>(2, bytes - i)));
    places.push_back(count((bytes / 2 - i / 2) * 7 + i % 3));
    made->add(static_cast<std::size_t>(places.back()), static_cast<std::size_t>(lengths.back()));
  }
  EXPECT_EQ(IST_OK, ist_layout_indexed(count(lengths.size()), lengths.data(), places.data(), ist_layout_of(IST_BYTE),
                                       &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout));
  return made;
}
// Blocks of 32 bytes, which lie as vectors do: what is moved in units of 16.
std::unique_ptr<Laid> wide(std::size_t bytes) {
  auto made = std::make_unique<Laid>();
  EXPECT_EQ(IST_OK, ist_layout_hvector(count(bytes / 32), 32, 48, ist_layout_of(IST_BYTE), &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout));
  for (std::size_t i = 0; i < bytes / 32; ++i) made->add(i * 48, 32);
  return made;
}

void send(const Stream& stream, const ist_buffer& buffer, const Laid& laid, int to, int tag = kTag) {
  EXPECT_EQ(IST_OK, ist_send_layout_on(stream.get(), buffer, 1, laid.layout, to, tag, comm())) << ist_error_text();
}
void receive(const Stream& stream, const ist_buffer& buffer, const Laid& laid, int from, int tag = kTag) {
  EXPECT_EQ(IST_OK, ist_recv_layout_on(stream.get(), buffer, 1, laid.layout, from, tag, comm())) << ist_error_text();
}

// From rank 0 to rank 1; null: in a row.
void carry(const Stream& stream, const Laid* out, const Laid* in, std::size_t bytes, std::uint64_t seed) {
  const std::size_t reach = rank() == 0 ? (out ? out->reach : bytes) : (in ? in->reach : bytes);
  GuardedBuffer buffer(IST_KIND_CUDA, std::max<std::size_t>(reach, 1));
  const Bytes sent = random_bytes(out ? out->reach : bytes, seed);
  const Bytes row = out ? packed(*out, sent) : sent;
  if (rank() == 0) {
    buffer.fill(sent);
    out ? send(stream, buffer.get(), *out, 1) : send_on(stream, buffer.get(), bytes, 1);
  } else if (rank() == 1) {
    in ? receive(stream, buffer.get(), *in, 0) : receive_on(stream, buffer.get(), bytes, 0);
  }
  stream.wait();
  if (rank() == 1) buffer.expect(in ? unpacked(*in, row) : row, std::to_string(bytes) + " bytes");
}

// The first of all here: where kernels are loaded by their first launch, which waits for those that run, the one that unpacks must be there
// before its receive waits.
TEST(StreamLayouts, AReceiveThatWaitsHoldsUpNobodyButItsStream) {
  NEEDS_DEVICES();
  const Stream receives, sends;
  const auto regular = thirds(3000), list = scattered(3000);
  for (const auto& [out, in] : {std::pair{list.get(), regular.get()}, {regular.get(), list.get()}}) {
    GuardedBuffer source(IST_KIND_CUDA, out->reach), target(IST_KIND_CUDA, in->reach);
    source.fill(random_bytes(out->reach, at(rank())));
    IST_OK_OR_FAIL(ist_prepare_layout_on(sends.get(), 1, out->layout, right(), 80, IST_SENDS, comm()));
    IST_OK_OR_FAIL(ist_prepare_layout_on(receives.get(), 1, in->layout, left(), 80, IST_RECEIVES, comm()));
    receive(receives, target.get(), *in, left(), 80);
    together();  // all receives wait, and all ranks have come back from putting them there
    send(sends, source.get(), *out, right(), 80);
    sends.wait();
    receives.wait();
    target.expect(unpacked(*in, packed(*out, random_bytes(out->reach, at(left())))), "what was waited for");
    together();
  }
}

TEST(StreamLayouts, OfEverySizeGoIntoAnotherLayoutIntoARowAndOutOfOne) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{300}, kSmall - 1, kSmall,
                                  kSmall + 1, std::size_t{300001}, std::size_t{(2 << 20) + 5}}) {
    const auto regular = thirds(bytes), list = scattered(bytes);
    carry(stream, regular.get(), list.get(), bytes, bytes);
    carry(stream, list.get(), regular.get(), bytes, bytes + 1);
    carry(stream, list.get(), nullptr, bytes, bytes + 2);
    carry(stream, nullptr, regular.get(), bytes, bytes + 3);
  }
  for (const std::size_t bytes : {std::size_t{32}, std::size_t{640}, std::size_t{320000}}) {
    const auto blocks = wide(bytes), list = scattered(bytes);
    carry(stream, blocks.get(), list.get(), bytes, bytes + 4);
    carry(stream, list.get(), blocks.get(), bytes, bytes + 5);
  }
}

// As many bytes as come, in units of which the last may be half there; and the next one, of all bytes.
TEST(StreamLayouts, AShorterMessageFillsTheFirstBytesAndLeavesTheRest) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t room : {std::size_t{640}, kSmall + 32, std::size_t{320000}}) {
    const auto blocks = wide(room), list = scattered(room), single = thirds(room);
    for (const Laid* in : {blocks.get(), list.get(), single.get()})
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{33},
                                      room / 2 + 7, room - 1, room}) {
        GuardedBuffer buffer(IST_KIND_CUDA, std::max(in->reach, bytes));
        const Bytes sent = random_bytes(bytes, room + bytes);
        if (rank() == 0) {
          buffer.fill(sent);
          send_on(stream, buffer.get(), bytes, 1);
        } else if (rank() == 1) {
          receive(stream, buffer.get(), *in, 0);
        }
        stream.wait();
        Bytes wanted = unpacked(*in, sent);
        if (rank() == 1) buffer.expect(wanted, std::to_string(bytes) + " bytes into room for " + std::to_string(room));
      }
  }
}

TEST(StreamLayouts, AMessageThatIsTooLongFillsTheLayoutAndIsToldOfByTheNextCall) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t room : {std::size_t{100}, kSmall + 1, std::size_t{200001}}) {
    const auto in = scattered(room);
    const std::size_t bytes = room + 77;
    GuardedBuffer buffer(IST_KIND_CUDA, std::max(in->reach, bytes));
    Bytes sent = random_bytes(bytes, room);
    if (rank() == 0) {
      buffer.fill(sent);
      send_on(stream, buffer.get(), bytes, 1);
    } else if (rank() == 1) {
      receive(stream, buffer.get(), *in, 0);
      stream.wait();
      sent.resize(room);
      buffer.expect(unpacked(*in, sent), "the layout");
      fails(IST_ERR_TRUNCATE, ist_recv_layout_on(stream.get(), buffer.get(), 1, in->layout, 0, kTag, comm()),
            {"ist_recv_layout_on", "from rank 0", std::to_string(bytes) + " bytes", "room for " + std::to_string(room)});
      buffer.expect(unpacked(*in, sent), "nothing more was received");
    }
    carry(stream, nullptr, in.get(), room, 3);
  }
}

// Each message is packed into the same memory: the next one's kernel comes after what sends it.
TEST(StreamLayouts, ManyInARowDoNotMeetInTheChannelsMemory) {
  NEEDS_DEVICES();
  constexpr int kMany = 25;
  const Stream stream;
  const auto out = thirds(5000), in = scattered(5000);
  std::vector<std::unique_ptr<GuardedBuffer>> all;
  for (int i = 0; i < kMany; ++i) {
    all.push_back(std::make_unique<GuardedBuffer>(IST_KIND_CUDA, std::max(out->reach, in->reach)));
    if (rank() == 0) all.back()->fill(random_bytes(out->reach, at(i) + 50));
  }
  for (const auto& each : all) {
    if (rank() == 0) send(stream, each->get(), *out, 1);
    if (rank() == 1) receive(stream, each->get(), *in, 0);
  }
  stream.wait();
  for (int i = 0; i < kMany && rank() == 1; ++i)
    all[at(i)]->expect(unpacked(*in, packed(*out, random_bytes(out->reach, at(i) + 50))), "message " + std::to_string(i));
  together();
}

// Of page-locked host memory a kernel packs across the bus.
TEST(StreamLayouts, OfPageLockedHostMemoryAreTakenAndOfOrdinaryMemoryRefused) {
  NEEDS_DEVICES();
  const Stream stream;
  const auto out = thirds(3000), in = scattered(3000);
  Bytes source = random_bytes(out->reach, at(rank())), target(in->reach, 0xa5);
  for (Bytes* bytes : {&source, &target}) IST_OK_OR_FAIL(ist_register(world(), bytes->data(), bytes->size()));
  IST_OK_OR_FAIL(ist_sendrecv_layout_on(stream.get(), ist_host(source.data()), 1, out->layout, right(), 81,
                                        ist_host(target.data()), 1, in->layout, left(), 81, comm()));
  stream.wait();
  EXPECT_EQ(unpacked(*in, packed(*out, random_bytes(out->reach, at(left())))), target);
  together();
  for (Bytes* bytes : {&source, &target}) IST_OK_OR_FAIL(ist_unregister(world(), bytes->data()));
  fails(IST_ERR_ARGUMENT, ist_send_layout_on(stream.get(), ist_host(source.data()), 1, out->layout, right(), 81, comm()),
        {"ist_send_layout_on", "not page-locked"});
  together();
}

// ---- in graphs ----

int rounds() {
  const char* wanted = std::getenv("ISTHMUS_TEST_ROUNDS");
  return wanted != nullptr ? std::atoi(wanted) : 30;
}

// Around a ring, with bytes of its own in each round; now and then by a call.
void replay(const Laid& out, const Laid& in, bool captured, int tag) {
  const Stream stream;
  GuardedBuffer source(IST_KIND_CUDA, out.reach), target(IST_KIND_CUDA, in.reach);
  IST_OK_OR_FAIL(ist_prepare_layout_on(stream.get(), 1, out.layout, right(), tag, IST_SENDS, comm()));
  IST_OK_OR_FAIL(ist_prepare_layout_on(stream.get(), 1, in.layout, left(), tag, IST_RECEIVES, comm()));
  const auto round = [&] {
    EXPECT_EQ(IST_OK, ist_sendrecv_layout_on(stream.get(), source.get(), 1, out.layout, right(), tag, target.get(), 1,
                                             in.layout, left(), tag, comm()))
        << ist_error_text();
  };
  std::optional<Graph> graph;
  if (captured) graph.emplace(stream, round);
  for (int n = 0; n < rounds(); ++n) {
    source.fill(random_bytes(out.reach, at(n * 10 + rank())));
    target.poison();
    captured&& n % 7 != 6 ? graph->launch() : round();
    stream.wait();
    target.expect(unpacked(in, packed(out, random_bytes(out.reach, at(n * 10 + left())))), "round " + std::to_string(n));
  }
  together();
}

TEST(StreamLayouts, AreReplayedWithChangingBytesAtBothEndsAndAtOne) {
  NEEDS_DEVICES();
  for (const std::size_t bytes : {std::size_t{9}, std::size_t{3000}, kSmall + 5, std::size_t{300001}}) {
    const auto regular = thirds(bytes), list = scattered(bytes);
    replay(*regular, *list, true, 82);
    replay(*list, *regular, rank() == 0, 82);
    replay(*list, *list, rank() != 0, 83);
  }
}

// A graph of a short one is replayed after the channel has got more memory for a long one, and after its layout is gone.
TEST(StreamLayouts, AGraphStaysGoodWhenTheChannelsMemoryGrowsAndItsLayoutIsFreed) {
  NEEDS_DEVICES();
  const Stream stream;
  constexpr int kOwnTag = 84;
  const auto longer = scattered(400001);
  auto out = scattered(1001), in = scattered(1001);
  const std::size_t reach = out->reach;
  GuardedBuffer source(IST_KIND_CUDA, longer->reach), target(IST_KIND_CUDA, longer->reach);
  const auto call = [&](const Laid& from, const Laid& to) {
    return ist_sendrecv_layout_on(stream.get(), source.get(), 1, from.layout, right(), kOwnTag, target.get(), 1, to.layout,
                                  left(), kOwnTag, comm());
  };
  IST_OK_OR_FAIL(ist_prepare_layout_on(stream.get(), 1, out->layout, right(), kOwnTag, IST_SENDS, comm()));
  IST_OK_OR_FAIL(ist_prepare_layout_on(stream.get(), 1, in->layout, left(), kOwnTag, IST_RECEIVES, comm()));
  const Graph graph(stream, [&] { EXPECT_EQ(IST_OK, call(*out, *in)) << ist_error_text(); });
  const auto replay_once = [&](std::uint64_t seed, const Laid& laid) {
    source.fill(random_bytes(reach, seed + at(rank())));
    target.poison();
    graph.launch();
    stream.wait();
    target.expect(unpacked(laid, packed(laid, random_bytes(reach, seed + at(left())))), "seed " + std::to_string(seed));
  };
  replay_once(100, *out);
  source.fill(random_bytes(longer->reach, 7));
  IST_OK_OR_FAIL(call(*longer, *longer));
  stream.wait();
  const auto same = scattered(1001);
  out.reset(), in.reset();
  replay_once(200, *same);
  // Another layout of the same bytes needs nothing new, and can be captured at once.
  const Graph again(stream, [&] { EXPECT_EQ(IST_OK, call(*same, *same)) << ist_error_text(); });
  again.launch();
  stream.wait();
  together();
}

TEST(StreamLayouts, WhatACaptureWouldHaveToMakeIsRefusedAndTheCaptureGoesOn) {
  NEEDS_DEVICES();
  const Stream stream;
  const auto small = thirds(100), large = thirds(300000), list = scattered(100);
  GuardedBuffer buffer(IST_KIND_CUDA, large->reach);
  const auto refused = [&](const Laid& laid, int tag) {
    fails(IST_ERR_NOT_CAPTURABLE, ist_send_layout_on(stream.get(), buffer.get(), 1, laid.layout, right(), tag, comm()),
          {"ist_send_layout_on", tag == 85 ? "ist_prepare_on" : "ist_prepare_layout_on"});
  };
  const Graph unprepared(stream, [&] { refused(*small, 85); });
  IST_OK_OR_FAIL(ist_prepare_on(stream.get(), right(), 86, IST_SENDS, comm()));
  IST_OK_OR_FAIL(ist_prepare_on(stream.get(), left(), 86, IST_RECEIVES, comm()));
  const Graph bare(stream, [&] {
    refused(*small, 86);
    fails(IST_ERR_NOT_CAPTURABLE, ist_prepare_layout_on(stream.get(), 1, small->layout, right(), 86, IST_SENDS, comm()),
          {"ist_prepare_layout_on"});
  });
  IST_OK_OR_FAIL(ist_prepare_layout_on(stream.get(), 1, small->layout, right(), 86, IST_SENDS, comm()));
  const Graph short_of_memory(stream, [&] {
    refused(*large, 86);
    refused(*list, 86);
  });
  for (const Graph* graph : {&unprepared, &bare, &short_of_memory}) graph->launch();
  stream.wait();
  together();
}

TEST(StreamLayouts, MistakesAreToldAndNothingIsPutIntoTheStream) {
  NEEDS_DEVICES();
  const Stream stream;
  const auto good = thirds(100);
  GuardedBuffer buffer(IST_KIND_CUDA, 400);
  ist_layout raw = IST_LAYOUT_NULL, twice = IST_LAYOUT_NULL, beyond = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(4, 1, 2, ist_layout_of(IST_INT), &raw));
  IST_OK_OR_FAIL(ist_layout_vector(4, 2, 1, ist_layout_of(IST_INT), &twice));
  IST_OK_OR_FAIL(ist_layout_hvector(2, 4, 1 << 28, ist_layout_of(IST_BYTE), &beyond));
  for (const ist_layout layout : {twice, beyond}) IST_OK_OR_FAIL(ist_layout_commit(layout));
  fails(IST_ERR_ARGUMENT, ist_send_layout_on(stream.get(), buffer.get(), 1, raw, right(), kTag, comm()),
        {"ist_send_layout_on: the layout, vector("});
  fails(IST_ERR_ARGUMENT, ist_recv_layout_on(stream.get(), buffer.get(), 1, twice, left(), kTag, comm()),
        {"ist_recv_layout_on", "twice"});
  fails(IST_ERR_ARGUMENT, ist_send_layout_on(stream.get(), buffer.get(), 1, beyond, right(), kTag, comm()),
        {"ist_send_layout_on", "past the end"});
  fails(IST_ERR_HANDLE, ist_prepare_layout_on(stream.get(), 1, IST_LAYOUT_NULL, right(), kTag, IST_SENDS, comm()),
        {"ist_prepare_layout_on"});
  fails(IST_ERR_RANK, ist_send_layout_on(stream.get(), buffer.get(), 1, good->layout, size(), kTag, comm()),
        {"ist_send_layout_on"});
  fails(IST_ERR_ARGUMENT, ist_prepare_layout_on(stream.get(), 1, good->layout, right(), kTag, 0, comm()), {"sides"});
  int opencl = 0;
  if (ist_kind_devices(world(), IST_KIND_OPENCL, &opencl) == IST_OK && opencl > 0) {
    GuardedBuffer other(IST_KIND_OPENCL, 400);
    fails(IST_ERR_KIND, ist_send_layout_on(stream.get(), other.get(), 1, good->layout, right(), kTag, comm()),
          {"ist_send_layout_on", "OpenCL"});
  }
  IST_OK_OR_FAIL(ist_send_layout_on(stream.get(), buffer.get(), 1, good->layout, IST_PROC_NULL, kTag, comm()));
  IST_OK_OR_FAIL(ist_recv_layout_on(stream.get(), buffer.get(), 1, good->layout, IST_PROC_NULL, kTag, comm()));
  IST_OK_OR_FAIL(ist_prepare_layout_on(stream.get(), 1, good->layout, IST_PROC_NULL, kTag, IST_SENDS, comm()));
  stream.wait();
  buffer.expect({}, "nothing came");
  for (ist_layout* layout : {&raw, &twice, &beyond}) IST_OK_OR_FAIL(ist_layout_free(layout));
  together();
}

}  // namespace
