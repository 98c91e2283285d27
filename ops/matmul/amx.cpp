#include <forebay/ops/matmul/amx.h>

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#define FOREBAY_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw")))

namespace forebay::amx {
namespace {

constexpr std::int64_t kSide = kPanel / 2;      // rows of a tile; columns of a result
constexpr std::int64_t kTile = kSide * kPanel;  // numbers of a tile: 16 rows of 64 bytes
constexpr std::int64_t kStep = 2 * kTile;       // of a panel's two tiles side by side

/// What a tile register of each number holds: 16 rows of 64 bytes.
struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// What was written to memory is there: the compiler's intrinsics do not say that tile instructions
/// read it.
void settle(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

/// sums [32, 32] of `pitch` = or += a panel of x times a panel of other.
FOREBAY_AMX void multiply_panels(const BFloat16* x, const BFloat16* other, std::int64_t steps,
                                 float* sums, std::int64_t pitch, bool adds) {
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
  for (std::int64_t step = 0; step < steps; ++step, x += kStep, other += kStep) {
    _tile_loadd(4, x, 64);
    _tile_loadd(6, other, 64);
    _tile_loadd(7, other + kTile, 64);
    _tile_loadd(5, x + kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_dpbf16ps(2, 5, 6);
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

void pack_rows(const BFloat16* from, std::int64_t first, std::int64_t rows, std::int64_t k,
               BFloat16* panels) {
  for (std::int64_t row = first; row < first + rows; ++row) {
    BFloat16* line = panels + row / kPanel * kPanel * padded(k) + row % kPanel * kPanel;
    const BFloat16* const end = from + k;
    for (; from + kPanel <= end; from += kPanel, line += kStep)
      std::memcpy(line, from, kPanel * sizeof(BFloat16));
    if (from < end) {
      std::fill(std::copy(from, end, line), line + kPanel, BFloat16{});
      from = end;
    }
  }
}

// A tile of other has pairs of inner numbers: its row p has the numbers 2p and 2p + 1 of 16 columns
// in turns.

void pack_inner(const BFloat16* from, std::int64_t first, std::int64_t k, std::int64_t columns,
                BFloat16* panels) {
  static constexpr BFloat16 kZeros[kSide] = {};
  const std::int64_t inner = std::min(kPanel, k - first);
  for (std::int64_t column = 0; column < columns; column += kSide) {
    const std::int64_t width = std::min(kSide, columns - column);
    BFloat16* line = panels + column / kPanel * kPanel * padded(k) + first * kPanel +
                     column % kPanel / kSide * kTile;
    for (std::int64_t i = 0; i < kPanel; i += 2, line += kPanel) {
      const BFloat16* const even = i < inner ? from + i * columns + column : kZeros;
      const BFloat16* const odd = i + 1 < inner ? from + (i + 1) * columns + column : kZeros;
      for (std::int64_t j = 0; j < width; ++j) {
        line[2 * j] = even[j];
        line[2 * j + 1] = odd[j];
      }
    }
  }
}

void pack_columns(const BFloat16* from, std::int64_t first, std::int64_t columns, std::int64_t k,
                  BFloat16* panels) {
  BFloat16* const panel = panels + first * padded(k);
  std::fill_n(panel + k / kPanel * kStep, (padded(k) - k / kPanel * kPanel) * kPanel, BFloat16{});
  for (std::int64_t j = 0; j < std::min(kPanel, columns - first); ++j, from += k) {
    BFloat16* const column = panel + j / kSide * kTile + j % kSide * 2;
    std::int64_t i = 0;
    for (; i + 2 <= k; i += 2)
      std::memcpy(column + i / kPanel * kStep + i % kPanel * kSide, from + i, 2 * sizeof(BFloat16));
    if (i < k) column[i / kPanel * kStep + i % kPanel * kSide] = from[i];
  }
}

FOREBAY_AMX void multiply(const Operands& o, float* sums, std::int64_t pitch, bool adds) {
  const Configuration configuration;
  settle(&configuration);
  _tile_loadconfig(&configuration);
  const std::int64_t x_pitch = kPanel * padded(o.k);
  // A panel of other stays in the first caches, those of x come from the second.
  for (std::int64_t column = 0; column < o.columns; column += kPanel) {
    for (std::int64_t row = 0; row < o.rows; row += kPanel) {
      multiply_panels(o.x + row / kPanel * x_pitch, o.other + column / kPanel * o.other_pitch,
                      padded(o.k) / kPanel, sums + row * pitch + column, pitch, adds);
    }
  }
  _tile_release();
}

}  // namespace forebay::amx

#else

namespace forebay::amx {
bool is_available() { return false; }
void pack_rows(const BFloat16*, std::int64_t, std::int64_t, std::int64_t, BFloat16*) {}
void pack_inner(const BFloat16*, std::int64_t, std::int64_t, std::int64_t, BFloat16*) {}
void pack_columns(const BFloat16*, std::int64_t, std::int64_t, std::int64_t, BFloat16*) {}
void multiply(const Operands&, float*, std::int64_t, bool) {}
}  // namespace forebay::amx

#endif
