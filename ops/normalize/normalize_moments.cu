// Slices that are too long for one block: moments of each unit, merged by slice; normalize_apply.cu
// then applies them. normalize_results.cu comes before this.

template <bool Full>
struct Batch {
  static constexpr bool full = Full;
};

/// Moments of the elements of a thread: squares are summed about its first.
inline void own_moments(Moments* moments, const Packs& packs, const Walk& walk,
                        const Known* known) {
  f64 origin[kOwn];
  Sums<2> sums{};
  const auto add = [&](auto batch, int start) {
    InPack x[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      if (batch.full || start + i < walk.items) x[i] = packs[start + i];
    }
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      if (start != 0) continue;
      origin[k] = GIVEN_MEAN ? given_mean(known[k])
                             : finite_or_zero(distance(x[0].at[k], known[k]));
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      if (!batch.full && start + i >= walk.items) continue;
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const f64 r = distance(x[i].at[k], known[own(k)]) - origin[own(k)];
        if (!GIVEN_MEAN) sums.at[0][own(k)] += r;
        if (!GIVEN_STD) sums.at[1][own(k)] = __fma_rn(r, r, sums.at[1][own(k)]);
      }
    }
  };
  int start = 0;
#pragma unroll 1
  for (; start + PACKS <= walk.items; start += PACKS) add(Batch<true>(), start);
  if (start < walk.items) add(Batch<false>(), start);
  const f64 count = f64(max(walk.items, 0) * (COLUMNS ? 1 : V)), per_element = 1 / count;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    moments[k] = {};
    if (count > 0)
      moments[k] = moments_from(origin[k], {count, sums.at[0][k], sums.at[1][k]}, per_element);
  }
}

/// Slices of a unit.
inline int width_of(const Work& w) { return COLUMNS ? int(min(w.columns, w.chunk * V)) : 1; }

/// Those of a unit, from its threads', about the mean of one of them.
inline void unit_moments(Moments* own, const Work& w, const Walk& walk, f64* shared) {
  const int width = width_of(w), place = COLUMNS ? threadIdx.x % int(w.chunk) * V : 0;
  __syncthreads();  // of the unit before, some may still be reading
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    if (walk.lane == 0 && place + k < width) shared[place + k] = own[k].mean;
  __syncthreads();
  Sums<2> sums{};
  f64 origin[kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    origin[k] = origin_of(shared[w.depth == 1 ? place + k : (place + k) % width]);
    add(sums.at[0][k], sums.at[1][k], origin[k], own[k]);
  }
  sums = team_sums(sums, w, walk, shared);
  const f64 count = f64((walk.last - walk.first) * w.depth);
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    own[k] = moments_from(origin[k], {count, sums.at[0][k], sums.at[1][k]}, 1 / count);
}

/// The sums over the lanes that threads i, i + width, .. are, by a fixed tree.
inline Three lane_sums(Three x, int width, f64* shared) {
#if COLUMNS
  const int lane = threadIdx.x / width, lanes = THREADS / width;
  Three* const all = reinterpret_cast<Three*>(shared);
  __syncthreads();  // an earlier call may still be reading
  all[threadIdx.x] = x;
  int step = 1;
  while (step < lanes)
    step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    __syncthreads();
    if (lane < step && lane + step < lanes)
      all[threadIdx.x] = AddThree()(all[threadIdx.x], all[threadIdx.x + step * width]);
  }
  __syncthreads();
  return all[threadIdx.x % width];
#else
  return block_reduce(x, AddThree(), reinterpret_cast<Three*>(shared));
#endif
}

/// What `count` parts are together, parts[p * width + column]. Threads i, i + width, .. get column
/// i.
inline Moments merge(const Moments* parts, int count, int width, f64* shared) {
  const int column = threadIdx.x % width, lane = threadIdx.x / width, lanes = THREADS / width;
  // Other multiprocessors wrote them: past the first-level cache.
  const auto load = [&](int p) {
    const volatile f64* const part = &parts[p * width + column].count;
    return Moments{part[0], part[1], part[2]};
  };
  const f64 origin = origin_of(load(0).mean);
  Three sums{};
  constexpr int kAtOnce = 4;  // on their way
  for (int first = lane; lane < lanes && first < count; first += kAtOnce * lanes) {
    Moments x[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * lanes < count) x[i] = load(first + i * lanes);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      sums.count += x[i].count;
      add(sums.first, sums.second, origin, x[i]);
    }
  }
  sums = lane_sums(sums, width, shared);
  return moments_from(origin, sums, 1 / sums.count);
}

/// Whether this block is the last of `count` that come here. The counter is 0 before and after.
inline bool comes_last(u32* counter, i64 count) {
  __shared__ bool is_last;
  __syncthreads();  // what the block wrote is written
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(counter, u32(count - 1)) == u32(count - 1);
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

/// The last unit of a bundle merges that, the last bundle of a strip its slices.
inline void merge_strip(Moments* partials, Scale* scales, u32* done, const Work& w,
                        const Walk& walk, const Settings& q, f64* shared) {
  const int width = width_of(w);
  const i64 strip = walk.strip, parts = parts_of(w), bundle = quotient(walk.part, w.bundle);
  const int in_bundle = int(min(w.bundle, parts - bundle * w.bundle));
  u32* const counters = done + strip * (w.bundles + 1);
  if (!comes_last(counters + 1 + bundle, in_bundle)) return;
  const Moments* const units = partials + (strip * parts + bundle * w.bundle) * width;
  Moments all = merge(units, in_bundle, width, shared);
  if (w.bundles > 1) {
    Moments* const bundles = partials + (unit_count(w) + strip * w.bundles) * width;
    if (threadIdx.x < width) bundles[bundle * width + threadIdx.x] = all;
    if (!comes_last(counters, w.bundles)) return;
    all = merge(bundles, int(w.bundles), width, shared);
  }
  const i64 column = COLUMNS ? (strip - walk.group * w.chunks) * w.chunk * V + threadIdx.x : 0;
  const i64 slice = walk.group * w.columns + column;
  if (threadIdx.x < width && column < w.columns)
    scales[slice] = {all.mean, divisor_of(all.m2, GIVEN_STD ? value_of(q.std, slice) : 0, q)};
}

/// partials: those of units, strip by strip, width_of(w) each, and behind them those of bundles;
/// `done` counts them: a strip's bundles, then the units of each; 0 before and after.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    normalize_moments(const __grid_constant__ Load load, const __grid_constant__ Store store,
                      Moments* partials, Scale* scales, u32* done, const __grid_constant__ Work w,
                      const __grid_constant__ Settings q) {
  __shared__ f64 shared[kShared];
  const i64 units = unit_count(w);
  let_next_kernel_start();  // normalize_apply reads what it needs first while the last units end
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Walk walk(w, unit, threadIdx.x);
    const Packs packs(load, store, w, walk);
    Known known[kOwn];
    look_up(known, load, q, w, walk);
    Moments own[kOwn];
    own_moments(own, packs, walk, known);
    unit_moments(own, w, walk, shared);
    const int width = width_of(w);
    Moments* const mine = partials + (walk.strip * parts_of(w) + walk.part) * width;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const int column = COLUMNS ? threadIdx.x * V + k : 0;
      if (walk.lane == 0 && column < width) mine[column] = own[k];
    }
    merge_strip(partials, scales, done, w, walk, q, shared);
  }
}
