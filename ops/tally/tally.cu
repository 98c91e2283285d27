// Sorts values into bins by their leading bits and adds up what is behind those: bins.h says how.
// slices.cu and histogram_runs.cu come before this, with their options. Others:
//   BINS     of a table
//   LEADING  bits behind the first that tell bins apart (TallyBins::bits)
//   LOW      digits of what is behind them, in base 2^32
//   SQUARE   digits of its square
//   COUNTED  of values of 8 bits: copies of each counter in shared memory, for each column;
//            0: values are added to the table in device memory

constexpr u32 kWords = 1 + LOW + SQUARE;

template <class T>
struct PatternOf {
  using type = T;
};
template <> struct PatternOf<bool> { using type = u8; };
template <> struct PatternOf<i8> { using type = u8; };
template <> struct PatternOf<i16> { using type = u16; };
template <> struct PatternOf<f16> { using type = u16; };
template <> struct PatternOf<bf16> { using type = u16; };
template <> struct PatternOf<i32> { using type = u32; };
template <> struct PatternOf<f32> { using type = u32; };
template <> struct PatternOf<i64> { using type = u64; };
template <> struct PatternOf<f64> { using type = u64; };
template <class T>
using Bits = PatternOf<T>::type;
using Pattern = Bits<Value>;

// Templates, so that branches for other types are not compiled.
template <class T>
Bits<T> pattern_of(T x) {
  if constexpr (same<T, f32>)
    return __float_as_uint(x);
  else if constexpr (same<T, f64>)
    return u64(__double_as_longlong(x));
  else if constexpr (is_16bit_float<T>)
    return x.bits;
  else
    return Bits<T>(x);
}

struct Place {
  u32 bin;
  u64 low;
};

template <class T>
Place place_of(T x) {
  const Bits<T> pattern = pattern_of(x);
  if constexpr (sizeof(T) <= 2) {
    return {pattern, 0};
  } else if constexpr (same<T, f32>) {
    constexpr int kLow = 23 - LEADING;
    if (x != x) return {512u << LEADING, 0};
    return {pattern >> kLow, pattern & ((1u << kLow) - 1)};
  } else if constexpr (same<T, f64>) {
    constexpr u32 kFirst = 896, kInside = 256, kExponents = 2048;
    constexpr u32 kHalf = kExponents + (kInside << LEADING);
    constexpr int kLow = 52 - LEADING;
    if (x != x) return {2 * kHalf, 0};
    const u32 sign = pattern >> 63 != 0 ? kHalf : 0, exponent = u32(pattern >> 52) & 2047;
    const u64 fraction = pattern & ((u64(1) << 52) - 1);
    const u32 inside = exponent - kFirst;
    if (inside >= kInside) return {sign + exponent, fraction};
    return {sign + kExponents + (inside << LEADING) + u32(fraction >> kLow),
            fraction & ((u64(1) << kLow) - 1)};
  } else {
    constexpr int kBits = 8 * sizeof(T);
    const bool negative = x < 0;
    const Bits<T> magnitude = negative ? Bits<T>(0) - pattern : pattern;
    const u32 sign = negative ? u32(2 + kBits - LEADING - 1) << LEADING : 0;
    const int width = magnitude == 0 ? 0
                      : kBits == 32  ? 32 - __clz(int(magnitude))
                                     : 64 - __clzll(i64(magnitude));
    const int low = width - (LEADING + 1);
    if (low <= 0) return {sign + u32(magnitude), 0};
    return {sign + (u32(low) << LEADING) + u32(magnitude >> low),
            magnitude & ((Bits<T>(1) << low) - 1)};
  }
}

template <class T>
Bits<T> order_of(T x) {
  constexpr Bits<T> kTop = Bits<T>(Bits<T>(1) << (8 * sizeof(T) - 1));
  const Bits<T> pattern = pattern_of(x);
  if constexpr (is_float<T>)
    return Bits<T>((pattern & kTop) != 0 ? ~pattern : pattern | kTop);
  else
    return is_signed<T> ? Bits<T>(pattern ^ kTop) : pattern;
}

template <class T>
bool is_finite(T x) {
  if constexpr (same<T, f64>)
    return isfinite(f64(x));
  else
    return !is_float<T> || isfinite(f32(x));
}

/// Digits of low and of its square.
struct Digits {
  u32 at[LOW + SQUARE + 1];

  explicit Digits(u64 low) {
    if constexpr (LOW > 0) {
      const u64 square = low * low;
      at[0] = u32(low);
      if (LOW > 1) at[1] = u32(low >> 32);
      at[LOW] = u32(square);
      if (SQUARE > 1) at[LOW + 1] = u32(square >> 32);
      if constexpr (SQUARE > 2) {
        const u64 high = __umul64hi(low, low);
        at[LOW + 2] = u32(high);
        at[LOW + 3] = u32(high >> 32);
      }
    }
  }
};

/// Adds values to a table in device memory. Lanes of a warp that meet in a bin add up first: atomics
/// on one address come one after another.
struct Add {
  u64* table;  // of this thread's column

  /// Not inlined: there are many copies of the loops around it.
  __noinline__ void operator()(Value x) const {
    const Place place = place_of(x);
    u64* const words = table + i64(place.bin) * kWords;
    const Digits digits(place.low);
    // The tables of a unit lie within 2^32 bytes.
    const u32 peers = __match_any_sync(__activemask(), u32(reinterpret_cast<u64>(words)));
    if (LOW > 0 && __popc(peers) == 1) {
      atomicAdd(words, u64(1));
#pragma unroll
      for (int i = 0; i < LOW + SQUARE; ++i)
        atomicAdd(words + 1 + i, u64(digits.at[i]));
      return;
    }
    u64 sums[LOW + SQUARE + 1];
#pragma unroll
    for (int i = 0; i < LOW + SQUARE; ++i)  // in halves, so that 32 of them fit 32 bits
      sums[i] = __reduce_add_sync(peers, digits.at[i] & 0xffff) +
                (u64(__reduce_add_sync(peers, digits.at[i] >> 16)) << 16);
    if (u32(__ffs(int(peers)) - 1) != threadIdx.x % 32) return;
    atomicAdd(words, u64(__popc(peers)));
#pragma unroll
    for (int i = 0; i < LOW + SQUARE; ++i)
      atomicAdd(words + 1 + i, sums[i]);
  }
};

#if COUNTED
extern __shared__ u32 counters[];

/// Counts values of 8 bits in shared memory, in this lane's copy of the counters.
struct Count {
  u32* mine;
  void operator()(Value x) const { atomicAdd(mine + place_of(x).bin * COUNTED, 1u); }
};

/// Adds the counters of the unit's columns to their tables.
inline void flush(u64* table, u32 columns) {
  __syncthreads();
  for (u32 i = threadIdx.x; i < columns * BINS; i += BLOCK) {
    u32 sum = 0;
    for (u32 copy = 0; copy < COUNTED; ++copy)  // neighbours in different banks
      sum += counters[i * COUNTED + (copy + i) % COUNTED];
    if (sum != 0) atomicAdd(table + i, u64(sum));
  }
}
#endif

template <class Into>
struct Visit {
  Into into;
  bool wanted;  // the table
  Pattern greatest = 0, least = Pattern(~Pattern(0));
  bool any = false;

  template <int N>
  void operator()(const Pack<Value, N>& pack) {
#pragma unroll
    for (const Value x : pack.at) {
      if (wanted) into(x);
      if (!is_finite(x)) continue;
      const Pattern order = order_of(x);
      any = true;
      greatest = max(greatest, order);
      least = min(least, order);
    }
  }
};

struct Greatest {
  u64 operator()(u64 x, u64 y) const { return x < y ? y : x; }
};

/// Adds to `tables` and widens `extremes`, a row for each slice, all 0 before; null: not wanted.
extern "C" __global__ void __launch_bounds__(BLOCK)
    tally(const __grid_constant__ LoadX in, u64* __restrict__ tables, u64* __restrict__ extremes,
          const __grid_constant__ Slices s, const __grid_constant__ Tiling t) {
  __shared__ u64 shared[BLOCK];
  const i64 units = unit_count(s, t);
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
#if COUNTED
    for (u32 i = threadIdx.x; i < u32(t.chunk) * BINS * COUNTED; i += BLOCK)
      counters[i] = 0;
    __syncthreads();
    Visit<Count> visit{
        {counters + p.column * (BINS * COUNTED) + threadIdx.x % COUNTED}, tables != nullptr};
#else
    Visit<Add> visit{{tables + p.slice * (i64(BINS) * kWords)}, tables != nullptr};
#endif
#if COLUMNS
    for_columns(in, s, p, visit);
#else
    const i64 start = RUNS ? offset_of(p.slice, s.kept, s.kept_count) : p.slice * s.rows;
    const u32 part = u32(unit - p.slice * t.blocks);
    for_slice(in, s, start, part, u32(t.blocks), threadIdx.x, visit);
#endif
    const u64 none = 0;
    const u64 greatest =
        column_reduce(visit.any ? u64(visit.greatest) : none, p, t.chunk, Greatest(), shared);
    const u64 least =
        column_reduce(visit.any ? ~u64(visit.least) : none, p, t.chunk, Greatest(), shared);
    if (extremes != nullptr && p.active && p.lane == 0) {
      atomicMax(extremes + 2 * p.slice, greatest);
      atomicMax(extremes + 2 * p.slice + 1, least);
    }
#if COUNTED
    if (tables != nullptr) {
      const i64 first = p.slice - p.column;
      flush(tables + first * BINS, u32(min(t.chunk, s.columns - first % s.columns)));
    }
    __syncthreads();  // the next unit clears the counters
#endif
  }
}
