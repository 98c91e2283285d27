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

void kernel(CudaWriter& w) {
  const int last = w.nest.shape.rank - 1;
  w.line(R"(
/// The elements of the square at `corner`, N at once.
template <int N>
void square(const Parameters& p, const Tiles& tiles, const Place& corner) {{
#pragma unroll 2
  for (int e = threadIdx.x; e < kSide * (kSide / N); e += kThreads) {{
    Item<N> item;
    static_cast<Place&>(item) = corner;
    item.k = e / (kSide / N);
    item.l = e % (kSide / N) * N;
    item.i{0} += item.k;
    item.column += item.l;
    if (item.i{0} >= Index(p.down) || item.column >= Index(p.along)) continue;
    item.load(p, tiles);)",
         last - 1);
  if (w.has_doubt()) {
    w.line(R"(    if (!item.compute_and_store(p)) continue;
    Item<1> one;
    static_cast<Place&>(one) = item;
#pragma unroll 1
    for (int n = 0; n < N; ++n, one.move(1)) {{
      one.load(p, tiles);
      one.compute_and_store(p);
    }})");
  } else {
    w.line("    item.compute_and_store(p);");
  }
  w.line(R"(  }}
}}

extern "C" __global__ void __launch_bounds__(kThreads) {}(const __grid_constant__ Parameters p) {{
  __shared__ Tiles tiles;
  const Index t = Index(blockIdx.x), across = p.by_tiles_along.quotient(t);
  const Index r = p.by_tiles_down.quotient(across);
  Place corner;
  corner.column = (t - across * Index(p.tiles_along)) * kSide;
  corner.i{} = (across - r * Index(p.tiles_down)) * kSide;)",
         kKernelName, last - 1);
  if (last > 1) w.outer_indices("  ", "corner.");
  w.line("  const int down = int(min(Index(kSide), Index(p.down) - corner.i{}));", last - 1);
  w.line("  const int along = int(min(Index(kSide), Index(p.along) - corner.column));");
  each_across(w, [&](std::size_t i) {
    std::string place = fmt::format("corner.column * Index(p.x{}_stride{})", i, last);
    place += w.outer_place(fmt::format("x{}", i), w.nest.leaves[i], "corner.");
    return fmt::format(
        "  tiles.x{0}.load(p.x{0} + ({1}), Index(p.x{0}_stride{2}), down, along, p.whole);", i,
        place, last);
  });
  w.line(R"(  __syncthreads();
  if (p.packed) square<{}>(p, tiles, corner);
  else square<1>(p, tiles, corner);
}})",
         w.walk.pack);
}

}  // namespace

void write_tiles(CudaWriter& w) {
  parameters(w);
  w.line("\nconstexpr int kThreads = {};", kKernelThreads);
  w.line("constexpr int kSide = {};  // of the squares", w.walk.side);
  w.line("\nstruct Tiles {{");
  each_across(
      w, [&](std::size_t i) { return fmt::format("  Tile<{}, kSide> x{};", w.leaf_type(i), i); });
  w.line("}};");
  write_item(w);
  kernel(w);
}

}  // namespace forebay::expr
