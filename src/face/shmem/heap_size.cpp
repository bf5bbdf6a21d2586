#include "face/shmem/heap_size.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

#include "face/shmem/errors.hpp"

namespace ist::shmem {

std::optional<std::uint64_t> read_size(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number > 0)) return std::nullopt;
  std::string_view rest{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  if (!rest.empty()) {
    const auto power =
        std::string_view{"KMGT"}.find(static_cast<char>(std::toupper(static_cast<unsigned char>(rest.front()))));
    if (power != std::string_view::npos) {
      for (std::size_t i = 0; i <= power; ++i) number *= 1024;
      rest.remove_prefix(1);
    }
    if (!rest.empty() && rest != "B" && rest != "b" && rest != "iB") return std::nullopt;
  }
  if (!(number >= 1 && number <= static_cast<double>(std::uint64_t{1} << 45U))) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

std::uint64_t size_from_environment(const char* call, const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return 0;
  if (const auto size = read_size(text)) return *size;
  fail(call, std::string{name} + " is \"" + text + "\"; name bytes as 64M or 1.5G, from 1 to 32T");
  return 0;
}

std::uint64_t heap_size_from_environment(const char* call) {
  for (const char* name : {"SHMEM_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_HEAP_SIZE", "SMA_SYMMETRIC_SIZE"}) {
    const char* const text = std::getenv(name);
    if (text != nullptr && *text != '\0') return size_from_environment(call, name);
  }
  return 0;
}

}  // namespace ist::shmem
