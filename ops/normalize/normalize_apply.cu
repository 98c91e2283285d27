// The results of slices whose statistics normalize_moments.cu has. normalize.cu comes before this.

/// From the last unit to the first: the last ones are still in the second-level cache. A thread has
/// no more of a unit than it keeps in registers.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    normalize_apply(const __grid_constant__ Load load, const __grid_constant__ Store store,
                    const Scale* __restrict__ scales, const __grid_constant__ Work w,
                    const __grid_constant__ Settings q) {
  for (i64 unit = unit_count(w) - 1 - blockIdx.x; unit >= 0; unit -= gridDim.x) {
    const Walk walk(w, unit, threadIdx.x);
    if (walk.items <= 0) continue;
    const Packs packs(load, store, w, walk);
    Known known[kOwn];
    look_up(known, load, q, w, walk);
    InPack x[PACKS];
    const bool full = walk.items == PACKS;
    if (full) {
#pragma unroll
      for (int i = 0; i < PACKS; ++i) x[i] = packs[i];
    }
    Apply apply[kOwn];
    bool fits = true;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const Scale scale = scales[walk.slice[k]];
      apply[k] = Apply(scale.mean, scale.divisor);
      fits = fits && apply[k].fits;
    }
    if (!full || (NARROW && !fits)) {
      put_again(packs, walk, apply, known, q);
      continue;
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) packs.put(i, results_of(x[i], apply, known, q));
  }
}
