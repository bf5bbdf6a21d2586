#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

namespace stencil {
namespace {

// The text as given becomes an extent, with our own words if it is none.
CLI::Option* add_extent(CLI::App& app, const std::string& name, Extent& extent, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&extent, name](const std::string& text) {
            try {
              extent = extent_from(text);
            } catch (const std::exception& error) {
              throw CLI::ValidationError(name, error.what());
            }
          },
          help)
      ->type_name("RxC");
}

template <class T>
CLI::Option* add_word(CLI::App& app, const std::string& name, T& value, const std::map<std::string, T>& words,
                      const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [word, meaning] : words) names.push_back(word);
  return app
      .add_option_function<std::string>(
          name, [&value, words](const std::string& word) { value = words.at(word); }, help)
      ->check(CLI::IsMember(names));
}

void add_options(CLI::App& app, Options& options) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // so that scripts have defaults
  using Words = std::vector<std::string>;
  auto* const input =
      app.add_option("PICTURE,--input", options.input, "picture (PNG) whose grey values are the start field");
  add_extent(app, "--size", options.size,
             "without a picture: size of the whole field; point (i, j) of every tile begins as i*j")
      ->excludes(input);
  app.add_option("--iterations", options.iterations, "steps")->check(CLI::Range(1, 1000000000))->capture_default_str();
  app.add_option("--halo", options.halo, "width of the halo, and steps between two exchanges")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--device", options.device,
                 "where to compute: auto (the first there is of cuda, opencl, host) or one of them")
      ->check(CLI::IsMember({"auto", "cuda", "opencl", "host"}))
      ->capture_default_str();
  add_word<Words>(app, "--exchange", options.exchanges,
                  {{"isthmus", {"isthmus"}},
                   {"staged", {"staged"}},
                   {"both", {"isthmus", "staged"}},
                   {"one-sided", {"one-sided"}},
                   {"halo", {"halo"}},
                   {"all", {"isthmus", "staged", "one-sided", "halo"}}},
                  "isthmus (device buffers straight to send and receive), staged (by hand through the host), both of them, "
                  "one-sided (puts with signals), halo (by the library's halo exchange) or all [both]");
  add_word<Precision>(app, "--precision", options.precision,
                      {{"float", Precision::single_precision}, {"double", Precision::double_precision}},
                      "float or double [float]");
  add_word<bool>(app, "--weights", options.normalised, {{"normalised", true}, {"shoc", false}},
                 "normalised (sum 1) or shoc (sum 1.05: values grow 5 % a step) [normalised]");
  add_extent(app, "--grid", options.grid, "grid of ranks; chosen for the shortest borders if not given");
  auto* const output = app.add_option("--output", options.output, "folder for start.png, final.png and the frames");
  app.add_option("--frames", options.frames, "pictures to write on the way")->check(CLI::Range(0, 10000))->needs(output);
  add_word<Palette>(app, "--palette", options.palette, {{"grey", Palette::grey}, {"heat", Palette::heat}},
                    "colours of the pictures: grey or heat [grey]")
      ->needs(output);
  app.add_flag("!--no-verify", options.verify, "do not compare with a serial run");
  app.add_option("--json", options.json, "file for the results");
  app.add_option("--corrupt-step", options.corrupt_step, "")->group("");
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv, bool speaker) {
  CLI::App app{
      "Nine-point stencil on a field cut over a grid of ranks; halos travel through Isthmus straight from device memory.\n"
      "Start it with: isthmus run -n RANKS stencil2d [options]",
      "stencil2d"};
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    if (speaker) app.exit(answer, std::cout, std::cerr);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (speaker) std::cerr << "stencil2d: " << error.what() << "\nstencil2d --help lists the options\n";
    return 2;
  }
  return options;
}

}  // namespace stencil
