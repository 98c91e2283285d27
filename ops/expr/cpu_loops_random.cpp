#include <bit>
#include <cmath>
#include <cstring>

#include <forebay/array/philox.h>
#include <forebay/ops/expr/cpu_loops.h>

// Random numbers.
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

namespace draws {
inline u32 bits_of(f32 x) { return std::bit_cast<u32>(x); }
inline u64 bits_of(f64 x) { return std::bit_cast<u64>(x); }
inline f32 number_of(u32 bits) { return std::bit_cast<f32>(bits); }
inline f64 number_of(u64 bits) { return std::bit_cast<f64>(bits); }
inline f32 root(f32 x) { return std::sqrt(x); }
inline f64 root(f64 x) { return std::sqrt(x); }
}  // namespace draws

#include <forebay/ops/expr/draws.inc>

/// Words of the counter (low, high).
inline std::array<u32, 4> words_at(u64 low, u64 high, u64 key) {
  return forebay::philox({static_cast<u32>(low), static_cast<u32>(low >> 32),
                          static_cast<u32>(high), static_cast<u32>(high >> 32)},
                         key);
}

/// Whether the places are first, first + 1, ..
bool are_neighbours(const u64* __restrict places, i64 count) {
  u64 different = 0;
  for (i64 i = 0; i < count; ++i)
    different |= places[i] ^ (places[0] + static_cast<u64>(i));
  return different == 0;
}

/// Neighbours in one sequence: all four words of each counter are used.
void neighbours(u64 first, u64 sequence, u64 key, u32* to, i64 count) {
  constexpr i64 kCounters = kChunk / 4 + 1;
  u32 words[kCounters * 4];
  const i64 before = static_cast<i64>(first % 4), counters = (before + count + 3) / 4;
  for (i64 i = 0; i < counters; ++i) {
    const auto four = words_at(first / 4 + static_cast<u64>(i), sequence, key);
    words[4 * i] = four[0];
    words[4 * i + 1] = four[1];
    words[4 * i + 2] = four[2];
    words[4 * i + 3] = four[3];
  }
  std::memcpy(to, words + before, static_cast<std::size_t>(count) * sizeof(u32));
}

void philox_loop(void* out, const Operand* operands, i64 n) {
  const bool one_sequence = operands[1].uniform && operands[2].uniform;
  for_chunks(n, [&](i64 first, i64 count) {
    u32* __restrict to = static_cast<u32*>(out) + first;
    const u64* __restrict places = at<u64>(operands[0], first);
    const u64* __restrict sequences = at<u64>(operands[1], first);
    const u64* __restrict keys = at<u64>(operands[2], first);
    if (one_sequence && are_neighbours(places, count))
      return neighbours(places[0], sequences[0], keys[0], to, count);
    for (i64 i = 0; i < count; ++i) {
      const auto four = words_at(places[i] / 4, sequences[i], keys[i]);
      const u64 word = places[i] % 4;
      const u32 low = word == 0 ? four[0] : four[1], high = word == 2 ? four[2] : four[3];
      to[i] = word < 2 ? low : high;
    }
  });
}

template <class T>
CpuLoop* number_loop(Opcode opcode) {
  using Number = decltype(draws::uniform(T()));
  constexpr auto kUniform = [](auto word) { return draws::uniform(word); };
  constexpr auto kNormal = [](auto word) { return draws::normal(word); };
  if (opcode == Opcode::uniform) return loop1<Number, T, std::remove_const_t<decltype(kUniform)>>;
  return loop1<Number, T, std::remove_const_t<decltype(kNormal)>>;
}

}  // namespace

CpuLoop* random_loop(Opcode opcode, Dtype operand) {
  if (opcode == Opcode::philox) return philox_loop;
  if (opcode != Opcode::uniform && opcode != Opcode::normal) return nullptr;
  return operand == Dtype::u64 ? number_loop<u64>(opcode) : number_loop<u32>(opcode);
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
