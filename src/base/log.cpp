#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>
#include <mutex>
#include <set>

namespace ist::log {
namespace {

constexpr std::array<std::string_view, 6> kWords{"trace", "debug", "info", "warning", "error", "off"};

// Made on first use and never destroyed: the library may still log while the process ends.
spdlog::logger& logger() {
  static auto* made = [] {
    auto* fresh = new spdlog::logger("isthmus", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    fresh->set_pattern("isthmus %l: %v");
    fresh->set_level(spdlog::level::warn);
    return fresh;
  }();
  return *made;
}

spdlog::level::level_enum native(Level level) {
  constexpr std::array levels{spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                              spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return levels[static_cast<std::size_t>(level)];
}

}  // namespace

bool set_level(std::string_view word) {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] != word) continue;
    logger().set_level(native(static_cast<Level>(i)));
    return true;
  }
  return false;
}

void set_rank(int rank) { logger().set_pattern("isthmus[" + std::to_string(rank) + "] %l: %v"); }

bool enabled(Level level) { return logger().should_log(native(level)); }

void write(Level level, std::string_view text) {
  logger().log(native(level), spdlog::string_view_t(text.data(), text.size()));
}

void once(Level level, const std::string& text) { once(level, text, text); }

void once(Level level, const std::string& cause, const std::string& text) {
  struct Said {
    std::mutex mutex;
    std::set<std::string> causes;
  };
  static auto* const said = new Said;  // as the logger
  {
    const std::lock_guard lock(said->mutex);
    if (!said->causes.insert(cause).second) return;
  }
  write(level, text);
}

}  // namespace ist::log
