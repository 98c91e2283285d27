#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include <forebay/ops/fft/rows.h>

namespace forebay::dft {
namespace {

/// exp(-2 pi i k / n), times `factor`.
std::complex<double> root(std::int64_t n, std::int64_t k, std::complex<double> factor = 1) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return factor * std::complex<double>(std::cos(angle), -std::sin(angle));
}

bool splits(const Transform& t, const RowsPlan& plan) {
  return plan.halves && t.engine == Engine::r2c;
}

/// Twiddles between the passes, which come before those of `halves`.
std::size_t pass_roots(const RowsPlan& plan, std::size_t passes) {
  std::size_t count = 0;
  for (std::size_t i = 1; i < passes; ++i)
    count += static_cast<std::size_t>((plan.passes[i].radix - 1) * plan.passes[i].before);
  return count;
}

std::string read_call(const Transform& t, const RowsPlan& plan) {
  const auto halves_at = pass_roots(plan, plan.passes.size());
  if (t.engine == Engine::c2r)
    return plan.halves ? fmt::format("read_halves<P0>(v0, t, x, roots + {})", halves_at)
                       : "read_hermitian<P0>(v0, t, x)";
  return plan.halves ? "read_pairs<P0>(v0, t, x)" : "read_points<P0>(v0, t, x)";
}

/// Writes this thread's part of the result to `out`, a row; `p` is the last pass.
std::string write_call(const Transform& t, const RowsPlan& plan, std::size_t p) {
  if (splits(t, plan)) {
    return fmt::format("split_{0}<P{1}>(v{1}, {2}t, roots + {3}, out{4})",
                       plan.split_in_registers ? "registers" : "shared", p,
                       plan.split_in_registers ? "" : "words, ",
                       pass_roots(plan, plan.passes.size()),
                       plan.split_in_registers ? "" : ", there");
  }
  const char* const function = t.engine == Engine::c2r   ? plan.halves ? "pairs" : "reals"
                               : t.engine == Engine::r2c ? "frequencies"
                                                         : "points";
  return fmt::format("write_{0}<P{1}>(v{1}, t, out)", function, p);
}

/// The last lines of the kernel.
std::string write_rows(const Transform& t, const RowsPlan& plan) {
  const std::string call = write_call(t, plan, plan.passes.size() - 1);
  if (plan.together)
    return fmt::format(
        "  write_together<{}, {}>(store, memory, first, rows, [&](const auto& out) {{\n    {};\n  "
        "}});\n",
        plan.rows, t.extent_out, call);
  if (splits(t, plan) && !plan.split_in_registers)  // all threads meet in it
    return fmt::format("  const auto out = store.row(there ? row : rows - 1);\n  {};\n", call);
  return fmt::format("  if (!there) return;\n  const auto out = store.row(row);\n  {};\n", call);
}

std::string summary(const Transform& t, const RowsPlan& plan) {
  std::string radices;
  for (const RowPass& pass : plan.passes)
    radices += fmt::format("{}{}", radices.empty() ? "" : " x ", pass.radix);
  return fmt::format("// {} of {} points{}: {} thread{} a row, passes of radix {}.\n", t.name,
                     t.points, plan.halves ? ", pairs of reals as one" : "", plan.threads,
                     plan.threads == 1 ? "" : "s", radices);
}

}  // namespace

std::vector<std::complex<double>> row_roots(const Transform& t, const RowsPlan& plan) {
  std::vector<std::complex<double>> roots;
  for (std::size_t i = 1; i < plan.passes.size(); ++i) {
    const RowPass& pass = plan.passes[i];
    for (int r = 1; r < pass.radix; ++r) {
      for (int j = 0; j < pass.before; ++j)
        roots.push_back(root(std::int64_t{pass.before} * pass.radix, std::int64_t{j} * r));
    }
  }
  if (!plan.halves) return roots;
  const std::complex<double> i(0, 1);
  for (int k = 0; k < plan.length; ++k) {
    roots.push_back(t.engine == Engine::c2r ? std::conj(root(t.points, k, -i * t.scale))
                                            : root(t.points, k, -i * (t.scale / 2)));
  }
  return roots;
}

RowsSource rows_source(const Transform& t, const RowsPlan& plan) {
  RowsSource source;
  source.constants = summary(t, plan);
  source.constants += fmt::format(
      "using Real = {};\nconstexpr int kPoints = {}, kLength = {}, kThreads = {}, kExtent = {};\n"
      "constexpr bool kInverse = {}, kMirror = {};\nconstexpr Real kScale = {:.17g};\n",
      name_of(t.real), t.points, plan.length, plan.threads, std::min(t.extent, t.read()), t.inverse,
      t.mirror, t.scale);

  const int threads = plan.threads * plan.rows;
  std::string& text = source.kernel;
  text = fmt::format(
      "\nextern \"C\" __global__ __launch_bounds__({}) void fft_rows(\n"
      "    const __grid_constant__ Load load, const __grid_constant__ Store store, const C* "
      "__restrict__ roots, i64 rows) {{\n"
      "  const int t = threadIdx.x % kThreads, place_in_block = threadIdx.x / kThreads;\n"
      "  const i64 first = i64(blockIdx.x) * {}, row = first + place_in_block;\n"
      "  const bool there = row < rows;\n"
      "  const auto x = load.row(there ? row : rows - 1);\n",
      threads, plan.rows);
  const std::size_t count = plan.passes.size();
  const bool shares = count > 1 || (splits(t, plan) && !plan.split_in_registers);
  if (shares || plan.together) {
    text += fmt::format(
        "  constexpr int kWords = {} * sizeof(C), kWritten = {} * sizeof(Store::Stored);\n"
        "  __shared__ __align__(16) char memory[kWords > kWritten ? kWords : kWritten];\n",
        shares ? plan.rows * plan.row_words : 0, plan.together ? plan.rows * t.extent_out : 0);
  }
  if (shares) {
    text += fmt::format("  C* const words = reinterpret_cast<C*>(memory) + place_in_block * {};\n",
                        plan.row_words);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const RowPass& pass = plan.passes[i];
    text += fmt::format("  using P{0} = Pass<{1}, {2}{3}>;\n  C v{0}[P{0}::kEach][P{0}::Radix];\n",
                        i, pass.radix, pass.before, pass.pairs ? ", true" : "");
  }
  text += fmt::format("\n  {};\n  transform_lines<P0>(v0);\n", read_call(t, plan));
  for (std::size_t i = 1; i < count; ++i) {
    if (i > 1) text += "  meet();\n";
    text += fmt::format(
        "  exchange<P{0}, P{1}, {2}, {3}>(v{0}, v{1}, words, t, roots + {4});\n"
        "  transform_lines<P{1}>(v{1});\n",
        i - 1, i, plan.exchanges[i - 1].every, plan.exchanges[i - 1].gap, pass_roots(plan, i));
  }
  text += write_rows(t, plan);
  text += "}\n";
  return source;
}

}  // namespace forebay::dft
