// C calls that tell how a message would be carried.
#include <cstring>
#include <set>

#include "collective/nccl.hpp"
#include "collective/stream_choice.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "face/message/layout_calls.hpp"
#include "layout/extent.hpp"

namespace ist {
namespace {

constexpr const char* kExplainCall = "ist_explain";

Status check(const char* text, std::size_t size) {
  if (text == nullptr && size > 0)
    return {IST_ERR_ARGUMENT,
            "text is null, but size is " + std::to_string(size) + "; pass a buffer, or size 0 to ask for it"};
  return {};
}

Sending sending(World& world, const Piece& piece) {
  Sending what;
  what.size = piece.size;
  what.from.kind = piece.kind;
  what.from.memory =
      piece.kind == KindId::opencl ? MemoryClass::device : world.kinds().recognise(piece.address()).memory_class;
  if (piece.kind == KindId::cuda) what.device = world.neighbours().device(piece.device);
  return what;
}

std::string memory_in_words(const Piece& piece, const Sending& what) {
  if (piece.kind == KindId::opencl) return "an OpenCL buffer";
  if (piece.kind == KindId::host) return std::string{name_of(what.from.memory)} + " host memory";
  return std::string{name_of(what.from.memory)} + " memory of cuda device " + std::to_string(piece.device);
}

const char* assumed(KindId kind) {
  if (kind == KindId::host) return "The receiver's buffer is taken to be pageable host memory.";
  if (kind == KindId::opencl) return "The receiver's buffer is taken to be an OpenCL buffer.";
  return "The receiver's buffer is taken to be what cudaMalloc gave, on the device that is its rank's own.";
}

// Memory that kernels in streams read and write?
bool for_streams(const Sending& what) {
  return what.from.kind == KindId::cuda || (what.from.kind == KindId::host && (what.from.memory == MemoryClass::pinned ||
                                                                               what.from.memory == MemoryClass::registered));
}

// Why NCCL has no such call on this communicator; empty: it has.
std::string no_nccl_for(const Communicator& comm, const Combiner* combiner) {
  if (combiner != nullptr && !nccl_knows(*combiner)) return "NCCL cannot add elements of this type";
  if (comm.nccl_team() != nullptr) return "";
  const Status why = comm.nccl() != nullptr ? comm.nccl()->serves(comm.scope().group.get()) : Status{};
  return why.ok() ? "NCCL does not serve these ranks" : why.text();
}

// A call of all ranks on such elements: their sum for everybody or, where they have none, a broadcast.
Explanation call_in_stream(World& world, const Communicator& comm, const Data& data, Bytes bytes) {
  const bool sums = applicable(Reduction::sum, data.type).ok();
  StreamedCall call{sums ? "ist_allreduce_on" : "ist_bcast_on", {comm.size(), bytes, true, false}};
  Combiner combiner;
  combiner.reduction = Reduction::sum;
  combiner.type = data.type;
  std::set<std::string> devices;
  for (int member = 0; member < comm.size(); ++member) devices.insert(world.neighbours().device(comm.to_world(member)));
  call.shape.own_devices = devices.size() == static_cast<std::size_t>(comm.size()) && !devices.contains("");
  call.no_nccl = no_nccl_for(comm, sums ? &combiner : nullptr);
  call.shape.nccl = call.no_nccl.empty();
  if (sums) call.share = 2.0 * (comm.size() - 1) / comm.size();
  Explanation found = explain_in_stream(call);
  found.question = std::string{call.call} + " of " + std::to_string(data.count) + " x " + ist::name_of(data.type) +
                   " on the " + std::to_string(comm.size()) + " ranks of \"" + comm.name() + "\"";
  return found;
}

// What the calls that put it into a stream would do, below the message's own table.
Result<std::string> in_streams(World& world, const Communicator& comm, const Data& data, const Sending& what, Rank to) {
  const auto kind = world.stream_channels().kind();
  auto message = explain_in_stream(world.engine(), world.neighbours(), what, to, kind.ok() ? "" : kind.status().text());
  if (!message.ok()) return message.status();
  message->question = "ist_send_on of it, in a stream";
  std::string text{"\n"};
  text += text_of(*message, "");
  if (!kind.ok() || comm.size() == 1) return text;
  text += '\n';
  text += text_of(call_in_stream(world, comm, data, what.size), "");
  return text;
}

// `elements`: what they are.
Result<std::string> text_for(World& world, Rank to, const Piece& piece, const std::string& elements) {
  const Sending what = sending(world, piece);
  auto found = explain(world.engine(), world.neighbours(), what, to);
  if (!found.ok()) return found.status();
  found->question = elements + " (" + std::to_string(piece.size.value) + " bytes) from " + memory_in_words(piece, what) +
                    " to " + world.engine().parts().names[static_cast<std::size_t>(to.value)];
  if (!found->remark.empty()) found->remark += '\n';
  found->remark += assumed(piece.kind);
  if (world.engine().lies_in_heap(piece) && to != world.engine().rank())
    found->remark +=
        " A send that does not block (ist_isend) is copied once, from where it lies, since ranks share memory of "
        "ist_memory_alloc; below 128 KiB where slots do not take it, or a message to that rank came from there lately.";
  return text_of(*found, world.numbers());
}

constexpr const char* kToNobody = "a message to IST_PROC_NULL: nothing is sent\n";

Result<std::string> text_for(const Data& data, int dest, ist_comm comm) {
  const auto to = destination(comm, dest, 0);
  if (!to.ok()) return to.status();
  const auto piece = to_piece(*to->world, data);
  if (!piece.ok()) return piece.status();
  if (dest == IST_PROC_NULL) return std::string{kToNobody};
  World& world = *to->world;
  auto told = text_for(world, Rank{to->rank}, *piece, std::to_string(data.count) + " x " + ist::name_of(data.type));
  if (!told.ok()) return told;
  const std::string text = std::move(*told);
  const Sending what = sending(world, *piece);
  if (!for_streams(what)) return text;
  const auto more = in_streams(world, *to->comm, data, what, Rank{to->rank});
  return more.ok() ? text + *more : Result<std::string>{more.status()};
}

// Which ways there are to bring them together, where there is more than one.
Result<std::string> packing_in_words(World& world, const LaidOut& laid, Rank to) {
  const PackWork& work = laid.work;
  if (work.memory.kind == KindId::host)
    return std::string{
        "They are packed by the processor into host memory of the library's, which is sent as follows; the receiver unpacks "
        "if its layout is not contiguous.\n"};
  const std::string block = " into memory of the library's on the same device";
  const auto by = [](bool rows) {
    return std::string{rows ? "They are packed by copies of rows, which a copy engine makes,"
                            : "They are packed by one kernel"};
  };
  Sending what = sending(world, work.packed);
  MessageShape message;
  message.bytes = what.size;
  const PackedShape shape = packed_shape(work, world.kinds().find(work.memory.kind)->packing(), message);
  if (to == world.engine().rank())
    return by(rows_within_device(shape, world.engine().parts().machine)) + block +
           ", which is sent as follows; the receiver unpacks if its layout is not contiguous.\n";
  const char* const no_slots = [&] {
    const std::lock_guard lock(world.engine().lock());
    return world.engine().refuses_slots(work, to);
  }();
  const auto tables =
      explain_packing(world.engine(), world.neighbours(), what, to, {shape.width, shape.rows, shape.no_rows, no_slots});
  if (!tables.ok()) return tables.status();
  const std::string& choice = (*tables)[0].choice;
  const bool link = choice.ends_with("link");
  const bool slots = choice.ends_with("slots");
  const std::string how = by(choice.starts_with("rows"));
  std::string text = link ? how +
                                " straight into the receiver's memory, once that is open, which is "
                                "done beside the first messages; those are packed into memory of the library's on the same "
                                "device, and that is sent as follows."
                     : slots
                         ? (choice.starts_with("rows") ? how : std::string{"They are packed by a kernel for each slot"}) +
                               " straight into the slots of the ring that leads to the receiver."
                         : how + block + ", which is sent as follows.";
  text += " The receiver unpacks if its layout is not contiguous.";
  if (link && lies_apart(work))
    text +=
        " If that is strided, too, and it costs less, one kernel there moves the bytes from where they are to where they "
        "belong, "
        "once this memory is open to it.";
  text += "\n";
  for (const Explanation& table : *tables) text += "\n" + text_of(table, world.numbers());
  return text + "\n";
}

// How the bytes come together, and then how they go.
Result<std::string> text_for(const LaidData& data, int dest, ist_comm comm) {
  const auto to = destination(comm, dest, 0);
  if (!to.ok()) return to.status();
  World& world = *to->world;
  const auto laid = lay(world, data, false);
  if (!laid.ok()) return laid.status();
  if (dest == IST_PROC_NULL) return std::string{kToNobody};
  const auto named = layout_of(data.layout);
  if (!named.ok()) return named.status();
  const std::string elements = std::to_string(data.count) + " x " + named->made_by;
  if (const auto whole = in_one_piece(*laid)) {
    auto text = text_for(world, Rank{to->rank}, *whole, elements);
    return text.ok() ? "The layout's bytes lie in one piece: nothing is packed.\n" + *text : text;
  }
  IST_TRY(can_pack(world.kinds(), laid->memory));
  const auto block = block_for(world.engine(), work_of(*laid));
  if (!block.ok()) return block.status();
  auto text = text_for(world, Rank{to->rank}, (*block)->work.packed, elements + ", packed");
  if (!text.ok()) return text;
  auto packing = packing_in_words(world, **block, Rank{to->rank});
  if (!packing.ok()) return packing;
  return "Of the layout there are " + described(laid->shape->form) + ".\n" + *packing + *text;
}

int hand_text(const char* call, const Result<std::string>& found, char* text, std::size_t size, std::size_t* needed) {
  if (!found.ok()) return report(in_call(call, found.status()));
  if (size > 0) text[found->copy(text, size - 1)] = '\0';
  if (needed != nullptr) *needed = found->size() + 1;
  return IST_OK;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_explain_layout(ist_buffer buffer, int64_t count, ist_layout layout, int dest, ist_comm comm, char* text, size_t size,
                       size_t* needed) try {
  if (const ist::Status wrong = ist::check(text, size); !wrong.ok())
    return ist::report(ist::in_call("ist_explain_layout", wrong));
  return ist::hand_text("ist_explain_layout", ist::text_for(ist::LaidData{buffer, count, layout}, dest, comm), text, size,
                        needed);
} catch (...) {
  return ist::report_exception("ist_explain_layout");
}

int ist_explain(ist_buffer buffer, int64_t count, ist_type type, int dest, ist_comm comm, char* text, size_t size,
                size_t* needed) try {
  if (const ist::Status wrong = ist::check(text, size); !wrong.ok())
    return ist::report(ist::in_call(ist::kExplainCall, wrong));
  return ist::hand_text(ist::kExplainCall, ist::text_for(ist::Data{buffer, count, type}, dest, comm), text, size, needed);
} catch (...) {
  return ist::report_exception(ist::kExplainCall);
}
}
