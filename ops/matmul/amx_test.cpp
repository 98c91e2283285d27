// Products of bf16 numbers by the processor's tiles: whole numbers, whose sums are exact.
#include "kit/kit.h"

#include <forebay/ops/matmul/amx.h>

namespace forebay {
namespace {

/// Within -8 .. 8.
float whole(std::int64_t i) {
  return static_cast<float>(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(i) * 2654435761U >> 7) % 17 - 8);
}

std::vector<float> wholes(std::int64_t count, std::int64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(whole(i + seed * 1'000'003));
  return values;
}

TEST(AmxProduct, IsExactForWholeNumbersOfEverySize) {
  if (!amx::is_available()) GTEST_SKIP() << "this processor has no AMX for bf16";
  struct Size {
    std::int64_t rows, columns, k;
  };
  for (const Size& size : {Size{1, 1, 1}, Size{16, 16, 32}, Size{33, 17, 31}, Size{31, 48, 65},
                           Size{64, 15, 1030}, Size{5, 130, 512}, Size{70, 70, 1537}}) {
    for (const bool transposed : {false, true}) {
      const auto [rows, columns, k] = size;
      const std::int64_t x_pitch = k + 3, other_pitch = (transposed ? k : columns) + 5,
                         out_pitch = columns + 2;
      const std::vector<float> x = wholes(rows * x_pitch, 1),
                               other = wholes((transposed ? columns : k) * other_pitch, 2);
      std::vector<float> out(static_cast<std::size_t>(rows * out_pitch), -1);
      amx::multiply({x.data(), other.data(), rows, columns, k, x_pitch, other_pitch, transposed},
                    out.data(), out_pitch);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < out_pitch; ++j) {
          double want = j < columns ? 0 : -1;  // behind a row nothing is written
          for (std::int64_t l = 0; l < k && j < columns; ++l) {
            const std::int64_t at = transposed ? j * other_pitch + l : l * other_pitch + j;
            want += double{x[static_cast<std::size_t>(i * x_pitch + l)]} *
                    double{other[static_cast<std::size_t>(at)]};
          }
          ASSERT_EQ(out[static_cast<std::size_t>(i * out_pitch + j)], want)
              << rows << " x " << k << " x " << columns << (transposed ? " transposed" : "")
              << " at " << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace forebay
