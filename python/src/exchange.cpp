#include "exchange.hpp"

#include <isthmus/boot.h>

#include <cstring>

#include "errors.hpp"

namespace isthmus_python {
namespace {

// What the library's table points at.
struct Exchange {
  nb::handle all_gather;
  int size;
  nb::object exception;
  std::string text;
};

void gather(Exchange& exchange, const void* mine, char* all, std::size_t bytes) {
  const nb::object answer = exchange.all_gather(nb::bytes(mine, bytes));
  int ranks = 0;
  for (const nb::handle each : answer) {
    const nb::bytes part(each);
    if (part.size() != bytes || ranks == exchange.size)
      throw nb::value_error(("all_gather: entry " + std::to_string(ranks) + " has " + std::to_string(part.size()) +
                             " bytes; give the " + std::to_string(bytes) + " bytes of each of " +
                             std::to_string(exchange.size) + " ranks")
                                .c_str());
    std::memcpy(all + static_cast<std::size_t>(ranks++) * bytes, part.c_str(), bytes);
  }
  if (ranks != exchange.size)
    throw nb::value_error(("all_gather: there are " + std::to_string(ranks) + " entries for " +
                           std::to_string(exchange.size) + " ranks; give one for each")
                              .c_str());
}

int all_gather(void* context, const void* mine, void* all, std::size_t bytes) {
  auto& exchange = *static_cast<Exchange*>(context);
  const nb::gil_scoped_acquire acquire;
  try {
    gather(exchange, mine, static_cast<char*>(all), bytes);
    return 0;
  } catch (nb::python_error& error) {
    exchange.exception = nb::borrow(error.value());
  } catch (const std::exception& error) {
    exchange.exception = nb::borrow(PyExc_ValueError)(error.what());
  }
  exchange.text = "all_gather raised " + nb::cast<std::string>(nb::repr(exchange.exception));
  return 1;
}

void error_text(void* context, int, char* text, std::size_t room) {
  const std::string& known = static_cast<const Exchange*>(context)->text;
  if (room > 0) text[known.copy(text, room - 1)] = '\0';
}

}  // namespace

std::shared_ptr<Session> session_with(int rank, int size, nb::handle function, const std::string& settings) {
  Exchange exchange{function, size, {}, {}};
  const ist_boot_functions functions{sizeof(ist_boot_functions), &exchange, rank, size, &all_gather, &error_text, nullptr};
  try {
    return Session::create(
        [&](ist_world* world) { return ist_world_create_configured_with(settings.c_str(), &functions, world); }, settings);
  } catch (nb::python_error&) {
    if (exchange.exception.is_valid()) raise(exchange.exception);
    throw;
  }
}

}  // namespace isthmus_python
