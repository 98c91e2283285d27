#include <forebay/ops/matmul/amx.h>

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <memory>

#define FOREBAY_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw")))

namespace forebay::amx {
namespace {

constexpr std::int64_t kSide = 16;   // rows of a tile; columns of a result
constexpr std::int64_t kDepth = 32;  // inner elements of a tile
constexpr std::int64_t kBlock =
    2 * kSide;                        // rows and columns that are multiplied at once: 2 x 2 tiles
constexpr std::int64_t kChunk = 512;  // inner elements that are packed at once
constexpr std::int64_t kTile = kSide * kDepth;

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Exact: the lower half is 0.
std::uint16_t half_of(float x) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}

/// Memory of a thread that grows and stays.
template <class T>
class Room {
 public:
  T* take(std::int64_t count) {
    if (count > count_) {
      data_.reset(static_cast<T*>(
          ::operator new[](static_cast<std::size_t>(count) * sizeof(T), std::align_val_t{64})));
      count_ = count;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(T* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  std::unique_ptr<T[], Free> data_;
  std::int64_t count_ = 0;
};

/// What a tile register of each number holds: 16 rows of 64 bytes.
struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// Tiles of 16 rows of `rows`, one behind the other along `k` and then down; 0 beyond the ends.
FOREBAY_AMX void pack_rows(const float* from, std::int64_t pitch, std::int64_t rows, std::int64_t k,
                           std::int64_t padded, std::uint16_t* to) {
  for (std::int64_t row = 0; row < padded; row += kSide) {
    for (std::int64_t first = 0; first < k; first += kDepth, to += kTile) {
      const std::int64_t count = std::min(kDepth, k - first);
      for (std::int64_t i = 0; i < kSide; ++i) {
        std::uint16_t* const line = to + i * kDepth;
        std::int64_t j = 0;
        if (row + i < rows) {
          const float* const source = from + (row + i) * pitch + first;
          for (; j + kSide <= count; j += kSide) {
            const __m512i bits = _mm512_loadu_si512(source + j);
            _mm256_store_si256(reinterpret_cast<__m256i*>(line + j),
                               _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
          }
          for (; j < count; ++j)
            line[j] = half_of(source[j]);
        }
        std::fill(line + j, line + kDepth, std::uint16_t{0});
      }
    }
  }
}

/// The same of columns, in pairs of inner elements: row p of a tile has elements 2p and 2p + 1 of 16 columns in turns.
FOREBAY_AMX void pack_columns(const float* from, std::int64_t inner, std::int64_t across,
                              std::int64_t columns, std::int64_t k, std::int64_t padded,
                              std::uint16_t* to) {
  constexpr float kZeros[kSide] = {};
  for (std::int64_t column = 0; column < padded; column += kSide) {
    const std::int64_t width = std::clamp<std::int64_t>(columns - column, 0, kSide);
    for (std::int64_t first = 0; first < k; first += kDepth, to += kTile) {
      const float* const source = from + first * inner + column * across;
      const std::int64_t count = std::min(kDepth, k - first);
      if (across == 1 && width == kSide) {
        for (std::int64_t i = 0; i < kDepth; i += 2) {
          const float* const even = i < count ? source + i * inner : kZeros;
          const float* const odd = i + 1 < count ? source + (i + 1) * inner : kZeros;
          std::uint16_t* const line = to + i * kSide;
          const __m512i low = _mm512_srli_epi32(_mm512_loadu_si512(even), 16);
          const __m512i high =
              _mm512_and_si512(_mm512_loadu_si512(odd), _mm512_set1_epi32(~0xffff));
          _mm512_store_si512(line, _mm512_or_si512(low, high));
        }
        continue;
      }
      std::fill(to, to + kTile, std::uint16_t{0});
      for (std::int64_t j = 0; j < width; ++j) {
        for (std::int64_t i = 0; i < count; ++i)
          to[i / 2 * kDepth + 2 * j + i % 2] = half_of(source[i * inner + j * across]);
      }
    }
  }
}

/// sums [32, 32] of `pitch` += two rows of tiles times two columns of tiles; = for the first chunk.
FOREBAY_AMX void multiply_block(const std::uint16_t* x, const std::uint16_t* other,
                                std::int64_t tiles, float* sums, std::int64_t pitch, bool adds) {
  const auto bytes = static_cast<int>(pitch * 4);
  float* const below = sums + kSide * pitch;
  if (adds) {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + kSide, bytes);
    _tile_loadd(2, below, bytes);
    _tile_loadd(3, below + kSide, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    _tile_loadd(4, x + tile * kTile, 64);
    _tile_loadd(5, x + (tiles + tile) * kTile, 64);
    _tile_loadd(6, other + tile * kTile, 64);
    _tile_loadd(7, other + (tiles + tile) * kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + kSide, bytes);
  _tile_stored(2, below, bytes);
  _tile_stored(3, below + kSide, bytes);
}

}  // namespace

bool is_available() {
  static const bool available = [] {
    constexpr long kRequestPermission = 0x1023,
                   kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux 5.16
    return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bw") &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return available;
}

FOREBAY_AMX void multiply(const Operands& o, float* out, std::int64_t out_pitch) {
  thread_local Room<std::uint16_t> room;
  thread_local Room<float> sums_room;
  const std::int64_t rows = rounded_up(o.rows, kBlock), columns = rounded_up(o.columns, kBlock);
  const std::int64_t chunk = rounded_up(std::min(o.k, kChunk), kDepth);
  std::uint16_t* const x = room.take((rows + columns) * chunk);
  std::uint16_t* const other = x + rows * chunk;
  float* const sums = sums_room.take(rows * columns);
  const Configuration configuration;
  _tile_loadconfig(&configuration);
  for (std::int64_t first = 0; first < o.k; first += kChunk) {
    const std::int64_t k = std::min(kChunk, o.k - first), tiles = (k + kDepth - 1) / kDepth;
    const std::int64_t inner = o.transposed ? 1 : o.other_pitch,
                       across = o.transposed ? o.other_pitch : 1;
    pack_rows(o.x + first, o.x_pitch, o.rows, k, rows, x);
    pack_columns(o.other + first * inner, inner, across, o.columns, k, columns, other);
    for (std::int64_t row = 0; row < rows; row += kBlock) {
      for (std::int64_t column = 0; column < columns; column += kBlock) {
        multiply_block(x + row * tiles * kDepth, other + column * tiles * kDepth, tiles,
                       sums + row * columns + column, columns, first > 0);
      }
    }
  }
  _tile_release();
  for (std::int64_t row = 0; row < o.rows; ++row)
    std::copy_n(sums + row * columns, o.columns, out + row * out_pitch);
}

}  // namespace forebay::amx

#else

namespace forebay::amx {
bool is_available() { return false; }
void multiply(const Operands&, float*, std::int64_t) {}
}  // namespace forebay::amx

#endif
