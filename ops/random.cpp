#include <forebay/ops/random.h>

#include <cmath>

#include <forebay/array/require.h>

namespace forebay {
namespace {

using expr::Expr;

constexpr int kWordBits = 34, kSampleBits = 48;
constexpr std::int64_t kStreams = 256;

Expr number(std::uint64_t value) { return Expr::constant(value, Dtype::u64); }

/// The shape of one sample.
Dims sample_of(const Dims& shape) {
  Dims sample;
  for (int axis = 1; axis < shape.rank; ++axis)
    sample.push_back(shape[axis]);
  return sample;
}

Expr as_u64(const Expr& x) { return expr::cast(x, Dtype::u64, expr::CastMode::wrap); }

}  // namespace

std::uint64_t sequence_of(int draws, std::optional<std::int64_t> stream) {
  const auto op = static_cast<std::uint64_t>(draws * kStreams + stream.value_or(0));
  return op << kSampleBits;
}

Words::Words(std::span<const Expr> inputs, int draws, std::optional<std::int64_t> stream) {
  const Expr &ids = inputs[inputs.size() - 2], &position = inputs[inputs.size() - 1];
  const auto entry = [&](int i) { return as_u64(slice(position, 0, i, i + 1)); };
  epoch_ = entry(0) * number(std::uint64_t{1} << kWordBits);
  seed_ = entry(2);
  sequence_ = as_u64(ids) + number(sequence_of(draws, stream));
}

Expr Words::at(const Expr& word, const Dims& shape) const {
  Dims column{shape[0]};  // of the sample, along axis 0
  while (column.rank < shape.rank)
    column.push_back(1);
  return expr::philox(broadcast_to(word, shape) + epoch_, reshape(sequence_, column), seed_);
}

Expr Words::of_elements(const Dims& shape) const {
  return at(Expr::index(sample_of(shape)), shape);
}

Expr Words::pairs_of_elements(const Dims& shape) const {
  const Expr first = Expr::index(sample_of(shape)) * number(2);
  const Expr high = cast(at(first, shape), Dtype::u64),
             low = cast(at(first + number(1), shape), Dtype::u64);
  return high * number(std::uint64_t{1} << 32) + low;
}

void check_sample(std::string_view op, const Dims& shape, int words) {
  FOREBAY_REQUIRE(shape.rank > 0, invalid,
                  "{}: `x` is a scalar, shape (); axis 0 of a random op's input runs over the "
                  "samples.",
                  op);
  const std::int64_t elements = count_of(sample_of(shape));
  constexpr std::int64_t kMost = std::int64_t{1} << kWordBits;
  FOREBAY_REQUIRE(elements <= kMost / words, unsupported,
                  "{}: a sample of `x`, shape {}, has {} elements; it has random bits for {}.", op,
                  to_string(shape), elements, kMost / words);
}

void check_samples(std::string_view op, const Dims& shape, std::int64_t samples) {
  FOREBAY_REQUIRE(shape[0] == samples, invalid,
                  "{}: `x` has shape {}, but there are {} samples; axis 0 of a random op's input "
                  "runs over the samples.",
                  op, to_string(shape), samples);
}

std::uint64_t threshold_of(double probability) {
  return static_cast<std::uint64_t>(std::llround(std::ldexp(probability, 32)));
}

void visit_stream(FieldVisitor& visitor, std::optional<std::int64_t>& stream) {
  visitor.on({.name = "stream",
              .doc = "Which of the op's streams of random numbers: stages with equal ones draw "
                     "alike. The number of the stage among those of its op when left out.",
              .min = 0,
              .max = static_cast<double>(kStreams - 1)},
             stream);
}

}  // namespace forebay
