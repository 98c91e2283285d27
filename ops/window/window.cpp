#include <forebay/ops/window/window.h>

#include <array>
#include <cmath>
#include <numbers>

#include <forebay/ops/checks.h>

namespace forebay {
namespace {

constexpr std::array<std::string_view, 9> kKinds = {"boxcar",         "bartlett", "hann",
                                                    "hamming",        "blackman", "nuttall",
                                                    "blackmanharris", "flattop",  "kaiser"};

/// a[0] - a[1] cos(t) + a[2] cos(2t) - ..; empty for the kinds that are no sum of cosines.
std::vector<double> cosine_terms(WindowKind kind) {
  switch (kind) {
    case WindowKind::hann:
      return {0.5, 0.5};
    case WindowKind::hamming:
      return {0.54, 0.46};
    case WindowKind::blackman:
      return {0.42, 0.5, 0.08};
    case WindowKind::nuttall:
      return {0.3635819, 0.4891775, 0.1365995, 0.0106411};
    case WindowKind::blackmanharris:
      return {0.35875, 0.48829, 0.14128, 0.01168};
    case WindowKind::flattop:
      return {0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368};
    default:
      return {};
  }
}

}  // namespace

std::span<const std::string_view> names_of(WindowKind) { return kKinds; }

void Window::fields(FieldVisitor& visitor) {
  visitor.on({.name = "kind", .doc = "The window function.", .alias = "window"}, kind);
  visitor.on({.name = "periodic",
              .doc = "One period of the window, as spectra want it; false makes it symmetric.",
              .alias = "fftbins"},
             periodic);
  visitor.on(
      {.name = "beta", .doc = "The shape of kaiser; others have none.", .min = 0, .max = 700},
      beta);
  visitor.on({.name = "axis",
              .doc = "The axis that is multiplied.",
              .min = -kMaxRank,
              .max = kMaxRank - 1},
             axis);
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
}

std::vector<double> window_values(const Window& settings, std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n), 1);
  if (n == 1 || settings.kind == WindowKind::boxcar) return values;
  const double period = static_cast<double>(settings.periodic ? n : n - 1);
  const std::vector<double> terms = cosine_terms(settings.kind);
  for (std::int64_t i = 0; i < n; ++i) {
    const double from_centre = (2 * static_cast<double>(i) - period) / period;  // -1 .. 1
    double value = 0;
    if (settings.kind == WindowKind::bartlett) {
      value = 1 - std::abs(from_centre);
    } else if (settings.kind == WindowKind::kaiser) {
      const double root = std::sqrt((1 - from_centre) * (1 + from_centre));
      value = std::cyl_bessel_i(0, settings.beta * root) / std::cyl_bessel_i(0, settings.beta);
    }
    for (std::size_t k = 0; k < terms.size(); ++k)  // around the centre every cosine has a plus
      value += terms[k] * std::cos(static_cast<double>(k) * std::numbers::pi * from_centre);
    values[static_cast<std::size_t>(i)] = value;
  }
  return values;
}

namespace {

std::vector<ArraySpec> infer(const Window& settings, std::span<const ArraySpec> inputs) {
  check_dtype("window", "x", inputs[0].dtype, kReals);
  axis_of("window", settings.axis, inputs[0].shape);
  return {{float_result("window", inputs[0].dtype, settings.dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Window& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("window", x.dtype(), settings.dtype);
  const Dtype work = work_type(x.dtype(), result);
  const int axis = axis_of("window", settings.axis, x.shape());
  Dims shape = x.shape();
  for (int i = 0; i < shape.rank; ++i) {
    if (i != axis) shape[i] = 1;
  }
  const std::vector<double> values = window_values(settings, shape[axis]);
  const expr::Expr table = expr::Expr::array(
      work == Dtype::f32 ? Array::from(shape, std::vector<float>(values.begin(), values.end()))
                         : Array::from(shape, values));
  return {cast(cast(x, work) * table, result)};
}

}  // namespace

OpDef window_def() {
  return define_op<Window, infer, lower>({
      .name = "window",
      .summary = "Multiplies an axis by a window function.",
      .example = "{op: window, kind: hann}",
  });
}

Array window(const Array& x, const Window& settings, const Context& context) {
  return run_single("window", settings, {x}, context);
}

}  // namespace forebay
