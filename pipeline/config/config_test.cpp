#include <filesystem>
#include <fstream>
#include <sstream>

#include <forebay/array/require.h>
#include <forebay/ops.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/config/bind.h>
#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/config/settings.h>
#include <forebay/pipeline/pipeline.h>

#include "folder_test.h"

namespace forebay {
namespace {

/// A folder with x.npy f32 (10, 4), y.npy i64 (10,), short.npy f32 (9,), and the YAML that a test
/// writes beside them.
class Config : public FolderTest {
 protected:
  void SetUp() override {
    save("x.npy", kit::random({10, 4}, Dtype::f32, 1));
    save("y.npy", kit::random({10}, Dtype::i64, 2, 0, 9));
    save("short.npy", kit::random({9}, Dtype::f32, 3));
  }
  void save(const std::string& name, const Array& x) { write_npy(folder_ + "/" + name, x.view()); }

  std::string write(const std::string& yaml) {
    const std::string path = folder_ + "/train.yaml";
    std::ofstream(path) << yaml;
    return path;
  }
  Spec load(const std::string& yaml) {
    notes_.clear();
    return load_spec(write(yaml), {.notes = &notes_});
  }
  /// What loading throws, without the folder in front of the files.
  std::string mistakes(const std::string& yaml) {
    return without_folder(kit::caught([&] { load(yaml); }).text);
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> lines;
    for (const std::string& note : notes_)
      lines.push_back(without_folder(note));
    return lines;
  }

  std::vector<std::string> notes_;
};

const std::string kHead =
    "version: 1\n"
    "batch_size: 4\n"
    "source: {type: npy, columns: {x: x.npy, y: y.npy}}\n";

TEST_F(Config, ReadsEveryKey) {
  const Spec spec = load(
      "version: 1\n"
      "name: chain\n"
      "batch_size: 4\n"
      "seed: 18446744073709551615\n"
      "device: cpu\n"
      "num_threads: 3\n"
      "prefetch_queue_depth: 5\n"
      "max_held_batches: 7\n"
      "fuse: false\n"
      "last_batch_policy: fill\n"
      "source: {type: npy, columns: {x: x.npy, y: ./y.npy}}\n"
      "shuffle: {mode: window, window: 6}\n"
      "subset: [9, 3, 5, 1, 0]\n"
      "split: {part: train, validation: 0.2, by: y, seed: 4}\n"
      "shard: {shard_id: 1, num_shards: 2}\n"
      "stages:\n"
      "  - {op: clip, min: -3, max: 3.0}\n"
      "  - {op: abs, inputs: x, outputs: [z], device: cpu}\n"
      "output: [z, y]\n");
  EXPECT_EQ(spec.name, "chain");
  EXPECT_EQ(spec.batch_size, 4);
  EXPECT_EQ(spec.seed, UINT64_MAX);
  EXPECT_EQ(spec.device, Device::cpu());
  EXPECT_EQ(spec.num_threads, 3);
  EXPECT_EQ(spec.prefetch_queue_depth, 5);
  EXPECT_EQ(spec.max_held_batches, 7);
  EXPECT_FALSE(spec.fuse);
  EXPECT_EQ(spec.last_batch_policy, LastBatchPolicy::fill);
  EXPECT_EQ(spec.shuffle, ShuffleMode::window);
  EXPECT_EQ(spec.shuffle_window, 6);
  EXPECT_TRUE(
      kit::same_bits(*spec.subset, Array::from({5}, std::vector<std::int64_t>{9, 3, 5, 1, 0})));
  ASSERT_TRUE(spec.split);
  EXPECT_EQ(spec.split->part, SplitPart::train);
  EXPECT_EQ(spec.split->validation, 0.2);
  EXPECT_EQ(spec.split->by, "y");
  EXPECT_EQ(spec.split->seed, 4u);
  EXPECT_EQ(spec.shard, (Shard{1, 2}));
  EXPECT_EQ(spec.source->size(), 10);
  EXPECT_EQ(without_folder(spec.source->describe()), "npy x.npy, y.npy");
  ASSERT_EQ(spec.stages.size(), 2u);
  EXPECT_EQ(spec.stages[0].op.name(), "clip");
  EXPECT_EQ(spec.stages[0].op.settings<Clip>().min, Number(-3));
  EXPECT_EQ(spec.stages[0].op.settings<Clip>().max, Number(3.0));
  EXPECT_EQ(without_folder(to_string(spec.stages[0].position)), "train.yaml:17:5");
  EXPECT_EQ(spec.stages[0].device, std::nullopt);
  EXPECT_EQ(spec.stages[1].inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(spec.stages[1].outputs, std::vector<std::string>{"z"});
  EXPECT_EQ(spec.stages[1].device, Device::cpu());
  EXPECT_EQ(spec.output, (std::vector<std::string>{"z", "y"}));
  EXPECT_EQ(without_folder(to_string(spec.batch_size_position)), "train.yaml:3:13");
  EXPECT_EQ(without_folder(to_string(spec.source_position)), "train.yaml:11:9");
  EXPECT_EQ(without_folder(to_string(spec.output_position)), "train.yaml:19:9");
  EXPECT_TRUE(notes_.empty());
}

TEST_F(Config, ReadsSampling) {
  save("w.npy", kit::random({10}, Dtype::f32, 4, 0, 1));
  save("i.npy", kit::random({5}, Dtype::i32, 4, 0, 9));
  const Spec spec =
      load(kHead + "sampling: {mode: weighted, weights: w.npy, samples: 25}\nsubset: i.npy\n");
  EXPECT_EQ(spec.sampling.mode, SamplingMode::weighted);
  EXPECT_EQ(spec.sampling.samples, 25);
  EXPECT_EQ(spec.sampling.weights.shape(), Dims(10));
  EXPECT_EQ(spec.subset->shape(), Dims(5));
  EXPECT_EQ(Pipeline::from_spec(spec).steps_per_epoch(), 7);
  EXPECT_EQ(load(kHead + "sampling: {mode: replacement, num_samples: 3}\n").sampling.samples, 3);
}

/// RANK and WORLD_SIZE for one test.
class ConfigOfARank : public Config {
 protected:
  void TearDown() override {
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
  }
};

TEST_F(ConfigOfARank, ShardsByItself) {
  EXPECT_EQ(load(kHead + "shard: auto\n").shard, (Shard{0, 1}));
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "3", 1);
  EXPECT_EQ(load(kHead + "shard: auto\n").shard, (Shard{1, 3}));
  EXPECT_EQ(load(kHead + "shard: {}\n").shard, (Shard{1, 3}));
  EXPECT_EQ(load(kHead + "shard: {rank: auto, world_size: 5}\n").shard, (Shard{1, 5}));
  EXPECT_EQ(notes(),
            (std::vector<std::string>{
                "train.yaml:4:9: note: shard: `rank` is called `shard_id` here.",
                "train.yaml:4:21: note: shard: `world_size` is called `num_shards` here."}));
}

TEST_F(ConfigOfARank, SaysThatEveryProcessGetsAllSamples) {
  setenv("WORLD_SIZE", "3", 1);
  EXPECT_EQ(load(kHead).shard, (Shard{0, 1}));
  EXPECT_EQ(notes(), (std::vector<std::string>{
                         "train.yaml:1:1: note: WORLD_SIZE is 3, but without `shard: auto` every "
                         "process gets all samples."}));
  EXPECT_EQ(mistakes(kHead + "shard: auto\n"),
            "train.yaml:4:8: shard: auto: the environment variable WORLD_SIZE is set, but RANK is "
            "not; set both, as torchrun does.");
}

TEST_F(Config, SaysWhatIsWrongWithTheOrder) {
  EXPECT_EQ(mistakes(kHead + "shuffle: {mode: window}\n"
                             "sampling: once\n"
                             "subset: [1, x]\n"
                             "split: {part: test, validation: a}\n"
                             "shard: {shard_id: -1, num_shards: x}\n"),
            "train.yaml:4:10: shuffle: `window` is missing; it must be an integer, at least 1.\n"
            "train.yaml:5:11: `sampling` is once; it must be a map such as {mode: replacement}.\n"
            "train.yaml:6:13: `subset[1]` is x; it must be an integer.\n"
            "train.yaml:7:15: split: `part` is test; it must be train or validation.\n"
            "train.yaml:7:33: split: `validation` is a; it must be a number.\n"
            "train.yaml:8:19: shard: `shard_id` is -1; it must be between 0 and 2147483647.\n"
            "train.yaml:8:35: shard: `num_shards` is x; it must be auto or an integer of at least "
            "1.");
  EXPECT_EQ(mistakes(kHead + "subset: none.npy\nsampling: {mode: weighted, weights: []}\n"
                             "split: {}\n"),
            "train.yaml:4:9: `subset`: none.npy: cannot be opened: No such file or directory.\n"
            "train.yaml:5:37: sampling: `weights` is a list; it must be the path of a .npy file.\n"
            "train.yaml:6:8: split: `part` is missing; it must be train or validation.\n"
            "train.yaml:6:8: split: `validation` is missing; it must be a number above 0 and below "
            "1.");
}

/// What only the whole spec shows: compiling says it, at the same places.
TEST_F(Config, SaysWhatIsWrongWithTheOrderOfTheseSamples) {
  const auto wrong = [&](const std::string& yaml) {
    return without_folder(kit::caught([&] { Pipeline::from_spec(load(kHead + yaml)); }).text);
  };
  EXPECT_EQ(wrong("subset: [1, 10]\n"),
            "train.yaml:4:9: subset: index 1 is 10; the source has 10 samples, so it must be in "
            "0..9.");
  EXPECT_EQ(wrong("split: {part: train, validation: 1.5}\n"),
            "train.yaml:4:8: split: `validation` is 1.5; it must be above 0 and below 1.");
  EXPECT_EQ(wrong("split: {part: validation, validation: 0.01}\n"),
            "train.yaml:4:8: split: no sample is in the validation part, 0.01; take another "
            "`validation`.");
  EXPECT_EQ(
      wrong("split: {part: validation, validation: 0.001, by: y}\n"),
      "train.yaml:4:8: split: no sample is in the validation part, 0.001 by `y`; take another "
      "`validation` or `seed`, as there are few keys.");
  EXPECT_EQ(wrong("split: {part: train, validation: 0.5, by: z}\n"),
            "train.yaml:4:8: split: `by` is z; it must be a column of the source: `x`, `y`.");
  EXPECT_EQ(wrong("sampling: {mode: weighted}\n"),
            "train.yaml:4:11: sampling: mode weighted needs `weights`, one for each sample.");
  EXPECT_EQ(wrong("sampling: {mode: weighted, weights: short.npy}\n"),
            "train.yaml:4:11: sampling: `weights` have the shape (9,); it must be (10,), one for "
            "each sample.");
  EXPECT_EQ(wrong("sampling: {mode: replacement, weights: y.npy}\n"),
            "train.yaml:4:11: sampling: `weights` are for mode weighted; leave them out.");
  EXPECT_EQ(wrong("sampling: {samples: 3}\n"),
            "train.yaml:4:11: sampling: mode once has no `samples` and no `weights`; make it "
            "replacement or weighted, or leave them out.");
  EXPECT_EQ(wrong("shuffle: {mode: full, window: 3}\n"),
            "train.yaml:4:10: shuffle: `window` is 3, but only mode window has one; leave it out.");
  EXPECT_EQ(wrong("shuffle: true\nsampling: {mode: replacement}\n"),
            "train.yaml:5:11: sampling: samples that are drawn come in any order; leave `shuffle` "
            "out.");
  EXPECT_EQ(wrong("shard: {shard_id: 3, num_shards: 3}\n"),
            "train.yaml:4:8: `shard_id` is 3, of 3 shards; it must be at most 2.");
  EXPECT_EQ(wrong("subset: []\nsampling: {mode: replacement, samples: 3}\n"),
            "train.yaml:5:11: sampling: 3 samples are to be drawn, but there are none to draw "
            "from.");
}

TEST_F(Config, ReadsWhatIsToBecomeOfBadSamples) {
  const Spec spec = load(kHead +
                         "checks:\n"
                         "  x: {finite: true}\n"
                         "  y: {min: 0, max: 9}\n"
                         "on_error: {mode: replace, max_count: 5, max_share: 0.25, "
                         "quarantine: bad.jsonl}\n");
  ASSERT_EQ(spec.checks.size(), 2u);
  EXPECT_EQ(spec.checks[0].column, "x");
  EXPECT_TRUE(spec.checks[0].finite && !spec.checks[0].min && !spec.checks[0].max);
  EXPECT_EQ(spec.checks[1].min, Number(0));
  EXPECT_EQ(spec.checks[1].max, Number(9));
  EXPECT_EQ(without_folder(to_string(spec.checks[1].position)), "train.yaml:6:3");
  EXPECT_EQ(spec.on_error.mode, ErrorMode::replace);
  EXPECT_EQ(spec.on_error.max_count, 5);
  EXPECT_EQ(spec.on_error.max_share, 0.25);
  EXPECT_EQ(without_folder(spec.on_error.quarantine), "bad.jsonl");
  EXPECT_EQ(load(kHead + "on_error: skip\n").on_error.mode, ErrorMode::skip);
  EXPECT_EQ(load(kHead + "on_error: fail\nchecks:\n").on_error.mode, ErrorMode::fail);
  EXPECT_EQ(load(kHead).on_error.mode, ErrorMode::fail);
}

TEST_F(Config, SaysWhatIsWrongWithWhatIsToBecomeOfBadSamples) {
  EXPECT_EQ(mistakes(kHead + "checks: {x: {finit: true, min: a}, y: 3}\n"
                             "on_error: {mode: ski, max_count: -1, max_share: 2, quarantin: b}\n"),
            "train.yaml:4:14: checks: x: unknown key `finit`; did you mean `finite`?\n"
            "train.yaml:4:32: checks: x: `min` is a; it must be a number.\n"
            "train.yaml:4:39: `checks.y` is 3; it must be a map such as {min: 0, max: 9}.\n"
            "train.yaml:5:18: on_error: `mode` is ski; it must be fail, skip or replace.\n"
            "train.yaml:5:34: on_error: `max_count` is -1; it must be at least 0.\n"
            "train.yaml:5:49: on_error: `max_share` is 2; it must be between 0 and 1.\n"
            "train.yaml:5:52: on_error: unknown key `quarantin`; did you mean `quarantine`?");
  EXPECT_EQ(mistakes(kHead + "checks: [x]\non_error: {max_count: 3}\n"),
            "train.yaml:4:9: `checks` is a list; it must be a map such as {x: {finite: true}}.\n"
            "train.yaml:5:11: on_error: `mode` is missing; it must be fail, skip or replace.");
  EXPECT_EQ(mistakes(kHead + "on_error: ignore\non_eror: skip\n"),
            "train.yaml:4:11: `on_error` is ignore; it must be fail, skip or replace.\n"
            "train.yaml:5:1: unknown key `on_eror`; did you mean `on_error`?");
  const auto wrong = [&](const std::string& yaml) {
    return without_folder(kit::caught([&] { Pipeline::from_spec(load(kHead + yaml)); }).text);
  };
  EXPECT_EQ(wrong("checks: {z: {min: 0}}\n"),
            "train.yaml:4:10: checks: the source has no column `z`; it has `x`, `y`. Did you mean "
            "`x`?");
  EXPECT_EQ(wrong("on_error: {mode: fail, quarantine: bad.jsonl}\n"),
            "train.yaml:4:11: on_error: max_count, max_share and quarantine are for modes skip and "
            "replace; leave them out.");
}

TEST_F(Config, HasTheDefaultsOfTheSpec) {
  const Spec spec = load(kHead), plain;
  EXPECT_EQ(spec.name, "train");
  EXPECT_EQ(spec.seed, plain.seed);
  EXPECT_EQ(spec.device, std::nullopt);
  EXPECT_EQ(spec.num_threads, plain.num_threads);
  EXPECT_EQ(spec.prefetch_queue_depth, plain.prefetch_queue_depth);
  EXPECT_EQ(spec.max_held_batches, plain.max_held_batches);
  EXPECT_TRUE(spec.fuse);
  EXPECT_EQ(spec.last_batch_policy, plain.last_batch_policy);
  EXPECT_EQ(spec.shuffle, plain.shuffle);
  EXPECT_TRUE(spec.stages.empty());
  EXPECT_TRUE(spec.output.empty());
}

TEST_F(Config, ReadsFilesFromItsOwnFolderWhereverItIsCalled) {
  std::filesystem::create_directory(folder_ + "/sub");
  std::ofstream(folder_ + "/sub/a.yaml")
      << "{version: 1, batch_size: 1, source: {type: npy, columns: {x: ../x.npy}}}";
  EXPECT_EQ(without_folder(load_spec(folder_ + "/sub/a.yaml").source->describe()), "npy x.npy");
  std::ofstream(folder_ + "/abs.yaml")
      << "{version: 1, batch_size: 1, source: {type: npy, columns: {x: " << folder_ << "/x.npy}}}";
  EXPECT_EQ(load_spec(folder_ + "/abs.yaml").source->size(), 10);
}

TEST_F(Config, LetsADeviceOverrideTheFiles) {
  const std::string path = write(kHead + "device: cuda:63\n");
  EXPECT_EQ(load_spec(path, {.device = Device::cpu()}).device, Device::cpu());
}

TEST_F(Config, TakesAnchorsAndMerges) {
  const Spec spec = load(kHead +
                         "stages:\n"
                         "  - &c {op: clip, min: -3, max: 3}\n"
                         "  - *c\n"
                         "  - {<<: *c, max: 5}\n");
  ASSERT_EQ(spec.stages.size(), 3u);
  EXPECT_EQ(spec.stages[1].op.settings<Clip>().max, Number(3));
  EXPECT_EQ(spec.stages[2].op.settings<Clip>().min, Number(-3));
  EXPECT_EQ(spec.stages[2].op.settings<Clip>().max, Number(5));
}

TEST_F(Config, NotesEachAlias) {
  const Spec spec = load(
      "version: 1\n"
      "batch_size: 4\n"
      "num_workers: 2\n"
      "prefetch_factor: 3\n"
      "drop_last: true\n"
      "shuffle: true\n"
      "source: {type: npy, columns: {x: x.npy}}\n"
      "stages:\n"
      "  - {op: clamp, a_min: 0, output: z}\n");
  EXPECT_EQ(spec.num_threads, 2);
  EXPECT_EQ(spec.prefetch_queue_depth, 3);
  EXPECT_EQ(spec.last_batch_policy, LastBatchPolicy::drop);
  EXPECT_EQ(spec.shuffle, ShuffleMode::full);
  EXPECT_EQ(spec.stages[0].outputs, std::vector<std::string>{"z"});
  EXPECT_EQ(notes(),
            (std::vector<std::string>{
                "train.yaml:3:1: note: `num_workers` is called `num_threads` here.",
                "train.yaml:4:1: note: `prefetch_factor` is called `prefetch_queue_depth` here.",
                "train.yaml:5:12: note: `drop_last: true` is `last_batch_policy: drop` here.",
                "train.yaml:6:10: note: `shuffle: true` is `shuffle: {mode: full}` here.",
                "train.yaml:9:10: note: stage 1: op `clamp` is called `clip` here.",
                "train.yaml:9:17: note: stage 1 (clip): `a_min` is called `min` here.",
                "train.yaml:9:27: note: stage 1 (clip): `output` is called `outputs` here.",
            }));
}

TEST_F(Config, NotesOtherWaysToSayIt) {
  EXPECT_EQ(load(kHead + "drop_last: false\nshuffle: false\n").last_batch_policy,
            LastBatchPolicy::partial);
  EXPECT_EQ(notes(),
            (std::vector<std::string>{
                "train.yaml:4:12: note: `drop_last: false` is `last_batch_policy: partial` here.",
                "train.yaml:5:10: note: `shuffle: false` is `shuffle: {mode: none}` here."}));
  const Spec spec =
      load_spec(write(kHead + "device_id: 1\n"), {.device = Device::cpu(), .notes = &notes_});
  EXPECT_EQ(spec.device, Device::cpu());
  EXPECT_EQ(notes(), std::vector<std::string>{
                         "train.yaml:4:12: note: `device_id: 1` is `device: cuda:1` here."});
}

TEST_F(Config, SaysEveryMistakeAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(
      mistakes("version: 2\n"
               "batch_size: 0\n"
               "sed: 7\n"
               "num_threads: -1\n"
               "prefetch_queue_depth: 2.5\n"
               "max_held_batches: 0\n"
               "last_batch_policy: keep\n"
               "source:\n"
               "  type: raw\n"
               "  columns: {x: none.npy, y: [y.npy], z: z.yaml}\n"
               "shuffle: {mode: ful, seed: 3}\n"
               "stages:\n"
               "  - {op: normalise, mean: 1}\n"
               "  - {op: normalize, epsilon: -1}\n"
               "  - {op: clip, maximum: 3}\n"
               "  - clip\n"
               "  - {min: 3}\n"
               "  - {op: cast}\n"
               "output: {x: y}\n"),
      "train.yaml:1:10: `version` is 2; it must be 1.\n"
      "train.yaml:2:13: `batch_size` is 0; it must be at least 1.\n"
      "train.yaml:3:1: unknown key `sed`; did you mean `seed`?\n"
      "train.yaml:4:14: `num_threads` is -1; it must be between 0 and 4096.\n"
      "train.yaml:5:23: `prefetch_queue_depth` is 2.5; it must be an integer.\n"
      "train.yaml:6:19: `max_held_batches` is 0; it must be between 1 and 65536.\n"
      "train.yaml:7:20: `last_batch_policy` is keep; it must be partial, drop or fill.\n"
      "train.yaml:9:9: source: `type` is raw; it must be npy or concat.\n"
      "train.yaml:10:16: source: column `x`: none.npy: cannot be opened: No such file or "
      "directory.\n"
      "train.yaml:10:29: source: `columns.y` is a list; it must be the path of a .npy file.\n"
      "train.yaml:10:41: source: column `z`: z.yaml: cannot be opened: No such file or directory.\n"
      "train.yaml:11:17: shuffle: `mode` is ful; it must be none, full or window.\n"
      "train.yaml:11:22: shuffle: unknown key `seed`; it must be mode or window.\n"
      "train.yaml:13:10: stage 1: unknown op `normalise`; did you mean `normalize`?\n"
      "train.yaml:14:30: stage 2 (normalize): `epsilon` is -1; it must be at least 0.\n"
      "train.yaml:15:16: stage 3 (clip): unknown key `maximum`; did you mean `max`?\n"
      "train.yaml:16:5: stage 4 is clip; it must be a map such as {op: clip, min: -3, max: 3}.\n"
      "train.yaml:17:5: stage 5: `op` is missing; it must be the name of an op.\n"
      "train.yaml:18:5: stage 6 (cast): `dtype` is missing; it must be given. The dtype of the "
      "result.\n"
      "train.yaml:19:9: `output` is a map; it must be a name or a list of names.");
}

TEST_F(Config, AddsWhatCompilingFindsWhenTheRestIsBound) {
  EXPECT_EQ(
      mistakes(kHead + "colour: red\n"
                       "stages:\n"
                       "  - {op: clip, inputs: q, min: 0}\n"
                       "output: [x, w]\n"),
      "train.yaml:4:1: unknown key `colour`; it must be version, name, batch_size, seed, "
      "device, device_id, "
      "num_threads, prefetch_queue_depth, max_held_batches, last_batch_policy, drop_last, "
      "fuse, source, shuffle, sampling, subset, split, shard, checks, on_error, stages or "
      "output.\n"
      "train.yaml:6:5: stage 1 (clip): it reads `q`, but no such field exists here; there "
      "are `x`, `y`. Did you "
      "mean `x`?\n"
      "train.yaml:7:9: output: there is no field `w`; there are `x`, `y`, `q`. Did you mean `x`?");
}

TEST_F(Config, SaysWhatIsMissing) {
  EXPECT_EQ(mistakes("name: x\n"),
            "train.yaml:1:1: `version` is missing; it must be 1.\n"
            "train.yaml:1:1: `batch_size` is missing; it must be an integer, at least 1.\n"
            "train.yaml:1:1: `source` is missing; it must be a map such as {type: npy, columns: "
            "{x: data/x.npy}}.");
  EXPECT_EQ(mistakes("{version: 1, batch_size: 1, source: {}}"),
            "train.yaml:1:37: source: `type` is missing; it must be npy or concat.\n"
            "train.yaml:1:37: source: `columns` is missing; it must be a map of fields to .npy "
            "files, {x: data/x.npy}.");
}

TEST_F(Config, RefusesValuesOfTheWrongShape) {
  EXPECT_EQ(
      mistakes("- a\n"),
      "train.yaml:1:1: the file holds a list; it must be a map that starts with `version: 1`.");
  EXPECT_EQ(
      mistakes(""),
      "train.yaml:1:1: the file holds nothing; it must be a map that starts with `version: 1`.");
  EXPECT_EQ(mistakes("{version: 1, batch_size: 1, source: x.npy}"),
            "train.yaml:1:37: `source` is x.npy; it must be a map such as {type: npy, columns: {x: "
            "data/x.npy}}.");
  EXPECT_EQ(mistakes("{version: 1, batch_size: 1, source: {type: npy, columns: x.npy}}"),
            "train.yaml:1:58: source: `columns` is x.npy; it must be a map of fields to .npy "
            "files, {x: data/x.npy}.");
  EXPECT_EQ(mistakes("{version: 1, batch_size: 1, source: {type: npy, columns: {}}}"),
            "train.yaml:1:58: source: `columns` is a map; it must be a map of fields to .npy "
            "files, {x: data/x.npy}.");
  EXPECT_EQ(mistakes(kHead + "shuffle: full\n"),
            "train.yaml:4:10: `shuffle` is full; it must be a map such as {mode: full}.");
  EXPECT_EQ(mistakes(kHead + "stages: {op: clip}\n"),
            "train.yaml:4:9: `stages` is a map; it must be a list of maps such as {op: clip, min: "
            "-3, max: 3}.");
  EXPECT_EQ(mistakes(kHead + "output: []\n"),
            "train.yaml:4:9: `output` is a list; it must be a name or a list of names.");
  EXPECT_EQ(mistakes(kHead + "output: [x, [y]]\n"),
            "train.yaml:4:13: `output[1]` is a list; it must be a name.");
  EXPECT_EQ(mistakes(kHead + "stages: [{op: [clip]}]\n"),
            "train.yaml:4:15: stage 1: `op` is a list; it must be the name of an op.");
}

TEST_F(Config, RefusesASeedThatIsNotAWholeNumber) {
  EXPECT_EQ(mistakes(kHead + "seed: -1\n"),
            "train.yaml:4:7: `seed` is -1; it must be an integer of at least 0.");
  EXPECT_EQ(mistakes(kHead + "seed: 1.5\n"),
            "train.yaml:4:7: `seed` is 1.5; it must be an integer of at least 0.");
  EXPECT_EQ(mistakes(kHead + "seed: x\n"),
            "train.yaml:4:7: `seed` is x; it must be an integer of at least 0.");
}

TEST_F(Config, RefusesTwoWaysToSayOneThing) {
  EXPECT_EQ(mistakes(kHead + "num_threads: 1\nnum_workers: 2\n"),
            "train.yaml:5:1: `num_threads` is there twice, under two names; keep `num_threads`.");
  EXPECT_EQ(mistakes(kHead + "last_batch_policy: fill\ndrop_last: true\n"),
            "train.yaml:5:12: `drop_last` and `last_batch_policy` say the same thing; keep "
            "`last_batch_policy`.");
  EXPECT_EQ(mistakes(kHead + "device: cpu\ndevice_id: 0\n"),
            "train.yaml:5:12: `device_id` and `device` say the same thing; keep `device`.");
}

TEST_F(Config, RefusesADeviceThatIsNotThere) {
  EXPECT_EQ(mistakes(kHead + "device: gpu\n"),
            "train.yaml:4:9: `device` is gpu; it must be auto, cpu, cuda or cuda:N.");
  EXPECT_EQ(mistakes(kHead + "device: [cpu]\n"),
            "train.yaml:4:9: `device` is a list; it must be auto, cpu, cuda or cuda:N.");
  const std::string absent = kit::caught([] { device_from_name("cuda:63"); }).text;
  EXPECT_EQ(mistakes(kHead + "device: cuda:63\n"), "train.yaml:4:9: " + absent);
  EXPECT_EQ(mistakes(kHead + "device_id: 63\n"), "train.yaml:4:12: " + absent);
  EXPECT_EQ(mistakes(kHead + "stages: [{op: abs, device: cuda:63}]\n"),
            "train.yaml:4:28: stage 1 (abs): " + absent);
}

TEST_F(Config, TakesADeviceThatIsNotThereToBeLookedAt) {
  const LoadOptions look{.presence = Presence::not_needed};
  for (const char* key : {"device: cuda:63\n", "device_id: 63\n"}) {
    EXPECT_EQ(load_spec(write(kHead + key), look).device, Device::cuda(63));
  }
  const Spec spec =
      load_spec(write(kHead + "device: cuda:63\nstages: [{op: abs, device: cuda:63}]\n"), look);
  EXPECT_EQ(spec.stages[0].device, Device::cuda(63));
}

TEST_F(Config, SaysWhatIsWrongWithTheData) {
  const std::string head = "{version: 1, batch_size: 4, source: {type: npy, columns: ";
  EXPECT_EQ(mistakes(head + "{x: x.npy, s: short.npy}}}"),
            "train.yaml:1:58: source: short.npy: it has 9 samples but x.npy has 10; all columns "
            "must have as many.");
  save("scalar.npy", kit::random({}, Dtype::f32, 1));
  std::ofstream(folder_ + "/bad.npy") << "PK\x03\x04";
  EXPECT_EQ(mistakes(head + "{s: scalar.npy, b: bad.npy}}}"),
            "train.yaml:1:62: source: column `s`: scalar.npy: it holds one number; axis 0 must run "
            "over the samples.\n"
            "train.yaml:1:77: source: column `b`: bad.npy: not a .npy file: it starts with "
            "`PK\\x03\\x04`. It looks like an "
            ".npz archive: save each array with np.save.");
}

TEST_F(Config, SaysWhatIsWrongWithTheYaml) {
  EXPECT_EQ(mistakes("version: 1\nversion: 1\n"),
            "train.yaml:2:1: the key `version` is here twice; the first is on line 1.");
  EXPECT_EQ(mistakes("source:\n\ttype: npy\n"),
            "train.yaml:2:1: a tab in the indentation; YAML allows spaces only.");
  EXPECT_EQ(mistakes("a: [1, 2\nb: 3\n"),
            "train.yaml:2:2: bad YAML: end of sequence flow not found.");
  EXPECT_EQ(mistakes("a: b: c\n"), "train.yaml:1:5: bad YAML: illegal map value.");
  // yaml-cpp 0.8 names the anchor, too.
  const std::string undefined = "train.yaml:1:4: bad YAML: the referenced anchor is not defined";
  const std::string found = mistakes("a: *nope\n");
  EXPECT_TRUE(found == undefined + "." || found == undefined + ": nope.") << found;
  EXPECT_EQ(mistakes("a: &x [*x]\n"),
            "train.yaml:1:8: an alias stands inside the value that it names.");
  EXPECT_EQ(mistakes("a: 1\n---\nb: 2\n"),
            "train.yaml:3:1: a second document begins here; a file holds one.");
  EXPECT_EQ(mistakes("{[a]: 1}\n"), "train.yaml:1:2: a key is a list; keys are words.");
}

TEST_F(Config, RefusesAliasesThatUnfoldWithoutEnd) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string above = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k)
      yaml += (k == 0 ? "" : ", ") + above;
    yaml += "]\n";
  }
  EXPECT_TRUE(mistakes(yaml).ends_with(": the file has more than 100000 values."))
      << mistakes(yaml);
}

TEST_F(Config, NamesAFileThatCannotBeRead) {
  EXPECT_ERROR(load_spec(folder_ + "/none.yaml"), io,
               folder_ + "/none.yaml: cannot be opened: No such file or directory.");
  EXPECT_ERROR(load_spec(folder_), io, folder_ + ": it is a folder; give a YAML file.");
}

TEST(ParseStage, GivesOneStage) {
  const StageSpec stage = parse_stage("{op: clip, min: -3, outputs: y}");
  EXPECT_EQ(stage.op.name(), "clip");
  EXPECT_EQ(stage.op.settings<Clip>().min, Number(-3));
  EXPECT_EQ(stage.outputs, std::vector<std::string>{"y"});
  EXPECT_ERROR(parse_stage("{op: clip, mim: 3}"), invalid,
               "stage:1:12: stage 1 (clip): unknown key `mim`; did you mean `min`?");
}

/// A setting that is called as a key of every stage could never be set.
TEST(Registry, SettingsAndKeysOfAStageDoNotCollide) {
  for (const OpEntry& entry : registry()) {
    std::vector<std::string> taken;
    for (const config::Key& key : config::stage_keys()) {
      taken.emplace_back(key.name);
      taken.insert(taken.end(), key.aliases.begin(), key.aliases.end());
    }
    for (const auto& setting : config::setting_names(entry.def)) {
      for (const std::string& name : taken)
        EXPECT_NE(setting.name, name) << entry.def.name;
      for (const auto alias : setting.aliases) {
        for (const std::string& name : taken)
          EXPECT_NE(alias, name) << entry.def.name;
        taken.emplace_back(alias);
      }
      taken.emplace_back(setting.name);
    }
  }
}

/// Every op's example is a stage that this build reads; the arrays that it names are made for it.
TEST_F(Config, ReadsTheExampleOfEveryOp) {
  std::filesystem::create_directory(folder_ + "/data");
  for (const OpEntry& entry : registry()) {
    const std::string example(entry.def.example);
    ASSERT_FALSE(example.empty()) << entry.def.name;
    for (std::size_t end = example.find(".npy"); end != std::string::npos;
         end = example.find(".npy", end + 1)) {
      const std::size_t begin = example.find_last_of(" [", end) + 1;
      save(example.substr(begin, end + 4 - begin), kit::random({4, 4}, Dtype::f32, 1));
    }
    EXPECT_EQ(parse_stage(example, folder_).op.name(), entry.def.name);
  }
}

/// The page lists every key as the table does.
TEST(ConfigPage, ListsEveryKey) {
  std::ifstream file(FOREBAY_CONFIG_PAGE);
  if (!file) GTEST_SKIP() << "the page lies with the source code, which is not here";
  std::ostringstream page;
  page << file.rdbuf();
  for (const auto& [section, keys] : config::sections()) {
    const std::string_view path = section == "stages." ? "" : section;
    for (const config::Key& key : keys) {
      std::string aliases;
      for (const auto alias : key.aliases)
        aliases += fmt::format("{}`{}`", aliases.empty() ? "" : ", ", alias);
      const std::string row =
          fmt::format("| `{}{}` | {} | {} | {} | {}{}|\n", path, key.name, key.type,
                      key.default_text(), key.doc, aliases, aliases.empty() ? "" : " ");
      EXPECT_NE(page.str().find(row), std::string::npos) << row;
    }
  }
}

}  // namespace
}  // namespace forebay
