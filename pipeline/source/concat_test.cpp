// Several sources as one.

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/pipeline/source.h>

#include "kit/kit.h"

namespace forebay::test {
namespace {

using Indices = std::vector<std::int64_t>;

Array column(const Indices& values) {
  return Array::from({static_cast<std::int64_t>(values.size())}, values);
}

/// Samples 0..2 of `a`, none of `none`, 3..4 of `b`, whose columns are the other way round, and 5
/// of `c`.
std::vector<SourcePart> parts() {
  return {
      {"a", array_source({{"x", column({10, 11, 12})}, {"y", kit::random({3, 2}, Dtype::f32, 1)}})},
      {"none", array_source({{"x", column({})}, {"y", kit::random({0, 2}, Dtype::f32, 1)}})},
      {"b", array_source({{"y", kit::random({2, 2}, Dtype::f32, 2)}, {"x", column({20, 21})}})},
      {"c", array_source({{"x", column({30})}, {"y", kit::random({1, 2}, Dtype::f32, 3)}})}};
}

Indices read_integers(const Source& source, int number, const Indices& samples) {
  Indices values(samples.size(), -1);
  const Array target = column(values);
  source.read_column(number, samples, target.view());
  std::copy_n(target.as<std::int64_t>(), values.size(), values.begin());
  return values;
}

TEST(ConcatSource, HasTheSamplesOfAllOneAfterAnother) {
  const std::vector<SourcePart> all = parts();
  const SourcePtr source = concat_source(all, "source");
  EXPECT_EQ(source->size(), 6);
  ASSERT_EQ(source->columns().size(), 3u);
  EXPECT_EQ(source->columns()[2].name, "source");
  const Indices samples = {5, 0, 1, 3, 4, 2, 4, 4, 0};
  EXPECT_EQ(read_integers(*source, 0, samples), (Indices{30, 10, 11, 20, 21, 12, 21, 21, 10}));
  EXPECT_EQ(read_integers(*source, 2, samples), (Indices{3, 0, 0, 2, 2, 0, 2, 2, 0}));
  // All columns at once, and each alone.
  const Array x = column(samples), y = kit::random({9, 2}, Dtype::f32, 9),
              numbers = column(samples);
  source->read(samples, std::vector{x.view(), y.view(), numbers.view()});
  for (std::int64_t row = 0; row < 9; ++row) {
    const std::int64_t sample = samples[static_cast<std::size_t>(row)];
    const auto [name, index] = source->origin(sample);
    const auto part =
        std::find_if(all.begin(), all.end(), [&](const SourcePart& p) { return p.name == name; });
    const Array alone = kit::random({1, 2}, Dtype::f32, 8);
    part->source->read_column(name == "b" ? 0 : 1, Indices{index}, alone.view());
    EXPECT_TRUE(kit::same_bits(y.slice(0, row, row + 1), alone)) << row;
  }
  EXPECT_EQ(Indices(x.as<std::int64_t>(), x.as<std::int64_t>() + 9),
            read_integers(*source, 0, samples));
  EXPECT_EQ(Indices(numbers.as<std::int64_t>(), numbers.as<std::int64_t>() + 9),
            read_integers(*source, 2, samples));
}

TEST(ConcatSource, HasSamplesOfAnySize) {
  for (const std::int64_t width : {1, 500, 700}) {  // to either side of what is copied
    const Array x = kit::random({40, width}, Dtype::f32, 4);
    const SourcePtr source = concat_source({{"a", array_source({{"x", x.slice(0, 0, 15)}})},
                                            {"b", array_source({{"x", x.slice(0, 15, 40)}})}});
    const Indices samples = {39, 0, 15, 1, 2, 16, 17, 14, 3, 3};
    const Array got = kit::random({10, width}, Dtype::f32, 5);
    source->read(samples, std::vector{got.view()});
    for (std::int64_t row = 0; row < 10; ++row) {
      const std::int64_t sample = samples[static_cast<std::size_t>(row)];
      EXPECT_TRUE(kit::same_bits(got.slice(0, row, row + 1), x.slice(0, sample, sample + 1)));
    }
  }
}

TEST(ConcatSource, TellsWhereASampleIsFrom) {
  const SourcePtr source = concat_source(parts());
  EXPECT_EQ(source->columns().size(), 2u);
  const auto place = [&](std::int64_t sample) {
    const auto [name, index] = source->origin(sample);
    return fmt::format("{} {}", name, index);
  };
  EXPECT_EQ(place(0), "a 0");
  EXPECT_EQ(place(2), "a 2");
  EXPECT_EQ(place(3), "b 0");
  EXPECT_EQ(place(5), "c 0");
  EXPECT_EQ(source->describe(),
            "concat a (array x, y), none (array x, y), b (array y, x), c (array x, y)");
}

TEST(ConcatSource, NamesTheSourceThatFails) {
  const auto failing = [](std::int64_t, std::span<const ArrayView>) {
    fail(ErrorKind::io, "the disk is gone.");
  };
  const SourcePtr source =
      concat_source({{"good", array_source({{"x", column({1, 2})}})},
                     {"bad", callback_source(9, {{"x", Dtype::i64, {}}}, failing)}});
  EXPECT_ERROR(read_integers(*source, 0, {0, 1, 6, 7}), io,
               "samples 4..5 of bad: sample 4: the disk is gone.");
  EXPECT_EQ(source->grain(), 1);
}

TEST(ConcatSource, HasTheFingerprintsOfAll) {
  const auto fingerprint = [](const Indices& a, const Indices& b) {
    return concat_source(
               {{"a", array_source({{"x", column(a)}})}, {"b", array_source({{"x", column(b)}})}})
        ->fingerprint();
  };
  const std::string one = fingerprint({1, 2}, {3});
  EXPECT_EQ(one, fingerprint({1, 2}, {3}));
  EXPECT_NE(one, fingerprint({1, 2}, {4}));
  EXPECT_NE(one, fingerprint({3}, {1, 2}));
}

TEST(ConcatSource, RefusesSourcesThatDoNotFit) {
  const SourcePtr x = array_source({{"x", column({1})}});
  EXPECT_ERROR(concat_source({}), invalid, "concat_source: it has no parts; give at least one.");
  EXPECT_ERROR(concat_source({{"", x}}), invalid,
               "concat_source: a source has an empty name; give it one.");
  EXPECT_ERROR(concat_source({{"a", x}, {"a", x}}), invalid,
               "concat_source: two sources are called `a`; names must differ.");
  EXPECT_ERROR(concat_source({{"a", nullptr}}), invalid,
               "concat_source: `a` is null; give a source.");
  EXPECT_ERROR(concat_source({{"a", x}}, "x"), invalid,
               "concat_source: `source_field` is `x`, which is a column of the sources; take "
               "another name.");
  const SourcePtr other =
      array_source({{"x", kit::random({1, 3}, Dtype::f32, 1)}, {"z", column({1})}});
  const SourcePtr both = array_source({{"x", column({1})}, {"y", column({1})}});
  const std::string rule = "; sources that are put together have the same columns.";
  EXPECT_ERROR(concat_source({{"a", both}, {"b", other}}), invalid,
               "concat_source: column `x` is f32 (3,) in `b`, but i64 () in `a`" + rule +
                   "\nconcat_source: `b` has no column `y`, which is i64 () in `a`" + rule +
                   "\nconcat_source: column `z` is i64 () in `b`, but `a` has none" + rule);
}

}  // namespace
}  // namespace forebay::test
