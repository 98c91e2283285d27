#include <forebay/ops/normalize/normalize_loops.h>

#include <cstring>

#ifndef FOREBAY_CPU_LEVEL
#define FOREBAY_CPU_LEVEL base
#endif

#include <forebay/ops/expr/divide.h>

namespace forebay::normalize_detail::FOREBAY_CPU_LEVEL {
namespace {

// 32 sums run side by side, in as many registers as this level needs for them: with fewer the
// latency of an addition would be the speed.
constexpr int kLanes = 32;
#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kVector = kBytes / 8, kVectors = kLanes / kVector;
typedef double Doubles __attribute__((vector_size(kBytes)));

// By reference: vectors as parameters have another calling convention at each level. Element by
// element: of __builtin_convertvector GCC makes five instructions instead of one.
inline void read(const float* x, Doubles& to) {
  for (int i = 0; i < kVector; ++i)
    to[i] = x[i];
}
inline void read(const double* x, Doubles& to) { std::memcpy(&to, x, sizeof(to)); }

/// The sum of value(x[i]) over n elements that lie dense. `value` takes a vector or a double.
template <class W, class Value>
double dense_sum(const W* x, std::int64_t n, const Value& value) {
  Doubles running[kVectors] = {};
  const W* const end = x + n / kLanes * kLanes;
  for (; x != end; x += kLanes) {
    for (int k = 0; k < kVectors; ++k) {
      Doubles element;
      read(x + k * kVector, element);
      value(element);
      running[k] += element;
    }
  }
  if (const std::int64_t rest = n % kLanes; rest != 0) {
    double last[kLanes] = {};
    for (std::int64_t i = 0; i < rest; ++i) {
      last[i] = x[i];
      value(last[i]);
    }
    for (int k = 0; k < kVectors; ++k) {
      Doubles element;
      read(last + k * kVector, element);
      running[k] += element;
    }
  }
  for (int step = kVectors / 2; step > 0; step /= 2) {
    for (int k = 0; k < step; ++k)
      running[k] += running[k + step];
  }
  double lane[kVector];
  std::memcpy(lane, running, sizeof(lane));
  for (int step = kVector / 2; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i)
      lane[i] += lane[i + step];
  }
  return lane[0];
}

template <class W>
double sum_of(const W* x, std::int64_t n) {
  return dense_sum(x, n, [](auto&) {});
}
template <class W>
double squares_of(const W* x, std::int64_t n, double mean) {
  return dense_sum(x, n, [mean](auto& element) {
    element -= mean;
    element *= element;
  });
}

template <class W>
void moments(const W* x, std::int64_t rows, std::int64_t length, const double* given, bool squares,
             Moments* moments) {
  for (std::int64_t row = 0; row < rows; ++row, x += length) {
    const double mean =
        given != nullptr ? given[row] : sum_of(x, length) / static_cast<double>(length);
    moments[row] = {mean, squares ? squares_of(x, length, mean) : 0};
  }
}

template <class W>
void scaled(const W* __restrict x, std::int64_t rows, std::int64_t length,
            const Factors<W>* factors, W* __restrict out, const W* next) {
  constexpr std::int64_t kLine = 64 / sizeof(W), kChunk = 16 * kLine;
  for (std::int64_t row = 0; row < rows; ++row, x += length, out += length) {
    const auto [high, low, divisor] = factors[row];
    const expr::FOREBAY_CPU_LEVEL::Divisor<W> by(divisor);
    const bool is_usable = by.is_usable();
    for (std::int64_t first = 0; first < length; first += kChunk) {
      const std::int64_t n = first + kChunk < length ? kChunk : length - first;
      for (std::int64_t i = 0; next != nullptr && i < n; i += kLine)
        __builtin_prefetch(next + row * length + first + i, 0, 2);
      const W* __restrict from = x + first;
      W* __restrict to = out + first;
      const auto distance = [=](std::int64_t i) { return (from[i] - high) - low; };
      if (is_usable && by.divide(distance, to, n)) continue;
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = distance(i) / divisor;
    }
  }
}

/// Adds the sums of value(x, lane) by column.
template <class W, class Value>
void add_columns(const W* __restrict x, std::int64_t rows, std::int64_t columns,
                 double* __restrict sums, const Value& value) {
  const std::int64_t lanes = lanes_of(columns), count = rows * columns;
  double running[kMostColumns];
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    running[lane] = 0;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      running[lane] += value(x[i + lane], lane);
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane)
    running[lane] += value(x[i + lane], lane);
  for (std::int64_t first = 0; first < lanes; first += columns) {
    for (std::int64_t c = 0; c < columns; ++c)
      sums[c] += running[first + c];
  }
}

template <class W>
void column_sums(const W* x, std::int64_t rows, std::int64_t columns, double* sums) {
  if (columns == 1) {
    sums[0] += sum_of(x, rows);
    return;
  }
  add_columns(x, rows, columns, sums, [](W element, std::int64_t) -> double { return element; });
}

template <class W>
void column_squares(const W* x, std::int64_t rows, std::int64_t columns,
                    const ByLane<double>& means, double* sums) {
  if (columns == 1) {
    sums[0] += squares_of(x, rows, means[0]);
    return;
  }
  const double* __restrict mean = means.data();
  add_columns(x, rows, columns, sums, [mean](W element, std::int64_t lane) {
    const double distance = element - mean[lane];
    return distance * distance;
  });
}

template <class W>
void column_scaled(const W* __restrict x, std::int64_t rows, std::int64_t columns,
                   const LaneFactors<W>& factors, W* __restrict out) {
  if (columns == 1) {
    const Factors<W> one{factors.high[0], factors.low[0], factors.divisor[0]};
    return scaled(x, 1, rows, &one, out, static_cast<const W*>(nullptr));
  }
  const W* __restrict high = factors.high.data();
  const W* __restrict low = factors.low.data();
  const W* __restrict divisor = factors.divisor.data();
  const std::int64_t lanes = lanes_of(columns), count = rows * columns;
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t end = lanes < count - i ? lanes : count - i;
    for (std::int64_t lane = 0; lane < end; ++lane)
      out[i + lane] = ((x[i + lane] - high[lane]) - low[lane]) / divisor[lane];
  }
}

template <class W>
constexpr Loops<W> kLoops{moments<W>, scaled<W>, column_sums<W>, column_squares<W>,
                          column_scaled<W>};

}  // namespace

extern const Loops<float> kNarrowLoops;
extern const Loops<double> kWideLoops;
const Loops<float> kNarrowLoops = kLoops<float>;
const Loops<double> kWideLoops = kLoops<double>;

}  // namespace forebay::normalize_detail::FOREBAY_CPU_LEVEL
