#include "cli/manual.hpp"

#include <isthmus/isthmus.h>

#include "base/settings.hpp"

namespace ist::cli {
namespace {

// A dot or a quote at the start of a line, a hyphen or a backslash anywhere mean something to roff.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool starts_line = out.empty() || out.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string paragraph(std::string_view term, std::string_view text) {
  return ".TP\n.B " + escaped(term) + "\n" + escaped(text) + "\n";
}

// "-n, --ranks N"
std::string option_term(const CLI::Option& option) {
  std::string term = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  for (std::size_t comma = term.find(','); comma != std::string::npos; comma = term.find(',', comma + 2))
    term.insert(comma + 1, " ");
  if (option.get_expected_max() > 0 && !option.get_positional() && !option.get_type_name().empty())
    term += ' ' + option.get_type_name();
  return term;
}

std::string command_section(const CLI::App& command) {
  std::string text = ".SS isthmus " + escaped(command.get_name()) + "\n" + escaped(command.get_description()) + ".\n";
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty() && option->get_name() != "--help")
      text += paragraph(option_term(*option), option->get_description());
  if (!command.get_footer().empty()) text += ".PP\n" + escaped(command.get_footer()) + "\n";
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string text =
      ".TH ISTHMUS 1 \"\" \"Isthmus " + std::string{ist_version()} +
      "\" \"User Commands\"\n.SH NAME\nisthmus \\- start, inspect and measure programs that exchange memory of "
      "any kind\n.SH SYNOPSIS\n.B isthmus\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n" +
      escaped(app.get_description()) + ".\n.SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    text += command_section(*command);
  text += ".SH ENVIRONMENT\nA variable that cannot be read is an error.\n";
  for (const SettingRow& row : describe(Settings{}))
    text += paragraph(row.variable,
                      std::string{row.help} + ". Type: " + std::string{row.type} + "; default: " + row.default_text + ".");
  text +=
      ".SH EXIT STATUS\n"
      ".TP\n.B 0\nThe command did what it was asked.\n"
      ".TP\n.B 1\nIt failed; the last line on standard error says why.\n"
      ".TP\n.B 2\nIt was used wrongly, or a setting cannot be read.\n"
      ".TP\n.B other\n.B isthmus run\nreturns the status of the first rank that failed: 128 plus the number of the signal "
      "if one "
      "ended it.\n"
      ".SH EXAMPLES\n.nf\n"
      "isthmus run \\-n 4 ./program argument\n"
      "isthmus info \\-\\-settings\n"
      "isthmus bench latency \\-\\-from host \\-\\-to opencl \\-\\-json latency.json\n"
      "isthmus bench collective allreduce \\-\\-ranks 4 \\-\\-kind cuda\n"
      "isthmus explain allreduce \\-\\-ranks 4 \\-\\-type float \\-\\-count 1000\n"
      "isthmus model fit \\-\\-quick\n"
      ".fi\n";
  return text;
}

}  // namespace ist::cli
