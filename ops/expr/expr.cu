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

/// from[0] .. from[N - 1], which nobody writes meanwhile. `whole`: whether the address is a multiple of kAccessBytes<T, N>; else one at a time.
template <int N, class T>
Pack<T, N> load_pack(const T* from, bool whole) {
  Pack<T, N> values;
  if (whole) {
    using Access = typename AccessOf<kAccessBytes<T, N>>::type;
    constexpr int kParts = sizeof(values) / sizeof(Access);
    Access parts[kParts];
#pragma unroll
    for (int k = 0; k < kParts; ++k) parts[k] = __ldg(reinterpret_cast<const Access*>(from) + k);
    memcpy(&values, parts, sizeof(values));
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) values.at[k] = from[k];
  }
  return values;
}
/// As load_pack, wherever elements may lie. Those of one and two bytes come by whole words, but for what the last word
/// has beyond them, which may be nobody's.
template <int N, class T>
Pack<T, N> load_loose(const T* from) {
  constexpr int kWords = int(sizeof(T) * N) / 4;
  if constexpr (sizeof(T) > 2 || sizeof(T) * N % 4 != 0) {
    return load_pack<N>(from, false);
  } else {
    const u32* const words = reinterpret_cast<const u32*>(u64(from) & ~u64(3));
    const u32 shift = u32(u64(from) & 3) * 8;
    u32 parts[kWords + 1] = {};
#pragma unroll
    for (int k = 0; k < kWords; ++k) parts[k] = __ldg(words + k);
    const u16* const rest = reinterpret_cast<const u16*>(words + kWords);
    if (shift >= 16) parts[kWords] = __ldg(rest);
    if (shift % 16 != 0) {
      const u8 byte = __ldg(reinterpret_cast<const u8*>(rest + shift / 16));
      parts[kWords] |= u32(byte) << (shift - 8);
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) parts[k] = __funnelshift_r(parts[k], parts[k + 1], shift);
    Pack<T, N> values;
    memcpy(&values, parts, sizeof(values));
    return values;
  }
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
/// lies along l in four bytes, or one element.
template <class T, u32 Side>
struct Tile {
  static constexpr u32 kEach = sizeof(T) < 4 ? 4 / sizeof(T) : 1;     // elements of a word
  static constexpr u32 kAcross = sizeof(T) > 4 ? 16 / sizeof(T) : 4;  // along k that a thread takes at once
  static constexpr u32 kWords = Side / kEach;
  static constexpr u32 kPitch = kWords + 1;  // odd, so that neither side meets itself in the banks
  using Word = typename AccessOf<sizeof(T) * kEach>::type;
  Word words[Side * kPitch];

  /// Element (k, l) from from[l * step + k], for k < down and l < along, by all threads of the block. `whole`: whether
  /// every row starts where its packs may.
  template <u32 Threads, class Index>
  void load(const T* from, Index step, u32 down, u32 along, bool whole) {
    if (whole && down == Side && along == Side) fill<Threads, true>(from, step, down, along);
    else fill<Threads, false>(from, step, down, along);
  }

  /// A warp has eight packs along k, of four words along l.
  template <u32 Threads, bool Full, class Index>
  void fill(const T* from, Index step, u32 down, u32 along) {
    constexpr u32 kWarps = Side / kAcross / 8;  // that share a row
#pragma unroll(Full ? 4 : 1)
    for (u32 e = threadIdx.x; e < (Side / kAcross) * kWords; e += Threads) {
      const u32 k = (e % 8 + e / 32 % kWarps * 8) * kAcross, word = e / 8 % 4 + e / (32 * kWarps) * 4;
      if (!Full && (k >= down || word * kEach >= along)) continue;
      Pack<T, kAcross> rows[kEach];
#pragma unroll
      for (u32 j = 0; j < kEach; ++j) {
        const T* row = from + (Index(word * kEach + j) * step + Index(k));
        if constexpr (Full) {
          rows[j] = load_pack<kAcross>(row, true);
        } else {
#pragma unroll
          for (u32 i = 0; i < kAcross; ++i)
            if (k + i < down && word * kEach + j < along) rows[j].at[i] = row[i];
        }
      }
#pragma unroll
      for (u32 i = 0; i < kAcross; ++i) {
        Pack<T, kEach> column;
#pragma unroll
        for (u32 j = 0; j < kEach; ++j) column.at[j] = rows[j].at[i];
        memcpy(&words[(k + i) * kPitch + word], &column, sizeof(Word));
      }
    }
  }

  /// Elements (k, l) .. (k, l + N - 1); l is a multiple of N.
  template <int N>
  Pack<T, N> pack(u32 k, u32 l) const {
    Pack<T, N> values;
    if constexpr (N % kEach == 0) {
#pragma unroll
      for (u32 i = 0; i < N / kEach; ++i)
        memcpy(values.at + i * kEach, &words[k * kPitch + l / kEach + i], sizeof(Word));
    } else {
#pragma unroll
      for (u32 n = 0; n < N; ++n)
        values.at[n] = reinterpret_cast<const T*>(&words[k * kPitch + (l + n) / kEach])[(l + n) % kEach];
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
    // 2^23 + x - 2^23. Blocks have one row: what the compiler does not know keeps 2^23 in a register, else every
    // selector would be moved to one.
    const u32 large = 0x4b000000u + (blockDim.y - 1);
    return __uint_as_float(__byte_perm(word, large, 0x7440u | (k & 3))) - 8388608.0f;
  } else {
    return f32(pack.at[k]);
  }
}

// ---- Short ways: without a branch, right for all but a few operands. Kernels look at many elements at once.

/// What was seen of the operands of an element's or several elements' short ways. While it is true, some may be wrong.
struct Doubt {
  u32 least = ~0u;    // twice the bits of the least |x| but 0, less 1
  u32 root = ~0u;     // the bits of the least square root but 0, less 1
  f32 sum = 0;        // NaN after a result that is not finite
  u32 greatest = 0;   // of the bits of what must be normal, above those of the least normal number
  u32 power = 0;      // the greatest exponent of two plus 125

  /// x that is not 0 or large enough to have exact remainders, and what became of it.
  void see(f32 x, f32 result) {
    least = min(least, (__float_as_uint(x) << 1) - 1);
    sum = fmaf(result, 0.0f, sum);
  }
  /// The square root, about, of an x that is 0 or large enough to have exact remainders, and finite.
  void see_root(f32 about) {
    root = min(root, __float_as_uint(about) - 1);
    greatest = max(greatest, __float_as_uint(about));
  }
  /// x that must be positive, normal and below 2^124.
  void see_normal(f32 x) { greatest = max(greatest, __float_as_uint(x) - 0x00800000u); }
  /// 1.5 * 2^23 and the exponent of two of what must be normal.
  void see_power(f32 shifted) { power = max(power, __float_as_uint(shifted) - (0x4b400000u - 125)); }
  /// Integers of 16 bits less `shift` are 0 or neither small nor large, unless it is.
  void see_shift(f32 shift) {
    if (!(shift == 0 || (fabsf(shift) >= 0x1p-60f && fabsf(shift) <= 0x1p60f))) least = 0;
  }

  explicit operator bool() const {
    // |x| < 2^-100, root < 2^-50, ..
    return least < (27u << 24) - 1 || sum != 0 || root < 0x26800000u - 1 || greatest >= 0x7d000000u || power > 250;
  }
};

/// 1 / divisor, to nearest.
inline f32 inverse_of(f32 divisor, Doubt& doubt) {
  if (!(divisor >= 0x1p-20f && divisor <= 0x1p20f)) doubt.least = 0;
  return __frcp_rn(divisor);
}

/// x / divisor of an x that is 0 or far from the ends of f32. The second estimate is within one unit in the last place;
/// with the inverse to nearest, its correction is to nearest (Markstein, Computation of elementary functions on the IBM
/// RISC System/6000, 1990, theorem 7). Remainders are negated, so that a quotient of 0 keeps its sign.
template <bool Exact>
f32 small_quotient(f32 x, f32 divisor, f32 inverse) {
  if constexpr (Exact) return x / divisor;
  f32 result = x * inverse;
#pragma unroll
  for (int k = 0; k < 2; ++k) result = fmaf(-fmaf(result, divisor, -x), inverse, result);
  return result;
}
/// .. of any x.
template <bool Exact>
f32 quotient(f32 x, f32 divisor, f32 inverse, Doubt& doubt) {
  const f32 result = small_quotient<Exact>(x, divisor, inverse);
  if constexpr (!Exact) doubt.see(x, result);
  return result;
}

/// sqrt(x), to the bits of sqrtf: its own steps, which the compiler puts behind a branch.
template <bool Exact>
f32 sqrt_of(f32 x, Doubt& doubt) {
  if constexpr (Exact) return sqrtf(x);
  f32 inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  inverse = min_nan(inverse, 0x1p64f);  // of 0
  const f32 root = x * inverse;
  const f32 result = fmaf(fmaf(-root, root, x), 0.5f * inverse, root);
  doubt.see_root(root);
  return result;
}

/// log(1 + t) for -0.25 <= t <= 0.5, minimax: within 2^-25 of it before rounding.
inline f32 log1p_near_0(f32 t) {
  f32 sum = 0.0541325286f;
  sum = fmaf(sum, t, -0.120673716f);
  sum = fmaf(sum, t, 0.149839148f);
  sum = fmaf(sum, t, -0.168228105f);
  sum = fmaf(sum, t, 0.199770778f);
  sum = fmaf(sum, t, -0.24993442f);
  sum = fmaf(sum, t, 0.333335489f);
  sum = fmaf(sum, t, -0.500000596f);
  return fmaf(t, t * sum, t);
}
/// The exponent that brings x = 2^-e * m to 0.75 < m <= 1.5, in the bits where f32 has its own; and -e ln 2 of it.
inline i32 exponent_to_near_1(f32 x) { return i32((0x3fc00000u - __float_as_uint(x)) & 0xff800000u); }
inline f32 add_exponent(i32 exponent, f32 log) { return fmaf(f32(exponent), -0x1.62e43p-24f, log); }

/// log(x) of normal positive numbers, within 1.3 units in the last place.
inline f32 log_of_normal(f32 x) {
  const i32 exponent = exponent_to_near_1(x);
  return add_exponent(exponent, log1p_near_0(__int_as_float(__float_as_int(x) + exponent) - 1.0f));
}
/// log(1 + x) where 1 + x is a normal positive number below 2^124, within 1.2 units in the last place. x and 1 are
/// scaled before they are added, so that nothing of x is lost.
inline f32 log1p_of_normal(f32 x, f32 sum) {
  const i32 exponent = exponent_to_near_1(sum);
  const f32 one = __int_as_float(0x3f800000 + exponent);
  return add_exponent(exponent, log1p_near_0(fmaf(x, one, one - 1.0f)));
}
/// exp(x) = 2^n 2^f, 0 <= f <= 1, within 2 units in the last place where it is normal. The instruction that f goes
/// through has 1.7 of them, so nothing is rounded behind it.
inline f32 exp_of_normal(f32 x, Doubt& doubt) {
  const f32 shifted = __fmaf_rd(x, 0x1.715476p0f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  doubt.see_power(shifted);
  const f32 f = fmaf(x, 0x1.4ae0c0p-26f, fmaf(x, 0x1.715476p0f, -n));
  f32 result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(f));
  return __uint_as_float(__float_as_uint(result) + (__float_as_uint(shifted) << 23));
}

/// Of any operand; the same bits as the short way where that does.
inline f32 log_exact(f32 x) {
  Doubt doubt;
  doubt.see_normal(x);
  return doubt ? logf(x) : log_of_normal(x);
}
inline f32 log1p_exact(f32 x) {
  const f32 sum = __fadd_rz(1.0f, x);
  Doubt doubt;
  doubt.see_normal(sum);
  return doubt ? log1pf(x) : log1p_of_normal(x, sum);
}
inline f32 exp_exact(f32 x) {
  Doubt doubt;
  const f32 result = exp_of_normal(x, doubt);
  return doubt ? expf(x) : result;
}
template <bool Exact>
f32 log_of(f32 x, Doubt& doubt) {
  if constexpr (Exact) return log_exact(x);
  doubt.see_normal(x);
  return log_of_normal(x);
}
template <bool Exact>
f32 log1p_of(f32 x, Doubt& doubt) {
  if constexpr (Exact) return log1p_exact(x);
  const f32 sum = __fadd_rz(1.0f, x);
  doubt.see_normal(sum);
  return log1p_of_normal(x, sum);
}
template <bool Exact>
f32 exp_of(f32 x, Doubt& doubt) {
  if constexpr (Exact) return exp_exact(x);
  return exp_of_normal(x, doubt);
}
