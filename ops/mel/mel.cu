// Sums of frequencies in mel bands. Before this text come expr.cu, the structs Load and Store of the
// neighbours (expr/device_code.h) and the constants of a shape (mel_cuda.cpp):
//   kRows     of a block: 1 to 32, a power of two
//   kThreads  of a block
//   kBins     frequencies of a row
//   kBands    of a row
//   kStaged   whether its rows and their bands have room in shared memory; else they stay in memory
// A block brings its rows into shared memory as they lie. Each thread then has a row and some bands
// next to each other, and walks along the row with two sums, of the band that falls and of the one
// that rises, in f64 and in the order of the frequencies. Bands leave as they lie in memory, too.

template <bool Wide> struct RealOf { using type = f32; };
template <> struct RealOf<true> { using type = f64; };
using Real = typename RealOf<same<typename Load::Value, f64>>::type;
using Band = typename Store::Value;

struct alignas(16) Weights {
  f64 falling, rising;
};
struct Work {
  const Weights* weights;  // of the frequencies
  const i32* corners;      // kBands + 2: between two, frequencies have the same bands
  const i32* shares;       // kThreads / kRows + 1: the first band of each thread of a row
  i64 rows;
};

constexpr int kInPitch = kBins | 1, kOutPitch = kBands | 1;  // odd, so that rows do not meet in banks
constexpr int kCorners = (kBands + 2 + 3) / 4 * 4;            // in shared memory, with what aligns the next
constexpr int kTogether = 8;                                  // accesses of a thread on their way

/// With products that f64 holds, an addition rounds as a fused multiply-add does.
inline f64 add_product(f64 x, f64 weight, f64 sum) {
  return same<Real, f64> ? sum + x * weight : fma(x, weight, sum);
}

/// The rows of a block as they lie, from row `first` on, in packs of N and what is left of them.
template <int N>
void bring(Real* in, const Load& load, i64 first, int rows) {
  const auto put = [&](int i, typename Load::Value value) {
    in[kInPitch == kBins ? i : i + i / kBins] = saturate_cast<Real>(value);
  };
  const int count = rows * kBins, packs = count / N;
  for (int p = threadIdx.x; p < packs; p += kThreads * kTogether) {
    Pack<typename Load::Value, N> values[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      if (p + j * kThreads < packs)
        values[j] = load.template pack<N>(first * kBins / N + p + j * kThreads);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      if (p + j * kThreads >= packs) break;
#pragma unroll
      for (int k = 0; k < N; ++k) put((p + j * kThreads) * N + k, values[j].at[k]);
    }
  }
#pragma unroll 1
  for (int i = packs * N + threadIdx.x; i < count; i += kThreads) put(i, load.at(first * kBins + i));
}

/// Calls put(band, sum) for bands `band` .. `end` of a row whose frequency k is at(k).
template <class At, class Put>
void sum_bands(const Weights* weights, const i32* corners, int band, int end, At at, Put put) {
  if (band == end) return;
  f64 rising = 0;
  int k = corners[band];
#pragma unroll 1
  for (const int corner = corners[band + 1]; k < corner; ++k)
    rising = add_product(at(k), weights[k].rising, rising);
  for (; band < end; ++band) {
    f64 falling = rising;
    rising = 0;
#pragma unroll 1
    for (const int corner = corners[band + 2]; k < corner; ++k) {
      const f64 x = at(k);
      const Weights sides = weights[k];
      falling = add_product(x, sides.falling, falling);
      rising = add_product(x, sides.rising, rising);
    }
    put(band, saturate_cast<Band>(falling));
  }
}

/// The bands of a block's rows as they lie.
template <int N>
void write(const Band* out, const Store& store, i64 first, int rows) {
  for (int i = threadIdx.x * N; i < rows * kBands; i += kThreads * N) {
    Pack<Band, N> bands;
#pragma unroll
    for (int k = 0; k < N; ++k) bands.at[k] = out[i / kBands * kOutPitch + i % kBands + k];
    store.template put_pack<N>(first * (kBands / N) + i / N, bands);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    mel(const __grid_constant__ Load load, const __grid_constant__ Store store,
        const __grid_constant__ Work w) {
  const i64 first = i64(blockIdx.x) * kRows;
  const int rows = int(min(w.rows - first, i64(kRows)));
  const int row = threadIdx.x % kRows, share = threadIdx.x / kRows;
  const int band = w.shares[share], end = row < rows ? w.shares[share + 1] : band;
  if constexpr (kStaged) {
    extern __shared__ uint4 shared[];
    Weights* const weights = reinterpret_cast<Weights*>(shared);
    i32* const corners = reinterpret_cast<i32*>(weights + kBins);
    Real* const in = reinterpret_cast<Real*>(corners + kCorners);
    Band* const out = reinterpret_cast<Band*>(in + kRows * kInPitch);
    for (int k = threadIdx.x; k < kBins; k += kThreads) weights[k] = w.weights[k];
    for (int m = threadIdx.x; m < kBands + 2; m += kThreads) corners[m] = w.corners[m];
    bring<i64(kRows) * kBins % 4 == 0 ? 4 : 1>(in, load, first, rows);
    __syncthreads();
    sum_bands(
        weights, corners, band, end, [&](int k) { return in[row * kInPitch + k]; },
        [&](int m, Band sum) { out[row * kOutPitch + m] = sum; });
    __syncthreads();
    write<kBands % 4 == 0 ? 4 : 1>(out, store, first, rows);
  } else {
    const i64 there = first + min(row, rows - 1);
    const auto in = load.row(there);
    const auto out = store.row(there);
    sum_bands(
        w.weights, w.corners, band, end, [&](int k) { return saturate_cast<Real>(in.at(k)); },
        [&](int m, Band sum) { out.put(m, sum); });
  }
}
