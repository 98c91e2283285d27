#include <forebay/pipeline/source/columns.h>

#include <algorithm>
#include <set>

#include <forebay/array/require.h>
#include <forebay/pipeline/hash.h>

namespace forebay {

void check_columns(const char* source, const std::vector<Column>& columns) {
  FOREBAY_REQUIRE(!columns.empty(), invalid, "{}: it has no columns; give at least one.", source);
  std::set<std::string> names;
  for (const Column& column : columns) {
    FOREBAY_REQUIRE(!column.name.empty(), invalid, "{}: a column has an empty name; give it one.",
                    source);
    FOREBAY_REQUIRE(names.insert(column.name).second, invalid,
                    "{}: there are two columns `{}`; names must differ.", source, column.name);
    FOREBAY_REQUIRE(column.shape.rank < kMaxRank, invalid,
                    "{}: samples of column `{}` have rank {}; it must be at most {}, since the "
                    "batch adds an axis.",
                    source, column.name, column.shape.rank, kMaxRank - 1);
    for (const std::int64_t extent : column.shape) {
      FOREBAY_REQUIRE(extent >= 0, invalid,
                      "{}: samples of column `{}` have the shape {}; extents must be at least 0.",
                      source, column.name, to_string(column.shape));
    }
  }
}

namespace {

/// `bytes`, made as large as it takes, as `count` samples of the column.
ArrayView samples_in(std::vector<std::byte>& bytes, const Column& column, std::size_t count) {
  bytes.resize(count * sample_bytes(column));
  return samples_at(bytes.data(), column, static_cast<std::int64_t>(count));
}

}  // namespace

void Source::read_column(int column, std::span<const std::int64_t> indices,
                         const ArrayView& target) const {
  std::vector<std::vector<std::byte>> unused(columns().size());
  std::vector<ArrayView> targets;
  for (std::size_t c = 0; c < unused.size(); ++c) {
    const bool wanted = static_cast<int>(c) == column;
    targets.push_back(wanted ? target : samples_in(unused[c], columns()[c], indices.size()));
  }
  read(indices, targets);
}

std::int64_t ColumnwiseSource::grain() const { return grain_of(columns_); }
std::string ColumnwiseSource::fingerprint() const { return hash_of_samples(*this); }

void ColumnwiseSource::read(std::span<const std::int64_t> indices,
                            std::span<const ArrayView> targets) const {
  for (std::size_t c = 0; c < columns_.size(); ++c)
    read_column(static_cast<int>(c), indices, targets[c]);
}

std::string hash_of_samples(const Source& source) {
  std::int64_t bytes = 1;
  for (const Column& column : source.columns())
    bytes += static_cast<std::int64_t>(sample_bytes(column));
  const std::int64_t most = std::clamp<std::int64_t>((16 << 20) / bytes, 2, 64);
  const std::int64_t count = std::min(most, source.size());
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i)
    indices.push_back(i * (source.size() - 1) / std::max<std::int64_t>(count - 1, 1));
  std::vector<std::vector<std::byte>> values(source.columns().size());
  std::vector<ArrayView> targets;
  for (std::size_t c = 0; c < values.size(); ++c)
    targets.push_back(samples_in(values[c], source.columns()[c], indices.size()));
  if (count > 0) source.read(indices, targets);
  std::uint64_t hash = 0;
  for (const auto& column : values)
    hash = hash_bytes(column, hash);
  return hex(hash);
}

ArrayView samples_at(void* data, const Column& column, std::int64_t count) {
  ArrayView view{data, column.dtype, Device::cpu(), {count}, {}};
  for (const std::int64_t extent : column.shape)
    view.shape.push_back(extent);
  view.strides = dense_strides(view.shape);
  return view;
}

int find_column(const std::vector<Column>& columns, std::string_view name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

std::vector<std::string> names_of(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns)
    names.push_back(column.name);
  return names;
}

std::size_t sample_bytes(const Column& column) {
  return static_cast<std::size_t>(count_of(column.shape)) * size_of(column.dtype);
}

std::int64_t grain_of(const std::vector<Column>& columns) {
  std::size_t bytes = 1;
  for (const Column& column : columns)
    bytes += sample_bytes(column);
  return std::clamp<std::int64_t>((64 << 10) / static_cast<std::int64_t>(bytes), 1, 1024);
}

}  // namespace forebay
