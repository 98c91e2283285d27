// The range of the data and the edges in it, for histograms without `range` and `edges`. slices.cu
// and histogram_search.cu (for the extremes: histogram_runs.cu) come before this. Options: EXTREMES
// or EDGES  1: the kernel that is wanted; only it is compiled.

struct Extremes {
  Key least, greatest;
};

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
  Key operator()(Key x, Key y) const { return y < x ? y : x; }
};
struct Greatest {
  Key operator()(Key x, Key y) const { return x < y ? y : x; }
};

#if EXTREMES
struct Bounds {
  Key least = highest<Key>(), greatest = lowest<Key>();

  template <int N>
  void operator()(const Pack<Value, N>& pack) {
#pragma unroll
    for (const Value value : pack.at) {
      const Key x = key_of(value);
      if (is_float<Key> && !isfinite(f64(x))) continue;
      least = Least()(least, x);
      greatest = Greatest()(greatest, x);
    }
  }
};

/// The least and greatest finite value of each column of each unit: partials[unit * chunk +
/// column].
extern "C" __global__ void __launch_bounds__(BLOCK)
    histogram_extremes(const __grid_constant__ LoadX in, Extremes* __restrict__ partials,
                       const __grid_constant__ Slices s, const __grid_constant__ Tiling t) {
  __shared__ Key shared[BLOCK];
  const i64 units = unit_count(s, t);
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    Bounds bounds;
#if COLUMNS
    for_columns(in, s, p, bounds);
#else
    const i64 slice = quotient(unit, t.blocks);
    const i64 start = RUNS ? offset_of(slice, s.kept, s.kept_count) : slice * s.rows;
    for_slice(in, s, start, u32(unit - slice * t.blocks), u32(t.blocks), threadIdx.x, bounds);
#endif
    const Key least = column_reduce(bounds.least, p, t.chunk, Least(), shared);
    const Key greatest = column_reduce(bounds.greatest, p, t.chunk, Greatest(), shared);
    if (p.active && p.lane == 0) partials[unit * t.chunk + p.column] = {least, greatest};
  }
}

#else
/// Where the partials of a slice's first block are; its next block's are `chunk` further.
inline i64 first_place(const Slices& s, const Tiling& t, i64 slice) {
  const i64 group = quotient(slice, s.columns), column = slice - group * s.columns;
  const i64 chunk = quotient(column, t.chunk);
  return (group * t.chunks + chunk) * t.blocks * t.chunk + (column - chunk * t.chunk);
}

/// A block for each slice: its edges, between the extremes in `partials`.
extern "C" __global__ void __launch_bounds__(256)
    histogram_edges(const Extremes* __restrict__ partials, Edge* __restrict__ edges,
                    const __grid_constant__ Slices s, const __grid_constant__ Tiling t, i64 bins) {
  __shared__ Key shared[8];
  const i64 slices = slice_count(s);
  for (i64 slice = blockIdx.x; slice < slices; slice += gridDim.x) {
    Edge low = 0, high = 1;
    Key least = highest<Key>(), greatest = lowest<Key>();
    const i64 place = first_place(s, t, slice);
    for (i64 b = threadIdx.x; b < t.blocks; b += blockDim.x) {
      least = Least()(least, partials[place + b * t.chunk].least);
      greatest = Greatest()(greatest, partials[place + b * t.chunk].greatest);
    }
    least = block_reduce(least, Least(), shared);
    greatest = block_reduce(greatest, Greatest(), shared);
    if (least <= greatest) {
      low = Edge(least);
      high = Edge(greatest);
      if (is_below(least, low)) low = next(low, false);
      if (is_above(greatest, high)) high = next(high, true);
      if (low == high) {
        low -= Edge(0.5);
        high += Edge(0.5);
      }
    }
    const Range range(low, high, bins);
    for (i64 i = threadIdx.x; i <= bins; i += blockDim.x)
      edges[slice * (bins + 1) + i] = range.edge(bins, i);
  }
}
#endif
