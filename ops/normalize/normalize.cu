// Normalizes slices by statistics of their own. slices.cu comes before this. Options:
//   IN, OUT     element types
//   NARROW      1: f32 arithmetic gives the result (elements are exact in f32), 0: f64
//   GIVEN_MEAN  1: the pivot is the given mean, 0: the slice's first element
//   THREADS     of a block
//   ITEMS       elements that a thread of the one-pass kernels keeps in registers
//   SLICES, ROWS, MOMENTS, MERGE or APPLY  1: the kernel that is wanted; only it is compiled
// The statistics are those of normalize_cpu.cpp, in another order of summation: see statistics.h.

struct Moments {
  f64 mean, m2;
};
struct Scale {
  f64 mean, divisor;
};
/// A constant: one value, or a table along the last of the kept axes.
struct Constant {
  const f64* table;
  i64 count;
  f64 value;
};
struct Settings {
  Constant mean, std;
  f64 epsilon;
  i64 ddof;
  i64 epsilon_place;  // 0: variance, 1: std, 2: floor
  i64 has_std, zero;  // zero: a divisor of 0 gives 0
};
struct Add {
  f64 operator()(f64 x, f64 y) const { return x + y; }
};

#if GIVEN_MEAN
using Pivot = f64;
#else
using Pivot = IN;
#endif

inline f64 value_of(const Constant& constant, i64 slice) {
  return constant.table == nullptr
             ? constant.value
             : constant.table[slice - quotient(slice, constant.count) * constant.count];
}

inline Pivot pivot_of(const IN* in, i64 offset, i64 slice, const Settings& q) {
#if GIVEN_MEAN
  return value_of(q.mean, slice);
#else
  const IN x = in[offset];
  if constexpr (is_float<IN>) {
    if (!isfinite(saturate_cast<f64>(x))) return saturate_cast<IN>(0.0f);
  }
  return x;
#endif
}

inline f64 difference(IN x, Pivot pivot) {
  if constexpr (!GIVEN_MEAN && is_integer<IN> && sizeof(IN) == 8) {
    return x >= pivot ? f64(u64(x) - u64(pivot)) : -f64(u64(pivot) - u64(x));
  } else {
    return saturate_cast<f64>(x) - saturate_cast<f64>(pivot);
  }
}

inline f64 divisor_of(f64 variance, const Settings& q) {
  if (q.epsilon_place == 0) return sqrt(variance + q.epsilon);
  const f64 std = sqrt(variance);
  return q.epsilon_place == 1 ? std + q.epsilon : std < q.epsilon ? q.epsilon : std;
}
inline f64 divisor_of_std(f64 std, const Settings& q) {
  if (q.epsilon_place == 0) return q.epsilon > 0 ? sqrt(std * std + q.epsilon) : std;
  return q.epsilon_place == 1 ? std + q.epsilon : std < q.epsilon ? q.epsilon : std;
}

/// From the moments of all `length` elements of a slice.
inline Scale scale_of(f64 mean, f64 m2, i64 length, i64 slice, const Settings& q) {
  Scale scale;
  scale.mean = mean;
  if (GIVEN_MEAN) {  // squares about the pivot, which is the given mean
    m2 += length * (mean * mean);
    scale.mean = 0;
  }
  if (q.has_std)
    scale.divisor = divisor_of_std(value_of(q.std, slice), q);
  else if (q.ddof >= length)
    scale.divisor = __longlong_as_double(0x7ff8000000000000);
  else
    scale.divisor = divisor_of(m2 / (length - q.ddof), q);
  return scale;
}

/// A slice's scale as a thread uses it: on the f32 road where that loses nothing.
struct Apply {
  Pivot pivot;
  Scale scale;
  f32 high, low, divisor;
  bool fits, zero;

  Apply(Scale s, Pivot p, const Settings& q) : pivot(p), scale(s), zero(q.zero && s.divisor == 0) {
    const f64 mean = saturate_cast<f64>(p) + s.mean;
    high = f32(mean);
    low = f32(mean - high);
    divisor = f32(s.divisor);
    fits = NARROW && fabs(mean) < 0x1p100 && s.divisor > 0x1p-100 && s.divisor < 0x1p100;
  }
  OUT operator()(IN x) const {
    if (fits) return saturate_cast<OUT>(((saturate_cast<f32>(x) - high) - low) / divisor);
    return wide(x);
  }
  /// The f64 road; not inlined, so that kernels that rarely take it stay small.
  __noinline__ OUT wide(IN x) const {
    return saturate_cast<OUT>(zero ? 0.0 : (difference(x, pivot) - scale.mean) / scale.divisor);
  }
};

#if SLICES
/// Whole slices in registers: one read, one write. A block takes a chunk of columns, its lanes the
/// positions.
extern "C" __global__ void __launch_bounds__(THREADS)
    normalize_slices(const IN* __restrict__ in, OUT* __restrict__ out,
                     const __grid_constant__ Slices s, const __grid_constant__ Tiling t,
                     const __grid_constant__ Settings q) {
  __shared__ f64 shared[THREADS];
  const i64 length = length_of(s), units = unit_count(s, t);
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    const Pivot pivot = p.active ? pivot_of(in, p.offset, p.slice, q) : Pivot();
    const int items = p.active ? int((length - p.lane + p.lanes - 1) / p.lanes) : 0;
    IN x[ITEMS];
    f64 sum = 0;
    Cursor load = p.cursor(s);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      if (i >= items) continue;
      x[i] = in[p.offset + load.offset(s)];
      sum += difference(x[i], pivot);
      load.advance(s);
    }
    const f64 mean = column_reduce(sum, p, t.chunk, Add(), shared) / length;
    f64 squares = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      if (i >= items) continue;
      const f64 distance = difference(x[i], pivot) - mean;
      squares += distance * distance;
    }
    const f64 m2 = column_reduce(squares, p, t.chunk, Add(), shared);
    if (!p.active) continue;
    const Apply apply(scale_of(mean, m2, length, p.slice, q), pivot, q);
    Cursor store = p.cursor(s);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      if (i >= items) continue;
      out[p.offset + store.offset(s)] = apply(x[i]);
      store.advance(s);
    }
  }
}

#elif ROWS
/// The same for slices that lie dense in memory and start at multiples of 16 bytes, in accesses of
/// 16 bytes.
constexpr int kVector = 16 / sizeof(IN);
constexpr int kVectors = ITEMS / kVector > 0 ? ITEMS / kVector : 1;
struct alignas(16) InPack {
  IN x[kVector];
};
struct alignas(kVector * sizeof(OUT) < 16 ? kVector * sizeof(OUT) : 16) OutPack {
  OUT x[kVector];
};
extern "C" __global__ void __launch_bounds__(THREADS)
    normalize_rows(const IN* __restrict__ in, OUT* __restrict__ out,
                   const __grid_constant__ Slices s, const __grid_constant__ Settings q) {
  __shared__ f64 shared[THREADS / 32];
  const i64 length = s.rows, packs = length / kVector;
  for (i64 slice = blockIdx.x; slice < s.groups; slice += gridDim.x) {
    const InPack* from = reinterpret_cast<const InPack*>(in + slice * length);
    OutPack* to = reinterpret_cast<OutPack*>(out + slice * length);
    const Pivot pivot = pivot_of(in, slice * length, slice, q);
    InPack pack[kVectors];
    f64 sum = 0;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const i64 index = threadIdx.x + i * THREADS;
      if (index >= packs) continue;
      pack[i] = from[index];
      for (IN x : pack[i].x)
        sum += difference(x, pivot);
    }
    const f64 mean = block_reduce(sum, Add(), shared) / length;
    f64 squares = 0;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (threadIdx.x + i * THREADS >= packs) continue;
      for (IN x : pack[i].x) {
        const f64 distance = difference(x, pivot) - mean;
        squares += distance * distance;
      }
    }
    const f64 m2 = block_reduce(squares, Add(), shared);
    const Apply apply(scale_of(mean, m2, length, slice, q), pivot, q);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const i64 index = threadIdx.x + i * THREADS;
      if (index >= packs) continue;
      OutPack result;
      for (int k = 0; k < kVector; ++k)
        result.x[k] = apply(pack[i].x[k]);
      to[index] = result;
    }
  }
}

// Slices that are too long for one block: moments of each unit, merged by slice, then applied.

#elif MOMENTS
/// partials[unit * chunk + column]
extern "C" __global__ void __launch_bounds__(THREADS)
    normalize_moments(const IN* __restrict__ in, Moments* __restrict__ partials,
                      const __grid_constant__ Slices s, const __grid_constant__ Tiling t,
                      const __grid_constant__ Settings q) {
  __shared__ f64 shared[THREADS];
  constexpr int kBatch = 8;  // elements that are summed twice: their mean first
  const i64 units = unit_count(s, t);
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    f64 count = 0, mean = 0, m2 = 0;
    if (p.active) {
      const Pivot pivot = pivot_of(in, p.offset, p.slice, q);
      Cursor load = p.cursor(s);
      for (i64 start = p.first + p.lane; start < p.last; start += i64(kBatch) * p.lanes) {
        f64 x[kBatch], sum = 0, squares = 0;
        int n = 0;
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          x[i] = 0;
          if (start + i64(i) * p.lanes >= p.last) continue;
          x[i] = difference(in[p.offset + load.offset(s)], pivot);
          sum += x[i];
          ++n;
          load.advance(s);
        }
        const f64 batch_mean = sum / n;
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          if (i >= n) continue;
          const f64 distance = x[i] - batch_mean;
          squares += distance * distance;
        }
        const f64 delta = batch_mean - mean, all = count + n;
        mean += delta * (n / all);
        m2 += squares + delta * delta * (count * n / all);
        count = all;
      }
    }
    const f64 unit_mean =
        column_reduce(count * mean, p, t.chunk, Add(), shared) / f64(p.last - p.first);
    const f64 delta = count > 0 ? mean - unit_mean : 0;
    const f64 unit_m2 = column_reduce(m2 + count * (delta * delta), p, t.chunk, Add(), shared);
    if (p.active && p.lane == 0) partials[unit * t.chunk + p.column] = {unit_mean, unit_m2};
  }
}

#elif MERGE
/// A block for each slice: two passes over the moments of its blocks.
extern "C" __global__ void __launch_bounds__(THREADS)
    normalize_merge(const Moments* __restrict__ partials, Scale* __restrict__ scales,
                    const __grid_constant__ Slices s, const __grid_constant__ Tiling t,
                    const __grid_constant__ Settings q) {
  __shared__ f64 shared[THREADS / 32];
  const i64 length = length_of(s), slices = slice_count(s);
  for (i64 slice = blockIdx.x; slice < slices; slice += gridDim.x) {
    const i64 group = quotient(slice, s.columns), column = slice - group * s.columns;
    const i64 chunk = quotient(column, t.chunk);
    const Moments* mine =
        partials + (group * t.chunks + chunk) * t.blocks * t.chunk + (column - chunk * t.chunk);
    f64 sum = 0, m2 = 0;
    for (i64 b = threadIdx.x; b < t.blocks; b += blockDim.x) {
      sum += min(t.block, length - b * t.block) * mine[b * t.chunk].mean;
    }
    const f64 mean = block_reduce(sum, Add(), shared) / length;
    for (i64 b = threadIdx.x; b < t.blocks; b += blockDim.x) {
      const f64 delta = mine[b * t.chunk].mean - mean;
      m2 += mine[b * t.chunk].m2 + min(t.block, length - b * t.block) * (delta * delta);
    }
    m2 = block_reduce(m2, Add(), shared);
    if (threadIdx.x == 0) scales[slice] = scale_of(mean, m2, length, slice, q);
  }
}

#elif APPLY
extern "C" __global__ void __launch_bounds__(THREADS)
    normalize_apply(const IN* __restrict__ in, OUT* __restrict__ out,
                    const Scale* __restrict__ scales, const __grid_constant__ Slices s,
                    const __grid_constant__ Tiling t, const __grid_constant__ Settings q) {
  const i64 units = unit_count(s, t);
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    if (!p.active) continue;
    const Apply apply(scales[p.slice], pivot_of(in, p.offset, p.slice, q), q);
    Cursor cursor = p.cursor(s);
#pragma unroll 4
    for (i64 position = p.first + p.lane; position < p.last; position += p.lanes) {
      const i64 offset = p.offset + cursor.offset(s);
      out[offset] = apply(in[offset]);
      cursor.advance(s);
    }
  }
}
#endif
