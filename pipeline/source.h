#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/ops/op.h>

namespace forebay {

/// One named field of the samples: an array of `shape` and `dtype` for each sample (rank 0 for a
/// scalar label).
struct Column {
  std::string name;
  Dtype dtype = Dtype::f32;
  Dims shape;  ///< of one sample; the batch adds axis 0
};

/// A sample as people find it: the source that it comes from, and its number there.
struct SampleOrigin {
  std::string source;
  std::int64_t index = 0;
};

struct SourcePart;

/// Samples by index. Subclass it for your own storage.
class Source {
 public:
  virtual ~Source() = default;
  /// Samples in all; indices are 0..size()-1.
  virtual std::int64_t size() const = 0;
  virtual const std::vector<Column>& columns() const = 0;
  /// Writes the samples `indices` to `targets`: one dense host array [indices.size(), column shape]
  /// for each column, in order. Called from several threads at once on disjoint targets.
  /// Errors: whatever it throws ends the epoch; `next()` rethrows it with the samples and
  /// the batch named. Where bad samples are skipped or replaced (`OnError`), those of a call that
  /// throws are read again one by one, to find out which it is; errors of kinds resource, device and
  /// cancelled are not the sample's and still end the epoch.
  virtual void read(std::span<const std::int64_t> indices,
                    std::span<const ArrayView> targets) const = 0;
  /// The same for column number `column` alone: what keys of a split are read with. By default it
  /// reads whole samples.
  virtual void read_column(int column, std::span<const std::int64_t> indices,
                           const ArrayView& target) const;
  /// What kind of source it is and where from, for `plan` and messages, such as
  /// "npy data/x.npy, data/y.npy".
  virtual std::string describe() const = 0;
  /// Where sample `index` comes from, also for lists of bad samples. A source made of others names
  /// them.
  virtual SampleOrigin origin(std::int64_t index) const { return {describe(), index}; }
  /// A text that differs when the samples do, as far as that can be told cheaply: runs are resumed
  /// only where it is the same. Empty, the default: nothing can be told.
  virtual std::string fingerprint() const { return {}; }
  /// Fewest samples worth a reader task of their own.
  virtual std::int64_t grain() const { return 16; }
  /// The sources whose samples lie one after another in this one (`concat_source`). Else none.
  virtual std::span<const SourcePart> parts() const { return {}; }
};

using SourcePtr = std::shared_ptr<const Source>;

/// One of several sources.
struct SourcePart {
  std::string name;
  SourcePtr source;
  std::int64_t first = 0;  ///< the index that its sample 0 has among those of all
};

/// Samples along axis 0 of host arrays; strided arrays are fine. Shares the arrays' memory. The
/// fingerprint is that of some samples: the first, the last, and up to 62 between them.
/// Errors: invalid for arrays of rank 0, of different lengths, not on the CPU, or two
/// columns of one name.
SourcePtr array_source(std::vector<std::pair<std::string, Array>> columns);

/// Samples from a function that writes sample `index` to one host array for each column. It has no
/// fingerprint.
SourcePtr callback_source(
    std::int64_t size, std::vector<Column> columns,
    std::function<void(std::int64_t index, std::span<const ArrayView> sample)> read,
    std::string description = "callback");

/// Samples along axis 0 of .npy files, memory-mapped; format versions 1 to 3, any byte order. The
/// fingerprint is as that of `array_source`.
/// Errors: io for a missing, short or malformed file; unsupported for Fortran order, objects,
/// pickles, records and strings; invalid for rank 0 or unequal lengths. Each text names the file
/// and what was found.
SourcePtr npy_source(std::vector<std::pair<std::string, std::string>> columns_and_paths);

/// The samples of all `parts` one after another, with indices that run on: `SourcePart::first` is
/// set from their sizes. Columns are those of the first part, found by name in the others. With
/// `source_field` there is one more of that name, i64: the number of the part, from 0.
/// `origin` tells the name of the part and the index there. SamplingMode::mix draws from the parts
/// in stated proportions.
/// Errors: invalid without parts, for an empty name or two of one name, and for columns that
/// differ in name, dtype or shape, each named with both sides.
SourcePtr concat_source(std::vector<SourcePart> parts, const std::string& source_field = "");

/// A whole .npy file as a host array. Errors: as npy_source.
Array read_npy(const std::string& path);
/// Writes a dense host array as .npy, format version 1 (little endian). Errors: io, naming
/// the file.
void write_npy(const std::string& path, const ArrayView& array);

}  // namespace forebay
