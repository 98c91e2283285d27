// Transforms of rows on chip, with what is fused before and after them. Before this text come expr.cu, the structs Load
// and Store of the neighbours (expr/device_code.h), the constants of a plan (rows_source.cpp) and fft_points.cu.
//   Real      the type computed in
//   kLength   points of the complex transform of a row: n, or n / 2 where pairs of reals are its points
//   kThreads  of a row
//   kExtent   columns that x has
//   kScale    factor on the result
//   kInverse  exponent +2 pi i
//   kMirror   real x whose result has all kPoints frequencies
// A row's elements lie in registers, some for each thread. A pass transforms those at equal distances, `lines` lines of
// `Radix` points (Stockham's order: the result of the last pass is in order); between two passes the row goes through
// shared memory once.

// ---- Passes.

/// A pass after passes whose radices multiply to `Before`. `Pairs`: a thread's lines are j and lines - j in turn, as
/// the split of a real transform wants them, else every kThreads-th.
template <int Radix_, int Before_, bool Pairs = false>
struct Pass {
  static constexpr int Radix = Radix_, Before = Before_, kLines = kLength / Radix;
  static constexpr bool kPairs = Pairs;
  static constexpr int kShares = Pairs ? kLines / 2 : kLines;       // lines, or pairs of them, to share out
  static constexpr int kEach = (kShares + kThreads - 1) / kThreads * (Pairs ? 2 : 1);  // lines of a thread
  static constexpr bool kWhole = kShares % kThreads == 0;           // every thread has as many
  /// The number of thread t's line b; kLines where there is none.
  static int line(int t, int b) {
    if constexpr (!Pairs) return kWhole || t + kThreads * b < kLines ? t + kThreads * b : kLines;
    const int j = t + kThreads * (b / 2);
    if (!kWhole && j >= kShares) return kLines;
    return b % 2 == 0 ? j : j == 0 ? kLines / 2 : kLines - j;
  }
};

/// Waits for the other threads of the row, and for what they wrote.
inline void meet() {
  if constexpr (32 % kThreads == 0) __syncwarp();
  else __syncthreads();
}

/// Where a row's elements lie in shared memory: Gap words are left out after every Every, against bank conflicts.
template <int Every, int Gap>
struct Padding {
  static int place(int i) { return i + i / Every * Gap; }
  /// From the place of an element to those Step, 2 Step, .. on, where all distances are the same: for runs inside
  /// Every, or of whole ones. 0 where they are not.
  template <int Step, bool Inside>
  static constexpr int kStep = Gap == 0 || Inside ? Step : Step % Every == 0 ? Step + Step / Every * Gap : 0;
};
/// f(r, place of element first + Shift + Step * r), r < N.
template <int N, class Pad, int Shift, int Step, bool Inside, class F>
inline void each_place(C* row, int first, F f) {
  constexpr int kStep = Pad::template kStep<Step, Inside>, kShift = Pad::template kStep<Shift, false>;
  C* const at = Shift == 0 || kShift != 0 ? row + Pad::place(first) + kShift : row + Pad::place(first + Shift);
  repeat<N>([&](auto r) {
    f(r, kStep != 0 ? at + kStep * r.value : row + Pad::place(first + Shift + Step * r.value));
  });
}

template <class P>
inline void transform_lines(C (&v)[P::kEach][P::Radix]) {
  repeat<P::kEach>([&](auto b) { transform(v[b.value]); });
}

/// From pass P to pass Q, which multiplies its input with roots[(r - 1) * Q::Before + j % Q::Before].
template <class P, class Q, int Every, int Gap>
inline void exchange(const C (&v)[P::kEach][P::Radix], C (&w)[Q::kEach][Q::Radix], C* row, int t, const C* roots) {
  using Pad = Padding<Every, Gap>;
  constexpr int kBlock = P::Before * P::Radix;  // what a line and those beside it fill
  repeat<P::kEach>([&](auto index) {
    constexpr int b = index.value;
    // Where lines of a thread differ by whole blocks, their places differ by a constant.
    constexpr int kShift = kThreads % P::Before == 0 ? kThreads / P::Before * kBlock * b : 0;
    const int j = P::line(t, b), first = kShift != 0 ? t : j;
    if (!P::kWhole && j >= P::kLines) return;
    each_place<P::Radix, Pad, kShift, P::Before, Every % kBlock == 0>(
        row, first / P::Before * kBlock + first % P::Before, [&](auto r, C* place) { *place = v[b][r.value]; });
  });
  meet();
  repeat<Q::kEach>([&](auto index) {
    constexpr int b = index.value;
    constexpr int kShift = Q::kWhole && !Q::kPairs ? kThreads * b : 0;
    const int line = Q::line(t, b), j = Q::kWhole || line < Q::kLines ? line : 0;
    each_place<Q::Radix, Pad, kShift, Q::kLines, false>(row, kShift != 0 ? t : j,
                                                        [&](auto r, C* place) { w[b][r.value] = *place; });
    const C* const root = roots + (kShift % Q::Before == 0 && kShift != 0 ? t : j) % Q::Before;
    repeat<Q::Radix - 1>([&](auto r) {
      w[b][r.value + 1] = turn(w[b][r.value + 1], root[r.value * Q::Before]);
    });
  });
}

// ---- What the first pass reads.
/// f(b, r, k) for point r of this thread's line b, which is point k of the row.
template <class P, class F>
inline void each_point(int t, F f) {
  repeat<P::kEach>([&](auto b) {
    constexpr int kLine = b.value;
    const int line = P::line(t, kLine);
    const i64 j = P::kWhole || line < P::kLines ? line : 0;  // 64 bits: what is added is then part of an access
    repeat<P::Radix>([&](auto r) { f(Int<kLine>{}, r, j + P::kLines * r.value); });
  });
}
template <class P, class F>
inline void read_lines(C (&v)[P::kEach][P::Radix], int t, F element) {
  each_point<P>(t, [&](auto b, auto r, i64 k) { v[b.value][r.value] = element(k); });
}

/// An element of x as a complex number of the type computed in.
template <class T>
inline C complex_of(T x) {
  if constexpr (is_complex<T>) return {Real(x.re), Real(x.im)};
  else return {saturate_cast<Real>(x), 0};
}
/// Column k, or zero where x has none.
template <class Row>
inline C column(const Row& x, i64 k, int columns) {
  return columns <= kExtent || k < kExtent ? complex_of(x.at(k)) : C{};
}

/// The row with its word `whole`, known to the compiler: one branch for all packs of a row, instead of one for each.
template <class Row>
inline Row with_whole(Row row, int whole) {
  row.whole = whole;
  return row;
}

/// Points of N columns, by `point(pack)`: all are on their way before the first is computed.
template <class P, int N, class Row, class F>
inline void read_packs(C (&v)[P::kEach][P::Radix], int t, const Row& row, F point) {
  constexpr int kColumns = N * kLength;
  typename Row::template Fetched<N> fetched[P::kEach][P::Radix];
  const auto is_inside = [](i64 k) { return kColumns <= kExtent || N * k + N <= kExtent; };
  const auto fetch = [&](const Row& x) {
    each_point<P>(t, [&](auto b, auto r, i64 k) {
      if (is_inside(k)) fetched[b.value][r.value] = x.template fetch<N>(k);
    });
  };
  N > 1 && row.whole >= N ? fetch(with_whole(row, N)) : fetch(with_whole(row, 1));
  each_point<P>(t, [&](auto b, auto r, i64 k) {
    v[b.value][r.value] = is_inside(k) ? point(row.template values<N>(fetched[b.value][r.value]))
                                       : column(row, N * k, kColumns);
  });
}

/// Real x of even length: neighbours are one point.
template <class P, class Row>
inline void read_pairs(C (&v)[P::kEach][P::Radix], int t, const Row& row) {
  read_packs<P, 2>(v, t, row, [](const auto& pair) -> C {
    return {saturate_cast<Real>(pair.at[0]), saturate_cast<Real>(pair.at[1])};
  });
}

/// x as it is; an inverse transform of complex x is the forward one of re and im exchanged, before and after.
template <class P, class Row>
inline void read_points(C (&v)[P::kEach][P::Radix], int t, const Row& row) {
  read_packs<P, 1>(v, t, row, [](const auto& pack) { return complex_of(pack.at[0]); });
  if (kInverse && is_complex<typename Load::Value>) {
    each_point<P>(t, [&](auto b, auto r, i64) { v[b.value][r.value] = swapped(v[b.value][r.value]); });
  }
}

/// Half a spectrum of a real result of odd length, whole again.
template <class P, class Row>
inline void read_hermitian(C (&v)[P::kEach][P::Radix], int t, const Row& x) {
  read_lines<P>(v, t, [&](i64 k) -> C {
    const bool upper = 2 * k > kLength;
    const C z = column(x, upper ? kLength - k : k, kLength / 2 + 1);
    return swapped({z.re, k == 0 ? 0 : upper ? -z.im : z.im});
  });
}

/// Half a spectrum of a real result of even length n = 2 kLength, for a transform of half the length whose points are
/// pairs of the result: with a = x[k] and b = conj x[kLength - k], s (a + b) + roots[k] (a - b), where
/// roots[k] = i s exp(2 pi i k / n).
template <class P, class Row>
inline void read_halves(C (&v)[P::kEach][P::Radix], int t, const Row& x, const C* roots) {
  read_lines<P>(v, t, [&](i64 k) -> C {
    C a = column(x, k, kLength + 1), b = column(x, kLength - k, kLength + 1);
    if (k == 0) a.im = b.im = 0;
    const C d = turn({a.re - b.re, a.im + b.im}, roots[k]);
    return {fused(a.im - b.im, kScale, d.im), fused(a.re + b.re, kScale, d.re)};  // exchanged
  });
}

// ---- What the last pass writes.
template <class P, class F>
inline void write_lines(const C (&v)[P::kEach][P::Radix], int t, F put) {
  repeat<P::kEach>([&](auto index) {
    constexpr int b = index.value;
    const i64 j = P::line(t, b);
    if (!P::kWhole && j >= P::kLines) return;
    repeat<P::Radix>([&](auto r) { put(j + P::kLines * r.value, v[b][r.value]); });
  });
}

template <class P, class Row>
inline void write_points(const C (&v)[P::kEach][P::Radix], int t, const Row& out) {
  write_lines<P>(v, t, [&](i64 k, C z) { out.put(k, (kInverse ? swapped(z) : z) * kScale); });
}

/// Frequency k of a real x, and its conjugate where the result has it.
template <class Row>
inline void put_frequency(const Row& out, i64 k, C z) {
  if (kInverse) z = conj(z);
  out.put(k, z);
  if (kMirror && k > 0 && 2 * k < kPoints) out.put(kPoints - k, conj(z));
}

/// The lower half of the frequencies of a real x.
template <class P, class Row>
inline void write_frequencies(const C (&v)[P::kEach][P::Radix], int t, const Row& out) {
  write_lines<P>(v, t, [&](i64 k, C z) {
    if (2 * k <= kLength) put_frequency(out, k, z * kScale);
  });
}

/// A real result of odd length.
template <class P, class Row>
inline void write_reals(const C (&v)[P::kEach][P::Radix], int t, const Row& out) {
  write_lines<P>(v, t, [&](i64 k, C z) { out.put(k, z.im * kScale); });
}

/// A real result of even length.
template <class P, class Row>
inline void write_pairs(const C (&v)[P::kEach][P::Radix], int t, const Row& out) {
  const auto write = [&](const Row& to) {
    write_lines<P>(v, t, [&](i64 k, C z) { to.template put_pack<2>(k, Pack<Real, 2>{z.im, z.re}); });
  };
  out.whole >= 2 ? write(with_whole(out, 2)) : write(with_whole(out, 1));
}

/// Writes the rows of a block from `first` on, side by side, where those of one thread or row would lie apart:
/// `write` puts this thread's part into a row that is in shared memory; from there they go out together.
template <int Rows, int Columns, class F>
inline void write_together(const Store& store, void* memory, i64 first, i64 rows, F write) {
  using Stored = typename Store::Stored;
  Stored* const stage = static_cast<Stored*>(memory);
  const i64 place = threadIdx.x / kThreads;
  auto row = store.row(first + place < rows ? first + place : rows - 1);
  row.out = stage + place * Columns;
  row.whole = 1;
  __syncthreads();
  write(row);
  __syncthreads();
  Stored* const out = store.out + first * Columns;
  const int count = int(rows - first < Rows ? rows - first : Rows) * Columns;
  constexpr int kPack = 16 / sizeof(Stored);
  const int packs = u64(out) % 16 == 0 ? count / kPack : 0;
  for (int i = threadIdx.x; i < packs; i += Rows * kThreads) {
    reinterpret_cast<uint4*>(out)[i] = reinterpret_cast<const uint4*>(stage)[i];
  }
  for (int i = packs * kPack + threadIdx.x; i < count; i += Rows * kThreads) out[i] = stage[i];
}

// ---- A real x of even length n = 2 kLength: its frequencies from the transform of its pairs.

/// Frequencies k and kLength - k from z[k] = p and z[kLength - k] = q (for k = 0 both are z[0]):
/// s (p + conj q) + w (p - conj q), and the conjugate of the difference, with s = kScale / 2 and
/// w = -i s exp(-2 pi i k / n).
template <class Row>
inline void put_pair(const Row& out, i64 k, C p, C q, C w) {
  const C e = {p.re + q.re, p.im - q.im}, d = turn({p.re - q.re, p.im + q.im}, w);
  put_frequency(out, k, C{fused(e.re, kScale / 2, d.re), fused(e.im, kScale / 2, d.im)});
  put_frequency(out, kLength - k, C{fused(e.re, kScale / 2, -d.re), -fused(e.im, kScale / 2, -d.im)});
}
template <class Row>
inline void put_middle(const Row& out, C z) {
  put_frequency(out, kLength / 2, C{z.re * kScale, z.im * -kScale});
}

/// From the last pass's registers, of an even radix and an even number of lines: points j + kLines * r of lines j and
/// kLines - j are each other's partners; lines 0 and kLines / 2, both of thread 0, are their own.
template <class P, class Row>
inline void split_registers(const C (&v)[P::kEach][P::Radix], int t, const C* roots, const Row& out) {
  constexpr int R = P::Radix;
  repeat<P::kEach / 2>([&](auto index) {
    constexpr int g = index.value;
    const C(&a)[R] = v[2 * g];
    const C(&b)[R] = v[2 * g + 1];
    const i64 j = t + kThreads * g;
    if (!P::kWhole && j >= P::kShares) return;
    const bool own = g == 0 && t == 0;
    const i64 upper = own ? P::kLines / 2 : j;
    repeat<R>([&](auto r) {
      C p = a[r.value], q = b[R - 1 - r.value];
      if constexpr (g == 0 && r.value < R / 2) {
        if (own) q = a[(R - r.value) % R];
      } else if constexpr (g == 0) {
        if (own) p = b[r.value];
      }
      const i64 k = (r.value < R / 2 ? j : upper) + P::kLines * r.value;
      put_pair(out, k, p, q, roots[k]);
    });
    if (own) put_middle(out, a[R / 2]);
  });
}

/// Through shared memory. `there`: whether this thread has a row to write.
template <class P, class Row>
inline void split_shared(const C (&v)[P::kEach][P::Radix], C* row, int t, const C* roots, const Row& out,
                         bool there) {
  meet();
  write_lines<P>(v, t, [&](i64 k, C z) { row[k] = z; });
  meet();
  if (!there) return;
#pragma unroll
  for (int k = t; k < (kLength + 1) / 2; k += kThreads) {
    put_pair(out, k, row[k], row[k == 0 ? 0 : kLength - k], roots[k]);
  }
  if (kLength % 2 == 0 && t == 0) put_middle(out, row[kLength / 2]);
}
