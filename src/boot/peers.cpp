#include "boot/peers.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/log.hpp"
#include "boot/blob.hpp"
#include "boot/interrupt.hpp"
#include "boot/pair_sockets.hpp"
#include "boot/processors.hpp"

namespace ist {
namespace {

// What every rank says about itself.
struct Card {
  std::string host;
  std::string boot_id;
  std::string network;  // identity of the network namespace: abstract addresses are seen only inside it
  std::uint64_t pid = 0;
  std::uint64_t uid = 0;
  std::uint64_t quota_millis = 0;  // thousandths of a processor; 0 if unlimited
  std::vector<int> processors;
  PairAddress address;
  Peers::Words words;
};

std::string first_line(const char* file) {
  std::ifstream stream{file};
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string link_text(const char* link) {
  std::array<char, 256> text{};
  const ssize_t length = ::readlink(link, text.data(), text.size());
  return length > 0 ? std::string{text.data(), static_cast<std::size_t>(length)} : std::string{};
}

Card own_card(const PairAddress& address, const Peers::Words& words) {
  Card card;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  card.host = host.data();
  card.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  card.network = link_text("/proc/self/ns/net");
  card.pid = static_cast<std::uint64_t>(::getpid());
  card.uid = ::geteuid();
  card.quota_millis = static_cast<std::uint64_t>(processor_quota() * 1000.0);
  card.processors = own_processors();
  card.address = address;
  card.words = words;
  return card;
}

std::string write_card(const Card& card) {
  BlobWriter blob;
  blob.text(card.host).text(card.boot_id).text(card.network).number(card.pid).number(card.uid).number(card.quota_millis);
  blob.text(card.address.name).number(card.address.token).text(card.words.about).text(card.words.for_all);
  blob.number(card.processors.size());
  for (const int processor : card.processors) blob.number(static_cast<std::uint64_t>(processor));
  return blob.take();
}

Result<Card> read_card(const std::string& text, std::size_t rank) {
  BlobReader blob{text};
  Card card;
  card.host = blob.text();
  card.boot_id = blob.text();
  card.network = blob.text();
  card.pid = blob.number();
  card.uid = blob.number();
  card.quota_millis = blob.number();
  card.address.name = blob.text();
  card.address.token = blob.number();
  card.words.about = blob.text();
  card.words.for_all = blob.text();
  const std::uint64_t count = blob.number();
  for (std::uint64_t i = 0; i < count && !blob.bad(); ++i) card.processors.push_back(static_cast<int>(blob.number()));
  if (blob.bad() || !blob.at_end())
    return Status{IST_ERR_BOOT, "what rank " + std::to_string(rank) +
                                    " says about itself cannot be read; do all ranks use the same Isthmus?"};
  return card;
}

bool shares_host(const Card& a, const Card& b) {
  if (a.boot_id.empty() || a.boot_id != b.boot_id) return false;
  if (a.network == b.network) return true;
  log::once(log::Level::info, "ranks on " + a.host + " and " + b.host +
                                  " share a kernel but not a network namespace (two containers): they are treated as "
                                  "separate hosts");
  return false;
}

// Seen alike by every rank, before any of them connects.
Status check_users(const std::vector<Card>& cards) {
  for (std::size_t a = 0; a < cards.size(); ++a)
    for (std::size_t b = a + 1; b < cards.size(); ++b)
      if (cards[a].uid != cards[b].uid && shares_host(cards[a], cards[b]))
        return {IST_ERR_BOOT, "on " + cards[a].host + ", rank " + std::to_string(a) + " runs as uid " +
                                  std::to_string(cards[a].uid) + " and rank " + std::to_string(b) + " as uid " +
                                  std::to_string(cards[b].uid) + "; the ranks of a job on one host must belong to one user"};
  return {};
}

// Processors' worth of time for all ranks of this host; 0 if unlimited.
double quota_of(const std::vector<Card>& cards, const std::vector<Rank>& local) {
  double quota = 0;
  for (const Rank rank : local)
    quota = std::fmax(quota, static_cast<double>(cards[static_cast<std::size_t>(rank.value)].quota_millis) / 1000.0);
  return quota;
}

std::vector<std::vector<int>> masks_of(const std::vector<Card>& cards, const std::vector<Rank>& local) {
  std::vector<std::vector<int>> masks;
  for (const Rank rank : local) masks.push_back(cards[static_cast<std::size_t>(rank.value)].processors);
  return masks;
}

int share_of_processors(const std::vector<Card>& cards, const std::vector<Rank>& local, Rank mine) {
  const auto place = static_cast<std::size_t>(std::find(local.begin(), local.end(), mine) - local.begin());
  const int each = processors_each(masks_of(cards, local), place);
  const double quota = quota_of(cards, local);
  if (quota <= 0) return each;
  return std::max(1, std::min(each, static_cast<int>(quota / static_cast<double>(local.size()))));
}

Status connect_all(std::vector<FileDescriptor>& sockets, const std::vector<Card>& cards, const std::vector<Rank>& local,
                   Rank mine, PairListener& listener, double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  std::vector<Rank> higher;
  Status first;
  // Each waits only for lower ranks here, so that no circle of waiting ranks can close.
  for (const Rank peer : local) {
    if (peer > mine) higher.push_back(peer);
    if (peer >= mine) continue;
    auto socket = connect_pair(mine, peer, cards[static_cast<std::size_t>(peer.value)].address, deadline);
    // Those after it wait for this rank all the same.
    if (!socket.ok() && first.ok()) first = socket.status();
    if (socket.ok()) sockets[static_cast<std::size_t>(peer.value)] = std::move(*socket);
  }
  IST_TRY(first);
  auto accepted = listener.accept(higher, deadline);
  if (!accepted.ok()) return accepted.status();
  for (std::size_t i = 0; i < higher.size(); ++i)
    sockets[static_cast<std::size_t>(higher[i].value)] = std::move((*accepted)[i]);
  return {};
}

// Either every rank is connected or every rank knows who is not: nobody is left waiting for a rank that has given up.
Status agree(Boot& boot, const Status& mine) {
  if (!mine.ok() && interrupt::wanted()) return mine;  // who makes the world tells the others
  const auto all = boot.all_gather(mine.text());
  // A rank that gave up may be the reason.
  if (!mine.ok()) return all.ok() ? mine : Status{mine.code(), mine.text() + "; " + all.status().text()};
  if (!all.ok()) return all.status();
  for (std::size_t rank = 0; rank < all->size(); ++rank)
    if (!(*all)[rank].empty()) return {IST_ERR_BOOT, "rank " + std::to_string(rank) + ": " + (*all)[rank]};
  return {};
}

}  // namespace

Result<std::unique_ptr<Peers>> Peers::connect(Boot& boot, const Settings& settings, const Words& given) {
  auto listener = PairListener::open();
  if (!listener.ok()) return listener.status();
  Words words = given;
  if (boot.rank() != Rank{0}) words.for_all.clear();
  const auto blobs = boot.all_gather(write_card(own_card(listener->address(), words)));
  if (!blobs.ok()) return blobs.status();
  std::vector<Card> cards;
  for (std::size_t rank = 0; rank < blobs->size(); ++rank) {
    auto card = read_card((*blobs)[rank], rank);
    if (!card.ok()) return card.status();
    cards.push_back(std::move(*card));
  }
  IST_TRY(check_users(cards));

  std::unique_ptr<Peers> peers{new Peers};
  peers->rank_ = boot.rank();
  peers->heard_ = cards.front().words.for_all;
  const Card& own = cards[static_cast<std::size_t>(boot.rank().value)];
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i];
    const Rank rank{static_cast<std::int32_t>(i)};
    const bool local = rank == peers->rank_ || shares_host(own, card);
    peers->peers_.push_back({rank, card.host, card.boot_id, static_cast<int>(card.pid), local,
                             static_cast<int>(card.processors.size()), card.words.about});
    if (local) peers->local_.push_back(rank);
  }
  peers->oversubscribed_ = are_crowded(masks_of(cards, peers->local_), quota_of(cards, peers->local_));
  peers->processors_ = share_of_processors(cards, peers->local_, peers->rank_);
  peers->sockets_.resize(cards.size());
  peers->waiting_.resize(cards.size());
  IST_TRY(agree(boot, connect_all(peers->sockets_, cards, peers->local_, peers->rank_, *listener, settings.boot_timeout)));
  return peers;
}

}  // namespace ist
