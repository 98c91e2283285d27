// How programs meet memory: layouts, sizes, broadcasting, several outputs; and that fusing changes
// no bit.
#include "kit/kit.h"
#include "kit/oracle.h"

#include <array>
#include <cstring>

#include <forebay/ops/body_test.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

class ExecuteTest : public kit::DeviceTest {};

/// A dense host copy, element by element.
Array in_order(const Array& host) {
  const Array result = kit::generate(host.shape(), host.dtype(), [](std::int64_t) { return 0; });
  const auto size = static_cast<std::int64_t>(size_of(host.dtype()));
  for (std::int64_t i = 0; i < host.count(); ++i) {
    std::int64_t rest = i, offset = 0;
    for (int axis = host.rank() - 1; axis >= 0; --axis) {
      offset += rest % host.shape()[axis] * host.strides()[axis];
      rest /= host.shape()[axis];
    }
    std::memcpy(result.as<std::byte>() + i * size, host.as<std::byte>() + offset * size,
                static_cast<std::size_t>(size));
  }
  return result;
}

DEVICE_TEST(ExecuteTest, TakesAnyByteButZeroAsTrue) {
  const Context context = kit::context(device());
  const Array bytes = Array::from<std::uint8_t>({4}, std::vector<std::uint8_t>{0, 1, 2, 255});
  ArrayView view = bytes.view();
  view.dtype = Dtype::boolean;
  const Expr x = Expr::leaf(0, Dtype::boolean, {4});
  const Expr one = Expr::constant(1, Dtype::boolean);
  for (const Expr& expression :
       {cast(x, Dtype::f32), cast(binary(Opcode::logical_and, x, one), Dtype::f32),
        cast(binary(Opcode::eq, x, one), Dtype::f32), cast(x, Dtype::u8, CastMode::wrap),
        select(x, Expr::constant(1, Dtype::f32), Expr::constant(0, Dtype::f32))}) {
    EXPECT_EQ(kit::values(run(expression, {bytes.with_view(view)}, context)),
              (std::vector<double>{0, 1, 1, 1}));
  }
}

DEVICE_TEST(ExecuteTest, GivesTheSameBitsFusedAndStepByStep) {
  const Context context = kit::context(device());
  for (Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array x = kit::random({3, 1025}, dtype, 21),
                y = kit::random({3, 1025}, dtype, 22, 0.5, 2);
    const auto number = [&](double value) { return Expr::constant(value, dtype); };
    using Step = std::function<Expr(const Expr&, const Expr&)>;
    const std::vector<Step> steps = {
        [&](const Expr& a, const Expr&) { return a - number(0.13); },
        [&](const Expr& a, const Expr& b) { return a / b; },
        [&](const Expr& a, const Expr& b) { return a * b + a; },
        [&](const Expr& a, const Expr&) { return minimum(maximum(a, number(-3)), number(3)); },
        [&](const Expr& a, const Expr&) { return unary(Opcode::exp, a); },
        [&](const Expr& a, const Expr& b) { return unary(Opcode::log1p, a) - b * number(0.3); },
    };
    Expr fused = leaf_like(0, x);
    Array stepwise = kit::to_device(x, context);
    const Array other = kit::to_device(y, context);
    for (const Step& step : steps) {
      fused = step(fused, leaf_like(1, y));
      stepwise =
          eval(step(leaf_like(0, stepwise), leaf_like(1, other)), {stepwise, other}, context);
    }
    EXPECT_TRUE(kit::same_bits(run(fused, {x, y}, context), kit::to_host(stepwise, context)))
        << name_of(dtype);
  }
}

DEVICE_TEST(ExecuteTest, ReadsEveryLayoutAndSize) {
  const Context context = kit::context(device());
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1024}, Dims{1025}, Dims{70001},
        Dims{5, 7, 31}, Dims{2, 3, 1, 2, 5, 1, 3, 4}, Dims{4, 0, 2}, Dims{1, 1}}) {
    for (Dtype dtype : {Dtype::u8, Dtype::i16, Dtype::f32, Dtype::f64, Dtype::c128}) {
      const Array x = kit::random(shape, dtype, 7, 0, 99), y = kit::random(shape, dtype, 8, 0, 99);
      const Array want = run(leaf_like(0, x) * leaf_like(1, y), {x, y}, context);
      for (kit::Layout first : kit::layouts()) {
        for (kit::Layout second :
             {kit::Layout::dense, kit::Layout::transposed, kit::Layout::sliced}) {
          const Array a = kit::with_layout(x, first), b = kit::with_layout(y, second);
          EXPECT_TRUE(kit::same_bits(run(leaf_like(0, a) * leaf_like(1, b), {a, b}, context), want))
              << name_of(dtype) << " " << testing::PrintToString(shape);
        }
      }
    }
  }
}

DEVICE_TEST(ExecuteTest, BroadcastsRowsColumnsAndScalars) {
  const Context context = kit::context(device());
  const Array x = kit::random({6, 5, 300}, Dtype::f32, 1);
  for (const Dims& shape :
       {Dims{300}, Dims{5, 1}, Dims{6, 1, 1}, Dims{1, 5, 300}, Dims{}, Dims{1}}) {
    const Array y = kit::random(shape, Dtype::f32, 2);
    const Array table = y.broadcast_to({6, 5, 300});
    std::vector<double> want;
    for (std::int64_t i = 0; i < x.count(); ++i)
      want.push_back(kit::value(x.view(), i) + kit::value(table.view(), i));
    EXPECT_TRUE(kit::near(run(leaf_like(0, x) + leaf_like(1, y), {x, y}, context), want,
                          kit::epsilon(Dtype::f32)));
    // The same numbers as a table that the expression owns, of any layout.
    for (kit::Layout layout : kit::layouts()) {
      const Expr owned = leaf_like(0, x) + Expr::array(kit::with_layout(y, layout));
      EXPECT_TRUE(kit::near(run(owned, {x}, context), want, kit::epsilon(Dtype::f32)));
    }
  }
}

/// What could be one loop with the instruction behind it has another reader.
DEVICE_TEST(ExecuteTest, KeepsValuesThatAreReadTwice) {
  const Context context = kit::context(device());
  const Array x = kit::random({3, 1025}, Dtype::f32, 5);
  const auto number = [](double value) { return Expr::constant(value, Dtype::f32); };
  const auto done = [&](const Expr& expression, const Array& source) {
    return run(expression, {source}, context);
  };
  const Expr leaf = leaf_like(0, x);
  const Expr centred = leaf - number(0.3), raised = maximum(leaf, number(0.1));
  const Expr outputs[] = {centred, centred / number(7), minimum(raised, number(0.9)) * raised};
  const std::shared_ptr<Body> body = prepare(compile(outputs), context);
  const std::vector<Array> results{Array::empty(x.shape(), Dtype::f32, context),
                                   Array::empty(x.shape(), Dtype::f32, context),
                                   Array::empty(x.shape(), Dtype::f32, context)};
  run_body(*body, {kit::to_device(x, context).view()}, views_of(results), context);
  const Array first = done(centred, x), second = done(raised, x);
  EXPECT_TRUE(kit::same_bits(kit::to_host(results[0], context), first));
  EXPECT_TRUE(kit::same_bits(kit::to_host(results[1], context), done(leaf / number(7), first)));
  const Array limited = done(minimum(leaf, number(0.9)), second);
  EXPECT_TRUE(kit::same_bits(kit::to_host(results[2], context),
                             run(leaf * leaf_like(1, x), {limited, second}, context)));
}

/// Elements of 8 bits, whose 256 values may be computed once: the bits of each computed by itself.
DEVICE_TEST(ExecuteTest, ComputesBytesByValue) {
  const Context context = kit::context(device());
  const auto number = [](double value) { return Expr::constant(value, Dtype::f32); };
  for (const Dtype dtype : {Dtype::u8, Dtype::i8, Dtype::boolean}) {
    const Array dense = kit::random({3, 9001}, dtype, 1, 0, 127),
                pixels = kit::random({2, 70, 65, 3}, dtype, 2, 0, 127),
                mean = kit::random({3, 1, 1}, Dtype::f32, 3, 1, 40);
    for (const Dtype to :
         {Dtype::u8, Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::c128}) {
      const auto chain = [&](const Expr& x, const Expr& less) {
        return cast(minimum(maximum((x - less) / number(0.3), number(-50)), number(99)), to);
      };
      const auto wide = [&](const Array& x) {  // one conversion: not by value
        return run(cast(leaf_like(0, x), Dtype::f32), {x}, context);
      };
      EXPECT_TRUE(kit::same_bits(
          run(chain(cast(leaf_like(0, dense), Dtype::f32), number(7)), {dense}, context),
          run(chain(leaf_like(0, wide(dense)), number(7)), {wide(dense)}, context)))
          << name_of(dtype) << " to " << name_of(to);
      // Each plane by its own mean.
      const auto planes = [&](const Expr& x) {
        const Expr turned = permute(x, {0, 3, 1, 2});
        return chain(turned, broadcast_to(Expr::array(mean), turned.shape()));
      };
      EXPECT_TRUE(
          kit::same_bits(run(planes(cast(leaf_like(0, pixels), Dtype::f32)), {pixels}, context),
                         run(planes(leaf_like(0, wide(pixels))), {wide(pixels)}, context)))
          << name_of(dtype) << " to " << name_of(to) << ", planes";
    }
  }
}

DEVICE_TEST(ExecuteTest, WritesStridedOutputsAndSeveralAtOnce) {
  const Context context = kit::context(device());
  const Array x = kit::random({30, 70}, Dtype::f32, 1);
  const Expr leaf = leaf_like(0, x), doubled = leaf + leaf;
  const Expr outputs[] = {doubled, doubled * leaf, leaf, doubled, Expr::constant(7, Dtype::f32)};
  const Program program = compile(std::array{outputs[0], outputs[1], outputs[2], outputs[3],
                                             broadcast_to(outputs[4], {30, 70})});
  const Array device = kit::to_device(x, context);
  for (bool strided : {false, true}) {
    std::vector<Array> results;
    for (int k = 0; k < 5; ++k) {
      const bool transposed = strided && k != 1;
      const Array memory =
          Array::empty(transposed ? Dims{70, 30} : Dims{30, 70}, Dtype::f32, context);
      results.push_back(transposed ? memory.permute({1, 0}) : memory);
    }
    const std::shared_ptr<Body> body = prepare(program, context);
    std::vector<ArrayView> views = views_of(results);
    run_body(*body, {device.view()}, views, context);
    const Array twice = run(doubled, {x}, context);
    EXPECT_TRUE(kit::same_bits(kit::to_host(results[0], context), twice));
    EXPECT_TRUE(kit::same_bits(kit::to_host(results[1], context), run(outputs[1], {x}, context)));
    EXPECT_TRUE(kit::same_bits(kit::to_host(results[2], context), x));
    EXPECT_TRUE(kit::same_bits(kit::to_host(results[3], context), twice));
    EXPECT_EQ(kit::values(kit::to_host(results[4], context)), std::vector<double>(2100, 7));

    // An output that nobody reads has no memory.
    views[1].data = nullptr;
    run_body(*body, {device.view()}, views, context);
    EXPECT_TRUE(kit::same_bits(kit::to_host(results[0], context), twice));
  }
}

DEVICE_TEST(ExecuteTest, WritesOutputsLargerThanCaches) {
  const Context context = kit::context(device());
  // Rows that are no multiple of a cache line, of a tile or of each other's pieces.
  const Array x = kit::random({1031, 4099}, Dtype::u8, 1, 0, 255);
  const Array scale = kit::random({1031, 1}, Dtype::f32, 2),
              shift = kit::random({4099}, Dtype::f32, 3);
  const Expr y = cast(leaf_like(0, x), Dtype::f32) * leaf_like(1, scale) + leaf_like(2, shift);
  const Array got = run(y, {x, scale, shift}, context);
  for (std::int64_t r = 0; r < 1031; ++r) {
    for (std::int64_t c = 0; c < 4099; ++c) {
      const std::int64_t i = r * 4099 + c;
      const float product = static_cast<float>(x.as<std::uint8_t>()[i]) * scale.as<float>()[r];
      ASSERT_EQ(got.as<float>()[i], product + shift.as<float>()[c]) << r << " " << c;
    }
  }
  const Array filled = run(broadcast_to(leaf_like(0, scale), {1031, 4099}), {scale}, context);
  for (std::int64_t i = 0; i < filled.count(); ++i)
    ASSERT_EQ(filled.as<float>()[i], scale.as<float>()[i / 4099]);
}

DEVICE_TEST(ExecuteTest, TurnsAxesOfEveryExtentAndSize) {
  const Context context = kit::context(device());
  for (const Dims& shape : {Dims{100, 67}, Dims{8, 300}, Dims{300, 8}, Dims{7, 300},
                            Dims{3, 33, 40}, Dims{33, 3, 40}, Dims{1031, 1103}}) {
    for (Dtype dtype : {Dtype::u8, Dtype::f16, Dtype::f32, Dtype::c64, Dtype::c128}) {
      const Array x = kit::random(shape, dtype, 1, 0, 99);
      Dims axes, turned;
      for (int axis = shape.rank - 1; axis >= 0; --axis) {
        axes.push_back(axis);
        turned.push_back(shape[axis]);
      }
      const Expr source = permute(leaf_like(0, x), axes);
      const Array row = kit::random({turned[turned.rank - 1]}, dtype, 2, 0, 99);
      const Array got = run(source * leaf_like(1, row), {x, row}, context);
      // The same of elements that were put in order one by one.
      const Array ordered = in_order(x.permute(axes));
      const Array other = run(leaf_like(0, ordered) * leaf_like(1, row), {ordered, row}, context);
      EXPECT_TRUE(kit::same_bits(got, other))
          << name_of(dtype) << " " << testing::PrintToString(shape);
    }
  }
}

DEVICE_TEST(ExecuteTest, WritesTurnedOutputsBesideConstantOnes) {
  const Context context = kit::context(device());
  const Array x = kit::random({90, 70}, Dtype::f32, 1);
  const Expr leaf = leaf_like(0, x), seven = broadcast_to(Expr::constant(7, Dtype::f32), {90, 70});
  const Program program = compile(std::array{leaf + leaf, seven, seven});
  const Array turned = Array::empty({70, 90}, Dtype::f32, context).permute({1, 0}),
              sevens = Array::empty({90, 70}, Dtype::f32, context),
              turned_sevens = Array::empty({70, 90}, Dtype::f32, context).permute({1, 0});
  const Array device = kit::to_device(x, context);
  run_body(*prepare(program, context), {device.view()},
           {turned.view(), sevens.view(), turned_sevens.view()}, context);
  EXPECT_TRUE(kit::same_bits(kit::to_host(turned, context), run(leaf + leaf, {x}, context)));
  EXPECT_EQ(kit::values(kit::to_host(sevens, context)), std::vector<double>(6300, 7));
  EXPECT_EQ(kit::values(kit::to_host(turned_sevens, context)), std::vector<double>(6300, 7));
}

DEVICE_TEST(ExecuteTest, MakesHalfImagesOfBytesInTheOtherOrder) {
  const Context context = kit::context(device());
  const Array images = kit::random({3, 17, 19, 3}, Dtype::u8, 1, 0, 255);
  const Expr normalized = (cast(permute(leaf_like(0, images), {0, 3, 1, 2}), Dtype::f32) -
                           Expr::constant(0.13, Dtype::f32)) /
                          Expr::constant(0.31, Dtype::f32);
  const Array got = run(cast(normalized, Dtype::f16), {images}, context);
  const Array source = images.permute({0, 3, 1, 2});
  std::vector<Half> want;
  for (std::int64_t i = 0; i < source.count(); ++i) {
    want.emplace_back((static_cast<float>(kit::value(source.view(), i)) - 0.13F) / 0.31F);
  }
  EXPECT_TRUE(kit::same_bits(got, Array::from<Half>({3, 3, 17, 19}, want)));
}

/// Images and rows that begin at any place in memory: the same as of a copy that begins at an aligned one.
DEVICE_TEST(ExecuteTest, ReadsBytesAndHalvesFromAnywhere) {
  const Context context = kit::context(device());
  for (const Dtype dtype : {Dtype::u8, Dtype::i8, Dtype::u16, Dtype::f16, Dtype::bf16}) {
    const Array images = kit::random({2, 9, 27, 3}, dtype, 1, 0, 100);
    for (std::int64_t first = 0; first < 4; ++first) {
      for (const Array& part :
           {images.slice(2, first, first + 16), images.slice(2, first, first + 24),
            images.slice(2, 11, 27).slice(1, first, 9)}) {
        const auto of = [&](const Array& x) {
          const Expr leaf = cast(leaf_like(0, x), Dtype::f32) * Expr::constant(0.5, Dtype::f32);
          return run(permute(leaf, {0, 3, 1, 2}), {x}, context);
        };
        const Array copy = kit::generate(
            part.shape(), dtype, [&](std::int64_t i) { return kit::value(part.view(), i); });
        EXPECT_TRUE(kit::same_bits(of(part), of(copy))) << name_of(dtype) << first;
      }
    }
    const Array row = kit::random({4000}, dtype, 2, 0, 100);
    for (std::int64_t first = 0; first < 5; ++first) {
      const Array part = row.slice(0, first, first + 3983);
      const Expr x = cast(leaf_like(0, part), Dtype::f32);
      EXPECT_TRUE(kit::near(run(x, {part}, context), kit::values(part), 0)) << name_of(dtype);
    }
  }
}

DEVICE_TEST(ExecuteTest, RunsLongPrograms) {
  const Context context = kit::context(device());
  const Array x = kit::random({2000}, Dtype::i64, 1, -99, 99);
  Expr sum = leaf_like(0, x);
  std::vector<std::int64_t> want(x.as<std::int64_t>(), x.as<std::int64_t>() + 2000);
  for (int i = 1; i <= 100; ++i) {
    sum = sum * Expr::constant(3, Dtype::i64) + Expr::constant(i, Dtype::i64) * leaf_like(0, x);
    for (std::size_t k = 0; k < 2000; ++k) {
      want[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(want[k]) * 3 +
                                          static_cast<std::uint64_t>(i * x.as<std::int64_t>()[k]));
    }
  }
  EXPECT_TRUE(kit::same_bits(run(sum, {x}, context), kit::array_of(want)));
}

}  // namespace
}  // namespace forebay::expr
