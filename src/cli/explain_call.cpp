// What isthmus explain tells of collective calls.
#include "cli/explain_call.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "cli/bench_options.hpp"
#include "cli/failure.hpp"
#include "collective/nccl.hpp"
#include "collective/nccl_call.hpp"
#include "collective/stream_choice.hpp"
#include "layout/extent.hpp"
#include "path/shm/lane.hpp"

namespace ist::cli {
namespace {

constexpr std::array<std::pair<const char*, ChosenCall>, kChosenCalls + 1> kCalls{
    {{"allgather", ChosenCall::allgather},
     {"allreduce", ChosenCall::allreduce},
     {"alltoall", ChosenCall::alltoall},
     {"barrier", ChosenCall::barrier},
     {"bcast", ChosenCall::bcast},
     {"exscan", ChosenCall::scan},
     {"gather", ChosenCall::gather},
     {"reduce", ChosenCall::reduce},
     {"reduce_scatter", ChosenCall::reduce_scatter},
     {"scan", ChosenCall::scan},
     {"scatter", ChosenCall::scatter}}};

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

std::optional<ChosenCall> call_named(const std::string& word) {
  for (const auto& [name, call] : kCalls)
    if (word == name) return call;
  return std::nullopt;
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

bool combines(ChosenCall call) {
  return call == ChosenCall::reduce || call == ChosenCall::allreduce || call == ChosenCall::reduce_scatter ||
         call == ChosenCall::scan;
}

// Has each rank, or for each rank, so many elements? Else all have one vector.
bool in_parts(ChosenCall call) {
  return call == ChosenCall::allgather || call == ChosenCall::reduce_scatter || call == ChosenCall::alltoall ||
         call == ChosenCall::gather || call == ChosenCall::scatter;
}

// Beside the ways by messages: what a world would decide whose ranks all have this machine's GPUs and this NCCL.
void add_nccl(Explanation& answer, const CallQuestion& question, const Settings& settings, const CollectiveShape& shape,
              const CollectiveProfile& machine) {
  const ChosenCall call = *call_named(question.call);
  const Combiner sum{Reduction::sum, type_named(question.type)};
  ExplainedWay way{std::string{name_of(Algorithm::nccl)}, std::string{meaning_of(Algorithm::nccl)},
                   nccl_offer(call, shape).price, "", false};
  if (combines(call) && question.ordered) {
    way.refused = "every operation that NCCL has commutes";
  } else if (combines(call) && !nccl_knows(sum)) {
    way.refused = "NCCL cannot add elements of this type";
  } else {
    const auto kinds = Kinds::load(settings);
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

// "gather of 4 x float (16 B of each rank)"
std::string asked_of(const CallQuestion& question, ChosenCall call, Bytes size) {
  if (call == ChosenCall::barrier) return question.call;
  const bool gathers = call == ChosenCall::allgather || call == ChosenCall::gather;
  return question.call + " of " + std::to_string(question.count) + " x " + word_for(type_named(question.type)) + " (" +
         in_words(size) +
         (gathers          ? " of each rank)"
          : in_parts(call) ? " for each rank)"
                           : ")");
}

Explanation by_ranks(const CallQuestion& question, const Settings& settings, Profile profile) {
  const ChosenCall call = *call_named(question.call);
  const ist_type type = type_named(question.type);
  const Place place = Place::read(question.kind);
  const auto size = extent(call == ChosenCall::barrier ? 0 : question.count, type);
  if (!size.ok()) throw Failure(2, size.status().text());
  const std::uint64_t parts = in_parts(call) ? static_cast<std::uint64_t>(question.ranks) : 1;
  std::int64_t in_all = 0;
  if (__builtin_mul_overflow(size->value, parts, &in_all)) throw Failure(2, "so many elements fit no buffer");
  Explanation answer{
      asked_of(question, call, *size) + " on " + std::to_string(question.ranks) + " ranks, " + place.text() + " memory",
      "nothing is sent",
      "",
      {}};
  if (question.ranks == 1) return answer;
  const CollectiveShape shape{question.ranks, Bytes{static_cast<std::uint64_t>(in_all)}};
  know_slots(profile, settings, question.ranks);
  // As the ranks of one host would, of whom some have a device where the buffers are on one.
  profile.collective.shared_up_to = std::min(profile.collective.shared_up_to, static_cast<double>(kLaneRoom.value));
  if (static_cast<KindId>(place.kind) == KindId::cuda) profile.collective = by_gpus(profile.collective);
  const Algorithm chosen = choose(call, shape, !question.ordered, profile.collective);
  answer.choice = std::string{name_of(chosen)} + ", " + std::string{meaning_of(chosen)};
  for (const Offered& offer : offers(call, shape, !question.ordered, profile.collective)) {
    const char* why = offer.price.refused();
    answer.ways.push_back({std::string{name_of(offer.algorithm)}, std::string{meaning_of(offer.algorithm)}, offer.price,
                           why ? why : "", offer.algorithm == chosen});
  }
  answer.remark =
      "The choice follows from what all ranks share: call, type, count, ranks, whether the operation commutes, and the\n"
      "numbers of rank 0, which all ranks are told when the world is made. The kind of memory changes nothing of it";
  answer.remark += nccl_may_carry(call) ? ", but that\n"
                                          "NCCL may have the call where the buffers of all ranks are CUDA memory, each on a "
                                          "GPU of its own."
                                        : ".";
  const auto kind = static_cast<KindId>(place.kind);
  if ((kind == KindId::cuda || kind == KindId::opencl) && combines(call))
    answer.remark += combined_on_host(kind == KindId::cuda, profile.message);
  if (kind == KindId::cuda && nccl_may_carry(call)) add_nccl(answer, question, settings, shape, profile.collective);
  return answer;
}

// Why NCCL has no such call, among ranks that each have this machine's GPUs and this NCCL; and whether there is a GPU for each.
std::string no_nccl(const CallQuestion& question, const StreamedName& call, const Settings& settings, bool& own_devices) {
  const auto kinds = Kinds::load(settings);
  if (!kinds.ok()) throw Failure(kinds.status());
  const MemoryKind* const cuda = (*kinds)->find(KindId::cuda);
  own_devices = cuda == nullptr || cuda->devices().size() >= static_cast<std::size_t>(question.ranks);
  if (call.barrier) return "NCCL has no barrier";
  if (call.reduces && !nccl_knows({Reduction::sum, type_named(question.type)}))
    return "NCCL cannot add elements of this type";
  Nccl nccl{settings, **kinds, question.ranks};
  nccl.learn(std::vector<std::string>(static_cast<std::size_t>(question.ranks), nccl.card()));
  return nccl.serves(nullptr).text();
}

Explanation explain_streamed(const CallQuestion& question, const StreamedName& call, const Settings& settings) {
  const auto size = extent(call.barrier ? 0 : question.count, type_named(question.type));
  if (!size.ok()) throw Failure(2, size.status().text());
  StreamedCall asked{call.name, {question.ranks, *size, true, false}};
  asked.no_nccl = no_nccl(question, call, settings, asked.shape.own_devices);
  asked.shape.nccl = asked.no_nccl.empty();
  if (call.reduces && call.to_all) asked.share = 2.0 * (question.ranks - 1) / question.ranks;
  Explanation answer = explain_in_stream(asked);
  answer.question = std::string{call.name} +
                    (call.barrier ? ""
                                  : " of " + std::to_string(question.count) + " x " + word_for(type_named(question.type)) +
                                        " (" + in_words(*size) + ")") +
                    " on " + std::to_string(question.ranks) + " ranks, cuda memory";
  return answer;
}

}  // namespace

std::string names_of_calls() {
  std::string names;
  for (const auto& [name, call] : kCalls) names += (names.empty() ? "" : ", ") + std::string{name};
  return names + "; in streams: allreduce_on, barrier_on, bcast_on, reduce_on";
}

std::string unknown_call(const std::string& word) {
  if (call_named(word) || streamed(word) != nullptr) return "";
  return "unknown call \"" + word + "\": expected one of " + names_of_calls() + "; or else an option before it is misspelt";
}

Explanation explain_call(const CallQuestion& question, const Settings& settings, const Profile& profile) {
  if (const StreamedName* const call = streamed(question.call)) return explain_streamed(question, *call, settings);
  return by_ranks(question, settings, profile);
}

}  // namespace ist::cli
