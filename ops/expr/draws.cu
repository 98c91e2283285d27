
// ---- What draws.inc, which comes next, needs.
namespace draws {
inline u32 bits_of(f32 x) { return __float_as_uint(x); }
inline u64 bits_of(f64 x) { return u64(__double_as_longlong(x)); }
inline f32 number_of(u32 bits) { return __uint_as_float(bits); }
inline f64 number_of(u64 bits) { return __longlong_as_double(i64(bits)); }
inline f32 root(f32 x) { return sqrtf(x); }
inline f64 root(f64 x) { return sqrt(x); }
}  // namespace draws

