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
