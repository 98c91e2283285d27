// A matrix [k, n] as matmul_hopper.cu reads it: for each tile of COLUMNS columns one unit of 32 inner elements behind the
// other; a unit is a row for each column, in the order of the thread that gets its sums, of the elements in the order of
// the tensor cores, whose 16-byte pieces are swizzled against bank conflicts. Columns behind the last are 0.
// Options: OPERAND (f16, bf16, or f32 for tf32), COLUMNS, TOGETHER (columns of the result in 16 bytes).

constexpr bool kTf32 = same<OPERAND, f32>;

/// Of element `slot` of a unit's row, which of the 32 inner elements.
inline u32 inner_of(u32 slot) {
  const u32 block = slot / 16, s = slot % 16;
  if (kTf32) return 8 * (s % 4) + 4 * block + 2 * (s / 8) + s / 4 % 2;  // steps of 8
  return 8 * (s % 8 / 2) + 4 * block + 2 * (s / 8) + s % 2;
}
/// Of a unit's row, which of the tile's columns.
inline u32 column_of(u32 row) {
  constexpr u32 kHalf = TOGETHER / 2;
  const u32 eight = row / 8, part = row % 8 / 2;
  return 4 * TOGETHER * (eight / kHalf) + TOGETHER * part + 2 * (eight % kHalf) + row % 2;
}

extern "C" __global__ void matmul_pack(const OPERAND* matrix, u8* packed, const i64 k, const i64 n, const i64 k_stride,
                                       const i64 n_stride, const i64 tiles) {
  constexpr u32 kRowBytes = 32 * sizeof(OPERAND);
  for (i64 i = grid_thread(); i < tiles * COLUMNS * k; i += grid_threads()) {
    const u32 slot = u32(i % 32), row = u32(i / 32 % COLUMNS);
    const i64 unit = i / (32 * COLUMNS) % (k / 32), tile = i / (COLUMNS * k);
    const i64 column = tile * COLUMNS + column_of(row);
    OPERAND value(0.0f);
    if (column < n) value = matrix[(unit * 32 + inner_of(slot)) * k_stride + column * n_stride];
    if (kTf32) {
      u32 rounded;
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(f32(value)));
      value = OPERAND(__uint_as_float(rounded));
    }
    const u32 byte = slot * u32(sizeof(OPERAND)), piece = byte / 16 ^ (kTf32 ? row % 8 : row / 2 % 4);
    *reinterpret_cast<OPERAND*>(packed + (i / 32) * kRowBytes + piece * 16 + byte % 16) = value;
  }
}
