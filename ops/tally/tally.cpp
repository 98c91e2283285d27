#include <forebay/ops/tally/tally.h>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>
#include <forebay/ops/tally/bins.h>

namespace forebay {

void Tally::fields(FieldVisitor& v) {
  v.on({.name = "bits",
        .doc = "Bits behind the first that tell bins apart; 7 for floats, 10 for integers. A bin "
               "of f32 is 2^-bits of its values wide.",
        .min = 0,
        .max = static_cast<double>(TallyBins::kMostBits)},
       bits);
  v.on({.name = "axes",
        .doc = "Axes that are counted over, as NumPy counts them; the others each have a table.",
        .alias = "axis"},
       axes);
  v.on({.name = "layout", .doc = "What the axes mean; one table per channel."}, layout);
  v.on({.name = "per_sample", .doc = "One table for each index of axis 0."}, per_sample);
}

namespace {

std::vector<ArraySpec> infer(const Tally& settings, std::span<const ArraySpec> inputs) {
  const ArraySpec& x = inputs[0];
  check_dtype("tally", "x", x.dtype, kReals);
  const AxisSet counted = tally_detail::counted_axes(settings, x.shape);
  const Dims kept = kept_shape(x.shape, counted);
  FOREBAY_REQUIRE(
      kept.rank + 2 <= kMaxRank, invalid,
      "tally: one table for each of {} axes of `x` with shape {} gives rank {}; the most is {}.",
      kept.rank, to_string(x.shape), kept.rank + 2, kMaxRank);
  const std::int64_t length = slices_of(x.shape, counted).length();
  FOREBAY_REQUIRE(length < std::int64_t{1} << 31, invalid,
                  "tally: `x` with shape {} has {} values a table; the most is {}. Tally fewer "
                  "samples at once.",
                  to_string(x.shape), length, (std::int64_t{1} << 31) - 1);
  const TallyBins bins(x.dtype, settings.bits);
  Dims table = kept, extremes = kept;
  table.push_back(bins.count());
  table.push_back(bins.words());
  extremes.push_back(2);
  return {{Dtype::i64, table}, {Dtype::u64, extremes}};
}

Fusion fuses(const void*, const Problem&, DeviceKind) { return {.prologue = true}; }

bool mixes_samples(const void* raw, std::span<const ArraySpec> inputs) {
  return has_axis(tally_detail::counted_axes(*static_cast<const Tally*>(raw), inputs[0].shape), 0);
}

}  // namespace

TallyResult tally(const Array& x, const Tally& settings, const Context& context) {
  std::vector<Array> results = run_op(Op::with(find_op("tally"), settings), {x}, context);
  return {std::move(results[0]), std::move(results[1])};
}

OpDef tally_def() {
  OpDef def = define_op<Tally, infer>({
      .name = "tally",
      .summary = "Counts and exact sums of values by their leading bits, which statistics of whole "
                 "datasets are made of.",
      .example = "{op: tally, bits: 4}",
      .outputs = {"table", "extremes"},
  });
  def.fuses = fuses;
  def.mixes_samples = mixes_samples;
  return def;
}

namespace tally_detail {

AxisSet counted_axes(const Tally& settings, const Dims& shape) {
  return reduced_axes("tally", settings.axes, settings.layout, settings.per_sample, shape);
}

}  // namespace tally_detail

namespace {

bool has_own_bins(Dtype dtype) { return size_of(dtype) <= 2; }

int magnitude_bits(Dtype dtype) { return static_cast<int>(8 * size_of(dtype)); }

}  // namespace

TallyBins::TallyBins(Dtype dtype, std::optional<std::int64_t> bits)
    : dtype_(dtype),
      bits_(has_own_bins(dtype) ? 0 : static_cast<int>(bits.value_or(is_float(dtype) ? 7 : 10))) {
  using namespace tally_detail;  // NOLINT(google-build-using-namespace): how values find their bins
  if (dtype == Dtype::boolean) {
    count_ = 2;
  } else if (has_own_bins(dtype)) {
    count_ = std::int64_t{1} << (8 * size_of(dtype));
  } else if (dtype == Dtype::f32) {
    count_ = (std::int64_t{512} << bits_) + 1;
    low_bits_ = 23 - bits_;
  } else if (dtype == Dtype::f64) {
    count_ = 2 * (kF64Exponents + (std::int64_t{kExponents} << bits_)) + 1;
    low_bits_ = 52;
  } else {
    count_ = magnitude_bins(magnitude_bits(dtype), bits_) * (is_signed(dtype) ? 2 : 1);
    low_bits_ = magnitude_bits(dtype) - bits_ - 1;
  }
}

/// The bin of the bit pattern alone.
TallyBins::Bin TallyBins::float_bin(std::uint64_t pattern, int exponent_bits,
                                    int fraction_bits) const {
  const std::uint64_t most = (std::uint64_t{1} << exponent_bits) - 1;
  const std::uint64_t exponent = pattern >> fraction_bits & most;
  const std::uint64_t fraction = pattern & ((std::uint64_t{1} << fraction_bits) - 1);
  Bin bin;
  bin.negative = (pattern >> (exponent_bits + fraction_bits) & 1) != 0;
  if (exponent == most) {
    bin.kind = fraction == 0 ? Bin::Kind::infinite : Bin::Kind::nan;
    return bin;
  }
  bin.base = exponent == 0 ? fraction : fraction | std::uint64_t{1} << fraction_bits;
  bin.exponent =
      static_cast<int>(exponent == 0 ? 1 : exponent) - static_cast<int>(most / 2) - fraction_bits;
  return bin;
}

TallyBins::Bin TallyBins::wide_integer_bin(std::int64_t bin) const {
  const std::int64_t half = tally_detail::magnitude_bins(magnitude_bits(dtype_), bits_);
  Bin result;
  result.negative = bin >= half;
  const auto magnitude = static_cast<std::uint64_t>(bin % half);
  const auto octave = magnitude >> bits_;
  result.base = magnitude;
  if (octave >= 2) {
    const auto low_bits = static_cast<int>(octave - 1);
    result.base = (magnitude - (static_cast<std::uint64_t>(low_bits) << bits_)) << low_bits;
    result.width = std::uint64_t{1} << low_bits;
  }
  return result;
}

TallyBins::Bin TallyBins::at(std::int64_t bin) const {
  using namespace tally_detail;  // NOLINT(google-build-using-namespace): how values find their bins
  const auto number = static_cast<std::uint64_t>(bin);
  if (dtype_ == Dtype::f16) return float_bin(number, 5, 10);
  if (dtype_ == Dtype::bf16) return float_bin(number, 8, 7);
  Bin result;
  if (dtype_ == Dtype::f32 || dtype_ == Dtype::f64) {
    if (bin == count_ - 1) {
      result.kind = Bin::Kind::nan;
      return result;
    }
    if (dtype_ == Dtype::f32) {
      result = float_bin(number << low_bits_, 8, 23);
      result.width = std::uint64_t{1} << low_bits_;
      return result;
    }
    const std::uint64_t half = static_cast<std::uint64_t>(count_) / 2;
    const std::uint64_t sign = number >= half ? std::uint64_t{1} << 63 : 0, place = number % half;
    if (place < kF64Exponents) {
      result = float_bin(sign | place << 52, 11, 52);
      result.width = place - kFirstExponent < kExponents ? 0 : std::uint64_t{1} << 52;
    } else {
      const std::uint64_t leading =
          (std::uint64_t{kFirstExponent} << bits_) + place - kF64Exponents;
      result = float_bin(sign | leading << (52 - bits_), 11, 52);
      result.width = std::uint64_t{1} << (52 - bits_);
    }
    return result;
  }
  if (!has_own_bins(dtype_)) return wide_integer_bin(bin);
  const std::int64_t value = dtype_ == Dtype::i8    ? static_cast<std::int8_t>(bin)
                             : dtype_ == Dtype::i16 ? static_cast<std::int16_t>(bin)
                                                    : bin;
  result.negative = value < 0;
  result.base = static_cast<std::uint64_t>(value < 0 ? -value : value);
  return result;
}

double TallyBins::value_of_order(std::uint64_t order) const {
  const auto size = static_cast<int>(size_of(dtype_));
  const std::uint64_t top = std::uint64_t{1} << (8 * size - 1);
  if (dtype_ == Dtype::boolean || is_unsigned(dtype_)) return static_cast<double>(order);
  if (is_signed(dtype_)) {
    // Of any size: the top bit moved to where an i64 has it.
    return static_cast<double>(static_cast<std::int64_t>(order - top));
  }
  const std::uint64_t pattern = (order & top) != 0 ? order ^ top : ~order & ((top - 1) | top);
  double value = 0;
  if (dtype_ == Dtype::f64) {
    value = std::bit_cast<double>(pattern);
  } else if (dtype_ == Dtype::f32) {
    value = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
  } else if (dtype_ == Dtype::f16) {
    value = static_cast<float>(std::bit_cast<Half>(static_cast<std::uint16_t>(pattern)));
  } else {
    value = static_cast<float>(std::bit_cast<BFloat16>(static_cast<std::uint16_t>(pattern)));
  }
  return value + 0.0;  // -0 becomes 0
}

}  // namespace forebay
