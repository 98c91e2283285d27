// What the kernels of normalize share: normalize_slices.cu, or normalize_moments.cu and
// normalize_apply.cu. Before this come expr.cu, the structs Load and Store (what is fused before
// and behind) and slices.cu. Options:
//   SLICES      1: units are whole slices, 0: parts of them
//   NARROW      1: f32 arithmetic gives the result (elements are exact in it), 0: f64
//   GIVEN_MEAN, GIVEN_STD  1: the settings have it; EPSILON_PLACE: 0 variance, 1 std, 2 floor
//   V           elements of a pack: an access
//   COLUMNS     1: the elements of a pack are in several slices, 0: in one
//   LINEAR      1: the packs of a unit are evenly apart, 0: a unit runs over several runs
//   ROW_AXIS    1: a slice is a row of the last axis, 0: packs are counted from the array's start
//   RAGGED      1: slices begin and end within packs, which they then share with their neighbours
//   THREADS     of a block; BLOCKS: at once on a multiprocessor; TEAM: threads that share a unit
//   PACKS       that a thread keeps in registers; EXACT 1: neither more nor less
// The statistics are those of normalize_cpu.cpp, in another order of summation: see statistics.h.

using In = Load::Value;
using Out = Store::Value;
using InPack = Pack<In, V>;
using OutPack = Pack<Out, V>;
constexpr int kOwn = COLUMNS ? V : 1;  // slices that a thread has elements of
inline int own(int k) { return COLUMNS ? k : 0; }
constexpr bool kShuffled = !COLUMNS && TEAM <= 32;  // teams are parts of warps

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
  f64 length, per_element;  // n of a slice; 1 / n
  f64 per_degree;           // 1 / (n - ddof), NaN where that is not positive
  i64 zero;                 // a divisor of 0 gives 0
};
struct Add {
  f64 operator()(f64 x, f64 y) const { return x + y; }
};
/// How the slices are cut into units, as on the host. A row here is as many whole rows of the array
/// as packs fill: s.columns elements of `columns` slices; positions and lengths count those.
struct Work {
  Slices s;
  i64 columns, depth;       // depth: elements of a slice in a row
  i64 chunk, chunks;        // packs of a unit side by side; units side by side
  i64 block, blocks, runs;  // rows of a unit; units along a run; runs of a slice, 1 for LINEAR 0
};

inline i64 unit_count(const Work& w) { return w.s.groups * w.chunks * w.runs * w.blocks; }
/// Rows of all runs, or of one where units stay in one.
inline i64 rows_of(const Work& w) { return w.runs == 1 ? w.s.outer * w.s.rows : w.s.rows; }

/// What one thread has of a unit: packs at one place of rows first + lane, first + lane + lanes, ..
struct Walk {
  i64 group, place;  // element of the row that its packs begin with
  i64 start;         // elements to the group's first
  i64 offset;        // elements to the place in row 0 of the unit's run
  i64 first, last;   // rows of the unit
  int lane, lanes, items;
  int skip;         // elements of the first pack that are not the slice's
  i64 slice[kOwn];  // of the elements of a pack

  Walk(const Work& w, i64 unit, int thread) {
    i64 strip = unit, run = 0;
    group = unit;
    first = 0;
    if (!SLICES) {
      strip = quotient(unit, w.blocks);
      first = (unit - strip * w.blocks) * w.block;
      group = quotient(strip, w.runs);
      run = strip - group * w.runs;
    }
    last = min(first + w.block, rows_of(w));
    lane = thread;
    lanes = TEAM;
    place = 0;
    if (COLUMNS) {
      const i64 all = group;
      group = quotient(all, w.chunks);
      const int chunk = int(w.chunk);
      lane = thread / chunk;
      lanes = TEAM / chunk;
      place = ((all - group * w.chunks) * w.chunk + (thread - lane * chunk)) * V;
    }
    start = offset_of(group, w.s.kept, w.s.kept_count);
    offset = start + place;
    if (run != 0) offset += offset_of(run, w.s.reduced, w.s.reduced_count);
    skip = RAGGED ? int(start % V) : 0;
    if (RAGGED) last = (skip + w.s.rows + V - 1) / V;
    items = int((last - first - lane + lanes - 1) / lanes);
    if (COLUMNS && (lane >= lanes || place >= w.s.columns)) items = 0;
    if (EXACT) items = PACKS;
    slice[0] = group;
#pragma unroll
    for (int k = 0; COLUMNS && k < kOwn; ++k) slice[k] = group * w.columns + column(w, k);
  }
  bool has(int i) const { return EXACT || i < items; }
  /// Whether element k of pack i is the slice's, and whether all are.
  bool has(const Work& w, int i, int k) const {
    return !RAGGED || u32((lane + i * lanes) * V + k - skip) < u32(w.s.rows);
  }
  bool has_all(const Work& w, int i) const { return has(w, i, 0) && has(w, i, V - 1); }
  /// Of element k of its packs. A row of several rows of the array is short.
  i64 column(const Work& w, int k) const {
    return w.depth == 1 ? place + k : i64(u32(place + k) % u32(w.columns));
  }
};

/// The packs of a walk, in order.
struct Packs {
#if ROW_AXIS
  Load::Row from;
  Store::Row to;
  int at, step;
  Packs(const Load& load, const Store& store, const Work& w, const Walk& walk)
      : from(load.row(walk.group)), to(store.row(walk.group)), at(walk.first + walk.lane),
        step(walk.lanes) {}
  InPack operator[](int i) const { return from.template pack<V>(at + i * step); }
  void put(int i, const OutPack& values) const { to.put_pack(at + i * step, values); }
#elif RAGGED
  const Load& from;
  const Store& to;
  const Work& w;
  const Walk& walk;
  i64 at;
  Packs(const Load& load, const Store& store, const Work& work, const Walk& own)
      : from(load), to(store), w(work), walk(own), at(own.start / V + own.lane) {}
  InPack operator[](int i) const {
    const i64 p = at + i * walk.lanes;
    if ((p + 1) * V <= w.s.groups * w.s.rows) return from.template pack<V>(p);
    InPack values{};
    for (int k = 0; k < V; ++k) {
      if (walk.has(w, i, k)) values.at[k] = from.at(p * V + k);
    }
    return values;
  }
  void put(int i, const OutPack& values) const {
    const i64 p = at + i * walk.lanes;
    if (walk.has_all(w, i)) return to.put_pack(p, values);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      if (walk.has(w, i, k)) to.put(p * V + k, values.at[k]);
    }
  }
#elif LINEAR
  const Load& from;
  const Store& to;
  i64 at;
  i64 step;
  Packs(const Load& load, const Store& store, const Work& w, const Walk& walk)
      : from(load), to(store), step(walk.lanes * w.s.columns / V) {
    at = (walk.offset + (walk.first + walk.lane) * w.s.columns) / V;
  }
  InPack operator[](int i) const { return from.template pack<V>(at + i * step); }
  void put(int i, const OutPack& values) const { to.put_pack(at + i * step, values); }
#else
  const Load& from;
  const Store& to;
  const Slices& s;
  const Walk& walk;
  Packs(const Load& load, const Store& store, const Work& w, const Walk& own)
      : from(load), to(store), s(w.s), walk(own) {}
  i64 place(int i) const {
    const i64 row = walk.first + walk.lane + i64(i) * walk.lanes, run = quotient(row, s.rows);
    return (walk.offset + offset_of(run, s.reduced, s.reduced_count) +
            (row - run * s.rows) * s.columns) / V;
  }
  InPack operator[](int i) const { return from.template pack<V>(place(i)); }
  void put(int i, const OutPack& values) const { to.put_pack(place(i), values); }
#endif
};

// ---- Sums of a team's values, in a fixed order. Every thread gets those of its slices.

/// N sums for each slice that a thread has elements of.
template <int N>
struct Sums {
  f64 at[N][kOwn];
};
template <int N>
struct AddAll {
  Sums<N> operator()(Sums<N> x, const Sums<N>& y) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int k = 0; k < kOwn; ++k) x.at[n][k] += y.at[n][k];
    }
    return x;
  }
};

/// The sum over the lanes (0, 1, .. lanes - 1) that threads i, i + stride, .. are, by a fixed tree.
inline f64 lane_sum(f64 x, int stride, int lane, int lanes, f64* shared) {
  __syncthreads();  // an earlier call may still be reading
  shared[threadIdx.x] = x;
  int step = 1;
  while (step < lanes)
    step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    __syncthreads();
    if (lane < step && lane + step < lanes)
      shared[threadIdx.x] += shared[threadIdx.x + step * stride];
  }
  __syncthreads();
  return shared[threadIdx.x % stride];
}

#if COLUMNS
constexpr int kShared = 2 * V * THREADS;
template <int N>
Sums<N> team_sums(const Sums<N>& x, const Work& w, const Walk& walk, f64* shared) {
  const int chunk = int(w.chunk), row = chunk * V, thread = threadIdx.x;
  __syncthreads();  // an earlier call may still be reading
#pragma unroll
  for (int i = 0; i < N * V; ++i) shared[i * THREADS + thread] = x.at[i / V][i % V];
  int step = 1;
  while (step < walk.lanes)
    step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    __syncthreads();
    if (walk.lane >= step || walk.lane + step >= walk.lanes) continue;
#pragma unroll
    for (int i = 0; i < N * V; ++i)
      shared[i * THREADS + thread] += shared[i * THREADS + thread + step * chunk];
  }
  __syncthreads();
  // A row may have a slice's elements in several places.
  const int columns = int(min(w.columns, i64(row)));
  Sums<N> sums{};
#pragma unroll
  for (int k = 0; k < V; ++k) {
    for (int i = (thread % chunk * V + k) % columns; i < row; i += columns) {
#pragma unroll
      for (int n = 0; n < N; ++n) sums.at[n][k] += shared[(n * V + i % V) * THREADS + i / V];
    }
  }
  return sums;
}
#else
constexpr int kShared = SLICES ? 2 * 32 : THREADS;
template <int N>
Sums<N> team_sums(Sums<N> x, const Work&, const Walk&, f64* shared) {
  if constexpr (TEAM > 32) {
    return block_reduce(x, AddAll<N>(), reinterpret_cast<Sums<N>*>(shared));
  } else {
#pragma unroll
    for (int step = 1; step < TEAM; step *= 2) {
      const Sums<N> other = shuffle_xor(x, step);
      x = threadIdx.x & step ? AddAll<N>()(other, x) : AddAll<N>()(x, other);
    }
    return x;
  }
}
#endif

// ---- Elements

inline f64 value_of(const Constant& constant, i64 slice) {
  return constant.table == nullptr
             ? constant.value
             : constant.table[slice - quotient(slice, constant.count) * constant.count];
}

inline f64 finite_or_zero(f64 x) { return isfinite(x) ? x : 0; }

/// What is known of one slice before its elements are read.
struct Known {
#if !NARROW && !GIVEN_MEAN
  In pivot;  // the slice's first element, 0 when that is not finite
#else
  static constexpr f64 pivot = 0;
#endif
  f64 mean, std;  // given ones
  f64 origin;     // what squares are summed about, where the mean is not known
};

/// An element as a distance from its slice's pivot. In f32 elements are what they are; others lose
/// nothing, or are rounded at 2^-53 of something no larger than std * sqrt(n).
inline f64 distance(In x, const Known& known) {
#if NARROW
  return f64(saturate_cast<f32>(x));
#elif GIVEN_MEAN
  return saturate_cast<f64>(x) - known.mean;
#else
  if constexpr (is_integer<In> && sizeof(In) == 8) {
    return x >= known.pivot ? f64(u64(x) - u64(known.pivot)) : -f64(u64(known.pivot) - u64(x));
  } else {
    return saturate_cast<f64>(x) - saturate_cast<f64>(known.pivot);
  }
#endif
}
/// The given mean likewise.
inline f64 given_mean(const Known& known) { return NARROW ? known.mean : 0; }

/// Fills `known` for a thread's slices.
inline void look_up(Known* known, const Load& load, const Settings& q, const Work& w,
                    const Walk& walk) {
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    known[k].origin = 0;
#if GIVEN_STD
    known[k].std = value_of(q.std, walk.slice[k]);
#endif
#if GIVEN_MEAN
    known[k].mean = value_of(q.mean, walk.slice[k]);
#elif !NARROW || (SLICES && !GIVEN_STD && (COLUMNS || TEAM > 32))
    const In first = load.at(walk.start + (COLUMNS ? walk.column(w, k) : 0));
#if NARROW
    known[k].origin = finite_or_zero(f64(saturate_cast<f32>(first)));
#else
    known[k].pivot = first;
    if constexpr (is_float<In>) {
      if (!isfinite(saturate_cast<f64>(first))) known[k].pivot = In();
    }
#endif
#endif
  }
}

// ---- Statistics

/// sum / n; of n equal numbers that number itself, as a division gives.
inline f64 mean_of(f64 sum, const Settings& q) {
  const f64 near = sum * q.per_element;
  return isfinite(near) ? __fma_rn(__fma_rn(-near, q.length, sum), q.per_element, near) : near;
}

/// For results in f32 within 2^-38: from 20 bits by one step of Newton's.
inline f64 root(f64 x) {
  if (!NARROW || !(x > 0x1p-900 && x < 0x1p900)) return sqrt(x);
  f64 inverse;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(x));
  const f64 near = x * inverse;
  return __fma_rn(__fma_rn(-near, near, x), 0.5 * inverse, near);
}

inline f64 divisor_of(f64 m2, f64 given_std, const Settings& q) {
#if GIVEN_STD
  const f64 std = given_std;
  if (EPSILON_PLACE == 0) return q.epsilon > 0 ? sqrt(std * std + q.epsilon) : std;
#else
  const f64 variance = m2 * q.per_degree;
  if (EPSILON_PLACE == 0) return root(variance + q.epsilon);
  const f64 std = root(variance);
#endif
  return EPSILON_PLACE == 1 ? std + q.epsilon : std < q.epsilon ? q.epsilon : std;
}

// ---- Results

/// A slice's scale as a thread uses it: on the f32 road where that loses nothing.
struct Apply {
  Scale scale;
  f32 high, low, divisor, reciprocal;
  bool fits;

  Apply() = default;
  Apply(f64 mean, f64 d) : scale{mean, d} {
    high = f32(mean);
    low = f32(mean - high);
    divisor = f32(d);
    reciprocal = 1 / divisor;
    fits = NARROW && fabs(mean) < 0x1p100 && d > 0x1p-100 && d < 0x1p100;
  }
  Out narrow(In x) const {
    const f32 d = (saturate_cast<f32>(x) - high) - low;
    if (GIVEN_STD) return saturate_cast<Out>(d / divisor);
    // The same for d no larger than divisor * sqrt(n): a quotient to the last bit (Markstein 1990).
    const f32 near = d * reciprocal;
    return saturate_cast<Out>(__fmaf_rn(__fmaf_rn(-near, divisor, d), reciprocal, near));
  }
  Out wide(In x, const Known& known, const Settings& q) const {
    if (q.zero && scale.divisor == 0) return saturate_cast<Out>(0.0);
    return saturate_cast<Out>((distance(x, known) - scale.mean) / scale.divisor);
  }
};

inline OutPack results_of(const InPack& x, const Apply* apply, const Known* known,
                          const Settings& q) {
  OutPack results;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    results.at[k] =
        NARROW ? apply[own(k)].narrow(x.at[k]) : apply[own(k)].wide(x.at[k], known[own(k)], q);
  }
  return results;
}

/// Results of all packs of a walk, one after the other, each on its road: where f32 does not give
/// some, which is rare, and where there are few.
inline void put_again(const Packs& packs, const Walk& walk, const Apply* apply, const Known* known,
                      const Settings& q) {
#pragma unroll 1
  for (int i = 0; i < walk.items; ++i) {
    const InPack x = packs[i];
    OutPack results;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const Apply& by = apply[own(k)];
      results.at[k] = by.fits ? by.narrow(x.at[k]) : by.wide(x.at[k], known[own(k)], q);
    }
    packs.put(i, results);
  }
}
