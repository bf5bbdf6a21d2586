// ISTHMUS_TRACE: the spans of a known exchange, in a file for each rank; also of a rank that ends early; and what is said of a file
// that cannot be opened. Ranks are forked.
#include <isthmus/collective.h>
#include <isthmus/heap.h>
#include <sys/resource.h>

#include <array>
#include <cstring>

#include "forked_ranks.hpp"
#include "rank_test.hpp"
#include "trace_file.hpp"

namespace {

using namespace forked_ranks;
using rank_test::random_bytes;
using trace_file::File;
using trace_file::Folder;
using trace_file::Span;

constexpr std::size_t kLong = 300001;

struct Message {
  int tag;
  std::int64_t bytes;
  const char* carrier;
};
constexpr std::array kMessages{Message{1, 0, "slot"}, Message{2, 8, "slot"}, Message{3, 10000, "slot"},
                               Message{4, static_cast<std::int64_t>(kLong), "ring"}};

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

int wrong(bool as_it_should_be, const char* what) {
  if (!as_it_should_be) std::fprintf(stderr, "not so: %s; last error: %s\n", what, ist_error_text());
  return as_it_should_be ? 0 : 1;
}

// Each message as a blocking one, and with tags 10 higher as a request; then collective calls.
int exchange(const Here& here) {
  int found = 0;
  for (const bool blocking : {true, false})
    for (const Message& message : kMessages) {
      const int tag = message.tag + (blocking ? 0 : 10);
      const auto data = random_bytes(static_cast<std::size_t>(message.bytes), static_cast<std::uint64_t>(tag));
      auto buffer = here.rank == 0 ? data : std::vector<unsigned char>(data.size(), 0xa5);
      int code = IST_OK;
      ist_request request = IST_REQUEST_NULL;
      if (blocking) {
        code = here.rank == 0
                   ? ist_send(ist_host(buffer.data()), message.bytes, IST_BYTE, 1, tag, here.comm)
                   : ist_recv(ist_host(buffer.data()), message.bytes, IST_BYTE, 0, tag, here.comm, IST_STATUS_IGNORE);
      } else {
        code = here.rank == 0 ? ist_isend(ist_host(buffer.data()), message.bytes, IST_BYTE, 1, tag, here.comm, &request)
                              : ist_irecv(ist_host(buffer.data()), message.bytes, IST_BYTE, 0, tag, here.comm, &request);
        if (code == IST_OK) code = ist_wait(&request, IST_STATUS_IGNORE);
      }
      found += wrong(code == IST_OK, "a message arrives");
      found += wrong(buffer == data, "its bytes");
    }
  int one = 1;
  int sum = 0;
  ist_request request = IST_REQUEST_NULL;
  found += wrong(ist_allreduce(ist_host(&one), ist_host(&sum), 1, IST_INT, IST_SUM, here.comm) == IST_OK && sum == 2,
                 "allreduce");
  found += wrong(ist_ibarrier(here.comm, &request) == IST_OK && ist_wait(&request, IST_STATUS_IGNORE) == IST_OK, "ibarrier");
  return found;
}

void expect_exchange(const File& sender, const File& receiver) {
  for (const bool blocking : {true, false})
    for (const Message& message : kMessages) {
      const int tag = message.tag + (blocking ? 0 : 10);
      const Span sent = sender.one("send", tag);
      const Span received = receiver.one("receive", tag);
      for (const Span* span : {&sent, &received}) {
        EXPECT_EQ("message", span->category) << tag;
        EXPECT_EQ(span == &sent ? 1 : 0, span->args.value("peer", -1)) << tag;
        EXPECT_EQ(message.bytes, span->args.value("bytes", -1)) << tag;
        EXPECT_EQ(message.carrier, span->args.value("carrier", "")) << tag;
        EXPECT_EQ("world", span->args.value("comm", "")) << tag;
        EXPECT_FALSE(span->args.contains("code")) << tag;
        EXPECT_FALSE(span->args.contains("unfinished")) << tag;
      }
      // One clock for both.
      EXPECT_LE(sent.begin, received.end) << tag;
      if (message.carrier == std::string{"ring"}) {
        EXPECT_LE(received.begin, sent.end) << tag;
      }
    }
}

TEST(Trace, HasTheSpansOfAKnownExchangeInAFileForEachRank) {
  const Folder folder;
  const Variable file("ISTHMUS_TRACE", folder / "trace.json");
  const Variable never("ISTHMUS_SINGLE_COPY", "never");
  const Variable by_messages("ISTHMUS_PROFILE", PROFILES "/flat.json");
  expect_all(run_ranks(2, "host", exchange));
  EXPECT_EQ(2U, folder.files());
  const std::array files{trace_file::read(folder / "trace.0.json", 0), trace_file::read(folder / "trace.1.json", 1)};
  expect_exchange(files[0], files[1]);
  for (int rank = 0; rank < 2; ++rank) {
    const File& found = files[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(found.process.starts_with("rank " + std::to_string(rank) + " (process ")) << found.process;
    // One was walked, one is a schedule; both by messages inside of their time, with tags of the library's own.
    for (const char* call : {"ist_allreduce", "ist_ibarrier"}) {
      const auto calls = found.named(call);
      ASSERT_EQ(1U, calls.size()) << call;
      EXPECT_EQ("call", calls[0].category);
      EXPECT_EQ("world", calls[0].args.value("comm", ""));
      int inside = 0;
      for (const Span& span : found.spans)
        if (span.category == "step" && span.begin >= calls[0].begin && span.end <= calls[0].end) ++inside;
      EXPECT_GE(inside, 2) << call;
    }
    for (const Span& span : found.spans)
      if (span.category == "step") {
        EXPECT_LT(span.args.value("tag", 0), 0) << span.args;
      }
  }
}

// Nobody sends these: what is given up is said to be unfinished, and what is cancelled to be that.
TEST(Trace, SaysWhatNeverCameToAnEnd) {
  const Folder folder;
  const Variable file("ISTHMUS_TRACE", folder / "%r/trace-%r.json");
  std::filesystem::create_directory(folder / "0");
  std::filesystem::create_directory(folder / "1");
  static std::array<unsigned char, kLong> buffer;
  expect_all(run_ranks(2, "host", [](const Here& here) {
    int found = 0;
    ist_request lost = IST_REQUEST_NULL;
    ist_request cancelled = IST_REQUEST_NULL;
    found += wrong(ist_irecv(ist_host(buffer.data()), 77, IST_BYTE, here.rank, 5, here.comm, &lost) == IST_OK, "irecv");
    found +=
        wrong(ist_irecv(ist_host(buffer.data()), 8, IST_BYTE, 1 - here.rank, 6, here.comm, &cancelled) == IST_OK, "irecv");
    found += wrong(ist_cancel(cancelled) == IST_OK && ist_wait(&cancelled, IST_STATUS_IGNORE) == IST_OK, "cancel");
    if (here.rank == 0) {
      const std::array<char, 9> nine{};
      std::array<char, 3> three{};
      ist_request receive = IST_REQUEST_NULL;
      found += wrong(ist_irecv(ist_host(three.data()), 3, IST_BYTE, 0, 8, here.comm, &receive) == IST_OK, "irecv");
      found += wrong(ist_send(ist_host(nine.data()), 9, IST_BYTE, 0, 8, here.comm) == IST_OK, "send to itself");
      found += wrong(ist_wait(&receive, IST_STATUS_IGNORE) == IST_ERR_TRUNCATE, "a truncated one");
    }
    found += wrong(ist_barrier(here.comm) == IST_OK, "barrier");
    return found;
  }));
  for (const int rank : {0, 1}) {
    const std::string number = std::to_string(rank);
    const File found = trace_file::read(folder / (number + "/trace-" + number + ".json"), rank);
    int unfinished = 0;
    int cancelled = 0;
    for (const Span& span : found.named("receive")) {
      cancelled += span.args.value("code", 0) == IST_CANCELLED ? 1 : 0;
      if (!span.args.value("unfinished", false)) continue;
      ++unfinished;
      EXPECT_EQ(77, span.args.value("bytes", 0));
      EXPECT_EQ(rank, span.args.value("peer", -1));
    }
    EXPECT_EQ(1, unfinished);
    EXPECT_EQ(1, cancelled);
    if (rank == 0) {
      const Span truncated = found.one("receive", 8);
      EXPECT_EQ(IST_ERR_TRUNCATE, truncated.args.value("code", 0));
      EXPECT_EQ(3, truncated.args.value("bytes", 0));
      EXPECT_EQ("slot", truncated.args.value("carrier", ""));
    }
  }
}

// More than are kept at a time: none is lost.
TEST(Trace, HoldsOfManyMessagesEveryOne) {
  const Folder folder;
  const Variable file("ISTHMUS_TRACE", folder / "many");
  constexpr int kMany = 10000;
  expect_all(run_ranks(2, "host", [](const Here& here) {
    int found = 0;
    for (int n = 0; n < kMany; ++n) {
      int value = n;
      const int code = here.rank == 0 ? ist_send(ist_host(&value), 1, IST_INT, 1, n, here.comm)
                                      : ist_recv(ist_host(&value), 1, IST_INT, 0, n, here.comm, IST_STATUS_IGNORE);
      if (code != IST_OK || value != n) ++found;
    }
    return wrong(found == 0, "every message");
  }));
  for (const int rank : {0, 1}) {
    std::vector<int> tags(kMany, 0);
    const File found = trace_file::read(folder / ("many." + std::to_string(rank)), rank);
    for (const Span& span : found.spans)
      if (span.category == "message") ++tags[static_cast<std::size_t>(span.args.value("tag", 0))];
    EXPECT_EQ(std::vector<int>(kMany, 1), tags);
  }
}

// Forks one rank, a world of its own, that ends in its way; gives back what it wrote.
File alone(const Folder& folder, const std::function<void(const Here&)>& end, int files = 1) {
  const Variable file("ISTHMUS_TRACE", folder / "alone.json");
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    Here here{0, 1, IST_WORLD_NULL, IST_COMM_NULL};
    int value = 5;
    if (ist_world_create(&here.world) != IST_OK || ist_world_comm(here.world, &here.comm) != IST_OK ||
        ist_sendrecv(ist_host(&value), 1, IST_INT, 0, 3, ist_host(&value), 1, IST_INT, 0, 3, here.comm, IST_STATUS_IGNORE) !=
            IST_OK)
      ::_exit(99);
    end(here);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 99);
  EXPECT_EQ(static_cast<std::size_t>(files), folder.files());
  return trace_file::read(folder / "alone.0.json", 0, false);
}

TEST(Trace, IsThereAlsoOfARankThatExitsWithoutLeavingItsWorld) {
  const Folder folder;
  const File found = alone(folder, [](const Here&) { std::exit(0); });
  EXPECT_EQ(4, found.one("send", 3).args.value("bytes", 0));
  EXPECT_EQ(4, found.one("receive", 3).args.value("bytes", 0));
}

// And what other threads still do is no part of it.
TEST(Trace, OfARankThatLeavesItsWorldAtTheEndOfTheProcessIsEnded) {
  const Folder folder;
  alone(folder, [](const Here& here) {
    int value = 6;
    ist_world_leave(here.world);
    ist_sendrecv(ist_host(&value), 1, IST_INT, 0, 4, ist_host(&value), 1, IST_INT, 0, 4, here.comm, IST_STATUS_IGNORE);
    std::exit(0);
  });
  const File found = trace_file::read(folder / "alone.0.json", 0);
  EXPECT_EQ(4, found.one("send", 3).args.value("bytes", 0));
  EXPECT_EQ(4, found.one("receive", 3).args.value("bytes", 0));
}

TEST(Trace, IsWrittenFromTimeToTimeSoThatAKilledRankLeavesIt) {
  const Folder folder;
  const File found = alone(folder, [](const Here& here) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1100});
    int value = 6;
    ist_sendrecv(ist_host(&value), 1, IST_INT, 0, 4, ist_host(&value), 1, IST_INT, 0, 4, here.comm, IST_STATUS_IGNORE);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(4, found.one("send", 3).args.value("bytes", 0));
  EXPECT_EQ(4, found.one("receive", 3).args.value("bytes", 0));
}

TEST(Trace, OfASecondWorldOfTheProcessHasAFileOfItsOwn) {
  const Folder folder;
  alone(
      folder,
      [](Here here) {
        ist_world_destroy(&here.world);
        int value = 7;
        if (ist_world_create(&here.world) != IST_OK || ist_world_comm(here.world, &here.comm) != IST_OK ||
            ist_sendrecv(ist_host(&value), 1, IST_INT, 0, 9, ist_host(&value), 1, IST_INT, 0, 9, here.comm,
                         IST_STATUS_IGNORE) != IST_OK)
          ::_exit(99);
        ist_world_destroy(&here.world);
      },
      2);
  const File second = trace_file::read(folder / "alone.0-2.json", 0);
  EXPECT_EQ(4, second.one("send", 9).args.value("bytes", 0));
  for (const Span& span : second.spans) EXPECT_NE(3, span.args.value("tag", 0));
}

// A child of the program's own has a copy of what is kept, and its end writes nothing.
TEST(Trace, IsNotWrittenByForkedChildren) {
  const Folder folder;
  const File found = alone(folder, [](const Here&) {
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::exit(0);
  });
  found.one("send", 3);
}

TEST(Trace, ThatCannotBeWrittenOnIsSaidAndTheWorldGoesOn) {
  const Folder folder;
  testing::internal::CaptureStderr();
  const Variable file("ISTHMUS_TRACE", folder / "alone.json");
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::signal(SIGXFSZ, SIG_IGN);
    ist_world world = IST_WORLD_NULL;
    ist_comm comm = IST_COMM_NULL;
    int code = ist_world_create(&world);
    if (code == IST_OK) code = ist_world_comm(world, &comm);
    const rlimit little{2000, 2000};
    ::setrlimit(RLIMIT_FSIZE, &little);
    for (int n = 0; n < 10000 && code == IST_OK; ++n) {
      int value = n;
      code = ist_sendrecv(ist_host(&value), 1, IST_INT, 0, 3, ist_host(&value), 1, IST_INT, 0, 3, comm, IST_STATUS_IGNORE);
    }
    if (code == IST_OK) code = ist_world_destroy(&world);
    ::_exit(code == IST_OK ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said;
  const std::size_t first = said.find("warning: writing the trace \"");
  EXPECT_NE(std::string::npos, first) << said;
  EXPECT_EQ(std::string::npos, said.find("writing the trace", first + 20)) << said;
}

// Rank 1's folder is not there: its error says so, and the other one does not wait for ever.
TEST(Trace, OfAFileThatCannotBeOpenedIsAnErrorOfTheWorldsCreation) {
  const Folder folder;
  std::filesystem::create_directory(folder / "0");
  const Variable file("ISTHMUS_TRACE", folder / "%r/trace.json");
  const Variable soon("ISTHMUS_BOOT_TIMEOUT", "10");
  const int port = free_port();
  std::array<pid_t, 2> children{};
  for (int rank = 0; rank < 2; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", "2", 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
      ::alarm(30);
      ist_world world = IST_WORLD_NULL;
      const int code = ist_world_create(&world);
      const std::string text = ist_error_text();
      int found = wrong(world == IST_WORLD_NULL, "there is no world");
      if (rank == 1) {
        found += wrong(code == IST_ERR_SETTING, "the code of rank 1");
        for (const char* words :
             {"ISTHMUS_TRACE=\"", "/1/trace.json", "No such file", "name a file in a folder that exists"})
          found += wrong(text.find(words) != std::string::npos, words);
      } else {
        found += wrong(code == IST_ERR_BOOT || code == IST_ERR_PEER_DEAD, "the code of rank 0");
      }
      ::_exit(found);
    }
    children[static_cast<std::size_t>(rank)] = child;
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(0, WEXITSTATUS(status));
  }
}

TEST(Trace, IsOffWhereNobodyAskedForIt) {
  const Folder folder;
  const Variable file("ISTHMUS_TRACE", "off");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  expect_all(run_ranks(2, "host", exchange));
  std::filesystem::current_path(before);
  EXPECT_EQ(0U, folder.files());
}

}  // namespace
