#include <forebay/ops/matmul/hopper.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace forebay::hopper {
namespace {

constexpr std::size_t kSharedMemory = 227 * 1024;  // of a block
constexpr std::size_t kBarriers = 32;              // bytes for each place in both rings

constexpr std::int64_t kRows = 128, kMostColumns = 256;  // of a tile

/// Even: two blocks share x.
std::int64_t tiles_across(std::int64_t columns) {
  return (columns + 2 * kMostColumns - 1) / (2 * kMostColumns) * 2;
}

/// What a thread computes in the time that the tensor cores take.
constexpr int kMostWork = 12;

/// Instructions that the program takes for an element, roughly.
int work(const expr::Program& program) {
  int sum = 0;
  for (const auto& instruction : program.code) {
    switch (instruction.opcode) {
      case expr::Opcode::leaf:
      case expr::Opcode::constant:
        break;
      case expr::Opcode::cast_saturate:
      case expr::Opcode::neg:
      case expr::Opcode::abs:
      case expr::Opcode::add:
      case expr::Opcode::sub:
      case expr::Opcode::mul:
      case expr::Opcode::minimum:
      case expr::Opcode::maximum:
        ++sum;
        break;
      case expr::Opcode::div:
        sum += 5;
        break;
      default:
        return kMostWork + 1;
    }
  }
  return sum;
}

bool is_row_or_column(const Dims& strides) {
  const int last = strides.rank - 1;
  return strides[last] == 0 ||
         std::all_of(strides.values, strides.values + last, [](std::int64_t s) { return s == 0; });
}

}  // namespace

std::size_t Plan::shared_bytes() const {
  return static_cast<std::size_t>(ring_x) * (x_unit() + kBarriers / 2) +
         static_cast<std::size_t>(ring_other) * (other_unit() + kBarriers / 2);
}

bool fits(const Product& p) {
  const bool narrow = p.operand == Dtype::bf16 || p.operand == Dtype::f16;
  const bool stored =
      p.out.dtype == Dtype::f32 || p.out.dtype == Dtype::f16 || p.out.dtype == Dtype::bf16;
  const bool whole = p.batch.rank == 0 && p.k > 0 && p.k % 64 == 0 && p.n > 0 && p.n % 8 == 0;
  if (!(narrow || p.tf32) || p.sum != Dtype::f32 || !stored || !whole) return false;
  // Measured on an H200: with fewer tiles than multiprocessors, or a pass that many columns share, the library is faster.
  constexpr std::int64_t kFewestTiles = 128, kMostNarrowColumns = 1280;
  const bool passes = p.x.dtype != p.operand && p.n <= kMostNarrowColumns;
  return (p.m + kRows - 1) / kRows * tiles_across(p.n) >= kFewestTiles && (p.tf32 || passes);
}

std::optional<std::size_t> staged_leaf(const Product& p, const expr::Program& x) {
  const Dtype given = x.code[static_cast<std::size_t>(x.outputs[0])].dtype;
  const bool exact_in_f32 = given == Dtype::f32 || size_of(given) <= 2;
  if (!exact_in_f32 || work(x) > kMostWork) return std::nullopt;
  std::optional<std::size_t> staged;
  for (std::size_t i = 0; i < x.leaves.size(); ++i) {
    const expr::Program::Leaf& leaf = x.leaves[i];
    if (is_row_or_column(leaf.strides)) continue;
    const std::size_t size = size_of(leaf.dtype);
    const bool copied = leaf.source >= 0 && is_dense(x.shape, leaf.strides) && size <= 4 &&
                        static_cast<std::size_t>(p.k) * size % 16 == 0;
    if (!copied || staged.has_value()) return std::nullopt;
    staged = i;
  }
  return staged;
}

Plan plan(const Product& p, std::size_t x_bytes) {
  Plan plan{.operand = p.operand, .stored = p.out.dtype, .x_bytes = x_bytes};
  constexpr std::int64_t kStep = 32;
  plan.tiles = tiles_across(p.n);
  const std::int64_t each = (p.n + plan.tiles - 1) / plan.tiles;
  plan.columns = (each + kStep - 1) / kStep * kStep;
  const std::size_t x_unit = plan.x_unit() + kBarriers, other_unit = plan.other_unit() + kBarriers;
  // As many of other as of x, and what is left for x.
  constexpr std::size_t kMost = 12;
  const std::size_t both = std::min(kMost, kSharedMemory / (x_unit + other_unit));
  plan.ring_other = static_cast<std::int64_t>(both);
  plan.ring_x =
      static_cast<std::int64_t>(std::min(kMost, (kSharedMemory - both * other_unit) / x_unit));
  return plan;
}

std::vector<Clip> take_clips(expr::Program& x, Dtype operand) {
  std::vector<Clip> clips;
  if (operand != Dtype::bf16 && operand != Dtype::f16) return clips;
  for (;;) {
    const expr::Program::Instruction& last = x.code[static_cast<std::size_t>(x.outputs[0])];
    const bool clips_f32 = last.dtype == Dtype::f32 && (last.opcode == expr::Opcode::minimum ||
                                                        last.opcode == expr::Opcode::maximum);
    if (!clips_f32) break;
    const int number =
        x.code[static_cast<std::size_t>(last.args[1])].opcode == expr::Opcode::constant;
    const int other = last.args[1 - number];
    const expr::Program::Instruction& constant =
        x.code[static_cast<std::size_t>(last.args[number])];
    if (constant.opcode != expr::Opcode::constant) break;
    const auto bound = static_cast<float>(constant.value.f64());
    if (bound == 0 || std::isnan(bound)) break;  // which zero it is depends on more
    const std::uint32_t bits = operand == Dtype::bf16 ? BFloat16(bound).bits : Half(bound).bits;
    clips.insert(clips.begin(), {last.opcode, bits << 16 | bits});
    x.outputs[0] = other;
    x.code.resize(static_cast<std::size_t>(other) + 1);  // what follows was for the clip alone
  }
  return clips;
}

std::string clipped_text(const std::vector<Clip>& clips, Dtype operand) {
  std::string text = "u32 clipped(u32 two) {\n";
  for (const Clip& clip : clips) {
    text += fmt::format("  asm(\"{}.NaN.{}x2 %0, %0, %1;\" : \"+r\"(two) : \"r\"({:#x}u));\n",
                        clip.opcode == expr::Opcode::minimum ? "min" : "max", name_of(operand),
                        clip.two);
  }
  return text + "  return two;\n}\n";
}

std::string multiply_text(const Plan& plan) {
  const std::int64_t sums = plan.columns / 2;
  std::vector<std::string> places, operands;
  for (std::int64_t i = 0; i < sums; ++i) {
    places.push_back(fmt::format("%{}", i));
    operands.push_back(fmt::format("\"+f\"(sums[{}])", i));
  }
  const bool tf32 = plan.operand == Dtype::f32;
  const std::string_view type = tf32 ? "tf32" : name_of(plan.operand);
  return fmt::format(
      "void multiply(f32 (&sums)[{0}], const u32* x, u64 other, bool adds) {{\n"
      "  asm volatile(\"{{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %{1}, 0;\\n\"\n"
      "    \"wgmma.mma_async.sync.aligned.m64n{2}k{3}.f32.{4}.{4} \"\n"
      "    \"{{{5}}}, \"\n"
      "    \"{{%{0}, %{6}, %{7}, %{8}}}, %{9}, adds, 1, 1{10};\\n}}\"\n"
      "    : {11}\n"
      "    : \"r\"(x[0]), \"r\"(x[1]), \"r\"(x[2]), \"r\"(x[3]), \"l\"(other), \"r\"(u32(adds)));\n"
      "}}\n",
      sums, sums + 5, plan.columns, tf32 ? 8 : 16, type, fmt::join(places, ", "), sums + 1,
      sums + 2, sums + 3, sums + 4, tf32 ? "" : ", 0", fmt::join(operands, ", "));
}

}  // namespace forebay::hopper
