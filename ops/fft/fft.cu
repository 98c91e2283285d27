// What cuFFT does not do itself, each one pass over memory. The compiler is given
//   IN   the element type of x                    REAL     the real type of the transform
//   OUT  what fft_pack makes, a float or complex  WRITTEN  what cuFFT writes, likewise
//   PACK, SCALE, MIRROR or UNPACK  1 for the kernel that is wanted: the others are not compiled
// x is [outer, extent, inner] and the result [outer, extent_out, inner]; a row runs along the middle.

struct Quotient {
  i64 whole, rest;
};
/// x / y for y > 0 <= x. Not inlined: 64-bit divisions are most of what there is to compile here. In 32 bits where
/// both fit, which is several times faster.
__noinline__ Quotient divide(i64 x, i64 y) {
  if (((x | y) >> 32) == 0) {
    const u32 whole = u32(x) / u32(y);
    return {whole, u32(x) - whole * u32(y)};
  }
  const u64 whole = u64(x) / u64(y);
  return {i64(whole), x - i64(whole) * y};
}

#if PACK
template <class To, class From>
To element(From x) {
  if constexpr (is_complex<From> && !is_complex<To>) return x.re;  // a transform to one real point
  else return saturate_cast<To>(x);
}
template <class T>
void drop_imaginary(T& x) {
  if constexpr (is_complex<T>) x.im = 0;
}

/// Rows as the engine reads them: converted, cropped or padded with zeros to `read`, times `scale`. They lie side by
/// side, [rows, read], or, where outer is 1, as in x: [read, packed_inner] with packed_inner = inner; else it is 1.
/// hermitian is the length of a transform to real numbers, else 0: it has no use for the imaginary parts of its first
/// and middle frequency, and cuFFT does not promise to ignore them.
extern "C" __global__ void fft_pack(const IN* x, OUT* packed, i64 total, i64 read, i64 extent, i64 inner,
                                    i64 packed_inner, i64 hermitian, REAL scale) {
#pragma unroll 1
  for (i64 t = grid_thread(); t < total; t += grid_threads()) {
    const Quotient in_plane = divide(t, packed_inner);
    const Quotient in_row = divide(in_plane.whole, read);
    const Quotient row = divide(in_row.whole, inner);
    const i64 k = in_row.rest;
    OUT value{};
    if (k < extent) value = element<OUT>(x[(row.whole * extent + k) * inner + row.rest + in_plane.rest]);
    if (hermitian != 0 && (k == 0 || 2 * k == hermitian)) drop_imaginary(value);
    packed[t] = value * scale;
  }
}

#elif SCALE
/// out *= scale, in place.
extern "C" __global__ void fft_scale(WRITTEN* out, i64 total, REAL scale) {
#pragma unroll 1
  for (i64 t = grid_thread(); t < total; t += grid_threads()) out[t] = out[t] * scale;
}

#else
template <class T>
T conjugate(T x) {
  if constexpr (is_complex<T>) return conj(x);
  else return x;
}

#if MIRROR
/// Fills in, in place, frequencies half..points-1 of real input from 0..half-1, times `scale`; all conjugated when
/// the transform is an inverse one. One thread for each of the `total` = outer * half * inner elements that are there.
extern "C" __global__ void fft_mirror(WRITTEN* out, i64 total, i64 points, i64 inner, i32 inverse, REAL scale) {
  const i64 half = points / 2 + 1;
#pragma unroll 1
  for (i64 t = grid_thread(); t < total; t += grid_threads()) {
    const Quotient in_plane = divide(t, inner);
    const Quotient in_row = divide(in_plane.whole, half);
    const i64 k = in_row.rest;
    WRITTEN* row = out + in_row.whole * points * inner + in_plane.rest;
    const WRITTEN value = row[k * inner] * scale;
    row[k * inner] = inverse ? conjugate(value) : value;
    if (k > 0 && 2 * k < points) row[(points - k) * inner] = inverse ? value : conjugate(value);
  }
}

#elif UNPACK
/// Rows side by side, [rows, written], to the result, times `scale`; frequencies past `written` are the conjugates of
/// those below, all conjugated once more when `flip` is set (an inverse transform of real input).
extern "C" __global__ void fft_unpack(const WRITTEN* rows, WRITTEN* out, i64 total, i64 written, i64 extent_out,
                                      i64 inner, i32 flip, REAL scale) {
#pragma unroll 1
  for (i64 t = grid_thread(); t < total; t += grid_threads()) {
    const Quotient in_plane = divide(t, inner);
    const Quotient in_row = divide(in_plane.whole, extent_out);
    const i64 k = in_row.rest;
    const i64 row = in_row.whole * inner + in_plane.rest;
    const bool upper = k >= written;
    WRITTEN value = rows[row * written + (upper ? extent_out - k : k)] * scale;
    if (upper != (flip != 0)) value = conjugate(value);
    out[t] = value;
  }
}
#endif
#endif
