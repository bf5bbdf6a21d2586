// Layouts on a device whose kernels fail, are late or crash: the error is told where it belongs, nothing hangs, and what comes later arrives.
#include <isthmus/layout.h>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

// Words of 8 bytes, every second one.
constexpr std::size_t kWords = 20000;
constexpr std::size_t kReach = kWords * 16 - 8;

class Strided {
 public:
  explicit Strided(Checks& check) : check_(check) {
    check.ok(ist_layout_vector(kWords, 1, 2, ist_layout_of(IST_DOUBLE), &layout_), "layout");
    check.ok(ist_layout_commit(layout_), "commit");
  }
  ~Strided() { check_.ok(ist_layout_free(&layout_), "free"); }
  Strided(const Strided&) = delete;
  Strided& operator=(const Strided&) = delete;
  ist_layout get() const { return layout_; }

 private:
  Checks& check_;
  ist_layout layout_ = IST_LAYOUT_NULL;
};

Data only_words_of(const Data& from) {
  Data data(kReach, 0xa5);
  for (std::size_t i = 0; i < kWords; ++i) std::copy_n(&from[i * 16], 8, &data[i * 16]);
  return data;
}

// From rank 0 to rank 1; the code of this side.
int carry(const Here& here, const Strided& layout, Buffer& buffer, std::uint64_t seed) {
  buffer.fill(here.rank == 0 ? random_bytes(kReach, seed) : Data(kReach, 0xa5));
  return here.rank == 0 ? ist_send_layout(buffer.get(), 1, layout.get(), 1, 7, here.comm)
                        : ist_recv_layout(buffer.get(), 1, layout.get(), 0, 7, here.comm, IST_STATUS_IGNORE);
}

// Kernels are loaded with their first use, which waits for what runs on the device.
void warm_up(const Here& here, Checks& check, Buffer& buffer) {
  const Strided layout(check);
  check.ok(carry(here, layout, buffer, 1), "the first message");
  buffer.fill(Data(kReach, 0xa5));
}

TEST(LayoutFailures, OfAKernelThatDoesNotStart) {
  NEEDS_FAKE_DRIVER();
  const Variables in_a_block{{"ISTHMUS_PROFILE", PROFILES "/no_mapped.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Strided layout(check);
    Buffer buffer(here, kReach, IST_KIND_CUDA, here.rank);
    check.ok(carry(here, layout, buffer, 1), "the first message");
    // A send that cannot be packed is none.
    if (here.rank == 0) {
      break_call("cuLaunchKernel", 0);
      check.fails(ist_send_layout(buffer.get(), 1, layout.get(), 1, 7, here.comm), IST_ERR_DEVICE,
                  {"ist_send_layout: ", "cuLaunchKernel for packing 160000 bytes"}, "a send");
      heal();
    }
    check.ok(carry(here, layout, buffer, 2), "after a send that failed");
    if (here.rank == 1) check.that(buffer.holds(only_words_of(random_bytes(kReach, 2))), "its bytes");
    // What cannot be unpacked was sent all the same.
    if (here.rank == 1) break_call("cuLaunchKernel", 0);
    const int code = carry(here, layout, buffer, 3);
    if (here.rank == 0) check.ok(code, "a send that is not unpacked");
    if (here.rank == 1) {
      check.fails(code, IST_ERR_DEVICE, {"ist_recv_layout: ", "cuLaunchKernel for unpacking"}, "a receive");
      heal();
      check.that(buffer.holds({}), "nothing was unpacked");
    }
    check.ok(carry(here, layout, buffer, 4), "after a receive that failed");
    if (here.rank == 1) check.that(buffer.holds(only_words_of(random_bytes(kReach, 4))), "its bytes");
    return check.wrong();
  }));
}

TEST(LayoutFailures, AreNoneWhereTheUsersKernelIsLateAndTheLayoutIsFreedMeanwhile) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Buffer buffer(here, kReach, IST_KIND_CUDA, here.rank);
    warm_up(here, check, buffer);
    for (int round = 0; round < 3; ++round) {
      Gate gate;
      ist_request request = IST_REQUEST_NULL;
      buffer.fill(Data(kReach, 0xa5));
      if (here.rank == 0) fill_behind(gate, buffer, kReach, static_cast<unsigned char>(round + 1));
      if (here.rank == 1) gate.close(buffer.stream());  // it still reads what is received over
      {
        const Strided layout(check);
        check.ok(here.rank == 0 ? ist_isend_layout(buffer.get(), 1, layout.get(), 1, 7, here.comm, &request)
                                : ist_irecv_layout(buffer.get(), 1, layout.get(), 0, 7, here.comm, &request),
                 "start");
      }
      // Other messages pass.
      int word = here.rank;
      check.ok(ist_sendrecv_replace(ist_host(&word), 1, IST_INT, 1 - here.rank, 9, 1 - here.rank, 9, here.comm,
                                    IST_STATUS_IGNORE),
               "another message");
      int completed = 1;
      check.ok(ist_test(&request, &completed, IST_STATUS_IGNORE), "test");
      if (here.rank == 1) check.that(completed == 0, "the receive waits for the kernel");
      check.that(!gate.opened_itself(), "nothing waited for the kernel");
      gate.open();
      check.ok(ist_wait(&request, IST_STATUS_IGNORE), "wait");
      if (here.rank == 1)
        check.that(buffer.holds(only_words_of(Data(kReach, static_cast<unsigned char>(round + 1)))),
                   "what the kernel wrote");
    }
    return check.wrong();
  }));
}

TEST(LayoutFailures, OfTheUsersKernelAreToldToBoth) {
  NEEDS_FAKE_DRIVER();
  const Variables no_links{{"ISTHMUS_DEVICE_IPC", "never"}};  // or the link is tried while the device is lost
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Strided layout(check);
    auto& buffer = *new Buffer(here, kReach, IST_KIND_CUDA, here.rank);  // of a device that is lost
    warm_up(here, check, buffer);
    ist_request request = IST_REQUEST_NULL;
    if (here.rank == 0) {
      Gate gate;
      crash_behind(gate, buffer);
      check.ok(ist_isend_layout(buffer.get(), 1, layout.get(), 1, 7, here.comm, &request), "start");
      gate.open();
      check.fails(ist_wait(&request, IST_STATUS_IGNORE), IST_ERR_DEVICE, {}, "the send");
    } else {
      check.fails(ist_recv_layout(buffer.get(), 1, layout.get(), 0, 7, here.comm, IST_STATUS_IGNORE), IST_ERR_DEVICE, {},
                  "the receive");
      check.that(buffer.holds({}), "nothing was received");
    }
    return check.wrong();
  }));
}

// No bytes came, so none are of another type.
TEST(LayoutFailures, OfASendThatCannotBeReadSayNothingOfItsTypes) {
  NEEDS_FAKE_DRIVER();
  const Variables in_cells{{"ISTHMUS_CHECK", "1"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    constexpr std::int64_t kCount = 1000;
    Buffer buffer(here, kCount * 8, here.rank == 0 ? IST_KIND_CUDA : IST_KIND_HOST);
    ist_request request = IST_REQUEST_NULL;
    if (here.rank == 0) {
      break_call("cuMemcpyAsync", 0);
      check.ok(ist_isend(buffer.get(), kCount, IST_DOUBLE, 1, 4, here.comm, &request), "isend");
      check.fails(ist_wait(&request, IST_STATUS_IGNORE), IST_ERR_DEVICE, {"cuMemcpyAsync"}, "the send");
      heal();
      check.ok(ist_send(buffer.get(), kCount, IST_DOUBLE, 1, 4, here.comm), "the next one");
    } else {
      const auto receive = [&] { return ist_recv(buffer.get(), kCount, IST_INT64, 0, 4, here.comm, IST_STATUS_IGNORE); };
      check.fails(receive(), IST_ERR_DEVICE, {"could not read its buffer"}, "the receive");
      check.that(std::string{ist_error_text()}.find("IST_DOUBLE") == std::string::npos, "nothing of types");
      check.fails(receive(), IST_ERR_ARGUMENT, {"element 0 is IST_DOUBLE in the message"}, "the next one");
    }
    return check.wrong();
  }));
}

TEST(LayoutFailures, OfARankThatDiesWhileALayoutIsAwaited) {
  NEEDS_FAKE_DRIVER();
  for (const ist_kind kind : {IST_KIND_HOST, IST_KIND_CUDA}) {
    const auto codes = run_ranks(2, "host,cuda", [kind](const Here& here) {
      if (here.rank == 1) {
        ::usleep(100000);
        ::raise(SIGKILL);
      }
      Checks check(here);
      const Strided layout(check);
      Buffer buffer(here, kReach, kind, 0);
      check.fails(ist_recv_layout(buffer.get(), 1, layout.get(), 1, 7, here.comm, IST_STATUS_IGNORE), IST_ERR_PEER_DEAD,
                  {"rank 1"}, "the receive");
      check.that(buffer.holds({}), "nothing was received");
      return check.wrong();
    });
    EXPECT_EQ(codes[0], 0);
  }
}

}  // namespace
