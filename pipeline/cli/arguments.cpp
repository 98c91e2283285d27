// The only file that includes CLI11.
#include <forebay/pipeline/cli/arguments.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace forebay::cli {
namespace {

void add_fit(CLI::App& app, Arguments& result) {
  FitArguments& fit = result.fit;
  CLI::App* sub = app.add_subcommand(
      "fit", "Find mean, std, range, percentiles and histogram of the data, exactly, in one pass");
  sub->callback([&result] { result.command = Arguments::Command::fit; });
  CLI::Option* file = sub->add_option("FILE", result.file, "The pipeline, in YAML");
  sub->add_option("-o,--output", fit.output,
                  "Write the statistics to this file, which settings then refer to, as in `mean: "
                  "stats.yaml#image.mean`; else they are printed");
  sub->add_option("--field", fit.settings.fields,
                  "Only this field; may come several times. Else all of real numbers")
      ->allow_extra_args(false);
  sub->add_option("--after", fit.after,
                  "The fields behind so many stages from the first; 0, the default, is the source")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--channels", fit.settings.channels,
                  "Statistics for each index of this axis of the batch array; axis 0 is the "
                  "samples");
  sub->add_option("--bins", fit.report.bins, "Bins of the histogram; 64")
      ->check(CLI::PositiveNumber);
  sub->add_option("--percentiles", fit.report.percentiles,
                  "Such as 0.1,50,99.9; 1,5,25,50,75,95,99")
      ->delimiter(',');
  sub->add_option("--bits", fit.settings.bits,
                  "How finely 32 and 64-bit values are told apart, 0 to 12; see the page of `fit`");
  sub->add_option("--batch-size", fit.settings.batch_size,
                  "Samples at once; the file's behind stages, else as suits the source")
      ->check(CLI::PositiveNumber);
  sub->add_option("--device", result.device, "Instead of the file's: auto, cpu, cuda or cuda:N");
  CLI::Option* partial =
      sub->add_option("--partial", fit.partial,
                      "Keep what is known so far in this file, to go on from or to merge");
  sub->add_option("--every", fit.every, "Seconds between two such states; 60")
      ->check(CLI::PositiveNumber)
      ->needs(partial);
  sub->add_flag("--resume", fit.resume, "Go on from the file of --partial, if it is there")
      ->needs(partial);
  sub->add_option("--shard", fit.shard,
                  "Only this part of the samples, such as 0/3 for the first "
                  "of three")
      ->needs(partial);
  sub->add_option("--merge", fit.merge, "Instead of a pass: the statistics of these partial states")
      ->excludes(file);
  sub->add_flag("--json", result.json, "Statistics in JSON");
}

}  // namespace

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
  run->add_option("--batches", result.batches, "Stop after so many batches of this run")
      ->check(CLI::PositiveNumber);
  run->add_option("--epochs", result.epochs,
                  "Stop behind so many epochs, of runs before too; 1 unless --batches is given")
      ->check(CLI::PositiveNumber);
  run->add_option("--save", result.save,
                  "Write each output to this folder as <epoch>_<step>_<field>.npy");
  run->add_flag("--json", result.json, "Report in JSON");
  CLI::Option* state = run->add_option(
      "--state", result.state,
      "Keep in this file where the run stands, after each batch; go on from there if it exists");
  run->add_flag("--allow-changes", result.allow_changes,
                "Go on though the pipeline or the data are not those of the state")
      ->needs(state);
  add_fit(app, result);
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
