#include <algorithm>
#include <optional>

#include <forebay/array/parallel.h>
#include <forebay/ops/expr/tile.h>
#include <forebay/ops/matmul/amx.h>
#include <forebay/ops/thread_room.h>

namespace forebay::amx {
namespace {

/// Of x at once, together some 0.5 MB, beside as many sums: half of a second-level cache.
constexpr std::int64_t kRows = 128, kDepth = 2048;
constexpr std::int64_t kLeastColumns = 256, kColumns = 1024;  // of the result at once
constexpr std::int64_t kLines = 16;  // of x, at least, on their way from what is fused to panels
constexpr std::int64_t kTasks = 16;  // that make splitting rows of the result pointless

expr::Tile tile_of(const expr::Expr& expression) {
  return expr::Tile(expr::compile({&expression, 1}));
}

class AmxBody final : public Body {
 public:
  AmxBody(const Product& product, const Matmul& settings, const Problem& problem,
          const Context& context)
      : p_(product),
        load_x_(tile_of(operand_of(product, problem, 0, Dtype::bf16))),
        store_(tile_of(cast(expr::Expr::leaf(0, Dtype::f32, p_.out.shape), p_.out.dtype))) {
    if (is_given(settings.other)) {
      const Array other = made_constant(settings.other.array, Dtype::bf16, Dtype::bf16, context);
      constant_ = Array::empty({matrices() * matrix_size()}, Dtype::bf16, context);
      pack_other(constant_.data(), [&](std::int64_t begin, std::int64_t, BFloat16*) {
        return other.as<BFloat16>() + begin;
      });
    } else {
      load_other_.emplace(tile_of(operand_of(product, problem, 1, Dtype::bf16)));
    }
  }

  std::size_t scratch_bytes() const override {
    return load_other_.has_value()
               ? static_cast<std::size_t>(matrices() * matrix_size()) * sizeof(BFloat16)
               : 0;
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const void* other = constant_.data();
    if (load_other_.has_value()) {
      pack_other(launch.scratch, [&](std::int64_t begin, std::int64_t count, BFloat16* room) {
        return static_cast<const BFloat16*>(load_other_->load(inputs, begin, count, room));
      });
      other = launch.scratch;
    }
    const std::int64_t down = (p_.m + kRows - 1) / kRows;
    const std::int64_t parts = std::max<std::int64_t>(kTasks / (count_of(p_.batch) * down), 1);
    const std::int64_t width =
        std::clamp(padded((p_.n + parts - 1) / parts), kLeastColumns, kColumns);
    const std::int64_t across = (p_.n + width - 1) / width;
    parallel_blocks(
        count_of(p_.batch) * down * across, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i / across % down * kRows, column = i % across * width;
            run_block(inputs, static_cast<const BFloat16*>(other), outputs[0].data,
                      {.batch = i / across / down,
                       .row = row,
                       .rows = std::min(kRows, p_.m - row),
                       .column = column,
                       .columns = std::min(width, p_.n - column)});
          }
        });
  }

 private:
  /// Of the result.
  struct Block {
    std::int64_t batch, row, rows, column, columns;
  };

  std::int64_t matrices() const { return count_of(p_.other.shape) / (p_.k * p_.n); }
  std::int64_t matrix_size() const { return packed_size(p_.n, p_.k); }

  /// Every matrix of other. `load(begin, count, room)`: elements of it, where they lie or in `room`.
  template <class Load>
  void pack_other(void* packed, Load&& load) const {
    const std::int64_t rows = p_.transposed ? p_.n : p_.k, length = p_.transposed ? p_.k : p_.n;
    const std::int64_t panels = padded(rows) / kPanel;
    parallel_blocks(matrices() * panels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t matrix = i / panels, first = i % panels * kPanel;
        const std::int64_t count = std::min(kPanel, rows - first) * length;
        const BFloat16* const from = load((matrix * rows + first) * length, count,
                                          thread_room<BFloat16>(kPanel * length, 0));
        BFloat16* const to = static_cast<BFloat16*>(packed) + matrix * matrix_size();
        if (p_.transposed)
          pack_columns(from, first, p_.n, p_.k, to);
        else
          pack_inner(from, first, p_.k, p_.n, to);
      }
    });
  }

  void run_block(std::span<const ArrayView> inputs, const BFloat16* other, void* out,
                 const Block& block) const {
    // Rows that are a power of two apart would share a few lines of the first cache.
    const std::int64_t pitch = padded(block.columns) + kPanel / 2;
    float* const sums = thread_room<float>(kRows * pitch, 0);
    BFloat16* const x = thread_room<BFloat16>(packed_size(kRows, std::min(p_.k, kDepth)), 1);
    const BFloat16* const panels = other +
                                   p_.other_offset(block.batch) / (p_.k * p_.n) * matrix_size() +
                                   block.column * padded(p_.k);
    for (std::int64_t first = 0; first < p_.k; first += kDepth) {
      const std::int64_t depth = std::min(kDepth, p_.k - first);
      pack_x(inputs, block, first, depth, x);
      multiply({.x = x,
                .other = panels + first * kPanel,
                .rows = block.rows,
                .columns = block.columns,
                .k = depth,
                .other_pitch = kPanel * padded(p_.k)},
               sums, pitch, first > 0);
    }
    const std::int64_t begin = (block.batch * p_.m + block.row) * p_.n + block.column;
    if (block.columns == p_.n && p_.n < kLeastColumns) {  // short rows: side by side, at once
      for (std::int64_t i = 1; i < block.rows; ++i)
        std::copy_n(sums + i * pitch, p_.n, sums + i * p_.n);
      store_.store(sums, {}, begin, block.rows * p_.n, out);
      return;
    }
    for (std::int64_t i = 0; i < block.rows; ++i)
      store_.store(sums + i * pitch, {}, begin + i * p_.n, block.columns, out);
  }

  /// Inner elements first .. first + depth of a block's rows.
  void pack_x(std::span<const ArrayView> inputs, const Block& block, std::int64_t first,
              std::int64_t depth, BFloat16* packed) const {
    auto* const room = thread_room<BFloat16>(kLines * kDepth, 0);
    // Whole rows lie one behind the other.
    const std::int64_t at_once =
        depth == p_.k ? std::min(kLines * kDepth / depth, kRows) : std::int64_t{1};
    for (std::int64_t i = 0; i < block.rows; i += at_once) {
      const std::int64_t rows = std::min(at_once, block.rows - i);
      const std::int64_t begin = p_.x_offset(block.batch) + (block.row + i) * p_.k + first;
      const void* const x = load_x_.load(inputs, begin, rows * depth, room);
      pack_rows(static_cast<const BFloat16*>(x), i, rows, depth, packed);
    }
  }

  Product p_;
  expr::Tile load_x_, store_;
  std::optional<expr::Tile> load_other_;  ///< without a constant
  Array constant_;                        ///< packed
};

}  // namespace

std::unique_ptr<Body> prepare(const Product& product, const Matmul& settings,
                              const Problem& problem, const Context& context) {
  return std::make_unique<AmxBody>(product, settings, problem, context);
}

}  // namespace forebay::amx
