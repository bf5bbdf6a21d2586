// What ist_explain says a message takes is what it then takes; and its text, its length, its errors.
#include <isthmus/collective.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "rank_test.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 12;
int next() { return (rank() + 1) % size(); }
int before() { return (rank() + size() - 1) % size(); }

std::string explained(ist_buffer buffer, std::int64_t count, ist_type type, int dest) {
  std::size_t needed = 0;
  EXPECT_EQ(IST_OK, ist_explain(buffer, count, type, dest, comm(), nullptr, 0, &needed)) << ist_error_text();
  std::string text(needed, '?');
  EXPECT_EQ(IST_OK, ist_explain(buffer, count, type, dest, comm(), text.data(), text.size(), nullptr)) << ist_error_text();
  EXPECT_EQ(text.size() - 1, std::strlen(text.c_str()));
  text.pop_back();
  return text;
}

// "slot" of "... to rank 1 (process 2 on x): slot\n..."
std::string choice_in(const std::string& text) {
  const std::size_t end = text.find('\n');
  const std::size_t start = text.rfind(": ", end);
  return text.substr(start + 2, end - start - 2);
}

TEST(Explain, TellsTheCarrierThatTheMessageThenTakes) {
  for (const KindName kind : usable_kinds()) {
    GuardedBuffer out(kind.kind, border_sizes().back());
    GuardedBuffer in(kind.kind, border_sizes().back());
    for (const std::size_t bytes : border_sizes()) {
      const auto count = static_cast<std::int64_t>(bytes);
      const auto wanted = random_bytes(bytes, bytes + 100 * static_cast<std::uint64_t>(before()));
      out.fill(random_bytes(bytes, bytes + 100 * static_cast<std::uint64_t>(rank())));
      // Device memory is opened beside the first messages, and what it takes then is what is told; and where a driver is slow to
      // make a buffer ready, a small message is announced.
      std::string choice;
      std::string carrier;
      std::string text;
      for (int n = 0; n < (kind.kind == IST_KIND_HOST ? 1 : 1000); ++n) {
        in.poison();
        text = explained(out.get(), count, IST_BYTE, next());
        choice = choice_in(text);
        ist_status status{};
        IST_OK_OR_FAIL(ist_sendrecv(out.get(), count, IST_BYTE, next(), kTag, in.get(), count, IST_BYTE, before(), kTag,
                                    comm(), &status));
        in.expect(wanted, std::to_string(bytes) + " bytes");
        // What carried the message that was explained, its receiver knows.
        std::int32_t mine = status.carrier;
        std::int32_t theirs = IST_CARRIER_NONE;
        IST_OK_OR_FAIL(ist_sendrecv(ist_host(&mine), 1, IST_INT32, before(), kTag, ist_host(&theirs), 1, IST_INT32, next(),
                                    kTag, comm(), IST_STATUS_IGNORE));
        carrier = ist_carrier_name(theirs);
        // All ranks stop at once.
        std::int32_t met = choice == carrier ? 1 : 0;
        std::int32_t all = 1;
        for (int r = 0; r < size(); ++r) {
          std::int32_t passed = met;
          IST_OK_OR_FAIL(ist_sendrecv(ist_host(&met), 1, IST_INT32, next(), kTag, ist_host(&passed), 1, IST_INT32, before(),
                                      kTag, comm(), IST_STATUS_IGNORE));
          all = std::min(all, passed);
          met = passed;
        }
        if (all == 1) break;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
      if (choice == "ring or single copy") {
        EXPECT_TRUE(carrier == "ring" || carrier == "direct") << carrier;
      } else if (choice == "single copy") {
        EXPECT_EQ("direct", carrier);
      } else {
        EXPECT_EQ(choice, carrier) << bytes << " bytes of " << kind.name << "\n" << text;
      }
      EXPECT_TRUE(text.starts_with(std::to_string(bytes) + " x IST_BYTE (" + std::to_string(bytes) + " bytes) from "))
          << text;
      EXPECT_NE(std::string::npos, text.find(" to rank " + std::to_string(next()) + " (process ")) << text;
      EXPECT_NE(std::string::npos, text.find("The receiver's buffer is taken to be ")) << text;
      for (const char* way : {"  slot ", "  cell ", "  ring ", "  direct ", "  device ", "  block ", "  single copy "})
        EXPECT_NE(std::string::npos, text.find(way)) << way << text;
    }
  }
}

TEST(Explain, AShortBufferGetsTheFirstBytesAndAZeroAndTheLengthOfAll) {
  const int data = 0;
  const std::string whole = explained(ist_host(&data), 1, IST_INT, next());
  for (const std::size_t room : {std::size_t{1}, std::size_t{2}, whole.size(), whole.size() + 1, whole.size() + 2}) {
    std::vector<char> text(room + 1, '\x5a');
    std::size_t needed = 0;
    IST_OK_OR_FAIL(ist_explain(ist_host(&data), 1, IST_INT, next(), comm(), text.data(), room, &needed));
    EXPECT_EQ(whole.size() + 1, needed);
    EXPECT_EQ(whole.substr(0, room - 1), std::string(text.data()));
    EXPECT_EQ('\x5a', text[room]);
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));  // nobody leaves before all have asked
}

// What kernels read has two tables more: of the message in a stream, and of a call of all ranks there.
TEST(Explain, OfMemoryForStreamsItTellsWhatCallsInStreamsTake) {
  const auto tells = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  for (const KindName kind : usable_kinds()) {
    if (kind.kind != IST_KIND_CUDA) continue;
    const GuardedBuffer buffer(kind.kind, 16384);
    for (const int elements : {2, 4000}) {
      const std::string text = explained(buffer.get(), elements, IST_FLOAT, next());
      EXPECT_TRUE(tells(text, "\nist_send_on of it, in a stream: ")) << text;
      const bool waits = tells(text, "in a stream: stream waits\n");
      EXPECT_EQ(!waits, tells(text, elements == 2 ? "in a stream: packets\n" : "in a stream: chunks\n")) << text;
      EXPECT_EQ(size() > 1, tells(text, "\nist_allreduce_on of ")) << text;
      EXPECT_EQ(size() > 1, tells(text, "\"world\": kernels\n") || tells(text, "\"world\": rank 0\n")) << text;
    }
    EXPECT_EQ(size() > 1, tells(explained(buffer.get(), 3, IST_BYTE, next()), "\nist_bcast_on of 3 x IST_BYTE"))
        << kind.name;
  }
  const int data = 0;
  EXPECT_FALSE(tells(explained(ist_host(&data), 1, IST_INT, next()), "ist_send_on"));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Explain, NothingIsSent) {
  int data = 7;
  ist_traffic sent{};
  sent.size = sizeof sent;
  IST_OK_OR_FAIL(ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NONE, &sent));
  ist_traffic after = sent;
  explained(ist_host(&data), 1, IST_INT, next());
  EXPECT_NE(std::string::npos, explained(ist_host(&data), 1, IST_INT, IST_PROC_NULL).find("nothing is sent"));
  IST_OK_OR_FAIL(ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NONE, &after));
  EXPECT_EQ(0, std::memcmp(&sent, &after, sizeof sent));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Explain, WhatCannotBeSentIsTheErrorThatItsSendWouldBe) {
  const int data = 0;
  char text[8] = "as was";
  std::size_t needed = 99;
  const auto fails = [&](int code, const char* words, ist_buffer buffer, std::int64_t count, int dest, ist_comm on) {
    EXPECT_EQ(code, ist_explain(buffer, count, IST_INT, dest, on, text, sizeof text, &needed));
    EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find("ist_explain: ")) << ist_error_text();
    EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find(words)) << ist_error_text();
  };
  fails(IST_ERR_RANK, "dest is", ist_host(&data), 1, size(), comm());
  fails(IST_ERR_ARGUMENT, "count", ist_host(&data), -1, next(), comm());
  fails(IST_ERR_ARGUMENT, "null", ist_host(nullptr), 1, next(), comm());
  fails(IST_ERR_HANDLE, "communicator", ist_host(&data), 1, next(), IST_COMM_NULL);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_explain(ist_host(&data), 1, IST_INT, next(), comm(), nullptr, 8, nullptr));
  EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find("text is null")) << ist_error_text();
  EXPECT_STREQ("as was", text);
  EXPECT_EQ(99U, needed);
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// Which that call cannot tell from one that blocks.
TEST(Explain, SaysWhatTakesOneCopyWhereTheSendDoesNotBlock) {
  const char* const words = "A send that does not block";
  const auto says = [&](const GuardedBuffer& buffer, std::int64_t bytes, int dest) {
    return explained(buffer.get(), bytes, IST_BYTE, dest).find(words) != std::string::npos;
  };
  const GuardedBuffer buffer(IST_KIND_HOST, 131072);
  const char* const setting = std::getenv("ISTHMUS_SINGLE_COPY");
  const bool shared = size() > 1 && (setting == nullptr || std::string{setting} != "never");
  for (const std::int64_t bytes : {16385, 131071, 131072}) EXPECT_EQ(shared, says(buffer, bytes, next())) << bytes;
  EXPECT_FALSE(says(buffer, 16384, next()));
  EXPECT_FALSE(says(buffer, 100000, rank()));
  std::vector<unsigned char> own(100000);
  EXPECT_EQ(std::string::npos, explained(ist_host(own.data()), 100000, IST_BYTE, next()).find(words));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
