#include <algorithm>
#include <array>
#include <cstring>

#include <forebay/array/past_cache.h>
#include <forebay/ops/expr/tile_engine.h>
#include <forebay/ops/expr/tile_parts.h>

// Rows that depend on one leaf of 8 bits: whatever is done to its elements is done to 256 values,
// once a row.
namespace forebay::expr {
namespace {

constexpr std::int64_t kValues = 256, kMostBytes = 16;  // of an element
constexpr std::int64_t kPiece = 4096;                   // elements
static_assert(kValues <= TileEngine::kMinTile);

alignas(64) constexpr auto kEveryByte = [] {
  std::array<std::uint8_t, kValues> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(i);
  return bytes;
}();

}  // namespace

void TileEngine::look_up_row(const Tile& row, Workspace& work) const {
  if (row.outputs[0] == nullptr) return;
  const Traversal& how = row.traversal;
  const auto leaf = static_cast<std::size_t>(how.looked_up);
  const std::int64_t size = how.outputs[0].size;
  if (work.looked_up == nullptr)
    work.looked_up = buffer_of((kValues + kPiece) * kMostBytes + kPiece);
  std::byte* const table = work.looked_up.get();
  std::byte* const bytes = table + kValues * kMostBytes;
  std::byte* const results = bytes + kPiece;

  Tile values = row;
  values.n = kValues;
  values.values = reinterpret_cast<const std::byte*>(kEveryByte.data());
  compute(values, work);
  std::memcpy(table, work.values[static_cast<std::size_t>(program_.outputs[0])].data,
              static_cast<std::size_t>(kValues * size));

  const std::int64_t step = step_in_tile(row, leaf);
  const std::byte* const from = first_of(row, leaf);
  std::byte* const to = first_of_output(row, 0);
  CpuLookup* const look_up = level_->lookup(static_cast<std::size_t>(size));
  for (std::int64_t done = 0; done < row.n; done += kPiece) {
    const std::int64_t n = std::min(kPiece, row.n - done);
    const std::byte* x = from + done * step;
    if (step != 1) {
      level_->gather(1)(bytes, x, step, n);
      x = bytes;
    }
    std::byte* const target = to + done * size;
    look_up(how.past_cache ? results : target, x, table, n);
    if (how.past_cache) copy_past_cache(target, results, static_cast<std::size_t>(n * size));
  }
}

}  // namespace forebay::expr
