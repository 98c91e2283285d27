// Slices that are too long for one block: moments of each unit, merged by slice; normalize_apply.cu
// then applies them. normalize.cu comes before this.

template <bool Full>
struct Batch {
  static constexpr bool full = Full;
};

/// Scales of the slices of a strip (a chunk of a group) from the moments of its units, in their
/// order: two passes, about the first mean, so that equal elements give exactly 0.
inline void merge_strip(const Moments* partials, Scale* scales, i64 strip, int width, const Work& w,
                        const Settings& q, f64* shared) {
  const i64 rows = rows_of(w), group = COLUMNS ? quotient(strip, w.chunks) : strip;
  const i64 first = COLUMNS ? (strip - group * w.chunks) * w.chunk * V : 0;
  const int column = threadIdx.x % width, lane = threadIdx.x / width, lanes = THREADS / width;
  const int blocks = int(w.runs * w.blocks);
  // Other multiprocessors wrote them: past the first-level cache.
  const volatile f64* const mine = &partials[strip * blocks * width + column].mean;
  const i64 short_block = rows - (w.blocks - 1) * w.block;
  const auto size = [&](int b) {
    return f64((u32(b + 1) % u32(w.blocks) == 0 ? short_block : w.block) * w.depth);
  };
  const i64 slice = group * w.columns + first + column;
  const bool active = lane < lanes && first + column < w.columns;
  const f64 first_mean = mine[0], origin = finite_or_zero(first_mean);
  f64 mean = first_mean, sum = 0, m2 = 0;
  if (!GIVEN_MEAN) {
    for (int b = lane; active && b < blocks; b += lanes)
      sum += size(b) * (mine[2 * b * width] - origin);
    mean = origin + lane_sum(sum, width, lane, lanes, shared) / q.length;
  }
  for (int b = lane; active && b < blocks; b += lanes) {
    const f64 delta = GIVEN_MEAN ? 0 : mine[2 * b * width] - mean;
    m2 += mine[2 * b * width + 1] + size(b) * (delta * delta);
  }
  m2 = lane_sum(m2, width, lane, lanes, shared);
  if (active && lane == 0)
    scales[slice] = {mean, divisor_of(m2, GIVEN_STD ? value_of(q.std, slice) : 0, q)};
}

/// partials[unit * width + column], width: slices of a unit. A thread sums squares about its own
/// first element. Of the units of a strip the one that is done last merges them all; `done` counts
/// them, and is 0 before and after.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    normalize_moments(const __grid_constant__ Load load, const __grid_constant__ Store store,
                      Moments* partials, Scale* scales, u32* done, const __grid_constant__ Work w,
                      const __grid_constant__ Settings q) {
  __shared__ f64 shared[kShared];
  __shared__ bool is_last;
  const i64 units = unit_count(w);
  const int width = COLUMNS ? int(min(w.columns, w.chunk * V)) : 1;
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Walk walk(w, unit, threadIdx.x);
    const Packs packs(load, store, w, walk);
    Known known[kOwn];
    look_up(known, load, q, w, walk);
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

    // Its own moments, then those of the unit.
    const f64 count = f64(max(walk.items, 0) * (COLUMNS ? 1 : V));
    const f64 all = f64((walk.last - walk.first) * w.depth);
    f64 mean[kOwn];
    Sums<1> means{}, m2;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const f64 shift = count == 0 ? 0 : sums.at[0][k] / count;
      mean[k] = count == 0 ? 0 : origin[k] + shift;
      m2.at[0][k] = GIVEN_MEAN ? sums.at[1][k] : sums.at[1][k] - sums.at[0][k] * shift;
      means.at[0][k] = count * mean[k];
    }
    if (!GIVEN_MEAN) {
      means = team_sums(means, w, walk, shared);
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        const f64 unit_mean = means.at[0][k] / all, delta = mean[k] - unit_mean;
        if (count != 0) m2.at[0][k] += count * (delta * delta);
        mean[k] = unit_mean;
      }
    }
    m2 = team_sums(m2, w, walk, shared);
    if (walk.lane == 0 && walk.items > 0) {
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        const int column = COLUMNS ? threadIdx.x * V + k : 0;
        if (column < width) partials[unit * width + column] = {mean[k], m2.at[0][k]};
      }
      __threadfence();
    }
    __syncthreads();
    const i64 of_strip = w.runs * w.blocks, strip = quotient(unit, of_strip);
    if (threadIdx.x == 0)
      is_last = atomicInc(done + strip, u32(of_strip - 1)) == u32(of_strip - 1);
    __syncthreads();
    if (is_last) {
      __threadfence();
      merge_strip(partials, scales, strip, width, w, q, shared);
    }
  }
}
