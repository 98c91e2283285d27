// Counts values in bins. slices.cu comes before this. Options:
//   IN       element type of x
//   KEY      what elements are compared as: f32 (f16, bf16, f32), i64, u64, else f64; exact
//   EDGE     dtype of the edges: f32 for KEY f32, else f64
//   WEIGHT   element type of the weights, when there are any
//   EXTREMES, EDGES, COUNT, ZERO or FINISH  1: the kernel that is wanted; only it is compiled
// The formulas of edges and comparisons are those of edges.h.

#ifdef WEIGHT
using Counter = f64;
#else
using Counter = u64;
#endif
struct Extremes {
  KEY least, greatest;
};
struct Add {
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};

// Exact comparison of a value with an edge, which is not NaN. NaN is neither below nor above.
inline bool is_below(f32 x, f32 edge) { return x < edge; }
inline bool is_above(f32 x, f32 edge) { return x > edge; }
inline bool is_below(f64 x, f64 edge) { return x < edge; }
inline bool is_above(f64 x, f64 edge) { return x > edge; }
inline bool is_below(i64 x, f64 edge) {
  return edge >= 0x1p63 || (edge > -0x1p63 && x < __double2ll_ru(edge));
}
inline bool is_above(i64 x, f64 edge) {
  return edge < -0x1p63 || (edge < 0x1p63 && x > __double2ll_rd(edge));
}
inline bool is_below(u64 x, f64 edge) {
  return edge >= 0x1p64 || (edge > 0 && x < __double2ull_ru(edge));
}
inline bool is_above(u64 x, f64 edge) {
  return edge < 0 || (edge < 0x1p64 && x > __double2ull_rd(edge));
}

/// The number of a slice's row of edges.
inline i64 edge_set(i64 slice, i64 sets) { return sets == 1 ? 0 : slice; }

/// Where the counters of a slice's first block are, in columns of units; its next block's are
/// `chunk` further.
inline i64 first_place(const Slices& s, const Tiling& t, i64 slice) {
  const i64 group = quotient(slice, s.columns), column = slice - group * s.columns;
  const i64 chunk = quotient(column, t.chunk);
  return (group * t.chunks + chunk) * t.blocks * t.chunk + (column - chunk * t.chunk);
}

#if EXTREMES || EDGES
template <class T>
constexpr T highest() {
  if constexpr (same<T, f32>)
    return 0x1.fffffep127f;
  else if constexpr (same<T, f64>)
    return 0x1.fffffffffffffp1023;
  else
    return kGreatest<T>;
}
template <class T>
constexpr T lowest() {
  if constexpr (is_float<T>)
    return -highest<T>();
  else
    return kLeast<T>;
}

struct Least {
  KEY operator()(KEY x, KEY y) const { return y < x ? y : x; }
};
struct Greatest {
  KEY operator()(KEY x, KEY y) const { return x < y ? y : x; }
};

#if EXTREMES
/// The least and greatest finite value of each column of each unit: partials[unit * chunk +
/// column].
extern "C" __global__ void __launch_bounds__(256)
    histogram_extremes(const IN* __restrict__ in, Extremes* __restrict__ partials,
                       const __grid_constant__ Slices s, const __grid_constant__ Tiling t) {
  __shared__ KEY shared[256];
  const i64 units = unit_count(s, t);
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    KEY least = highest<KEY>(), greatest = lowest<KEY>();
    if (p.active) {
      Cursor cursor = p.cursor(s);
      for (i64 position = p.first + p.lane; position < p.last;
           position += p.lanes, cursor.advance(s)) {
        const KEY x = saturate_cast<KEY>(in[p.offset + cursor.offset(s)]);
        if (is_float<KEY> && !isfinite(f64(x))) continue;
        least = Least()(least, x);
        greatest = Greatest()(greatest, x);
      }
    }
    least = column_reduce(least, p, t.chunk, Least(), shared);
    greatest = column_reduce(greatest, p, t.chunk, Greatest(), shared);
    if (p.active && p.lane == 0) partials[unit * t.chunk + p.column] = {least, greatest};
  }
}

#else
inline f32 next(f32 x, bool up) {
  return nextafterf(x, up ? __int_as_float(0x7f800000) : __int_as_float(0xff800000));
}
inline f64 next(f64 x, bool up) {
  return nextafter(x, __longlong_as_double(up ? 0x7ff0000000000000 : i64(0xfff0000000000000)));
}

/// A block for each set of edges: from `table`, from the extremes in `partials`, or between low and
/// high.
extern "C" __global__ void __launch_bounds__(256)
    histogram_edges(const Extremes* __restrict__ partials, const EDGE* __restrict__ table,
                    EDGE* __restrict__ edges, const __grid_constant__ Slices s,
                    const __grid_constant__ Tiling t, i64 sets, i64 bins, f64 given_low,
                    f64 given_high) {
  __shared__ KEY shared[8];
  for (i64 set = blockIdx.x; set < sets; set += gridDim.x) {
    EDGE low = EDGE(given_low), high = EDGE(given_high);
    if (partials != nullptr) {
      KEY least = highest<KEY>(), greatest = lowest<KEY>();
      const i64 place = first_place(s, t, set);
      for (i64 b = threadIdx.x; b < t.blocks; b += blockDim.x) {
        least = Least()(least, partials[place + b * t.chunk].least);
        greatest = Greatest()(greatest, partials[place + b * t.chunk].greatest);
      }
      least = block_reduce(least, Least(), shared);
      greatest = block_reduce(greatest, Greatest(), shared);
      if (least <= greatest) {
        low = EDGE(least);
        high = EDGE(greatest);
        if (is_below(least, low)) low = next(low, false);
        if (is_above(greatest, high)) high = next(high, true);
        if (low == high) {
          low -= EDGE(0.5);
          high += EDGE(0.5);
        }
      }
    }
    const f64 half = fmax(fabs(f64(low)), fabs(f64(high))) > 0x1p1000 ? 0.5 : 1.0;
    const f64 step = (high * half - low * half) / bins;
    for (i64 i = threadIdx.x; i <= bins; i += blockDim.x) {
      EDGE edge = i == 0      ? low
                  : i == bins ? high
                              : EDGE(fmin((low * half + i * step) / half, f64(high)));
      if (table != nullptr) edge = table[i];
      edges[set * (bins + 1) + i] = edge;
    }
  }
}
#endif
#endif

#if COUNT
/// The edges of one histogram, ready for a search.
struct Search {
  const EDGE* at;
  i64 bins;
  f64 low, scale;
  bool uniform;  // a multiplication comes near the bin

  Search(const EDGE* edges, i64 count, bool equal_width) : at(edges), bins(count), low(edges[0]) {
    scale = count / (f64(edges[count]) - low);
    uniform = equal_width && isfinite(scale) && scale > 0;
  }

  /// The bin of x; `bins` for what is ignored.
  i64 find(KEY x) const {
    if (is_below(x, at[0]) || is_above(x, at[bins]) || x != x) return bins;
    i64 bin;
    if (uniform) {
      bin = min(max(i64((f64(x) - low) * scale), i64(0)), bins - 1);
      while (bin > 0 && is_below(x, at[bin]))
        --bin;
      while (bin + 1 < bins && !is_below(x, at[bin + 1]))
        ++bin;
      return bin;
    }
    i64 first = 0, count = bins + 1;  // the first edge above x
    while (count > 0) {
      const i64 middle = first + count / 2;
      if (is_below(x, at[middle])) {
        count /= 2;
      } else {
        count -= middle + 1 - first;
        first = middle + 1;
      }
    }
    return min(first, bins) - 1;
  }
};

struct Settings {
  i64 bins, sets, equal_width;
  i64 copies;  // of the counters in shared memory, a power of two; 0: the counters are in device
               // memory
};

#ifndef WEIGHT
/// counters[(unit * chunk + column) * (bins + 1) + bin]; the last of a column's counts what is
/// ignored.
///
/// In shared memory there are `copies` of each counter side by side, and lane i of a warp adds to
/// copy i mod copies: with 32, no two lanes of a warp meet. In device memory the units of a slice
/// share the counters of its first, set to 0 before.
extern "C" __global__ void __launch_bounds__(256)
    histogram_count(const IN* __restrict__ in, const EDGE* __restrict__ edges,
                    u64* __restrict__ counters, const __grid_constant__ Slices s,
                    const __grid_constant__ Tiling t, const __grid_constant__ Settings q) {
  extern __shared__ u32 shared[];
  const i64 units = unit_count(s, t), keys = t.chunk * (q.bins + 1), cells = keys * q.copies;
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    for (i64 i = threadIdx.x; i < cells; i += blockDim.x)
      shared[i] = 0;
    __syncthreads();
    const Part p(s, t, unit);
    u64* mine = counters + (q.copies > 0 ? unit : quotient(unit, t.blocks)) * keys;
    if (p.active && p.first + p.lane < p.last) {
      const Search search(edges + edge_set(p.slice, q.sets) * (q.bins + 1), q.bins, q.equal_width);
      const i64 base = p.column * (q.bins + 1);
      const i64 copy = threadIdx.x & u32(q.copies - 1);
      Cursor cursor = p.cursor(s);
      for (i64 position = p.first + p.lane; position < p.last;
           position += p.lanes, cursor.advance(s)) {
        const i64 key = base + search.find(saturate_cast<KEY>(in[p.offset + cursor.offset(s)]));
        if (q.copies > 0)
          atomicAdd(shared + key * q.copies + copy, 1u);
        else
          atomicAdd(mine + key, u64(1));
      }
    }
    __syncthreads();
    if (q.copies == 0) continue;
    for (i64 key = threadIdx.x; key < keys; key += blockDim.x) {
      u64 sum = 0;
      for (i64 copy = 0; copy < q.copies; ++copy)
        sum += shared[key * q.copies + ((copy + key) & (q.copies - 1))];
      mine[key] = sum;
    }
    __syncthreads();
  }
}
#else
/// The same with sums of weights, always in the same order: each warp has counters of its own, and
/// of its lanes with one bin the lowest adds first. `copies` is the number of warps; 0: one warp,
/// which adds in device memory.
extern "C" __global__ void __launch_bounds__(256)
    histogram_count(const IN* __restrict__ in, const WEIGHT* __restrict__ weights,
                    const EDGE* __restrict__ edges, f64* __restrict__ counters,
                    const __grid_constant__ Slices s, const __grid_constant__ Tiling t,
                    const __grid_constant__ Settings q) {
  extern __shared__ f64 sums[];
  const i64 units = unit_count(s, t), keys = t.chunk * (q.bins + 1);
  const u32 lane = threadIdx.x % 32;
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    f64* mine = counters + unit * keys;
    volatile f64* of_warp = q.copies > 0 ? sums + threadIdx.x / 32 * keys : mine;
    for (i64 key = lane; key < keys; key += 32)
      of_warp[key] = 0;
    __syncwarp();
    const i64 set = p.active ? edge_set(p.slice, q.sets) : 0;
    const Search search(edges + set * (q.bins + 1), q.bins, q.equal_width);
    Cursor cursor = p.cursor(s);
    for (i64 start = p.first; start < p.last; start += p.lanes, cursor.advance(s)) {
      i64 key = -1;
      f64 weight = 1;
      if (p.active && start + p.lane < p.last) {
        const i64 offset = p.offset + cursor.offset(s);
        const i64 bin = search.find(saturate_cast<KEY>(in[offset]));
        key = p.column * (q.bins + 1) + bin;
        if (bin < q.bins) weight = saturate_cast<f64>(weights[offset]);
      }
      const u32 before = __match_any_sync(0xffffffffu, key) & ((1u << lane) - 1);
      const int turn = __popc(before);
      for (int round = 0; __any_sync(0xffffffffu, key >= 0 && turn >= round); ++round) {
        if (key >= 0 && turn == round) of_warp[key] = of_warp[key] + weight;
        __syncwarp();
      }
    }
    if (q.copies == 0) continue;
    __syncthreads();
    for (i64 key = threadIdx.x; key < keys; key += blockDim.x) {
      f64 sum = 0;
      for (i64 warp = 0; warp < q.copies; ++warp)
        sum += sums[warp * keys + key];
      mine[key] = sum;
    }
    __syncthreads();
  }
}
#endif
#endif

#if ZERO
extern "C" __global__ void __launch_bounds__(256) histogram_zero(Counter* counters, i64 count) {
  for (i64 i = grid_thread(); i < count; i += grid_threads())
    counters[i] = 0;
}
#endif

#if FINISH
/// A block for each slice: adds up the counters of its `blocks` units, in order. `hist` is i64, or
/// f64 with weights or density; both outputs may be null.
extern "C" __global__ void __launch_bounds__(256)
    histogram_finish(const Counter* __restrict__ counters, const EDGE* __restrict__ edges,
                     void* __restrict__ hist, i64* __restrict__ ignored,
                     const __grid_constant__ Slices s, const __grid_constant__ Tiling t, i64 bins,
                     i64 sets, int density) {
  __shared__ Counter shared[8];
  const i64 slices = slice_count(s), stride = t.chunk * (bins + 1);
  for (i64 slice = blockIdx.x; slice < slices; slice += gridDim.x) {
    const Counter* mine = counters + first_place(s, t, slice) * (bins + 1);
    f64* sums = static_cast<f64*>(hist) + slice * bins;
    Counter all = 0;
    for (i64 bin = threadIdx.x; bin <= bins; bin += blockDim.x) {
      Counter sum = 0;
#pragma unroll 4
      for (i64 b = 0; b < t.blocks; ++b)
        sum += mine[b * stride + bin];
      if (bin == bins) {
        if (ignored != nullptr) ignored[slice] = i64(sum);
      } else if (hist != nullptr) {
        all += sum;
        if (density || is_float<Counter>)
          sums[bin] = f64(sum);
        else
          static_cast<i64*>(hist)[slice * bins + bin] = i64(sum);
      }
    }
    if (!density) continue;
    all = block_reduce(all, Add(), shared);
    if (hist == nullptr) continue;
    const EDGE* at = edges + edge_set(slice, sets) * (bins + 1);
    for (i64 bin = threadIdx.x; bin < bins; bin += blockDim.x) {
      sums[bin] = sums[bin] / (f64(at[bin + 1]) - f64(at[bin])) / f64(all);
    }
  }
}
#endif
