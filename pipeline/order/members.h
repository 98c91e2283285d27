#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forebay/array/array.h>

namespace forebay {

class Source;

/// Which samples of a source take part: number 0..size()-1 -> sample. Safe to use from any thread.
class Members {
 public:
  virtual ~Members() = default;
  virtual std::int64_t size() const = 0;
  /// Replaces each number by its sample.
  virtual void to_samples(std::span<std::int64_t> numbers) const = 0;
  virtual std::string describe() const = 0;  ///< "a subset of 5"
};
using MembersPtr = std::shared_ptr<const Members>;

enum class SplitPart : std::uint8_t { train, validation };

/// One of the two parts of a dataset. Which sample is in which depends on `seed` and not on the
/// pipeline's own, so that the parts of two pipelines, and those of a later run, fit each other.
/// Samples that are appended to the data change no part of those before.
struct Split {
  SplitPart part = SplitPart::train;
  double validation = 0;  ///< the share of the validation part, between 0 and 1
  /// A column: samples in which it has the same bytes are all in one part, each value with
  /// probability `validation`. Empty: one sample of each 1 / `validation` that follow one another,
  /// so that the part has its share exactly, rounded.
  std::string by = {};
  std::uint64_t seed = 0;
};

/// Samples begin..end-1 of a source.
struct SampleRange {
  std::int64_t begin = 0, end = 0;
};

/// The samples listed in `indices`, [count] integers; some may come twice. 8 bytes a sample.
/// Errors: invalid for another shape or dtype, or an index outside 0..size-1, saying where.
MembersPtr subset(const Array& indices, std::int64_t size);
/// Those of them that are in `range`, as indices from its begin. Errors: as above.
MembersPtr subset(const Array& indices, std::int64_t size, const SampleRange& range);
/// A part of `size` samples, by their numbers. Nothing is stored. Errors: invalid unless
/// 0 < validation < 1.
MembersPtr split_part(const Split& split, std::int64_t size);
/// A part by the column `split.by` of `source`, which is read once, or of `within` if not null. One
/// bit and an eighth a sample. Errors: as above, and for a column that is not there; those of the
/// source.
MembersPtr split_part(const Split& split, const Source& source, const Members* within);
/// `inner` numbers the samples of `outer`.
MembersPtr members_of_members(MembersPtr inner, MembersPtr outer);
/// Those of several sources one after another; `second` is added to the samples of `first`.
MembersPtr joined_members(std::vector<std::pair<MembersPtr, std::int64_t>> parts);

}  // namespace forebay
