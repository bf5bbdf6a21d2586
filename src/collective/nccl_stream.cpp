#include "collective/nccl_stream.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/log.hpp"
#include "collective/exchange.hpp"
#include "collective/stream_choice.hpp"

namespace ist {
namespace {

constexpr const char* kOpening = "making NCCL's communicator for calls in streams";

// What a rank tells before NCCL is asked.
struct Hello {
  std::uint64_t ready = 0;
  std::uint64_t identity = 0;  // of the GPU
  nccl::UniqueId id{};         // of rank 0
};

}  // namespace

bool NcclStream::suits(const Communicator& comm, const Combiner* combiner, Bytes bytes) {
  const bool has = comm.nccl_team() != nullptr && (combiner == nullptr || nccl_knows(*combiner));
  return choose_in_stream({comm.size(), bytes, true, has}) == StreamWay::nccl;
}

Status NcclStream::lost() const {
  const Communicator& twin = team_->twin();
  const AbortBoard& board = twin.engine().parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return twin.engine().died(dead);
  for (int member = 0; member < twin.size(); ++member)
    if (board.fate(twin.to_world(member)) != AbortBoard::Fate::present) return twin.engine().gone(twin.to_world(member));
  return {};
}

Status NcclStream::wait_for_opening(const Communicator& comm) {
  Engine& engine = comm.engine();
  Patience patience{engine, [] { return false; }};
  while (true) {
    bool moved = false;
    {
      const std::lock_guard lock(engine.lock());
      moved = engine.progress();
      IST_TRY(lost());
      const auto opened = team_->opened();
      if (!opened.ok()) return opened.status();
      if (*opened) return {};
    }
    patience.after_look_at_words(moved);
  }
}

Status NcclStream::open(const Communicator& comm, int device) {
  off_ = true;  // until it is there on all ranks
  Nccl& nccl = *comm.nccl();
  {
    auto made = std::make_shared<NcclTeam>(nccl, comm.engine(), comm.scope(), comm.name(), comm.machine(), 1);
    const std::lock_guard lock(comm.engine().lock());
    team_ = std::move(made);
  }
  Hello mine;
  mine.identity = nccl.identity(device);
  Status wrong;
  if (comm.rank() == 0) {
    const auto id = team_->make_id();
    wrong = id.ok() ? Status{} : id.status();
    if (id.ok()) mine.id = *id;
  }
  mine.ready = wrong.ok() ? 1 : 0;
  std::vector<Hello> all;
  IST_TRY(exchange(comm, kOpening, mine, all));
  if (all[0].ready != 0) {
    std::vector<std::uint64_t> identities;
    for (const Hello& one : all) identities.push_back(one.identity);
    {
      const std::lock_guard lock(comm.engine().lock());
      wrong = team_->begin_opening(device, all[0].id, std::move(identities), nullptr);
    }
    if (wrong.ok()) wrong = wait_for_opening(comm);
  } else if (wrong.ok()) {
    wrong = {IST_ERR_DEVICE, "rank 0 could not begin to make a communicator of NCCL's"};
  }
  std::vector<std::uint32_t> codes;
  const Status told = exchange(comm, kOpening, static_cast<std::uint32_t>(wrong.code()), codes);
  const bool everywhere = told.ok() && std::all_of(codes.begin(), codes.end(), [](std::uint32_t code) { return code == 0; });
  if (!everywhere && wrong.ok()) wrong = {IST_ERR_DEVICE, "another rank could not make its communicator of NCCL's"};
  off_ = !everywhere;
  {
    const std::lock_guard lock(comm.engine().lock());
    team_->end_opening(everywhere);
    if (!everywhere) team_->break_off(wrong);
  }
  const std::string which = "collective calls in streams of communicator \"" + comm.name() + "\"";
  if (everywhere)
    log::write(log::Level::info, which + " from " + std::to_string(nccl_in_stream_from(comm.size()).value >> 20U) +
                                     " MiB on go by NCCL " + nccl.api().version_text());
  else
    log::once(log::Level::warning, wrong.text() + "; long " + which + " go by kernels, in pieces");
  return told;
}

// Whoever returned earlier might put into the stream what NCCL's kernel is to come before.
Status NcclStream::put(const NcclWork& work, std::uint64_t stream) {
  Engine& engine = team_->twin().engine();
  Patience patience{engine, [] { return false; }};
  for (bool begun = false;; begun = true) {
    bool moved = false;
    {
      const std::lock_guard lock(engine.lock());
      IST_TRY(team_->broken());
      if (!begun) IST_TRY(team_->put(work, stream));
      moved = engine.progress();
      IST_TRY(lost());
      const auto started = team_->started();
      if (!started.ok()) return started.status();
      if (*started) {
        IST_TRY(team_->remember(stream));
        engine.nccl_traffic().sent_by(Way::nccl).add(work.send.size);
        engine.nccl_traffic().received_by(Way::nccl).add(work.recv.size);
        return {};
      }
    }
    patience.after_look_at_words(moved);
  }
}

void NcclStream::break_off(Engine& engine, const Status& why) {
  const std::lock_guard lock(engine.lock());
  if (team_) team_->break_off(why);
}

void NcclStream::retire(Engine& engine) {
  const std::lock_guard lock(engine.lock());
  if (!team_) return;
  team_->retire();
  static_cast<void>(team_->parted());
}

Status NcclStream::end(Engine& engine) {
  const std::lock_guard lock(engine.lock());
  if (!team_) return {};
  if (team_->busy())
    team_->break_off({IST_ERR_PENDING, "another rank did not come, or this one's stream was not waited for"});
  return team_->given_up();
}

}  // namespace ist
