// What is known of a message before it is sent, for those who ask how it would be carried.
#include "base/log.hpp"
#include "request/mail.hpp"

namespace ist {

Result<ExplainedMessage> Engine::about(const MessageEnd& from, Bytes size, Rank dest) {
  IST_TRY(check_peer(dest));
  const PeerState& to = peer(dest);
  ExplainedMessage message;
  message.bytes = size;
  message.from = from;
  message.same_process = to.link->same_process();
  message.slot_limit = to.slot_limit;
  message.slot_limit_again = to.slot_limit_again;
  message.slots_up_to = to.slots_up_to;
  message.cell_limit = to.link->cell_limit;
  message.single_copy = parts_.settings.single_copy;
  message.readable = [link = to.link] { return link->why_not_read(); };
  message.last_was_lent = to.lends;
  message.worker_limit = parts_.kinds.worker_limit(from.kind, from.memory);
  if (mail_) message.mailbox_limit = mail_->limit(dest);
  if (parts_.settings.device_ipc == "never")
    message.not_lent = "ISTHMUS_DEVICE_IPC is never; leave it out";
  else if (from.kind != KindId::host && lending(*to.link, from.kind) == nullptr)
    message.not_lent = "no process opens memory of this kind of another one's";
  return message;
}

// What goes from device to device through the ring, though the setting alone keeps it from one copy. Not what would fit a cell, and was
// announced only because its buffer was not ready.
void Engine::warn_of_host_memory(const Operation& operation) const {
  const Link& link = *peers_[static_cast<std::size_t>(operation.peer.value)].link;
  if (parts_.settings.device_ipc != "never" || !link.lends() || operation.piece.size <= link.cell_limit) return;
  MemoryKind* kind = parts_.kinds.find(operation.piece.kind);
  if (kind->lending() == nullptr) return;
  log::once(log::Level::warning, "messages between " + std::string{kind->name()} +
                                     " devices of two ranks go through host memory, which is slower, because "
                                     "ISTHMUS_DEVICE_IPC is never; leave it out to have them copied straight");
}

}  // namespace ist
