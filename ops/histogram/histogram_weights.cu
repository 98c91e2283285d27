// Adds up weights in bins. histogram_finish.cu comes before this; `LoadWeights` gives the weights.
// Options:
//   WARPS    of a block, each with counters of its own; 0: one warp, which adds in device memory

/// Always in the same order: of the lanes of a warp with one bin the lowest adds first. Each warp
/// has a counter for each bin, and one for what is ignored. sums[(unit * chunk + column) * (bins +
/// 1) + bin]; the last block of a strip adds them up in order. `table`, `tickets`: as in
/// histogram.cu.
extern "C" __global__ void __launch_bounds__(BLOCK)
    histogram_weights(const __grid_constant__ LoadX x, const __grid_constant__ LoadWeights weights,
                      const Edge* __restrict__ table, f64* __restrict__ sums,
                      u32* __restrict__ tickets, const __grid_constant__ Outputs out,
                      const __grid_constant__ Slices s, const __grid_constant__ Tiling t,
                      const __grid_constant__ Settings q) {
  extern __shared__ f64 of_warps[];
  put_edges(out, q, table);
  const i64 units = unit_count(s, t), keys = t.chunk * (q.bins + 1);
  const u32 lane = threadIdx.x % 32, bins = u32(q.bins);
  Search search = search_in(q, table, reinterpret_cast<Edge*>(of_warps + WARPS * keys));
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const Part p(s, t, unit);
    f64* const mine = sums + unit * keys;
    volatile f64* const of_warp = WARPS > 0 ? of_warps + threadIdx.x / 32 * keys : mine;
    for (i64 key = lane; key < keys; key += 32)
      of_warp[key] = 0;
    __syncwarp();
    search_for(search, q, table, p.active ? p.slice : 0);
    Cursor cursor = p.cursor(s);
    for (i64 start = p.first; start < p.last; start += p.lanes, cursor.advance(s)) {
      i64 key = -1;
      f64 weight = 1;
      if (p.active && start + p.lane < p.last) {
        const i64 offset = p.offset + cursor.offset(s);
        const u32 bin = min(search.find(key_of(x.at(offset))), bins);
        key = p.column * (q.bins + 1) + bin;
        if (bin < bins) weight = saturate_cast<f64>(weights.at(offset));
      }
      const u32 before = __match_any_sync(0xffffffffu, key) & ((1u << lane) - 1);
      const int turn = __popc(before);
      for (int round = 0; __any_sync(0xffffffffu, key >= 0 && turn >= round); ++round) {
        if (key >= 0 && turn == round) of_warp[key] = of_warp[key] + weight;
        __syncwarp();
      }
    }
    if (WARPS > 0) {
      __syncthreads();
      for (i64 key = threadIdx.x; key < keys; key += BLOCK) {
        f64 sum = 0;
        for (i64 warp = 0; warp < WARPS; ++warp)
          sum += of_warps[warp * keys + key];
        mine[key] = sum;
      }
    }
    const i64 strip = quotient(unit, t.blocks), group = quotient(strip, t.chunks);
    const i64 column = (strip - group * t.chunks) * t.chunk;
    if (!is_last(tickets + strip, t.blocks)) continue;
    for (i64 c = 0; c < min(t.chunk, s.columns - column); ++c) {
      const volatile f64* const parts = sums + strip * t.blocks * keys + c * (q.bins + 1);
      const auto total = [&](i64 bin) {
        f64 sum = 0;
        for (i64 b = 0; b < t.blocks; ++b)
          sum += parts[b * keys + bin];
        return sum;
      };
      const i64 slice = group * s.columns + column + c;
      put_totals(out, q, table, slice, false, total);
      if (threadIdx.x == 0 && out.ignored != nullptr) out.ignored[slice] = i64(total(bins));
    }
  }
}
