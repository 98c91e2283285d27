// Counts values in bins, adds up and writes the histograms: one launch. histogram_runs.cu and
// histogram_finish.cu come before this. Options:
//   COPIES   of each counter side by side in shared memory, at most 32: thread i adds to copy i mod
//            COPIES, so that with 32 no two lanes of a warp meet, whatever the data; 0: the
//            counters are in device memory
//   BITS     of a counter: 8, 16 or 32; what a unit has for one copy is less
//   PARTS    threads that add up one word of counters, at the end
//   RAW      1: the elements are 8 bits wide and each of the 256 values has a counter; bins are
//            found at the end
//   SPLIT    1: slices are several units, or lie beside each other; totals meet in device memory
//   COLUMNS  1: slices lie beside each other in memory (Part), else they are runs of neighbours
//   RESIDENT threads that a multiprocessor shall hold, which bounds the registers of each

extern __shared__ uint4 shared_memory[];

/// The pointer is made where it is used, so that the compiler sees what memory it is in.
inline Edge* shared_edges(u32 at) { return reinterpret_cast<Edge*>(shared_memory + at); }

constexpr u32 kRegionThreads = TEAM < 32 ? 32 : TEAM;             // that share a region of counters
constexpr u32 kPitch = TEAM < 32 ? 32 : COPIES > 0 ? COPIES : 1;  // columns of a region
constexpr u32 kColumns = TEAM < 32 ? TEAM : kPitch;               // of them, those of one unit
constexpr u32 kPerWord = 32 / BITS;

/// Counters in shared memory: region[word][column], with those of kPerWord neighbouring slots in a
/// word. A last word takes what is not counted, so that adding needs no branch; nobody reads it.
struct SharedCounters {
  u32 column;  // address in shared memory
  u32 spare;   // its slot; greater slots are it
  void add(u32 slot) const {
    slot = RAW ? slot : min(slot, spare);
    const u32 one = BITS == 32 ? 1u : 1u << slot % kPerWord * BITS;
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(column + slot / kPerWord * (4 * kPitch)),
                 "r"(one)
                 : "memory");
  }
};
struct DeviceCounters {
  u64* totals;
  u32 slots;
  void add(u32 slot) const {
    if (slot < slots) atomicAdd(totals + slot, u64(1));
  }
};

inline u32 words_of(u32 slots) { return (slots + kPerWord - 1) / kPerWord; }

/// This thread's counters: `slots` of them in its region from `slot` on, a multiple of kPerWord, or
/// in `totals`.
inline auto counters_of(u32* region, u64* totals, u32 slot, u32 slots) {
  if constexpr (COPIES > 0) {
    const u32* column = region + threadIdx.x % kPitch + slot / kPerWord * kPitch;
    return SharedCounters{u32(__cvta_generic_to_shared(column)), words_of(slots) * kPerWord};
  } else {
    return DeviceCounters{totals, slots};
  }
}

inline void sync_team() {
  if (TEAM <= 32)
    __syncwarp();
  else
    __syncthreads();
}

/// The sum over a team's threads, for each of them.
inline u32 team_sum(u32 x) {
  if constexpr (TEAM > 32) {
    __shared__ u32 shared[BLOCK / 32];
    return block_reduce(x, Add(), shared);
  } else {
    for (int step = 1; step < TEAM; step *= 2)
      x += shuffle_xor(x, step);
    return x;
  }
}

/// visit(slot, total) by one thread of the team for each slot; all counters are 0 afterwards.
template <class Visit>
void drain(u32* region, u32 slots, u32 thread, Visit visit) {
  constexpr int kGroup = kColumns < 4 ? kColumns : 4, kGroups = kColumns / kGroup / PARTS;
  constexpr u32 kMask = BITS == 32 ? ~0u : (1u << (BITS % 32)) - 1;
  const u32 words = words_of(slots), part = thread % PARTS;
  const u32 first = TEAM < 32 ? threadIdx.x % 32 / TEAM * TEAM : 0;
  for (u32 start = 0; start < words; start += TEAM / PARTS) {
    const u32 word = start + thread / PARTS;
    u32 totals[kPerWord] = {};
    if (word < words) {
      u32* row = region + word * kPitch + first + part * kGroups * kGroup;
      for (u32 g = 0; g < kGroups; ++g) {
        u32* at = row + (g + word) % kGroups * kGroup;  // neighbouring words in different banks
        u32 sum;
        if constexpr (kGroup == 4) {
          const uint4 x = *reinterpret_cast<uint4*>(at);
          *reinterpret_cast<uint4*>(at) = {0, 0, 0, 0};
          sum = x.x + x.y + x.z + x.w;  // less than 2^BITS each: BITS is chosen so
        } else {
          sum = 0;
          for (int i = 0; i < kGroup; ++i) {
            sum += at[i];
            at[i] = 0;
          }
        }
#pragma unroll
        for (int k = 0; k < kPerWord; ++k)
          totals[k] += sum >> (k * BITS) & kMask;
      }
    }
#pragma unroll
    for (int step = 1; step < PARTS; step *= 2) {
#pragma unroll
      for (u32& total : totals)
        total += __shfl_xor_sync(0xffffffffu, total, step);
    }
#pragma unroll
    for (u32 k = 0; k < kPerWord; ++k) {
      if (k % PARTS == part && word * kPerWord + k < slots) visit(word * kPerWord + k, totals[k]);
    }
  }
}

template <class Counters>
struct Count {
  const Search& search;
  u32 copy;  // where the edges' copy is in shared memory, in 16 bytes
  Counters counters;

  template <int N>
  void operator()(const Pack<Value, N>& pack) const {
    if constexpr (RAW) {
#pragma unroll
      for (const Value x : pack.at)
        counters.add(u8(x));
    } else if constexpr (CLOSED) {
      constexpr int kStep = N < 4 ? N : 4;  // few at once, so that few registers hold them
#pragma unroll
      for (int first = 0; first < N; first += kStep) {
        Place places[kStep];
        bool near[kStep], any = false;
#pragma unroll
        for (int k = 0; k < kStep; ++k) {
          places[k] = place_of(search.places, key_of(pack.at[first + k]));
          near[k] = fabs(places[k].above) <= search.places.doubt;
          any = any || near[k];
        }
        if (__builtin_expect(any, 0)) {
#pragma unroll
          for (int k = 0; k < kStep; ++k) {
            if (near[k])
              ask_edge(places[k], key_of(pack.at[first + k]), search.bins, shared_edges(copy));
          }
        }
#pragma unroll
        for (const Place& place : places)
          counters.add(bin_of(place));
      }
    } else {
#pragma unroll
      for (const Value x : pack.at)
        counters.add(search.find(key_of(x)));
    }
  }
};

/// Adds up the team's counters into the histogram of `slice`, all of whose elements they have; -1:
/// none.
inline void finish_slice(const Outputs& out, const Settings& q, const Edge* table, u32* region,
                         i64 slice, i64 length, u32 thread) {
  const u32 bins = u32(q.bins);
  f64* const reals = static_cast<f64*>(out.hist) + slice * bins;
  i64* const counts = static_cast<i64*>(out.hist) + slice * bins;
  const bool wanted = slice >= 0 && out.hist != nullptr;
  u32 sum = 0;
  drain(region, bins, thread, [&](u32 bin, u32 total) {
    sum += total;
    if (!wanted) return;
    if (DENSITY)
      reals[bin] = total;
    else
      counts[bin] = total;
  });
  if (!DENSITY && out.ignored == nullptr) return;
  sum = team_sum(sum);
  if (slice >= 0 && thread == 0 && out.ignored != nullptr) out.ignored[slice] = length - i64(sum);
  if (!DENSITY || !wanted) return;
  sync_team();
  for (u32 bin = thread; bin < bins; bin += TEAM)
    reals[bin] = density_of(q, table, slice, bin, reals[bin], sum);
}

/// Adds the block's counters to the totals of `slices` slices from `slice` on; the last block there
/// writes their histograms.
inline void finish_part(const Outputs& out, const Settings& q, const Edge* table, u32* region,
                        u64* totals, u32* ticket, i64 blocks, const Search& search, i64 slice,
                        u32 slices, i64 length) {
  const u32 bins = u32(q.bins), pitch = COLUMNS ? bins + 1 : bins;
  totals += slice * bins;
#if COPIES > 0
  drain(region, RAW ? 256 : slices * pitch, threadIdx.x, [&](u32 slot, u32 total) {
    if (total == 0) return;
    const u32 column = COLUMNS ? slot / pitch : 0,
              bin = RAW ? search.find(key_of(Value(slot))) : slot - column * pitch;
    if (bin < bins) atomicAdd(totals + column * bins + bin, u64(total));
  });
#endif
  if (!is_last(ticket, blocks)) return;
#pragma unroll 1
  for (u32 c = 0; c < slices; ++c, ++slice, totals += bins) {
    volatile const u64* const of_slice = totals;  // past the L1 cache
    const u64 sum = put_totals(out, q, table, slice, out.ignored != nullptr,
                               [&](i64 bin) { return of_slice[bin]; });
    if (threadIdx.x == 0 && out.ignored != nullptr) out.ignored[slice] = length - i64(sum);
    __syncthreads();
    for (u32 bin = threadIdx.x; bin < bins; bin += BLOCK)
      totals[bin] = 0;
  }
}

/// `table`: the edges, a row or one for each slice; null where the range gives them and there is a
/// copy. `totals` (a row of bins for each slice) and `tickets` (one for each strip of units) are
/// for SPLIT; they are 0 before and after.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    histogram_count(const __grid_constant__ LoadX x, const Edge* __restrict__ table,
                    u64* __restrict__ totals, u32* __restrict__ tickets,
                    const __grid_constant__ Outputs out, const __grid_constant__ Slices s,
                    const __grid_constant__ Tiling t, const __grid_constant__ Settings q) {
  put_edges(out, q, table);
  const u32 thread = threadIdx.x % TEAM, bins = u32(q.bins);
  u32* const memory = reinterpret_cast<u32*>(shared_memory);
  const u32 slots = RAW ? 256 : COLUMNS ? u32(t.chunk) * (bins + 1) : bins;
  const u32 region_words = COPIES > 0 ? (words_of(slots) + 1) * kPitch : 0;
  const u32 all_words = BLOCK / kRegionThreads * region_words;
  u32* const region = memory + threadIdx.x / kRegionThreads * region_words;
#pragma unroll 1
  for (u32 i = threadIdx.x; i < all_words; i += BLOCK)
    memory[i] = 0;
  const u32 copy = (all_words + 3) / 4;
  Search search = search_in(q, table, shared_edges(copy));
  __syncthreads();

  const i64 units = unit_count(s, t), unit = i64(blockIdx.x) * (BLOCK / TEAM) + threadIdx.x / TEAM;
#if COLUMNS
  if (unit >= units) return;
  const Part p(s, t, unit);
  search_for(search, q, table, p.active ? p.slice : 0);
  const auto counters = counters_of(region, totals + p.slice * bins, p.column * (bins + 1), bins);
  for_columns(x, s, p, Count<decltype(counters)>{search, copy, counters});
  sync_team();
  const i64 strip = quotient(unit, t.blocks), group = quotient(strip, t.chunks);
  const i64 column = (strip - group * t.chunks) * t.chunk;
  finish_part(out, q, table, region, totals, tickets + strip, t.blocks, search,
              group * s.columns + column, u32(min(t.chunk, s.columns - column)), length_of(s));
#else
  const i64 slice = SPLIT ? quotient(unit, t.blocks) : unit;
  if (unit < units) {
    search_for(search, q, table, slice);
    const auto counters = counters_of(region, totals + slice * bins, 0, RAW ? 256 : bins);
    const i64 start = RUNS ? offset_of(slice, s.kept, s.kept_count) : slice * s.rows;
    const u32 part = SPLIT ? u32(unit - slice * t.blocks) : 0, parts = SPLIT ? u32(t.blocks) : 1;
    for_slice(x, s, start, part, parts, thread, Count<decltype(counters)>{search, copy, counters});
  }
  sync_team();
#if SPLIT
  if (unit < units)
    finish_part(out, q, table, region, totals, tickets + slice, t.blocks, search, slice, 1,
                length_of(s));
#else
  finish_slice(out, q, table, region, unit < units ? slice : -1, length_of(s), thread);
#endif
#endif
}
