// C calls that put messages of layouts into streams.
#include <isthmus/layout_stream.h>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/stream_messages.hpp"

extern "C" {

int ist_send_layout_on(void* stream, ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag,
                       ist_comm comm) try {
  const ist::Range range("ist_send_layout_on");
  const ist::LaidData data{buffer, count, layout};
  return ist::told("ist_send_layout_on", ist::put_one({dest, tag, ist::ChannelSide::sends}, data, stream, comm));
} catch (...) {
  return ist::report_exception("ist_send_layout_on");
}

int ist_recv_layout_on(void* stream, ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag,
                       ist_comm comm) try {
  const ist::Range range("ist_recv_layout_on");
  const ist::LaidData data{buffer, count, layout};
  return ist::told("ist_recv_layout_on", ist::put_one({source, tag, ist::ChannelSide::receives}, data, stream, comm));
} catch (...) {
  return ist::report_exception("ist_recv_layout_on");
}

int ist_sendrecv_layout_on(void* stream, ist_buffer send_buffer, int64_t send_count, ist_layout send_layout, int dest,
                           int send_tag, ist_buffer recv_buffer, int64_t recv_count, ist_layout recv_layout, int source,
                           int recv_tag, ist_comm comm) try {
  const ist::Range range("ist_sendrecv_layout_on");
  const ist::LaidData out{send_buffer, send_count, send_layout}, in{recv_buffer, recv_count, recv_layout};
  return ist::told("ist_sendrecv_layout_on",
                   ist::put_both<ist::LaidData>({{dest, send_tag, ist::ChannelSide::sends}, out},
                                                {{source, recv_tag, ist::ChannelSide::receives}, in}, stream, comm));
} catch (...) {
  return ist::report_exception("ist_sendrecv_layout_on");
}

int ist_prepare_layout_on(void* stream, int64_t count, ist_layout layout, int partner, int tag, int sides,
                          ist_comm comm) try {
  const ist::Range range("ist_prepare_layout_on");
  const ist::StreamLayout wanted{count, layout};
  return ist::told("ist_prepare_layout_on", ist::prepare_streams(stream, partner, tag, sides, comm, &wanted));
} catch (...) {
  return ist::report_exception("ist_prepare_layout_on");
}
}
