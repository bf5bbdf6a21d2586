// C call that tells how a message would be carried.
#include <cstring>

#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
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

Result<std::string> text_for(const Data& data, int dest, ist_comm comm) {
  const auto to = destination(comm, dest, 0);
  if (!to.ok()) return to.status();
  const auto piece = to_piece(*to->world, data);
  if (!piece.ok()) return piece.status();
  if (dest == IST_PROC_NULL) return std::string{"a message to IST_PROC_NULL: nothing is sent\n"};
  World& world = *to->world;
  const Sending what = sending(world, *piece);
  auto found = explain(world.engine(), world.neighbours(), what, Rank{to->rank});
  if (!found.ok()) return found.status();
  found->question = std::to_string(data.count) + " x " + ist::name_of(data.type) + " (" + std::to_string(piece->size.value) +
                    " bytes) from " + memory_in_words(*piece, what) + " to " +
                    world.engine().parts().names[static_cast<std::size_t>(to->rank)];
  if (!found->remark.empty()) found->remark += '\n';
  found->remark += assumed(piece->kind);
  return text_of(*found, world.numbers());
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_explain(ist_buffer buffer, int64_t count, ist_type type, int dest, ist_comm comm, char* text, size_t size,
                size_t* needed) try {
  if (const ist::Status wrong = ist::check(text, size); !wrong.ok())
    return ist::report(ist::in_call(ist::kExplainCall, wrong));
  const auto found = ist::text_for({buffer, count, type}, dest, comm);
  if (!found.ok()) return ist::report(ist::in_call(ist::kExplainCall, found.status()));
  if (size > 0) text[found->copy(text, size - 1)] = '\0';
  if (needed != nullptr) *needed = found->size() + 1;
  return IST_OK;
} catch (...) {
  return ist::report_exception(ist::kExplainCall);
}
}
