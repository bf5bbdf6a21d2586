#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/settings.hpp"
#include "program.hpp"

namespace ist::test {
namespace {

std::string contents(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Version, NamesTheReleaseAndTheCommit) {
  const Ran ran = run_program("--version");
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(says(ran, "isthmus " + std::to_string(IST_VERSION_MAJOR) + ".")) << ran.output;
  EXPECT_TRUE(says(ran, "(commit ")) << ran.output;
}

TEST(Info, RunsOnThisMachineAndNamesHostMemoryProcessorsAndPaths) {
  const Ran ran = run_program("info");
  EXPECT_EQ(ran.status, 0) << ran.output;
  for (const char* words : {"CUDA support: ", "processors: ", "  host:0  ", "  self  ", "  shm  ", "\noff\n"})
    EXPECT_TRUE(says(ran, words)) << words << " is missing in:\n" << ran.output;
}

TEST(Info, JsonHasTheSameFactsUnderNamesThatScriptsCanUse) {
  const Ran ran = run_program("info --json");
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto facts = nlohmann::json::parse(ran.output);
  for (const char* name : {"version", "commit", "machine", "cuda_compiled", "nvtx_compiled", "processors", "kinds", "paths",
                           "collective", "starting", "off"})
    EXPECT_TRUE(facts.contains(name)) << name;
  EXPECT_GE(facts["processors"]["usable"].get<int>(), 1);
  EXPECT_EQ(facts["kinds"][0]["name"], "host");
  for (const auto& kind : facts["kinds"])
    for (const auto& device : kind["devices"])
      for (const char* name : {"ordinal", "name", "memory", "uuid", "detail"}) EXPECT_TRUE(device.contains(name)) << name;
}

TEST(Info, OutputThatCannotBeWrittenIsAnError) {
  const Ran ran = run_program("info --json", "sh -c '\"$@\" 2>&1 >/dev/full' sh");
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.output, "isthmus: standard output cannot be written: No space left on device\n");
}

TEST(Info, EveryKindIsEitherThereOrOffWithAReasonOnOneLine) {
  const auto facts = nlohmann::json::parse(run_program("info --json").output);
  for (const std::string name : {"host", "cuda", "opencl"}) {
    int found = 0;
    for (const auto& kind : facts["kinds"]) found += kind["name"] == name ? 1 : 0;
    for (const auto& off : facts["off"]) {
      found += off["what"] == "kind " + name ? 1 : 0;
      EXPECT_FALSE(off["why"].get<std::string>().empty());
      EXPECT_EQ(off["why"].get<std::string>().find('\n'), std::string::npos) << off;
    }
    EXPECT_EQ(found, 1) << name;
  }
}

TEST(Info, NamesWhatChangesWordsOfHostHeapsForKernelsWhereThereAreAny) {
  for (const std::string kinds : {"ISTHMUS_KINDS=host", "LD_LIBRARY_PATH=" FAKE_CUDA}) {
    const auto facts = nlohmann::json::parse(run_program("info --json", kinds).output);
    const auto is = [](const char* name) { return [name](const auto& entry) { return entry["name"] == name; }; };
    EXPECT_EQ(std::ranges::any_of(facts["kinds"], is("cuda")), std::ranges::any_of(facts["paths"], is("proxy"))) << kinds;
  }
}

// With PoCL alone the parts are mapped, unless the setting says that they are not.
TEST(Info, SaysWhichPairsOfDevicesNeedTheThreadThatServesAHeap) {
  for (const std::string kinds :
       {"ISTHMUS_KINDS=host", "ISTHMUS_KINDS=opencl", "ISTHMUS_KINDS=opencl ISTHMUS_DEVICE_IPC=never"}) {
    const auto facts = nlohmann::json::parse(run_program("info --json", kinds).output);
    std::string pairs;
    for (const auto& path : facts["paths"])
      if (path["name"] == "parts" && path["connects"].get<std::string>().find("OpenCL") != std::string::npos)
        pairs = path["pairs"];
    std::size_t devices = 0;
    for (const auto& kind : facts["kinds"]) devices += kind["name"] == "opencl" ? kind["devices"].size() : 0;
    EXPECT_EQ(devices == 0, pairs.empty()) << kinds << ": " << pairs;
    if (devices == 0) continue;
    for (std::size_t one = 0; one < devices; ++one)
      EXPECT_NE(std::string::npos, pairs.find("opencl:0 with opencl:" + std::to_string(one))) << pairs;
    const bool all_served = pairs.find("no thread: none") != std::string::npos;
    EXPECT_TRUE(all_served || kinds.find("never") == std::string::npos) << pairs;
  }
}

// Of devices that do not reach each other's memory, as the driver says.
TEST(Info, SaysWhichPairsOfCudaDevicesAreServed) {
  if (!nlohmann::json::parse(run_program("info --json").output)["cuda_compiled"].get<bool>())
    GTEST_SKIP() << "not covered here: which pairs of CUDA devices are served; the library was built without CUDA";
  const auto pairs_with = [](const std::string& more, const std::string& name = "parts") {
    const auto facts = nlohmann::json::parse(
        run_program("info --json", "LD_LIBRARY_PATH=" FAKE_CUDA " ISTHMUS_KINDS=host,cuda FAKE_CUDA_DEVICES=3 " + more)
            .output);
    for (const auto& path : facts["paths"])
      if (path["name"] == name) return path["pairs"].get<std::string>();
    return std::string{};
  };
  const std::string apart = pairs_with("FAKE_CUDA_LINKS=0-1:refused");
  EXPECT_NE(std::string::npos, apart.find("part it is: cuda:0 with cuda:1; mapped by both")) << apart;
  EXPECT_NE(std::string::npos, apart.find("no thread: cuda:0 with cuda:0, cuda:0 with cuda:2")) << apart;
  EXPECT_NE(std::string::npos, pairs_with("FAKE_CUDA_PEER=1").find("part it is: none")) << pairs_with("FAKE_CUDA_PEER=1");
  EXPECT_NE(std::string::npos, pairs_with("ISTHMUS_DEVICE_IPC=never").find("no thread: none"));
  EXPECT_EQ(std::string::npos, apart.find("atomic operations")) << apart;
  const std::string torn = pairs_with("FAKE_CUDA_ATOMICS=0 FAKE_CUDA_LINKS=0-1:refused");
  EXPECT_NE(std::string::npos, torn.find("by such a thread: cuda:0 with cuda:2, cuda:1 with cuda:2;")) << torn;
  // The driver says of each operation whether it is atomic with a processor's; all of them have to be.
  for (const auto& [offered, words] : {std::pair{"0", "not be atomic"}, {"1", "not be atomic"}, {"2", "would be atomic"}}) {
    const std::string proxy = pairs_with(std::string{"FAKE_CUDA_HOST_ATOMICS="} + offered, "proxy");
    EXPECT_NE(std::string::npos, proxy.find(words)) << offered << ": " << proxy;
  }
}

TEST(Info, KindsLeftOutByTheSettingAreOffAndTheTextSaysHowToTurnThemOn) {
  const auto facts = nlohmann::json::parse(run_program("info --json", "ISTHMUS_KINDS=host").output);
  ASSERT_EQ(facts["kinds"].size(), 1U);
  int off = 0;
  for (const auto& entry : facts["off"])
    if (entry["what"] == "kind cuda" || entry["what"] == "kind opencl") {
      ++off;
      EXPECT_NE(entry["why"].get<std::string>().find("ISTHMUS_KINDS"), std::string::npos) << entry;
    }
  EXPECT_EQ(off, 2);
}

TEST(Info, EveryWayOfStartingRanksIsEitherThereOrOffWithWhatToInstall) {
  const auto facts = nlohmann::json::parse(run_program("info --json").output);
  for (const std::string name : {"MPI_Comm", "launcher", "environment", "PMIx", "PMI"}) {
    int found = 0;
    for (const auto& way : facts["starting"]) found += way["name"] == name ? 1 : 0;
    for (const auto& off : facts["off"]) found += off["what"] == "starting by " + name ? 1 : 0;
    EXPECT_EQ(found, 1) << name;
  }
  // A file that the loader finds first, and cannot use.
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("no-pmix-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "libpmix.so.2"}.close();
  const Ran ran = run_program("info", "LD_LIBRARY_PATH=" + folder.string() + " PMIX_PREFIX=/nowhere");
  std::filesystem::remove_all(folder);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, "starting by PMIx: ")) << ran.output;
  EXPECT_TRUE(says(ran, "install PMIx (Debian: libpmix2)")) << ran.output;
}

// With a driver that needs no GPU.
const std::string kFake = "LD_LIBRARY_PATH=" FAKE_CUDA " FAKE_CUDA_DEVICES=3 ";

TEST(Info, LinksAreTriedWhereThatIsAskedForAndWhatIsWrongIsOffWithAReason) {
  if (!std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
    GTEST_SKIP()
        << "not covered here: the links between devices; this build has no CUDA parts, and so no driver of the tests";
  EXPECT_FALSE(says(run_program("info", kFake), "\nlinks\n"));
  EXPECT_TRUE(says(run_program("info", kFake), "isthmus info --links does"));
  const Ran whole = run_program("info --links", kFake);
  EXPECT_EQ(whole.status, 0) << whole.output;
  for (const std::string from : {"0", "1", "2"})
    for (const std::string to : {"0", "1", "2"}) {
      const std::string line = "  cuda:" + from + " to cuda:" + to + "  peer access yes, pattern ok\n";
      EXPECT_EQ(from != to, says(whole, line)) << line << whole.output;
    }
  EXPECT_FALSE(says(whole, "link from"));

  const Ran ran = run_program("info --links --json", kFake + "FAKE_CUDA_LINKS=0-1:spoiled,0-2:refused");
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto facts = nlohmann::json::parse(ran.output);
  ASSERT_EQ(facts["links"].size(), 6U);
  for (const auto& link : facts["links"]) {
    const bool with_0 = link["from"] == "cuda:0" || link["to"] == "cuda:0";
    const bool with_2 = link["from"] == "cuda:2" || link["to"] == "cuda:2";
    EXPECT_EQ(link["access"], !(with_0 && with_2)) << link;
    EXPECT_EQ(link["pattern"], !with_0 ? "ok" : with_2 ? "not tried" : "failed") << link;
    const std::string why = link["why"];
    EXPECT_NE(why.find(!with_0 ? "" : with_2 ? "nvidia-smi topo -p2p r" : "turn both off"), std::string::npos) << link;
    int off = 0;
    for (const auto& entry : facts["off"])
      off +=
          entry["what"] == "link from " + link["from"].get<std::string>() + " to " + link["to"].get<std::string>() ? 1 : 0;
    EXPECT_EQ(off, with_0 ? 1 : 0) << link;
  }
  const Ran alone = run_program("info --links", kFake + "FAKE_CUDA_DEVICES=1");
  EXPECT_TRUE(says(alone, "\nlinks\n  none: this process sees no two devices\n")) << alone.output;
}

TEST(Info, OneCopyBetweenDevicesIsAPathUnlessItIsNotToBe) {
  if (!std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
    GTEST_SKIP()
        << "not covered here: the path between devices; this build has no CUDA parts, and so no driver of the tests";
  EXPECT_TRUE(says(run_program("info", kFake), "\n  device_ipc  devices of ranks of one host"));
  const Ran never = run_program("info", kFake + "ISTHMUS_DEVICE_IPC=never");
  EXPECT_TRUE(says(never, "\n  path device_ipc: ISTHMUS_DEVICE_IPC is never")) << never.output;
  EXPECT_FALSE(says(never, "\n  device_ipc  ")) << never.output;
}

TEST(Settings, TheTableShowsEveryRowAndTheValueInForce) {
  const Ran ran = run_program("info --settings", "ISTHMUS_CELLS=321");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, "321")) << ran.output;
  for (const SettingRow& row : describe(Settings{})) {
    EXPECT_TRUE(says(ran, std::string{row.variable})) << row.variable;
    EXPECT_TRUE(says(ran, std::string{row.help})) << row.help;
  }
}

TEST(Settings, AValueThatCannotBeReadEndsEveryCommandThatReadsItWithStatus2AndNamesIt) {
  for (const char* command : {"info", "info --json", "info --settings", "bench latency --from opencl"})
    for (const char* setting : {"ISTHMUS_CELLS=1", "ISTHMUS_EAGER_LIMIT=lots", "ISTHMUS_KINDS=tape", "ISTHMUS_WAIT="}) {
      const Ran ran = run_program(command, setting);
      const std::string text{setting};
      EXPECT_EQ(ran.status, 2) << command << ' ' << setting << '\n' << ran.output;
      EXPECT_TRUE(says(ran, text.substr(0, text.find('=')))) << ran.output;
      EXPECT_TRUE(says(ran, "expected")) << ran.output;
    }
}

TEST(Settings, TheCommittedPageIsWhatTheCommandPrints) {
  const Ran ran = run_program("info --settings --markdown", "ISTHMUS_CELLS=321");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, contents(SOURCES "/docs/settings.md"))
      << "run: isthmus info --settings --markdown > docs/settings.md";
}

TEST(Manual, TellsOfEveryCommandAndEverySetting) {
  const Ran ran = run_program("info --man");
  EXPECT_EQ(ran.status, 0);
  for (const char* words : {".TH ISTHMUS 1", ".SS isthmus run", ".SS isthmus info", ".SS isthmus bench",
                            ".SS isthmus explain", ".SS isthmus model", ".SH EXIT STATUS"})
    EXPECT_TRUE(says(ran, words)) << words;
  for (const SettingRow& row : describe(Settings{})) EXPECT_TRUE(says(ran, std::string{row.variable})) << row.variable;
}

TEST(Manual, IsFormattedWithoutAWarning) {
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  const Ran ran = run_program("info --man | groff -man -Tutf8 -ww -z");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, "");
}

TEST(Usage, AWrongUseHasStatus2AndSaysWhatIsWrong) {
  for (const auto& [arguments, words] : {std::pair{"", "Subcommands:"},
                                         {"dance", "dance"},
                                         {"info --loud", "--loud"},
                                         {"info --markdown", "--settings"},
                                         {"info --json --man", "--man"},
                                         {"bench", "isthmus bench: NAME"},
                                         {"run", "-n is missing"},
                                         {"--verison", "unknown option \"--verison\": expected one of run"},
                                         {"explain --size 1.5MB", "--size: \"1.5MB\" is no size"},
                                         {"model show --output nowhere.json", "--output is of fit"},
                                         {"model show --quick", "--quick is of fit"},
                                         {"bench throughput", "throughput"}}) {
    const Ran ran = run_program(arguments);
    EXPECT_EQ(ran.status, 2) << arguments << '\n' << ran.output;
    EXPECT_TRUE(says(ran, words)) << arguments << '\n' << ran.output;
  }
}

}  // namespace
}  // namespace ist::test
