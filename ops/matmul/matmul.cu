// Products of integers, exact modulo 2^bits: no library on the GPU multiplies them. The compiler is given
//   ELEMENT  the unsigned type of the operands' width    SUM  u32, or u64 for 8-byte elements

/// The leading axes of the operands, as in Product (product.h).
struct Batch {
  i64 count;
  i64 extents[8], x_strides[8], other_strides[8];
  i32 rank;
};

/// x / y for numbers that are not negative, in 32 bits where both fit. Not inlined: the long division is 100 lines.
__noinline__ i64 quotient(i64 x, i64 y) { return (x | y) >> 32 == 0 ? i64(u32(x) / u32(y)) : x / y; }

/// out [m, n] = x [m, k] times other [k, n] (or [n, k] transposed) for each product of the batch. A block of 256
/// threads makes 16 x 16 elements from 16 x 16 pieces of the operands; elements past the edges are read as zeros.
extern "C" __global__ void matmul_integer(const ELEMENT* x, const ELEMENT* other, ELEMENT* out, i64 m, i64 n, i64 k,
                                          i32 transposed, Batch batch) {
  constexpr int kSide = 16;
  __shared__ SUM left[kSide][kSide + 1];   // [row][k]; the odd pitch keeps columns off one bank
  __shared__ SUM right[kSide][kSide + 1];  // [k][column]
  const int a = threadIdx.x / kSide, b = threadIdx.x % kSide;
  const i64 down = (m + kSide - 1) / kSide, across = (n + kSide - 1) / kSide;
  for (i64 tile = blockIdx.x; tile < batch.count * down * across; tile += gridDim.x) {
    const i64 row_of_tiles = quotient(tile, across), product = quotient(row_of_tiles, down);
    const i64 row0 = (row_of_tiles - product * down) * kSide, column0 = (tile - row_of_tiles * across) * kSide;
    const ELEMENT* x_matrix = x;
    const ELEMENT* other_matrix = other;
    i64 rest = product;
#pragma unroll 1
    for (int axis = batch.rank - 1; axis >= 0; --axis) {
      const i64 next = quotient(rest, batch.extents[axis]), index = rest - next * batch.extents[axis];
      rest = next;
      x_matrix += index * batch.x_strides[axis];
      other_matrix += index * batch.other_strides[axis];
    }
    SUM sum = 0;
    for (i64 k0 = 0; k0 < k; k0 += kSide) {
      left[a][b] = row0 + a < m && k0 + b < k ? SUM(x_matrix[(row0 + a) * k + k0 + b]) : SUM(0);
      // Neighbouring threads read neighbouring elements in either layout.
      if (transposed) {
        right[b][a] = column0 + a < n && k0 + b < k ? SUM(other_matrix[(column0 + a) * k + k0 + b]) : SUM(0);
      } else {
        right[a][b] = k0 + a < k && column0 + b < n ? SUM(other_matrix[(k0 + a) * n + column0 + b]) : SUM(0);
      }
      __syncthreads();
      for (int i = 0; i < kSide; ++i) sum += left[a][i] * right[i][b];
      __syncthreads();
    }
    if (row0 + a < m && column0 + b < n) out[(product * m + row0 + a) * n + column0 + b] = ELEMENT(sum);
  }
}
