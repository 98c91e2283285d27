#include <forebay/ops/expr/cuda_writer.h>

namespace forebay::expr {
namespace {

/// `struct Place` and `struct Item`: what a thread loads, computes and stores at once.
class ItemWriter {
 public:
  explicit ItemWriter(CudaWriter& writer) : w_(writer) {}

  void write() {
    common();
    place_struct();
    item();
  }

 private:
  const CudaWalk& walk() const { return w_.walk; }
  const LoopNest& nest() const { return w_.nest; }
  bool together() const { return walk().together > 1; }
  int last() const { return nest().shape.rank - 1; }
  bool tiled() const { return walk().form == CudaWalk::Form::tiles; }

  /// Whether an array that is not interleaved differs from one of the rows taken together to the next.
  bool by_row(const Dims& strides, Way way) const {
    return together() && way != Way::interleaved && way != Way::index && strides[last() - 1] != 0;
  }
  bool leaf_by_row(std::size_t i) const { return by_row(nest().leaves[i], walk().leaves[i]); }
  /// Arrays that lie in the order of the items need no indices.
  bool in_order(const Dims& strides) const {
    return !together() && !tiled() && nest().is_dense(strides);
  }

  /// What every item shares is loaded once.
  void common() {
    w_.line("\n/// What the items of a thread share.\nstruct Common {{");
    std::string loads;
    const auto add = [&](std::size_t i, std::string_view text) {
      loads += fmt::format("{}{}\n", leaf_by_row(i) ? "      " : "    ", text);
    };
    const auto each = [&](bool rows) {
      for (std::size_t i = 0; i < w_.leaf_count(); ++i) {
        if (!walk().is_common(i) || leaf_by_row(i) != rows) continue;
        const std::string name = fmt::format("x{}{}", i, rows ? "[c]" : "");
        w_.line("  {}", leaf_declaration(i));
        add(i, fmt::format("{} = {};", name, leaf_load(i)));
        if (w_.divides(i)) {
          w_.line("  f32 x{}_inverse{};", i, rows ? "[kRows]" : "");
          const std::string inverse = fmt::format("x{}_inverse", i);
          add(i, w_.is_held(i) ? fmt::format("{0}{1} = p.{0}[{2}];", inverse, rows ? "[c]" : "",
                                             rows ? "c" : "0")
                               : fmt::format("{}{} = inverse_of({}, doubt);", inverse,
                                             rows ? "[c]" : "", name));
        }
        if (w_.shifts(i)) add(i, fmt::format("doubt.see_shift({});", name));
      }
    };
    each(false);
    const std::string one = std::move(loads);
    loads.clear();
    each(true);
    if (w_.has_doubt()) w_.line("  Doubt doubt;");
    if (one.empty() && loads.empty()) {
      w_.line("  explicit Common(const Parameters&) {{}}\n}};");
      return;
    }
    w_.line("\n  explicit Common(const Parameters& p) {{");
    w_.source.text += one;
    if (!loads.empty()) {
      w_.line("#pragma unroll\n    for (int c = 0; c < kRows; ++c) {{\n{}    }}", loads);
    }
    w_.line("  }}\n}};");
  }

  std::string place(const std::string& array, const Dims& strides, Way way) const {
    if (walk().flat || in_order(strides)) return fmt::format("p.{} + first", array);
    std::string text = w_.outer_place(array, strides);
    if (by_row(strides, way)) {
      const int axis = last() - 1;
      text += strides[axis] == 1 ? " + c" : fmt::format(" + c * Index(p.{}_stride{})", array, axis);
    }
    if (way == Way::along) text += " + column";
    if (way == Way::interleaved) text += " + column * kRows";
    if (way == Way::apart) text += fmt::format(" + column * Index(p.{}_stride{})", array, last());
    return fmt::format("p.{}{}", array,
                       text.empty() ? text : fmt::format(" + ({})", text.substr(3)));
  }

  bool is_index(std::size_t i) const { return walk().leaves[i] == Way::index; }
  bool is_loaded(std::size_t i) const { return !walk().is_common(i) && !is_index(i); }

  /// The number of an element: its place in the array that it would lie in.
  std::string index(std::size_t i) const {
    const Dims& strides = nest().leaves[i];
    std::string place;
    const auto add = [&](std::string_view text, int axis) {
      if (strides[axis] == 1) place += fmt::format(" + {}", text);
      if (strides[axis] != 0 && strides[axis] != 1)
        place += fmt::format(" + {} * Index(p.x{}_stride{})", text, i, axis);
    };
    if (walk().flat) {
      if (strides[0] != 0) place = " + (first + n)";
    } else {
      place = w_.outer_place(fmt::format("x{}", i), strides);
      if (together()) add("c", last() - 1);
      add("(column + n)", last());
    }
    if (place.empty()) place = " + 0";
    // Not below 0 without an offset, so that the compiler knows the upper bits.
    const bool narrow = !walk().wide && !walk().flat;
    const bool moved = w_.program.leaves[i].offset != 0;
    if (moved) return fmt::format("u64(p.x{}_offset + ({}))", i, place.substr(3));
    return narrow ? fmt::format("u64(u32({}))", place.substr(3))
                  : fmt::format("u64({})", place.substr(3));
  }

  std::string leaf_declaration(std::size_t i) const {
    const std::string_view type = w_.leaf_type(i);
    const char* const rows = leaf_by_row(i) ? "[kRows]" : "";
    switch (walk().leaves[i]) {
      case Way::scalar:
      case Way::constant:
        return fmt::format("{} x{}{};", type, i, rows);
      case Way::interleaved:
        return fmt::format("Pack<{}, N * kRows> x{};", type, i);
      default:
        return fmt::format("Pack<{}, N> x{}{};", type, i, rows);
    }
  }

  std::string leaf_load(std::size_t i) const {
    const std::string array = fmt::format("x{}", i);
    if (w_.is_held(i)) return fmt::format("p.{}[{}]", array, leaf_by_row(i) ? "c" : "0");
    const std::string from = place(array, nest().leaves[i], walk().leaves[i]);
    switch (walk().leaves[i]) {
      case Way::scalar:
        return fmt::format("*p.{}", array);
      case Way::constant:
        return fmt::format("*({})", from);
      case Way::interleaved:
        return w_.walk.loose[i] ? fmt::format("load_loose<N * kRows>({})", from)
                                : fmt::format("load_pack<N * kRows>({}, N > 1)", from);
      case Way::across:
        return fmt::format("tiles.{}.template pack<N>(k, l)", array);
      case Way::apart:
        return fmt::format("load_apart<N>({}, Index(p.{}_stride{}))", from, array, last());
      default:
        return w_.walk.loose[i] ? fmt::format("load_loose<N>({})", from)
                                : fmt::format("load_pack<N>({}, N > 1)", from);
    }
  }

  void item() {
    w_.line("\n/// N neighbours on the last axis{}.", together() ? ", in kRows rows" : "");
    w_.line("template <int N>\nstruct Item : Place {{");
    for (std::size_t i = 0; i < w_.leaf_count(); ++i) {
      if (is_loaded(i)) w_.line("  {}", leaf_declaration(i));
    }
    w_.line("\n  void load(const Parameters& p{}) {{", tiled() ? ", const Tiles& tiles" : "");
    for (std::size_t i = 0; i < w_.leaf_count(); ++i) {
      if (is_loaded(i) && !leaf_by_row(i)) w_.line("    x{} = {};", i, leaf_load(i));
    }
    bool any = false;
    for (std::size_t i = 0; i < w_.leaf_count(); ++i) {
      if (!is_loaded(i) || !leaf_by_row(i)) continue;
      if (!any) w_.line("#pragma unroll\n    for (int c = 0; c < kRows; ++c) {{");
      any = true;
      w_.line("      x{}[c] = {};", i, leaf_load(i));
    }
    if (any) w_.line("    }}");
    w_.line("  }}");
    store();
    w_.line("}};");
  }

  /// Where an item starts.
  void place_struct() {
    w_.line("\nstruct Place {{");
    if (walk().flat) {
      w_.line("  i64 first;\n");
      w_.line(
          "  template <int N>\n  void find(const Parameters&, i64 item) {{ first = item * N; }}");
      w_.line("  void move(int n) {{ first += n; }}\n}};");
      return;
    }
    std::string names = tiled() ? "column" : "first, column";
    for (int axis = 0; axis < walk().outer_rank(); ++axis)
      names += fmt::format(", i{}", axis);
    w_.line("  Index {};", names);
    if (tiled()) w_.line("  u32 k, l;  // in the square");
    if (!tiled()) find();
    w_.line("\n  void move(int n) {{");
    w_.line("    {} += n;\n    column += n;\n  }}\n}};", tiled() ? "l" : "first");
  }
  void find() {
    w_.line("\n  template <int N>\n  void find(const Parameters& p, i64 item) {{");
    w_.line("    const Index i = Index(item);\n    first = i * N;");
    if (walk().outer_rank() == 0) {
      w_.line("    column = first;");
    } else {
      w_.line("    const Index r = p.by_row.quotient(i);");
      w_.line("    column = (i - r * Index(p.per_row)) * N;");
      w_.outer_indices("    ", "");
    }
    w_.line("  }}");
  }

  std::string output_declaration(std::size_t k) const {
    return fmt::format("Pack<{}, N{}> out{};", w_.output_type(k),
                       walk().outputs[k] == Way::interleaved ? " * kRows" : "", k);
  }
  std::string output_store(std::size_t k) const {
    const std::string array = fmt::format("out{}", k);
    const Way way = walk().outputs[k];
    const std::string to = place(array, nest().outputs[k], way);
    if (way == Way::apart) {
      return fmt::format("{}store_apart({}, out{}, Index(p.{}_stride{}));", w_.guard(k), to, k,
                         array, last());
    }
    return fmt::format("{}store_pack({}, out{}, N > 1);", w_.guard(k), to, k);
  }

  void store() {
    const char* const indent = together() ? "      " : "    ";
    const auto outputs = [&](bool interleaved, const auto& text) {
      for (std::size_t k = 0; k < w_.output_count(); ++k) {
        if ((walk().outputs[k] == Way::interleaved) == interleaved)
          w_.line("{}{}", interleaved ? "    " : indent, text(k));
      }
    };
    w_.line("\n  void compute_and_store(const Parameters& p, const Common& common{}) const {{",
            w_.has_doubt() ? ", Doubt& doubt" : "");
    outputs(true, [&](std::size_t k) { return output_declaration(k); });
    if (together()) w_.line("#pragma unroll\n    for (int c = 0; c < kRows; ++c) {{");
    outputs(false, [&](std::size_t k) { return output_declaration(k); });
    elements(indent);
    outputs(false, [&](std::size_t k) { return output_store(k); });
    if (together()) w_.line("    }}");
    outputs(true, [&](std::size_t k) { return output_store(k); });
    w_.line("  }}");
  }

  void elements(std::string_view indent) {
    const auto leaf = [&](std::size_t i) {
      if (is_index(i)) return index(i);
      const std::string name = fmt::format("{}x{}{}", walk().is_common(i) ? "common." : "", i,
                                           leaf_by_row(i) ? "[c]" : "");
      const Way way = walk().leaves[i];
      const bool one = way == Way::scalar || way == Way::constant;
      if (one) return w_.is_widened(i) ? fmt::format("f32({})", name) : name;
      const char* const k = way == Way::interleaved ? "n * kRows + c" : "n";
      return w_.is_widened(i) ? fmt::format("as_f32({}, {})", name, k)
                              : fmt::format("{}.at[{}]", name, k);
    };
    const auto output = [&](std::size_t k) {
      const bool interleaved = walk().outputs[k] == Way::interleaved;
      return fmt::format("out{}.at[{}]", k, interleaved ? "n * kRows + c" : "n");
    };
    const auto inverse = [&](std::size_t i) {
      return fmt::format("common.x{}_inverse{}", i, leaf_by_row(i) ? "[c]" : "");
    };
    w_.line("#pragma unroll\n{0}for (int n = 0; n < N; ++n)\n{0}  {1}", indent,
            w_.element_call("N == 1", leaf, inverse, output));
  }

  CudaWriter& w_;
};

}  // namespace

void write_item(CudaWriter& writer) { ItemWriter(writer).write(); }

}  // namespace forebay::expr
