#pragma once

#include <algorithm>
#include <cstdint>

#include <forebay/array/dispatch.h>
#include <forebay/ops/expr/convert.h>
#include <forebay/ops/expr/expression.h>

// The files cpu_loops_*.cpp are compiled once for each level of the processor (see
// cpu_levels.h), each time into a namespace of its own, so that no function of one level can
// stand in for that of another.
#ifndef FOREBAY_CPU_LEVEL
#define FOREBAY_CPU_LEVEL base
#endif

#include <forebay/ops/expr/halves.h>

namespace forebay::expr {

/// Elements of an operand that is the same everywhere in a tile: loops go over the tile in chunks.
inline constexpr std::int64_t kChunk = 256;

struct Operand {
  const void* data = nullptr;
  bool uniform = false;  ///< kChunk equal elements (fewer when the tile is shorter) instead of n
};

/// One instruction over `n` elements that lie dense in its operands and `out`, which
/// overlaps none of them.
using CpuLoop = void(void* out, const Operand* operands, std::int64_t n);
/// Between `n` elements, `stride` elements apart, and dense ones: a gather to, or a scatter
/// from, dense memory.
using CpuCopy = void(void* to, const void* from, std::int64_t stride, std::int64_t n);
/// to[i] = table[from[i]]: `n` bytes to elements of a table of 256.
using CpuLookup = void(void* to, const void* from, const void* table, std::int64_t n);

namespace FOREBAY_CPU_LEVEL {

// One file each, so that each compiles in seconds. Null for an opcode or dtype of another file.
CpuLoop* cast_loop(Opcode opcode, Dtype from, Dtype to);
CpuLoop* arithmetic_loop(Opcode opcode, Dtype operand);
CpuLoop* math_loop(Opcode opcode, Dtype operand);
CpuLoop* compare_loop(Opcode opcode, Dtype operand);
CpuLoop* complex_loop(Opcode opcode, Dtype operand);
CpuLoop* complex_product_loop(Opcode opcode, Dtype operand);
CpuLoop* random_loop(Opcode opcode, Dtype operand);
/// Two instructions in one loop of operands a, b and c of `dtype`: second(first(a, b), c), the same
/// bits. Null where there is none.
CpuLoop* loop_of_two(Opcode first, Opcode second, Dtype dtype);
/// For elements of 1, 2, 4, 8 or 16 bytes.
CpuCopy* gather_loop(std::size_t size);
CpuCopy* scatter_loop(std::size_t size);
CpuLookup* lookup_loop(std::size_t size);
/// Whether the level and the processor have permutations of bytes (AVX-512 VBMI).
bool has_vbmi();

/// Element types of the language by group, for `dispatch`.
using IntegerTypes = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                           std::int16_t, std::int32_t, std::int64_t>;
using FloatTypes = Types<Half, BFloat16, float, double>;
using ComplexTypes = Types<std::complex<float>, std::complex<double>>;

/// `of(Type<T>{})` for the T among `Ts` that `operand` is; null for another.
template <class... Ts, class Of>
CpuLoop* loop_for(Types<Ts...>, Dtype operand, const Of& of) {
  CpuLoop* loop = nullptr;
  (void)((operand == dtype_of<Ts> ? (loop = of(Type<Ts>{}), true) : false) || ...);
  return loop;
}

/// The one for elements of `size` bytes.
template <class Loop>
Loop* loop_of_size(std::size_t size, Loop* one, Loop* two, Loop* four, Loop* eight, Loop* sixteen) {
  return size == 1 ? one : size == 2 ? two : size == 4 ? four : size == 8 ? eight : sixteen;
}

/// Calls `chunk(first, count)` over 0..n.
template <class Chunk>
void for_chunks(std::int64_t n, const Chunk& chunk) {
  for (std::int64_t first = 0; first < n; first += kChunk)
    chunk(first, std::min(kChunk, n - first));
}

/// The operand's elements from `first` on.
template <class T>
const T* at(const Operand& operand, std::int64_t first) {
  return static_cast<const T*>(operand.data) + (operand.uniform ? 0 : first);
}

/// One chunk of an operand: memory as it is; f16 widened to f32 before, since a conversion within
/// the loop would not become vector code as good.
template <class T>
class Chunk {
 public:
  Chunk(const Operand& operand, std::int64_t first, std::int64_t) : data_(at<T>(operand, first)) {}
  const T* data() const { return data_; }

 private:
  const T* data_;
};
template <>
class Chunk<Half> {
 public:
  Chunk(const Operand& operand, std::int64_t first, std::int64_t count) {
    widen(at<Half>(operand, first), room_, count);
  }
  const float* data() const { return room_; }

 private:
  alignas(64) float room_[kChunk];
};

/// One chunk of a result, likewise.
template <class T>
class ResultChunk {
 public:
  ResultChunk(void* out, std::int64_t first) : data_(static_cast<T*>(out) + first) {}
  T* data() { return data_; }
  void finish(std::int64_t) {}

 private:
  T* data_;
};
template <>
class ResultChunk<Half> {
 public:
  ResultChunk(void* out, std::int64_t first) : data_(static_cast<Half*>(out) + first) {}
  float* data() { return room_; }
  void finish(std::int64_t count) { narrow(room_, data_, count); }

 private:
  Half* data_;
  alignas(64) float room_[kChunk];
};
/// What a chunk of T holds.
template <class T>
using InChunk = std::conditional_t<std::is_same_v<T, Half>, float, T>;

/// out[i] = F{}(a[i], ..): elements as `load` gives them, the result rounded to `Out`.
template <class Out, class In, class F>
void loop1(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    const Chunk<In> a(operands[0], first, count);
    ResultChunk<Out> result(out, first);
    auto* __restrict to = result.data();
    const auto* __restrict x = a.data();
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = store<InChunk<Out>>(F{}(load(x[i])));
    result.finish(count);
  });
}
template <class Out, class In, class F>
void loop2(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    const Chunk<In> a(operands[0], first, count), b(operands[1], first, count);
    ResultChunk<Out> result(out, first);
    auto* __restrict to = result.data();
    const auto* __restrict x = a.data();
    const auto* __restrict y = b.data();
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = store<InChunk<Out>>(F{}(load(x[i]), load(y[i])));
    result.finish(count);
  });
}

}  // namespace FOREBAY_CPU_LEVEL
}  // namespace forebay::expr
