#include <cblas.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/amx.h>
#include <forebay/ops/matmul/product.h>

namespace forebay {
namespace {

using Floats = Types<float, double, std::complex<float>, std::complex<double>>;
using Integers = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t>;

/// out [rows, columns] = x [rows, k] times other [k, columns], or [columns, k] transposed, all
/// row-major.
template <class T>
struct Tile {
  const T* x;
  const T* other;
  T* out;
  blasint rows, columns, k;
  blasint x_pitch, other_pitch, out_pitch;  ///< elements from row to row
  CBLAS_TRANSPOSE transpose;
};

void multiply_tile(const Tile<float>& t) {
  scipy_cblas_sgemm(CblasRowMajor, CblasNoTrans, t.transpose, t.rows, t.columns, t.k, 1, t.x,
                    t.x_pitch, t.other, t.other_pitch, 0, t.out, t.out_pitch);
}
void multiply_tile(const Tile<double>& t) {
  scipy_cblas_dgemm(CblasRowMajor, CblasNoTrans, t.transpose, t.rows, t.columns, t.k, 1, t.x,
                    t.x_pitch, t.other, t.other_pitch, 0, t.out, t.out_pitch);
}
void multiply_tile(const Tile<std::complex<float>>& t) {
  constexpr std::complex<float> kOne = 1, kZero = 0;
  scipy_cblas_cgemm(CblasRowMajor, CblasNoTrans, t.transpose, t.rows, t.columns, t.k, &kOne, t.x,
                    t.x_pitch, t.other, t.other_pitch, &kZero, t.out, t.out_pitch);
}
void multiply_tile(const Tile<std::complex<double>>& t) {
  constexpr std::complex<double> kOne = 1, kZero = 0;
  scipy_cblas_zgemm(CblasRowMajor, CblasNoTrans, t.transpose, t.rows, t.columns, t.k, &kOne, t.x,
                    t.x_pitch, t.other, t.other_pitch, &kZero, t.out, t.out_pitch);
}

/// One of about 8 tiles along an axis, between 64 and 256 long: enough of them for the threads,
/// large enough to keep the copies that the library makes small. From the shape alone, so that the
/// sums are the same at every thread count.
std::int64_t tile_extent(std::int64_t extent) {
  return std::clamp<std::int64_t>((extent + 8 * 32 - 1) / (8 * 32) * 32, 64, 256);
}

/// Floats through OpenBLAS, which is told to use one thread: the tiles are spread over ours.
class FloatBody final : public ProductBody {
 public:
  FloatBody(const Product& product, const Matmul& settings, const Problem& problem,
            const Context& context)
      : ProductBody(product, settings, problem, context) {
    constexpr std::int64_t kMost = std::numeric_limits<blasint>::max();
    FOREBAY_REQUIRE(
        product.k <= kMost && product.n <= kMost, unsupported,
        "matmul: `x` has shape {} and `other` {}; on the CPU no row may be longer than {}.",
        to_string(product.x.shape), to_string(product.other.shape), kMost);
    [[maybe_unused]] static const bool once = [] {
      scipy_openblas_set_num_threads(1);
      return true;
    }();
  }

 private:
  void multiply(const void* x, const void* other, void* out, void*, const Launch&) override {
    dispatch(Floats{}, product_.sum, "matmul", "x", [&]<class T>(Type<T>) {
      run_tiles(static_cast<const T*>(x), static_cast<const T*>(other), static_cast<T*>(out));
    });
  }

  template <class T>
  void run_tiles(const T* x, const T* other, T* out) const {
    const Product& p = product_;
    const std::int64_t height = tile_extent(p.m), width = tile_extent(p.n);
    const std::int64_t down = (p.m + height - 1) / height, across = (p.n + width - 1) / width;
    const std::int64_t pitch = p.transposed ? p.k : p.n;
    parallel_blocks(
        count_of(p.batch) * down * across, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t b = i / across / down;
            const std::int64_t row = i / across % down * height, column = i % across * width;
            multiply_tile(Tile<T>{
                .x = x + p.x_offset(b) + row * p.k,
                .other = other + p.other_offset(b) + column * (p.transposed ? p.k : 1),
                .out = out + (b * p.m + row) * p.n + column,
                .rows = static_cast<blasint>(std::min(height, p.m - row)),
                .columns = static_cast<blasint>(std::min(width, p.n - column)),
                .k = static_cast<blasint>(p.k),
                .x_pitch = static_cast<blasint>(p.k),
                .other_pitch = static_cast<blasint>(pitch),
                .out_pitch = static_cast<blasint>(p.n),
                .transpose = p.transposed ? CblasTrans : CblasNoTrans,
            });
          }
        });
  }
};

/// Integers modulo 2^bits: unsigned arithmetic of at least 32 bits, whose low bits are those of the
/// exact sum.
class IntegerBody final : public ProductBody {
 public:
  IntegerBody(const Product& product, const Matmul& settings, const Problem& problem,
              const Context& context)
      : ProductBody(product, settings, problem, context) {}

 private:
  void multiply(const void* x, const void* other, void* out, void*, const Launch&) override {
    dispatch(Integers{}, product_.operand, "matmul", "x", [&]<class T>(Type<T>) {
      using Bits = std::make_unsigned_t<T>;
      run_rows(static_cast<const Bits*>(x), static_cast<const Bits*>(other),
               static_cast<Bits*>(out));
    });
  }

  template <class T>
  void run_rows(const T* x, const T* other, T* out) const {
    using Wide = std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>;
    const Product& p = product_;
    const std::int64_t grain = std::max<std::int64_t>((1 << 16) / p.k / p.n, 1);
    parallel_for(count_of(p.batch) * p.m, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const left = x + p.x_offset(i / p.m) + i % p.m * p.k;
        const T* const right = other + p.other_offset(i / p.m);
        T* const row = out + i * p.n;
        if (p.transposed) {
          for (std::int64_t j = 0; j < p.n; ++j) {
            Wide sum = 0;
            for (std::int64_t k = 0; k < p.k; ++k)
              sum += Wide{left[k]} * Wide{right[j * p.k + k]};
            row[j] = static_cast<T>(sum);
          }
        } else {
          std::fill_n(row, p.n, T{0});
          for (std::int64_t k = 0; k < p.k; ++k) {
            const Wide factor = left[k];
            for (std::int64_t j = 0; j < p.n; ++j)
              row[j] = static_cast<T>(row[j] + factor * Wide{right[k * p.n + j]});
          }
        }
      }
    });
  }
};

}  // namespace

std::unique_ptr<Body> matmul_cpu(const Op& op, const Problem& problem, const Context& context) {
  const auto& settings = op.settings<Matmul>();
  const Product product = resolve(settings, problem.inputs);
  if (is_integer(product.operand))
    return std::make_unique<IntegerBody>(product, settings, problem, context);
  const bool bf16 = product.operand == Dtype::bf16 && product.sum == Dtype::f32;
  if (bf16 && !product.empty() && product.k > 0 && amx::is_available())
    return amx::prepare(product, settings, problem, context);
  return std::make_unique<FloatBody>(product, settings, problem, context);
}

}  // namespace forebay
