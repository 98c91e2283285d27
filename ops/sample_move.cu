// Elements of samples moved as a random word of each sample says: random_flip, random_crop. Before it come the structs
// `load_x` and `store_out` (expr/device_code.h).
// Options:
//   INDEX  i32, or i64 where a sample has more elements
//   PACK   elements of a line that a thread moves at once: a divisor of the line's length

struct Fill {
  alignas(16) u64 words[2];
};

/// As SampleMove in sample_move.h, with divisors.
struct Axis {
  i64 in, out, stride, word, places, padding;
  u64 threshold;
  Divisor<INDEX> by_out;
};
struct Move {
  Axis axes[7];
  i64 rank, inner, in_elements, out_elements;
  u64 sequence;
  i64 blocks;  // of a sample
  Divisor<INDEX> by_line, by_inner;
};

/// How axes are read: see Drawn in sample_move_cpu.cpp.
struct Drawn {
  INDEX start[7];
  bool reversed[7];
};

constexpr int kThreads = 256, kItems = 4;

extern "C" __global__ void __launch_bounds__(kThreads)
    move_samples(const __grid_constant__ load_x in, const __grid_constant__ store_out out, const i64* ids,
                 const i64* position, const __grid_constant__ Fill fill, const __grid_constant__ Move q) {
  __shared__ Drawn drawn;
  const i64 sample = blockIdx.x / u32(q.blocks);
  const INDEX part = INDEX(blockIdx.x - sample * q.blocks);
  if (threadIdx.x < u32(q.rank)) {
    const int k = threadIdx.x;
    const Axis& axis = q.axes[k];
    drawn.start[k] = 0;
    drawn.reversed[k] = false;
    if (axis.word >= 0) {
      const u64 bits = philox_word(u64(axis.word) + (u64(position[0]) << 34), u64(ids[sample]) + q.sequence,
                                   u64(position[2]));
      const u64 high = __umul64hi(bits << 32, u64(axis.places));  // bits * places >> 32
      drawn.start[k] = INDEX(i64(high) - axis.padding);
      drawn.reversed[k] = bits < axis.threshold;
    }
  }
  __syncthreads();

  const int line = int(q.rank) - 1;
  const Axis& along = q.axes[line];
  const INDEX inner = INDEX(q.inner), length = INDEX(along.out) * inner, in_length = INDEX(along.in) * inner;
  const INDEX packs = INDEX(q.out_elements / PACK);
  load_x::Value filler;
  memcpy(&filler, &fill, sizeof filler);
#pragma unroll 2
  for (int item = 0; item < kItems; ++item) {
    const INDEX p = (part * kItems + item) * kThreads + INDEX(threadIdx.x);
    if (p >= packs) break;
    INDEX rest = q.by_line.quotient(p * PACK);
    const INDEX column = p * PACK - rest * length;
    i64 from = sample * q.in_elements;
    bool inside = true;
    for (int k = line - 1; k >= 0; --k) {
      const Axis& axis = q.axes[k];
      const INDEX next = axis.by_out.quotient(rest), i = rest - next * INDEX(axis.out);
      const INDEX at = drawn.start[k] + i, place = drawn.reversed[k] ? INDEX(axis.in) - 1 - at : at;
      inside &= place >= 0 && place < INDEX(axis.in);
      from += place * axis.stride;
      rest = next;
    }
    const INDEX start = drawn.start[line];
    const bool reversed = drawn.reversed[line];
    Pack<load_x::Value, PACK> values;
#pragma unroll
    for (int n = 0; n < PACK; ++n) {
      INDEX place = start * inner + column + n;
      if (reversed) {
        const INDEX block = q.by_inner.quotient(column + n);
        place += (INDEX(along.in) - 1 - 2 * (start + block)) * inner;
      }
      values.at[n] = inside && place >= 0 && place < in_length ? in.at(from + place) : filler;
    }
    out.put_pack(sample * (q.out_elements / PACK) + p, values);
  }
}
