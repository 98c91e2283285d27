// The results of slices whose statistics normalize_moments.cu has. normalize_results.cu comes before
// this.

/// From the last unit to the first: the last ones are still in the second-level cache. Launched
/// early: the first elements are read before the scales are there, which therefore are not behind a
/// `const __restrict__` pointer.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    normalize_apply(const __grid_constant__ Load load, const __grid_constant__ Store store,
                    const Scale* scales, const __grid_constant__ Work w,
                    const __grid_constant__ Settings q) {
  for (i64 unit = unit_count(w) - 1 - blockIdx.x; unit >= 0; unit -= gridDim.x) {
    const Walk walk(w, unit, threadIdx.x);
    if (walk.items <= 0) continue;
    const Packs packs(load, store, w, walk);
    Known known[kOwn];
    look_up(known, load, q, w, walk);
    const auto scale_of = [&](int k) { return scales[walk.slice[k]]; };
    Apply apply[kOwn];
    bool fits = true;
    int start = 0;
#pragma unroll 1
    for (; start + PACKS <= walk.items && fits; start += PACKS) {
      InPack x[PACKS];
#pragma unroll
      for (int i = 0; i < PACKS; ++i) x[i] = packs[start + i];
      if (start == 0) {
        wait_for_kernel_before();
#pragma unroll
        for (int k = 0; k < kOwn; ++k) {
          apply[k] = Apply(scale_of(k));
          fits = fits && apply[k].fits;
        }
        if (!fits) break;
      }
#pragma unroll
      for (int i = 0; i < PACKS; ++i) packs.put(start + i, results_of(x[i], apply, known, q));
    }
    wait_for_kernel_before();
    if (start < walk.items) put_again(packs, walk, scale_of, known, q, start);
  }
}
