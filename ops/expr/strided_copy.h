#pragma once

#include <cstddef>
#include <cstdint>

#include <forebay/array/view.h>

namespace forebay::expr {

/// Elements of `size` bytes (1, 2, 4, 8 or 16) in strided memory; `data` is the one with index zero
/// on every axis.
template <class Byte>
struct Strided {
  Byte* data;
  const Dims& shape;
  const Dims& strides;  ///< in elements
  std::int64_t size;
};

/// Copies elements begin..begin+n in row-major order into dense memory.
void gather(const Strided<const std::byte>& from, std::int64_t begin, std::int64_t n,
            std::byte* to);
/// And back.
void scatter(const std::byte* from, const Strided<std::byte>& to, std::int64_t begin,
             std::int64_t n);

}  // namespace forebay::expr
