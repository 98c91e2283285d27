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
