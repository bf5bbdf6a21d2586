#include "face/message/errors.hpp"

#include <array>
#include <exception>
#include <new>
#include <utility>

#include "base/release.hpp"
#include "base/thread_text.hpp"
#include "protocol/explain.hpp"

namespace ist {
namespace {

using LastText = ThreadText<Status>;

constexpr std::array kNames{"IST_OK",
                            "IST_ERR_ARGUMENT",
                            "IST_ERR_RANK",
                            "IST_ERR_HANDLE",
                            "IST_ERR_TRUNCATE",
                            "IST_ERR_OVERFLOW",
                            "IST_ERR_KIND",
                            "IST_ERR_MEMORY",
                            "IST_ERR_DEVICE",
                            "IST_ERR_PEER_DEAD",
                            "IST_ERR_PEER_LEFT",
                            "IST_ERR_UNREACHABLE",
                            "IST_ERR_BOOT",
                            "IST_ERR_SETTING",
                            "IST_ERR_SYSTEM",
                            "IST_ERR_PENDING",
                            "IST_ERR_IN_STATUS",
                            "IST_ERR_INTERNAL",
                            "IST_CANCELLED",
                            "IST_ERR_NOT_CAPTURABLE",
                            "IST_ERR_UNSUPPORTED"};

}  // namespace

int report(const Status& status) {
  if (!status.ok()) LastText::set(status.text());
  return status.code();
}

int report(ist_code code, std::string text) {
  LastText::set(std::move(text));
  return code;
}

int report_exception(const char* call) {
  // The text itself may need memory that is not there; then the code has to do.
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return report(IST_ERR_MEMORY, std::string{call} + ": no host memory is left; free some, or receive what has arrived");
    } catch (const std::exception& exception) {
      return report(IST_ERR_INTERNAL, std::string{call} + ": " + exception.what());
    }
  } catch (...) {
    LastText::clear();
    return IST_ERR_MEMORY;
  }
}

}  // namespace ist

extern "C" {

const char* ist_error_text(void) { return ist::LastText::get(); }

const char* ist_code_name(int code) {
  return code >= 0 && static_cast<std::size_t>(code) < ist::kNames.size() ? ist::kNames[static_cast<std::size_t>(code)]
                                                                          : "unknown code";
}

const char* ist_carrier_name(int carrier) { return ist::carrier_name(carrier); }

const char* ist_version(void) { return ist::kRelease; }
}
