// Messages in streams that are captured into graphs, whose replays meet other replays and plain calls.
#include <optional>

#include "streams_support.hpp"

using namespace rank_test;

namespace {

// Rounds of a graph: the long set has as many as a program makes in an hour.
int rounds() {
  const char* wanted = std::getenv("ISTHMUS_TEST_ROUNDS");
  return wanted != nullptr ? std::atoi(wanted) : 60;
}

TEST(StreamGraphs, NothingIsPreparedInACaptureAndTheCaptureGoesOn) {
  NEEDS_DEVICES();
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, 100);
  const int other = rank() == 0 ? 1 : 0;
  const Graph graph(stream, [&] {
    fails(IST_ERR_NOT_CAPTURABLE, ist_send_on(stream.get(), buffer.get(), 100, IST_BYTE, other, 71, comm()),
          {"ist_send_on", "tag 71", "ist_prepare_on"});
    fails(IST_ERR_NOT_CAPTURABLE, ist_recv_on(stream.get(), buffer.get(), 100, IST_BYTE, other, 71, comm()),
          {"ist_recv_on", "tag 71", "ist_prepare_on"});
    fails(
        IST_ERR_NOT_CAPTURABLE,
        ist_sendrecv_on(stream.get(), buffer.get(), 50, IST_BYTE, other, 71, buffer.get(), 50, IST_BYTE, other, 71, comm()),
        {"ist_sendrecv_on", "tag 71", "ist_prepare_on"});
    fails(IST_ERR_NOT_CAPTURABLE, ist_prepare_on(stream.get(), other, 71, IST_SENDS, comm()), {"ist_prepare_on"});
  });
  graph.launch();
  stream.wait();
  together();
}

// Calls that are no part of a stream cannot wait for one that does not run: not one of them, and the capture goes on.
TEST(StreamGraphs, NoMessageGoesOutOfOrIntoABufferWhoseStreamIsCaptured) {
  NEEDS_DEVICES();
  const Stream stream;
  GuardedBuffer device(IST_KIND_CUDA, 100);
  ist_buffer buffer = device.get();
  buffer.queue = reinterpret_cast<std::uint64_t>(stream.get());
  GuardedBuffer elsewhere(IST_KIND_CUDA, 100);
  const int other = (rank() + 1) % size();
  const Graph graph(stream, [&] {
    const auto refused = [&](const char* call, int code) {
      fails(IST_ERR_NOT_CAPTURABLE, code, {call, "is being captured into a graph", "end the capture first"});
    };
    ist_request request = IST_REQUEST_NULL;
    refused("ist_send", ist_send(buffer, 100, IST_BYTE, other, 75, comm()));
    refused("ist_ssend", ist_ssend(buffer, 100, IST_BYTE, other, 75, comm()));
    refused("ist_recv", ist_recv(buffer, 100, IST_BYTE, other, 75, comm(), nullptr));
    refused("ist_isend", ist_isend(buffer, 100, IST_BYTE, other, 75, comm(), &request));
    refused("ist_irecv", ist_irecv(buffer, 100, IST_BYTE, other, 75, comm(), &request));
    refused("ist_sendrecv",
            ist_sendrecv(buffer, 50, IST_BYTE, other, 75, elsewhere.get(), 50, IST_BYTE, other, 75, comm(), nullptr));
    refused("ist_sendrecv",
            ist_sendrecv(elsewhere.get(), 50, IST_BYTE, other, 75, buffer, 50, IST_BYTE, other, 75, comm(), nullptr));
    refused("ist_allreduce", ist_allreduce(buffer, elsewhere.get(), 25, IST_INT32, IST_SUM, comm()));
    refused("ist_allreduce", ist_allreduce(elsewhere.get(), buffer, 25, IST_INT32, IST_SUM, comm()));
    refused("ist_bcast", ist_bcast(buffer, 100, IST_BYTE, 0, comm()));
    refused("ist_memory_copy", ist_memory_copy(world(), buffer, elsewhere.get(), 100));
  });
  // Nothing is left of them that would meet what comes.
  device.poison();
  elsewhere.fill(random_bytes(100, at(rank())));
  const int from = (rank() + size() - 1) % size();
  IST_OK_OR_FAIL(ist_sendrecv(elsewhere.get(), 100, IST_BYTE, other, 75, buffer, 100, IST_BYTE, from, 75, comm(), nullptr));
  device.expect(random_bytes(100, at(from)), "after the capture");
  together();
}

// `captured`: on this rank. Each round has bytes of its own, in the same place.
void replay(bool captured, std::size_t bytes, int tag) {
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, bytes);
  GuardedBuffer back(IST_KIND_CUDA, bytes);
  if (rank() < 2) IST_OK_OR_FAIL(ist_prepare_on(stream.get(), 1 - rank(), tag, IST_SENDS + IST_RECEIVES, comm()));
  const auto round = [&] {
    if (rank() == 0) {
      send_on(stream, buffer.get(), bytes, 1, tag);
      receive_on(stream, back.get(), bytes, 1, tag);
    } else if (rank() == 1) {
      receive_on(stream, buffer.get(), bytes, 0, tag);
      send_on(stream, buffer.get(), bytes, 0, tag);
    }
  };
  std::optional<Graph> graph;
  if (captured) graph.emplace(stream, round);
  for (int n = 0; n < rounds() && rank() < 2; ++n) {
    const auto wanted = random_bytes(bytes, bytes * 1000 + at(n));
    if (rank() == 0) buffer.fill(wanted);
    if (rank() == 1) buffer.poison();
    back.poison();
    // Now and then the two change over.
    if (captured && n % 7 != 6) {
      graph->launch();
    } else {
      round();
    }
    stream.wait();
    buffer.expect(wanted, "there, round " + std::to_string(n));
    if (rank() == 0) back.expect(wanted, "and back, round " + std::to_string(n));
  }
  together();
}

TEST(StreamGraphs, ReplaysAtBothEndsWithChangingBytes) {
  NEEDS_DEVICES();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{3000}, kSmall + 5, std::size_t{400001}})
    replay(true, bytes, 72);
}

TEST(StreamGraphs, ReplaysAtOneEndMeetPlainCallsAtTheOther) {
  NEEDS_DEVICES();
  for (const std::size_t bytes : {std::size_t{8}, kSmall + 5}) {
    replay(rank() == 0, bytes, 73);
    replay(rank() == 1, bytes, 73);
  }
}

TEST(StreamGraphs, AnExchangeInOneCallIsReplayed) {
  NEEDS_DEVICES();
  const Stream stream;
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{100001}}) {
    GuardedBuffer out(IST_KIND_CUDA, bytes);
    GuardedBuffer in(IST_KIND_CUDA, bytes);
    IST_OK_OR_FAIL(ist_prepare_on(stream.get(), right, 74, IST_SENDS, comm()));
    IST_OK_OR_FAIL(ist_prepare_on(stream.get(), left, 74, IST_RECEIVES, comm()));
    const Graph graph(stream, [&] {
      EXPECT_EQ(IST_OK, ist_sendrecv_on(stream.get(), out.get(), count(bytes), IST_BYTE, right, 74, in.get(), count(bytes),
                                        IST_BYTE, left, 74, comm()))
          << ist_error_text();
    });
    for (int n = 0; n < rounds(); ++n) {
      out.fill(random_bytes(bytes, at(n * 10 + rank())));
      in.poison();
      graph.launch();
      stream.wait();
      in.expect(random_bytes(bytes, at(n * 10 + left)), "round " + std::to_string(n));
    }
    together();
  }
}

}  // namespace
