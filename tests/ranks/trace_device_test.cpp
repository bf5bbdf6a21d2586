// The copies in a trace, and what carried messages of device memory. Ranks are forked, each with the fake CUDA driver.
#include "broken_driver.hpp"
#include "trace_file.hpp"

namespace {

using namespace forked_ranks;
using trace_file::File;
using trace_file::Folder;
using trace_file::Span;

constexpr std::size_t kBytes = 300001;

// From rank 0 to rank 1 by the device, once the memory is open; then little of it from a device to the host.
int messages(const Here& here) {
  Checks check(here);
  const Buffer buffer(here, kBytes, IST_KIND_CUDA, here.rank);
  std::int32_t carrier = IST_CARRIER_NONE;
  for (int n = 0; n < 2000 && carrier != IST_CARRIER_DEVICE; ++n) {
    ist_status status{};
    if (here.rank == 0) {
      check.ok(ist_send(buffer.get(), count(kBytes), IST_BYTE, 1, 7, here.comm), "send");
      check.ok(ist_recv(ist_host(&carrier), 1, IST_INT32, 1, 8, here.comm, IST_STATUS_IGNORE), "what carried it");
    } else {
      check.ok(ist_recv(buffer.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, &status), "receive");
      carrier = status.carrier;
      check.ok(ist_send(ist_host(&carrier), 1, IST_INT32, 0, 8, here.comm), "what carried it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  check.that(carrier == IST_CARRIER_DEVICE, "the memory is opened");
  Data little(10000);
  if (here.rank == 0)
    check.ok(ist_send(ist_host(little.data()), 10000, IST_BYTE, 1, 9, here.comm), "send");
  else
    check.ok(ist_recv(buffer.get(), 10000, IST_BYTE, 0, 9, here.comm, IST_STATUS_IGNORE), "receive");
  return check.wrong();
}

// Inside of the message that they belong to.
std::vector<Span> copies_of(const File& file, const Span& message, const std::string& name) {
  std::vector<Span> found;
  for (const Span& span : file.named(name)) {
    if (span.id != message.id) continue;
    EXPECT_GE(span.begin, message.begin);
    EXPECT_LE(span.end, message.end);
    found.push_back(span);
  }
  return found;
}

TEST(TraceOfDevices, HasTheCopiesInsideOfTheirMessages) {
  NEEDS_FAKE_DRIVER();
  const Folder folder;
  ::setenv("ISTHMUS_TRACE", (folder / "trace.json").c_str(), 1);
  expect_all(run_ranks(2, "host,cuda", messages));
  ::unsetenv("ISTHMUS_TRACE");
  const File sender = trace_file::read(folder / "trace.0.json", 0);
  const File receiver = trace_file::read(folder / "trace.1.json", 1);
  int by_device = 0;
  for (const Span& span : sender.named("send")) {
    if (span.args.value("tag", 0) != 7 || span.args.value("carrier", "") != "device") continue;
    ++by_device;
    const auto copies = copies_of(sender, span, "copy into the receiver's memory");
    ASSERT_EQ(1U, copies.size());
    EXPECT_EQ(kBytes, copies[0].args.value("bytes", 0U));
  }
  EXPECT_EQ(1, by_device);
  int received = 0;
  for (const Span& span : receiver.named("receive"))
    received += span.args.value("tag", 0) == 7 && span.args.value("carrier", "") == "device" ? 1 : 0;
  EXPECT_EQ(1, received);
  const Span little = receiver.one("receive", 9);
  EXPECT_EQ("slot", little.args.value("carrier", ""));
  const auto copies = copies_of(receiver, little, "copy out of a cell");
  ASSERT_EQ(1U, copies.size() + copies_of(receiver, little, "copy").size());
}

}  // namespace
