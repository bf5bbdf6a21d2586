#include "face/message/stream_calls.hpp"

#include "face/message/errors.hpp"
#include "layout/extent.hpp"

namespace ist {

int told(const char* call, const Status& status) { return status.ok() ? IST_OK : report(in_call(call, status)); }

// Of the kinds that channels know admit() asks everything, and to ask the driver once is enough.
Result<Piece> stream_piece(World& world, const Data& data, bool nobody) {
  const ist_buffer& buffer = data.buffer;
  const bool admitted = (buffer.kind == IST_KIND_CUDA || buffer.kind == IST_KIND_HOST) &&
                        (buffer.flags & ~IST_BUFFER_READY) == 0 && buffer.object != 0;
  if (nobody || !admitted || !world.stream_channels().kind().ok()) {
    auto piece = to_piece(world, data);
    if (piece.ok() && !nobody && piece->kind == KindId::opencl)
      return Status{IST_ERR_KIND,
                    "an OpenCL buffer was given; what is put into streams works on CUDA memory and page-locked host "
                    "memory, use the calls without _on"};
    if (piece.ok()) piece->facts = 0;  // a channel may keep the piece
    return piece;
  }
  const auto size = extent(data.count, data.type);
  if (!size.ok()) return size.status();
  if (*size == Bytes{}) return host_piece(nullptr, Bytes{});
  return Piece{static_cast<KindId>(buffer.kind), buffer.device, buffer.object, Offset{buffer.offset}, *size, buffer.queue};
}

}  // namespace ist
