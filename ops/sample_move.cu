// Elements of samples moved as a random word of each sample says: random_flip, random_crop. Before it come the structs
// `load_x` and `store_out` (expr/device_code.h).
// Options:
//   INDEX  i32, or i64 where a sample has more elements
//   PACK   elements of a line that a thread moves at once: a divisor of the line's length
//   RUN    of them, how many stay neighbours when the line is reversed: PACK where a pack lies in one block, else the
//          elements of a block, a few; 0 where they are moved one by one

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
  i64 total;   // elements of the input
  Divisor<INDEX> by_line, by_inner;
};

/// How axes are read: see Drawn in sample_move_cpu.cpp.
struct Drawn {
  INDEX start[7];
  bool reversed[7];
};

constexpr int kThreads = 256, kItems = 4;

#if RUN
/// Blocks that a pack has parts of, at most.
constexpr int kBlocks = PACK % RUN == 0 ? PACK / RUN : (PACK + RUN - 2) / RUN + 1;
constexpr int kWindow = (kBlocks * RUN + 3) / 4 * 4;  // their elements, in whole words

/// Places in a block where a pack may begin.
constexpr int kPhases = PACK % RUN == 0 ? 1 : RUN;

/// Of a pack that begins with element `phase` of a block.
constexpr int blocks_of(int phase) { return (phase + PACK - 1) / RUN + 1; }

/// Where in the window element `n` of such a pack is when the line is reversed.
constexpr int place_of(int phase, int n) {
  return (blocks_of(phase) - 1 - (phase + n) / RUN) * RUN + (phase + n) % RUN;
}

/// The `Bytes` bytes at `q` of `from` in place of those at `p` of `word`.
template <int Bytes>
u32 inserted(u32 word, int p, u32 from, int q) {
  u32 order = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) order |= u32(i >= p && i < p + Bytes ? 4 + q + i - p : i) << (4 * i);
  return __byte_perm(word, from, order);
}

/// A pack of a reversed line, of the elements of its blocks. Bytes and halves stay in whole words.
template <class T>
Pack<T, PACK> turned(const Pack<T, kWindow>& window, int phase) {
  Pack<T, PACK> values;
  constexpr int kSize = sizeof(T);
  if constexpr (kSize < 4 && kSize * PACK % 4 == 0) {
    constexpr int kEach = 4 / kSize;
    u32 from[kWindow / kEach], to[PACK / kEach] = {};
    memcpy(from, &window, sizeof from);
#pragma unroll
    for (int r = 0; r < kPhases; ++r) {  // a constant order for each
      if (phase != r) continue;
#pragma unroll
      for (int n = 0; n < PACK; ++n) {
        const int place = place_of(r, n);
        u32& word = to[n / kEach];
        word = inserted<kSize>(word, n % kEach * kSize, from[place / kEach], place % kEach * kSize);
      }
    }
    memcpy(&values, to, sizeof values);
  } else {
#pragma unroll
    for (int r = 0; r < kPhases; ++r) {
      if (phase != r) continue;
#pragma unroll
      for (int n = 0; n < PACK; ++n) values.at[n] = window.at[place_of(r, n)];
    }
  }
  return values;
}
#endif

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
#pragma unroll  // the loads of all on their way at once
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
#if RUN
    if (load_x::kLoose) {
      const INDEX block = q.by_inner.quotient(column);
      const int phase = RUN == PACK ? 0 : int(column - block * RUN);
      const bool turns = reversed && RUN != PACK;
      INDEX first = start * inner + column, count = PACK;
      if (turns) {
        count = blocks_of(phase) * RUN;
        first = (INDEX(along.in) - start - block) * RUN - count;
      } else if (reversed) {
        first += (INDEX(along.in) - 1 - 2 * (start + block)) * inner;
      }
      if (inside && first >= 0 && first + count <= in_length && from + first + kWindow <= q.total) {
        out.put_pack(sample * (q.out_elements / PACK) + p,
                     turns ? turned(in.pack_from<kWindow>(from + first), phase) : in.pack_from<PACK>(from + first));
        continue;
      }
    }
#endif
    const auto element = [&](int n) {
      INDEX place = start * inner + column + n;
      if (reversed) {
        const INDEX block = q.by_inner.quotient(column + n);
        place += (INDEX(along.in) - 1 - 2 * (start + block)) * inner;
      }
      return inside && place >= 0 && place < in_length ? in.at(from + place) : filler;
    };
    if (RUN > 0 && load_x::kLoose) {  // a few at the edges: small code
#pragma unroll 1
      for (int n = 0; n < PACK; ++n) out.put(sample * q.out_elements + p * PACK + n, element(n));
    } else {
      Pack<load_x::Value, PACK> values;
#pragma unroll
      for (int n = 0; n < PACK; ++n) values.at[n] = element(n);
      out.put_pack(sample * (q.out_elements / PACK) + p, values);
    }
  }
}
