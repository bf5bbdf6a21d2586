#include "arguments.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace example {

Arguments::Arguments(std::string program, const std::string& purpose)
    : program_(std::move(program)), app_(std::make_unique<CLI::App>(purpose, "isthmus run -n RANKS " + program_)) {}
Arguments::~Arguments() = default;

template <class Number>
void Arguments::number(const std::string& name, Number& value, std::type_identity_t<Number> least,
                       std::type_identity_t<Number> most, const std::string& help) {
  CLI::Option* const option = app_->add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
  if constexpr (std::is_floating_point_v<Number>)  // which is in every range
    option->check([](const std::string& text) {
      return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number" : std::string();
    });
}
template void Arguments::number(const std::string&, int&, int, int, const std::string&);
template void Arguments::number(const std::string&, std::int64_t&, std::int64_t, std::int64_t, const std::string&);
template void Arguments::number(const std::string&, double&, double, double, const std::string&);

void Arguments::word(const std::string& name, std::string& value, const std::vector<std::string>& words,
                     const std::string& help) {
  CLI::Option* const option = app_->add_option(name, value, help)->check(CLI::IsMember(words))->capture_default_str();
  if (help.empty()) option->group("");
}

void Arguments::add(const std::string& name, const std::string& help, const std::string& preset,
                    const std::function<void(const std::string&)>& take) {
  app_->add_option_function<std::string>(name, take, help)->default_str(preset);
}

bool Arguments::read(int argc, char** argv) try {
  app_->parse(argc, argv);
  return true;
} catch (const CLI::CallForHelp&) {
  return false;
} catch (const CLI::ParseError& wrong) {
  throw Mistake(wrong.what());
}

std::string Arguments::usage() const { return app_->help(); }

}  // namespace example
