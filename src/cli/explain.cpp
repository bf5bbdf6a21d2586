#include "cli/explain.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_options.hpp"
#include "cli/failure.hpp"
#include "cli/machine.hpp"
#include "cli/settings_page.hpp"
#include "collective/nccl.hpp"
#include "collective/profile.hpp"
#include "collective/stream_choice.hpp"
#include "layout/extent.hpp"
#include "memory/workers.hpp"
#include "path/shm/lane.hpp"
#include "path/shm/pair_slot.hpp"
#include "path/shm/peer_memory.hpp"
#include "protocol/explain_packing.hpp"
#include "protocol/explain_stream.hpp"
#include "request/schedule.hpp"

namespace ist::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string call;
  std::string from = "host";
  std::string to = "host";
  std::string kind = "host";
  std::string type = "byte";
  std::uint64_t size = 8;
  std::int64_t count = 1;
  std::uint64_t blocks = 0;       // of the sender's layout; 0: one piece
  std::uint64_t into_blocks = 0;  // of the receiver's
  int ranks = 2;
  bool ordered = false;
  bool self = false;
  bool synchronous = false;
  bool stream = false;
  bool json = false;
};

constexpr std::array<std::pair<const char*, ChosenCall>, kChosenCalls> kCalls{
    {{"allgather", ChosenCall::allgather},
     {"allreduce", ChosenCall::allreduce},
     {"alltoall", ChosenCall::alltoall},
     {"bcast", ChosenCall::bcast},
     {"reduce", ChosenCall::reduce},
     {"reduce_scatter", ChosenCall::reduce_scatter}}};
constexpr std::array kOneWay{"barrier", "exscan", "gather", "scan", "scatter"};

// Those that are put into streams; a barrier, a broadcast, and reductions to one rank and to all.
struct StreamedName {
  const char* name;
  bool barrier;
  bool reduces;
  bool to_all;
};
constexpr std::array<StreamedName, 4> kStreamed{{{"allreduce_on", false, true, true},
                                                 {"barrier_on", true, false, true},
                                                 {"bcast_on", false, false, false},
                                                 {"reduce_on", false, true, false}}};

const StreamedName* streamed(const std::string& word) {
  const auto found = std::find_if(kStreamed.begin(), kStreamed.end(), [&](const auto& one) { return word == one.name; });
  return found == kStreamed.end() ? nullptr : found;
}

std::string calls_with_a_choice() {
  std::string names;
  for (const auto& [name, call] : kCalls) names += (names.empty() ? "" : ", ") + std::string{name};
  return names;
}

ChosenCall call_named(const std::string& word) {
  for (const auto& [name, call] : kCalls)
    if (word == name) return call;
  if (std::find(kOneWay.begin(), kOneWay.end(), word) != kOneWay.end())
    throw Failure(2, word + " has one algorithm, whatever its price: there is a choice of " + calls_with_a_choice());
  throw Failure(2, "unknown call \"" + word + "\": expected one of " + calls_with_a_choice());
}

// "float" for IST_FLOAT.
std::string word_for(ist_type type) {
  std::string word = name_of(type).substr(4);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

ist_type type_named(const std::string& word) {
  std::string known;
  for (int number = 0; size_of(static_cast<ist_type>(number)) > Bytes{}; ++number) {
    const auto type = static_cast<ist_type>(number);
    if (word_for(type) == word) return type;
    known += (known.empty() ? "" : ", ") + word_for(type);
  }
  throw Failure(2, "unknown type \"" + word + "\": expected one of " + known);
}

Json json_of(const Explanation& answer, const Profile& profile) {
  Json ways = Json::array();
  for (const ExplainedWay& way : answer.ways) {
    Json entry{{"name", way.name}, {"meaning", way.meaning}, {"chosen", way.chosen}};
    if (way.refused.empty() && way.price) entry["seconds"] = way.price->seconds();
    if (way.price) {
      entry["terms"] = Json::array();
      for (const Term& term : way.price->terms()) entry["terms"].push_back({{"name", term.name}, {"seconds", term.seconds}});
    }
    if (!way.refused.empty()) entry["refused"] = way.refused;
    ways.push_back(std::move(entry));
  }
  return {{"question", answer.question},
          {"choice", answer.choice},
          {"remark", answer.remark},
          {"measured", profile.measured != 0 && answer.numbers.empty()},
          {"numbers", answer.numbers.empty() ? profile.source : answer.numbers},
          {"ways", std::move(ways)}};
}

MessageEnd end_of(const Place& place) {
  const auto kind = static_cast<KindId>(place.kind);
  if (place.word == "managed") return {kind, MemoryClass::managed};
  if (place.word == "pool") return {kind, MemoryClass::pool};
  // What is made with a handle for others is opened as what cudaMalloc gave.
  if (place.on_device()) return {kind, MemoryClass::device};
  return {kind, place.pinned() ? MemoryClass::pinned : MemoryClass::pageable};
}

// Of a machine in words they can always be, but for one that was told to leave CUDA out.
std::string no_streams(const Settings& settings) {
  const auto& kinds = settings.kinds;
  return kinds == "all" || kinds.find("cuda") != std::string::npos ? "" : "ISTHMUS_KINDS leaves CUDA out";
}

// Of a layout on one side where its bytes come together, or apart; the message itself is then the one of as many bytes.
Explanation explained(const Options& options, const ExplainedMessage& message, const Settings& settings,
                      const Profile& profile) {
  if ((options.blocks != 0 && message.from.kind == KindId::host) ||
      (options.into_blocks != 0 && message.to.kind == KindId::host))
    throw Failure(
        2,
        "--blocks is of a device's memory that is sent (--from cuda:0), and --into-blocks of such that receives (--to "
        "cuda:1): in host memory the processor packs in a block, which is then sent as any buffer");
  // As many blocks as that, twice their length apart.
  const auto layout = [&](std::uint64_t block) {
    ExplainedLayout laid;
    laid.width = static_cast<std::int64_t>(((block | 16) & (~(block | 16) + 1)));
    const MessageEnd& laid_out = block == options.blocks ? message.from : message.to;
    if (laid_out.kind == KindId::cuda) laid.no_slots = nullptr;
    if (options.size > block)
      laid.rows = static_cast<std::int64_t>((options.size + block - 1) / block);
    else
      laid.no_rows = "the bytes lie in one piece";
    return laid;
  };
  // What is one block lies in one piece.
  const auto apart = [&](std::uint64_t block) { return block != 0 && options.size > block; };
  if (apart(options.blocks) && apart(options.into_blocks))
    return explain_apart(message, layout(options.blocks), static_cast<std::int64_t>(options.blocks), profile.message);
  if (options.blocks != 0 && (apart(options.blocks) || !apart(options.into_blocks)))
    return explain_packing(message, layout(options.blocks), profile.message);
  if (options.into_blocks != 0) return explain_unpacking(message, layout(options.into_blocks), profile.message);
  return options.stream ? explain_in_stream(message, no_streams(settings), profile.message)
                        : explain(message, profile.message);
}

Explanation explain_message(const Options& options, const Settings& settings, const Profile& profile) {
  const Place from = Place::read(options.from, true);
  const Place to = Place::read(options.to, true);
  ExplainedMessage message;
  message.bytes = Bytes{options.size};
  message.from = end_of(from);
  message.to = end_of(to);
  message.same_process = options.self;
  message.same_device =
      from.on_device() && from.kind == to.kind && from.device != Place::kAnyDevice && from.device == to.device;
  message.slot_limit = options.self ? kAlwaysInSlots : pair_slot_limit(settings.eager_limit, 2);
  if (!options.self) message.slots_up_to = slots_between_ranks(settings, profile.message);
  message.cell_limit = settings.eager_limit;
  if (settings.device_ipc == "never") message.not_lent = "ISTHMUS_DEVICE_IPC is never";
  message.readable = PeerMemory::possible;
  message.single_copy = settings.single_copy;
  message.mode = {options.synchronous, true};
  if (settings.worker && message.from.kind == KindId::cuda && Workers::copies(message.from.memory) && !message.same_device)
    message.worker_limit = message.mailbox_limit = kWorkerLimit;
  Explanation answer = explained(options, message, settings, profile);
  answer.question = in_words(message.bytes) + (options.stream ? " in a stream, from " : " from ") + from.text() + " to " +
                    to.text() + (options.self ? " of one rank" : " of another rank on this machine");
  if (options.blocks != 0) answer.question += ", packed from blocks of " + std::to_string(options.blocks);
  if (options.into_blocks != 0) answer.question += ", unpacked into blocks of " + std::to_string(options.into_blocks);
  return answer;
}

bool combines(ChosenCall call) {
  return call == ChosenCall::reduce || call == ChosenCall::allreduce || call == ChosenCall::reduce_scatter;
}

// Has each rank, or for each rank, so many elements? Else all have one vector.
bool in_parts(ChosenCall call) {
  return call == ChosenCall::allgather || call == ChosenCall::reduce_scatter || call == ChosenCall::alltoall;
}

// Beside the ways by messages: what a world would decide whose ranks all have this machine's GPUs and this NCCL.
void add_nccl(Explanation& answer, const Options& options, const Settings& settings, const CollectiveShape& shape,
              const CollectiveProfile& machine) {
  const ChosenCall call = call_named(options.call);
  const Combiner sum{Reduction::sum, type_named(options.type)};
  ExplainedWay way{std::string{name_of(Algorithm::nccl)}, std::string{meaning_of(Algorithm::nccl)},
                   nccl_offer(call, shape).price, "", false};
  if (combines(call) && options.ordered) {
    way.refused = "every operation that NCCL has commutes";
  } else if (combines(call) && !nccl_knows(sum)) {
    way.refused = "NCCL cannot add elements of this type";
  } else {
    const auto kinds = Kinds::load(settings.kinds, settings.worker);
    if (!kinds.ok()) throw Failure(kinds.status());
    Nccl nccl{settings, **kinds, shape.ranks};
    nccl.learn(std::vector<std::string>(static_cast<std::size_t>(shape.ranks), nccl.card()));
    const NcclAnswer said = nccl.explain(nullptr, call, combines(call) ? &sum : nullptr, shape.bytes, machine);
    answer.remark += "\nOn this machine: " + said.why + ".";
    way.chosen = said.offered;
  }
  if (way.chosen) {
    for (ExplainedWay& other : answer.ways) other.chosen = false;
    answer.choice = way.name + ", " + way.meaning + "; else " + answer.choice;
  }
  answer.ways.push_back(std::move(way));
}

std::string combined_on_host(bool cuda, const MachineProfile& machine) {
  const auto parts = [](double most) {
    return most < kNeverOnDevice ? "parts up to " + in_words(Bytes{static_cast<std::uint64_t>(most)}) : std::string{"all"};
  };
  const double most = cuda ? machine.device_arithmetic_above : machine.device_arithmetic_above_opencl;
  const std::string text = "\nThe host combines " + parts(most) + ", the device what is longer, if it knows how; where ";
  if (cuda) return text + "ranks share it, the host " + parts(machine.device_arithmetic_above_shared) + ".";
  return text + "there are more ranks\nthan such devices, the host " + parts(machine.device_arithmetic_above_opencl_shared) +
         "; where it is the processor, " + parts(machine.device_arithmetic_above_processor) + ".";
}

Explanation explain_call(const Options& options, const Settings& settings, Profile profile) {
  const ChosenCall call = call_named(options.call);
  const ist_type type = type_named(options.type);
  const Place place = Place::read(options.kind);
  const auto size = extent(options.count, type);
  if (!size.ok()) throw Failure(2, size.status().text());
  const std::uint64_t parts = in_parts(call) ? static_cast<std::uint64_t>(options.ranks) : 1;
  std::int64_t in_all = 0;
  if (__builtin_mul_overflow(size->value, parts, &in_all)) throw Failure(2, "so many elements fit no buffer");
  const std::string of = std::to_string(options.count) + " x " + word_for(type);
  Explanation answer{options.call + " of " + of + " (" + in_words(*size) +
                         (call == ChosenCall::allgather ? " of each rank) on "
                          : in_parts(call)              ? " for each rank) on "
                                                        : ") on ") +
                         std::to_string(options.ranks) + " ranks, " + place.text() + " memory",
                     "nothing is sent",
                     "",
                     {}};
  if (options.ranks == 1) return answer;
  const CollectiveShape shape{options.ranks, Bytes{static_cast<std::uint64_t>(in_all)}};
  know_slots(profile, settings, options.ranks);
  // As the ranks of one host would, of whom some have a device where the buffers are on one.
  profile.collective.shared_up_to = std::min(profile.collective.shared_up_to, static_cast<double>(kLaneRoom.value));
  if (static_cast<KindId>(place.kind) == KindId::cuda) profile.collective = by_gpus(profile.collective);
  const Algorithm chosen = choose(call, shape, !options.ordered, profile.collective);
  answer.choice = std::string{name_of(chosen)} + ", " + std::string{meaning_of(chosen)};
  for (const Offered& offer : offers(call, shape, !options.ordered, profile.collective)) {
    const char* why = offer.price.refused();
    answer.ways.push_back({std::string{name_of(offer.algorithm)}, std::string{meaning_of(offer.algorithm)}, offer.price,
                           why ? why : "", offer.algorithm == chosen});
  }
  answer.remark =
      "The choice follows from what all ranks share: call, type, count, ranks, whether the operation commutes, and the\n"
      "numbers of rank 0, which all ranks are told when the world is made. The kind of memory changes nothing of it, but "
      "that\n"
      "NCCL may have the call where the buffers of all ranks are CUDA memory, each on a GPU of its own.";
  const auto kind = static_cast<KindId>(place.kind);
  if ((kind == KindId::cuda || kind == KindId::opencl) && combines(call))
    answer.remark += combined_on_host(kind == KindId::cuda, profile.message);
  if (kind == KindId::cuda) add_nccl(answer, options, settings, shape, profile.collective);
  return answer;
}

// Why NCCL has no such call, among ranks that each have this machine's GPUs and this NCCL; and whether there is a GPU for each.
std::string no_nccl(const Options& options, const StreamedName& call, const Settings& settings, bool& own_devices) {
  const auto kinds = Kinds::load(settings.kinds, settings.worker);
  if (!kinds.ok()) throw Failure(kinds.status());
  const MemoryKind* const cuda = (*kinds)->find(KindId::cuda);
  own_devices = cuda == nullptr || cuda->devices().size() >= static_cast<std::size_t>(options.ranks);
  if (call.barrier) return "NCCL has no barrier";
  if (call.reduces && !nccl_knows({Reduction::sum, type_named(options.type)}))
    return "NCCL cannot add elements of this type";
  Nccl nccl{settings, **kinds, options.ranks};
  nccl.learn(std::vector<std::string>(static_cast<std::size_t>(options.ranks), nccl.card()));
  return nccl.serves(nullptr).text();
}

Explanation explain_streamed(const Options& options, const StreamedName& call, const Settings& settings) {
  const auto size = extent(call.barrier ? 0 : options.count, type_named(options.type));
  if (!size.ok()) throw Failure(2, size.status().text());
  StreamedCall asked{call.name, {options.ranks, *size, true, false}};
  asked.no_nccl = no_nccl(options, call, settings, asked.shape.own_devices);
  asked.shape.nccl = asked.no_nccl.empty();
  if (call.reduces && call.to_all) asked.share = 2.0 * (options.ranks - 1) / options.ranks;
  Explanation answer = explain_in_stream(asked);
  answer.question = std::string{call.name} +
                    (call.barrier ? ""
                                  : " of " + std::to_string(options.count) + " x " + word_for(type_named(options.type)) +
                                        " (" + in_words(*size) + ")") +
                    " on " + std::to_string(options.ranks) + " ranks, cuda memory";
  return answer;
}

Explanation explained(const Options& options, const Settings& settings, const Profile& profile) {
  if (options.call.empty()) return explain_message(options, settings, profile);
  if (const StreamedName* const call = streamed(options.call)) return explain_streamed(options, *call, settings);
  return explain_call(options, settings, profile);
}

void run_explain(const Options& options) {
  const Settings settings = read_settings();
  const Profile profile = load_profile(settings, log::Level::warning, [&settings] { return devices_here(settings); });
  const Explanation answer = explained(options, settings, profile);
  if (options.json)
    std::cout << json_of(answer, profile).dump(2) << '\n';
  else
    std::cout << text_of(answer, in_words(profile));
}

}  // namespace

void add_explain_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("explain", "Tell how a message or a collective call is carried, its price term by term, and why");
  CLI::Option* call = command->add_option(
      "CALL", options->call,
      "a call of all ranks: " + calls_with_a_choice() +
          "; in streams: allreduce_on, barrier_on, bcast_on, reduce_on; without one, a message between two ranks");
  CLI::Option* from = command->add_option(
      "--from", options->from,
      "of a message: the sender's memory, as in cuda:1, or a class of it: managed, pool, shared-pool, vmm");
  CLI::Option* to = command->add_option("--to", options->to, "of a message: the receiver's memory");
  for (CLI::Option* place : {from, to}) place->type_name("KIND")->excludes(call);
  CLI::Option* const size =
      command->add_option("--size", options->size, "of a message: its bytes, such as 1MiB; 8 unless told")
          ->type_name("BYTES")
          ->transform(CLI::AsSizeValue(false).description(""));
  command->add_flag("--self", options->self, "of a message: from a rank to itself")->excludes(call);
  CLI::Option* synchronous =
      command->add_flag("--synchronous", options->synchronous, "of a message: as by ist_ssend")->excludes(call);
  CLI::Option* const blocks =
      command
          ->add_option("--blocks", options->blocks,
                       "of a message: the sender's bytes lie apart, in blocks of so many: where are they packed?")
          ->type_name("BYTES")
          ->transform(CLI::AsSizeValue(false).description(""))
          ->excludes(call);
  command
      ->add_option("--into-blocks", options->into_blocks,
                   "of a message: the receiver's do: where are they unpacked, or with --blocks, by one kernel or by two?")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->excludes(call);
  command->add_flag("--stream", options->stream, "of a message: put into a CUDA stream, as by ist_send_on")
      ->excludes(call)
      ->excludes(synchronous)
      ->excludes(blocks);
  const auto of_call = [call](CLI::Option* option) { return option->needs(call); };
  of_call(command->add_option("--ranks", options->ranks, "of a call: how many take part; 2 unless told"))
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20).description(""));
  of_call(command->add_option("--type", options->type, "of a call: the elements, such as float; byte unless told"))
      ->type_name("TYPE");
  of_call(command->add_option("--count", options->count,
                              "of a call: how many elements each rank has, or each part; 1 unless told"))
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 62).description(""));
  of_call(command->add_option("--kind", options->kind, "of a call: the memory of its buffers"))->type_name("KIND");
  of_call(command->add_flag("--ordered", options->ordered, "of a call: its operation does not commute"));
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, call, size] {
    if (call->count() > 0 && size->count() > 0)
      throw CLI::ValidationError("--size",
                                 "is of a message; a call's bytes are --count elements of --type, such as "
                                 "--count 1000 --type double");
    run_explain(*options);
  });
}

}  // namespace ist::cli
