// What two ranks tell each other of a channel of streams, once, where the host's memory runs out on the way.
#include <cstring>

#include "face/message/stream_channels.hpp"
#include "little_memory.hpp"
#include "memory/meetings.hpp"
#include "staged_engine.hpp"
#include "staged_kind.hpp"

namespace ist::test {
namespace {

class InventedEnd final : public ChannelEnd {
 public:
  explicit InventedEnd(ChannelSide side) { card_.side = side; }
  const ChannelCard& card() const override { return card_; }
  int device() const override { return 0; }
  Status connect(const ChannelCard&) override { return {}; }
  Status connect_to_nobody(const ChannelCard&) override { return {}; }
  bool connected() const override { return true; }
  std::uint64_t came() const override { return 0; }
  std::optional<ChannelTrouble> trouble() override { return std::nullopt; }
  std::vector<UnlikeNotes> unlike() override { return {}; }

 private:
  ChannelCard card_;
};

class ChannelKind final : public StagedKind, public Channels {
 public:
  ChannelKind() : StagedKind(KindId::cuda) {}
  Channels* channels() override { return this; }
  Result<StreamPlace> find_stream(std::uint64_t stream, const Piece*, bool) override {
    return StreamPlace{stream, 0, false, true};
  }
  Result<std::uint64_t> admit(const Piece& piece, int) override { return piece.object; }
  void use_streams() override {}
  bool settled() override { return true; }
  Result<std::unique_ptr<ChannelEnd>> open(ChannelSide side, int, Rank, Rank, bool) override {
    return std::unique_ptr<ChannelEnd>{std::make_unique<InventedEnd>(side)};
  }
  Status send(ChannelEnd&, std::uint64_t, std::uint64_t, Bytes) override { return {}; }
  Status receive(ChannelEnd&, std::uint64_t, std::uint64_t, Bytes, bool) override { return {}; }
  Status send_and_receive(std::uint64_t, const Message&, const Message&) override { return {}; }
  Status tell(ChannelEnd&, std::uint64_t, const StreamNote&) override { return {}; }
  Status compare(ChannelEnd&, std::uint64_t, const StreamNote&) override { return {}; }
  Meetings& meetings() override { std::abort(); }
  void interrupt(Rank) override {}
  Status close_all() override { return {}; }
};

class KeepingChannels : public StagedEngine {
 protected:
  KeepingChannels() {
    kinds_->add("channels", Result<std::unique_ptr<MemoryKind>>{std::make_unique<ChannelKind>()});
    make_engine();
    channels_ = std::make_unique<StreamChannels>(*engine_, 0);
  }
  // The other rank's card of that channel.
  void come(std::int32_t tag, ChannelUse use) {
    ChannelCard card;
    card.side = ChannelSide::sends;
    card.use = use;
    Envelope notice;
    notice.type = EnvelopeType::notice;
    notice.context = kContext;
    notice.tag = tag;
    path_->say(Rank{0}, notice, std::as_bytes(std::span{&card, 1}));
  }
  std::size_t said_with(std::int32_t tag) const {
    std::size_t all = 0;
    for (const Envelope& each : link_.all) all += each.type == EnvelopeType::notice && each.tag == tag ? 1 : 0;
    return all;
  }
  NoLink& link_ = path_->only_link();
  std::unique_ptr<StreamChannels> channels_;
};

TEST_F(KeepingChannels, ACardThatThereIsNoMemoryForIsSentOnceThereIs) {
  std::int32_t tag = 0;
  for (const ChannelUse use : {ChannelUse::streams, ChannelUse::queues}) {
    for (int n = 0; n < 6; ++n) {
      come(++tag, use);
      link_.takes = false;
      EXPECT_GT(with_little_memory([this] { engine_->progress(); }), 0);
      link_.takes = true;
      look();
      EXPECT_EQ(1U, said_with(tag)) << "the other rank waits for it, or has it twice";
    }
  }
}

}  // namespace
}  // namespace ist::test
