// Exact resume: what is delivered behind a restored state is what an uninterrupted run delivers,
// bit for bit; and a state of something else is refused with what has changed.

#include <algorithm>
#include <atomic>
#include <random>

#include <forebay/ops/matmul/matmul.h>
#include <forebay/ops/noise/noise.h>
#include <forebay/ops/normalize/normalize.h>
#include <forebay/ops/random_flip/random_flip.h>
#include <forebay/ops/reshape/reshape.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

class ResumeTest : public PipelineTest {};

/// A batch, held apart from its slot.
struct Delivered {
  BatchPosition position;
  std::int64_t real_rows = 0;
  std::vector<std::int64_t> ids;
  Array x;
};

Delivered delivered(const Batch& batch, Device device) {
  return {{batch.epoch(), batch.step(), 0},
          batch.real_rows(),
          ids_of(batch),
          kit::to_host(batch["x"], kit::context(device))};
}

/// All batches of a loop as users write it, up to the end of epoch `epochs` - 1.
std::vector<Delivered> run(Pipeline& pipeline, std::int64_t epochs) {
  std::vector<Delivered> all;
  for (std::int64_t epoch = pipeline.position().epoch; epoch < epochs; ++epoch) {
    for (const Batch& batch : pipeline.epoch(epoch))
      all.push_back(delivered(batch, pipeline.device()));
  }
  return all;
}

testing::AssertionResult same(const std::vector<Delivered>& a, const std::vector<Delivered>& b,
                              std::size_t behind = 0) {
  if (a.size() != b.size() + behind)
    return testing::AssertionFailure() << a.size() << " batches, " << b.size() << " resumed";
  for (std::size_t i = 0; i < b.size(); ++i) {
    const Delivered &want = a[i + behind], &got = b[i];
    if (want.position != got.position || want.ids != got.ids || want.real_rows != got.real_rows)
      return testing::AssertionFailure() << "batch " << i << " is another one";
    if (auto bits = kit::same_bits(want.x, got.x); !bits) return bits << ", batch " << i;
  }
  return testing::AssertionSuccess();
}

/// 20 samples in batches of 6, shuffled, with a pointwise stage and a kernel stage.
Spec training_spec(Device device, LastBatchPolicy policy = LastBatchPolicy::partial) {
  Spec spec = counting_spec(device);
  spec.shuffle = ShuffleMode::full;
  spec.seed = 7;
  spec.last_batch_policy = policy;
  spec.stages = {stage("normalize", Normalize{.mean = 3.0, .std = 1.7}), stage(same_op())};
  return spec;
}

DEVICE_TEST(ResumeTest, GoesOnBehindEveryStepBitForBit) {
  for (const auto policy :
       {LastBatchPolicy::partial, LastBatchPolicy::drop, LastBatchPolicy::fill}) {
    const Spec spec = training_spec(device(), policy);
    Pipeline straight = Pipeline::from_spec(spec);
    const auto want = run(straight, 3);
    Pipeline interrupted = Pipeline::from_spec(spec);
    for (std::size_t taken = 0; taken <= want.size(); ++taken) {
      for (const int depth : {1, 4}) {
        Spec other = spec;
        other.prefetch_queue_depth = depth;
        other.num_threads = depth;
        Pipeline resumed = Pipeline::from_spec(other);
        resumed.restore(interrupted.state());
        EXPECT_EQ(resumed.state(), interrupted.state());
        EXPECT_TRUE(same(want, run(resumed, 3), taken)) << "behind " << taken << " batches";
      }
      while (taken < want.size() && !interrupted.next()) {
      }  // an epoch's end is no batch
    }
  }
}

DEVICE_TEST(ResumeTest, RandomOpsDrawWhatTheyWouldHaveDrawn) {
  Spec spec = training_spec(device());
  spec.stages.push_back(stage("noise", Noise{.std = 0.5}));
  spec.stages.push_back(stage("random_flip", RandomFlip{.axes = {-1}}));
  Pipeline interrupted = Pipeline::from_spec(spec);
  const auto want = run(interrupted, 2);
  Pipeline plain = Pipeline::from_spec(training_spec(device()));
  EXPECT_FALSE(same(run(plain, 2), want));
  interrupted = Pipeline::from_spec(spec);
  for (std::size_t taken = 0; taken < 6; ++taken) {
    Pipeline resumed = Pipeline::from_spec(spec);
    resumed.restore(interrupted.state());
    EXPECT_TRUE(same(want, run(resumed, 2), taken)) << "behind " << taken << " batches";
    while (!interrupted.next()) {
    }
  }
}

DEVICE_TEST(ResumeTest, GoesOnAgainAndAgain) {
  // Saved and killed behind every single batch.
  const Spec spec = training_spec(device());
  Pipeline straight = Pipeline::from_spec(spec);
  const auto want = run(straight, 3);
  std::vector<Delivered> got;
  for (std::string state = Pipeline::from_spec(spec).state(); got.size() < want.size();) {
    Pipeline life = Pipeline::from_spec(spec);
    life.restore(state);
    const auto batch = life.next();
    if (batch) got.push_back(delivered(*batch, device()));
    state = life.state();
  }
  EXPECT_TRUE(same(want, got));
}

DEVICE_TEST(ResumeTest, AStateAtTheEndOfAnEpochBelongsToThatEpoch) {
  Pipeline pipeline = Pipeline::from_spec(training_spec(device()));
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(pipeline.next());
  EXPECT_EQ(pipeline.position(), (BatchPosition{0, 4, 20}));
  Pipeline resumed = Pipeline::from_spec(training_spec(device()));
  resumed.restore(pipeline.state());
  EXPECT_EQ(resumed.position(), (BatchPosition{0, 3, 20}));
  // What comes behind the epoch's batches, a validation say, has not been done: its loop is empty.
  for (const Batch& batch : resumed.epoch(0))
    FAIL() << "batch " << batch.step();
  EXPECT_EQ(resumed.position(), (BatchPosition{1, 0, 0}));
  EXPECT_FALSE(pipeline.next());
  EXPECT_EQ(resumed.state(), pipeline.state());
}

DEVICE_TEST(ResumeTest, AnotherEpochIsWhole) {
  Pipeline fresh = Pipeline::from_spec(training_spec(device()));
  const auto want = run(fresh, 2);
  Pipeline pipeline = Pipeline::from_spec(training_spec(device()));
  ASSERT_TRUE(pipeline.next());
  const std::string state = pipeline.state();
  pipeline.restore(state);
  EXPECT_TRUE(same(want, run(pipeline, 2), 1));
  for (const bool begun : {false, true}) {
    pipeline.restore(state);
    if (begun) {
      ASSERT_TRUE(pipeline.next());
    }
    std::vector<Delivered> again;
    if (!begun) pipeline.start_epoch(1);  // leaves epoch 0
    for (const Batch& batch : pipeline.epoch(0))
      again.push_back(delivered(batch, device()));
    EXPECT_EQ(again.size(), 4u);
    EXPECT_TRUE(same({want.begin(), want.begin() + 4}, again));
  }
}

DEVICE_TEST(ResumeTest, ReplacesARunThatIsUnderWayStoppedOrFailed) {
  auto source = std::make_shared<CountingSource>(20);
  std::atomic<bool> gone = false;
  source->on_read_ = [&](auto) {
    if (gone) throw std::runtime_error("gone");
  };
  Spec spec = training_spec(device());
  spec.source = source;
  Pipeline pipeline = Pipeline::from_spec(spec);
  const auto want = run(pipeline, 1);
  pipeline.restore(Pipeline::from_spec(spec).state());
  ASSERT_TRUE(pipeline.next());
  const std::string state = pipeline.state();
  const auto held = pipeline.next();
  pipeline.restore(state);  // one batch back
  EXPECT_TRUE(is_intact(*held) || held->rows() == 6);
  EXPECT_EQ(pipeline.stats().batches, 0);
  EXPECT_TRUE(same(want, run(pipeline, 1), 1));
  pipeline.restore(state);
  pipeline.stop();
  EXPECT_ERROR(pipeline.next(), cancelled, "pipeline test was stopped; it delivers nothing more.");
  pipeline.restore(state);
  EXPECT_TRUE(same(want, run(pipeline, 1), 1));
  gone = true;
  pipeline.restore(state);
  EXPECT_ANY_THROW(pipeline.next());
  gone = false;
  pipeline.restore(state);
  EXPECT_TRUE(same(want, run(pipeline, 1), 1));
}

/// How often each sample was real in an epoch that ran as `legs` say: so many steps with so many
/// shards and batches of such a size each, the last leg to the end.
struct Leg {
  int shards;
  std::int64_t batch_size;
  int steps;
};

std::vector<std::int64_t> samples_of_an_epoch(const Spec& spec, const std::vector<Leg>& legs) {
  std::vector<std::int64_t> samples;
  std::string state = Pipeline::from_spec(spec).state();
  for (const auto& [shards, batch_size, steps] : legs) {
    std::vector<Pipeline> ranks;
    for (int id = 0; id < shards; ++id) {
      Spec rank = spec;
      rank.batch_size = batch_size;
      rank.shard = {id, shards};
      ranks.push_back(Pipeline::from_spec(rank));
      ranks.back().restore(state);
    }
    for (int step = 0; step < steps || &legs.back().steps == &steps; ++step) {
      int without = 0;
      for (Pipeline& rank : ranks) {
        const auto batch = rank.next();
        if (!batch) {
          ++without;
          continue;
        }
        EXPECT_EQ(batch->epoch(), 0);
        EXPECT_TRUE(batch->rows() >= 1 && batch->rows() <= batch_size);
        const auto ids = ids_of(*batch);
        samples.insert(samples.end(), ids.begin(), ids.begin() + batch->real_rows());
      }
      EXPECT_TRUE(without == 0 || without == shards);  // the same steps on all
      if (without > 0) break;
    }
    for (Pipeline& rank : ranks)
      EXPECT_EQ(rank.state(), ranks[0].state());
    state = ranks[0].state();
  }
  return samples;
}

DEVICE_TEST(ResumeTest, AnEpochAcrossOneThreeAndTwoShardsHasEachSampleOnce) {
  Spec spec = training_spec(device());
  for (const std::int64_t size : {20, 41, 60}) {
    spec.source = std::make_shared<CountingSource>(size);
    spec.batch_size = size;
    Pipeline whole = Pipeline::from_spec(spec);
    const auto want = ids_of(*whole.next());
    for (const int first : {0, 1, 3}) {
      // The order is that of one batch, whatever cuts it.
      EXPECT_EQ(samples_of_an_epoch(spec, {{1, 4, first}, {3, 2, 1}, {2, 3, 0}}), want);
    }
  }
}

DEVICE_TEST(ResumeTest, WithTheSameGlobalBatchTheShardsMakeTheSameBatches) {
  Spec spec = training_spec(device());
  spec.batch_size = 6;
  Pipeline one = Pipeline::from_spec(spec);
  ASSERT_TRUE(one.next());
  spec.batch_size = 2;
  std::vector<Pipeline> three;
  for (int id = 0; id < 3; ++id) {
    spec.shard = {id, 3};
    three.push_back(Pipeline::from_spec(spec));
    three.back().restore(one.state());
  }
  while (const auto batch = one.next()) {
    std::vector<std::int64_t> ids;
    for (Pipeline& shard : three) {
      const auto part = shard.next();
      ASSERT_TRUE(part);
      EXPECT_EQ(part->step(), batch->step());
      const auto rows = ids_of(*part);
      ids.insert(ids.end(), rows.begin(), rows.begin() + part->real_rows());
      EXPECT_EQ(shard.position(), one.position());
    }
    EXPECT_EQ(ids, ids_of(*batch));
  }
}

DEVICE_TEST(ResumeTest, RandomStepsOfALongRun) {
  Spec spec = counting_spec(device(), std::make_shared<CountingSource>(1000));
  spec.batch_size = 32;
  spec.shuffle = ShuffleMode::full;
  Pipeline straight = Pipeline::from_spec(spec);
  const auto want = run(straight, 2);
  std::mt19937 random(5);
  for (int i = 0; i < 5; ++i) {
    const auto taken = random() % want.size();
    Pipeline first = Pipeline::from_spec(spec);
    for (std::size_t left = taken; left > 0;)
      left -= first.next().has_value();
    Pipeline second = Pipeline::from_spec(spec);
    second.restore(first.state());
    EXPECT_TRUE(same(want, run(second, 2), taken)) << "behind " << taken << " batches";
  }
}

/// The state of a run on one device continues on the other with the same samples.
TEST(Resume, OnTheOtherDeviceCuda) {
  SKIP_WITHOUT(Device::cuda());
  for (const auto& [from, to] :
       {std::pair{Device::cpu(), Device::cuda()}, std::pair{Device::cuda(), Device::cpu()}}) {
    Pipeline first = Pipeline::from_spec(training_spec(from));
    Pipeline second = Pipeline::from_spec(training_spec(to));
    ASSERT_TRUE(first.next());
    second.restore(first.state());
    EXPECT_EQ(second.state(), first.state());
    const auto got = run(second, 2);
    Pipeline straight = Pipeline::from_spec(training_spec(from));
    EXPECT_TRUE(same(run(straight, 2), got, 1));  // these ops have the same bits on both devices
  }
}

/// Ten samples in memory, whose values the fingerprint sees.
Spec array_spec(std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
  Spec spec;
  spec.name = "test";
  const auto size = static_cast<std::int64_t>(x.size());
  spec.source = array_source({{"x", Array::from({size, 1}, x)}});
  spec.batch_size = 4;
  spec.seed = 7;
  spec.device = Device::cpu();
  spec.shuffle = ShuffleMode::full;
  spec.stages = {stage("clip", Clip{.min = -3, .max = 30}),
                 stage("matmul", Matmul{.other = Array::from({1, 2}, std::vector<float>{1, 2})})};
  return spec;
}

std::string state_of(const Spec& spec, int batches = 1) {
  Pipeline pipeline = Pipeline::from_spec(spec);
  for (int i = 0; i < batches; ++i)
    pipeline.next();
  return pipeline.state();
}

// States that were saved must be read for ever: a change needs a new version.
TEST(State, IsAFewHundredBytesThatStayAsTheyWere) {
  std::string want = R"({"forebay_state":1,"epoch":0,"cursor":4,)";
  want += R"("plan_hash":"4e12d1b121b84265","dataset_hash":"9347d09f6f4b7e47",)";
  want += R"("source":"array x","plan":{"seed":"7",)";
  want += R"("order":"shuffle full, sampling once, last batch partial",)";
  want += R"("samples of an epoch":"10","stage 1":"clip(min=-3, max=30): x -> x",)";
  want += R"("stage 2":"matmul(other=f32 (1, 2) #26bbd5d7f1ef8d89): x -> x",)";
  want += R"~("output":"x"},"dataset":{"samples":"10","columns":"x f32 (1,)",)~";
  want += R"("content":"61da36bf62d8de77"}})";
  EXPECT_EQ(state_of(array_spec()), want);
}

/// `text` with # for each run of 16 hexadecimal digits (and a # before it).
std::string without_hashes(std::string text) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (std::size_t at = 0; (at = text.find_first_of(kDigits, at)) != std::string::npos; ++at) {
    const std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    const std::size_t begin = at > 0 && text[at - 1] == '#' ? at - 1 : at;
    if (end - at == 16) text.replace(begin, end - begin, "#");
    at = end - at == 16 ? begin : end;
  }
  return text;
}

/// What restoring the state of `was` in a pipeline of `is` throws, with hashes as #.
std::string refusal(const Spec& was, const Spec& is) {
  const std::string state = state_of(was);
  Pipeline pipeline = Pipeline::from_spec(is);
  return without_hashes(kit::caught([&] { pipeline.restore(state); }).text);
}

TEST(State, HangsOnNothingThatLeavesTheSamplesAsTheyAre) {
  Spec other = array_spec();
  other.name = "another name";
  other.batch_size = 3;
  other.num_threads = 3;
  other.prefetch_queue_depth = 5;
  other.max_held_batches = 3;
  other.fuse = false;
  other.shard = {1, 2};
  other.stages[0].device = Device::cpu();
  other.stages[1].inputs = {"x"};
  other.stages.push_back(with(clip(1), {"x"}, {"unused"}));
  other.output = {"x"};
  Pipeline pipeline = Pipeline::from_spec(other);
  pipeline.restore(state_of(array_spec()));
  EXPECT_EQ(pipeline.position(), (BatchPosition{0, 0, 4}));
}

TEST(State, IsRefusedWithWhatHasChangedInThePipeline) {
  const std::string title =
      "the state is of another pipeline; restore it where it was saved, or allow changes:\n";
  const auto changed = [&](auto change) {
    Spec other = array_spec();
    change(other);
    return refusal(array_spec(), other);
  };
  EXPECT_EQ(changed([](Spec& spec) { spec.seed = 8; }), title + "  seed: was 7; is 8");
  EXPECT_EQ(changed([](Spec& spec) { spec.shuffle = ShuffleMode::none; }),
            title +
                "  order: was shuffle full, sampling once, last batch partial; is shuffle none, "
                "sampling once, last batch partial");
  EXPECT_EQ(changed([](Spec& spec) { spec.last_batch_policy = LastBatchPolicy::fill; }),
            title +
                "  order: was shuffle full, sampling once, last batch partial; is shuffle full, "
                "sampling once, last batch fill");
  EXPECT_EQ(changed([](Spec& spec) { spec.stages[0] = stage("clip", Clip{.min = -3, .max = 40}); }),
            title + "  stage 1: was clip(min=-3, max=30): x -> x; is clip(min=-3, max=40): x -> x");
  EXPECT_EQ(changed([](Spec& spec) { spec.stages.pop_back(); }),
            title + "  stage 2: was matmul(other=f32 (1, 2) #): x -> x; it is gone");
  EXPECT_EQ(changed([](Spec& spec) { spec.stages.push_back(stage("clip", Clip{.min = 0})); }),
            title + "  stage 3: is new: clip(min=0): x -> x");
  EXPECT_EQ(changed([](Spec& spec) {
              spec.stages[1] =
                  stage("matmul", Matmul{.other = Array::from({1, 2}, std::vector<float>{1, 3})});
            }),
            title +
                "  stage 2: was matmul(other=f32 (1, 2) #): x -> x; is matmul(other=f32 (1, 2) "
                "#): x -> x");
  EXPECT_EQ(changed([](Spec& spec) {
              spec.split = {.part = SplitPart::train, .validation = 0.2, .by = {}, .seed = 3};
            }),
            title +
                "  samples of an epoch: was 10; is 8, of the train part with 0.2 for "
                "validation, seed 3");
  EXPECT_EQ(changed([](Spec& spec) {
              spec.subset = Array::from({2}, std::vector<std::int64_t>{1, 2});
            }),
            title + "  samples of an epoch: was 10; is 2, of a subset i64 (2,) #");
}

TEST(State, HangsOnTheBatchSizeWhereSamplesMix) {
  const auto mixing = [](std::int64_t batch_size) {
    Spec spec = array_spec();
    spec.batch_size = batch_size;
    spec.stages = {stage("normalize", Normalize{.axes = std::vector<std::int64_t>{0}})};
    return spec;
  };
  EXPECT_EQ(refusal(mixing(5), mixing(2)),
            "the state is of another pipeline; restore it where it was saved, or allow changes:\n"
            "  batch size, since a stage mixes samples: was 5; is 2");
}

TEST(State, IsRefusedWithWhatHasChangedInTheDataset) {
  const std::string title =
      "the state is of another dataset; restore it where it was saved, or allow changes:\n";
  EXPECT_EQ(refusal(array_spec(), array_spec({0, 1, 2, 3, 4, 5, 6, 7, 8, 9.5})),
            title + "  content: was #; is #");
  EXPECT_EQ(refusal(array_spec(), array_spec({0, 1, 2, 3, 4, 5, 6, 7, 8})),
            "the state is of another pipeline and another dataset; restore it where it was saved, "
            "or allow changes:\n"
            "  samples of an epoch: was 10; is 9\n"
            "  samples: was 10; is 9\n"
            "  content: was #; is #");
}

/// The samples of `array_spec` mixed from sources with 4 and 6 of them.
Spec mixed_spec() {
  Spec spec = array_spec();
  const SourcePtr a = array_source({{"x", Array::from({4, 1}, std::vector<float>{0, 1, 2, 3})}});
  const SourcePtr b =
      array_source({{"x", Array::from({6, 1}, std::vector<float>{4, 5, 6, 7, 8, 9})}});
  spec.source = concat_source({{"a", a}, {"b", b}});
  spec.sampling.mode = SamplingMode::mix;
  spec.sampling.proportions = {{"a", 0.7}, {"b", 0.3}};
  return spec;
}

TEST(State, OfAMixIsRefusedWithWhatHasChanged) {
  const auto changed = [&](auto change) {
    Spec other = mixed_spec();
    change(other);
    const std::string text = refusal(mixed_spec(), other);
    return text.substr(text.find('\n') + 1);
  };
  const auto with_parts = [](std::vector<SourcePart> parts) {
    return [=](Spec& spec) { spec.source = concat_source(parts); };
  };
  Spec same = mixed_spec();
  std::swap(same.sampling.proportions[0], same.sampling.proportions[1]);
  EXPECT_EQ(refusal(mixed_spec(), same), "(nothing was thrown)");
  EXPECT_EQ(
      changed([](Spec& spec) { spec.sampling.proportions[0].second = 0.8; }),
      "  order: was shuffle full, sampling mix of a: 0.7 b: 0.3, last batch partial; is shuffle "
      "full, sampling mix of a: 0.8 b: 0.3, last batch partial");
  EXPECT_EQ(changed([](Spec& spec) { spec.sampling.stopping = StoppingStrategy::all_exhausted; }),
            "  samples of an epoch: was 10; is 20");
  const Spec mixed = mixed_spec();
  const SourcePtr a = mixed.source->parts()[0].source, b = mixed.source->parts()[1].source;
  EXPECT_EQ(
      changed(with_parts({{"b", b}, {"a", a}})),
      "  order: was shuffle full, sampling mix of a: 0.7 b: 0.3, last batch partial; is shuffle "
      "full, sampling mix of b: 0.3 a: 0.7, last batch partial\n"
      "  source 1: was a, 4 samples, content #; is b, 6 samples, content #\n"
      "  source 2: was b, 6 samples, content #; is a, 4 samples, content #");
  const SourcePtr other =
      array_source({{"x", Array::from({4, 1}, std::vector<float>{0, 1, 2, 7})}});
  EXPECT_EQ(changed(with_parts({{"a", other}, {"b", b}})),
            "  source 1: was a, 4 samples, content #; is a, 4 samples, content #");
  EXPECT_EQ(
      changed([&](Spec& spec) {
        spec.source = concat_source({{"a", a}, {"b", b}, {"c", a}});
        spec.sampling.proportions.emplace_back("c", 0);
        spec.sampling.samples = 10;
      }),
      "  order: was shuffle full, sampling mix of a: 0.7 b: 0.3, last batch partial; is shuffle "
      "full, sampling mix of a: 0.7 b: 0.3 c: 0, last batch partial\n"
      "  samples: was 10; is 14\n"
      "  source 3: is new: c, 4 samples, content #");
}

TEST(State, OfSomethingElseCanBeAllowed) {
  Spec other = array_spec({0, 1, 2, 3, 4, 5});
  other.seed = 8;
  Pipeline pipeline = Pipeline::from_spec(other);
  pipeline.restore(state_of(array_spec()), {.allow_changes = true});
  EXPECT_EQ(pipeline.position(), (BatchPosition{0, 1, 4}));
  EXPECT_ERROR(pipeline.restore(state_of(array_spec(), 2), {.allow_changes = true}), invalid,
               "the state stands behind 8 samples of epoch 0; an epoch has 6 samples.");
}

TEST(State, IsRefusedWhereTheLastBatchWouldNotFit) {
  // Whole batches of 5 in an epoch of 10, but behind 4 samples one of a single row is left.
  Spec spec = array_spec();
  spec.stages = {stage("reshape", Reshape{.shape = {-1, 5}})};
  const std::string state = state_of([&] {
    Spec small = array_spec();
    small.stages.clear();
    return small;
  }());
  spec.batch_size = 5;
  Pipeline pipeline = Pipeline::from_spec(spec);
  EXPECT_ERROR(pipeline.restore(state, {.allow_changes = true}), invalid,
               "the last batch of an epoch has 1 of 5 rows, for which the pipeline does not fit; "
               "set `last_batch_policy` to drop or fill:\n"
               "stage 1 (reshape): 1 elements do not fit shape (-1, 5); the extents must multiply "
               "to 1, and one may be -1.");
  EXPECT_EQ(pipeline.position(), BatchPosition{});
}

TEST(State, OfASourceWithoutFingerprintGoesByItsSizeAndColumns) {
  Spec spec = counting_spec(Device::cpu());
  EXPECT_EQ(refusal(spec, spec), "(nothing was thrown)");
  Spec other = spec;
  other.source = std::make_shared<CountingSource>(20, 4);
  EXPECT_EQ(refusal(spec, other),
            "the state is of another dataset; restore it where it was saved, or allow changes:\n"
            "  columns: was x f32 (3,), label i64 (); is x f32 (4,), label i64 ()");
}

TEST(State, IsRefusedWhenItIsNone) {
  Pipeline pipeline = Pipeline::from_spec(array_spec());
  const auto restoring = [&](const std::string& text) {
    return kit::caught([&] { pipeline.restore(text); }).text;
  };
  EXPECT_TRUE(restoring("").starts_with("this is no state of a pipeline: ")) << restoring("");
  EXPECT_TRUE(restoring("[1]").starts_with("this is no state of a pipeline: "));
  EXPECT_TRUE(
      restoring("{\"forebay_state\": \"x\"}").starts_with("this is no state of a pipeline"));
  EXPECT_EQ(restoring("{\"forebay_state\": 2}"),
            "the state has version 2; this Forebay reads version 1.");
  std::string edited = pipeline.state();
  edited.replace(edited.find("\"plan_hash\":\"") + 13, 1, "?");
  EXPECT_EQ(restoring(edited),
            "the hashes of the state are not those of what it says; it was edited.");
  std::string far = pipeline.state();
  far.replace(far.find("\"cursor\":0"), 10, "\"cursor\":99");
  EXPECT_EQ(restoring(far),
            "the state stands behind 99 samples of epoch 0; an epoch has 10 samples.");
  EXPECT_EQ(pipeline.position(), BatchPosition{});  // still as it was
}

}  // namespace
}  // namespace forebay::test
