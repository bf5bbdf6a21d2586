#include "cli/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_options.hpp"
#include "cli/explain_call.hpp"
#include "cli/failure.hpp"
#include "cli/machine.hpp"
#include "cli/settings_page.hpp"
#include "cli/size_option.hpp"
#include "collective/profile.hpp"
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
  CallQuestion call;
  std::string from = "host";
  std::string to = "host";
  std::uint64_t size = 8;
  std::uint64_t blocks = 0;       // of the sender's layout; 0: one piece
  std::uint64_t into_blocks = 0;  // of the receiver's
  bool self = false;
  bool synchronous = false;
  bool stream = false;
  bool json = false;
};

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
  if (!options.self) message.slot_limit_again = pair_slot_limit_again(settings.eager_limit, 2);
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

Explanation explained(const Options& options, const Settings& settings, const Profile& profile) {
  return options.call.call.empty() ? explain_message(options, settings, profile)
                                   : explain_call(options.call, settings, profile);
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

CLI::Validator known_call() {
  return {[](std::string& word) { return unknown_call(word); }, ""};
}

}  // namespace

void add_explain_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("explain", "Tell how a message or a collective call is carried, its price term by term, and why");
  CLI::Option* call =
      command
          ->add_option("CALL", options->call.call,
                       "a call of all ranks: " + names_of_calls() + "; without one, a message between two ranks")
          ->check(known_call());
  CLI::Option* from = command->add_option(
      "--from", options->from,
      "of a message: the sender's memory, as in cuda:1, or a class of it: managed, pool, shared-pool, vmm");
  CLI::Option* to = command->add_option("--to", options->to, "of a message: the receiver's memory");
  for (CLI::Option* place : {from, to}) place->type_name("KIND")->excludes(call);
  CLI::Option* const size =
      command->add_option("--size", options->size, "of a message: its bytes, such as 1MiB; 8 unless told")
          ->type_name("BYTES")
          ->transform(as_size());
  command->add_flag("--self", options->self, "of a message: from a rank to itself")->excludes(call);
  CLI::Option* synchronous =
      command->add_flag("--synchronous", options->synchronous, "of a message: as by ist_ssend")->excludes(call);
  CLI::Option* const blocks =
      command
          ->add_option("--blocks", options->blocks,
                       "of a message: the sender's bytes lie apart, in blocks of so many: where are they packed?")
          ->type_name("BYTES")
          ->transform(as_size())
          ->excludes(call);
  command
      ->add_option("--into-blocks", options->into_blocks,
                   "of a message: the receiver's do: where are they unpacked, or with --blocks, by one kernel or by two?")
      ->type_name("BYTES")
      ->transform(as_size())
      ->excludes(call);
  command->add_flag("--stream", options->stream, "of a message: put into a CUDA stream, as by ist_send_on")
      ->excludes(call)
      ->excludes(synchronous)
      ->excludes(blocks);
  const auto of_call = [call](CLI::Option* option) { return option->needs(call); };
  of_call(command->add_option("--ranks", options->call.ranks, "of a call: how many take part; 2 unless told"))
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20).description(""));
  of_call(command->add_option("--type", options->call.type, "of a call: the elements, such as float; byte unless told"))
      ->type_name("TYPE");
  of_call(command->add_option("--count", options->call.count,
                              "of a call: how many elements each rank has, or each part; 1 unless told"))
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 62).description(""));
  of_call(command->add_option("--kind", options->call.kind, "of a call: the memory of its buffers"))->type_name("KIND");
  of_call(command->add_flag("--ordered", options->call.ordered, "of a call: its operation does not commute"));
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
