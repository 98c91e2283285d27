// How elements are compared with edges and find their bin. Comes after the load structs of
// device_code.h: `LoadX` gives the elements. Options: PLACE  f32 or f64: what the bin is estimated
// in. The formulas are those of edges.h.

/// What elements are compared as: exact, and few types.
template <class T>
struct KeyOf {
  using type = f64;
};
template <>
struct KeyOf<f16> {
  using type = f32;
};
template <>
struct KeyOf<bf16> {
  using type = f32;
};
template <>
struct KeyOf<f32> {
  using type = f32;
};
template <>
struct KeyOf<i64> {
  using type = i64;
};
template <>
struct KeyOf<u64> {
  using type = u64;
};

using Value = LoadX::Value;
using Key = KeyOf<Value>::type;
template <class T>
struct EdgeOf {
  using type = f64;
};
template <>
struct EdgeOf<f32> {
  using type = f32;
};
using Edge = EdgeOf<Key>::type;

inline Key key_of(Value x) { return saturate_cast<Key>(x); }

// Exact comparison of a value with an edge, which is not NaN. NaN is neither below nor above.
inline bool is_below(f32 x, f32 edge) { return x < edge; }
inline bool is_above(f32 x, f32 edge) { return x > edge; }
inline bool is_below(f64 x, f64 edge) { return x < edge; }
inline bool is_above(f64 x, f64 edge) { return x > edge; }
inline bool is_below(i64 x, f64 edge) {
  return edge >= 0x1p63 || (edge > -0x1p63 && x < __double2ll_ru(edge));
}
inline bool is_above(i64 x, f64 edge) {
  return edge < -0x1p63 || (edge < 0x1p63 && x > __double2ll_rd(edge));
}
inline bool is_below(u64 x, f64 edge) {
  return edge >= 0x1p64 || (edge > 0 && x < __double2ull_ru(edge));
}
inline bool is_above(u64 x, f64 edge) {
  return edge < 0 || (edge < 0x1p64 && x > __double2ull_rd(edge));
}

/// Equally wide bins between low and high.
struct Range {
  f64 low, high;
  f64 start, step;  // low and the width, halved where their difference could overflow
  f64 unit;         // 1, or 2 to undo it

  Range(f64 low_, f64 high_, i64 bins) : low(low_), high(high_) {
    unit = fmax(fabs(low), fabs(high)) > 0x1p1000 ? 2 : 1;
    start = low / unit;
    step = (high / unit - start) / bins;
  }
  Edge edge(i64 bins, i64 i) const {
    return i == 0      ? Edge(low)
           : i == bins ? Edge(high)
                       : Edge(fmin((start + i * step) * unit, high));
  }
};

/// Where a value lies among equally wide bins, computed with one multiplication: place = x * scale
/// + shift, the lowest edge being 0. Adding 1.5 * 2^23 (2^52) rounds it to the nearest edge, whose
/// number then is the low bits of the sum.
struct Places {
  PLACE scale, shift;
  PLACE doubt;          // within which the edge itself has to be asked
  bool usable = false;  // doubt is less than half a bin
};

inline Places places_between(f64 low, f64 high, u32 bins) {
  const f64 most = fmax(fabs(low), fabs(high)), per_unit = bins / (high - low),
            offset = most * per_unit;
  Places places;
  places.scale = PLACE(per_unit);
  places.shift = PLACE(0 - low * f64(places.scale));  // not -0
  // places.h derives it. NaN where there is no saying.
  const f64 place_unit = sizeof(PLACE) == 4 ? 0x1p-24 : 0x1p-53,
            edge_unit = sizeof(Edge) == 4 ? 0x1p-24 : 0x1p-53;
  const f64 error = place_unit * (2.0 * bins + 3 * offset) + edge_unit * offset +
                    0x1p-53 * (5.0 * bins + 2 * offset);
  places.doubt = PLACE(1.01 * error + 0x1p-30);
  places.usable =
      per_unit >= 0x1p-100 && per_unit <= 0x1p100 && most <= 0x1p100 && places.doubt < PLACE(0.49);
  return places;
}

struct Place {
  u32 edge;     // the nearest; more than all for what lies far outside
  PLACE above;  // the distance to it
};

inline Place place_of(const Places& places, Key x) {
  if constexpr (sizeof(PLACE) == 4) {
    const f32 place = __fmaf_rn(f32(x), places.scale, places.shift), sum = place + 0x1.8p23f;
    return {__float_as_uint(sum) - 0x4b400000u, place - (sum - 0x1.8p23f)};
  } else {
    const f64 place = __fma_rn(f64(x), places.scale, places.shift), sum = place + 0x1.8p52;
    const u64 whole = u64(__double_as_longlong(sum)) - 0x4338000000000000ull;
    return {whole >> 32 == 0 ? u32(whole) : ~0u, place - (sum - 0x1.8p52)};
  }
}

template <class T>
constexpr bool is_wide_integer = same<T, i64> || same<T, u64>;

/// The edges of one histogram.
struct Search {
  const Edge* at;
  u32 bins;
  Places places;

  /// The bin of x; `bins` or more for what is ignored.
  u32 find(Key x) const {
    if (!places.usable) return search(x);
    const Place place = place_of(places, x);
    bool below = place.above < 0;
    if (place.edge <= bins && fabs(place.above) <= places.doubt)
      below = is_below_edge(x, place.edge);
    return below ? place.edge - 1 : place.edge;
  }
  bool is_below_edge(Key x, u32 edge) const {
    return edge == bins ? !is_above(x, at[edge]) : is_below(x, at[edge]);
  }

  /// The first edge above x, less one.
  u32 search(Key x) const {
    if (is_below(x, at[0]) || is_above(x, at[bins]) || x != x) return bins;
    u32 first = 0, count = bins + 1;
    while (count > 0) {
      const u32 middle = first + count / 2;
      if (is_below(x, at[middle])) {
        count /= 2;
      } else {
        count -= middle + 1 - first;
        first = middle + 1;
      }
    }
    return min(first, bins) - 1;
  }
};

inline f32 next(f32 x, bool up) {
  return nextafterf(x, up ? __int_as_float(0x7f800000) : __int_as_float(0xff800000));
}
inline f64 next(f64 x, bool up) {
  return nextafter(x, __longlong_as_double(up ? 0x7ff0000000000000 : i64(0xfff0000000000000)));
}

/// The last edge so that what equals it is below: the next number. Integers of 64 bits may lie
/// between; they are compared the long way.
inline Edge close_last(Edge last) { return is_wide_integer<Key> ? last : next(last, true); }

/// The number of the bin for a place beside its edge; more than all for what is ignored.
inline u32 bin_of(const Place& place) {
  if constexpr (sizeof(PLACE) == 4)
    return place.edge + (__float_as_int(place.above) >> 31);  // no -0 comes here
  else
    return place.edge + (__double2hiint(place.above) >> 31);
}

/// Asks the edge that is near a place: `above` then has the sign of x less the edge. `at` is
/// closed.
inline void ask_edge(Place& place, Key x, u32 bins, const Edge* at) {
  if (place.edge > bins) return;
  const Edge edge = at[place.edge];
  const bool below =
      is_wide_integer<Key> && place.edge == bins ? !is_above(x, edge) : is_below(x, edge);
  place.above = below ? -1 : 1;
}
