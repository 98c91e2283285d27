// The only file that includes CLI11.
#include <forebay/pipeline/cli/arguments.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace forebay::cli {

std::optional<Arguments> parse_arguments(int count, char** values, int& exit_code) {
  using Command = Arguments::Command;
  Arguments result;
  CLI::App app("Array preprocessing, declared once, run ahead of the training loop.", "forebay");
  app.require_subcommand(1);
  app.set_version_flag("--version", "forebay " FOREBAY_VERSION);

  const auto add = [&](const char* name, const char* text, Command command) {
    CLI::App* sub = app.add_subcommand(name, text);
    sub->callback([&result, command] { result.command = command; });
    return sub;
  };
  const auto add_on_file = [&](const char* name, const char* text, Command command) {
    CLI::App* sub = add(name, text, command);
    sub->add_option("FILE", result.file, "The pipeline, in YAML")->required();
    sub->add_option("--device", result.device, "Instead of the file's: auto, cpu, cuda or cuda:N");
    return sub;
  };
  add_on_file("check", "Say everything that is wrong with a file; touch no data but the headers",
              Command::check);
  add_on_file("plan", "Print the steps, shapes, dtypes, devices and bytes that a file compiles to",
              Command::plan)
      ->add_option("--dump-kernels", result.dump,
                   "Write the device code of each step to this folder as <step>_<ops>_<kernel>.cu");
  CLI::App* run =
      add_on_file("run", "Run a pipeline, and report throughput and waiting", Command::run);
  run->add_option("--batches", result.batches, "Stop after so many batches in all")
      ->check(CLI::PositiveNumber);
  run->add_option("--epochs", result.epochs,
                  "Stop after so many epochs; 1 unless --batches is given")
      ->check(CLI::PositiveNumber);
  run->add_option("--save", result.save,
                  "Write each output to this folder as <epoch>_<step>_<field>.npy");
  run->add_flag("--json", result.json, "Report in JSON");
  add("explain", "Explain an op, or a key of the file", Command::explain)
      ->add_option("OP", result.subject, "Name of an op or a key")
      ->required();
  add("ops", "List the ops of this build", Command::ops);
  add("schema", "Print the JSON Schema of the file, for editors", Command::schema);

  try {
    app.parse(count, values);
    return result;
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? kOk : kUsage;
    return std::nullopt;
  }
}

}  // namespace forebay::cli
