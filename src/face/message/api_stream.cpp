// C calls that put messages into streams.
#include <isthmus/stream.h>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/stream_messages.hpp"

extern "C" {

int ist_send_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm) try {
  const ist::Range range("ist_send_on");
  const ist::Data data{buffer, count, type};
  return ist::told("ist_send_on", ist::put_one({dest, tag, ist::ChannelSide::sends}, data, stream, comm));
} catch (...) {
  return ist::report_exception("ist_send_on");
}

int ist_recv_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm) try {
  const ist::Range range("ist_recv_on");
  const ist::Data data{buffer, count, type};
  return ist::told("ist_recv_on", ist::put_one({source, tag, ist::ChannelSide::receives}, data, stream, comm));
} catch (...) {
  return ist::report_exception("ist_recv_on");
}

int ist_sendrecv_on(void* stream, ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest, int send_tag,
                    ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source, int recv_tag,
                    ist_comm comm) try {
  const ist::Range range("ist_sendrecv_on");
  const ist::Data out{send_buffer, send_count, send_type}, in{recv_buffer, recv_count, recv_type};
  return ist::told("ist_sendrecv_on",
                   ist::put_both<ist::Data>({{dest, send_tag, ist::ChannelSide::sends}, out},
                                            {{source, recv_tag, ist::ChannelSide::receives}, in}, stream, comm));
} catch (...) {
  return ist::report_exception("ist_sendrecv_on");
}

int ist_prepare_on(void* stream, int partner, int tag, int sides, ist_comm comm) try {
  const ist::Range range("ist_prepare_on");
  return ist::told("ist_prepare_on", ist::prepare_streams(stream, partner, tag, sides, comm, nullptr));
} catch (...) {
  return ist::report_exception("ist_prepare_on");
}
}
