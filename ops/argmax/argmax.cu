// The position of the greatest element of each slice. slices.cu comes before this, for its division.
// Options:
//   IN   element type of x
//   KEY  what elements are compared as: f32 for f16 and bf16, else IN; exact
//
// A team of `lanes` threads, a power of two, has one slice; a block has 256 / lanes of them. Teams
// of rows that lie dense in memory are neighbouring threads, and read 16 bytes at once where rows
// are whole packs; else neighbouring threads have neighbouring columns. Either way a warp reads
// neighbouring elements.

struct Search {
  i64 rows, columns;  // of x: slice = group * columns + column; its elements are `columns` apart
  i64 slices;
  i64 count;          // places to look at: all rows, or the candidates of each slice
  i64 block, blocks;  // places of a unit; units along a slice
  i64 units, lanes;
  i64 packed;         // whether all that is read are whole packs of kPack
};

constexpr int kPack = 16 / sizeof(IN);
struct alignas(16) Pack {
  IN at[kPack];
};

/// An element and where it was; at -1, none.
struct Found {
  KEY x;
  i64 position;
};

/// Whether x is greater; NaN is greater than every number.
inline bool exceeds(KEY x, KEY y) { return x > y || (x != x && y == y); }

/// The greater one; the first of equal ones. Order does not matter, so any tree gives the same.
inline Found better(Found a, Found b) {
  if (a.position < 0) return b;
  if (b.position < 0 || exceeds(a.x, b.x)) return a;
  return exceeds(b.x, a.x) || b.position < a.position ? b : a;
}

inline void look_at(Found& best, KEY x, i64 position) {
  if (best.position < 0 || exceeds(x, best.x)) best = {x, position};
}

/// The best of a team's, in its first lane. `apart`: threads between its lanes.
inline Found team_best(Found best, int lane, int lanes, int apart, Found* shared) {
  if (apart == 1) {
    for (int step = min(lanes, 32) / 2; step > 0; step /= 2) best = better(best, shuffle_xor(best, step));
    if (lanes <= 32) return best;
  }
  const int least = apart == 1 ? 32 : 1;  // lanes that have the same
  shared[threadIdx.x] = best;
  for (int step = lanes / 2; step >= least; step /= 2) {
    __syncthreads();
    if (lane < step) {
      best = better(best, shared[threadIdx.x + step * apart]);
      shared[threadIdx.x] = best;
    }
  }
  __syncthreads();  // the next unit writes `shared`
  return best;
}

/// positions[block * slices + slice]: the best of all rows of that block, or, when there are any,
/// of `candidates`: positions[place * slices + slice] of an earlier launch.
extern "C" __global__ void __launch_bounds__(256)
    argmax(const IN* __restrict__ in, const i64* __restrict__ candidates,
           i64* __restrict__ positions, const __grid_constant__ Search q) {
  __shared__ Found shared[256];
  const int lanes = int(q.lanes), teams = 256 / lanes;
  const bool dense = q.columns == 1;
  const int team = dense ? threadIdx.x / lanes : threadIdx.x % teams;
  const int lane = dense ? threadIdx.x % lanes : threadIdx.x / teams;
  const int apart = dense ? 1 : teams;  // threads between the lanes of a team

  for (i64 unit = blockIdx.x; unit < q.units; unit += gridDim.x) {
    const i64 strip = quotient(unit, q.blocks), block = unit - strip * q.blocks;
    const i64 slice = strip * teams + team;
    Found best{KEY(0), -1};
    if (slice < q.slices) {
      const i64 group = quotient(slice, q.columns);
      const IN* column = in + group * q.rows * q.columns + (slice - group * q.columns);
      const i64 last = min((block + 1) * q.block, q.count);
      const i64 first = block * q.block;
      if (q.packed) {
#pragma unroll 4
        for (i64 place = first + lane * kPack; place < last; place += lanes * kPack) {
          const Pack pack = *reinterpret_cast<const Pack*>(column + place);
#pragma unroll
          for (int k = 0; k < kPack; ++k) look_at(best, KEY(pack.at[k]), place + k);
        }
      } else {
#pragma unroll 4
        for (i64 place = first + lane; place < last; place += lanes) {
          const i64 position = candidates == nullptr ? place : candidates[place * q.slices + slice];
          look_at(best, KEY(column[position * q.columns]), position);
        }
      }
    }
    best = team_best(best, lane, lanes, apart, shared);
    if (lane == 0 && slice < q.slices) positions[block * q.slices + slice] = best.position;
  }
}
