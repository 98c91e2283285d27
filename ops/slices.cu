// The device's half of slices.h, put before kernels that reduce over axes. The structs are those of
// the host.
struct Axis {
  i64 extent, stride;
};
struct Slices {
  i64 columns, rows, groups, outer, kept_count, reduced_count;
  Axis kept[4], reduced[4];
};
struct Tiling {
  i64 chunk, chunks, block, blocks;
};

/// a / b of numbers that are not negative, by the short division where it does. Not inlined: the
/// long one is 100 lines.
__noinline__ i64 quotient(i64 a, i64 b) {
  return (a | b) >> 32 == 0 ? i64(u32(a) / u32(b)) : a / b;
}

__noinline__ i64 offset_of(i64 index, const Axis* axes, i64 count) {
  if (count == 0) return 0;
  i64 offset = 0;
#pragma unroll 1
  for (i64 i = 0; i < count - 1; ++i) {
    const i64 rest = quotient(index, axes[i].extent);
    offset += (index - rest * axes[i].extent) * axes[i].stride;
    index = rest;
  }
  return offset + index * axes[count - 1].stride;  // the outermost axis has the rest
}

inline i64 length_of(const Slices& s) { return s.outer * s.rows; }
inline i64 slice_count(const Slices& s) { return s.groups * s.columns; }
inline i64 unit_count(const Slices& s, const Tiling& t) { return s.groups * t.chunks * t.blocks; }

/// A position on the reduced axes that moves on by a fixed number of positions, without a division.
struct Cursor {
  i64 outside, row, outside_step, row_step;

  Cursor(const Slices& s, i64 position, i64 step) {
    outside = outside_step = 0;
    row = position;
    row_step = step;
    if (s.reduced_count == 0) return;
    outside = quotient(position, s.rows);
    row -= outside * s.rows;
    outside_step = quotient(step, s.rows);
    row_step -= outside_step * s.rows;
  }
  void advance(const Slices& s) {
    row += row_step;
    outside += outside_step;
    if (s.reduced_count != 0 && row >= s.rows) {
      row -= s.rows;
      ++outside;
    }
  }
  /// Elements from position 0 of the slice.
  i64 offset(const Slices& s) const {
    const i64 inside = row * s.columns;
    if (s.reduced_count == 0) return inside;
    return inside + (s.reduced_count == 1 ? outside * s.reduced[0].stride
                                          : offset_of(outside, s.reduced, s.reduced_count));
  }
};

/// What one thread of a block has of a unit: one column, and of the positions first + lane, first +
/// lane + lanes, ..
struct Part {
  i64 slice, offset;  // of its column; offset: elements to position 0
  i64 first, last;
  int column, lane, lanes;
  bool active;  // false for a thread without a column

  Part(const Slices& s, const Tiling& t, i64 unit) {
    const i64 strip = quotient(unit, t.blocks), group = quotient(strip, t.chunks);
    const int chunk = int(t.chunk);
    column = threadIdx.x % chunk;
    lane = threadIdx.x / chunk;
    lanes = blockDim.x / chunk;
    first = (unit - strip * t.blocks) * t.block;
    last = min(first + t.block, length_of(s));
    const i64 in_group = (strip - group * t.chunks) * t.chunk + column;
    active = lane < lanes && in_group < s.columns;
    slice = group * s.columns + in_group;
    offset = offset_of(group, s.kept, s.kept_count) + in_group;
  }
  Cursor cursor(const Slices& s) const { return Cursor(s, first + lane, lanes); }
};

/// op over the lanes of each column, in the order of a fixed tree; every thread gets its column's
/// result. `shared` has a T for each thread.
template <class T, class Op>
T column_reduce(T x, const Part& p, i64 chunk, Op op, T* shared) {
  if (chunk == 1) return block_reduce(x, op, shared);
  __syncthreads();  // an earlier call may still be reading `shared`
  shared[threadIdx.x] = x;
  int step = 1;
  while (step < p.lanes)
    step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    __syncthreads();
    if (p.lane < step && p.lane + step < p.lanes) {
      shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + step * int(chunk)]);
    }
  }
  __syncthreads();
  return shared[p.column];
}
