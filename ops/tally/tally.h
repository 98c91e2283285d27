#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <forebay/ops/eager.h>
#include <forebay/ops/slices.h>

namespace forebay {

/// Settings of tally.
struct Tally {
  std::optional<std::int64_t> bits = {};
  std::optional<std::vector<std::int64_t>> axes = {};
  Layout layout = Layout::none;
  bool per_sample = false;

  void fields(FieldVisitor& visitor);
};

struct TallyResult {
  Array table;     ///< i64, shape of the kept axes, then (bins, words)
  Array extremes;  ///< u64, shape of the kept axes, then (2,)
};

/// Sorts the values of x into bins by their leading bits and adds up, exactly and in integers, what
/// it takes to know their sum, the sum of their squares and their distribution: what `forebay fit`
/// makes its statistics of. Sums of tables, in any order, are the table of all values together.
///
/// A bin is all values that agree in sign, exponent and the next `bits` bits (default: 7 for
/// floats, 10 for integers). Values of 8 and 16 bits have a bin each; so have integers below
/// 2^(bits + 1). f64 outside the exponents of f32 has one bin an exponent. NaN has the last bin of
/// f32 and f64. With the bits of a value behind those of its bin, read as the integer `low`:
///
///     table[.., bin, 0]         = count of the values in the bin
///     table[.., bin, 1 + i]     = sum of digit i of low,    in base 2^32, least first
///     table[.., bin, 1 + L + i] = sum of digit i of low^2,  with L digits of low
///
///     extremes[.., 0] = max of order(v),   extremes[.., 1] = max of ~order(v),   v finite; 0 without
///
/// where order(v) is v's bit pattern as an integer that ascends with v. TallyBins (bins.h) says
/// what a bin stands for. One table for each index of the axes that are not counted over: `axes`,
/// `layout` and `per_sample` say which, as in histogram.
///
/// Dtypes:  x bool, integers, f16, bf16, f32, f64.
/// Devices: cpu, cuda: the same bits. Enqueues and returns.
/// Errors:  unsupported for complex x; invalid for 2^31 and more values a table (their sums would
///          not be certain to fit), for a rank above 8 with the two axes of the table.
/// Source:  Kulisch's exact accumulator, cut by exponent; HDR histograms for the bins of integers.
TallyResult tally(const Array& x, const Tally& settings, const Context& context);

namespace tally_detail {

AxisSet counted_axes(const Tally& settings, const Dims& shape);

}  // namespace tally_detail

}  // namespace forebay
