#include <chrono>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include <forebay/array/require.h>
#include <forebay/pipeline/cli/commands.h>
#include <forebay/pipeline/cli/progress.h>
#include <forebay/pipeline/cli/replace_file.h>
#include <forebay/pipeline/cli/report.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/config/text_file.h>
#include <forebay/pipeline/pipeline.h>

namespace forebay::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// Writes the outputs of batches as .npy files.
class Saver {
 public:
  Saver(std::string folder, Device device)
      : folder_(std::move(folder)), stream_(Stream::create(device)) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    FOREBAY_REQUIRE(!error, io, "--save: {} cannot be made: {}.", folder_, error.message());
  }

  /// The batch is complete.
  void save(const Batch& batch) {
    for (const std::string& name : batch.names()) {
      const Array array = on_host(batch[name]);
      std::string file = fmt::format("{}_{}_{}.npy", batch.epoch(), batch.step(), name);
      for (char& c : file)
        c = c == '/' ? '_' : c;
      write_npy((std::filesystem::path(folder_) / file).string(), array.view());
      ++files_;
    }
  }

  std::int64_t files() const { return files_; }

 private:
  Array on_host(const Array& array) {
    if (!array.device().is_cuda()) return array;
    const Array host = Array::empty(array.shape(), array.dtype(), host_memory(), host_stream_);
    copy(array.view(), host.view(), stream_);
    stream_.synchronize();
    return host;
  }

  std::string folder_;
  Stream stream_;
  Stream host_stream_ = Stream::create(Device::cpu(), 1);
  std::int64_t files_ = 0;
};

struct Limits {
  std::int64_t batches = std::numeric_limits<std::int64_t>::max();
  std::int64_t epochs = 1;
};

/// Keeps in a file where the run stands.
class StateFile {
 public:
  explicit StateFile(std::string path) : path_(std::move(path)) {}

  /// Goes on from there when the file is there.
  void restore(Pipeline& pipeline, bool allow_changes) const {
    if (!std::filesystem::exists(path_)) return;
    try {
      pipeline.restore(config::text_of_file(path_), {.allow_changes = allow_changes});
    } catch (const Error& error) {
      fail(error.kind(), "--state: {}: {}", path_, error.what());
    }
    const BatchPosition position = pipeline.position();
    fmt::print(stderr, "{}: going on behind {} samples of epoch {}\n", path_, position.cursor,
               position.epoch);
  }

  void write(const std::string& state) const { replace_file(path_, state + "\n"); }

 private:
  std::string path_;
};

/// `--batches` alone goes on over as many epochs as it takes.
Limits limits_of(const Arguments& arguments) {
  Limits limits;
  if (arguments.batches) {
    limits = {*arguments.batches, std::numeric_limits<std::int64_t>::max()};
  }
  if (arguments.epochs) limits.epochs = *arguments.epochs;
  return limits;
}

/// Batches that will come, from where the pipeline stands.
std::int64_t batches_in_all(const Limits& limits, const Pipeline& pipeline) {
  const BatchPosition start = pipeline.position();
  const std::int64_t steps = pipeline.steps_per_epoch();
  if (steps == 0 || start.epoch >= limits.epochs) return 0;
  const std::int64_t epochs = std::min(limits.epochs - start.epoch - 1, limits.batches / steps + 1);
  return std::min(limits.batches,
                  pipeline.plan().sampler->steps_from(start.cursor) + epochs * steps);
}

void run_epochs(Pipeline& pipeline, const Limits& limits, Saver* saver, const StateFile* state,
                RunReport& report) {
  const std::int64_t total = batches_in_all(limits, pipeline);
  Progress progress(total);
  const auto begin = Clock::now();
  std::int64_t done = 0;
  for (std::int64_t epoch = pipeline.position().epoch; done < total; ++epoch) {
    pipeline.start_epoch(epoch);
    const std::int64_t before = done;
    while (done < total) {
      const std::optional<Batch> batch = pipeline.next();
      if (!batch) break;
      if (done++ == 0) report.first_batch_ms = milliseconds(Clock::now() - begin);
      if (saver != nullptr) saver->save(*batch);
      if (state != nullptr) state->write(pipeline.state());
      progress.on_batch(batch->epoch(), batch->rows());
    }
    if (done == before) continue;  // the state stood at the epoch's end
    ++report.epochs;
    progress.on_epoch_end();
  }
  report.seconds = milliseconds(Clock::now() - begin) / 1000;
}

}  // namespace

int run(const Arguments& arguments) {
  say_what_is_compiled();
  Pipeline pipeline =
      Pipeline::from_spec(load(arguments, Presence::required), {.time_steps = true});
  RunReport report;
  report.pipeline = pipeline.spec().name;
  report.on_error = config::kErrorModes[static_cast<int>(pipeline.spec().on_error.mode)];
  report.device = to_string(pipeline.device());
  std::optional<Saver> saver;
  if (arguments.save) saver.emplace(report.folder = *arguments.save, pipeline.device());
  std::optional<StateFile> state;
  if (arguments.state) {
    state.emplace(*arguments.state);
    state->restore(pipeline, arguments.allow_changes);
  }
  run_epochs(pipeline, limits_of(arguments), saver ? &*saver : nullptr, state ? &*state : nullptr,
             report);
  if (saver) report.files = saver->files();
  report.stats = pipeline.stats();
  fmt::print("{}", arguments.json ? to_json(report) : to_text(report));
  return kOk;
}

}  // namespace forebay::cli
