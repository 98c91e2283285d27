#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <forebay/pipeline/source.h>

namespace forebay {

/// A source whose columns lie apart, so that it reads one after the other.
class ColumnwiseSource : public Source {
 public:
  const std::vector<Column>& columns() const final { return columns_; }
  std::int64_t grain() const final;
  std::string fingerprint() const final;
  void read(std::span<const std::int64_t> indices,
            std::span<const ArrayView> targets) const final;
  void read_column(int column, std::span<const std::int64_t> indices,
                   const ArrayView& target) const override = 0;

 protected:
  std::vector<Column> columns_;
};

/// What every source asks of its columns: at least one, each with a name of its own, samples of
/// rank 0..7. Errors: invalid, starting with `source`.
void check_columns(const char* source, const std::vector<Column>& columns);

/// Samples worth one reader task: about 64 KiB of them.
std::int64_t grain_of(const std::vector<Column>& columns);

/// A hash of the values of the first sample, the last, and up to 62 evenly between them: as many as
/// fit 16 MiB.
std::string hash_of_samples(const Source& source);

/// The number of the column called `name`; -1 without one.
int find_column(const std::vector<Column>& columns, std::string_view name);
std::vector<std::string> names_of(const std::vector<Column>& columns);

/// Bytes of one sample of `column`.
std::size_t sample_bytes(const Column& column);

/// Host memory at `data` as `count` dense samples of `column`.
ArrayView samples_at(void* data, const Column& column, std::int64_t count);

}  // namespace forebay
