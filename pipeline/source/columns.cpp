#include <forebay/pipeline/source/columns.h>

#include <algorithm>
#include <set>

#include <forebay/array/require.h>

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

void Source::read_column(int column, std::span<const std::int64_t> indices,
                         const ArrayView& target) const {
  std::vector<std::vector<std::byte>> unused(columns().size());
  std::vector<ArrayView> targets;
  for (std::size_t c = 0; c < unused.size(); ++c) {
    if (static_cast<int>(c) == column) {
      targets.push_back(target);
      continue;
    }
    unused[c].resize(indices.size() * sample_bytes(columns()[c]));
    ArrayView view{unused[c].data(),
                   columns()[c].dtype,
                   Device::cpu(),
                   {static_cast<std::int64_t>(indices.size())},
                   {}};
    for (const std::int64_t extent : columns()[c].shape)
      view.shape.push_back(extent);
    view.strides = dense_strides(view.shape);
    targets.push_back(view);
  }
  read(indices, targets);
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
