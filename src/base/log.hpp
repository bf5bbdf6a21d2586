// The one logger: lines on standard error, "isthmus[rank] level: text".
//
// Who calls this : every room; never on a message's hot path.
// Threads        : any.
// Ownership      : none.
// Errors         : none; a line that cannot be written is dropped.
#pragma once

#include <string>
#include <string_view>

namespace ist::log {

enum class Level { trace, debug, info, warning, error, off };

// "info" and so on; false if the word is none of them.
bool set_level(std::string_view word);
void set_rank(int rank);
bool enabled(Level level);
void write(Level level, std::string_view text);
// Says the same text at most once per process; or at most one text of that cause, where texts have numbers in them.
void once(Level level, const std::string& text);
void once(Level level, const std::string& cause, const std::string& text);

inline void info(std::string_view text) { write(Level::info, text); }
inline void warning(std::string_view text) { write(Level::warning, text); }
inline void debug(std::string_view text) { write(Level::debug, text); }

}  // namespace ist::log
