#include <forebay/ops/expr/strided_copy.h>

#include <algorithm>

namespace forebay::expr {
namespace {

template <std::size_t Size>
struct alignas(Size <= 4 ? Size : Size / 2) Element {  // c64 is aligned as f32, c128 as f64
  std::byte bytes[Size];
};

/// Calls `row(offset, done, length)` for each piece of an innermost row that elements
/// begin..begin+n fall into: `offset` in elements from the data pointer, `done` elements lie
/// before.
template <class Row>
void for_rows(const Dims& shape, const Dims& strides, std::int64_t begin, std::int64_t n,
              const Row& row) {
  const int inner = shape.rank - 1;
  Dims index = shape;
  std::int64_t rest = begin, offset = 0;
  for (int axis = inner; axis >= 0; --axis) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
    offset += index[axis] * strides[axis];
  }
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t length = std::min(n - done, shape[inner] - index[inner]);
    row(offset, done, length);
    done += length;
    offset += length * strides[inner];
    index[inner] += length;
    for (int axis = inner; axis > 0 && index[axis] == shape[axis]; --axis) {
      index[axis] = 0;
      offset += strides[axis - 1] - shape[axis] * strides[axis];
      ++index[axis - 1];
    }
  }
}

template <std::size_t Size>
void gather_sized(const Strided<const std::byte>& from, std::int64_t begin, std::int64_t n,
                  std::byte* to) {
  using T = Element<Size>;
  const auto* const data = reinterpret_cast<const T*>(from.data);
  auto* const target = reinterpret_cast<T*>(to);
  const std::int64_t stride = from.strides[from.shape.rank - 1];
  for_rows(from.shape, from.strides, begin, n,
           [&](std::int64_t offset, std::int64_t done, std::int64_t length) {
             const T* __restrict x = data + offset;
             T* __restrict y = target + done;
             if (stride == 0) {
               std::fill_n(y, length, *x);
             } else if (stride == 1) {
               std::copy_n(x, length, y);
             } else {
               for (std::int64_t i = 0; i < length; ++i)
                 y[i] = x[i * stride];
             }
           });
}

template <std::size_t Size>
void scatter_sized(const std::byte* from, const Strided<std::byte>& to, std::int64_t begin,
                   std::int64_t n) {
  using T = Element<Size>;
  const auto* const source = reinterpret_cast<const T*>(from);
  auto* const data = reinterpret_cast<T*>(to.data);
  const std::int64_t stride = to.strides[to.shape.rank - 1];
  for_rows(to.shape, to.strides, begin, n,
           [&](std::int64_t offset, std::int64_t done, std::int64_t length) {
             const T* __restrict x = source + done;
             T* __restrict y = data + offset;
             for (std::int64_t i = 0; i < length; ++i)
               y[i * stride] = x[i];
           });
}

}  // namespace

void gather(const Strided<const std::byte>& from, std::int64_t begin, std::int64_t n,
            std::byte* to) {
  switch (from.size) {
    case 1:
      return gather_sized<1>(from, begin, n, to);
    case 2:
      return gather_sized<2>(from, begin, n, to);
    case 4:
      return gather_sized<4>(from, begin, n, to);
    case 8:
      return gather_sized<8>(from, begin, n, to);
    default:
      return gather_sized<16>(from, begin, n, to);
  }
}

void scatter(const std::byte* from, const Strided<std::byte>& to, std::int64_t begin,
             std::int64_t n) {
  switch (to.size) {
    case 1:
      return scatter_sized<1>(from, to, begin, n);
    case 2:
      return scatter_sized<2>(from, to, begin, n);
    case 4:
      return scatter_sized<4>(from, to, begin, n);
    case 8:
      return scatter_sized<8>(from, to, begin, n);
    default:
      return scatter_sized<16>(from, to, begin, n);
  }
}

}  // namespace forebay::expr
