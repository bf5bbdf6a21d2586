#include "cli/info.hpp"

#include <isthmus/isthmus.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/ranges.hpp"
#include "boot/ways_to_start.hpp"
#include "cli/commit.hpp"
#include "cli/failure.hpp"
#include "cli/machine.hpp"
#include "cli/manual.hpp"
#include "cli/settings_page.hpp"
#include "collective/nccl.hpp"
#include "memory/kinds.hpp"
#include "memory/lending.hpp"
#include "memory/spaces.hpp"
#include "memory/word_changes.hpp"
#include "memory/workers.hpp"
#include "path/shm/lane.hpp"
#include "path/shm/pair_slot.hpp"
#include "path/shm/peer_memory.hpp"

namespace ist::cli {
namespace {

using Json = nlohmann::ordered_json;

#ifdef ISTHMUS_CUDA_COMPILED
constexpr bool kCudaCompiled = true;
#else
constexpr bool kCudaCompiled = false;
#endif

Json processors_json(const Processors& found) {
  return {{"model", found.model}, {"packages", found.packages}, {"numa_nodes", found.numa_nodes},
          {"cores", found.cores}, {"threads", found.threads},   {"usable", found.usable}};
}

Json kinds_json(const Kinds& kinds) {
  Json list = Json::array();
  for (const auto& kind : kinds.all()) {
    Json devices = Json::array();
    for (const DeviceInfo& device : kind->devices())
      devices.push_back({{"ordinal", device.ordinal},
                         {"name", device.name},
                         {"memory", device.memory.value},
                         {"uuid", device.uuid},
                         {"detail", device.detail}});
    list.push_back({{"name", kind->name()}, {"devices", std::move(devices)}});
  }
  return list;
}

// Device memory of one rank that others open; null where no kind here lends any.
Lending* lender(const Kinds& kinds) {
  for (const auto& kind : kinds.all())
    if (kind->lending() != nullptr) return kind->lending();
  return nullptr;
}

// Why no worker copies small messages of the devices; empty: it does, as far as one process can tell.
std::string against_workers(const Kinds& kinds, const Settings& settings) {
  if (!settings.worker) return "ISTHMUS_WORKER is 0; 1 turns them on, and docs/worker.md says what that asks of a program";
  for (const auto& kind : kinds.all()) {
    if (kind->workers() == nullptr) continue;
    for (const DeviceInfo& device : kind->devices())
      if (const Status against = kind->workers()->against(device.ordinal); !against.ok()) return against.text();
    return "";
  }
  return "no kind here has devices that run one";
}

// What changes words of host heaps for kernels; nothing where no kind has any.
void add_proxy(const Kinds& kinds, Json& list) {
  for (const auto& kind : kinds.all()) {
    if (kind->word_changes() == nullptr) continue;
    bool native = !kind->devices().empty();
    for (const DeviceInfo& device : kind->devices())
      native = native && kind->word_changes()->reaches_processors_words(device.ordinal);
    list.push_back(
        {{"name", "proxy"},
         {"connects", "kernels of a rank with words of heaps in host memory, of every rank of the host"},
         {"pairs", std::string{"atomics and signals that add, by a thread of the rank; those of devices here would "} +
                       (native ? "be" : "not be") + " atomic with a processor's"}});
  }
}

// Which devices' parts of heaps their PEs alone reach, or devices do not reach of each other; nothing where no kind here has such.
void add_served(const Kinds& kinds, const Settings& settings, Json& list) {
  for (const auto& kind : kinds.all()) {
    if (kind->id() == KindId::host || kind->spaces() == nullptr || kind->devices().empty()) continue;
    const bool on_devices = kind->id() == KindId::cuda;
    const auto served = [&](const DeviceInfo& one, const DeviceInfo& other) {
      const auto alone = [&](const DeviceInfo& device) {
        return kind->spaces()->reach(device.ordinal) == SpaceReach::owner;
      };
      return settings.device_ipc == "never" || alone(one) || alone(other) ||
             kind->spaces()->apart(one.ordinal, other.ordinal);
    };
    std::string mapped;
    std::string asked;
    std::string words;
    for (const DeviceInfo& one : kind->devices())
      for (const DeviceInfo& other : kind->devices()) {
        if (other.ordinal < one.ordinal) continue;
        const std::string pair = std::string{kind->name()} + ":" + std::to_string(one.ordinal) + " with " +
                                 std::string{kind->name()} + ":" + std::to_string(other.ordinal);
        const auto add = [&](std::string& text) { text += (text.empty() ? "" : ", ") + pair; };
        add(served(one, other) ? asked : mapped);
        if (!served(one, other) && kind->spaces()->words_apart(one.ordinal, other.ordinal)) add(words);
      }
    list.push_back({{"name", "parts"},
                    {"connects", std::string{"ranks of one host with each other's parts of heaps in "} +
                                     (on_devices ? "CUDA" : "OpenCL") + " memory"},
                    {"pairs", "by a thread of the rank whose part it is: " + (asked.empty() ? "none" : asked) +
                                  "; mapped by both, with no thread: " + (mapped.empty() ? "none" : mapped) +
                                  (words.empty() ? "" : "; mapped, but for atomic operations, by such a thread: " + words) +
                                  (on_devices ? "; a link that --links finds off is served, too" : "")}});
  }
}

// Of two ranks that have sent each other much: slots with their room, and the part of a ring that goes round, each both ways.
std::string memory_of_pairs(const Settings& settings) {
  const auto of = [&](std::uint32_t ranks) {
    const PairSlotShape shape = pair_slot_shape(ranks, settings.eager_limit);
    const Bytes ring = std::max(settings.ring_slot_device, settings.ring_slot_host);
    const std::uint64_t near = settings.ring_slots * settings.ring_slot_host.value;
    const Bytes lap{std::min(std::max(shape.room().value, near), settings.ring_slots * ring.value)};
    return Bytes{std::uint64_t{ranks} * (ranks - 1) * (shape.in_memory() * sizeof(PairSlot) + lap.value)};
  };
  return "of 2 ranks of a host that exchange much up to " + in_words(of(2)) + " of memory, of 4 up to " + in_words(of(4)) +
         ", of 16 up to " + in_words(of(16)) + "; less with an ISTHMUS_EAGER_LIMIT below 16 KiB; and of each rank up to " +
         in_words(Bytes{sizeof(ist::Lane)}) + " for each communicator of short collective calls";
}

// One entry per path of src/path, and what goes past them.
Json paths_json(const Kinds& kinds, const Settings& settings) {
  Json list =
      Json::array({{{"name", "self"}, {"connects", "a rank with itself"}, {"pairs", "every kind with every kind"}},
                   {{"name", "shm"},
                    {"connects", "ranks of one user on one host"},
                    {"pairs", "every kind with every kind: through shared memory, page-locked where a device takes part; " +
                                  memory_of_pairs(settings)}}});
  if (lender(kinds) != nullptr && settings.device_ipc != "never")
    list.push_back({{"name", "device_ipc"},
                    {"connects", "devices of ranks of one host, where the link between them is whole"},
                    {"pairs",
                     "cuda with cuda and with page-locked host memory: in one copy where the memory can be opened by other "
                     "processes, else in two"}});
  if (against_workers(kinds, settings).empty())
    list.push_back(
        {{"name", "workers"},
         {"connects", "the own device of a rank with its host memory, where no other rank has that device"},
         {"pairs", "up to " + in_words(kWorkerLimit) + ", by a resident kernel in place of the driver's copies"}});
  add_proxy(kinds, list);
  add_served(kinds, settings, list);
  return list;
}

// Empty where there are no two devices.
Json links_json(const Kinds& kinds) {
  Json list = Json::array();
  for (const auto& kind : kinds.all()) {
    if (kind->lending() == nullptr || kind->devices().size() < 2) continue;
    const std::string name{kind->name()};
    for (const LinkFacts& link : kind->lending()->try_links())
      list.push_back({{"from", name + ":" + std::to_string(link.from)},
                      {"to", name + ":" + std::to_string(link.to)},
                      {"access", link.access},
                      {"pattern", link.pattern.ok() ? "ok"
                                  : link.access     ? "failed"
                                                    : "not tried"},
                      {"why", link.pattern.text()}});
  }
  return list;
}

Json starting_json(const std::vector<WayToStart>& ways) {
  Json list = Json::array();
  for (const WayToStart& way : ways)
    if (way.off.empty()) list.push_back({{"name", way.name}, {"by", way.by}, {"detail", way.detail}});
  return list;
}

// What carries collective calls beside messages.
Json collective_json(const Result<nccl::Api>& nccl) {
  Json list = Json::array();
  if (nccl.ok())
    list.push_back({{"name", "nccl"},
                    {"carries", "long collective calls on CUDA memory, of ranks that have a GPU each"},
                    {"detail", "version " + nccl->version_text() + ", " + nccl->file}});
  return list;
}

Json additions_json(const Kinds& kinds) {
  Json list = Json::array();
  for (const auto& kind : kinds.all())
    for (const Addition& each : kind->additions())
      if (each.off.empty()) list.push_back({{"name", each.name}, {"does", each.does}, {"detail", each.detail}});
  return list;
}

Json off_json(const Kinds& kinds, const Settings& settings, const std::vector<WayToStart>& ways,
              const Result<nccl::Api>& nccl) {
  Json list = Json::array();
  for (const Kinds::Missing& missing : kinds.missing())
    list.push_back({{"what", "kind " + missing.name}, {"why", missing.reason}});
  for (const auto& kind : kinds.all())
    for (const Addition& each : kind->additions())
      if (!each.off.empty()) list.push_back({{"what", each.name + " for " + each.does}, {"why", each.off}});
  if (!nccl.ok()) list.push_back({{"what", "NCCL for long collective calls"}, {"why", nccl.status().text()}});
  for (const WayToStart& way : ways)
    if (!way.off.empty()) list.push_back({{"what", "starting by " + way.name}, {"why", way.off + " (" + way.by + ")"}});
  const char* single = "long host messages in one copy";
  if (settings.single_copy == "never") {
    list.push_back({{"what", single}, {"why", "ISTHMUS_SINGLE_COPY is never"}});
  } else if (const Status possible = PeerMemory::possible(); !possible.ok()) {
    list.push_back({{"what", single}, {"why", possible.text()}});
  }
  if (const std::string against = against_workers(kinds, settings); !against.empty())
    list.push_back({{"what", "workers for small messages"}, {"why", against}});
  list.push_back(
      {{"what", "path between hosts"}, {"why", "this version connects ranks of one host only; start all on one"}});
  if (settings.device_ipc == "never")
    list.push_back(
        {{"what", "path device_ipc"}, {"why", "ISTHMUS_DEVICE_IPC is never; the path shm carries device buffers"}});
  return list;
}

bool has_two_devices(const Json& kinds) {
  return std::any_of(kinds.begin(), kinds.end(),
                     [](const Json& kind) { return kind.at("name") == "cuda" && kind.at("devices").size() > 1; });
}

// Every two devices, and what is wrong between them.
std::string links_text(const Json& links) {
  std::string text = "\nlinks\n";
  if (links.empty()) text += "  none: this process sees no two devices\n";
  for (const Json& link : links) {
    text += "  " + link.at("from").get<std::string>() + " to " + link.at("to").get<std::string>() + "  peer access " +
            (link.at("access").get<bool>() ? "yes" : "no") + ", pattern " + link.at("pattern").get<std::string>();
    if (const auto why = link.at("why").get<std::string>(); !why.empty()) text += ": " + why;
    text += "\n";
  }
  return text;
}

}  // namespace

std::string commit_of_sources() { return ISTHMUS_COMMIT; }

std::string version_line() { return std::string{"isthmus "} + ist_version() + " (commit " + commit_of_sources() + ")"; }

Json collect_info(bool links) {
  const Settings settings = read_settings();
  const auto kinds = Kinds::load(settings);
  if (!kinds.ok()) throw Failure(kinds.status());
  const Processors processors = find_processors();
  const auto ways = ways_to_start();
  const auto nccl = find_nccl(settings, **kinds);
  Json facts{{"version", ist_version()},
             {"commit", commit_of_sources()},
             {"machine", describe_machine(processors, **kinds)},
             {"cuda_compiled", kCudaCompiled},
             {"nvtx_compiled", ranges::compiled()},
             {"processors", processors_json(processors)},
             {"kinds", kinds_json(**kinds)},
             {"paths", paths_json(**kinds, settings)},
             {"collective", collective_json(nccl)},
             {"additions", additions_json(**kinds)},
             {"starting", starting_json(ways)},
             {"off", off_json(**kinds, settings, ways, nccl)}};
  if (!links) return facts;
  facts["links"] = links_json(**kinds);
  for (const Json& link : facts["links"]) {
    if (link.at("pattern") == "ok") continue;
    const std::string what = "link from " + link.at("from").get<std::string>() + " to " + link.at("to").get<std::string>();
    facts["off"].push_back({{"what", what}, {"why", link.at("why")}});
  }
  return facts;
}

std::string info_text(const Json& facts) {
  const auto word = [](const Json& object, const char* name) { return object.at(name).get<std::string>(); };
  const auto number = [](const Json& object, const char* name) { return std::to_string(object.at(name).get<int>()); };
  const Json& processors = facts.at("processors");
  std::string text = "isthmus " + word(facts, "version") + " (commit " + word(facts, "commit") + ")\n";
  text += "CUDA support: " + std::string{facts.at("cuda_compiled").get<bool>() ? "compiled in" : "not compiled in"} + "\n";
  text += "NVTX ranges: " +
          std::string{facts.at("nvtx_compiled").get<bool>() ? "compiled in, for nsys and other tools"
                                                            : "not compiled in: nvtx3/nvToolsExt.h was not beside cuda.h"} +
          "\n";
  text += "processors: " + word(processors, "model") + "; packages " + number(processors, "packages") + ", NUMA nodes " +
          number(processors, "numa_nodes") + ", cores " + number(processors, "cores") + ", threads " +
          number(processors, "threads") + ", usable by this process " + number(processors, "usable") + "\n";
  text += "\nkinds of memory\n";
  for (const Json& kind : facts.at("kinds"))
    for (const Json& device : kind.at("devices")) {
      text += "  " + word(kind, "name") + ":" + number(device, "ordinal") + "  " + word(device, "name");
      if (const Bytes memory{device.at("memory").get<std::uint64_t>()}; memory.value != 0) text += ", " + in_words(memory);
      if (!word(device, "uuid").empty()) text += ", " + word(device, "uuid");
      if (!word(device, "detail").empty()) text += ", " + word(device, "detail");
      text += "\n";
    }
  text += "\npaths\n";
  for (const Json& path : facts.at("paths"))
    text += "  " + word(path, "name") + "  " + word(path, "connects") + "; " + word(path, "pairs") + "\n";
  for (const Json& one : facts.at("collective"))
    text += "  " + word(one, "name") + "  " + word(one, "carries") + "; " + word(one, "detail") + "\n";
  for (const Json& one : facts.at("additions"))
    text += "  " + word(one, "name") + "  " + word(one, "does") + "; " + word(one, "detail") + "\n";
  if (facts.contains("links"))
    text += links_text(facts.at("links"));
  else if (has_two_devices(facts.at("kinds")))
    text += "\nlinks between devices\n  not tried, since that makes a context on each of them: isthmus info --links does\n";
  text += "\nstarting ranks\n";
  for (const Json& way : facts.at("starting"))
    text += "  " + word(way, "name") + "  " + word(way, "by") +
            (word(way, "detail").empty() ? "" : "; " + word(way, "detail")) + "\n";
  text += "\noff\n";
  for (const Json& off : facts.at("off")) text += "  " + word(off, "what") + ": " + word(off, "why") + "\n";
  return text;
}

void add_info_command(CLI::App& app) {
  struct Options {
    bool json = false;
    bool settings = false;
    bool markdown = false;
    bool man = false;
    bool links = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* info = app.add_subcommand("info", "Show kinds, devices and paths, and what is off and why");
  CLI::Option* json = info->add_flag("--json", options->json, "print one JSON object");
  CLI::Option* settings = info->add_flag("--settings", options->settings, "print the settings with the values in force");
  CLI::Option* links = info->add_flag(
      "--links", options->links, "write and read a pattern between each two devices, which makes a context on each of them");
  links->excludes(settings);
  info->add_flag("--markdown", options->markdown, "with --settings: print the page docs/settings.md")->needs(settings);
  info->add_flag("--man", options->man, "print the manual page")->excludes(json)->excludes(settings)->excludes(links);
  json->excludes(settings);
  info->callback([options, &app] {
    if (options->man)
      std::cout << manual_page(app);
    else if (options->settings && options->markdown)
      std::cout << settings_markdown();
    else if (options->settings)
      std::cout << settings_table(read_settings());
    else if (options->json)
      std::cout << collect_info(options->links).dump(2) << '\n';
    else
      std::cout << info_text(collect_info(options->links));
  });
}

}  // namespace ist::cli
