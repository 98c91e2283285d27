#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <forebay/array/dtype.h>

namespace forebay {

/// Some of the dtypes: what an argument or an operation takes.
class DtypeSet {
 public:
  constexpr DtypeSet(std::initializer_list<Dtype> dtypes) {
    for (Dtype dtype : dtypes)
      bits_ |= bit(dtype);
  }
  constexpr bool has(Dtype dtype) const { return (bits_ & bit(dtype)) != 0; }
  friend constexpr DtypeSet operator|(DtypeSet a, DtypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  static constexpr std::uint32_t bit(Dtype dtype) { return 1U << static_cast<unsigned>(dtype); }
  std::uint32_t bits_ = 0;
};

inline constexpr DtypeSet kBool{Dtype::boolean};
inline constexpr DtypeSet kUnsigned{Dtype::u8, Dtype::u16, Dtype::u32, Dtype::u64};
inline constexpr DtypeSet kSigned{Dtype::i8, Dtype::i16, Dtype::i32, Dtype::i64};
inline constexpr DtypeSet kIntegers = kUnsigned | kSigned;
inline constexpr DtypeSet kFloats{Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64};
inline constexpr DtypeSet kReals = kBool | kIntegers | kFloats;
inline constexpr DtypeSet kComplex{Dtype::c64, Dtype::c128};
inline constexpr DtypeSet kEvery = kReals | kComplex;

/// `bool, integers, f16, bf16, f32, f64`: for the texts of errors.
std::string to_string(DtypeSet dtypes);

}  // namespace forebay
