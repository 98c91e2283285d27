#include <forebay/ops/histogram/count_shape.h>

#include <optional>

#include <forebay/array/require.h>

namespace forebay::histogram_detail {
namespace {

constexpr std::int64_t kMostShared =
    80 * 1024;  // of a block; with a copy of edges, what every GPU from 8.0 on has
constexpr std::int64_t kComfortable = 40 * 1024;  // several blocks then fit a multiprocessor
constexpr std::int64_t kMostColumns = 32;
constexpr std::int64_t kUnitElements =
    8192;  // at least, so that emptying and adding up counters is the smaller part
constexpr std::int64_t kShortSlice = 2016;   // for which one warp is enough
constexpr std::int64_t kShortRegion = 8192;  // bytes of a warp's counters
constexpr std::int64_t kRunElements = 256;   // of a slice's run of neighbours, to be worth a block
constexpr std::int64_t kMostCount = std::int64_t{1}
                                    << 30;  // elements of a unit, for counters of 32 bits
constexpr std::int64_t kMostIndex =
    (std::int64_t{1} << 31) - 4096;  // 32 bits hold it with some packs more

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The most elements that one thread of a team counts of a run (`count_run` in histogram.cu).
std::int64_t most_of_thread(std::int64_t elements, std::int64_t team, Dtype x) {
  const auto pack = static_cast<std::int64_t>(16 / size_of(x));
  return ceil_div(ceil_div(elements, pack), team) * pack + ceil_div(2 * pack, team);
}

/// Bits of a counter that holds `most`, so that four of them can be added up.
std::int64_t bits_for(std::int64_t most) { return most <= 63 ? 8 : most <= 16383 ? 16 : 32; }

std::int64_t parts_for(const CountShape& shape, std::int64_t slots) {
  const std::int64_t words = ceil_div(slots * shape.bits, 32);
  const std::int64_t columns = shape.team < 32 ? shape.team : shape.copies;
  std::int64_t parts = 1;
  while (parts * 2 <= columns / 4 && parts * 2 * words <= shape.team)
    parts *= 2;
  return parts;
}

/// One warp or less a slice, where that can be.
std::optional<CountShape> shape_short(CountShape shape, const Slices& slices, std::int64_t bins,
                                      Dtype x) {
  const std::int64_t length = slices.length();
  if (slices.outer > 1 || length > kShortSlice) return {};
  shape.block = 128;
  shape.depth = std::min<std::int64_t>(shape.depth, 3);
  shape.resident = 1536;
  shape.team = length <= 32 ? 8 : length <= 1000 ? 16 : 32;
  shape.copies = shape.team;
  shape.bits = bits_for(most_of_thread(length, shape.team, x));
  shape.parts = parts_for(shape, bins);
  shape.tiling = tile(slices, 1, length);
  if (shape.counter_bytes(bins) > shape.region_count() * kShortRegion) return {};
  return shape;
}

/// Copies of `slots` counters for a block that counts `elements`; none where the counters do not
/// fit. Equal addresses of a warp are added up by the hardware, so that few copies do for many
/// bins.
void choose_copies(CountShape& shape, std::int64_t slots, std::int64_t elements,
                   std::int64_t shared_bytes) {
  for (shape.copies = 32; shape.copies > 0; shape.copies /= 2) {
    const std::int64_t most = shape.copies > 1 ? kComfortable : kMostShared;
    const bool worth = shape.copies == 1 || shape.copies * slots <= 4 * elements;
    if (worth && shape.counter_bytes(slots) <= std::min(most, shared_bytes)) break;
  }
  shape.parts = parts_for(shape, slots);
}

/// Whether slices are read by columns, since their runs of neighbours are short.
bool is_by_columns(const Slices& slices) {
  return slices.columns != 1 || (slices.outer > 1 && slices.rows < kRunElements);
}

/// How runs are read.
void choose_runs(CountShape& shape, const Slices& slices, Dtype x) {
  shape.runs = slices.reduced_count > 0;
  shape.wide = slices.count() * slices.length() >= kMostIndex;
  shape.depth = std::clamp<std::int64_t>(static_cast<std::int64_t>(size_of(x)), 1, 4);
}

CountShape shape_columns(const Slices& slices, std::int64_t bins, const CountDevice& device) {
  CountShape shape;
  shape.columns = shape.split = true;
  const std::int64_t fit = kMostShared / 2 / 4 / (bins + 1);
  const std::int64_t few = kMostShared / 16 / 4 / (bins + 1);  // leaves room for copies
  const std::int64_t columns =
      fit == 0 ? kMostColumns : std::min({kMostColumns, fit, std::max<std::int64_t>(8, few)});
  const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(slices.columns, columns));
  const std::int64_t chunk = std::max<std::int64_t>(1, ceil_div(slices.columns, chunks));
  const std::int64_t strips = std::max<std::int64_t>(1, slices.groups * chunks);
  const std::int64_t wanted =
      std::max<std::int64_t>(1, device.multiprocessors * shape.resident / 256 / strips);
  const std::int64_t block =
      std::max({ceil_div(slices.length(), wanted), kUnitElements / chunk, 4 * (bins + 1)});
  shape.tiling = tile(slices, columns, std::min(block, kMostCount / chunk));
  choose_copies(shape, shape.slots(bins), shape.tiling.chunk * shape.tiling.block,
                device.shared_bytes);
  return shape;
}

}  // namespace

std::int64_t CountShape::counter_bytes(std::int64_t slots) const {
  if (copies == 0) return 0;
  const std::int64_t words =
      region_count() * (ceil_div(slots * bits, 32) + 1) * (team < 32 ? 32 : copies);
  return ceil_div(words, 4) * 16;
}

std::vector<std::string> CountShape::options() const {
  const auto option = [](const char* name, std::int64_t value) {
    return fmt::format("-D{}={}", name, value);
  };
  std::vector<std::string> all{option("BLOCK", block)};
  if (weighted) {
    all.push_back(option("WARPS", copies));
    return all;
  }
  all.insert(all.end(), {option("TEAM", team), option("COPIES", copies), option("BITS", bits),
                         option("PARTS", parts), option("RAW", raw), option("SPLIT", split),
                         option("COLUMNS", columns), option("RUNS", runs), option("DEPTH", depth),
                         fmt::format("-DINDEX={}", wide ? "i64" : "i32"),
                         option("RESIDENT", std::max(resident, block))});
  return all;
}

CountShape count_shape(const Slices& slices, std::int64_t bins, Dtype x,
                       const CountDevice& device) {
  if (is_by_columns(slices)) return shape_columns(slices, bins, device);
  CountShape shape;
  choose_runs(shape, slices, x);
  shape.raw = size_of(x) == 1 && slices.length() > kShortSlice;
  if (!shape.raw) {
    if (const auto few = shape_short(shape, slices, bins, x)) return *few;
  }

  const std::int64_t slots = shape.raw ? 256 : bins;
  const std::int64_t count = std::max<std::int64_t>(1, slices.count());
  shape.block = count <= device.multiprocessors / 8 ? 1024 : 256;
  const std::int64_t blocks =
      ceil_div(device.multiprocessors * shape.resident / shape.block, count);  // of a slice
  const std::int64_t unit = std::max({ceil_div(slices.length(), blocks), kUnitElements, 4 * slots});
  shape.tiling = tile(slices, 1, std::min(unit, kMostCount));
  shape.team = shape.block;
  choose_copies(shape, slots, shape.tiling.block, device.shared_bytes);
  shape.split = shape.raw || shape.copies == 0 || shape.tiling.blocks > 1;
  return shape;
}

CountShape weighted_shape(const Slices& slices, std::int64_t bins) {
  constexpr std::int64_t kBytes = 48 * 1024, kUnits = 1024, kWarps = 8;
  CountShape shape;
  const std::int64_t fit = kBytes / 8 / (bins + 1), few = kBytes / 64 / (bins + 1);
  const std::int64_t columns =
      fit == 0 ? kMostColumns : std::min({kMostColumns, fit, std::max<std::int64_t>(8, few)});
  const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(slices.columns, columns));
  const std::int64_t chunk = std::max<std::int64_t>(1, ceil_div(slices.columns, chunks));
  const std::int64_t wanted =
      std::max<std::int64_t>(1, kUnits / std::max<std::int64_t>(1, slices.groups * chunks));
  shape.tiling =
      tile(slices, columns,
           std::max({ceil_div(slices.length(), wanted), kUnitElements / chunk, 4 * (bins + 1)}));
  const std::int64_t keys = shape.tiling.chunk * (bins + 1),
                     elements = shape.tiling.chunk * shape.tiling.block;
  shape.copies = fit == 0 ? 0 : kWarps;
  while (shape.copies > 1 &&
         (shape.copies * keys * 8 > kBytes || shape.copies * keys > 4 * elements))
    shape.copies /= 2;
  shape.columns = shape.split = shape.weighted = true;
  shape.block = shape.team = 32 * std::max<std::int64_t>(1, shape.copies);
  return shape;
}

CountShape extremes_shape(const Slices& slices, Dtype x) {
  constexpr std::int64_t kUnits = 2048;
  CountShape shape;
  shape.columns = is_by_columns(slices);
  choose_runs(shape, slices, x);
  const std::int64_t columns = shape.columns ? kMostColumns : 1;
  const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(slices.columns, columns));
  const std::int64_t wanted =
      std::max<std::int64_t>(1, kUnits / std::max<std::int64_t>(1, slices.groups * chunks));
  shape.tiling =
      tile(slices, columns, std::max(ceil_div(slices.length(), wanted), kUnitElements / columns));
  return shape;
}

}  // namespace forebay::histogram_detail
