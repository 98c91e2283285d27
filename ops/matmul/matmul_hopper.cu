// The product on Hopper (compute capability 9.0): x is read as it lies in memory, what is fused before it is computed in
// registers, rounded there and goes to the tensor cores from them; other comes packed (matmul_pack.cu).
//
// A block of 384 threads makes tiles of 128 rows by kColumns. Two of its first threads copy into rings in shared memory:
// units of 32 inner elements, of x and of other. Two groups of 128 threads take 64 rows each: while the tensor cores
// multiply one unit, the next one is computed. Two blocks, a cluster, make neighbours along a row of tiles, and each fetches
// half of x's unit for both.
//
// Before this text: the struct X (device_code.h), of which the leaf STAGED is what is copied; where it is not defined,
// addresses are any, and threads read x by themselves. And from hopper_kernel:
//   using Operand, Stored;  constexpr bool kTf32;  constexpr u32 kColumns, kRingX, kRingOther;
//   u32 clipped(u32 two);  // the clips at the end of what is fused, of two rounded values
//   void multiply(f32 (&sums)[kColumns / 2], const u32* x, u64 other, bool adds);

using Value = X::Value;
#ifdef STAGED
using Raw = decltype(X::Row::Fetched<4>::STAGED);
constexpr bool kStaged = true;
#else
using Raw = Pack<u8, 4>;
constexpr bool kStaged = false;
#endif

constexpr u32 kRows = 128, kInner = 32, kWarps = 8, kCluster = 2;
constexpr u32 kXRow = kInner / 4 * sizeof(Raw), kOtherRow = kInner * sizeof(Operand);  // bytes
constexpr u32 kXUnit = kRows * kXRow, kOtherUnit = kColumns * kOtherRow;
constexpr u32 kWords = kTf32 ? 16 : 8;  // of a thread's part of a unit, four for each step of the tensor cores

/// A CUtensorMap.
struct alignas(64) TensorMap {
  u64 words[16];
};

struct Shared {
  u8 x[kRingX][kXUnit];
  u8 other[kRingOther][kOtherUnit];
  u64 full_x[kRingX], empty_x[kRingX], full_other[kRingOther], empty_other[kRingOther];
};

inline u32 shared_address(const void* at) { return u32(__cvta_generic_to_shared(at)); }

// ---- Barriers in shared memory.

inline void init(u64& barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals));
}
inline void expect_bytes(u64& barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
inline void wait(u64& barrier, u32 phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
          shared_address(&barrier)),
      "r"(phase)
      : "memory");
}
/// At the same barrier of block `rank` of the cluster, by the first `ranks` lanes for as many blocks. Not
/// `.release.cluster`, which would wait for all that the thread wrote: what is handed over is a place.
inline void release(u64& barrier, u32 rank, u32 ranks) {
  __syncwarp();
  if (threadIdx.x % 32 >= ranks) return;
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}
inline void meet_cluster() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
inline u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// A place in a ring of `Slots`, and which time round it is.
template <u32 Slots>
struct Place {
  u32 slot = 0, phase = 0;
  void advance() {
    if (++slot == Slots) slot = 0, phase ^= 1;
  }
};

// ---- What a block makes.

struct Tiles {
  u32 across, count, clusters, rank;  // pairs of tiles; a cluster makes every clusters-th
  Tiles(u32 rows, u32 columns)
      : across((columns + kCluster * kColumns - 1) / (kCluster * kColumns)),
        count((rows + kRows - 1) / kRows * across),
        clusters(gridDim.x / kCluster),
        rank(cluster_rank()) {}
  u32 first() const { return blockIdx.x / kCluster; }
  u32 row(u32 tile) const { return tile / across * kRows; }
  u32 column(u32 tile) const { return tile % across * kCluster + rank; }  // in kColumns
};

/// One thread: x's units, half their rows to both blocks.
inline void copy_x(Shared& shared, const TensorMap& map, const Tiles& tiles, u32 units) {
  Place<kRingX> place;
  for (u32 tile = tiles.first(); tile < tiles.count; tile += tiles.clusters) {
    const u32 row = tiles.row(tile) + tiles.rank * (kRows / kCluster);
    for (u32 unit = 0; unit < units; ++unit, place.advance()) {
      u64& full = shared.full_x[place.slot];
      wait(shared.empty_x[place.slot], place.phase ^ 1);
      expect_bytes(full, kXUnit);
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared.x[place.slot]) + tiles.rank * (kXUnit / kCluster)),
          "l"(&map), "r"(unit * kInner), "r"(row), "r"(shared_address(&full)), "h"(u16((1 << kCluster) - 1))
          : "memory");
    }
  }
}

/// One thread: other's units, which are packed one behind the other.
inline void copy_other(Shared& shared, const u8* other, const Tiles& tiles, u32 units) {
  Place<kRingOther> place;
  for (u32 tile = tiles.first(); tile < tiles.count; tile += tiles.clusters) {
    const u8* from = other + u64(tiles.column(tile)) * units * kOtherUnit;
    for (u32 unit = 0; unit < units; ++unit, place.advance(), from += kOtherUnit) {
      u64& full = shared.full_other[place.slot];
      wait(shared.empty_other[place.slot], place.phase ^ 1);
      expect_bytes(full, kOtherUnit);
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
              shared_address(shared.other[place.slot])),
          "l"(from), "n"(kOtherUnit), "r"(shared_address(&full))
          : "memory");
    }
  }
}

// ---- Registers.

/// Two values in a word as the tensor cores take them, or one.
inline u32 word_of(f32 low, f32 high) {
  u32 word;
  if constexpr (same<Operand, bf16>) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
inline u32 word_of(f32 value) {
  u32 word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
  return word;
}

/// A thread's part of x: rows `row` and `row + 8` of the tile, and of a unit four elements in each block of 16, at
/// 8 * part + 4 * block: so that they lie together. The tensor cores count them otherwise, and so is other packed.
struct Reader {
  X::Row rows[2];
  typename X::Row::template Fetched<4> fetched[2][2];  // of a block, of a row
  u32 row, part;

  void enter(const X& x, u32 first, u32 count) {
#pragma unroll
    for (u32 h = 0; h < 2; ++h) rows[h] = x.row(min(first + row + 8 * h, count - 1));
  }

  /// A unit on its way from memory.
  void fetch([[maybe_unused]] const u8* staged, u32 unit) {
#pragma unroll
    for (u32 block = 0; block < 2; ++block) {
      const u32 four = 2 * part + block;
#pragma unroll
      for (u32 h = 0; h < 2; ++h) {
        fetched[block][h] = rows[h].template fetch<4>(unit * (kInner / 4) + four);
#ifdef STAGED
        // In rows of 128 bytes, 16 bytes lie where their number xor the row's, modulo 8, says.
        const u32 place = sizeof(Raw) == 16 ? four ^ row % 8 : four;
        using Access = typename AccessOf<sizeof(Raw)>::type;
        const Access words = *reinterpret_cast<const Access*>(staged + (row + 8 * h) * kXRow + place * sizeof(Raw));
        memcpy(&fetched[block][h].STAGED, &words, sizeof(Raw));
#endif
      }
    }
  }

  /// What was fetched, computed, rounded and clipped.
  void round(u32 (&words)[kWords]) const {
#pragma unroll
    for (u32 block = 0; block < 2; ++block) {
      u32* to = words + block * (kWords / 2);
#pragma unroll
      for (u32 h = 0; h < 2; ++h) {
        const Pack<Value, 4> values = rows[h].template values<4>(fetched[block][h]);
        const auto value = [&](u32 k) { return f32(values.at[k]); };
#pragma unroll
        for (u32 k = 0; k < 4; k += kTf32 ? 1 : 2) {
          if constexpr (kTf32) to[2 * k + h] = word_of(value(k));
          else to[k + h] = clipped(word_of(value(k), value(k + 1)));
        }
      }
    }
  }
};

/// A unit of other for the tensor cores: rows of kOtherRow bytes, swizzled, in groups of eight.
inline u64 descriptor(const u8* unit) {
  constexpr u64 kSwizzle = kOtherRow == 128 ? 1 : 2;
  return kSwizzle << 62 | u64(kOtherRow * 8 / 16) << 32 | u64(1) << 16 | shared_address(unit) >> 4;
}

inline void multiply_unit(f32 (&sums)[kColumns / 2], const u32 (&words)[kWords], const u8* other, bool adds) {
  const u64 from = descriptor(other);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (u32 step = 0; step < kWords / 4; ++step)  // of 32 bytes
    multiply(sums, words + 4 * step, from + 2 * step, step > 0 || adds);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// All but the `Pending` last units are multiplied.
template <int Pending>
inline void wait_multiplied() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// A thread's results of a tile: rows `row` and `row + 8`, in packs of neighbours, which packing laid together. All blocks end
/// their tiles at the same time, and memory takes no more at once: as many packs of the second row as registers hold are
/// kept and stored beside the first units of the next tile.
struct Results {
  static constexpr u32 kTogether = 16 / sizeof(Stored), kPacks = kColumns / 4 / kTogether;
  // What is rounded takes the same registers: much of it leaves no room.
  static constexpr bool kRoom = kStaged && !kTf32 && sizeof(typename X::Row::template Fetched<4>) == sizeof(Raw);
  static constexpr u32 kMost = kRoom ? 7 : 2, kKept = kPacks < kMost ? kPacks : kMost, kParts = 4;
  using Values = Pack<Stored, kTogether>;
  Values kept[kKept];
  Stored* to = nullptr;  // of the kept ones' row; none
  u32 left = 0;          // columns from there

  static void store(Stored* to, u32 left, u32 pack, const Values& values) {
    const u32 offset = 4 * kTogether * pack;
    if (offset < left) store_pack(to + offset, values, kStaged);
  }

  void take(Stored* out, f32 (&sums)[kColumns / 2], u32 row, u32 rows, u32 column, u32 columns) {
#pragma unroll
    for (u32 i = 0; i < kColumns / 2; ++i) asm volatile("" : "+f"(sums[i])::"memory");  // not before they are there
    to = nullptr;
    left = columns - min(column, columns);
#pragma unroll
    for (u32 h = 0; h < 2; ++h) {
      if (row + 8 * h >= rows) continue;
      Stored* const at = out + u64(row + 8 * h) * columns + column;
      if (h == 1) to = at;
#pragma unroll
      for (u32 pack = 0; pack < kPacks; ++pack) {
        Values values;
#pragma unroll
        for (u32 i = 0; i < kTogether; ++i) values.at[i] = Stored(sums[2 * kTogether * pack + 4 * (i / 2) + 2 * h + i % 2]);
        if (h == 1 && pack + kKept >= kPacks) kept[pack + kKept - kPacks] = values;
        else store(at, left, pack, values);
      }
    }
  }

  void store_kept(u32 part) const {
    if (to == nullptr) return;
#pragma unroll
    for (u32 i = part * kKept / kParts; i < (part + 1) * kKept / kParts; ++i)
      store(to, left, kPacks - kKept + i, kept[i]);
  }
};

/// What the groups of 128 threads do, each for 64 rows.
inline void make_tiles(Shared& shared, const X& x, Stored* out, const Tiles& tiles, u32 rows, u32 columns, u32 units) {
  const u32 thread = threadIdx.x - 128, lane = thread % 32;
  Reader reader{.row = thread / 32 * 16 + lane / 4, .part = lane % 4};
  Results results;
  f32 sums[kColumns / 2];
  u32 words[2][kWords];
  Place<kRingX> from_x;
  Place<kRingOther> from_other;
  u32 tile = tiles.first(), multiplied = 0;  // the slot of the unit before
  const auto fetch = [&](u32 unit) {
    if (kStaged) wait(shared.full_x[from_x.slot], from_x.phase);
    reader.fetch(shared.x[from_x.slot], unit);
  };
  const auto multiply_next = [&](u32 unit, u32 (&rounded)[kWords]) {
    reader.round(rounded);
    if (kStaged) {
      release(shared.empty_x[from_x.slot], lane, kCluster);
      from_x.advance();
    }
    wait(shared.full_other[from_other.slot], from_other.phase);
    multiply_unit(sums, rounded, shared.other[from_other.slot], unit > 0);
    const u32 next = tile + tiles.clusters;
    if (unit + 1 < units) {
      fetch(unit + 1);
    } else if (next < tiles.count) {
      reader.enter(x, tiles.row(next), rows);
      fetch(0);
    }
    wait_multiplied<1>();
    if (unit > 0) release(shared.empty_other[multiplied], tiles.rank, 1);
    multiplied = from_other.slot;
    from_other.advance();
  };
  if (tile < tiles.count) {
    reader.enter(x, tiles.row(tile), rows);
    fetch(0);
  }
  for (; tile < tiles.count; tile += tiles.clusters) {
#pragma unroll
    for (u32 i = 0; i < Results::kParts; ++i) {
      if (i < 2 || units > 2) multiply_next(i, words[i % 2]);
      results.store_kept(i);
    }
    for (u32 unit = Results::kParts; unit < units; unit += 2) {
#pragma unroll
      for (u32 i = 0; i < 2; ++i) multiply_next(unit + i, words[i]);
    }
    wait_multiplied<0>();
    release(shared.empty_other[multiplied], tiles.rank, 1);
    results.take(out, sums, tiles.row(tile) + reader.row, rows,
                 tiles.column(tile) * kColumns + reader.part * Results::kTogether, columns);
  }
#pragma unroll
  for (u32 part = 0; part < Results::kParts; ++part) results.store_kept(part);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // of other architectures the text is only looked at
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    matmul_hopper(const __grid_constant__ TensorMap map, const __grid_constant__ X x, const u8* other, Stored* out,
                  const u32 rows, const u32 columns, const u32 inner) {
  extern __shared__ __align__(1024) u8 memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const Tiles tiles(rows, columns);
  const u32 units = inner / kInner;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < kRingX; ++i) init(shared.full_x[i], 1), init(shared.empty_x[i], kWarps * kCluster);
    for (u32 i = 0; i < kRingOther; ++i) init(shared.full_other[i], 1), init(shared.empty_other[i], kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet_cluster();
  if (threadIdx.x < 128) {  // registers go to those who hold the sums
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (kStaged && threadIdx.x == 0) copy_x(shared, map, tiles, units);
    if (threadIdx.x == 32) copy_other(shared, other, tiles, units);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    make_tiles(shared, x, out, tiles, rows, columns, units);
  }
  meet_cluster();  // each may still copy into the other
}
#endif
