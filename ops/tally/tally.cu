// Sorts values into bins by their leading bits and adds up what is behind those: bins.h says how.
// slices.cu and histogram_runs.cu come before this, with their options. Others:
//   BINS     of a table
//   LEADING  bits behind the first that tell bins apart (TallyBins::bits)
//   LOW      digits of what is behind them, in base 2^32
//   SQUARE   digits of its square
//   COUNTED  of values of 8 bits: copies of each counter in shared memory, for each column; 0: no such counters
//   WINDOW   neighbouring bins of each sign that are added up in shared memory, for each column; 0: all values are added to
//            the table in device memory. A unit then has at most kMostInUnit values a column
//   HALF     bins of one sign, or all where the sign does not come first (SIGNS 1)
//   SIGNS    1 or 2
//   LOW_BITS of low, at most

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

struct Greatest {
  u64 operator()(u64 x, u64 y) const { return x < y ? y : x; }
};

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

/// Adds x to a table in device memory. Lanes of a warp that meet in a bin add up first: atomics on one address come one
/// after another. Not inlined: there are many copies of the loops around it.
__noinline__ void add_far(Value x, u64* table) {
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

struct Add {
  u64* table;  // of this thread's column
  void operator()(Value x) const { add_far(x, table); }
};

extern __shared__ u32 counters[];

#if WINDOW
constexpr u32 kMostInUnit = 57344;

constexpr u32 kLowHalves = (LOW_BITS + 15) / 16, kSquareHalves = (2 * LOW_BITS + 15) / 16;
constexpr u32 kParts = 1 + kLowHalves + kSquareHalves;

/// Where a bin lies among those of its sign.
struct Spot {
  u32 sign, number;
  explicit Spot(u32 bin) {
    if (same<Value, i16>) bin ^= 0x8000;  // ascends with the value
    sign = SIGNS == 2 && bin >= HALF ? 1 : 0;
    number = bin - sign * HALF;
  }
};

/// The sums of the bins behind `first`, of each sign, and of bin 0, which often has many, in its place: in shared memory, a
/// count, and the sums of 16 bits of low and of its square. No bin has more than 2^16 - 1 values, so they fit 32 bits.
struct Window {
  u32 first, columns;

  u32 slots() const { return columns * (SIGNS * WINDOW); }

  static void halves_of(u64 low, u32 (&halves)[kParts]) {
    const u64 square = LOW_BITS <= 16 ? u64(u32(low) * u32(low)) : low * low;
    const u64 above = kSquareHalves > 4 ? __umul64hi(low, low) : 0;
#pragma unroll
    for (u32 i = 0; i < kLowHalves; ++i) halves[1 + i] = u32(low >> (16 * i)) & 0xffff;
#pragma unroll
    for (u32 i = 0; i < kSquareHalves; ++i)
      halves[1 + kLowHalves + i] = u32((i < 4 ? square : above) >> (16 * (i % 4))) & 0xffff;
  }

  void clear() const {
    for (u32 i = threadIdx.x; i < kParts * slots(); i += BLOCK) counters[i] = 0;
    __syncthreads();
  }

  /// Adds those of more than `few` values to the tables and clears them. Blocks begin at different ones.
  void flush(u64* tables, u32 few) const {
    __syncthreads();
    const u32 count = slots();
    for (u32 i = threadIdx.x; i < count; i += BLOCK) {
      const u32 slot = (i + blockIdx.x * 1021) % count, values = counters[slot];
      if (values <= few) continue;
      const u32 part = slot / WINDOW, column = part / SIGNS;
      u32 bin = part % SIGNS * HALF + (slot % WINDOW == 0 ? 0 : first + slot % WINDOW);
      if (same<Value, i16>) bin ^= 0x8000;
      u64* const words = tables + (i64(column) * BINS + bin) * kWords;
      u64 sums[kWords] = {values};
#pragma unroll
      for (u32 k = 1; k < kParts; ++k) {
        const u32 half = k <= kLowHalves ? k - 1 : 2 * LOW + k - 1 - kLowHalves;
        sums[1 + half / 2] += u64(counters[k * count + slot]) << (16 * (half % 2));
        counters[k * count + slot] = 0;
      }
      counters[slot] = 0;
#pragma unroll
      for (u32 k = 0; k < kWords; ++k) {
        if (sums[k] != 0) atomicAdd(words + k, sums[k]);
      }
    }
    __syncthreads();
  }
};

/// The first bin of a window that holds the bins of the values that the block's threads give, of all magnitudes up to some
/// above the greatest.
inline u32 first_of_window(Value x, u64* shared) {
  const u32 number = is_finite(x) ? Spot(place_of(x).bin).number : 0;
  const u32 top = min(u32(block_reduce(u64(number), Greatest(), shared)) + 1 + WINDOW / 16, u32(HALF));
  return top > WINDOW ? top - WINDOW : 0;
}

/// Adds x to a window whose bins begin with `first`, this thread's column of it at `mine`, or else to the table. Lanes of a
/// warp that all meet add up first.
__noinline__ void add_near(Value x, u32 first, u32 pitch, u32 mine, u64* table) {
  const Place place = place_of(x);
  const Spot spot(place.bin);
  const u32 inside = spot.number == 0 ? 0 : spot.number - first;
  if (inside >= WINDOW || (inside == 0 && spot.number != 0)) return add_far(x, table);
  const u32 slot = mine + spot.sign * WINDOW + inside;
  u32* const to = counters + slot;
  u32 halves[kParts];
  Window::halves_of(place.low, halves);
  const u32 lanes = __activemask();
  int meet;
  __match_all_sync(lanes, slot, &meet);
  if (meet) {
    const bool leads = u32(__ffs(int(lanes)) - 1) == threadIdx.x % 32;
    if (leads) atomicAdd(to, u32(__popc(lanes)));
#pragma unroll
    for (u32 i = 1; i < kParts; ++i) {
      const u32 sum = __reduce_add_sync(lanes, halves[i]);
      if (leads) atomicAdd(to + i * pitch, sum);
    }
    return;
  }
  atomicAdd(to, 1u);
  if (kParts == 1 || place.low == 0) return;
#pragma unroll
  for (u32 i = 1; i < kParts; ++i) atomicAdd(to + i * pitch, halves[i]);
}

struct AddNear {
  Window window;
  u32 mine;
  u64* table;
  void operator()(Value x) const { add_near(x, window.first, window.slots(), mine, table); }
};
#endif

#if COUNTED

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

/// Adds to `tables` and widens `extremes`, a row for each slice, all 0 before; null: not wanted.
extern "C" __global__ void __launch_bounds__(BLOCK)
    tally(const __grid_constant__ LoadX in, u64* __restrict__ tables, u64* __restrict__ extremes,
          const __grid_constant__ Slices s, const __grid_constant__ Tiling t) {
  __shared__ u64 shared[BLOCK];
  const i64 units = unit_count(s, t);
#if WINDOW
  Window window{0, u32(t.chunk)};
  i64 strip = -1;  // what the window has sums of
  u64* strip_tables = nullptr;
  window.clear();
#endif
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
#if COUNTED
    for (u32 i = threadIdx.x; i < u32(t.chunk) * BINS * COUNTED; i += BLOCK)
      counters[i] = 0;
    __syncthreads();
    Visit<Count> visit{
        {counters + p.column * (BINS * COUNTED) + threadIdx.x % COUNTED}, tables != nullptr};
#else
    const Add add{tables + p.slice * (i64(BINS) * kWords)};
#if WINDOW
    if (tables != nullptr) {
      const i64 next = quotient(unit, t.blocks);
      if (next == strip) {
        window.flush(strip_tables, 0xffff - kMostInUnit);
      } else {
        if (strip >= 0) window.flush(strip_tables, 0);
        strip = next;
        strip_tables = tables + (p.slice - p.column) * (i64(BINS) * kWords);
        const i64 step = max((p.last - p.first) / p.lanes, i64(1)), position = min(p.first + p.lane * step, p.last - 1);
        window.first = first_of_window(p.active ? in.at(p.offset + Cursor(s, position, 1).offset(s)) : Value(0), shared);
      }
    }
    Visit<AddNear> visit{{window, u32(p.column) * (SIGNS * WINDOW), add.table}, tables != nullptr};
#else
    Visit<Add> visit{add, tables != nullptr};
#endif
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
#if WINDOW
  if (strip >= 0) window.flush(strip_tables, 0);
#endif
}
