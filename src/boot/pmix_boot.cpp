#include "boot/pmix_boot.hpp"

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/quiet_thread.hpp"
#include "boot/deadline.hpp"
#include "boot/pmix_api.hpp"

namespace ist {
namespace {

// The names that servers of versions 2 to 5 use for the address they listen at.
constexpr std::array kServerAddresses{"PMIX_SERVER_URI2",  "PMIX_SERVER_URI21", "PMIX_SERVER_URI3",  "PMIX_SERVER_URI4",
                                      "PMIX_SERVER_URI41", "PMIX_SERVER_URI5",  "PMIX_SERVER_URI51", "PMIX_SERVER_URI"};

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::string who() { return "rank " + variable("PMIX_RANK") + " of job \"" + variable("PMIX_NAMESPACE") + "\""; }

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
  bool wait(double seconds) {
    std::unique_lock lock(mutex);
    return arrived.wait_for(lock, std::chrono::milliseconds(Deadline::after(seconds).milliseconds_left()),
                            [this] { return complete; });
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
  return Status{IST_ERR_BOOT, who() + ": " + doing + ": the PMIx server did not answer within " + seconds_text(seconds) +
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

// What this process knows of its PMIx server. Made by the first world, never destroyed: a later world needs it.
struct Connection {
  std::mutex mutex;
  const PmixApi* api = nullptr;
  pid_t owner = 0;
  pmix::Proc self;
  int size = 0;
  std::uint32_t worlds = 0;
  Status broken;  // why there can be no further exchange
};

Connection& connection() {
  static auto* only = new Connection;
  return *only;
}

// A server takes a process that ends without this for one that failed. A forked child is not the rank, and must not.
void finish() {
  Connection& process = connection();
  if (process.owner == ::getpid()) process.api->PMIx_Finalize(nullptr, 0);
}

std::string server_address() {
  for (const char* name : kServerAddresses)
    if (std::getenv(name)) return variable(name);
  return "an address that is not told";
}

Status refused(const PmixApi& api, const std::string& step, pmix::Code code) {
  const char* advice = "";
  if (code == pmix::kUnreachable)
    advice = "; is the program that started this job (mpirun, srun) still there? Unset PMIX_NAMESPACE for a world of one";
  if (code == pmix::kPartial)
    advice = "; some ranks of the job ended or gave up before: look for the first error among them";
  return {IST_ERR_BOOT,
          who() + ": " + step + " failed with " + api.error_name(code) + ", PMIx server at " + server_address() + advice};
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

Status connect(Connection& process, double seconds) {
  const auto api = PmixApi::get();
  if (!api.ok())
    return {IST_ERR_BOOT,
            "this process is " + who() + ", started through PMIx, but PMIx cannot be used: " + api.status().text()};
  const auto joined =
      in_time(seconds, "joining the job", [api = *api](Answer& answer) { return api->PMIx_Init(&answer.self, nullptr, 0); });
  if (!joined.ok()) return joined.status();
  if ((*joined)->code != pmix::kSuccess) return refused(**api, "joining the PMIx server (PMIx_Init)", (*joined)->code);
  process.api = *api;
  process.self = (*joined)->self;
  process.owner = ::getpid();
  std::atexit(finish);
  const auto size = in_time(seconds, "asking for the number of ranks", [api = *api, self = process.self](Answer& answer) {
    return look_up(*api, self, pmix::kEveryRank, "pmix.job.size", &answer.number, nullptr);
  });
  if (!size.ok()) return size.status();
  const std::uint32_t ranks = (*size)->number;
  if ((*size)->code != pmix::kSuccess) return refused(**api, "asking for the number of ranks (PMIx_Get)", (*size)->code);
  if (ranks == 0 || ranks > INT32_MAX || process.self.rank >= ranks)
    return {IST_ERR_BOOT, who() + ": the PMIx server tells of rank " + std::to_string(process.self.rank) + " in a job of " +
                              std::to_string(ranks) + " ranks"};
  process.size = static_cast<int>(ranks);
  return {};
}

Status forked_from(pid_t owner) {
  return {IST_ERR_BOOT, "this process (pid " + std::to_string(::getpid()) + ") was forked from pid " +
                            std::to_string(owner) + ", which is " + who() +
                            "; only the process that the job's launcher started can create worlds"};
}

class PmixBoot final : public Boot {
 public:
  PmixBoot(std::uint32_t world, double seconds) : world_(world), seconds_(seconds) {}
  std::string_view name() const override { return "pmix"; }
  Rank rank() const override { return Rank{static_cast<std::int32_t>(connection().self.rank)}; }
  int size() const override { return connection().size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    Connection& process = connection();
    const std::lock_guard lock(process.mutex);
    if (process.owner != ::getpid()) return forked_from(process.owner);
    IST_TRY(process.broken);
    // Numbered, since PMIx keeps every value until the job ends.
    const std::string key = "isthmus." + std::to_string(world_) + "." + std::to_string(++round_);
    auto all = exchange(process, key, mine);
    if (!all.ok())
      process.broken = {IST_ERR_BOOT, "an earlier exchange of this process failed, and its ranks may be out of step: " +
                                          all.status().text()};
    return all;
  }

 private:
  Result<std::vector<std::string>> exchange(const Connection& process, const std::string& key,
                                            const std::string& mine) const {
    IST_TRY(offer(process, key, mine));
    IST_TRY(meet(process));
    return collect(process, key, mine);
  }

  static Status offer(const Connection& process, const std::string& key, const std::string& mine) {
    pmix::Value value;
    value.type = pmix::kByteObject;
    // An empty object is refused by some versions: one byte more, which collect() takes off.
    std::string padded = mine + '.';
    value.data.bytes = {padded.data(), padded.size()};
    const pmix::Code put = process.api->PMIx_Put(pmix::kGlobal, key.c_str(), &value);
    if (put != pmix::kSuccess)
      return refused(*process.api, "offering " + std::to_string(mine.size()) + " bytes to the other ranks (PMIx_Put)", put);
    const pmix::Code commit = process.api->PMIx_Commit();
    if (commit != pmix::kSuccess) return refused(*process.api, "offering a value to the other ranks (PMIx_Commit)", commit);
    return {};
  }

  Status meet(const Connection& process) const {
    const pmix::Info collect = yes("pmix.collect");
    auto answer = std::make_shared<Answer>();
    auto given = std::make_unique<SharedAnswer>(answer);
    const pmix::Code code = process.api->PMIx_Fence_nb(nullptr, 0, &collect, 1, operation_done, given.get());
    if (code == pmix::kDone) return {};
    if (code != pmix::kSuccess) return refused(*process.api, "meeting the other ranks (PMIx_Fence_nb)", code);
    static_cast<void>(given.release());  // operation_done takes it
    if (!answer->wait(seconds_))
      return {IST_ERR_BOOT, who() + ": not all of the " + std::to_string(process.size) +
                                " ranks came to the exchange of addresses within " + seconds_text(seconds_) +
                                "; does every rank create this world? ISTHMUS_BOOT_TIMEOUT sets how long to wait"};
    if (answer->code != pmix::kSuccess)
      return refused(*process.api, "meeting the other ranks (PMIx_Fence_nb)", answer->code);
    return {};
  }

  Result<std::vector<std::string>> collect(const Connection& process, const std::string& key,
                                           const std::string& mine) const {
    // What the thread needs is copied: it may outlive this exchange.
    const auto gathered = in_time(
        seconds_, "collecting what the ranks offered",
        [api = process.api, self = process.self, ranks = static_cast<std::uint32_t>(process.size), key](Answer& answer) {
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
      return Status{IST_ERR_BOOT, "rank " + std::to_string(blobs.size()) + " offered nothing for exchange " +
                                      std::to_string(round_) + " of world number " + std::to_string(world_) + ": " +
                                      process.api->error_name((*gathered)->code) +
                                      "; has it ended? All ranks must create the same worlds in the same order"};
    blobs[process.self.rank] = mine;
    return blobs;
  }

  std::uint32_t world_;
  std::uint32_t round_ = 0;
  double seconds_;
};

}  // namespace

bool pmix_environment() {
  if (!std::getenv("PMIX_RANK") || !std::getenv("PMIX_NAMESPACE")) return false;
  for (const char* name : kServerAddresses)
    if (std::getenv(name)) return true;
  return false;
}

Result<std::unique_ptr<Boot>> join_pmix(const Settings& settings) {
  Connection& process = connection();
  const std::lock_guard lock(process.mutex);
  if (process.owner != 0 && process.owner != ::getpid()) return forked_from(process.owner);
  IST_TRY(process.broken);
  if (process.size == 0) {
    process.broken = connect(process, settings.boot_timeout);
    IST_TRY(process.broken);
  }
  return std::unique_ptr<Boot>{std::make_unique<PmixBoot>(++process.worlds, settings.boot_timeout)};
}

}  // namespace ist
