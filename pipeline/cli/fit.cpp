// The command `fit`: one pass over a file's data, or partial states put together.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include <forebay/array/require.h>
#include <forebay/pipeline/cli/commands.h>
#include <forebay/pipeline/cli/join.h>
#include <forebay/pipeline/cli/progress.h>
#include <forebay/pipeline/cli/replace_file.h>
#include <forebay/pipeline/config/text_file.h>
#include <forebay/pipeline/fit.h>

namespace forebay::cli {
namespace {

FitPartial read_partial(const std::string& path) {
  return FitPartial::from_json(config::text_of_file(path), path);
}

/// "0/3".
Shard read_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto [mark, wrong] = std::from_chars(text.data(), end, shard.shard_id);
  bool right = wrong == std::errc() && mark != end && *mark == '/';
  if (right) {
    const auto [last, wrong_too] = std::from_chars(mark + 1, end, shard.num_shards);
    right = wrong_too == std::errc() && last == end && shard.shard_id >= 0 &&
            shard.shard_id < shard.num_shards;
  }
  FOREBAY_REQUIRE(right, invalid,
                  "--shard is `{}`; it must be a number and how many there are, from 0/3 to 2/3.",
                  text);
  return shard;
}

std::string suffix(const RankGroup& ranks) {
  return fmt::format(".{}-of-{}", ranks.rank(), ranks.size());
}

/// `ranks`: those that share the work, or null.
FitPartial pass(const Arguments& arguments, RankGroup* ranks) {
  const FitArguments& asked = arguments.fit;
  FOREBAY_REQUIRE(!arguments.file.empty(), invalid,
                  "fit: there is no file; give a pipeline in YAML, or partial states to --merge.");
  const std::optional<Shard> shard =
      asked.shard ? std::optional(read_shard(*asked.shard)) : std::nullopt;
  // Each rank's own.
  const std::string partial = asked.partial.value_or("") + (ranks ? suffix(*ranks) : "");
  std::optional<FitPartial> begun;
  if (asked.resume && std::filesystem::exists(partial)) begun = read_partial(partial);

  const bool speaks = ranks == nullptr || ranks->rank() == 0;
  if (speaks) say_what_is_compiled();
  std::optional<Progress> progress;
  std::int64_t before = 0;
  FitHooks hooks;
  if (speaks)
    hooks.on_progress = [&](std::int64_t done, std::int64_t total) {
      if (!progress) progress.emplace(total, Progress::Unit::samples);
      progress->on_batch(0, done - before);
      before = done;
    };
  hooks.state_seconds = asked.every;
  if (asked.partial)
    hooks.on_state = [&](const FitPartial& state) { replace_file(partial, state.to_json()); };
  // Each rank would print them; and that there is no `shard: auto` is as it should be.
  const Notes notes = ranks ? Notes::left_out : Notes::printed;
  Spec spec = load(arguments, Presence::required, asked.after, notes);
  if (shard) spec.shard = *shard;
  const FitPartial* earlier = begun ? &*begun : nullptr;
  const FitPartial found = ranks ? fit(*ranks, std::move(spec), asked.settings, hooks, earlier)
                                 : fit(spec, asked.settings, hooks, earlier);
  if (progress) progress->on_epoch_end();
  return found;
}

FitPartial merged(const std::vector<std::string>& files) {
  std::vector<FitPartial> partials;
  for (const std::string& file : files)
    partials.push_back(read_partial(file));
  return merge(partials);
}

}  // namespace

int fit(const Arguments& arguments) {
  const FitArguments& asked = arguments.fit;
  // With --shard or --merge the user puts the parts together.
  const bool alone = asked.shard || !asked.merge.empty();
  const std::unique_ptr<RankGroup> ranks = alone ? nullptr : join_ranks();
  const FitPartial found = asked.merge.empty() ? pass(arguments, ranks.get()) : merged(asked.merge);
  if (ranks && ranks->rank() > 0) return kOk;
  if (asked.partial && !asked.merge.empty()) replace_file(*asked.partial, found.to_json());
  if (asked.shard || (asked.partial && found.samples_done() < found.samples())) {
    fmt::print(stderr, "{}: {} of {} samples; put all parts together with --merge\n",
               *asked.partial, found.samples_done(), found.samples());
    return kOk;
  }
  const FitReport report = finish(found, asked.report);
  if (report.bad > 0)
    fmt::print(stderr, "{} of {} samples are bad and left out\n", report.bad, found.samples());
  const std::string text = arguments.json ? to_json(report) : to_yaml(report);
  if (asked.output) {
    replace_file(*asked.output, text);
  } else {
    fmt::print("{}", text);
  }
  return kOk;
}

}  // namespace forebay::cli
