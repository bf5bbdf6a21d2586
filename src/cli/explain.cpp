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
#include "layout/extent.hpp"
#include "path/shm/pair_slots.hpp"
#include "path/shm/peer_memory.hpp"
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
  int ranks = 2;
  bool ordered = false;
  bool self = false;
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

// One way that there is, or would be.
struct Way {
  std::string name;
  std::string meaning;
  std::optional<Bill> price;  // none: it is not chosen by its price
  std::string refused;        // why not; empty: possible
  bool chosen = false;
};

struct Answer {
  std::string question;  // "1 MiB from host to host"
  std::string choice;
  std::string remark;
  std::vector<Way> ways;
};

Json json_of(const Answer& answer, const Profile& profile) {
  Json ways = Json::array();
  for (const Way& way : answer.ways) {
    Json entry{{"name", way.name}, {"meaning", way.meaning}, {"chosen", way.chosen}};
    if (way.refused.empty() && way.price) entry["seconds"] = way.price->seconds();
    if (way.price) {
      entry["terms"] = Json::array();
      for (const Term& term : way.price->terms()) entry["terms"].push_back({{"name", term.name}, {"seconds", term.seconds}});
    }
    if (!way.refused.empty()) entry["refused"] = way.refused;
    ways.push_back(std::move(entry));
  }
  return {{"question", answer.question},       {"choice", answer.choice},   {"remark", answer.remark},
          {"measured", profile.measured != 0}, {"numbers", profile.source}, {"ways", std::move(ways)}};
}

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", seconds * 1e6);
  return text.data();
}

std::string terms_of(const Bill& price) {
  std::string text;
  for (const Term& term : price.terms())
    if (term.seconds != 0) text += (text.empty() ? "" : " + ") + microseconds(term.seconds) + " " + term.name;
  return text;
}

std::string text_of(const Answer& answer, const Profile& profile) {
  std::string text = answer.question + ": " + answer.choice + "\n";
  text += profile.measured != 0 ? "numbers: measured, " + profile.source + "\n"
                                : "numbers: built in; isthmus model fit measures those of this machine\n";
  text += "\n    price us  way\n";
  for (const Way& way : answer.ways) {
    std::array<char, 64> line{};
    const bool priced = way.refused.empty() && way.price;
    std::snprintf(line.data(), line.size(), "%c%11s  %-18s  ", way.chosen ? '*' : ' ',
                  priced ? microseconds(way.price->seconds()).c_str() : "-", way.name.c_str());
    text += line.data() +
            (priced                ? terms_of(*way.price)
             : way.refused.empty() ? way.meaning
                                   : "refused: " + way.refused) +
            "\n";
  }
  if (!answer.remark.empty()) text += "\n" + answer.remark + "\n";
  return text;
}

// Long messages between host buffers may be read where they lie.
Way single_copy(const Settings& settings, const Options& options, bool by_ring, bool on_host) {
  Way way{"single copy",
          "tried beside the ring, message by message, until one is known to be quicker for this size",
          {},
          "",
          false};
  if (!on_host) {
    way.refused = "only between host buffers";
  } else if (options.self) {
    way.refused = "within a process one copy is what direct does";
  } else if (!by_ring) {
    way.refused = "the message needs no announcing";
  } else if (settings.single_copy == "never") {
    way.refused = "ISTHMUS_SINGLE_COPY is never";
  } else if (const Status possible = PeerMemory::possible(); !possible.ok()) {
    way.refused = possible.text();
  } else if (settings.single_copy == "always") {
    way.meaning = "ISTHMUS_SINGLE_COPY is always";
    way.chosen = true;
  }
  return way;
}

// Both sides on one device, and too little to copy for it.
bool takes_turns(const Options& options, const Place& from, const Place& to) {
  return from.kind == IST_KIND_CUDA && to.kind == IST_KIND_CUDA && from.device != Place::kAnyDevice &&
         from.device == to.device && Bytes{options.size} < kLeastWithinDevice;
}

// Page-locked host memory on one side, and CUDA memory of another process on the other.
bool copied_by_device(const Options& options, const Settings& settings, const Place& from, const Place& to) {
  return !options.self && settings.device_ipc != "never" && (from.pinned() || to.pinned()) &&
         (from.kind == IST_KIND_CUDA || to.kind == IST_KIND_CUDA);
}

// As the engine decides it, where the driver lends the memory and the message is not the first: until its memory is open, the
// others carry it.
bool lent(const Options& options, const Settings& settings, const Place& from, const Place& to) {
  return from.kind == IST_KIND_CUDA && to.kind == IST_KIND_CUDA && !options.self && options.size > 0 &&
         settings.device_ipc != "never" && !takes_turns(options, from, to);
}

Answer explain_message(const Options& options, const Settings& settings, const Profile& profile) {
  const Place from = Place::read(options.from);
  const Place to = Place::read(options.to);
  const MessageShape shape{
      Bytes{options.size},  static_cast<KindId>(from.kind),
      options.self,         options.self ? Bytes{PairSlot::kPayload} : pair_slot_limit(settings.eager_limit, 2),
      settings.eager_limit, lent(options, settings, from, to)};
  const ist_carrier chosen = choose(shape, profile.message);
  const std::string between = options.self ? " of one rank" : " of another rank on this machine";
  Answer answer{
      in_words(shape.bytes) + " from " + from.text() + " to " + to.text() + between, ist_carrier_name(chosen), "", {}};
  const bool by_lock = chosen == IST_CARRIER_RING && copied_by_device(options, settings, from, to);
  for (const OfferedCarrier& offer : offers(shape, profile.message)) {
    const char* why = offer.price.refused();
    if (why && offer.carrier == IST_CARRIER_DEVICE && settings.device_ipc == "never") why = "ISTHMUS_DEVICE_IPC is never";
    if (why && offer.carrier == IST_CARRIER_DEVICE && !options.self && takes_turns(options, from, to))
      why = "two processes on one device take turns, which costs more than the ring below 2 MiB";
    if (by_lock && offer.carrier == IST_CARRIER_DEVICE) {
      answer.ways.push_back(
          {"device", "taken instead of the ring, whatever the price, once the memory is open", {}, "", false});
      continue;
    }
    answer.ways.push_back({ist_carrier_name(offer.carrier), "", offer.price, why ? why : "", offer.carrier == chosen});
  }
  const Way single = single_copy(settings, options, chosen == IST_CARRIER_RING, !from.on_device() && !to.on_device());
  if (single.chosen) {
    answer.choice = single.name;
    for (Way& way : answer.ways) way.chosen = false;
  } else if (single.refused.empty()) {
    answer.choice += " or " + single.name;
  }
  answer.ways.push_back(single);
  if (by_lock) {
    answer.choice = std::string{ist_carrier_name(IST_CARRIER_DEVICE)} + ", else " + answer.choice;
    answer.remark =
        "Between page-locked host memory and what cudaMalloc gave one copy, made by the device, once the side with the host "
        "memory "
        "has opened the other's, which it does beside the first messages.";
  }
  if (chosen == IST_CARRIER_SLOT || chosen == IST_CARRIER_CELL)
    answer.remark = "What fits a slot or a cell is announced only where one copy between devices costs less.";
  if (chosen == IST_CARRIER_DEVICE)
    answer.remark =
        "Into memory that cudaMalloc gave, once the sender has opened it, which it does beside the first messages; those go "
        "as if "
        "there were no such way. Into managed memory, pools and mappings what is longer than a cell goes through a block of "
        "ISTHMUS_BOUNCE_LIMIT, in two copies.";
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
void add_nccl(Answer& answer, const Options& options, const Settings& settings, const CollectiveShape& shape,
              const CollectiveProfile& machine) {
  const ChosenCall call = call_named(options.call);
  const Combiner sum{Reduction::sum, type_named(options.type)};
  Way way{std::string{name_of(Algorithm::nccl)}, std::string{meaning_of(Algorithm::nccl)}, nccl_offer(call, shape).price, "",
          false};
  if (combines(call) && options.ordered) {
    way.refused = "every operation that NCCL has commutes";
  } else if (combines(call) && !nccl_knows(sum)) {
    way.refused = "NCCL cannot add elements of this type";
  } else {
    const auto kinds = Kinds::load(settings.kinds);
    if (!kinds.ok()) throw Failure(kinds.status());
    Nccl nccl{settings, **kinds, shape.ranks};
    nccl.learn(std::vector<std::string>(static_cast<std::size_t>(shape.ranks), nccl.card()));
    const NcclAnswer said = nccl.explain(nullptr, call, combines(call) ? &sum : nullptr, shape.bytes, machine);
    answer.remark += "\nOn this machine: " + said.why + ".";
    way.chosen = said.offered;
  }
  if (way.chosen) {
    for (Way& other : answer.ways) other.chosen = false;
    answer.choice = way.name + ", " + way.meaning + "; else " + answer.choice;
  }
  answer.ways.push_back(std::move(way));
}

Answer explain_call(const Options& options, const Settings& settings, const Profile& profile) {
  const ChosenCall call = call_named(options.call);
  const ist_type type = type_named(options.type);
  const Place place = Place::read(options.kind);
  const auto size = extent(options.count, type);
  if (!size.ok()) throw Failure(2, size.status().text());
  const std::uint64_t parts = in_parts(call) ? static_cast<std::uint64_t>(options.ranks) : 1;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(size->value, parts, &bytes)) throw Failure(2, "so many elements fit no buffer");
  const std::string of = std::to_string(options.count) + " x " + word_for(type);
  Answer answer{options.call + " of " + of + " (" + in_words(*size) +
                    (call == ChosenCall::allgather ? " of each rank) on "
                     : in_parts(call)              ? " for each rank) on "
                                                   : ") on ") +
                    std::to_string(options.ranks) + " ranks, " + place.text() + " memory",
                "nothing is sent",
                "",
                {}};
  if (options.ranks == 1) return answer;
  const CollectiveShape shape{options.ranks, Bytes{bytes}};
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
  if (static_cast<KindId>(place.kind) == KindId::cuda) add_nccl(answer, options, settings, shape, profile.collective);
  return answer;
}

void run_explain(const Options& options) {
  const Settings settings = read_settings();
  const Profile profile = load_profile(settings, log::Level::warning);
  const Answer answer =
      options.call.empty() ? explain_message(options, settings, profile) : explain_call(options, settings, profile);
  if (options.json)
    std::cout << json_of(answer, profile).dump(2) << '\n';
  else
    std::cout << text_of(answer, profile);
}

}  // namespace

void add_explain_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("explain", "Tell how a message or a collective call is carried, its price term by term, and why");
  CLI::Option* call = command->add_option(
      "CALL", options->call, "a call of all ranks: " + calls_with_a_choice() + "; without one, a message between two ranks");
  CLI::Option* from = command->add_option("--from", options->from, "of a message: the sender's memory, as in cuda:1");
  CLI::Option* to = command->add_option("--to", options->to, "of a message: the receiver's memory");
  for (CLI::Option* place : {from, to}) place->type_name("KIND")->excludes(call);
  command->add_option("--size", options->size, "of a message: its bytes, such as 1MiB; 8 unless told")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->excludes(call);
  command->add_flag("--self", options->self, "of a message: from a rank to itself")->excludes(call);
  const auto of_call = [call](CLI::Option* option) { return option->needs(call); };
  of_call(command->add_option("--ranks", options->ranks, "of a call: how many take part; 2 unless told"))
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20).description(""));
  of_call(command->add_option("--type", options->type, "of a call: the elements, such as float; byte unless told"))
      ->type_name("TYPE");
  of_call(command->add_option("--count", options->count,
                              "of a call: how many elements each rank has, or each part; 1 unless told"))
      ->type_name("N")
      ->check(CLI::NonNegativeNumber.description(""));
  of_call(command->add_option("--kind", options->kind, "of a call: the memory of its buffers"))->type_name("KIND");
  of_call(command->add_flag("--ordered", options->ordered, "of a call: its operation does not commute"));
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options] { run_explain(*options); });
}

}  // namespace ist::cli
