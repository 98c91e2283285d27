// Which elements a thread has. Before this come expr.cu, the structs Load and Store (what is fused
// before and behind) and slices.cu; behind it normalize_statistics.cu, normalize_results.cu and a
// kernel: normalize_slices.cu, or normalize_moments.cu and normalize_apply.cu. Options:
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
  i64 bundle, bundles;      // units along a slice that are merged at once; how many times that is
};

/// Units along a slice.
inline i64 parts_of(const Work& w) { return w.runs * w.blocks; }
inline i64 unit_count(const Work& w) { return w.s.groups * w.chunks * parts_of(w); }
/// Rows of all runs, or of one where units stay in one.
inline i64 rows_of(const Work& w) { return w.runs == 1 ? w.s.outer * w.s.rows : w.s.rows; }

/// What one thread has of a unit: packs at one place of rows first + lane, first + lane + lanes, ..
/// Units that lie side by side in memory follow each other.
struct Walk {
  i64 strip, part;   // the chunk of a group that the unit is of; its number along that
  i64 group, place;  // element of the row that its packs begin with
  i64 start;         // elements to the group's first
  i64 offset;        // elements to the place in row 0 of the unit's run
  i64 first, last;   // rows of the unit
  int lane, lanes, items;
  int skip;         // elements of the first pack that are not the slice's
  i64 slice[kOwn];  // of the elements of a pack

  Walk(const Work& w, i64 unit, int thread) {
    const i64 above = COLUMNS ? quotient(unit, w.chunks) : unit, chunk = unit - above * w.chunks;
    i64 run = 0;
    group = above;
    part = first = 0;
    if (!SLICES) {
      group = quotient(above, parts_of(w));
      part = above - group * parts_of(w);
      run = w.runs == 1 ? 0 : quotient(part, w.blocks);
      first = (part - run * w.blocks) * w.block;
    }
    strip = COLUMNS ? group * w.chunks + chunk : group;
    last = min(first + w.block, rows_of(w));
    lane = thread;
    lanes = TEAM;
    place = 0;
    if (COLUMNS) {
      const int width = int(w.chunk);
      lane = thread / width;
      lanes = TEAM / width;
      place = (chunk * w.chunk + (thread - lane * width)) * V;
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
