// Messages that streams send and receive: every byte of every size, however many are under way, and what is refused.
#include "../fake_cuda/fake_cuda.h"
#include "streams_support.hpp"

using namespace rank_test;

namespace {

// Around packets, vectors, the longest message of packets, chunks, lanes, parts, and all that a channel holds.
const std::vector<std::size_t>& sizes() {
  static const std::vector<std::size_t> all{0,
                                            1,
                                            3,
                                            4,
                                            5,
                                            7,
                                            8,
                                            9,
                                            15,
                                            16,
                                            17,
                                            255,
                                            4095,
                                            4096,
                                            4097,
                                            kSmall - 1,
                                            kSmall,
                                            kSmall + 1,
                                            16385,
                                            131071,
                                            131072,
                                            131073,
                                            262143,
                                            262144,
                                            262145,
                                            524288 + 5,
                                            kInFlight - 1,
                                            kInFlight,
                                            kInFlight + 1,
                                            5242883};
  return all;
}

// From rank 0 to rank 1, at an odd place in memory, or at a round one.
void carry(const Stream& stream, std::size_t bytes, std::size_t room, int shift, std::uint64_t seed) {
  GuardedBuffer buffer(IST_KIND_CUDA, std::max(bytes, room) + 16);
  const ist_buffer place = ist_buffer_at(buffer.get(), static_cast<std::size_t>(shift));
  auto wanted = random_bytes(bytes, seed);
  if (rank() == 0) {
    auto shifted = wanted;
    shifted.insert(shifted.begin(), static_cast<std::size_t>(shift), 0);
    buffer.fill(shifted);
    send_on(stream, place, bytes, 1);
  } else if (rank() == 1) {
    receive_on(stream, place, room, 0);
  }
  stream.wait();
  if (rank() != 1) return;
  wanted.resize(std::min(bytes, room));
  wanted.insert(wanted.begin(), static_cast<std::size_t>(shift), 0xa5);
  buffer.expect(wanted,
                std::to_string(bytes) + " bytes into " + std::to_string(room) + ", shifted by " + std::to_string(shift));
}

TEST(Streams, MessagesOfEverySizeArriveWhereverTheyLie) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t bytes : sizes()) {
    carry(stream, bytes, bytes, 0, bytes);
    carry(stream, bytes, bytes, 3, bytes + 1);  // 61 and 3: as a vector lies
  }
}

TEST(Streams, AReceiveOfMoreTakesWhatCameAndLeavesTheRest) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, kSmall, kSmall + 1, std::size_t{300001}})
    for (const std::size_t room : {bytes + 1, kSmall + 7, std::size_t{600000}})
      if (room > bytes) carry(stream, bytes, room, 1, bytes + room);
}

TEST(Streams, AMessageThatIsTooLongIsToldOfByTheNextCallAndTheChannelGoesOn) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t bytes : {std::size_t{2}, std::size_t{5001}, kSmall + 1, std::size_t{300001}, kInFlight + 3}) {
    for (const std::size_t room :
         {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{262144}, std::size_t{270000}}) {
      if (room >= bytes) continue;
      carry(stream, bytes, room, 0, bytes * 3 + room);
      if (rank() == 1) {
        GuardedBuffer buffer(IST_KIND_CUDA, 8);
        fails(IST_ERR_TRUNCATE, ist_recv_on(stream.get(), buffer.get(), 8, IST_BYTE, 0, kTag, comm()),
              {"ist_recv_on", "from rank 0", "tag 5", std::to_string(bytes) + " bytes", "room for " + std::to_string(room)});
        stream.wait();
        buffer.expect({}, "nothing was received");
      }
      carry(stream, 1000 + room, 1000 + room, 2, room);
    }
  }
}

// More than a channel holds: the stream waits, the processor does not.
TEST(Streams, ManyMessagesAreUnderWayAndAFullChannelHoldsUpTheStreamAlone) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{5000}, std::size_t{150000}}) {
    const std::size_t messages = bytes > 100000 ? 90 : 60;
    GuardedBuffer buffer(IST_KIND_CUDA, bytes * messages);
    const auto wanted = random_bytes(bytes * messages, bytes);
    carry(stream, 1, 1, 0, 1);
    if (rank() == 0) {
      buffer.fill(wanted);
      for (std::size_t n = 0; n < messages; ++n) send_on(stream, ist_buffer_at(buffer.get(), n * bytes), bytes, 1);
    }
    together();  // rank 0 comes here although nobody has received anything
    if (rank() == 1)
      for (std::size_t n = 0; n < messages; ++n) receive_on(stream, ist_buffer_at(buffer.get(), n * bytes), bytes, 0);
    stream.wait();
    if (rank() == 1) buffer.expect(wanted, "messages of " + std::to_string(bytes) + " bytes");
    together();
  }
}

// Every rank begins with a send, and nobody has called a receive when it does.
TEST(Streams, RanksThatAllSendFirstFindEachOther) {
  NEEDS_DEVICES();
  const Stream stream;
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  for (int tag = 100; tag < 104; ++tag) {
    constexpr std::size_t kBytes = 3001;
    GuardedBuffer out(IST_KIND_CUDA, kBytes);
    GuardedBuffer in(IST_KIND_CUDA, kBytes);
    out.fill(random_bytes(kBytes, at(rank() * 1000 + tag)));
    send_on(stream, out.get(), kBytes, right, tag);
    receive_on(stream, in.get(), kBytes, left, tag);
    stream.wait();
    in.expect(random_bytes(kBytes, at(left * 1000 + tag)), "from the left");
  }
}

TEST(Streams, BothWaysInOneCall) {
  NEEDS_DEVICES();
  const Stream stream;
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{8}, std::size_t{5003}, kSmall + 1, kInFlight, kInFlight * 2 + 1}) {
    // With three ranks on two devices some partners share one, and then only so much goes in one stream.
    if (size() > devices() && devices() > 1 && bytes > kInFlight) continue;
    GuardedBuffer out(IST_KIND_CUDA, bytes);
    GuardedBuffer in(IST_KIND_CUDA, bytes + 9);
    out.fill(random_bytes(bytes, bytes + at(rank())));
    for (int round = 0; round < 3; ++round) {
      in.poison();
      EXPECT_EQ(IST_OK, ist_sendrecv_on(stream.get(), out.get(), count(bytes), IST_BYTE, right, 9, in.get(),
                                        count(bytes) + 9, IST_BYTE, left, 9, comm()))
          << ist_error_text();
      stream.wait();
      in.expect(random_bytes(bytes, bytes + at(left)), std::to_string(bytes) + " bytes from the left");
      together();
    }
  }
}

// The driver that counts says so; notes of types have kernels of their own.
TEST(Streams, BothWaysBetweenTwoDevicesAreOneLaunch) {
  NEEDS_DEVICES();
  const char* const checks = std::getenv("ISTHMUS_CHECK");
  if (DRIVER(fake_cuda_calls) == nullptr || devices() < size() || (checks != nullptr && std::string{checks} != "0"))
    GTEST_SKIP() << "not covered here: launches, which the fake driver counts, with a device for each rank";
  const auto calls = [](const char* name) { return DRIVER(fake_cuda_calls)(name); };
  const Stream stream;
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  EXPECT_EQ(IST_OK, ist_prepare_on(stream.get(), right, 31, IST_SENDS, comm())) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_prepare_on(stream.get(), left, 31, IST_RECEIVES, comm())) << ist_error_text();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, kSmall, kSmall + 1, kInFlight, kInFlight * 2 + 1}) {
    GuardedBuffer out(IST_KIND_CUDA, bytes);
    GuardedBuffer in(IST_KIND_CUDA, bytes);
    out.fill(random_bytes(bytes, bytes + at(rank())));
    in.poison();
    together();
    const std::uint64_t launches = calls("cuLaunchKernel");
    const std::uint64_t copies = calls("cuMemcpyAsync");
    EXPECT_EQ(IST_OK, ist_sendrecv_on(stream.get(), out.get(), count(bytes), IST_BYTE, right, 31, in.get(), count(bytes),
                                      IST_BYTE, left, 31, comm()))
        << ist_error_text();
    EXPECT_EQ(launches + 1, calls("cuLaunchKernel")) << bytes << " bytes";
    EXPECT_EQ(copies, calls("cuMemcpyAsync")) << bytes << " bytes";
    stream.wait();
    in.expect(random_bytes(bytes, bytes + at(left)), std::to_string(bytes) + " bytes from the left");
  }
}

// With three ranks on two devices: what is sent has to find room before what is received is taken.
TEST(Streams, BothWaysWithOnePartnerOnThisDeviceAndOneElsewhereAreRefusedAboveTheRoomThereIs) {
  NEEDS_DEVICES();
  if (size() != 3 || devices() != 2) GTEST_SKIP() << "not covered here: three ranks on two devices";
  const Stream stream;
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  const bool mixed = rank() != 1;
  GuardedBuffer large(IST_KIND_CUDA, kInFlight + 1);
  const auto both = [&](const ist_buffer& from, const ist_buffer& to, std::size_t bytes) {
    return ist_sendrecv_on(stream.get(), from, count(bytes), IST_BYTE, right, 32, to, count(bytes), IST_BYTE, left, 32,
                           comm());
  };
  for (const std::size_t bytes : {std::size_t{100}, kInFlight}) {
    GuardedBuffer out(IST_KIND_CUDA, bytes);
    GuardedBuffer in(IST_KIND_CUDA, bytes);
    out.fill(random_bytes(bytes, bytes + at(rank())));
    in.poison();
    EXPECT_EQ(IST_OK, both(out.get(), in.get(), bytes)) << ist_error_text();
    stream.wait();
    in.expect(random_bytes(bytes, bytes + at(left)), std::to_string(bytes) + " bytes from the left");
    together();
    if (mixed)
      fails(IST_ERR_ARGUMENT, both(large.get(), large.get(), kInFlight + 1),
            {"is on this rank's device", "8388609", "in two streams"});
    together();
  }
}

TEST(Streams, PageLockedHostMemoryAndNobody) {
  NEEDS_DEVICES();
  const Stream stream;
  for (const std::size_t bytes : {std::size_t{5}, std::size_t{8000}, std::size_t{200001}}) {
    GuardedBuffer buffer(IST_KIND_HOST, bytes);
    const ist_buffer place = buffer.get();
    void* const address = reinterpret_cast<void*>(place.object + place.offset);
    IST_OK_OR_FAIL(ist_register(world(), address, bytes));
    const auto wanted = random_bytes(bytes, bytes);
    if (rank() == 0) {
      buffer.fill(wanted);
      send_on(stream, place, bytes, 1);
      send_on(stream, place, bytes, IST_PROC_NULL);
    } else if (rank() == 1) {
      receive_on(stream, place, bytes, IST_PROC_NULL);
      receive_on(stream, place, bytes, 0);
    }
    stream.wait();
    if (rank() == 1) buffer.expect(wanted, "page-locked host memory");
    IST_OK_OR_FAIL(ist_unregister(world(), address));
  }
}

TEST(Streams, MessagesToOneselfAndOfSeveralCommunicatorsAndTagsStayApart) {
  NEEDS_DEVICES();
  const Stream stream;
  GuardedBuffer out(IST_KIND_CUDA, 700);
  GuardedBuffer in(IST_KIND_CUDA, 700);
  out.fill(random_bytes(700, at(rank())));
  send_on(stream, out.get(), 700, rank(), 1);
  receive_on(stream, in.get(), 700, rank(), 1);
  stream.wait();
  in.expect(random_bytes(700, at(rank())), "from oneself");
  ist_comm other = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &other));
  // Three channels from rank 0 to rank 1, and an ordinary message of the same tag.
  if (rank() == 0) {
    send_on(stream, out.get(), 10, 1, 1);
    send_on(stream, ist_buffer_at(out.get(), 10), 20, 1, 2);
    IST_OK_OR_FAIL(ist_send_on(stream.get(), ist_buffer_at(out.get(), 30), 30, IST_BYTE, 1, 1, other));
    stream.wait();
    IST_OK_OR_FAIL(ist_send(ist_buffer_at(out.get(), 60), 40, IST_BYTE, 1, 1, comm()));
  } else if (rank() == 1) {
    in.poison();
    ist_status status{};
    IST_OK_OR_FAIL(ist_recv(ist_buffer_at(in.get(), 60), 640, IST_BYTE, 0, 1, comm(), &status));
    EXPECT_EQ(40, status.bytes);
    IST_OK_OR_FAIL(ist_recv_on(stream.get(), ist_buffer_at(in.get(), 30), 30, IST_BYTE, 0, 1, other));
    receive_on(stream, ist_buffer_at(in.get(), 10), 20, 0, 2);
    receive_on(stream, in.get(), 10, 0, 1);
    stream.wait();
    auto wanted = random_bytes(700, 0);
    wanted.resize(100);
    in.expect(wanted, "of three channels and a message");
  }
  together();
  IST_OK_OR_FAIL(ist_comm_free(&other));
}

TEST(Streams, WhatCannotBeIsRefusedAtOnce) {
  NEEDS_DEVICES();
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, 100);
  const int other = rank() == 0 ? 1 : 0;
  const auto receive = [&](const ist_buffer& into, std::int64_t bytes, int source, int tag) {
    return ist_recv_on(stream.get(), into, bytes, IST_BYTE, source, tag, comm());
  };
  fails(IST_ERR_RANK, receive(buffer.get(), 1, IST_ANY_SOURCE, 1), {"ist_recv_on", "source is -1"});
  fails(IST_ERR_ARGUMENT, receive(buffer.get(), 1, other, IST_ANY_TAG), {"tag is -1"});
  fails(IST_ERR_ARGUMENT, receive(buffer.get(), -1, other, 1), {"-1"});
  fails(IST_ERR_RANK, ist_send_on(stream.get(), buffer.get(), 1, IST_BYTE, size(), 1, comm()), {"dest is"});
  fails(IST_ERR_HANDLE, ist_send_on(stream.get(), buffer.get(), 1, IST_BYTE, other, 1, IST_COMM_NULL), {"null"});
  fails(IST_ERR_ARGUMENT, ist_prepare_on(stream.get(), other, 1, 0, comm()), {"sides is 0", "IST_SENDS"});
  std::vector<char> pageable(100);
  fails(IST_ERR_ARGUMENT, ist_send_on(stream.get(), ist_host(pageable.data()), 100, IST_BYTE, other, 8, comm()),
        {"ist_send_on", "not page-locked", "ist_register"});
  if (devices() > 1) {
    ist_buffer far{};
    IST_OK_OR_FAIL(ist_memory_alloc(world(), IST_KIND_CUDA, (rank() + 1) % devices(), 100, &far));
    fails(IST_ERR_ARGUMENT, ist_send_on(stream.get(), far, 100, IST_BYTE, other, 8, comm()), {"on device"});
    IST_OK_OR_FAIL(ist_memory_free(world(), far));
  }
  together();
}

}  // namespace
