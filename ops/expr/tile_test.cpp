// Programs evaluated piece by piece: the pieces are those of the whole array.
#include "kit/kit.h"

#include <cstring>

#include <forebay/array/parallel.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/expr/tile.h>

namespace forebay::expr {
namespace {

Expr leaf_like(int source, const Array& x) {
  return Expr::leaf(source, x.dtype(), x.shape(), x.strides());
}
Expr constant(double value, Dtype dtype = Dtype::f32) { return Expr::constant(value, dtype); }

std::vector<ArrayView> views_of(const std::vector<Array>& arrays) {
  std::vector<ArrayView> views;
  for (const Array& array : arrays)
    views.push_back(array.view());
  return views;
}

Array host_like(const Expr& expression) {
  return kit::generate(expression.shape(), expression.dtype(), [](std::int64_t) { return 77; });
}

struct Piece {
  std::int64_t begin, n;
};
/// Of an array of `count` elements: tiles of 2048 and less, none of them in step with these.
std::vector<Piece> pieces_of(std::int64_t count) {
  std::vector<Piece> pieces;
  for (std::int64_t begin : {0L, 1L, 63L, 640L, 2047L, 5001L}) {
    for (std::int64_t n : {0L, 1L, 7L, 640L, 2049L, 9000L}) {
      if (begin + n <= count) pieces.push_back({begin, n});
    }
  }
  pieces.push_back({0, count});
  return pieces;
}

/// Every expression over [23, 641] that `sources` allow: strided, broadcast, overlapping, cast.
struct Case {
  std::string name;
  std::vector<Array> sources;
  Expr expression;
};
std::vector<Case> cases() {
  const Dims shape{23, 641};
  const Array bytes = kit::random(shape, Dtype::u8, 1, 0, 255),
              floats = kit::random(shape, Dtype::f32, 2), row = kit::random({641}, Dtype::f32, 3),
              column = kit::random({23, 1}, Dtype::f32, 4, 0.5, 2),
              signal = kit::random({22 * 160 + 641}, Dtype::f32, 5),
              halves = kit::random(shape, Dtype::f16, 6);
  const Expr frames = Expr::leaf(0, Dtype::f32, shape, {160, 1});
  std::vector<Case> result = {
      {"dense", {floats}, leaf_like(0, floats)},
      {"one of two sources", {bytes, floats}, leaf_like(1, floats)},
      {"constant", {}, broadcast_to(constant(3), shape)},
      {"cast", {bytes}, cast(leaf_like(0, bytes), Dtype::f32) / constant(255)},
      {"overlapping rows", {signal}, frames},
      {"windowed frames", {signal, row}, frames * leaf_like(1, row)},
      {"columns", {floats, column}, (leaf_like(0, floats) - constant(1)) / leaf_like(1, column)},
      {"table", {floats}, leaf_like(0, floats) * Expr::array(row) + Expr::array(column)},
      {"to u8", {floats}, cast(leaf_like(0, floats) * constant(99), Dtype::u8)},
      {"halves", {halves}, cast(leaf_like(0, halves), Dtype::f64) * constant(3, Dtype::f64)},
      {"slice", {floats}, slice(slice(leaf_like(0, floats), 1, 3, 600, 2), 0, 22, 1, -3)},
      {"transposed", {floats}, permute(leaf_like(0, floats), {1, 0}) + constant(1)},
  };
  for (kit::Layout layout : kit::layouts()) {
    const Array x = kit::with_layout(floats, layout);
    result.push_back({"layout", {x, row}, leaf_like(0, x) + leaf_like(1, row)});
  }
  return result;
}

Array whole(const Case& what, const Context& context) {
  return kit::to_host(contiguous(eval(what.expression, what.sources, context), context), context);
}

TEST(TileTest, LoadsPiecesOfTheWhole) {
  const Context context = kit::context(Device::cpu());
  for (const Case& what : cases()) {
    const Array want = whole(what, context);
    const Tile tile(compile({&what.expression, 1}));
    const std::size_t size = size_of(want.dtype());
    for (const auto& [begin, n] : pieces_of(want.count())) {
      std::vector<std::byte> buffer(static_cast<std::size_t>(n) * size + 64, std::byte{0x5A});
      const void* got = tile.load(views_of(what.sources), begin, n, buffer.data());
      const auto bytes = static_cast<std::size_t>(n) * size;
      EXPECT_EQ(
          std::memcmp(got, want.as<std::byte>() + static_cast<std::size_t>(begin) * size, bytes), 0)
          << what.name << " " << begin << " " << n;
      for (std::size_t i = bytes; i < buffer.size(); ++i)
        ASSERT_EQ(buffer[i], std::byte{0x5A}) << what.name << " writes behind its buffer";
    }
  }
}

TEST(TileTest, LoadsDenseLeavesWhereTheyLie) {
  const Array x = kit::random({3, 5}, Dtype::f32, 1);
  const Expr second = slice(leaf_like(0, x), 0, 1, 3);
  const Tile tile(compile({&second, 1}));
  EXPECT_EQ(tile.load(views_of({x}), 2, 3, nullptr), x.as<float>() + 5 + 2);
  EXPECT_FALSE(tile.is_plain());  // not from its first element
}

TEST(TileTest, StoresPiecesOfTheWhole) {
  const Context context = kit::context(Device::cpu());
  for (const Case& what : cases()) {
    // The result as source 0, before the case's own sources.
    const Array result = kit::random(what.expression.shape(), Dtype::f32, 9);
    std::vector<Expr> moved;
    for (std::size_t i = 0; i < what.sources.size(); ++i) {
      const Array& source = what.sources[i];
      // As memory: the index maps of the case stay what they are.
      moved.push_back(Expr::leaf(static_cast<int>(i) + 1, source.dtype(), source.shape()));
    }
    const Expr neighbour = cast(substitute(what.expression, moved), Dtype::f32);
    const Expr stored = cast(leaf_like(0, result) * constant(20) - neighbour, Dtype::f16);
    std::vector<Array> all = what.sources;
    all.insert(all.begin(), result);
    const Array want = whole({what.name, all, stored}, context);
    const Tile tile(compile({&stored, 1}));
    const Array untouched = host_like(stored);
    for (const auto& [begin, n] : pieces_of(want.count())) {
      const Array got = host_like(stored);
      tile.store(result.as<float>() + begin, views_of(what.sources), begin, n, got.data());
      for (std::int64_t i = 0; i < got.count(); ++i) {
        const Array& from = i >= begin && i < begin + n ? want : untouched;
        ASSERT_EQ(got.as<Half>()[i].bits, from.as<Half>()[i].bits)
            << what.name << " " << begin << " " << n << " " << i;
      }
    }
  }
}

TEST(TileTest, KnowsWhatIsPlain) {
  const auto plain = [](const Expr& expression) {
    return Tile(compile({&expression, 1})).is_plain();
  };
  const Expr x = Expr::leaf(0, Dtype::f32, {4, 5});
  EXPECT_TRUE(plain(x));
  EXPECT_TRUE(plain(reshape(x, {20})));
  EXPECT_FALSE(plain(permute(x, {1, 0})));
  EXPECT_FALSE(plain(x + x));
  EXPECT_FALSE(plain(Expr::leaf(1, Dtype::f32, {4, 5})));
  EXPECT_FALSE(plain(Expr::array(kit::random({4, 5}, Dtype::f32, 1))));
  EXPECT_FALSE(plain(constant(1)));
}

TEST(TileTest, WorksFromManyThreads) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({301, 641}, Dtype::u8, 1, 0, 255),
              mean = kit::random({641}, Dtype::f32, 2);
  const Expr loaded = cast(leaf_like(0, x), Dtype::f32) - leaf_like(1, mean);
  const Expr stored = cast(Expr::leaf(0, Dtype::f32, {301, 641}) * constant(3), Dtype::i16);
  const Array want =
      kit::to_host(eval(cast(loaded * constant(3), Dtype::i16), {x, mean}, context), context);
  const Array got = host_like(stored);
  const Tile load(compile({&loaded, 1})), store(compile({&stored, 1}));
  const std::vector<ArrayView> sources = views_of({x, mean});
  parallel_for(301, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> row(641);
    for (std::int64_t r = first; r < last; ++r) {
      const void* values = load.load(sources, r * 641, 641, row.data());
      store.store(values, sources, r * 641, 641, got.data());
    }
  });
  EXPECT_TRUE(kit::same_bits(got, want));
}

TEST(TileTest, StoresMoreThanTheCachesHold) {
  const Dims shape{1027, 1100};
  const Array result = kit::random(shape, Dtype::f32, 1);
  const Expr stored = leaf_like(0, result) * constant(2);
  const Array got = host_like(stored);
  const Tile tile(compile({&stored, 1}));
  parallel_for(1027, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r)
      tile.store(result.as<float>() + r * 1100, {}, r * 1100, 1100, got.data());
  });
  for (std::int64_t i = 0; i < got.count(); ++i)
    ASSERT_EQ(got.as<float>()[i], result.as<float>()[i] * 2);
}

TEST(TileTest, RefusesWhatItCannotDo) {
  const Expr x = Expr::leaf(0, Dtype::f32, {4, 5});
  const Expr two[] = {x, x + x};
  EXPECT_ERROR(Tile(compile(two)), invalid, "tile: the program has 2 outputs; it must have one.");
  const Expr turned = permute(Expr::leaf(0, Dtype::f32, {5, 4}), {1, 0});
  const Tile tile(compile({&turned, 1}));
  std::vector<float> values(20), out(20);
  EXPECT_ERROR(tile.store(values.data(), {}, 0, 20, out.data()), invalid,
               "tile: a store reads the result (source 0) through an index map; it must read "
               "element i for element i.");
}

}  // namespace
}  // namespace forebay::expr
