// One pass: the pipeline with a stage of tally behind each field, whose tables are added up on the
// device and come to the host once in a while.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include <forebay/array/require.h>
#include <forebay/ops/lazy.h>
#include <forebay/ops/normalize/normalize.h>
#include <forebay/ops/tally/tally.h>
#include <forebay/ops/visitors.h>
#include <forebay/pipeline/fit/moments.h>
#include <forebay/pipeline/fit/state.h>
#include <forebay/pipeline/mistakes.h>
#include <forebay/pipeline/pipeline.h>
#include <forebay/pipeline/value_checks.h>

namespace forebay {
namespace {

using fit_detail::FieldTables;
using fit_detail::Wide;

constexpr std::int64_t kTableBytes = std::int64_t{64} << 20;
constexpr std::int64_t kPilotSamples = 1024;
constexpr std::int64_t kBatchBytes = std::int64_t{32} << 20;
/// Values whose digits, of 32 bits each, an i64 holds the sum of.
constexpr std::int64_t kMostValues = (std::int64_t{1} << 31) - 1;

/// What of a field is tallied.
struct Target {
  FieldTables field;
  Tally tally;
  std::int64_t values = 1;  ///< of a sample, in one channel

  /// Names in the pipeline: what is tallied, and the results.
  std::string input() const { return field.name + (field.origins.empty() ? "" : ".moved"); }
  std::string table() const { return input() + ".table"; }
  std::string extremes() const { return input() + ".extremes"; }
};

/// The finest that 64 MiB of tables allow.
std::int64_t finest_bits(Dtype dtype, std::int64_t channels) {
  std::int64_t bits = TallyBins(dtype, {}).bits();
  for (; bits > 0; --bits) {
    const TallyBins bins(dtype, bits);
    if (channels * bins.count() * bins.words() * 8 <= kTableBytes) break;
  }
  return bits;
}

std::string axes_behind_samples(const Dims& shape) {
  if (shape.rank < 2) return "it has no axis behind the samples";
  if (shape.rank == 2) return "it has axis 1 behind the samples";
  return fmt::format("it has axes 1 to {} behind the samples", shape.rank - 1);
}

Target make_target(const std::string& name, const ArraySpec& spec, const FitSettings& settings) {
  FOREBAY_REQUIRE(!is_complex(spec.dtype), invalid,
                  "fit: `{}` has dtype {}; statistics are of real numbers. Add an `abs` stage, or "
                  "name other fields.",
                  name, name_of(spec.dtype));
  Target target;
  target.field.name = name;
  target.field.dtype = spec.dtype;
  std::vector<std::int64_t> counted;
  const Dims& shape = spec.shape;
  std::int64_t kept = -1;
  if (settings.channels) {
    kept = *settings.channels < 0 ? *settings.channels + shape.rank : *settings.channels;
    const bool there = kept > 0 && kept < shape.rank;
    FOREBAY_REQUIRE(there, invalid,
                    "fit: there is no axis {} for channels in `{}` with shape {}; {}. Name the "
                    "fields that have it.",
                    *settings.channels, name, to_string(shape), axes_behind_samples(shape));
    target.field.shape.push_back(shape[static_cast<int>(kept)]);
  }
  for (std::int64_t axis = 0; axis < shape.rank; ++axis) {
    if (axis == kept) continue;
    counted.push_back(axis);
    if (axis > 0) target.values *= shape[static_cast<int>(axis)];
  }
  const std::int64_t channels = count_of(target.field.shape);
  target.field.bits = settings.bits ? TallyBins(spec.dtype, settings.bits).bits()
                                    : finest_bits(spec.dtype, channels);
  target.field.channels.resize(static_cast<std::size_t>(channels));
  target.tally = {.bits = target.field.bits, .axes = counted};
  return target;
}

/// `spec` with every sample once, in the order of the source, for one process.
Spec unshuffled(Spec spec) {
  spec.shuffle = ShuffleMode::none;
  spec.shuffle_window = 0;
  spec.sampling = {};
  spec.shard = {};
  spec.last_batch_policy = LastBatchPolicy::partial;
  spec.output.clear();
  if (spec.on_error.mode != ErrorMode::fail) spec.on_error.mode = ErrorMode::skip;
  if (spec.stages.empty()) spec.batch_size = 1;  // it means nothing then
  return spec;
}

/// The fields of `plan`, of which `settings` asks for some.
std::vector<Target> find_targets(const Plan& plan, const FitSettings& settings) {
  std::vector<std::string> names;
  for (const PlanOutput& output : plan.outputs)
    names.push_back(output.name);
  std::vector<Target> targets;
  const auto spec_of = [&](const PlanOutput& output) {
    return plan.values[static_cast<std::size_t>(output.value)].spec;
  };
  for (const std::string& wanted : settings.fields) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    FOREBAY_REQUIRE(
        found != names.end(), invalid, "fit: there is no field `{}` {}; there are {}.{}", wanted,
        plan.spec->stages.empty() ? "in the source"
                                  : fmt::format("behind stage {}", plan.spec->stages.size()),
        quoted(names), did_you_mean(wanted, names));
    FOREBAY_REQUIRE(std::count(settings.fields.begin(), settings.fields.end(), wanted) == 1,
                    invalid, "fit: the field `{}` is named twice; name it once.", wanted);
    const PlanOutput& output = plan.outputs[static_cast<std::size_t>(found - names.begin())];
    targets.push_back(make_target(wanted, spec_of(output), settings));
  }
  if (!settings.fields.empty()) return targets;
  for (const PlanOutput& output : plan.outputs) {
    if (!is_complex(spec_of(output).dtype))
      targets.push_back(make_target(output.name, spec_of(output), settings));
  }
  FOREBAY_REQUIRE(!targets.empty(), invalid,
                  "fit: no field is of real numbers; there are {}. Add an `abs` stage.",
                  quoted(names));
  return targets;
}

/// What must agree for parts to be of one fit.
std::string about(const Plan& plan, const std::vector<Target>& targets) {
  const Spec& spec = *plan.spec;
  const Order& order = plan.sampler->order();
  std::string text = fmt::format("{} samples, {}, of", order.length(), order.describe());
  for (const Column& column : spec.source->columns())
    text += fmt::format("{} {} {} {}", text.back() == 'f' ? "" : ",", column.name,
                        name_of(column.dtype), to_string(column.shape));
  for (const StageSpec& stage : spec.stages) {
    text += "; " + to_string(stage.op);
    if (!stage.inputs.empty()) text += " of " + quoted(stage.inputs);
    if (!stage.outputs.empty()) text += " as " + quoted(stage.outputs);
  }
  text += "; fit of";
  for (const Target& target : targets) {
    text += fmt::format("{} {} {} {} bits {}", &target == &targets.front() ? "" : ",",
                        target.field.name, name_of(target.field.dtype),
                        to_string(target.field.shape), target.field.bits);
    if (!target.field.origins.empty()) text += " moved by";
    for (const double origin : target.field.origins)
      text += fmt::format(" {}", origin);
  }
  if (spec.on_error.mode == ErrorMode::fail) return text;
  text += "; without bad samples";
  for (const Check& check : spec.checks)
    text += fmt::format(", {} {}", check.column, to_string(check));
  return text;
}

std::int64_t rows_of_batch(const Spec& spec, const FitSettings& settings,
                           const std::vector<Target>& targets) {
  if (settings.batch_size > 0) return settings.batch_size;
  if (!spec.stages.empty()) return spec.batch_size;
  std::int64_t sample = 1, tables = 0, most = kMostValues;
  for (const Column& column : spec.source->columns())
    sample += count_of(column.shape) * static_cast<std::int64_t>(size_of(column.dtype));
  for (const Target& target : targets) {
    const TallyBins bins = target.field.bins();
    tables +=
        static_cast<std::int64_t>(target.field.channels.size()) * bins.count() * bins.words() * 8;
    most = std::min(most, kMostValues / std::max<std::int64_t>(1, target.values));
  }
  return std::max<std::int64_t>(1, std::min(std::max(kBatchBytes, tables) / sample, most));
}

/// The pipeline that delivers the tables of `range`.
Spec tallying(Spec spec, const std::vector<Target>& targets, const Positions& range,
              std::int64_t batch_size) {
  spec.positions = range;
  spec.batch_size = std::min(batch_size, range.end - range.begin);
  const auto add = [&](std::string_view op, const auto& settings, const std::string& input,
                       std::vector<std::string> outputs) {
    spec.stages.push_back({.op = Op::with(find_op(op), settings),
                           .inputs = {input},
                           .outputs = std::move(outputs),
                           .device = {},
                           .position = {}});
  };
  for (const Target& target : targets) {
    if (!target.field.origins.empty()) {
      Normalize move{.std = 1, .axes = target.tally.axes};
      move.mean.emplace().values = target.field.origins;
      add("normalize", move, target.field.name, {target.input()});
    }
    spec.output.insert(spec.output.end(), {target.table(), target.extremes()});
    add("tally", target.tally, target.input(), {target.table(), target.extremes()});
  }
  return spec;
}

/// The sums of the tables of one field over batches, on the device of the pipeline.
class Sums {
 public:
  Sums(const Target& target, const Context& context) : target_(&target), context_(context) {}

  void add(const Batch& batch) {
    const Array table = batch[target_->table()], extremes = batch[target_->extremes()];
    if (values_ == 0) {
      table_ = copy_to(table, context_);
      extremes_ = copy_to(extremes, context_);
    } else {
      table_ = eval(Lazy(table_) + table, context_);
      extremes_ = eval(maximum(extremes_, extremes), context_);
    }
    values_ += batch.rows() * target_->values;
  }
  /// Whether another batch of so many rows might be too much.
  bool is_full(std::int64_t rows) const {
    return values_ > kMostValues - std::min(kMostValues, rows * target_->values);
  }

  /// Moves them to `field`, on the host.
  void take(FieldTables& field, const Context& host) {
    if (values_ == 0) return;
    const Array table = on_host(table_, host), extremes = on_host(extremes_, host);
    context_.stream.synchronize();
    values_ = 0;
    const TallyBins bins = field.bins();
    const std::int64_t words = bins.words();
    const auto* at = table.as<std::int64_t>();
    for (std::size_t c = 0; c < field.channels.size(); ++c) {
      fit_detail::Channel& channel = field.channels[c];
      for (std::int64_t bin = 0; bin < bins.count(); ++bin, at += words) {
        if (at[0] == 0) continue;
        fit_detail::Words& sums = channel.table[bin];
        for (std::int64_t i = 0; i < words; ++i)
          sums[static_cast<std::size_t>(i)] += static_cast<Wide>(at[i]);
      }
      for (std::size_t i = 0; i < 2; ++i)
        channel.extremes[i] =
            std::max(channel.extremes[i], extremes.as<std::uint64_t>()[2 * c + i]);
    }
  }

 private:
  Array on_host(const Array& array, const Context& host) const {
    if (!array.device().is_cuda()) return array;
    const Array target = Array::empty(array.shape(), array.dtype(), host);
    copy(array.view(), target.view(), context_.stream);
    return target;
  }

  const Target* target_;
  Context context_;
  Array table_, extremes_;
  std::int64_t values_ = 0;  ///< of a channel that they are of
};

/// A pipeline of tables, and their sums.
class Adder {
 public:
  Adder(Spec spec, const std::vector<Target>& targets)
      : pipeline_(Pipeline::from_spec(std::move(spec))),
        context_(Context::create(pipeline_.device())) {
    for (const Target& target : targets)
      sums_.emplace_back(target, context_);
    for (Event& added : added_)
      added = Event::create(pipeline_.device());
  }

  std::optional<Batch> next() { return pipeline_.next(context_.stream); }
  bool is_full(std::int64_t rows) const {
    return std::any_of(sums_.begin(), sums_.end(),
                       [&](const Sums& sum) { return sum.is_full(rows); });
  }
  void add(const Batch& batch) {
    added_[turn_].synchronize();
    for (Sums& sum : sums_)
      sum.add(batch);
    context_.stream.record(added_[turn_]);
    turn_ = 1 - turn_;
  }
  /// Moves the sums to `state`.
  void take(FitPartial::State& state, const Context& host) {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      sums_[i].take(state.fields[i], host);
  }

 private:
  Pipeline pipeline_;
  Context context_;
  std::vector<Sums> sums_;
  std::array<Event, 2> added_;  // two batches at most wait to be added, so that slots come back
  std::size_t turn_ = 0;
};

/// The pass over some ranges of samples. A batch with bad samples is not added, for the substitutes
/// in it: its good ones are kept apart, and come again in batches of their own.
class Pass {
 public:
  Pass(const Spec& spec, std::vector<Target> targets, const FitHooks& hooks,
       FitPartial::State& state, std::int64_t batch_size)
      : spec_(spec),
        targets_(std::move(targets)),
        hooks_(hooks),
        state_(state),
        batch_size_(batch_size) {}

  void run(const std::vector<Positions>& ranges) {
    for (const Positions& range : ranges)
      total_ += range.end - range.begin;
    if (hooks_.on_progress) hooks_.on_progress(0, total_);
    for (const Positions& range : ranges)
      run(range);
    if (hooks_.on_state) report();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostApart = std::size_t{1} << 20;

  void run(const Positions& range) {
    Adder adder(tallying(spec_, targets_, range, batch_size_), targets_);
    Positions done{range.begin, range.begin};
    const auto take = [&] {
      adder.take(state_, host_);
      add_apart();
      if (done.end > done.begin) state_.add_done({done});
      done.begin = done.end;
    };
    while (const auto batch = adder.next()) {
      const std::int64_t rows = batch->rows();
      if (adder.is_full(rows) || apart_.size() >= kMostApart) take();
      if (batch->real_rows() == rows) {
        adder.add(*batch);
      } else {
        const auto good = batch->sample_ids().first(static_cast<std::size_t>(batch->real_rows()));
        apart_.insert(apart_.end(), good.begin(), good.end());
        bad_ += rows - batch->real_rows();
      }
      done.end += rows;
      done_ += rows;
      if (hooks_.on_progress) hooks_.on_progress(done_, total_);
      const std::chrono::duration<double> since = Clock::now() - reported_;
      if (hooks_.on_state && since.count() >= hooks_.state_seconds) {
        take();
        report();
      }
    }
    take();
  }

  void add_apart() {
    state_.bad += std::exchange(bad_, 0);
    if (apart_.empty()) return;
    const auto count = static_cast<std::int64_t>(apart_.size());
    Spec spec = spec_;
    spec.subset = Array::from({count}, std::exchange(apart_, {}));
    spec.split.reset();
    spec.on_error = {};  // none of them is bad
    Adder adder(tallying(std::move(spec), targets_, {0, count}, batch_size_), targets_);
    while (const auto batch = adder.next()) {
      if (adder.is_full(batch->rows())) adder.take(state_, host_);
      adder.add(*batch);
    }
    adder.take(state_, host_);
  }

  void report() {
    hooks_.on_state(FitPartial(std::make_shared<const FitPartial::State>(state_)));
    reported_ = Clock::now();
  }

  const Spec& spec_;
  const std::vector<Target> targets_;
  const FitHooks& hooks_;
  FitPartial::State& state_;
  const std::int64_t batch_size_;
  const Context host_ = Context::create(Device::cpu(), 1);
  std::int64_t done_ = 0, total_ = 0;
  std::vector<std::int64_t> apart_;  // samples of the source
  std::int64_t bad_ = 0;
  Clock::time_point reported_ = Clock::now();
};

/// Of a field whose values lie far from 0 for how they spread, where they lie: there the bins of a
/// tally would be coarse. Else, and for fields that have no such bins, nothing.
std::vector<double> origins_of(const FieldTables& field) {
  if (field.dtype != Dtype::f32 && field.dtype != Dtype::f64) return {};
  std::vector<double> origins;
  bool far = false;
  for (const fit_detail::Channel& channel : field.channels) {
    const auto [mean, std] = fit_detail::moments(channel, field.bins());
    // So small beside the greatest value that no difference overflows.
    const double most = field.dtype == Dtype::f32 ? 0x1p100 : 0x1p960;
    const bool apart = std::fabs(mean) > 2 * std && std::fabs(mean) < most;
    far |= apart;
    const double origin = field.dtype == Dtype::f32 ? static_cast<float>(mean) : mean;
    origins.push_back(apart ? origin : 0);
  }
  return far ? origins : std::vector<double>();
}

/// Adds a target for the distribution of each such field, by the first samples of the dataset: so
/// every shard finds the same.
void add_moved(const Spec& spec, std::vector<Target>& targets, std::int64_t samples,
               std::int64_t batch_size) {
  FitPartial::State pilot;
  for (const Target& target : targets)
    pilot.fields.push_back(target.field);
  const FitHooks none;
  Spec first = spec;  // of which more may be bad than of all
  first.on_error.max_count.reset();
  if (first.on_error.mode != ErrorMode::fail) first.on_error.max_share = 1;
  if (samples > 0)
    Pass(first, targets, none, pilot, batch_size).run({{0, std::min(samples, kPilotSamples)}});
  for (std::size_t i = 0; i < pilot.fields.size(); ++i) {
    Target moved = targets[i];
    moved.field.origins = origins_of(pilot.fields[i]);
    if (!moved.field.origins.empty()) targets.push_back(std::move(moved));
  }
}

}  // namespace

FitPartial fit(const Spec& spec, const FitSettings& settings, const FitHooks& hooks,
               const FitPartial* begun) {
  FOREBAY_REQUIRE(!settings.bits || (*settings.bits >= 0 && *settings.bits <= TallyBins::kMostBits),
                  invalid, "fit: `bits` is {}; it must be between 0 and {}.", *settings.bits,
                  TallyBins::kMostBits);
  auto plan = compile(std::make_shared<const Spec>(unshuffled(spec)));
  if (plan->mixes_samples) {
    // What good samples are made to hangs on the bad one that they met: there is nothing to leave out.
    Spec strict = unshuffled(spec);
    strict.on_error = {};
    plan = compile(std::make_shared<const Spec>(std::move(strict)));
  }
  std::vector<Target> targets = find_targets(*plan, settings);
  const std::int64_t batch_size = rows_of_batch(*plan->spec, settings, targets);
  const auto state = std::make_shared<FitPartial::State>();
  state->samples = plan->sampler->order().length();
  add_moved(*plan->spec, targets, state->samples, batch_size);
  state->about = about(*plan, targets);
  for (const Target& target : targets)
    state->fields.push_back(target.field);
  if (begun != nullptr) state->add(begun->state());

  const auto bound = [&](std::int64_t shard) {
    return static_cast<std::int64_t>(static_cast<Wide>(state->samples) * static_cast<Wide>(shard) /
                                     static_cast<Wide>(spec.shard.num_shards));
  };
  const Positions mine{bound(spec.shard.shard_id), bound(spec.shard.shard_id + 1)};
  Pass(*plan->spec, std::move(targets), hooks, *state, batch_size).run(state->missing(mine));
  return FitPartial(state);
}

}  // namespace forebay
