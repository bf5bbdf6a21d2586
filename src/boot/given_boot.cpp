#include "boot/given_boot.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "boot/gather_hub.hpp"

namespace ist {
namespace {

// In place of a length: this rank has failed and leaves.
constexpr std::uint64_t kGivenUp = ~std::uint64_t{0};
// A blob that is no card of a rank: memory that nobody meant to ask for.
constexpr std::uint64_t kLongest = std::uint64_t{1} << 30;

class GivenBoot final : public Boot {
 public:
  explicit GivenBoot(std::shared_ptr<GivenExchange> exchange) : exchange_(std::move(exchange)) {}
  std::string_view name() const override { return "given"; }
  Rank rank() const override { return Rank{exchange_->rank()}; }
  int size() const override { return exchange_->size(); }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override { return exchange_->all_gather(mine); }

 private:
  std::shared_ptr<GivenExchange> exchange_;
};

}  // namespace

Status GivenExchange::call(const void* mine, void* all, std::size_t bytes) {
  const int error = functions_.all_gather(functions_.context, mine, all, bytes);
  if (error == 0) return {};
  std::array<char, 512> text{};
  if (functions_.error_text) functions_.error_text(functions_.context, error, text.data(), text.size());
  text.back() = 0;
  return {IST_ERR_BOOT, "the program's own exchange between its " + std::to_string(size()) + " ranks (all_gather of " +
                            std::to_string(bytes) + " bytes) failed with " + std::to_string(error) +
                            (text[0] ? std::string{": "} + text.data() : std::string{})};
}

Result<std::vector<std::string>> GivenExchange::all_gather(const std::string& mine) {
  if (!open_)
    return Status{IST_ERR_BOOT, "the exchange that was given for the creation of this world has ended with that call"};
  IST_TRY(failed_);
  const auto ranks = static_cast<std::size_t>(size());
  const std::uint64_t own = mine.size();
  std::vector<std::uint64_t> lengths(ranks);
  failed_ = call(&own, lengths.data(), sizeof own);
  IST_TRY(failed_);
  std::vector<int> gone;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (lengths[rank] > kLongest) gone.push_back(static_cast<int>(rank));
  if (!gone.empty()) {
    failed_ = {IST_ERR_BOOT, ranks_text(gone) + " could not create the world; look for the first error there"};
    return failed_;
  }
  // Every rank the same number of bytes, and never none.
  const std::size_t longest = std::max<std::size_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  std::string padded = mine;
  padded.resize(longest);
  std::string all(longest * ranks, '\0');
  failed_ = call(padded.data(), all.data(), longest);
  IST_TRY(failed_);
  std::vector<std::string> blobs;
  for (std::size_t rank = 0; rank < ranks; ++rank) blobs.push_back(all.substr(rank * longest, lengths[rank]));
  return blobs;
}

Status GivenExchange::agree(const Status& mine) {
  if (mine.ok()) return all_gather("").status();
  // Those that have not failed come to a further exchange, if only to this one; where nobody comes any more, failed_ says so.
  if (failed_.ok()) {
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size()));
    failed_ = call(&kGivenUp, lengths.data(), sizeof kGivenUp);
  }
  return mine;
}

std::unique_ptr<Boot> make_given_boot(std::shared_ptr<GivenExchange> exchange) {
  return std::make_unique<GivenBoot>(std::move(exchange));
}

}  // namespace ist
