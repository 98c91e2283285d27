// Our own product for Hopper: what it takes, that it compiles without spills, and that it is right.
#include "kit/kit.h"

#include <cmath>

#include <forebay/array/cuda/device.h>
#include <forebay/ops/body_test.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/matmul/hopper.h>
#include <forebay/ops/registry.h>

namespace forebay {
namespace {

using expr::Expr;

Expr number(double value) { return Expr::constant(Number(value), Dtype::f32); }
Expr leaf(const Dims& shape, Dtype dtype = Dtype::f32, int source = 0) {
  return Expr::leaf(source, dtype, shape);
}
/// The neighbours of the bench.
Expr normalized(const Expr& x) {
  return expr::minimum(expr::maximum((x - number(1)) / number(2), number(-3)), number(3));
}

Product product_of(const Matmul& settings, const Dims& x, Dtype dtype = Dtype::f32) {
  const ArraySpec spec{dtype, x};
  return resolve(settings, {&spec, 1});
}
Array zeros(const Dims& shape) { return kit::random(shape, Dtype::f32, 1); }

TEST(HopperProduct, TakesLargeProductsOfWholeUnits) {
  const auto fits = [](std::int64_t m, std::int64_t k, std::int64_t n,
                       Compute compute = Compute::bf16) {
    return hopper::fits(product_of({.other = zeros({k, n}), .compute = compute}, {m, k}));
  };
  EXPECT_TRUE(fits(8192, 64, 64));
  EXPECT_TRUE(fits(4097, 1024, 1000, Compute::tf32));
  EXPECT_TRUE(fits(8192, 64, 64, Compute::f16));
  EXPECT_FALSE(fits(8192, 64, 64, Compute::f32));
  EXPECT_FALSE(fits(8192, 64, 64, Compute::f64));
  EXPECT_FALSE(fits(8192, 65, 64));
  EXPECT_FALSE(fits(8192, 64, 65));
  EXPECT_FALSE(fits(4096, 64, 64));
  EXPECT_FALSE(hopper::fits(
      product_of({.other = zeros({3, 64, 64}), .compute = Compute::bf16}, {3, 4096, 64})));
}

TEST(HopperProduct, StagesTheOneLargeLeaf) {
  const Dims shape{4096, 64};
  const Product product = product_of({.other = zeros({64, 64}), .compute = Compute::bf16}, shape);
  const auto staged = [&](const Expr& x) {
    return hopper::staged_leaf(product, expr::compile({&x, 1}));
  };
  EXPECT_EQ(staged(leaf(shape)), 0u);
  EXPECT_EQ(staged(normalized(leaf(shape))), 0u);
  EXPECT_EQ(staged(cast(leaf(shape, Dtype::u8), Dtype::f32) / number(255)), 0u);
  const Expr column = broadcast_to(leaf({64}, Dtype::f32, 1), shape),
             row = broadcast_to(leaf({4096, 1}, Dtype::f32, 2), shape);
  EXPECT_TRUE(staged((leaf(shape) - row) * column).has_value());
  EXPECT_FALSE(staged(leaf(shape) + leaf(shape, Dtype::f32, 1)).has_value());
  EXPECT_FALSE(staged(permute(leaf({64, 4096}), {1, 0})).has_value());
  EXPECT_FALSE(staged(unary(expr::Opcode::exp, leaf(shape))).has_value());
  EXPECT_FALSE(staged(leaf(shape, Dtype::f64)).has_value());
}

/// For `forebay plan --dump-kernels`.
TEST(HopperProduct, IsPreparedWithoutAGpu) {
  const cuda::CompileOnly look({});
  const Expr x = normalized(leaf({4096, 1024}));
  const Matmul settings{.other = zeros({1024, 1024}), .compute = Compute::bf16};
  Problem problem{.inputs = {{x.dtype(), x.shape()}}, .outputs = {}};
  problem.outputs = Op::with(find_op("matmul"), settings).infer(problem.inputs);
  problem.prologue = {x};
  const auto body = hopper::prepare(product_of(settings, x.shape()), settings, problem,
                                    kit::context(Device::cpu()));
  EXPECT_NE(body, nullptr);
  EXPECT_EQ(look.sources().size(), 2u);
}

TEST(HopperProduct, ClipsWhatIsRounded) {
  const Expr x = leaf({4096, 64});
  const auto clips = [](const Expr& of, Dtype operand) {
    expr::Program program = expr::compile({&of, 1});
    const auto taken = hopper::take_clips(program, operand);
    EXPECT_EQ(program.outputs[0] + 1, static_cast<int>(program.code.size()));
    return hopper::clipped_text(taken, operand);
  };
  EXPECT_EQ(clips(normalized(x), Dtype::bf16),
            "u32 clipped(u32 two) {\n"
            "  asm(\"max.NaN.bf16x2 %0, %0, %1;\" : \"+r\"(two) : \"r\"(0xc040c040u));\n"
            "  asm(\"min.NaN.bf16x2 %0, %0, %1;\" : \"+r\"(two) : \"r\"(0x40404040u));\n"
            "  return two;\n}\n");
  const std::string none = "u32 clipped(u32 two) {\n  return two;\n}\n";
  EXPECT_EQ(clips(normalized(x), Dtype::f32), none);
  EXPECT_EQ(clips(expr::maximum(x, number(0)), Dtype::f16), none);
  EXPECT_EQ(clips(expr::maximum(x, number(NAN)), Dtype::f16), none);
  EXPECT_EQ(clips(expr::minimum(x, x + number(1)), Dtype::f16), none);
}

/// What ptxas says of the kernel.
std::string report(const Matmul& settings, const Expr& x, bool aligned = true) {
  const Product product = product_of(settings, x.shape(), x.dtype());
  expr::Program program = expr::compile({&x, 1});
  const auto staged = hopper::staged_leaf(product, program);
  if (!staged.has_value()) return "nothing is staged";
  const auto clips = hopper::take_clips(program, product.operand);
  const auto load = expr::device_load("X", program, kit::context(Device::cpu()));
  const hopper::Plan plan = hopper::plan(product, size_of(program.leaves[*staged].dtype));
  EXPECT_LE(plan.shared_bytes(), 227u * 1024);
  EXPECT_GE(plan.ring_other, 3);
  cuda::compile_kernel(hopper::pack_kernel(plan), 90);
  return cuda::compiler_report(
      hopper::product_kernel(plan, load, clips, aligned ? staged : std::nullopt), 90);
}

TEST(HopperProduct, CompilesWithoutSpillsOrSerializedSteps) {
  const auto check = [](const std::string& text) {
    EXPECT_NE(text.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos) << text;
    EXPECT_EQ(text.find("serialized"), std::string::npos) << text;
  };
  const Dims shape{4096, 1024};
  const Array other = zeros({1024, 1024}), narrow = zeros({1024, 80});
  const Expr x = normalized(leaf(shape));
  check(report({.other = other, .compute = Compute::bf16, .dtype = Dtype::bf16}, x));
  check(report({.other = other, .compute = Compute::tf32}, x));
  check(report({.other = narrow, .compute = Compute::f16}, x));
  check(report({.other = other, .compute = Compute::bf16}, leaf(shape)));
  const Expr gain = broadcast_to(leaf({1024}, Dtype::f32, 1), shape);
  check(report({.other = other, .compute = Compute::bf16},
               cast(leaf(shape, Dtype::u8), Dtype::f32) * gain));
  const Expr mean = broadcast_to(leaf({4096, 1}, Dtype::f32, 1), shape);
  check(report({.other = other, .compute = Compute::bf16, .dtype = Dtype::bf16},
               (leaf(shape) - mean) * number(2)));
  const Expr gains = broadcast_to(leaf({4096, 1}, Dtype::f32, 2), shape);
  check(report({.other = other, .compute = Compute::bf16, .dtype = Dtype::bf16},
               (leaf(shape) - mean) / gains));
  check(report({.other = other, .compute = Compute::bf16, .dtype = Dtype::bf16},
               (leaf(shape) - number(0.13)) / number(0.31)));
  check(report({.other = other, .compute = Compute::bf16},
               cast(leaf(shape, Dtype::u8), Dtype::f32) / number(255)));
  check(report({.other = other, .compute = Compute::tf32, .dtype = Dtype::f16},
               cast(leaf(shape, Dtype::f16), Dtype::f32) - number(1)));
  check(report({.other = other, .compute = Compute::bf16, .dtype = Dtype::bf16}, x, false));
  // as it is compiled for others, when everything is
  const auto load = expr::device_load("X", expr::compile({&x, 1}), kit::context(Device::cpu()));
  const Product product = product_of({.other = other, .compute = Compute::tf32}, shape);
  cuda::compile_kernel(hopper::product_kernel(hopper::plan(product, 4), load, {}, 0), 80);
}

/// |error| <= (k + 4) eps sum |x| |other| + eps(result) |result| (+ 2^-9 sum |x| |other| of tf32), with operands rounded
/// as asked.
void expect_close(const Array& got, const Array& x, const Array& other, bool transposed,
                  Compute compute) {
  const auto rounded = [compute](const Array& array) {
    std::vector<double> values;
    for (const auto& value : kit::complex_values(array)) {
      const auto f = static_cast<float>(value.real());
      values.push_back(compute == Compute::bf16  ? static_cast<float>(BFloat16(f))
                       : compute == Compute::f16 ? static_cast<float>(Half(f))
                                                 : f);
    }
    return values;
  };
  const std::int64_t m = x.shape()[0], k = x.shape()[1], n = got.shape()[1];
  const std::vector<double> a = rounded(x), b = rounded(other);
  const double terms = static_cast<double>(k + 4) * kit::epsilon(Dtype::f32) +
                       (compute == Compute::tf32 ? 0x1p-9 : 0);
  for (std::int64_t i = 0; i < m; i += i < 130 ? 1 : 37) {
    std::vector<double> sums(static_cast<std::size_t>(n)), sizes(static_cast<std::size_t>(n));
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double term = a[static_cast<std::size_t>(i * k + l)] *
                            b[static_cast<std::size_t>(transposed ? j * k + l : l * n + j)];
        sums[static_cast<std::size_t>(j)] += term;
        sizes[static_cast<std::size_t>(j)] += std::abs(term);
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const double want = sums[static_cast<std::size_t>(j)];
      const double value = kit::complex_value(got.view(), i * n + j).real();
      const double bound = terms * sizes[static_cast<std::size_t>(j)] +
                           kit::epsilon(got.dtype()) * std::abs(want) * 1.01;
      ASSERT_LE(std::abs(value - want), bound)
          << "row " << i << ", column " << j << ": " << value << ", not " << want;
    }
  }
}

class HopperProductCuda : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT(Device::cuda());
    if (cuda::limits(Device::cuda()).architecture != 90)
      GTEST_SKIP() << "not compute capability 9.0";
  }
  /// `x` over `sources`, the first of which may lie `shift` elements behind an aligned address.
  void check(const Matmul& settings, const Expr& x, std::vector<Array> sources,
             std::int64_t shift = 0) {
    const Context context = kit::context(Device::cuda());
    Matmul with_constant = settings;
    const Op op = Op::with(find_op("matmul"), with_constant);
    Problem problem{.inputs = {{x.dtype(), x.shape()}}, .outputs = {}};
    problem.outputs = op.infer(problem.inputs);
    problem.prologue = {x};
    const Product product = resolve(settings, problem.inputs);
    for (Array& source : sources) {
      source = kit::to_device(source, context);
      if (shift == 0) continue;
      const std::int64_t count = count_of(source.shape());
      const Array room = Array::empty({count + shift}, source.dtype(), context);
      const Array behind = room.slice(0, shift, count + shift).reshape(source.shape());
      copy(source.view(), behind.view(), context.stream);
      source = behind;
      shift = 0;
    }
    const std::unique_ptr<Body> body = hopper::prepare(product, settings, problem, context);
    ASSERT_NE(body, nullptr);
    const Array got = results_of(*body, problem, sources, context)[0];
    const Array made = kit::to_host(eval(x, sources, context), context);
    expect_close(got, made, settings.other.array, settings.transpose_other, settings.compute);
  }
};

TEST_F(HopperProductCuda, IsRightAtOddSizes) {
  struct Case {
    std::int64_t m, k, n;
    Compute compute;
    Dtype dtype;
    bool transposed;
  };
  for (const Case& c : {Case{1025, 64, 64, Compute::bf16, Dtype::f32, false},
                        Case{1025, 64, 64, Compute::tf32, Dtype::bf16, true},
                        Case{1100, 192, 328, Compute::f16, Dtype::f16, true},
                        Case{1100, 192, 328, Compute::tf32, Dtype::f32, false},
                        Case{2049, 448, 1000, Compute::bf16, Dtype::bf16, false},
                        Case{2049, 448, 1000, Compute::tf32, Dtype::f32, true}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", c.m, c.k, c.n));
    const Array x = kit::random({c.m, c.k}, Dtype::f32, 1),
                other = kit::random(c.transposed ? Dims{c.n, c.k} : Dims{c.k, c.n}, Dtype::f32, 2);
    check({.other = other, .transpose_other = c.transposed, .compute = c.compute, .dtype = c.dtype},
          normalized(leaf({c.m, c.k})), {x});
  }
}

TEST_F(HopperProductCuda, ReadsWhatLiesThere) {
  const Dims shape{1030, 128};
  const Array other = kit::random({128, 136}, Dtype::f32, 2),
              gain = kit::random({128}, Dtype::f32, 3),
              mean = kit::random({1030, 1}, Dtype::f32, 4);
  const Expr columns = broadcast_to(leaf({128}, Dtype::f32, 1), shape),
             rows = broadcast_to(leaf({1030, 1}, Dtype::f32, 2), shape);
  const auto read = [&](Dtype dtype) {
    return dtype == Dtype::f32 ? leaf(shape) : cast(leaf(shape, dtype), Dtype::f32);
  };
  for (const auto& [compute, dtype] : {std::pair{Compute::bf16, Dtype::bf16},
                                       {Compute::bf16, Dtype::i16},
                                       {Compute::tf32, Dtype::f16},
                                       {Compute::tf32, Dtype::u8}}) {
    SCOPED_TRACE(name_of(dtype));
    check({.other = other, .compute = compute}, read(dtype),
          {kit::random(shape, dtype, 1, 0, 100)});
  }
  const Array bytes = kit::random(shape, Dtype::u8, 1, 0, 100);
  check({.other = other, .compute = Compute::bf16}, (read(Dtype::u8) - rows) * columns / number(7),
        {bytes, gain, mean});
  const Array floats = kit::random(shape, Dtype::f32, 1);
  check({.other = other, .compute = Compute::tf32}, (read(Dtype::f32) - rows) * columns,
        {floats, gain, mean});
}

TEST_F(HopperProductCuda, ClippingRoundedValuesHasTheBitsOfClippingThemBefore) {
  const Context context = kit::context(Device::cuda());
  const Dims shape{1030, 128};
  const Array other = kit::random({128, 136}, Dtype::f32, 2);
  const Array x = kit::to_device(kit::random(shape, Dtype::f32, 1, -20, 20), context);
  const Array clipped = eval(normalized(leaf(shape)), {x}, context);
  for (const Compute compute : {Compute::bf16, Compute::f16}) {
    const Matmul settings{.other = other, .compute = compute};
    const auto product = [&](const Expr& of, const Array& source) {
      const Op op = Op::with(find_op("matmul"), settings);
      Problem problem{.inputs = {{Dtype::f32, shape}}, .outputs = {}};
      problem.outputs = op.infer(problem.inputs);
      problem.prologue = {of};
      const auto body =
          hopper::prepare(resolve(settings, problem.inputs), settings, problem, context);
      return results_of(*body, problem, {source}, context)[0];
    };
    EXPECT_TRUE(kit::same_bits(product(normalized(leaf(shape)), x), product(leaf(shape), clipped)));
  }
}

/// Addresses that are no multiples of 16 bytes.
TEST_F(HopperProductCuda, ReadsAndWritesAnywhere) {
  const Dims shape{1030, 128};
  const Array x = kit::random(shape, Dtype::f32, 1), other = kit::random({128, 136}, Dtype::f32, 2);
  check({.other = other, .compute = Compute::bf16}, normalized(leaf(shape)), {x}, /*shift=*/1);
  check({.other = other, .compute = Compute::tf32, .dtype = Dtype::f16}, leaf(shape), {x},
        /*shift=*/2);
}

/// More tiles than blocks, so that a block makes several, and of few units or more than results are stored beside.
TEST_F(HopperProductCuda, IsRightOverManyTiles) {
  for (const std::int64_t k : {64, 192}) {
    const Dims shape{40000, k};
    const Array x = kit::random(shape, Dtype::f32, 1);
    const Array other = kit::random({k, 520}, Dtype::f32, 2);
    for (const Compute compute : {Compute::bf16, Compute::tf32}) {
      for (const Dtype dtype : {Dtype::bf16, Dtype::f32})
        check({.other = other, .compute = compute, .dtype = dtype}, normalized(leaf(shape)), {x});
    }
  }
}

}  // namespace
}  // namespace forebay
