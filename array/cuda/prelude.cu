// Put before every kernel by load_kernel. Includes nothing, so it must stay small: it is compiled
// with each. Functions here are device functions (-default-device); nothing is contracted to fused
// multiply-adds.

// ---- Types: named like the dtypes. `bool` is C++'s, one byte.
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using f32 = float;
using f64 = double;

/// Reads as f32; f16(x) rounds an f32 to nearest even.
struct f16 {
  u16 bits;
  f16() = default;
  explicit f16(f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  operator f32() const {
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
struct bf16 {
  u16 bits;
  bf16() = default;
  explicit bf16(f32 x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  operator f32() const { return __uint_as_float(u32(bits) << 16); }
};

/// Complex numbers over R, aligned so that one access moves both parts.
template <class R>
struct alignas(2 * sizeof(R)) Complex {
  R re, im;
};
using c64 = Complex<f32>;
using c128 = Complex<f64>;

template <class T, class U> constexpr bool same = false;
template <class T> constexpr bool same<T, T> = true;
template <class T> constexpr bool is_16bit_float = same<T, f16> || same<T, bf16>;
template <class T> constexpr bool is_float = is_16bit_float<T> || same<T, f32> || same<T, f64>;
template <class T> constexpr bool is_complex = same<T, c64> || same<T, c128>;
// bool is one, of 0..1
template <class T> constexpr bool is_integer = !is_float<T> && !is_complex<T>;
template <class T> constexpr bool is_signed = T(-1) < T(0);

/// The least and the greatest value of an integer type.
template <class T> constexpr T kLeast = is_signed<T> ? T(u64(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T> constexpr T kGreatest = T(~kLeast<T>);

// ---- Complex arithmetic, without the recovery of infinities that C has:
//   (a + bi)(c + di) = (ac - bd) + (ad + bc)i; division is Smith's, as NumPy's.
template <class R> Complex<R> operator+(Complex<R> x, Complex<R> y) { return {x.re + y.re, x.im + y.im}; }
template <class R> Complex<R> operator-(Complex<R> x, Complex<R> y) { return {x.re - y.re, x.im - y.im}; }
template <class R> Complex<R> operator-(Complex<R> x) { return {-x.re, -x.im}; }
template <class R> bool operator==(Complex<R> x, Complex<R> y) { return x.re == y.re && x.im == y.im; }
template <class R> bool operator!=(Complex<R> x, Complex<R> y) { return !(x == y); }
template <class R> Complex<R> operator*(Complex<R> x, R y) { return {x.re * y, x.im * y}; }
template <class R>
Complex<R> operator*(Complex<R> x, Complex<R> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class R>
Complex<R> operator/(Complex<R> x, Complex<R> y) {
  const R re = fabs(y.re), im = fabs(y.im);
  if (re == 0 && im == 0) return {x.re / re, x.im / re};
  if (re >= im) {
    const R ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
    return {(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
  }
  const R ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);
  return {(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}
template <class R> Complex<R> conj(Complex<R> x) { return {x.re, -x.im}; }
/// re^2 + im^2.
template <class R> R norm(Complex<R> x) { return x.re * x.re + x.im * x.im; }
/// hypot(re, im): no overflow on the way; infinity when a part is infinite, even beside NaN.
inline f64 abs(c128 x) { return hypot(x.re, x.im); }
inline f32 abs(c64 x) {
  if (isinf(x.re) || isinf(x.im)) return __uint_as_float(0x7f800000);
  const f64 re = x.re, im = x.im;
  return f32(sqrt(re * re + im * im));
}

// ---- NaN-propagating minimum and maximum, as NumPy's: NaN in either gives NaN; of equal
// values, the second.
template <class T> T minimum(T x, T y) { return x < y || x != x ? x : y; }
template <class T> T maximum(T x, T y) { return x > y || x != x ? x : y; }

// ---- Casts.
/// `x` rounded to odd: what is lost sets the last bit, so that rounding again, to f16 or bf16,
/// is as if once.
inline f32 with_sticky(f32 x, bool exact) { return exact ? x : __uint_as_float(__float_as_uint(x) | 1); }
inline f32 round_to_odd(f64 x) {
  const f32 y = __double2float_rz(x);
  return with_sticky(y, y == x);
}
inline f32 round_to_odd(i64 x) {
  const f32 y = __ll2float_rz(x);
  return with_sticky(y, i64(y) == x);
}
inline f32 round_to_odd(u64 x) {
  const f32 y = __ull2float_rz(x);
  return with_sticky(y, u64(y) == x);
}

/// Integer to integer, clamped to the range of To.
template <class To, class From>
To clamp_integer(From x) {
  if constexpr (is_signed<From>) {
    if (x < 0) return !is_signed<To> ? To(0) : i64(x) < i64(kLeast<To>) ? kLeast<To> : To(x);
  }
  return u64(x) > u64(kGreatest<To>) ? kGreatest<To> : To(x);
}

/// f32 or f64 to integer, toward zero, clamped to the range of To; NaN gives 0.
template <class To, class From>
To clamp_float(From x) {
  // one past the greatest: exact, unlike the greatest
  constexpr From end = From(kGreatest<To> / 2 + 1) * 2;
  if (x != x) return 0;
  return x >= end ? kGreatest<To> : x <= From(kLeast<To>) ? kLeast<To> : To(x);
}

/// The cast of arrays. To an integer: toward zero, clamped, NaN to 0. To a float: rounded once to
/// nearest even, so that too large values become infinite. To bool: x != 0 (NaN is true). A real is
/// a complex with imaginary part 0.
template <class To, class From>
To saturate_cast(From x) {
  static_assert(is_complex<To> || !is_complex<From> || same<To, bool>,
                "take real, imag or abs of a complex number");
  if constexpr (same<To, From>) {
    return x;
  } else if constexpr (same<To, bool>) {
    if constexpr (is_complex<From>) return x.re != 0 || x.im != 0;
    else return x != From(0);
  } else if constexpr (is_complex<To>) {
    using R = decltype(To::re);
    if constexpr (is_complex<From>) return {R(x.re), R(x.im)};
    else return {saturate_cast<R>(x), R(0)};
  } else if constexpr (is_16bit_float<From>) {
    return saturate_cast<To>(f32(x));
  } else if constexpr (is_16bit_float<To>) {
    if constexpr (same<From, f32> || sizeof(From) < 4) return To(f32(x));
    else if constexpr (same<From, f64>) return To(round_to_odd(x));
    else if constexpr (is_signed<From>) return To(round_to_odd(i64(x)));
    else return To(round_to_odd(u64(x)));
  } else if constexpr (is_float<To>) {
    return To(x);
  } else if constexpr (is_float<From>) {
    return clamp_float<To>(x);
  } else {
    return clamp_integer<To>(x);
  }
}

/// Integer to integer modulo 2^bits.
template <class To, class From>
To wrap_cast(From x) {
  static_assert(is_integer<To> && is_integer<From>, "wrapping casts are between integers");
  return To(x);
}

// ---- Random bits.
struct Words {
  u32 at[4];
};

/// Philox4x32-10, as array/philox.h, with a counter of two 64-bit numbers.
inline Words philox(u64 low, u64 high, u64 key) {
  u32 c0 = u32(low), c1 = u32(low >> 32), c2 = u32(high), c3 = u32(high >> 32);
  u32 key0 = u32(key), key1 = u32(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * c0, b = u64(0xCD9E8D57u) * c2;
    c0 = u32(b >> 32) ^ c1 ^ key0;
    c1 = u32(b);
    c2 = u32(a >> 32) ^ c3 ^ key1;
    c3 = u32(a);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// Word `place` of a sequence: the `philox` of the pointwise language. Of neighbours whose places are known at compile
/// time but for a common multiple of 4, the compiler finds out that they are words of one counter.
inline u32 philox_word(u64 place, u64 sequence, u64 key) {
  const Words words = philox(place >> 2, sequence, key);
  const u32 word = u32(place) & 3;
  const u32 low = word == 0 ? words.at[0] : words.at[1], high = word == 2 ? words.at[2] : words.at[3];
  return word < 2 ? low : high;
}

// ---- Threads. Blocks are one-dimensional, of whole warps.
/// The number of this thread in the grid, and of threads in it, for loops such as
///   for (i64 i = grid_thread(); i < n; i += grid_threads()) ..
inline i64 grid_thread() { return i64(blockIdx.x) * blockDim.x + threadIdx.x; }
inline i64 grid_threads() { return i64(gridDim.x) * blockDim.x; }

/// From where all blocks have called this, a kernel launched early (kernel.h) may start.
inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Returns when the kernels before this one are done; what they wrote is then seen, but not through
/// `const __restrict__` pointers or __ldg, whose loads the compiler may move up.
inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// `x` of the lane whose number differs in the bits of `mask`; any type of whole 4-byte words.
template <class T>
T shuffle_xor(T x, int mask) {
  static_assert(sizeof(T) % 4 == 0, "shuffles move 4-byte words");
  u32 words[sizeof(T) / 4];
  memcpy(words, &x, sizeof(T));
  for (u32& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  memcpy(&x, words, sizeof(T));
  return x;
}

/// op over the warp's 32 values, in the order of a fixed tree; every lane gets the same bits.
template <class T, class Op>
T warp_reduce(T x, Op op) {
  for (int step = 1; step < 32; step *= 2) {
    const T other = shuffle_xor(x, step);
    x = threadIdx.x & step ? op(other, x) : op(x, other);
  }
  return x;
}

/// op over the block's values in a fixed order; every thread gets the result. `shared` has a T
/// for each warp.
template <class T, class Op>
T block_reduce(T x, Op op, T* shared) {
  x = warp_reduce(x, op);
  __syncthreads();  // an earlier call may still be reading `shared`
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[0];
  for (u32 warp = 1; warp < blockDim.x / 32; ++warp) x = op(x, shared[warp]);
  return x;
}
