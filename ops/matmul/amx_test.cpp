// Products of bf16 numbers by the processor's tiles: whole numbers, whose sums are exact.
#include "kit/kit.h"

#include <forebay/ops/matmul/amx.h>

namespace forebay {
namespace {

using Numbers = std::vector<BFloat16>;

/// Whole, within -8 .. 8.
Numbers wholes(std::int64_t count, std::int64_t seed) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto mixed = static_cast<std::uint64_t>(i + seed * 1'000'003) * 2654435761U >> 7;
    numbers.emplace_back(static_cast<float>(static_cast<std::int64_t>(mixed % 17) - 8));
  }
  return numbers;
}

/// Room for panels, with no number in it that could pass for one.
Numbers panels(std::int64_t extent, std::int64_t k) {
  return Numbers(static_cast<std::size_t>(amx::packed_size(extent, k)), BFloat16(NAN));
}

TEST(AmxProduct, IsExactForWholeNumbersOfEverySize) {
  if (!amx::is_available()) GTEST_SKIP() << "this processor has no AMX for bf16";
  struct Size {
    std::int64_t rows, columns, k;
  };
  for (const Size& size : {Size{1, 1, 1}, Size{16, 16, 32}, Size{33, 17, 31}, Size{31, 48, 65},
                           Size{64, 15, 130}, Size{5, 130, 96}, Size{70, 70, 137}}) {
    for (const bool transposed : {false, true}) {
      const auto [rows, columns, k] = size;
      const Numbers x = wholes(rows * k, 1), other = wholes(k * columns, 2);
      Numbers x_panels = panels(rows, k), other_panels = panels(columns, k);
      amx::pack_rows(x.data(), 0, rows / 2, k, x_panels.data());
      amx::pack_rows(x.data() + rows / 2 * k, rows / 2, rows - rows / 2, k, x_panels.data());
      for (std::int64_t i = 0; i < (transposed ? columns : k); i += amx::kPanel) {
        if (transposed)
          amx::pack_columns(other.data() + i * k, i, columns, k, other_panels.data());
        else
          amx::pack_inner(other.data() + i * columns, i, k, columns, other_panels.data());
      }
      const std::int64_t pitch = amx::padded(columns) + 16;
      std::vector<float> sums(static_cast<std::size_t>(amx::padded(rows) * pitch), -1);
      const amx::Operands operands{
          x_panels.data(), other_panels.data(), rows, columns, k, amx::kPanel * amx::padded(k)};
      amx::multiply(operands, sums.data(), pitch, false);
      amx::multiply(operands, sums.data(), pitch, true);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          double want = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            const std::int64_t at = transposed ? j * k + l : l * columns + j;
            want += 2 * double{static_cast<float>(x[static_cast<std::size_t>(i * k + l)])} *
                    double{static_cast<float>(other[static_cast<std::size_t>(at)])};
          }
          ASSERT_EQ(sums[static_cast<std::size_t>(i * pitch + j)], want)
              << rows << " x " << k << " x " << columns << (transposed ? " transposed" : "")
              << " at " << i << ", " << j;
        }
        ASSERT_EQ(sums[static_cast<std::size_t>(i * pitch + pitch - 1)], -1) << "behind row " << i;
      }
    }
  }
}

}  // namespace
}  // namespace forebay
