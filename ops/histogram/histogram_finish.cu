// What the kernels that count and those that add up weights share. slices.cu and
// histogram_search.cu come before this. Options, besides BLOCK, the threads of a block:
//   TOTAL    u64, or f64 with weights
//   DENSITY  1: divide by width and sum
//   SETS     1: one row of edges for each slice, in `table`; 0: one for all
//   CLOSED   1: they are equally wide, their Places are usable and given, and a copy of them is in
//            shared memory

struct Settings {
  i64 bins;
  Range range;                // where there is no table
  i64 equal_width;            // 0: the table's edges are any
  i64 copied;                 // 1: there is room for a copy of the edges behind the counters
  PLACE scale, shift, doubt;  // CLOSED: their Places
};
/// Any of them may be null.
struct Outputs {
  void* hist;  // i64, or f64 with weights or density
  i64* ignored;
  Edge* edges;  // only of one set
};

inline Edge given_edge(const Settings& q, const Edge* table, i64 slice, i64 i) {
  if (SETS) return table[slice * (q.bins + 1) + i];
  return table != nullptr ? table[i] : q.range.edge(q.bins, i);
}

/// By the whole grid.
inline void put_edges(const Outputs& out, const Settings& q, const Edge* table) {
  if (out.edges == nullptr) return;
#pragma unroll 1
  for (i64 i = grid_thread(); i <= q.bins; i += grid_threads())
    out.edges[i] = given_edge(q, table, 0, i);
}

/// What all slices search in; `copy` is filled by the whole block.
inline Search search_in(const Settings& q, const Edge* table, Edge* copy) {
  Search search{table, u32(q.bins), {}};
  if (SETS) return search;
  if (q.copied) {
#pragma unroll 1
    for (u32 i = threadIdx.x; i <= search.bins; i += BLOCK) {
      const Edge edge = given_edge(q, table, 0, i);
      copy[i] = CLOSED && i == search.bins ? close_last(edge) : edge;
    }
    __syncthreads();
    search.at = copy;
  }
  if (CLOSED)
    search.places = {q.scale, q.shift, q.doubt, true};
  else if (q.equal_width)
    search.places = places_between(search.at[0], search.at[q.bins], search.bins);
  return search;
}

/// What a slice searches in, where each has its own.
inline void search_for(Search& search, const Settings& q, const Edge* table, i64 slice) {
  if (!SETS) return;
  search.at = table + slice * (q.bins + 1);
  search.places = places_between(search.at[0], search.at[q.bins], search.bins);
}

inline f64 density_of(const Settings& q, const Edge* table, i64 slice, i64 bin, f64 total,
                      TOTAL sum) {
  const f64 width =
      f64(given_edge(q, table, slice, bin + 1)) - f64(given_edge(q, table, slice, bin));
  return total / width / f64(sum);
}

struct Add {
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};

/// By a whole block: writes a slice's `hist` with `total(bin)` in each bin. The sum of all, where
/// somebody needs it.
template <class TotalOf>
TOTAL put_totals(const Outputs& out, const Settings& q, const Edge* table, i64 slice,
                 bool needs_sum, TotalOf total) {
  __shared__ TOTAL shared[BLOCK / 32];
  TOTAL sum = 0;
  if (DENSITY || needs_sum) {
#pragma unroll 1
    for (i64 bin = threadIdx.x; bin < q.bins; bin += BLOCK)
      sum += total(bin);
    sum = block_reduce(sum, Add(), shared);
  }
  if (out.hist == nullptr) return sum;
  f64* const density = static_cast<f64*>(out.hist) + slice * q.bins;
  TOTAL* const hist = static_cast<TOTAL*>(out.hist) + slice * q.bins;
#pragma unroll 1
  for (i64 bin = threadIdx.x; bin < q.bins; bin += BLOCK) {
    if (DENSITY)
      density[bin] = density_of(q, table, slice, bin, f64(total(bin)), sum);
    else
      hist[bin] = total(bin);
  }
  return sum;
}

/// Whether this block is the last of `blocks` that come here with one ticket; what the others wrote
/// is then seen.
inline bool is_last(u32* ticket, i64 blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1u) == blocks - 1;
    if (last) *ticket = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}
