#include <forebay/ops/matmul/product.h>

#include <algorithm>
#include <cstring>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/numpy.h>
#include <forebay/ops/matmul/hopper.h>

namespace forebay {
namespace {

constexpr DtypeSet kOperands = kIntegers | kFloats | kComplex;

Dtype common_dtype(Dtype a, Dtype b) {
  const bool no_integer = (a == Dtype::u64 && is_signed(b)) || (b == Dtype::u64 && is_signed(a));
  FOREBAY_REQUIRE(!no_integer, unsupported,
                  "matmul: {} and u64 have no common integer type; products of integers are exact. "
                  "Cast one of them before.",
                  name_of(a == Dtype::u64 ? b : a));
  return expr::promote(a, b);
}

/// operand, sum, tf32 and the dtype of the result.
void resolve_dtypes(Product& p, const Matmul& settings) {
  check_dtype("matmul", "x", p.x.dtype, kOperands);
  check_dtype("matmul", "other", p.other.dtype, kOperands);
  const Dtype common = common_dtype(p.x.dtype, p.other.dtype);
  const Compute compute = settings.compute;
  const std::string_view name = names_of(compute)[static_cast<std::size_t>(compute)];
  const Dtype wanted = settings.dtype.value_or(common);
  if (is_integer(common)) {
    FOREBAY_REQUIRE(compute == Compute::f32, invalid,
                    "matmul: `compute` is {}, but the operands are integers, {} and {}, whose "
                    "product is exact. Leave "
                    "`compute` out, or cast them to a float before.",
                    name, name_of(p.x.dtype), name_of(p.other.dtype));
    FOREBAY_REQUIRE(wanted == common, invalid,
                    "matmul: `dtype` is {}, but the product of {} and {} is {}. Leave `dtype` out, "
                    "and cast before or "
                    "after.",
                    name_of(wanted), name_of(p.x.dtype), name_of(p.other.dtype), name_of(common));
    p.operand = p.sum = common;
  } else if (is_complex(common)) {
    FOREBAY_REQUIRE(is_complex(wanted), invalid,
                    "matmul: `dtype` is {}, but the product is complex; it must be c64 or c128.",
                    name_of(wanted));
    const bool wide = common == Dtype::c128 || compute == Compute::f64;
    const bool narrow =
        compute == Compute::f16 || compute == Compute::bf16 || (compute == Compute::tf32 && wide);
    FOREBAY_REQUIRE(!narrow, invalid,
                    "matmul: `compute` is {}, but the product is {}; it must be {}.", name,
                    name_of(common), wide ? "f64 or left out" : "f32, tf32 or f64");
    p.operand = p.sum = wide ? Dtype::c128 : Dtype::c64;
    p.tf32 = compute == Compute::tf32;
  } else {
    FOREBAY_REQUIRE(is_float(wanted), invalid,
                    "matmul: `dtype` is {}; it must be f16, bf16, f32 or f64.", name_of(wanted));
    FOREBAY_REQUIRE(common != Dtype::f64 || compute == Compute::f32 || compute == Compute::f64,
                    invalid,
                    "matmul: `compute` is {}, but the product is f64; it must be f64 or left out. "
                    "Cast the operands to "
                    "f32 before for less.",
                    name);
    const bool wide = common == Dtype::f64 || compute == Compute::f64;
    p.operand = wide                       ? Dtype::f64
                : compute == Compute::f16  ? Dtype::f16
                : compute == Compute::bf16 ? Dtype::bf16
                                           : common;
    p.sum = wide ? Dtype::f64 : Dtype::f32;
    p.tf32 = compute == Compute::tf32 && p.operand == Dtype::f32;
  }
  p.out.dtype = wanted;
}

Dims leading(const Dims& shape, int last) {
  Dims result;
  for (int i = 0; i < shape.rank - last; ++i)
    result.push_back(shape[i]);
  return result;
}

/// Strides over the axes of `batch` of the products of an operand with leading axes `own`.
Dims batch_strides(const Dims& own, const Dims& batch, std::int64_t matrix) {
  Dims strides = batch;
  std::int64_t step = matrix;
  for (int i = 1; i <= batch.rank; ++i) {
    const std::int64_t extent = i <= own.rank ? own[own.rank - i] : 1;
    strides[batch.rank - i] = extent == 1 ? 0 : step;
    step *= extent;
  }
  return strides;
}

/// Drops axes of extent 1 and merges neighbours that both operands walk with one stride.
void merge_batch(Product& p) {
  Dims batch, x, other;  // innermost first
  for (int i = p.batch.rank - 1; i >= 0; --i) {
    if (p.batch[i] == 1) continue;
    const int last = batch.rank - 1;
    if (last >= 0 && p.x_strides[i] == batch[last] * x[last] &&
        p.other_strides[i] == batch[last] * other[last]) {
      batch[last] *= p.batch[i];
    } else {
      batch.push_back(p.batch[i]);
      x.push_back(p.x_strides[i]);
      other.push_back(p.other_strides[i]);
    }
  }
  std::reverse(batch.begin(), batch.end());
  std::reverse(x.begin(), x.end());
  std::reverse(other.begin(), other.end());
  p.batch = batch;
  p.x_strides = x;
  p.other_strides = other;
  // One matrix for all of a dense x: its rows are the rows of one larger matrix.
  constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1;
  if (batch.rank == 1 && other[0] == 0 && x[0] == p.m * p.k && batch[0] * p.m <= kMostRows) {
    p.m *= batch[0];
    p.batch = p.x_strides = p.other_strides = {};
  }
}

void resolve_shapes(Product& p, const Matmul& settings) {
  const Dims& x = p.x.shape;
  const Dims& other = p.other.shape;
  for (const auto& [name, shape] : {std::pair{"x", x}, std::pair{"other", other}}) {
    FOREBAY_REQUIRE(shape.rank > 0, invalid,
                    "matmul: `{}` is a scalar, shape (); it needs an axis to sum over. Use `scale` "
                    "to multiply by a number.",
                    name);
  }
  FOREBAY_REQUIRE(
      !settings.transpose_other || other.rank > 1, invalid,
      "matmul: `transpose_other` is true, but `other` has shape {}; it needs two axes to swap.",
      to_string(other));
  p.transposed = settings.transpose_other;
  const int summed = other.rank == 1 || p.transposed ? other.rank - 1 : other.rank - 2;
  p.k = x[x.rank - 1];
  FOREBAY_REQUIRE(other[summed] == p.k, invalid,
                  "matmul: `x` has shape {} and `other` {}: the last axis of `x`, {}, must be as "
                  "long as axis {} of `other`, "
                  "{}.",
                  to_string(x), to_string(other), p.k, summed, other[summed]);
  if (x.rank > 1) p.m = x[x.rank - 2];
  if (other.rank > 1) p.n = other[p.transposed ? other.rank - 2 : other.rank - 1];

  const Dims x_batch = leading(x, std::min(x.rank, 2));
  const Dims other_batch = leading(other, std::min(other.rank, 2));
  p.batch = x_batch.rank > other_batch.rank ? x_batch : other_batch;
  for (int i = 1; i <= std::min(x_batch.rank, other_batch.rank); ++i) {
    const std::int64_t a = x_batch[x_batch.rank - i], b = other_batch[other_batch.rank - i];
    FOREBAY_REQUIRE(
        a == b || a == 1 || b == 1, invalid,
        "matmul: `x` has shape {} and `other` {}: the leading axes {} and {} do not broadcast.",
        to_string(x), to_string(other), to_string(x_batch), to_string(other_batch));
    p.batch[p.batch.rank - i] = a == 1 ? b : a;
  }
  p.out.shape = p.batch;
  if (x.rank > 1) p.out.shape.push_back(p.m);
  if (other.rank > 1) p.out.shape.push_back(p.n);
  p.x_strides = batch_strides(x_batch, p.batch, p.m * p.k);
  p.other_strides = batch_strides(other_batch, p.batch, p.k * p.n);
  if (!p.empty() && p.k > 0) merge_batch(p);
  // A column is a row, transposed: sums along memory.
  if (p.n == 1) p.transposed = true;
}

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

expr::Expr converted(expr::Expr x, Dtype via, Dtype to) {
  if (x.dtype() != via) x = cast(x, via);
  return x.dtype() == to ? x : cast(x, to);
}

}  // namespace

bool is_given(const ConstantArray& other) {
  return !other.path.empty() || other.array.shape() != Dims{0};
}

Product resolve(const Matmul& settings, std::span<const ArraySpec> inputs) {
  const bool constant = is_given(settings.other);
  FOREBAY_REQUIRE(
      !constant || inputs.size() == 1, invalid,
      "matmul: `other` is given twice, in the settings and as the second input; give one of them.");
  FOREBAY_REQUIRE(
      constant || inputs.size() == 2, invalid,
      "matmul: `other` is missing; give a matrix in the settings or name a second input.");
  Product p;
  p.x = inputs[0];
  p.other =
      constant ? ArraySpec{settings.other.array.dtype(), settings.other.array.shape()} : inputs[1];
  resolve_shapes(p, settings);
  resolve_dtypes(p, settings);
  return p;
}

expr::Expr operand_of(const Product& product, const Problem& problem, std::size_t i, Dtype to) {
  const ArraySpec& spec = problem.inputs[i];
  const expr::Expr given = problem.prologue.empty()
                               ? expr::Expr::leaf(static_cast<int>(i), spec.dtype, spec.shape)
                               : problem.prologue[i];
  return converted(given, product.operand, to);
}

Array made_constant(const Array& array, Dtype via, Dtype to, const Context& context) {
  Array constant = array;
  if (constant.device() != context.device()) {
    const Context host = Context::create(constant.device(), 1);
    constant = contiguous(constant, host);
    host.stream.synchronize();
    constant = copy_to(constant, context);
  }
  const bool rounds = constant.dtype() != to || via != to;
  if (rounds) {
    const auto leaf = expr::Expr::leaf(0, constant.dtype(), constant.shape(), constant.strides());
    constant = eval(converted(leaf, via, to), {constant}, context);
  } else {
    constant = contiguous(constant, context);
  }
  context.stream.synchronize();
  return constant;
}

KernelDtypes dtypes_on(DeviceKind device, const Product& p) {
  if (is_integer(p.operand)) return {p.operand, p.operand};
  if (device == DeviceKind::cpu) return {p.sum, p.sum};
  const bool narrow = p.operand == Dtype::f16 || p.operand == Dtype::bf16;
  return {p.operand, narrow && p.out.dtype == p.operand ? p.operand : p.sum};
}

Fusion product_fuses(const void* settings, const Problem& problem, DeviceKind device) {
  const Product p = resolve(*static_cast<const Matmul*>(settings), problem.inputs);
  if (p.empty() || p.k == 0) return {};
  const Dtype taken = dtypes_on(device, p).taken;
  const bool converts = p.x.dtype != taken || p.operand != taken;
  const bool reads_any =
      device == DeviceKind::cuda && problem.inputs.size() == 1 && hopper::fits(p);
  return {.prologue = converts || reads_any, .epilogue = false};
}

ProductBody::ProductBody(const Product& product, const Matmul& settings, const Problem& problem,
                         const Context& context)
    : product_(product), dtypes_(dtypes_on(context.device().kind, product)) {
  const Product& p = product_;
  if (p.empty() || p.k == 0) return;
  x_ = operand(0, problem, context);
  has_constant_ = is_given(settings.other);
  if (has_constant_)
    constant_ = made_constant(settings.other.array, p.operand, dtypes_.taken, context);
  else
    other_ = operand(1, problem, context);
  if (dtypes_.given != p.out.dtype) {
    const expr::Expr raw = expr::Expr::leaf(0, dtypes_.given, p.out.shape);
    const expr::Expr out = cast(raw, p.out.dtype);
    cast_out_ = expr::prepare(expr::compile({&out, 1}), context);
    out_bytes_ = align(static_cast<std::size_t>(count_of(p.out.shape)) * size_of(dtypes_.given));
  }
  for (const auto* body : {&x_.make, &other_.make, &cast_out_}) {
    if (*body != nullptr) cast_bytes_ = std::max(cast_bytes_, align((*body)->scratch_bytes()));
  }
}

ProductBody::Operand ProductBody::operand(std::size_t i, const Problem& problem,
                                          const Context& context) const {
  const expr::Expr wanted = operand_of(product_, problem, i, dtypes_.taken);
  Operand operand{.shape = problem.inputs[i].shape, .source = 0, .make = nullptr};
  if (is_dense_leaf(wanted) && wanted.node()->source >= 0) {
    operand.source = wanted.node()->source;
  } else {
    operand.make = expr::prepare(expr::compile({&wanted, 1}), context);
    operand.bytes =
        align(static_cast<std::size_t>(count_of(operand.shape)) * size_of(dtypes_.taken));
  }
  return operand;
}

std::size_t ProductBody::scratch_bytes() const {
  if (product_.empty() || product_.k == 0) return 0;
  return x_.bytes + other_.bytes + out_bytes_ + cast_bytes_ + work_bytes();
}

void ProductBody::run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
                      const Launch& launch) {
  const ArrayView& out = outputs[0];
  if (product_.empty()) return;
  if (product_.k == 0) {
    // On the CPU this is a task of the stream already: the fill must not come after it.
    if (out.device.is_cuda())
      fill_bytes(out, 0, launch.stream);
    else
      std::memset(out.data, 0, out.bytes());
    return;
  }
  auto* scratch = static_cast<char*>(launch.scratch);
  const auto take = [&scratch](std::size_t bytes) {
    void* const taken = scratch;
    scratch += bytes;
    return taken;
  };
  const Launch inner{.stream = launch.stream, .scratch = take(cast_bytes_), .batch = launch.batch};
  const auto made = [&](const Operand& operand) -> const void* {
    if (operand.make == nullptr) return inputs[static_cast<std::size_t>(operand.source)].data;
    const ArrayView target{take(operand.bytes), dtypes_.taken, out.device, operand.shape,
                           dense_strides(operand.shape)};
    operand.make->run(inputs, {&target, 1}, inner);
    return target.data;
  };
  const void* const x = made(x_);
  const void* const other = has_constant_ ? constant_.data() : made(other_);
  const ArrayView raw{cast_out_ == nullptr ? out.data : take(out_bytes_), dtypes_.given, out.device,
                      out.shape, out.strides};
  multiply(x, other, raw.data, scratch, launch);
  if (cast_out_ != nullptr) cast_out_->run({&raw, 1}, outputs, inner);
}

}  // namespace forebay
