// Put before generated kernels, and once before the structs of device_code.h.

// ---- Memory.

/// N neighbours.
template <class T, int N>
struct Pack {
  T at[N];
};

template <int Bytes> struct AccessOf;
template <> struct AccessOf<1> { using type = u8; };
template <> struct AccessOf<2> { using type = u16; };
template <> struct AccessOf<4> { using type = u32; };
template <> struct AccessOf<8> { using type = uint2; };
template <> struct AccessOf<16> { using type = uint4; };

/// The widest access that a Pack<T, N> is a whole number of, up to 16 bytes.
template <class T, int N>
constexpr int kAccessBytes = int(sizeof(T) * N) % 16 == 0 ? 16 : int(sizeof(T) * N) & -int(sizeof(T) * N);

/// from[0] .. from[N - 1]. `whole`: whether the address is a multiple of kAccessBytes<T, N>; else one at a time.
template <int N, class T>
Pack<T, N> load_pack(const T* from, bool whole) {
  Pack<T, N> values;
  if (whole) {
    using Access = typename AccessOf<kAccessBytes<T, N>>::type;
    constexpr int kParts = sizeof(values) / sizeof(Access);
    Access parts[kParts];
#pragma unroll
    for (int k = 0; k < kParts; ++k) parts[k] = reinterpret_cast<const Access*>(from)[k];
    memcpy(&values, parts, sizeof(values));
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) values.at[k] = from[k];
  }
  return values;
}
/// from[0], from[step], .. from[(N - 1) * step].
template <int N, class T, class Index>
Pack<T, N> load_apart(const T* from, Index step) {
  Pack<T, N> values;
#pragma unroll
  for (int k = 0; k < N; ++k) values.at[k] = from[k * step];
  return values;
}
/// As load_pack.
template <int N, class T>
void store_pack(T* to, const Pack<T, N>& values, bool whole) {
  if (whole) {
    using Access = typename AccessOf<kAccessBytes<T, N>>::type;
    constexpr int kParts = sizeof(values) / sizeof(Access);
    Access parts[kParts];
    memcpy(parts, &values, sizeof(values));
#pragma unroll
    for (int k = 0; k < kParts; ++k) reinterpret_cast<Access*>(to)[k] = parts[k];
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = values.at[k];
  }
}
/// As load_apart.
template <int N, class T, class Index>
void store_apart(T* to, const Pack<T, N>& values, Index step) {
#pragma unroll
  for (int k = 0; k < N; ++k) to[k * step] = values.at[k];
}

/// A square of elements (k, l) in shared memory, on its way from neighbours along k to packs along l. A word is what
/// lies along l in four bytes, or one element. Words of a row are turned by a number that depends on k, so that neither
/// side meets itself in the banks.
template <class T, int Side>
struct Tile {
  static constexpr int kEach = sizeof(T) < 4 ? 4 / sizeof(T) : 1;    // elements of a word
  static constexpr int kAcross = sizeof(T) > 4 ? 16 / sizeof(T) : 4;  // along k that a thread takes at once
  static constexpr int kWords = Side / kEach;
  using Word = typename AccessOf<sizeof(T) * kEach>::type;
  Word words[Side][kWords];

  static int turned(int k, int word) { return (word + k / kAcross + k % kAcross) % kWords; }

  /// Element (k, l) from from[l * step + k], for k < down and l < along, by all threads of the block. `whole`: whether
  /// every row starts where its packs may.
  template <class Index>
  void load(const T* from, Index step, int down, int along, bool whole) {
#pragma unroll 4
    for (int e = threadIdx.x; e < (Side / kAcross) * kWords; e += blockDim.x) {
      const int k = e % (Side / kAcross) * kAcross, word = e / (Side / kAcross);
      if (k >= down || word * kEach >= along) continue;
      Pack<T, kAcross> rows[kEach];
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (word * kEach + j >= along) break;
        const T* row = from + (Index(word * kEach + j) * step + k);
        if (k + kAcross <= down) {
          rows[j] = load_pack<kAcross>(row, whole);
        } else {
#pragma unroll
          for (int i = 0; i < kAcross; ++i)
            if (k + i < down) rows[j].at[i] = row[i];
        }
      }
#pragma unroll
      for (int i = 0; i < kAcross; ++i) {
        Pack<T, kEach> column;
#pragma unroll
        for (int j = 0; j < kEach; ++j) column.at[j] = rows[j].at[i];
        memcpy(&words[k + i][turned(k + i, word)], &column, sizeof(Word));
      }
    }
  }

  /// Elements (k, l) .. (k, l + N - 1); l is a multiple of N.
  template <int N>
  Pack<T, N> pack(int k, int l) const {
    Pack<T, N> values;
    if constexpr (N % kEach == 0) {
#pragma unroll
      for (int i = 0; i < N / kEach; ++i)
        memcpy(values.at + i * kEach, &words[k][turned(k, l / kEach + i)], sizeof(Word));
    } else {
#pragma unroll
      for (int n = 0; n < N; ++n)
        values.at[n] = reinterpret_cast<const T*>(&words[k][turned(k, (l + n) / kEach)])[(l + n) % kEach];
    }
    return values;
  }
};

// ---- Indices.

/// A divisor of numbers from 0 to the greatest Index (i32 or i64) as the multiplication that gives the same: the host
/// made it (divisor.h).
template <class Index>
struct Divisor {
  u64 multiplier, shift;
  Index quotient(Index n) const {
    if constexpr (sizeof(Index) == 4) return Index((u64(u32(n)) * u32(multiplier)) >> u32(shift));
    else return Index((__umul64hi(u64(n), multiplier) << 1 | (u64(n) * multiplier) >> 63) >> shift);
  }
};

// ---- Arithmetic.

// Integers compute modulo 2^bits, in an unsigned type that is not promoted to a signed one.
template <bool Wide> struct WordOf { using type = u32; };
template <> struct WordOf<true> { using type = u64; };
template <class T> using Word = typename WordOf<(sizeof(T) > 4)>::type;

template <class T> T add(T x, T y) { return T(Word<T>(x) + Word<T>(y)); }
template <class T> T sub(T x, T y) { return T(Word<T>(x) - Word<T>(y)); }
template <class T> T mul(T x, T y) { return T(Word<T>(x) * Word<T>(y)); }
template <class T> T absolute(T x) { return x < T(0) ? sub(T(0), x) : x; }

/// The floor of the quotient; 0 for a divisor of 0.
template <class T>
T floor_divide(T x, T y) {
  if (y == T(0)) return 0;
  if constexpr (is_signed<T>) {
    if (y == T(-1)) return sub(T(0), x);
    return T(x / y - (x % y != 0 && (x < 0) != (y < 0)));
  }
  return T(x / y);
}

/// The integer part of the power, modulo 2^bits.
template <class T>
T integer_pow(T base, T exponent) {
  if constexpr (is_signed<T>) {
    if (exponent < 0) return base == T(1) ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  }
  T result = 1;
  for (u64 left = u64(exponent); left != 0; left >>= 1) {
    if (left & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}

template <class T> T sign(T x) { return x != x ? x : T((x > T(0)) - (x < T(0))); }

/// minimum and maximum in one instruction, for pairs that are not zeros of either sign.
inline f32 min_nan(f32 x, f32 y) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
  return x;
}
inline f32 max_nan(f32 x, f32 y) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
  return x;
}
inline f16 min_nan(f16 x, f16 y) {
  asm("min.NaN.f16 %0, %0, %1;" : "+h"(x.bits) : "h"(y.bits));
  return x;
}
inline f16 max_nan(f16 x, f16 y) {
  asm("max.NaN.f16 %0, %0, %1;" : "+h"(x.bits) : "h"(y.bits));
  return x;
}
inline bf16 min_nan(bf16 x, bf16 y) {
  asm("min.NaN.bf16 %0, %0, %1;" : "+h"(x.bits) : "h"(y.bits));
  return x;
}
inline bf16 max_nan(bf16 x, bf16 y) {
  asm("max.NaN.bf16 %0, %0, %1;" : "+h"(x.bits) : "h"(y.bits));
  return x;
}

/// pack.at[k] as f32, in two instructions where four bytes are in one register.
template <int N>
f32 as_f32(const Pack<u8, N>& pack, int k) {
  if constexpr (N % 4 == 0) {
    u32 word;
    memcpy(&word, pack.at + (k & ~3), 4);
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u | (k & 3))) - 8388608.0f;  // 2^23 + x - 2^23
  } else {
    return f32(pack.at[k]);
  }
}

// ---- Division of many numbers by one, to the bits of x / y.

/// Whether a quotient may be wrong by now: then its elements are computed again with x / y.
struct Doubt {
  u32 least = ~0u;  // twice the bits of the least |x| but 0, less 1
  f32 sum = 0;      // NaN after a quotient that is not finite

  explicit operator bool() const { return least < (27u << 24) - 1 || sum != 0; }  // |x| < 2^-100
};

/// 1 / divisor, to nearest.
inline f32 inverse_of(f32 divisor, Doubt& doubt) {
  if (!(divisor >= 0x1p-20f && divisor <= 0x1p20f)) doubt.least = 0;
  return __frcp_rn(divisor);
}

/// x / divisor. The second estimate is within one unit in the last place; with the inverse to nearest, its correction
/// is to nearest (Markstein, Computation of elementary functions on the IBM RISC System/6000, 1990, theorem 7), as long
/// as no remainder underflows: Doubt. Remainders are negated, so that a quotient of 0 keeps its sign.
template <bool Exact>
f32 quotient(f32 x, f32 divisor, f32 inverse, Doubt& doubt) {
  if constexpr (Exact) return x / divisor;
  f32 result = x * inverse;
#pragma unroll
  for (int k = 0; k < 2; ++k) result = fmaf(-fmaf(result, divisor, -x), inverse, result);
  doubt.least = min(doubt.least, (__float_as_uint(x) << 1) - 1);
  doubt.sum = fmaf(result, 0.0f, doubt.sum);
  return result;
}
