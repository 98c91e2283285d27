// normalize_results.cu comes before this.

/// Whole slices in registers: one read, one write. In f32 the squares are summed about the slice's
/// first element in the same pass: sum(d^2) is at most n + 1 times sum((x - mean)^2), so that of 53
/// bits log2(n) are lost.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    normalize_slices(const __grid_constant__ Load load, const __grid_constant__ Store store,
                     const __grid_constant__ Work w, const __grid_constant__ Settings q) {
  __shared__ f64 shared[kShared];
  constexpr int kTeams = THREADS / TEAM;
  const i64 units = w.s.groups * w.chunks;
  for (i64 base = i64(blockIdx.x) * kTeams; base < units; base += i64(gridDim.x) * kTeams) {
    // A team too many does the last unit again: all threads take part in the sums.
    const Walk walk(w, min(base + threadIdx.x / TEAM, units - 1), threadIdx.x % TEAM);
    const Packs packs(load, store, w, walk);
    Known known[kOwn];
    look_up(known, load, q, w, walk);
    InPack x[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      if (walk.has(i)) x[i] = packs[i];
    }
    if (kShuffled && NARROW && !GIVEN_MEAN && !GIVEN_STD)
      known[0].origin = finite_or_zero(
          f64(__shfl_sync(0xffffffffu, saturate_cast<f32>(x[0].at[RAGGED ? V - 1 : 0]), 0, TEAM)));

    Sums<2> sums{};  // of elements; of squares
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      if (!walk.has(i)) continue;
#pragma unroll
      for (int k = 0; k < V; ++k) {
        if (!walk.has(w, i, k)) continue;
        const Known& of = known[own(k)];
        const f64 d = distance(x[i].at[k], of);
        if (!GIVEN_MEAN) sums.at[0][own(k)] += d;
        if (GIVEN_STD || (!NARROW && !GIVEN_MEAN)) continue;
        const f64 r = d - (GIVEN_MEAN ? given_mean(of) : of.origin);
        sums.at[1][own(k)] = __fma_rn(r, r, sums.at[1][own(k)]);
      }
    }
    sums = team_sums(sums, w, walk, shared);
    f64 mean[kOwn];
    Sums<1> m2;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      mean[k] = GIVEN_MEAN ? given_mean(known[k]) : mean_of(sums.at[0][k], q);
      const f64 r = GIVEN_MEAN ? 0 : known[k].origin - mean[k];
      const f64 squares = sums.at[1][k] - q.length * (r * r);
      m2.at[0][k] = squares < 0 ? 0 : squares;  // NaN stays
    }
#if !NARROW && !GIVEN_MEAN && !GIVEN_STD
    m2 = {};
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      if (!walk.has(i)) continue;
#pragma unroll
      for (int k = 0; k < V; ++k) {
        if (!walk.has(w, i, k)) continue;
        const f64 r = distance(x[i].at[k], known[own(k)]) - mean[own(k)];
        m2.at[0][own(k)] = __fma_rn(r, r, m2.at[0][own(k)]);
      }
    }
    m2 = team_sums(m2, w, walk, shared);
#endif
    const auto scale_of = [&](int k) {
      return Scale{mean[k], divisor_of(m2.at[0][k], known[k].std, q)};
    };
    Apply apply[kOwn];
    bool fits = true;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      apply[k] = Apply(scale_of(k));
      fits = fits && apply[k].fits;
    }
    if (!fits) {
      put_again(packs, walk, scale_of, known, q);
      continue;
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      if (walk.has(i)) packs.put(i, results_of(x[i], apply, known, q));
    }
  }
}
