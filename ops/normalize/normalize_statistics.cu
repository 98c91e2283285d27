// Sums of a team's elements, and the statistics made of them. normalize.cu comes before this.

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

#if COLUMNS
constexpr int kShared = (V > 1 ? 2 * V : 3) * THREADS;
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
constexpr int kShared = 3 * 32;
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

/// Some elements of a slice: how many, and their moments.
struct Moments {
  f64 count, mean, m2;
};
/// Sums over elements of 1, of distances r = x - origin, and of their squares.
struct Three {
  f64 count, first, second;
};
struct AddThree {
  Three operator()(const Three& x, const Three& y) const {
    return {x.count + y.count, x.first + y.first, x.second + y.second};
  }
};
/// What the sums say. Squares lose few bits where the origin is one of the elements: sum(r^2) is at
/// most n + 1 times the sum about the mean.
inline Moments moments_from(f64 origin, const Three& sums, f64 per_element) {
  if (GIVEN_MEAN) return {sums.count, origin, sums.second};
  const f64 shift = sums.first * per_element, squares = __fma_rn(-sums.first, shift, sums.second);
  return {sums.count, origin + shift, squares < 0 ? 0 : squares};  // NaN stays
}
/// What squares of parts are summed about, by the mean of one of them.
inline f64 origin_of(f64 mean) { return GIVEN_MEAN ? mean : finite_or_zero(mean); }
/// Adds the elements of a part, if it has any, to the sums.
inline void add(f64& first, f64& second, f64 origin, const Moments& part) {
  const f64 r = GIVEN_MEAN || part.count == 0 ? 0 : part.mean - origin;
  first = __fma_rn(part.count, r, first);
  second += __fma_rn(part.count, r * r, part.m2);
}
