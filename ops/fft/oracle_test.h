#pragma once

// What the tests of fft, ifft, rfft and irfft share: the definition of the transforms, summed
// directly in long double.

#include "kit/kit.h"

#include <cmath>
#include <numbers>
#include <optional>

#include <forebay/array/require.h>
#include <forebay/ops/fft/transform.h>

namespace forebay::oracle {

using Complex = std::complex<double>;
using dft::Kind;

struct Request {
  std::optional<std::int64_t> n = {};
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
};

/// The row's transform before scaling: sum of row[j] exp(sign 2 pi i j k / n), for `count` values
/// of k.
inline std::vector<std::complex<long double>> sum_row(const std::vector<Complex>& row, int sign,
                                                      std::int64_t count) {
  const auto n = static_cast<std::int64_t>(row.size());
  std::vector<std::complex<long double>> roots(row.size()), result(static_cast<std::size_t>(count));
  for (std::int64_t j = 0; j < n; ++j) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) /
                              static_cast<long double>(n);
    roots[static_cast<std::size_t>(j)] = {std::cos(angle),
                                          static_cast<long double>(sign) * std::sin(angle)};
  }
  for (std::int64_t k = 0; k < count; ++k) {
    long double re = 0, im = 0;
    std::int64_t turn = 0;
    for (const Complex& value : row) {
      const auto& root = roots[static_cast<std::size_t>(turn)];
      re += value.real() * root.real() - value.imag() * root.imag();
      im += value.real() * root.imag() + value.imag() * root.real();
      turn += k;
      if (turn >= n) turn -= n;
    }
    result[static_cast<std::size_t>(k)] = {re, im};
  }
  return result;
}

/// NumPy's definition, for a dense host array.
inline std::vector<Complex> transform(Kind kind, const Array& x, const Request& request) {
  const int axis = static_cast<int>(request.axis < 0 ? request.axis + x.rank() : request.axis);
  const std::int64_t extent = x.shape()[axis];
  const std::int64_t n = request.n.value_or(kind == Kind::irfft ? 2 * (extent - 1) : extent);
  const std::int64_t extent_out = kind == Kind::rfft ? n / 2 + 1 : n;
  std::int64_t inner = 1;
  for (int i = axis + 1; i < x.rank(); ++i)
    inner *= x.shape()[i];
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i)
    outer *= x.shape()[i];
  const bool inverse = kind == Kind::ifft || kind == Kind::irfft;
  const long double scale =
      request.norm == FftNorm::ortho                  ? 1 / std::sqrt(static_cast<long double>(n))
      : (request.norm == FftNorm::forward) != inverse ? 1 / static_cast<long double>(n)
                                                      : 1;
  const auto values = kit::complex_values(x);
  std::vector<Complex> result(static_cast<std::size_t>(outer * extent_out * inner));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::vector<Complex> row(static_cast<std::size_t>(n));
      const auto at = [&](std::int64_t k) {
        return k < extent ? values[static_cast<std::size_t>((o * extent + k) * inner + i)]
                          : Complex{};
      };
      for (std::int64_t k = 0; k < n; ++k) {
        Complex& value = row[static_cast<std::size_t>(k)];
        if (kind != Kind::irfft)
          value = at(k);
        else if (k == 0 || 2 * k == n)
          value = at(k).real();
        else
          value = 2 * k < n ? at(k) : std::conj(at(n - k));
      }
      const auto sums = sum_row(row, inverse ? 1 : -1, extent_out);
      for (std::int64_t k = 0; k < extent_out; ++k) {
        const auto value = sums[static_cast<std::size_t>(k)] * scale;
        result[static_cast<std::size_t>((o * extent_out + k) * inner + i)] = {
            static_cast<double>(value.real()), static_cast<double>(value.imag())};
      }
    }
  }
  return result;
}

/// The bound of the tests: the error, as a root of summed squares, is at most 4 roundings of f32
/// (f64) for each factor of two in the length, relative to the result.
inline testing::AssertionResult close(const Array& host, const std::vector<Complex>& want,
                                      std::int64_t n) {
  if (host.count() != static_cast<std::int64_t>(want.size())) {
    return testing::AssertionFailure()
           << "has " << host.count() << " elements, not " << want.size();
  }
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::norm(kit::complex_value(host.view(), static_cast<std::int64_t>(i)) - want[i]);
    size += std::norm(want[i]);
  }
  const double bound =
      4 * kit::epsilon(real_of(host.dtype())) * std::max(std::log2(static_cast<double>(n)), 1.0);
  const double relative = std::sqrt(error) / (size > 0 ? std::sqrt(size) : 1);
  if (relative <= bound) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << name_of(host.dtype()) << " " << to_string(host.shape()) << ", n = " << n
         << ": relative error " << relative << " above " << bound;
}

/// Runs `op` (fft, ifft, ...) on `x`, moved to the device with its strides; a dense host copy of
/// the result. Also checks that the op has left its input alone.
template <class S>
Array run(Array (*op)(const Array&, const S&, const Context&), const Array& x, const S& settings,
          const Context& context) {
  const Array input = kit::to_device(x, context);
  const Array before = kit::to_host(input, context);
  const Array result = kit::to_host(op(input, settings, context), context);
  EXPECT_TRUE(kit::same_bits(kit::to_host(input, context), before)) << "the input was written to";
  return result;
}

/// Runs `op` and compares with the definition.
template <class S>
void check(Kind kind, Array (*op)(const Array&, const S&, const Context&), const Array& x,
           const Request& request, const Context& context) {
  const Array got =
      run(op, x, S{.n = request.n, .axis = request.axis, .norm = request.norm}, context);
  const auto at = request.axis < 0 ? request.axis + x.rank() : request.axis;
  const std::int64_t extent = x.shape()[static_cast<int>(at)];
  const std::int64_t n = request.n.value_or(kind == Kind::irfft ? 2 * (extent - 1) : extent);
  EXPECT_TRUE(close(got, transform(kind, kit::to_host(x, kit::context(Device::cpu())), request), n))
      << name_of(x.dtype()) << " " << to_string(x.shape()) << " axis " << request.axis << " norm "
      << names_of(request.norm)[static_cast<std::size_t>(request.norm)];
}

inline constexpr std::int64_t kLengths[] = {1,  2,  3,   4,   5,   7,   8,    16,
                                            30, 31, 100, 127, 128, 400, 1000, 1024};
inline constexpr FftNorm kNorms[] = {FftNorm::backward, FftNorm::ortho, FftNorm::forward};

/// Lengths of every kind, in rows and with other axes around; every norm; cropped and padded; every
/// layout; empty.
template <class S>
void check_family(Kind kind, Array (*op)(const Array&, const S&, const Context&), Dtype dtype,
                  const Context& context) {
  for (const std::int64_t n : kLengths) {
    const std::int64_t extent = kind == Kind::irfft ? n / 2 + 1 : n;
    for (const FftNorm norm : kNorms)
      check(kind, op, kit::random({3, extent}, dtype, 1), {.n = n, .norm = norm}, context);
  }
  const std::int64_t prime = 2053;  // the oracle takes the square of it
  check(kind, op, kit::random({1, kind == Kind::irfft ? prime / 2 + 1 : prime}, dtype, 2),
        {.n = prime}, context);

  const Array cube = kit::random({5, 6, 7}, dtype, 3);
  for (const std::int64_t axis : {0, 1, 2, -1, -2, -3}) {
    for (const std::int64_t n : {1, 2, 5, 6, 9, 16}) {
      for (const FftNorm norm : kNorms)
        check(kind, op, cube, {.n = n, .axis = axis, .norm = norm}, context);
    }
    check(kind, op, cube, {.axis = axis}, context);
    for (const kit::Layout layout : kit::layouts()) {
      check(kind, op, kit::with_layout(cube, layout), {.axis = axis}, context);
    }
  }
  for (const kit::Layout layout : kit::layouts()) {
    check(kind, op, kit::with_layout(kit::random({31}, dtype, 4), layout), {}, context);
    check(kind, op, kit::with_layout(kit::random({4, 31}, dtype, 5), layout), {.n = 12}, context);
  }
  // More rows than fit a block, along and across memory.
  check(kind, op, kit::random({3000, 30}, dtype, 6), {}, context);
  check(kind, op, kit::random({2, 30, 3000}, dtype, 7), {.axis = 1, .norm = FftNorm::ortho},
        context);
  check(kind, op, kit::random({30, 2500}, dtype, 8), {.axis = 0}, context);
  // Nothing to transform, and nothing to read.
  check(kind, op, kit::random({0, 8}, dtype, 9), {}, context);
  check(kind, op, kit::random({3, 8, 0}, dtype, 9), {.axis = 1}, context);
  check(kind, op, kit::random({3, 0, 2}, dtype, 9), {.n = 6, .axis = 1}, context);
}

/// The dtype of the result for each dtype of x; values against the definition.
template <class S>
void check_dtypes(Kind kind, Array (*op)(const Array&, const S&, const Context&),
                  const Context& context) {
  for (const Dtype dtype : kAllDtypes) {
    if (kind == Kind::rfft && is_complex(dtype)) continue;
    const bool wide =
        dtype == Dtype::f64 || dtype == Dtype::c128 || (is_integer(dtype) && size_of(dtype) >= 4);
    const Dtype complex = wide ? Dtype::c128 : Dtype::c64;
    const Array x =
        kit::random({4, 10}, dtype, 10, is_integer(dtype) ? 0 : -4, is_integer(dtype) ? 100 : 4);
    const Array got = run(op, x, S{}, context);
    EXPECT_EQ(got.dtype(), kind == Kind::irfft ? real_of(complex) : complex) << name_of(dtype);
    check(kind, op, x, {}, context);
    check(kind, op, x, {.n = 13, .norm = FftNorm::forward}, context);
    check(kind, op, x, {.axis = 0, .norm = FftNorm::ortho}, context);
  }
}

/// The errors that the four ops share; `name` is the op's.
template <class S>
void check_errors(const std::string& name, Array (*op)(const Array&, const S&, const Context&)) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({2, 3}, Dtype::f32, 1);
  EXPECT_ERROR(
      op(kit::random({}, Dtype::f32, 1), {}, context), invalid,
      name +
          ": `axis` names axis -1, but `x` is a scalar, shape (); it must have at least one axis.");
  EXPECT_ERROR(op(x, {.axis = 2}, context), invalid,
               name + ": `axis` names axis 2, but `x` has shape (2, 3); its axes are -2 to 1.");
  EXPECT_ERROR(op(x, {.axis = -3}, context), invalid,
               name + ": `axis` names axis -3, but `x` has shape (2, 3); its axes are -2 to 1.");
  EXPECT_ERROR(op(x, {.n = 0}, context), invalid, name + ": `n` is 0; it must be at least 1.");
  EXPECT_ERROR(
      op(x, {.n = std::int64_t{1} << 60}, context), invalid,
      fmt::format("{}: `n` is 1152921504606846976, which makes a result of shape (2, {}): more "
                  "bytes than there are "
                  "addresses.",
                  name, name == "rfft" ? (std::int64_t{1} << 59) + 1 : std::int64_t{1} << 60));
}

}  // namespace forebay::oracle
