#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <forebay/ops/eager.h>

// What random ops share: where their random words come from. A word is a function of what it is
// for, and of nothing else:
//
//     philox(place = word + epoch * 2^34, sequence = sample + op * 2^48, key = seed)
//
// with the `philox` of the pointwise language, cuRAND's generator: `word` counts the words of one
// sample, by element of the op's input in row-major order; `sample` is the sample's number in the
// data set; `op` is OpDef::draws * 256 + the stage's stream. So the batch size, the order, the
// device, threads, ranks and what fuses change nothing. Orders of samples take their bits from the
// same generator with op 0.
namespace forebay {

/// Whose randomness an eager call of a random op has: that of these samples in this epoch of a
/// pipeline with this seed.
struct Draw {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  /// i64 [N], on the stream's device: the number of the sample that each index of axis 0 is, from 0
  /// to 2^48 - 1.
  Array sample_ids;
};

/// The words of one random op, as expressions.
class Words {
 public:
  /// `inputs` as `lower` gets them: the last two are the sample ids and the position. `draws` is
  /// OpDef::draws, `stream` the setting.
  Words(std::span<const expr::Expr> inputs, int draws, std::optional<std::int64_t> stream);
  /// u32: one word for each element of an array of `shape`, whose axis 0 runs over the samples.
  expr::Expr of_elements(const Dims& shape) const;
  /// u64: two words for each, the first above.
  expr::Expr pairs_of_elements(const Dims& shape) const;

 private:
  expr::Expr at(const expr::Expr& word, const Dims& shape) const;
  expr::Expr epoch_, sequence_, seed_;
};

/// The op's part of `sequence`.
std::uint64_t sequence_of(int draws, std::optional<std::int64_t> stream);

/// What every random op asks of its input: axis 0 that runs over the samples, and no more elements
/// in one than it has words for, `words` each.
/// Errors: invalid, "noise: `x` is a scalar, shape (); axis 0 of a random op's input runs over the
/// samples."; unsupported for more than 2^34 words.
void check_sample(std::string_view op, const Dims& shape, int words);
/// Errors: invalid, "noise: `x` has shape (3, 4), but there are 6 samples; axis 0 of a random op's
/// input runs over the samples."
void check_samples(std::string_view op, const Dims& shape, std::int64_t samples);

/// The smallest word that no event of this probability has: it happens for words below.
std::uint64_t threshold_of(double probability);

/// Visits the setting `stream` that every random op has.
void visit_stream(FieldVisitor& visitor, std::optional<std::int64_t>& stream);

/// The eager form of a random op in its own header: `run_op` with a Draw.
template <class S>
Array run_random(std::string_view name, const S& settings, const Array& x, const Draw& draw,
                 const Context& context) {
  return run_op(Op::with(find_op(name), settings), {x}, draw, context).front();
}

}  // namespace forebay
