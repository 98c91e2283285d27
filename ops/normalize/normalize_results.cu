// Results from a slice's scale. normalize_statistics.cu comes before this.

/// In f64, or where an extreme scale wants it.
inline Out wide_result(In x, const Scale& scale, const Known& known, const Settings& q) {
  if (q.zero && scale.divisor == 0) return saturate_cast<Out>(0.0);
  return saturate_cast<Out>((distance(x, known) - scale.mean) / scale.divisor);
}

/// A slice's scale as a thread uses it: on the f32 road where that loses nothing.
#if NARROW
struct Apply {
  f32 high, low, divisor, reciprocal;
  bool fits;

  Apply() = default;
  explicit Apply(const Scale& scale) {
    high = f32(scale.mean);
    low = f32(scale.mean - high);
    divisor = f32(scale.divisor);
    reciprocal = 1 / divisor;
    fits = fabs(scale.mean) < 0x1p100 && scale.divisor > 0x1p-100 && scale.divisor < 0x1p100;
  }
  Out operator()(In x, const Known&, const Settings&) const {
    const f32 d = (saturate_cast<f32>(x) - high) - low;
    if (GIVEN_STD) return saturate_cast<Out>(d / divisor);
    // The same for d no larger than divisor * sqrt(n): a quotient to the last bit (Markstein 1990).
    const f32 near = d * reciprocal;
    return saturate_cast<Out>(__fmaf_rn(__fmaf_rn(-near, divisor, d), reciprocal, near));
  }
};
#else
struct Apply {
  Scale scale;
  static constexpr bool fits = true;

  Apply() = default;
  explicit Apply(const Scale& of) : scale(of) {}
  Out operator()(In x, const Known& known, const Settings& q) const {
    return wide_result(x, scale, known, q);
  }
};
#endif

inline OutPack results_of(const InPack& x, const Apply* apply, const Known* known,
                          const Settings& q) {
  OutPack results;
#pragma unroll
  for (int k = 0; k < V; ++k) results.at[k] = apply[own(k)](x.at[k], known[own(k)], q);
  return results;
}

/// Results of a walk's packs from `first` on, one after the other, each on its road: where f32 does
/// not give some, which is rare, and where there are few. scale_of(k) is that of slice k.
template <class ScaleOf>
void put_again(const Packs& packs, const Walk& walk, const ScaleOf& scale_of, const Known* known,
               const Settings& q, int first = 0) {
#pragma unroll 1
  for (int i = first; i < walk.items; ++i) {
    const InPack x = packs[i];
    OutPack results;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const Scale scale = scale_of(own(k));
      const Apply by(scale);
      results.at[k] = by.fits ? by(x.at[k], known[own(k)], q)
                              : wide_result(x.at[k], scale, known[own(k)], q);
    }
    packs.put(i, results);
  }
}
