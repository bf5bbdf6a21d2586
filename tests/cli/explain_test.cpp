// How a message or a collective call would be carried, as `isthmus explain` tells it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

namespace ist::test {
namespace {

using Json = nlohmann::json;

// With the numbers of the library, not those of whoever runs the test.
Ran explain(const std::string& arguments, const std::string& environment = "") {
  return run_program("explain " + arguments, "ISTHMUS_PROFILE=builtin ISTHMUS_KINDS=host " + environment);
}

Json answer(const std::string& arguments, const std::string& environment = "") {
  const Ran ran = explain(arguments + " --json", environment);
  EXPECT_EQ(ran.status, 0) << ran.output;
  return Json::parse(ran.output, nullptr, false);
}

Json way(const Json& answer, const std::string& name) {
  for (const Json& entry : answer["ways"])
    if (entry["name"] == name) return entry;
  ADD_FAILURE() << name << " is missing in " << answer.dump(2);
  return {};
}

std::string chosen(const Json& answer) {
  std::string names;
  for (const Json& entry : answer["ways"])
    if (entry["chosen"] == true) names += (names.empty() ? "" : ", ") + entry["name"].get<std::string>();
  return names;
}

// Every way has its terms, which add up, or a reason.
void expect_sound(const Json& answer) {
  ASSERT_TRUE(answer.is_object());
  EXPECT_FALSE(answer["ways"].empty());
  for (const Json& entry : answer["ways"]) {
    if (entry.contains("refused")) {
      EXPECT_FALSE(entry["refused"].get<std::string>().empty()) << entry;
      EXPECT_FALSE(entry.contains("seconds")) << entry;
      EXPECT_EQ(entry["chosen"], false) << entry;
    } else if (entry.contains("seconds")) {
      double sum = 0;
      for (const Json& term : entry["terms"]) sum += term["seconds"].get<double>();
      EXPECT_DOUBLE_EQ(sum, entry["seconds"].get<double>()) << entry;
    }
  }
}

TEST(Explain, AMessageGoesBySlotCellOrRingAndTheRestIsRefusedWithAReason) {
  for (const auto& [arguments, carrier] : {std::pair{"", "slot"},
                                           {"--size 128KiB", "slot"},
                                           {"--size 217 --self", "cell"},
                                           {"--size 131073", "ring"},
                                           {"--from cuda:0 --to host --size 8", "cell"},
                                           {"--from cuda:0 --to cuda:1 --size 8", "device"},
                                           {"--from cuda:0 --to cuda:1 --size 64MiB", "device"},
                                           {"--from opencl --to cuda:3 --size 1GiB", "ring"},
                                           {"--self --size 1MiB", "direct"}}) {
    const Json found = answer(arguments, "ISTHMUS_SINGLE_COPY=never");
    expect_sound(found);
    EXPECT_EQ(chosen(found), carrier) << arguments;
    EXPECT_EQ(found["choice"], carrier) << arguments;
    for (const char* name : {"slot", "cell", "ring", "direct", "device", "mailbox", "block", "single copy"})
      EXPECT_EQ(way(found, name)["chosen"] == true, name == std::string{carrier}) << name << " of " << arguments;
  }
}

TEST(Explain, WithWorkersSmallMessagesBetweenDevicesGoByMailbox) {
  const Json found = answer("--from cuda:0 --to cuda:1 --size 8", "ISTHMUS_WORKER=1");
  expect_sound(found);
  EXPECT_EQ(chosen(found), "mailbox");
  EXPECT_EQ(chosen(answer("--from cuda:0 --to cuda:1 --size 2049", "ISTHMUS_WORKER=1")), "device");
  const Json without = answer("--from cuda:0 --to cuda:1 --size 8", "ISTHMUS_WORKER=0");
  EXPECT_NE(way(without, "mailbox")["refused"].get<std::string>().find("ISTHMUS_WORKER"), std::string::npos);
  EXPECT_EQ(way(answer("--size 8"), "mailbox")["refused"], "takes CUDA memory on both sides") << "no matter of workers";
}

TEST(Explain, WithoutDeviceMemoryLentItSaysWhyAndChoosesAnother) {
  const Json found = answer("--from cuda:0 --to cuda:1 --size 8", "ISTHMUS_DEVICE_IPC=never");
  expect_sound(found);
  EXPECT_EQ(chosen(found), "cell");
  EXPECT_EQ(way(found, "device")["refused"], "ISTHMUS_DEVICE_IPC is never");
}

TEST(Explain, TwoRanksOnOneDeviceKeepToTheRingForWhatIsShort) {
  const Json little = answer("--from cuda:0 --to cuda:0 --size 64KiB");
  expect_sound(little);
  EXPECT_EQ(chosen(little), "ring");
  EXPECT_NE(way(little, "device")["terms"].dump().find("take turns"), std::string::npos) << little.dump(2);
  EXPECT_GT(way(little, "device")["seconds"], way(little, "ring")["seconds"]);
  EXPECT_EQ(chosen(answer("--from cuda:0 --to cuda:0 --size 4MiB")), "device");
}

TEST(Explain, ClassesOfDeviceMemoryAndSynchronousSendsHaveTheirWays) {
  for (const auto& [arguments, choice] : {std::pair{"--from cuda:0 --to managed:1 --size 1MiB", "block, else ring"},
                                          {"--from managed:0 --to cuda:1 --size 1MiB", "device"},
                                          {"--from cuda:0 --to pool:1 --size 1MiB", "block, else ring"},
                                          {"--from cuda:0 --to shared-pool:1 --size 1MiB", "device"},
                                          {"--from cuda:0 --to vmm:1 --size 1MiB", "device"},
                                          {"--from pinned --to managed:0 --size 1MiB", "ring"},
                                          {"--from cuda:0 --to managed:0 --size 1MiB", "ring"},
                                          {"--synchronous", "ring"},
                                          {"--synchronous --self", "direct"},
                                          {"--synchronous --from cuda:0 --to cuda:1", "device"}}) {
    const Json found = answer(arguments, "ISTHMUS_SINGLE_COPY=never");
    expect_sound(found);
    EXPECT_EQ(found["choice"], choice) << arguments;
  }
  EXPECT_NE(way(answer("--synchronous"), "slot")["refused"].get<std::string>().find("synchronous"), std::string::npos);
  EXPECT_EQ(explain("--synchronous --stream --from cuda:0 --to cuda:1").status, 2) << "streams have no such send";
}

TEST(Explain, PageLockedMemoryGoesInOneCopyWhereTheOtherSideIsADevice) {
  for (const char* sides : {"--from pinned --to cuda:0", "--from cuda:0 --to pinned"}) {
    EXPECT_EQ(answer(std::string{sides} + " --size 1MiB")["choice"], "device, else ring") << sides;
    EXPECT_EQ(answer(std::string{sides} + " --size 8")["choice"].get<std::string>().find("device"), std::string::npos);
    EXPECT_EQ(answer(std::string{sides} + " --size 1MiB", "ISTHMUS_DEVICE_IPC=never")["choice"], "ring") << sides;
  }
  EXPECT_EQ(answer("--from host --to cuda:0 --size 1MiB")["choice"], "ring");
}

TEST(Explain, TheLimitsOfTheSettingsAreObeyed) {
  EXPECT_EQ(chosen(answer("--size 1KiB", "ISTHMUS_EAGER_LIMIT=1KiB ISTHMUS_SINGLE_COPY=never")), "slot");
  EXPECT_EQ(chosen(answer("--size 217", "ISTHMUS_EAGER_LIMIT=0 ISTHMUS_SINGLE_COPY=never")), "ring");
  EXPECT_EQ(chosen(answer("--size 16385", "ISTHMUS_EAGER_LIMIT=2KiB ISTHMUS_SINGLE_COPY=never")), "ring");
  EXPECT_EQ(chosen(answer("--size 1MiB", "ISTHMUS_SINGLE_COPY=never")), "ring");
  const Json never = answer("--size 1MiB", "ISTHMUS_SINGLE_COPY=never");
  EXPECT_NE(way(never, "single copy")["refused"].get<std::string>().find("ISTHMUS_SINGLE_COPY"), std::string::npos);
  const Json off = way(answer("--from cuda --to host --size 1MiB"), "single copy");
  EXPECT_EQ(off["refused"], "only between host buffers");
  const Json always = answer("--size 1MiB", "ISTHMUS_SINGLE_COPY=always");
  // Where the system does not let one process read another's memory, that is the reason.
  EXPECT_EQ(chosen(always), way(always, "single copy").contains("refused") ? "ring" : "single copy");
}

TEST(Explain, OfALayoutItSaysWhereItsBytesComeTogetherOrApart) {
  for (const std::string side : {"--blocks", "--into-blocks"}) {
    const std::string size = " --size 1MiB " + side;
    const Json over = answer("--from cuda:0 --to cuda:1" + size + " 16");
    expect_sound(over);
    EXPECT_EQ(over["choice"], "over the link") << over;
    EXPECT_EQ(chosen(over), "over the link");
    EXPECT_GT(way(over, "in a block")["seconds"], way(over, "over the link")["seconds"]);
    EXPECT_NE(over["question"].get<std::string>().find("blocks of 16"), std::string::npos) << over["question"];
    const Json bytes = answer("--from cuda:0 --to cuda:1" + size + " 3");
    EXPECT_GT(way(bytes, "over the link")["seconds"], way(over, "over the link")["seconds"]) << "single bytes cost more";
    const Json never = answer("--from cuda:0 --to cuda:1" + size + " 16", "ISTHMUS_DEVICE_IPC=never");
    expect_sound(never);
    EXPECT_EQ(chosen(never), side == "--blocks" ? "in slots" : "in a block") << "a kernel loads more slowly than it stores";
    EXPECT_EQ(way(never, "over the link")["refused"], "ISTHMUS_DEVICE_IPC is never");
    EXPECT_EQ(chosen(answer("--from cuda:1 --to cuda:1" + size + " 16")), "in a block");
    const Ran host = explain("--from host --to host" + size + " 16");
    EXPECT_EQ(host.status, 2) << host.output;
    EXPECT_TRUE(says(host, "is of a device's memory that is sent")) << host.output;
  }
}

TEST(Explain, OfTwoLayoutsItSaysWhetherOneKernelMovesTheBytesOrTwo) {
  const std::string ends = "--from cuda:0 --to cuda:1 --size 1MiB ";
  const Json one = answer(ends + "--blocks 64 --into-blocks 256");
  expect_sound(one);
  EXPECT_EQ(one["choice"], "by one kernel") << one;
  EXPECT_EQ(chosen(one), "by one kernel");
  EXPECT_LT(way(one, "by one kernel")["seconds"], way(one, "by two kernels")["seconds"]);
  EXPECT_NE(one["question"].get<std::string>().find("from blocks of 64, unpacked into blocks of 256"), std::string::npos);
  const Json words = answer(ends + "--blocks 32 --into-blocks 256");
  expect_sound(words);
  EXPECT_EQ(chosen(words), "by two kernels");
  EXPECT_EQ(way(words, "by one kernel")["refused"], "takes blocks of 64 bytes or more, and less than 2 GiB in all");
  const Json never = answer(ends + "--blocks 64 --into-blocks 256", "ISTHMUS_DEVICE_IPC=never");
  EXPECT_EQ(chosen(never), "in slots");
  EXPECT_NE(never["remark"].get<std::string>().find("The receiver unpacks"), std::string::npos) << never["remark"];
  // What is one block lies in one piece.
  EXPECT_EQ(answer(ends + "--blocks 64 --into-blocks 1MiB")["ways"], answer(ends + "--blocks 64")["ways"]);
  EXPECT_EQ(answer(ends + "--blocks 1MiB --into-blocks 64")["ways"], answer(ends + "--into-blocks 64")["ways"]);
}

TEST(Explain, OfALayoutBetweenADeviceAndTheHostItSaysWhatACopyEngineWouldTakeForItsRows) {
  for (const std::string ends : {"--from cuda:0 --to host --blocks ", "--from host --to cuda:0 --into-blocks ",
                                 "--from opencl:0 --to host --blocks "}) {
    const Json wide = answer("--size 16MiB " + ends + "256KiB");
    expect_sound(wide);
    const bool cuda = ends.find("cuda") != std::string::npos;
    EXPECT_EQ(chosen(wide), cuda ? "in slots" : "rows in slots") << wide;
    EXPECT_LT(way(wide, "rows in slots")["seconds"], way(wide, "in a block")["seconds"]);
    const Json words = answer("--size 16MiB " + ends + "4");
    expect_sound(words);
    EXPECT_EQ(chosen(words), cuda ? "in slots" : "in a block") << words;
    EXPECT_GT(way(words, "rows in slots")["seconds"], way(words, "in a block")["seconds"]);
    if (!cuda) {
      EXPECT_EQ(way(words, "in slots")["refused"], "the ring's slots are not mapped for the device");
    }
    const Json whole = answer("--size 1MiB " + ends + "1MiB");
    EXPECT_EQ(way(whole, "rows in slots")["refused"], "the bytes lie in one piece");
    const Json small = answer("--size 8KiB " + ends + "4KiB");
    for (const char* slots : {"in slots", "rows in slots"})
      EXPECT_EQ(way(small, slots)["refused"], "what fits a cell goes at once, and is packed for that");
  }
}

TEST(Explain, ACallShowsEveryAlgorithmTermByTermAndTheCheapestIsChosen) {
  for (const char* call :
       {"bcast", "reduce", "allreduce", "allgather", "reduce_scatter", "alltoall", "barrier", "scan", "gather", "scatter"}) {
    for (const char* count : {"0", "1", "1000", "100000000"}) {
      const Json found = answer(std::string{call} + " --ranks 6 --type double --count " + count);
      expect_sound(found);
      double least = INFINITY;
      std::string best;
      for (const Json& entry : found["ways"]) {
        if (!entry.contains("seconds") || entry["seconds"].get<double>() >= least) continue;
        least = entry["seconds"].get<double>();
        best = entry["name"].get<std::string>();
      }
      EXPECT_EQ(chosen(found), best) << call << " of " << count;
      EXPECT_EQ(found["choice"].get<std::string>().rfind(best + ", ", 0), 0U) << found["choice"];
    }
  }
  EXPECT_EQ(chosen(answer("allreduce --ranks 4 --type float --count 2")), "shared");
  EXPECT_EQ(chosen(answer("allreduce --ranks 8 --type float --count 8192")), "shared parts");
  const Json longer = answer("bcast --ranks 4 --type byte --count 65537");
  EXPECT_NE(way(longer, "shared")["refused"].get<std::string>().find("is shorter"), std::string::npos);
  // Where buffers may be on GPUs.
  EXPECT_TRUE(way(answer("bcast --ranks 4 --type byte --count 16384 --kind cuda"), "shared").contains("seconds"));
  EXPECT_FALSE(way(answer("bcast --ranks 4 --type byte --count 16385 --kind cuda"), "shared").contains("seconds"));
  EXPECT_EQ(chosen(answer("allreduce --ranks 12 --type float --count 16777216")), "ring");
  const Json ordered = answer("allreduce --ranks 12 --type float --count 16777216 --ordered");
  EXPECT_EQ(chosen(ordered), "direct");
  EXPECT_NE(way(ordered, "ring")["refused"].get<std::string>().find("does not commute"), std::string::npos);
  EXPECT_EQ(answer("bcast --ranks 1")["choice"], "nothing is sent");
}

TEST(Explain, TheTextNamesTheChoiceItsTermsAndWhereTheNumbersAreFrom) {
  const Ran ran = explain("allreduce --ranks 4 --type float --count 1 --kind cuda:1");
  EXPECT_EQ(ran.status, 0);
  for (const char* words : {"allreduce of 1 x float (4 B) on 4 ranks, cuda:1 memory: shared", "numbers: built in", "\n* ",
                            " messages, one after the other + ", "recursive doubling"})
    EXPECT_TRUE(says(ran, words)) << words << " is missing in:\n" << ran.output;
}

TEST(Explain, WhereDeviceMemoryIsCombinedIsTold) {
  const auto remark = [](const std::string& call, const std::string& environment = "") {
    return answer(call, environment)["remark"].get<std::string>();
  };
  const auto tells = [&](const std::string& call, const std::vector<std::string>& all, const std::string& environment) {
    std::string text = remark(call, environment);
    std::replace(text.begin(), text.end(), '\n', ' ');
    for (const std::string& words : all)
      EXPECT_NE(text.find(words), std::string::npos) << words << " is missing in: " << text;
  };
  const std::string cuda = "allreduce --ranks 2 --kind cuda", opencl = "allreduce --ranks 2 --kind opencl";
  tells(cuda, {"The host combines parts up to 128 KiB,", "where ranks share it, the host parts up to 8 MiB."}, "");
  tells(opencl, {"The host combines parts up to 128 KiB,", "such devices, the host all; where it is the processor, all."},
        "");
  // Each of the five by itself.
  const std::string numbers = testing::TempDir() + "arithmetic.json";
  std::ofstream(numbers) << R"({"isthmus_profile": 1, "machine": "any", "message": {"device_arithmetic_above": 1024,
    "device_arithmetic_above_shared": 2048, "device_arithmetic_above_processor": 4096, "device_arithmetic_above_opencl": 8192,
    "device_arithmetic_above_opencl_shared": 16384}, "collective": {}})";
  const std::string environment = "ISTHMUS_PROFILE=" + numbers;
  tells(cuda, {"The host combines parts up to 1 KiB,", "where ranks share it, the host parts up to 2 KiB."}, environment);
  tells(opencl,
        {"parts up to 8 KiB,", "such devices, the host parts up to 16 KiB; where it is the processor, parts up to 4 KiB."},
        environment);
  for (const char* call : {"allreduce --ranks 2 --kind host", "bcast --ranks 2 --kind opencl"})
    EXPECT_EQ(remark(call).find("The host combines"), std::string::npos) << call;
}

// As NCCL answers on this machine: with the numbers of the library and the driver that the tests bring.
TEST(Explain, OnCudaMemoryThePriceOfNcclIsShownAndWhetherTheRanksWouldAskEachOtherForIt) {
  const std::string large = "allreduce --ranks 4 --type float --count 16777216";
  const Json in_host_memory = answer(large);
  for (const Json& entry : in_host_memory["ways"]) EXPECT_NE(entry["name"], "nccl");
  const Json off = answer(large + " --kind cuda");
  expect_sound(off);
  EXPECT_TRUE(way(off, "nccl").contains("seconds")) << off;
  EXPECT_EQ(chosen(off), "direct");
  EXPECT_NE(off["remark"].get<std::string>().find("NCCL is off: the kind cuda has no device"), std::string::npos) << off;
  const auto refusal = [&](const std::string& arguments) {
    return way(answer(arguments + " --kind cuda"), "nccl")["refused"].get<std::string>();
  };
  EXPECT_EQ(refusal(large + " --ordered"), "every operation that NCCL has commutes");
  EXPECT_EQ(refusal("reduce --type byte --count 100000000"), "NCCL cannot add elements of this type");
  if (!std::filesystem::exists(FAKE_CUDA "/libnccl.so.2"))
    GTEST_SKIP() << "not covered here: what explain says with an NCCL; this build has none of the tests' own";
  const auto with = [&](const std::string& arguments, const std::string& environment) {
    const Json found =
        answer(arguments + " --kind cuda", "ISTHMUS_KINDS=host,cuda LD_LIBRARY_PATH=" FAKE_CUDA " " + environment);
    expect_sound(found);
    return found;
  };
  for (const char* call : {"allreduce", "bcast", "alltoall"}) {
    const Json on = with(call + large.substr(9), "FAKE_CUDA_DEVICES=4");
    EXPECT_EQ(chosen(on), "nccl") << on;
    EXPECT_EQ(on["choice"].get<std::string>().rfind("nccl, ", 0), 0U) << on;
    EXPECT_NE(on["choice"].get<std::string>().find("; else "), std::string::npos) << on;
  }
  EXPECT_EQ(chosen(with("allreduce --ranks 4 --type float --count 2", "FAKE_CUDA_DEVICES=4")), "shared");
  const Json few = with(large, "FAKE_CUDA_DEVICES=2");
  EXPECT_EQ(chosen(few), "direct");
  EXPECT_NE(few["remark"].get<std::string>().find("4 ranks see 2 GPU(s)"), std::string::npos) << few;
  const Json never = with(large, "FAKE_CUDA_DEVICES=4 ISTHMUS_NCCL=never");
  EXPECT_NE(never["remark"].get<std::string>().find("ISTHMUS_NCCL is never"), std::string::npos) << never;
}

TEST(Explain, InAStreamAMessageGoesByPacketsChunksOrWaits) {
  for (const auto& [arguments, carrier] : {std::pair{"--from cuda:0 --to cuda:1 --size 8192", "packets"},
                                           {"--from cuda:0 --to cuda:1 --size 8193", "chunks"},
                                           {"--from pinned --to cuda:1 --size 1", "packets"},
                                           {"--from cuda:0 --to cuda:0 --size 1MiB", "stream waits"}}) {
    const Json found = answer(std::string{"--stream "} + arguments, "ISTHMUS_KINDS=host,cuda");
    expect_sound(found);
    EXPECT_EQ(chosen(found), carrier) << arguments;
    EXPECT_EQ(found["choice"], carrier) << arguments;
    EXPECT_NE(found["numbers"].get<std::string>().find("two H200"), std::string::npos) << found;
    EXPECT_TRUE(way(found, "ist_send").contains("seconds")) << found;
  }
  const Json off = answer("--stream --from cuda:0 --to cuda:1");
  EXPECT_EQ(way(off, "packets")["refused"], "ISTHMUS_KINDS leaves CUDA out");
  EXPECT_NE(way(answer("--stream --from host --to cuda:1", "ISTHMUS_KINDS=host,cuda"), "packets")["refused"]
                .get<std::string>()
                .find("the sender's buffer is neither"),
            std::string::npos);
}

TEST(Explain, InStreamsACallGoesByKernelsByRank0OrByNccl) {
  for (const char* call : {"barrier_on", "bcast_on", "reduce_on", "allreduce_on"}) {
    const Json found = answer(std::string{call} + " --type float --count 2");
    expect_sound(found);
    EXPECT_EQ(chosen(found), "kernels") << found;
  }
  EXPECT_EQ(chosen(answer("allreduce_on --ranks 17")), "rank 0");
  const Json large = answer("allreduce_on --type float --count 4194304 --ranks 2");
  EXPECT_EQ(chosen(large), "kernels");
  EXPECT_NE(way(large, "nccl")["refused"].get<std::string>().find("the kind cuda has no device"), std::string::npos)
      << large;
  EXPECT_EQ(way(answer("reduce_on --type byte --count 100000000"), "nccl")["refused"],
            "NCCL cannot add elements of this type");
  EXPECT_EQ(way(answer("barrier_on"), "nccl")["refused"], "NCCL has no barrier");
  if (!std::filesystem::exists(FAKE_CUDA "/libnccl.so.2"))
    GTEST_SKIP() << "not covered here: what explain says with an NCCL; this build has none of the tests' own";
  const auto with = [](const std::string& arguments, const std::string& environment) {
    return answer(arguments, "ISTHMUS_KINDS=host,cuda LD_LIBRARY_PATH=" FAKE_CUDA " FAKE_CUDA_DEVICES=2 " + environment);
  };
  const Json nccl = with("allreduce_on --type float --count 4194304 --ranks 2", "");
  expect_sound(nccl);
  EXPECT_EQ(chosen(nccl), "nccl") << nccl;
  EXPECT_NE(nccl["remark"].get<std::string>().find("IST_ERR_NOT_CAPTURABLE"), std::string::npos);
  EXPECT_EQ(chosen(with("allreduce_on --type float --count 2 --ranks 2", "")), "kernels");
  EXPECT_EQ(chosen(with("bcast_on --count 4194304 --ranks 2", "ISTHMUS_NCCL=never")), "kernels");
  EXPECT_EQ(chosen(with("bcast_on --count 4194304 --ranks 4", "")), "rank 0");
}

// Nothing is combined of a barrier, and of what has one way by messages that is told beside shared memory.
TEST(Explain, CallsThatGoOneWayByMessagesAreToldBesideSharedMemory) {
  for (const auto& [call, other] :
       {std::pair{"barrier", "recursive doubling"}, {"gather", "flat"}, {"scatter", "flat"}, {"exscan --ordered", "flat"}}) {
    const Ran ran = explain(std::string{call} + " --ranks 4");
    EXPECT_TRUE(ran.status == 0 && says(ran, "on 4 ranks, host memory: shared,")) << ran.output;
    EXPECT_TRUE(says(ran, std::string{"  "} + other + "  ")) << ran.output;
  }
}

TEST(Explain, WhatDoesNotExistIsRefusedWithWhatDoes) {
  for (const auto& [arguments, words] :
       {std::pair{"dance",
                  "unknown call \"dance\": expected one of allgather, allreduce, alltoall, barrier, bcast, exscan, gather"},
        {"--from host --form 8", "an option before it is misspelt"},
        {"--from tape", "unknown kind of memory \"tape\""},
        {"--to cuda:x", "names no device"},
        {"allreduce --kind tape", "unknown kind of memory \"tape\""},
        {"allreduce --type quaternion", "unknown type \"quaternion\": expected one of byte, char"},
        {"allreduce --count 4611686018427387904 --type double", "more than"},
        {"allgather --count 4611686018427387904 --ranks 3", "fit no buffer"},
        {"allreduce --count 99999999999999999999", "not in range 0 to 4611686018427387904"},
        {"allreduce --ranks 0", "--ranks"},
        {"allreduce --count -1", "not in range 0 to 4611686018427387904"},
        {"allreduce --from host", "--from"},
        {"bcast --size 8", "--count"},
        {"--ranks 3", "CALL"},
        {"--size lots", "--size"}}) {
    const Ran ran = explain(arguments);
    EXPECT_EQ(ran.status, 2) << arguments << '\n' << ran.output;
    EXPECT_TRUE(says(ran, words)) << arguments << '\n' << ran.output;
  }
}

}  // namespace
}  // namespace ist::test
