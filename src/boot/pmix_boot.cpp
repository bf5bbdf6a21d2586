#include "boot/pmix_boot.hpp"

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "base/quiet_thread.hpp"
#include "boot/interrupt.hpp"
#include "boot/pmix_api.hpp"
#include "boot/served_boot.hpp"
#include "boot/variables.hpp"

namespace ist {
namespace {

// The names that servers of versions 2 to 5 use for the address they listen at.
constexpr std::array kServerAddresses{"PMIX_SERVER_URI2",  "PMIX_SERVER_URI21", "PMIX_SERVER_URI3",  "PMIX_SERVER_URI4",
                                      "PMIX_SERVER_URI41", "PMIX_SERVER_URI5",  "PMIX_SERVER_URI51", "PMIX_SERVER_URI"};

constexpr const char* kMeeting = "meeting the other ranks (PMIx_Fence_nb)";

std::string rank_text() {
  return "rank " + text_variable("PMIX_RANK") + " of job \"" + text_variable("PMIX_NAMESPACE") + "\"";
}

// What a thread of PMIx or one that asks PMIx has to say. Shared, since it may come after nobody waits for it any more.
struct Answer {
  std::mutex mutex;
  std::condition_variable arrived;
  bool complete = false;
  pmix::Code code = 0;
  // Written before give(), read after wait().
  pmix::Proc self;
  std::uint32_t number = 0;
  std::vector<std::string> blobs;

  void give(pmix::Code result) {
    const std::lock_guard lock(mutex);
    code = result;
    complete = true;
    arrived.notify_all();
  }
  bool wait(double seconds) { return wait_until(Deadline::after(seconds)); }
  bool wait_until(Deadline deadline) {
    std::unique_lock lock(mutex);
    while (!complete) {
      arrived.wait_for(lock, std::chrono::milliseconds(interrupt::milliseconds(deadline)));
      if (complete) break;
      // Who is asked may itself wait for something: the thread that has the answer must not wait for that.
      lock.unlock();
      const bool ends = interrupt::over(deadline);
      lock.lock();
      if (ends) break;
    }
    return complete;
  }
};
using SharedAnswer = std::shared_ptr<Answer>;

void operation_done(pmix::Code code, void* given) {
  const std::unique_ptr<SharedAnswer> answer{static_cast<SharedAnswer*>(given)};
  (*answer)->give(code);
}

// Calls of PMIx that know no deadline run in a thread of their own; one that never returns stays behind, and the caller
// goes on. `doing` completes the sentence "... within 5.0 s".
Result<SharedAnswer> in_time(double seconds, const std::string& doing, std::function<pmix::Code(Answer&)> call) {
  auto answer = std::make_shared<Answer>();
  // Those that PMIx makes in it inherit its mask of signals.
  auto thread = quiet_thread("asking the PMIx server", [answer, call = std::move(call)] { answer->give(call(*answer)); });
  if (!thread.ok()) return thread.status();
  thread->detach();
  if (answer->wait(seconds)) return answer;
  return Status{IST_ERR_BOOT, rank_text() + ": " + doing + ": the PMIx server did not answer within " +
                                  seconds_text(seconds) +
                                  "; is the program that started this job (mpirun, srun) stopped? ISTHMUS_BOOT_TIMEOUT "
                                  "sets how long to wait"};
}

pmix::Info yes(const char* key) {
  pmix::Info info;
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = pmix::kBool;
  info.value.data.flag = true;
  return info;
}

std::string server_address() {
  for (const char* name : kServerAddresses)
    if (const char* address = std::getenv(name)) return address;
  return "an address that is not told";
}

Status refused(const PmixApi& api, const std::string& step, pmix::Code code) {
  const char* advice = "";
  if (code == pmix::kUnreachable)
    advice = "; is the program that started this job (mpirun, srun) still there? Unset PMIX_NAMESPACE for a world of one";
  if (code == pmix::kPartial)
    advice = "; some ranks of the job ended or gave up before: look for the first error among them";
  return {IST_ERR_BOOT, rank_text() + ": " + step + " failed with " + api.error_name(code) + ", PMIx server at " +
                            server_address() + advice};
}

// The value of `key` that `rank` gave, or that the server tells of the whole job. It belongs to the caller, as PMIx says.
pmix::Code look_up(const PmixApi& api, pmix::Proc whose, std::uint32_t rank, const char* key, std::uint32_t* number,
                   std::string* bytes) {
  whose.rank = rank;
  // A value that is not there is an error at once; otherwise PMIx waits for it without end.
  const pmix::Info now = yes("pmix.immediate");
  pmix::Value* value = nullptr;
  const pmix::Code code = api.PMIx_Get(&whose, key, &now, 1, &value);
  if (code != pmix::kSuccess || value == nullptr) return code;
  if (value->type == pmix::kUint32 && number) *number = value->data.number;
  if (value->type == pmix::kByteObject && value->data.bytes.bytes) {
    if (bytes) bytes->assign(value->data.bytes.bytes, value->data.bytes.size);
    std::free(value->data.bytes.bytes);
  }
  std::free(value);
  return code;
}

class PmixServer final : public JobServer {
 public:
  std::string_view name() const override { return "pmix"; }

 private:
  std::string who() const override { return rank_text(); }

  Status connect(double seconds) override {
    const auto api = PmixApi::get();
    if (!api.ok())
      return {IST_ERR_BOOT,
              "this process is " + who() + ", started through PMIx, but PMIx cannot be used: " + api.status().text()};
    const auto joined = in_time(seconds, "joining the job",
                                [api = *api](Answer& answer) { return api->PMIx_Init(&answer.self, nullptr, 0); });
    if (!joined.ok()) return joined.status();
    if ((*joined)->code != pmix::kSuccess) return refused(**api, "joining the PMIx server (PMIx_Init)", (*joined)->code);
    api_ = *api;
    self_ = (*joined)->self;
    return {};
  }

  Status find_place(double seconds) override {
    const auto size = in_time(seconds, "asking for the number of ranks", [api = api_, self = self_](Answer& answer) {
      return look_up(*api, self, pmix::kEveryRank, "pmix.job.size", &answer.number, nullptr);
    });
    if (!size.ok()) return size.status();
    if ((*size)->code != pmix::kSuccess) return refused(*api_, "asking for the number of ranks (PMIx_Get)", (*size)->code);
    return take_place(self_.rank, (*size)->number, who() + ": the PMIx server");
  }

  Result<std::vector<std::string>> exchange(const ServedRound& round, const std::string& mine) override {
    const std::string key = "isthmus." + std::to_string(round.world) + "." + std::to_string(round.number);
    IST_TRY(offer(key, mine));
    IST_TRY(share(round));
    return collect(round, key, mine);
  }

  // A server takes a process that ends without this for one that failed.
  void leave(bool) override { api_->PMIx_Finalize(nullptr, 0); }

  Status offer(const std::string& key, const std::string& mine) const {
    pmix::Value value;
    value.type = pmix::kByteObject;
    // An empty object is refused by some versions: one byte more, which collect() takes off.
    std::string padded = mine + '.';
    value.data.bytes = {padded.data(), padded.size()};
    const pmix::Code put = api_->PMIx_Put(pmix::kGlobal, key.c_str(), &value);
    if (put != pmix::kSuccess)
      return refused(*api_, "offering " + std::to_string(mine.size()) + " bytes to the other ranks (PMIx_Put)", put);
    const pmix::Code commit = api_->PMIx_Commit();
    if (commit != pmix::kSuccess) return refused(*api_, "offering a value to the other ranks (PMIx_Commit)", commit);
    return {};
  }

  // `answer` hears when every rank has called it.
  Status fence(const SharedAnswer& answer, const pmix::Info* infos, std::size_t count) const {
    auto given = std::make_unique<SharedAnswer>(answer);
    const pmix::Code code = api_->PMIx_Fence_nb(nullptr, 0, infos, count, operation_done, given.get());
    if (code == pmix::kDone) answer->give(pmix::kSuccess);
    if (code == pmix::kDone) return {};
    if (code != pmix::kSuccess) return refused(*api_, kMeeting, code);
    static_cast<void>(given.release());  // operation_done takes it
    return {};
  }

  Status begin_meeting() override {
    meeting_ = std::make_shared<Answer>();
    return fence(meeting_, nullptr, 0);
  }

  Result<bool> met(Deadline deadline) override {
    if (!meeting_->wait_until(deadline)) return false;
    if (meeting_->code != pmix::kSuccess) return refused(*api_, kMeeting, meeting_->code);
    return true;
  }

  Status share(const ServedRound& round) const {
    const pmix::Info collect = yes("pmix.collect");
    auto answer = std::make_shared<Answer>();
    IST_TRY(fence(answer, &collect, 1));
    if (!answer->wait(round.seconds))
      return {IST_ERR_BOOT, who() + ": not all of the " + std::to_string(round.size) +
                                " ranks came to the exchange of addresses within " + seconds_text(round.seconds) +
                                "; has one of them stopped? ISTHMUS_BOOT_TIMEOUT sets how long to wait"};
    if (answer->code != pmix::kSuccess) return refused(*api_, kMeeting, answer->code);
    return {};
  }

  Result<std::vector<std::string>> collect(const ServedRound& round, const std::string& key, const std::string& mine) const {
    // What the thread needs is copied: it may outlive this exchange.
    const auto gathered =
        in_time(round.seconds, "collecting what the ranks offered",
                [api = api_, self = self_, ranks = static_cast<std::uint32_t>(round.size), key](Answer& answer) {
                  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                    std::string blob(1, '.');
                    const pmix::Code code =
                        rank == self.rank ? pmix::kSuccess : look_up(*api, self, rank, key.c_str(), nullptr, &blob);
                    if (code != pmix::kSuccess) return code;
                    if (blob.empty()) return pmix::kNotFound;
                    blob.pop_back();
                    answer.blobs.push_back(std::move(blob));
                  }
                  return pmix::kSuccess;
                });
    if (!gathered.ok()) return gathered.status();
    std::vector<std::string> blobs = std::move((*gathered)->blobs);
    if ((*gathered)->code != pmix::kSuccess)
      return offered_nothing(static_cast<int>(blobs.size()), round, ": " + api_->error_name((*gathered)->code));
    blobs[self_.rank] = mine;
    return blobs;
  }

  const PmixApi* api_ = nullptr;
  pmix::Proc self_;
  SharedAnswer meeting_;
};

}  // namespace

bool pmix_environment() {
  if (!std::getenv("PMIX_RANK") || !std::getenv("PMIX_NAMESPACE")) return false;
  for (const char* name : kServerAddresses)
    if (std::getenv(name)) return true;
  return false;
}

Result<std::unique_ptr<Boot>> join_pmix(const Settings& settings) { return join_served<PmixServer>(settings); }

}  // namespace ist
