// Transforms of a few points in a thread's registers, in place, in order; for fft_rows.cu. Before this text comes
//   Real   the type computed in

using C = Complex<Real>;

// ---- Arithmetic. Twiddles are multiplied with fused multiply-adds: a transform has a bound, not bits, to keep.
inline f32 fused(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
inline f64 fused(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
inline C turn(C x, C w) { return {fused(x.re, w.re, -(x.im * w.im)), fused(x.re, w.im, x.im * w.re)}; }
inline C swapped(C x) { return {x.im, x.re}; }

/// exp(-2 pi i k / n), from its series in f64 on the nearest eighth of a turn.
constexpr C root(int n, int k) {
  const int quarter = (8 * k + n) / (2 * n);
  const f64 x = 6.283185307179586477 * (4 * k - quarter * n) / (4.0 * n);
  f64 sine = 0, cosine = 0, term = 1;
  for (int i = 0; i < 20; i += 2) {
    cosine += term;
    term *= x / (i + 1);
    sine += term;
    term *= -x / (i + 2);
  }
  const Real c = Real(cosine), s = Real(sine);
  return quarter % 4 == 0 ? C{c, -s} : quarter % 4 == 1 ? C{-s, -c} : quarter % 4 == 2 ? C{-c, s} : C{s, c};
}

/// x exp(-2 pi i K / N).
template <int N, int K>
inline C turned(C x) {
  constexpr int kEighths = 8 * (K % N) % N == 0 ? 8 * (K % N) / N : -1;
  constexpr Real kHalf = Real(0.70710678118654752440);
  if constexpr (kEighths == 0) return x;
  else if constexpr (kEighths == 1) return {(x.re + x.im) * kHalf, (x.im - x.re) * kHalf};
  else if constexpr (kEighths == 2) return {x.im, -x.re};
  else if constexpr (kEighths == 3) return {(x.im - x.re) * kHalf, (x.re + x.im) * -kHalf};
  else if constexpr (kEighths >= 4) return -turned<N, K % N - N / 2>(x);
  else {
    constexpr C w = root(N, K % N);
    return turn(x, w);
  }
}

// ---- Transforms of N points in registers, in place, in order.
template <int I> struct Int { static constexpr int value = I; };
/// f(Int<0>), .. f(Int<N - 1>).
template <int N, int I = 0, class F>
inline void repeat(F f) {
  if constexpr (I < N) {
    f(Int<I>{});
    repeat<N, I + 1>(f);
  }
}

template <int N> constexpr int kFirstFactor = N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : N % 3 == 0 ? 3 : N % 5 == 0 ? 5 : 7;

/// Odd primes: the points at equal distances from the ends, as sums and differences.
template <int N>
inline void transform_prime(C (&v)[N]) {
  constexpr int kPairs = N / 2;
  C sums[kPairs], differences[kPairs];
  C total = v[0];
  repeat<kPairs>([&](auto j) {
    sums[j.value] = v[j.value + 1] + v[N - 1 - j.value];
    differences[j.value] = v[j.value + 1] - v[N - 1 - j.value];
    total = total + sums[j.value];
  });
  const C first = v[0];
  repeat<kPairs>([&](auto index) {
    constexpr int k = index.value + 1;
    C even = first, odd{};
    repeat<kPairs>([&](auto j) {
      constexpr C w = root(N, k * (j.value + 1) % N);
      even = {fused(sums[j.value].re, w.re, even.re), fused(sums[j.value].im, w.re, even.im)};
      if constexpr (j.value == 0) odd = differences[0] * w.im;
      else odd = {fused(differences[j.value].re, w.im, odd.re), fused(differences[j.value].im, w.im, odd.im)};
    });
    v[k] = {even.re - odd.im, even.im + odd.re};  // even + i odd
    v[N - k] = {even.re + odd.im, even.im - odd.re};
  });
  v[0] = total;
}

template <int N>
inline void transform(C (&v)[N]) {
  if constexpr (N == 1) {
  } else if constexpr (N == 2) {
    const C a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  } else if constexpr (N == 4) {
    const C a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
    v[0] = a + c;
    v[1] = {b.re + d.im, b.im - d.re};
    v[2] = a - c;
    v[3] = {b.re - d.im, b.im + d.re};
  } else if constexpr (N == 3 || N == 5 || N == 7) {
    transform_prime(v);
  } else {
    constexpr int A = kFirstFactor<N>, B = N / A;
    C rows[A][B];
    repeat<B>([&](auto index) {
      constexpr int b = index.value;
      C column[A];
      repeat<A>([&](auto a) { column[a.value] = v[b + B * a.value]; });
      transform(column);
      repeat<A>([&](auto a) { rows[a.value][b] = turned<N, a.value * b>(column[a.value]); });
    });
    repeat<A>([&](auto index) {
      constexpr int a = index.value;
      transform(rows[a]);
      repeat<B>([&](auto b) { v[a + A * b.value] = rows[a][b.value]; });
    });
  }
}
