#include <forebay/ops/fft/transform.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>
#include <forebay/ops/fft/rows.h>

namespace forebay {

std::span<const std::string_view> names_of(FftNorm) {
  static constexpr std::array<std::string_view, 3> kNames = {"backward", "ortho", "forward"};
  return kNames;
}

namespace dft {
namespace {

constexpr const char* kNames[] = {"fft", "ifft", "rfft", "irfft"};

/// f64 where f32 cannot hold every value of `in`, as NumPy promotes; f32 for the rest, f16 and bf16
/// included.
Dtype real_type(Dtype in) {
  switch (in) {
    case Dtype::u32:
    case Dtype::i32:
    case Dtype::u64:
    case Dtype::i64:
    case Dtype::f64:
    case Dtype::c128:
      return Dtype::f64;
    default:
      return Dtype::f32;
  }
}

double scale_of(FftNorm norm, bool inverse, std::int64_t points) {
  const auto n = static_cast<double>(points);
  if (norm == FftNorm::ortho) return 1 / std::sqrt(n);
  return (norm == FftNorm::forward) != inverse ? 1 / n : 1;
}

}  // namespace

Transform resolve(Kind kind, const std::optional<std::int64_t>& n, std::int64_t axis, FftNorm norm,
                  const ArraySpec& x) {
  Transform t;
  t.name = kNames[static_cast<int>(kind)];
  const int rank = x.shape.rank;
  check_dtype(t.name, "x", x.dtype, kind == Kind::rfft ? kReals : kEvery);
  const int at = checked_axis(t.name, "axis", axis, x.shape);
  t.extent = x.shape[at];
  t.points = n.value_or(kind == Kind::irfft ? 2 * (t.extent - 1) : t.extent);
  FOREBAY_REQUIRE(t.points >= 1, invalid, "{}: `n` is {}{}; it must be at least 1.{}", t.name,
                  t.points,
                  n ? ""
                    : fmt::format(" by default, since axis {} of `x` with shape {} has extent {}",
                                  axis, to_string(x.shape), t.extent),
                  n ? "" : " Give `n`.");

  t.inverse = kind == Kind::ifft || kind == Kind::irfft;
  t.engine = kind == Kind::irfft ? Engine::c2r : is_complex(x.dtype) ? Engine::c2c : Engine::r2c;
  t.mirror = t.engine == Engine::r2c && kind != Kind::rfft;
  t.scale = scale_of(norm, t.inverse, t.points);
  t.in = x.dtype;
  t.real = real_type(x.dtype);
  t.extent_out = kind == Kind::rfft ? t.half() : t.points;
  t.out = {t.engine == Engine::c2r ? t.real : complex_of(t.real), x.shape};
  t.out.shape[at] = t.extent_out;
  for (int i = 0; i < at; ++i)
    t.outer *= x.shape[i];
  for (int i = at + 1; i < rank; ++i)
    t.inner *= x.shape[i];

  std::int64_t bytes = 0;
  FOREBAY_REQUIRE(
      t.points <= std::numeric_limits<std::int64_t>::max() / 64 &&
          !__builtin_mul_overflow(t.points * 64, std::max<std::int64_t>(t.rows(), 1), &bytes),
      invalid,
      "{}: `n` is {}, which makes a result of shape {}: more bytes than there are addresses.",
      t.name, t.points, to_string(t.out.shape));
  return t;
}

Fusion fuses(const Transform& transform, DeviceKind device) {
  const bool all = device == DeviceKind::cpu ? transform.inner == 1 : rows_fit(transform);
  return {.prologue = all, .epilogue = all};
}

void visit(FieldVisitor& visitor, std::string_view n_doc, std::optional<std::int64_t>& n,
           std::int64_t& axis, FftNorm& norm) {
  visitor.on({.name = "n", .doc = n_doc, .min = 1}, n);
  visitor.on({.name = "axis",
              .doc = "Axis of the batch array to transform; negative ones count from the last.",
              .alias = "dim"},
             axis);
  visitor.on({.name = "norm",
              .doc = "Where the factor 1/n goes: backward puts it on the inverse transform, "
                     "forward on the forward one, "
                     "ortho puts 1/sqrt(n) on both."},
             norm);
}

}  // namespace dft
}  // namespace forebay
