#include <algorithm>

#include <forebay/ops/expr/cuda_writer.h>

// Form tiles: a block brings the leaves that lie across into shared memory, square by square, and goes on as in form
// items.
namespace forebay::expr {
namespace {

void parameters(CudaWriter& w) {
  const LoopNest& nest = w.nest;
  const int last = nest.shape.rank - 1;
  const std::int64_t side = w.walk.side;
  const auto tiles = [&](int axis) { return (nest.shape[axis] + side - 1) / side; };
  w.line("\nstruct Parameters {{");
  w.member("i64 packed;  // whether every address allows packs", 0);
  w.member("i64 whole;   // .. and those of leaves that lie across, their packs", 0);
  w.member("i64 down, along;  // extents of the last two axes", nest.shape[last - 1]);
  w.source.words.push_back(static_cast<std::uint64_t>(nest.shape[last]));
  w.member("i64 tiles_down, tiles_along;", tiles(last - 1));
  w.source.words.push_back(static_cast<std::uint64_t>(tiles(last)));
  w.divisor("by_tiles_down", tiles(last - 1));
  w.divisor("by_tiles_along", tiles(last));
  w.arrays();
  w.line("}};");
  w.source.blocks = tiles(last - 1) * tiles(last);
  for (int axis = 0; axis < last - 1; ++axis)
    w.source.blocks *= nest.shape[axis];
}

template <class Text>
void each_across(CudaWriter& w, const Text& text) {
  for (std::size_t i = 0; i < w.leaf_count(); ++i) {
    if (w.walk.leaves[i] == Way::across) w.line("{}", text(i));
  }
}

/// Packs along l that a warp reads from one row of a square: 32 words, of the narrowest leaf.
int lanes(const CudaWriter& w) {
  std::size_t narrowest = 4;
  for (std::size_t i = 0; i < w.leaf_count(); ++i) {
    if (w.walk.leaves[i] == Way::across)
      narrowest = std::min(narrowest, size_of(w.program.leaves[i].dtype));
  }
  const int words = w.walk.pack * static_cast<int>(narrowest) / 4;
  return std::min(32 / words, w.walk.side / w.walk.pack);
}

void kernel(CudaWriter& w) {
  const int last = w.nest.shape.rank - 1;
  w.line(R"(
/// The elements of the square at `corner`, N at once.
template <int N>
void square(const Parameters& p, const Common& common, const Tiles& tiles, const Place& corner) {{
  // A warp has as many packs of a row as have its shared memory in all banks.
  constexpr u32 kLanes = N > 1 ? {1} : 32, kWarps = kSide / N / kLanes;
#pragma unroll 1
  for (u32 e = threadIdx.x; e < kSide * (kSide / N); e += kThreads) {{
    Item<N> item;
    static_cast<Place&>(item) = corner;
    item.k = e / kLanes % (32 / kLanes) + e / (32 * kWarps) * (32 / kLanes);
    item.l = (e % kLanes + e / 32 % kWarps * kLanes) * N;
    item.i{0} += Index(item.k);
    item.column += Index(item.l);
    if (item.i{0} >= Index(p.down) || item.column >= Index(p.along)) continue;
    item.load(p, tiles);)",
         last - 1, lanes(w));
  if (w.has_doubt()) {
    w.line(R"(    Doubt doubt = common.doubt;
    item.compute_and_store(p, common, doubt);
    if (!doubt) continue;
    Item<1> one;
    static_cast<Place&>(one) = item;
#pragma unroll 1
    for (int n = 0; n < N; ++n, one.move(1)) {{
      one.load(p, tiles);
      one.compute_and_store(p, common, doubt);
    }})");
  } else {
    w.line("    item.compute_and_store(p, common);");
  }
  w.line(R"(  }}
}}

extern "C" __global__ void __launch_bounds__(kThreads) {}(const __grid_constant__ Parameters p) {{
  __shared__ Tiles tiles;
  const Index t = Index(blockIdx.x), across = p.by_tiles_along.quotient(t);
  const Index r = p.by_tiles_down.quotient(across);
  Place corner;
  corner.column = (t - across * Index(p.tiles_along)) * Index(kSide);
  corner.i{} = (across - r * Index(p.tiles_down)) * Index(kSide);)",
         kKernelName, last - 1);
  if (last > 1) w.outer_indices("  ", "corner.");
  w.line("  const u32 down = u32(min(Index(kSide), Index(p.down) - corner.i{}));", last - 1);
  w.line("  const u32 along = u32(min(Index(kSide), Index(p.along) - corner.column));");
  each_across(w, [&](std::size_t i) {
    std::string place = fmt::format("corner.column * Index(p.x{}_stride{})", i, last);
    place += w.outer_place(fmt::format("x{}", i), w.nest.leaves[i], "corner.");
    return fmt::format(
        "  tiles.x{0}.load<kThreads>(p.x{0} + ({1}), Index(p.x{0}_stride{2}), down, along, "
        "p.whole);",
        i, place, last);
  });
  w.line(R"(  const Common common(p);
  __syncthreads();
  if (p.packed) square<{}>(p, common, tiles, corner);
  else square<1>(p, common, tiles, corner);
}})",
         w.walk.pack);
}

}  // namespace

void write_tiles(CudaWriter& w) {
  parameters(w);
  w.line("\nconstexpr u32 kThreads = {};", w.source.threads);
  w.line("constexpr u32 kSide = {};  // of the squares", w.walk.side);
  w.line("\nstruct Tiles {{");
  each_across(
      w, [&](std::size_t i) { return fmt::format("  Tile<{}, kSide> x{};", w.leaf_type(i), i); });
  w.line("}};");
  write_item(w);
  kernel(w);
}

}  // namespace forebay::expr
