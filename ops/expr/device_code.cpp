#include <forebay/ops/expr/device_code.h>

#include <algorithm>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_text.h>
#include <forebay/ops/expr/divisor.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/loop_nest.h>
#include <forebay/ops/expr/row_nest.h>

namespace forebay::embedded {
extern const char* const expr_cu;
}

namespace forebay::expr {

const char* const kPackText = embedded::expr_cu;

namespace {

/// Whether leaf `i` of a store is the op's own result, which comes as a value.
bool is_result(const DeviceCode& code, std::size_t i) {
  return code.is_store && code.program.leaves[i].source == 0;
}

constexpr std::int64_t kAnyAccess = std::numeric_limits<std::int32_t>::max();

/// How many elements of `size` bytes an access may have where all addresses are multiples of the bits set here.
std::int64_t elements_together(std::uint64_t bits, std::size_t size) {
  const std::uint64_t unit = bits & (~bits + 1);
  return unit == 0 || unit >= 16 ? kAnyAccess : static_cast<std::int64_t>(unit / size);
}

/// The text of a struct, and beside it the words that do not depend on addresses.
class Generator {
 public:
  Generator(std::string_view name, DeviceCode& code)
      : name_(name),
        code_(code),
        program_(code.program),
        rows_(row_nest(code.program)),
        nest_(loop_nest(code.program)) {
    flat_ = nest_.shape.rank == 1;
    for (std::size_t i = 0; i < leaf_count(); ++i)
      flat_ &= nest_.is_dense(nest_.leaves[i]) || is_scalar(i);
  }

  void operator()() {
    line("\nstruct {} {{", name_);
    types();
    members();
    element();
    row_struct();
    row();
    if (code_.is_store) {
      put();
    } else {
      at();
      pack_from();
    }
    line("}};");
  }

 private:
  std::size_t leaf_count() const { return program_.leaves.size(); }
  bool is_result(std::size_t i) const { return expr::is_result(code_, i); }
  bool is_scalar(std::size_t i) const { return LoopNest::is_scalar(program_.leaves[i].strides); }
  bool is_index(std::size_t i) const { return program_.leaves[i].is_index(); }
  bool has_index() const {
    return std::any_of(program_.leaves.begin(), program_.leaves.end(),
                       [](const Program::Leaf& leaf) { return leaf.is_index(); });
  }
  std::string_view type_of(std::size_t i) const {
    return is_result(i) ? "Value" : cuda_memory_type(program_.leaves[i].dtype);
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    code_.text += fmt::format(format, std::forward<Args>(args)...);
    code_.text += '\n';
  }
  /// A member of the struct that the launch does not change.
  void word(std::string_view member, std::int64_t value) {
    line("  i64 {};", member);
    code_.words.push_back(static_cast<std::uint64_t>(value));
  }
  void divisor(std::string_view member, std::int64_t value) {
    const Divisor divisor(std::max<std::int64_t>(value, 1), wide_);
    line("  Divisor<Index> {};", member);
    code_.words.insert(code_.words.end(), {divisor.multiplier, divisor.shift});
  }

  /// The text for each leaf that is in memory, joined.
  template <class Text>
  std::string each_leaf(std::string_view between, const Text& text,
                        bool with_result = false) const {
    std::string all;
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_result(i) && !with_result) continue;
      if (!all.empty()) all += between;
      all += text(i);
    }
    return all;
  }
  /// The call of `element` with each leaf in memory as `text` writes it.
  template <class Text>
  std::string element_call(std::string_view value, const Text& text) const {
    return fmt::format(
        "element({})",
        each_leaf(
            ", ", [&](std::size_t i) { return is_result(i) ? std::string(value) : text(i); },
            true));
  }

  void types() {
    const Dtype given = program_.code[static_cast<std::size_t>(program_.outputs[0])].dtype;
    wide_ = !fits_32_bits(nest_);
    if (code_.is_store) {
      for (std::size_t i = 0; i < leaf_count(); ++i) {
        if (is_result(i)) line("  using Value = {};", name_of(program_.leaves[i].dtype));
      }
      line("  using Stored = {};", name_of(given));
    } else {
      line("  using Value = {};", name_of(given));
    }
    line("  using Index = {};  // holds every offset", wide_ ? "i64" : "i32");
  }

  /// In the order of DeviceCode::words.
  void members() {
    line("  i64 whole, row_whole;  // elements that an access may have: in the array, in rows");
    code_.words.assign(2, 0);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_result(i)) continue;
      if (is_index(i)) {
        word(fmt::format("x{}", i), program_.leaves[i].offset);
        continue;
      }
      const int source = program_.leaves[i].source - (code_.is_store ? 1 : 0);
      line("  const {}* x{};  // {}", type_of(i), i,
           program_.leaves[i].source < 0 ? "a table" : fmt::format("source {}", source));
      code_.words.push_back(0);
    }
    if (code_.is_store) {
      line("  Stored* out;");
      code_.words.push_back(0);
    }
    word("columns", rows_.columns);
    if (!flat_) divisor("by_columns", rows_.columns);
    const Dims& outer = rows_.outer.shape;
    for (int axis = 1; rows_.any_unpitched && axis < outer.rank; ++axis) {
      word(fmt::format("extent{}", axis), outer[axis]);
      divisor(fmt::format("by_extent{}", axis), outer[axis]);
    }
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_result(i)) continue;
      const Rows& rows = rows_.leaves[i];
      if (rows.pitched) {
        word(fmt::format("x{}_pitch", i), rows.pitch);
      } else {
        for (int axis = 0; axis < outer.rank; ++axis)
          word(fmt::format("x{}_stride{}", i, axis), rows.outer[axis]);
      }
      if (is_apart(i)) word(fmt::format("x{}_step", i), rows.step);
    }
  }
  bool is_apart(std::size_t i) const {
    return rows_.leaves[i].step != 0 && rows_.leaves[i].step != 1;
  }

  void element() {
    const std::string_view given = code_.is_store ? "Stored" : "Value";
    const std::string parameters = each_leaf(
        ", ", [&](std::size_t i) { return fmt::format("{} x{}", type_of(i), i); }, true);
    const CudaShared shared{.leaves = std::vector<CudaShared::Leaf>(leaf_count()), .doubts = true};
    for (int i = 0; i < static_cast<int>(program_.code.size()); ++i) {
      has_doubt_ |= is_doubted(program_, i, shared) || quotient_of(program_, i, shared).by_inverse;
    }
    line("\n{}  static {} element({}{}) {{", has_doubt_ ? "  template <bool Exact>\n" : "", given,
         parameters, has_doubt_ ? ", Doubt& doubt" : "");
    code_.text += cuda_statements(program_, "    ", shared);
    line("    return {};\n  }}", cuda_value(program_, program_.outputs[0]));
    if (!has_doubt_) return;
    line("  static {} element({}) {{\n    Doubt doubt;", given, parameters);
    line("    return element<true>({}, doubt);\n  }}",
         each_leaf(
             ", ", [&](std::size_t i) { return fmt::format("x{}", i); }, true));
  }

  void row_struct() {
    line("\n  struct Row {{\n    i64 whole;");
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_result(i)) continue;
      const bool one = rows_.leaves[i].step == 0 || is_index(i);
      line("    {}{}{} x{};", one ? "" : "const ", type_of(i), one ? "" : "*", i);
      if (is_apart(i)) line("    Index x{}_step;", i);
    }
    if (code_.is_store) line("    Stored* out;");
    const auto number = [&](std::size_t i, std::string_view column) {
      return is_apart(i) ? fmt::format("x{0} + {1} * u64(x{0}_step)", i, column)
                         : fmt::format("x{} + {}", i, column);
    };
    const std::string call = element_call("value", [&](std::size_t i) {
      if (rows_.leaves[i].step == 0) return fmt::format("x{}", i);
      if (is_index(i)) return number(i, "u64(column)");
      return is_apart(i) ? fmt::format("x{0}[Index(column) * x{0}_step]", i)
                         : fmt::format("x{}[column]", i);
    });
    if (code_.is_store) {
      line("    void put(i64 column, Value value) const {{ out[column] = {}; }}", call);
    } else {
      line("    Value at(i64 column) const {{ return {}; }}", call);
    }
    const auto load = [&](std::size_t i) {
      if (rows_.leaves[i].step == 0 || is_index(i)) return std::string();
      return is_apart(i)
                 ? fmt::format("load_apart<N>(x{0} + Index(p * N) * x{0}_step, x{0}_step)", i)
                 : fmt::format("load_pack<N>(x{} + p * N, together)", i);
    };
    const auto one = [&](std::size_t i) {
      return is_index(i) && rows_.leaves[i].step != 0 ? number(i, "u64(p * N + k)")
                                                      : fmt::format("x{}", i);
    };
    if (code_.is_store) {
      packs("    ", load, one);
    } else {
      fetched_packs(load, one);
    }
    line("  }};");
  }

  /// A row's `pack` in two steps.
  template <class Load, class One>
  void fetched_packs(const Load& load, const One& one) {
    line("    template <int N>\n    struct Fetched {{");
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (!load(i).empty()) line("      Pack<{}, N> x{};", type_of(i), i);
    }
    const bool indexed = has_index();
    if (indexed) line("      i64 p;");
    line("    }};\n    template <int N>\n    Fetched<N> fetch(i64 p) const {{");
    line("      [[maybe_unused]] const bool together = (N & -N) <= whole;");
    std::string loads;
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (!load(i).empty()) loads += fmt::format("{}{}", loads.empty() ? "" : ", ", load(i));
    }
    if (indexed) loads += loads.empty() ? "p" : ", p";
    line("      return {{{}}};\n    }}", loads);
    line("    template <int N>\n    Pack<Value, N> values(const Fetched<N>& fetched) const {{");
    if (indexed) line("      const i64 p = fetched.p;");
    line("      Pack<Value, N> values;");
    elements("      ", "values", element_call("", [&](std::size_t i) {
               return load(i).empty() ? one(i) : fmt::format("fetched.x{}.at[k]", i);
             }));
    line("      return values;\n    }}");
    line("    template <int N>\n    Pack<Value, N> pack(i64 p) const {{");
    line("      return values<N>(fetch<N>(p));\n    }}");
  }

  /// All N elements of `pack`, element k by `call`: in short ways, and again in exact ones where
  /// those may be wrong.
  void elements(std::string_view indent, std::string_view pack, const std::string& call) {
    const auto loop = [&](std::string_view inner, std::string_view text) {
      line("#pragma unroll\n{}{}for (int k = 0; k < N; ++k) {}.at[k] = {};", indent, inner, pack,
           text);
    };
    if (!has_doubt_) return loop("", call);
    const std::size_t open = call.find('(');
    line("{}Doubt doubt;", indent);
    loop("", fmt::format("element<false>{}, doubt)", call.substr(open, call.rfind(')') - open)));
    line("{}if (doubt) {{", indent);
    loop("  ", call);
    line("{}}}", indent);
  }

  /// `pack` or `put_pack` of leaves whose packs are `load` (empty: `one` for all).
  template <class Load, class One>
  void packs(std::string_view indent, const Load& load, const One& one) {
    begin_pack(indent);
    line("{}  const bool together = (N & -N) <= whole;", indent);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      const std::string text = is_result(i) ? std::string() : load(i);
      if (!text.empty()) line("{}  const auto x{}_pack = {};", indent, i, text);
    }
    const bool store = code_.is_store;
    line("{}  Pack<{}, N> {};", indent, store ? "Stored" : "Value", store ? "results" : "values");
    elements(fmt::format("{}  ", indent), store ? "results" : "values",
             element_call("values.at[k]", [&](std::size_t i) {
               return load(i).empty() ? one(i) : fmt::format("x{}_pack.at[k]", i);
             }));
    line("{}  {}", indent,
         store ? "store_pack(out + p * N, results, together);" : "return values;");
    line("{}}}", indent);
  }
  void begin_pack(std::string_view indent) {
    line("{}template <int N>", indent);
    if (code_.is_store) {
      line("{}void put_pack(i64 p, const Pack<Value, N>& values) const {{", indent);
    } else {
      line("{}Pack<Value, N> pack(i64 p) const {{", indent);
    }
  }

  void row() {
    line("\n  Row row(i64 number) const {{\n    const Index r = Index(number);");
    const int rank = rows_.outer.shape.rank;
    std::string rest = "r";
    for (int axis = rank - 1; rows_.any_unpitched && axis > 0; --axis) {
      const std::string next = axis == 1 ? "i0" : fmt::format("r{}", axis);
      line("    const Index {0} = by_extent{1}.quotient({2}), i{1} = {2} - {0} * Index(extent{1});",
           next, axis, rest);
      rest = next;
    }
    const std::string leaves = each_leaf("", [&](std::size_t i) {
      std::string place;
      for (int axis = 0; axis < rank && !rows_.leaves[i].pitched; ++axis)
        place += fmt::format(" + i{0} * Index(x{1}_stride{0})", axis, i);
      if (rows_.leaves[i].pitched) place = fmt::format(" + r * Index(x{}_pitch)", i);
      const bool one = rows_.leaves[i].step == 0 && !is_index(i);
      return fmt::format(", {}x{}{}{}{}",
                         is_index(i) ? "u64("
                         : one       ? "*("
                                     : "",
                         i, place, is_index(i) || one ? ")" : "",
                         is_apart(i) ? fmt::format(", Index(x{}_step)", i) : "");
    });
    line("    return {{row_whole{}{}}};\n  }}", leaves,
         code_.is_store ? ", out + r * Index(columns)" : "");
  }

  /// Leaf `i` at `place`, where every leaf is dense or one element.
  std::string flat_leaf(std::size_t i, std::string_view place) const {
    if (is_index(i))
      return is_scalar(i) ? fmt::format("u64(x{})", i) : fmt::format("u64(x{} + {})", i, place);
    return is_scalar(i) ? fmt::format("*x{}", i) : fmt::format("x{}[{}]", i, place);
  }

  void at() {
    if (flat_) {
      line("  Value at(i64 i) const {{ return {}; }}",
           element_call("", [&](std::size_t i) { return flat_leaf(i, "i"); }));
      flat_packs();
      return;
    }
    line("  Value at(i64 i) const {{");
    line("    const Index r = by_columns.quotient(Index(i));");
    line("    return row(r).at(Index(i) - r * Index(columns));\n  }}");
    begin_pack("  ");
    places_of_pack();
    line("    if (columns % N == 0) return row(r).template pack<N>(column / N);");
    line("    Pack<Value, N> values;\n#pragma unroll");
    line("    for (int k = 0; k < N; ++k) values.at[k] = at(p * N + k);");
    line("    return values;\n  }}");
  }

  void put() {
    if (flat_) {
      line("  void put(i64 i, Value value) const {{ out[i] = {}; }}",
           element_call("value", [&](std::size_t i) { return flat_leaf(i, "i"); }));
      flat_packs();
      return;
    }
    line("  void put(i64 i, Value value) const {{");
    line("    const Index r = by_columns.quotient(Index(i));");
    line("    row(r).put(Index(i) - r * Index(columns), value);\n  }}");
    begin_pack("  ");
    places_of_pack();
    line("    if (columns % N == 0) return row(r).put_pack(column / N, values);");
    line("#pragma unroll");
    line("    for (int k = 0; k < N; ++k) put(p * N + k, values.at[k]);\n  }}");
  }
  void flat_packs() {
    packs(
        "  ",
        [&](std::size_t i) {
          return is_scalar(i) || is_index(i)
                     ? std::string()
                     : fmt::format("load_pack<N>(x{} + p * N, together)", i);
        },
        [&](std::size_t i) { return flat_leaf(i, "p * N + k"); });
  }
  void pack_from() {
    line("  static constexpr bool kLoose = {};", flat_);
    line("  template <int N>\n  Pack<Value, N> pack_from(i64 i) const {{");
    const auto is_loaded = [&](std::size_t i) { return !is_scalar(i) && !is_index(i); };
    for (std::size_t i = 0; flat_ && i < leaf_count(); ++i) {
      if (is_loaded(i)) line("    const auto x{0}_pack = load_loose<N>(x{0} + i);", i);
    }
    line("    Pack<Value, N> values;");
    if (flat_) {
      elements("    ", "values", element_call("", [&](std::size_t i) {
                 return is_loaded(i) ? fmt::format("x{}_pack.at[k]", i) : flat_leaf(i, "i + k");
               }));
    } else {
      line("#pragma unroll\n    for (int k = 0; k < N; ++k) values.at[k] = at(i + k);");
    }
    line("    return values;\n  }}");
  }
  void places_of_pack() {
    line("    const Index i = Index(p * N), r = by_columns.quotient(i);");
    line("    const Index column = i - r * Index(columns);");
  }

  std::string_view name_;
  DeviceCode& code_;
  const Program& program_;
  RowNest rows_;
  LoopNest nest_;
  bool flat_ = true;
  bool wide_ = false;
  bool has_doubt_ = false;  // there are short ways
};

DeviceCode device_code(std::string_view name, const Program& program, bool is_store,
                       const Context& context) {
  DeviceCode code;
  code.program = on_device(program, context);
  code.is_store = is_store;
  Generator generator(name, code);
  generator();
  return code;
}

}  // namespace

std::span<const std::uint64_t> DeviceCode::parameter(std::span<const ArrayView> sources,
                                                     const void* out) {
  std::int64_t whole = kAnyAccess, row_whole = kAnyAccess;
  std::size_t word = 2;
  const int last = program.shape.rank - 1;
  const auto array = [&](const void* data, std::int64_t offset, Dtype dtype, const Dims& strides) {
    const std::size_t size = size_of(dtype);
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::uint64_t>(elements) * static_cast<std::uint64_t>(size);
    };
    std::uint64_t bits = reinterpret_cast<std::uintptr_t>(data) + bytes(offset);
    words[word++] = bits;
    if (is_dense(program.shape, strides)) whole = std::min(whole, elements_together(bits, size));
    if (last < 0 || strides[last] != 1) return;
    for (int axis = 0; axis < last; ++axis)
      bits |= program.shape[axis] > 1 ? bytes(strides[axis]) : 0;
    row_whole = std::min(row_whole, elements_together(bits, size));
  };
  for (std::size_t i = 0; i < program.leaves.size(); ++i) {
    const Program::Leaf& leaf = program.leaves[i];
    if (is_result(*this, i)) continue;
    if (leaf.is_index()) {
      ++word;
      continue;
    }
    const std::int64_t source = leaf.source - (is_store ? 1 : 0);
    const void* data =
        leaf.source < 0 ? leaf.table.data() : sources[static_cast<std::size_t>(source)].data;
    array(data, leaf.offset, leaf.dtype, leaf.strides);
  }
  if (is_store) {
    array(out, 0, program.code[static_cast<std::size_t>(program.outputs[0])].dtype,
          dense_strides(program.shape));
  }
  words[0] = static_cast<std::uint64_t>(whole);
  words[1] = static_cast<std::uint64_t>(row_whole);
  return words;
}

DeviceCode device_load(std::string_view name, const Program& program, const Context& context) {
  return device_code(name, program, false, context);
}

DeviceCode device_store(std::string_view name, const Program& program, const Context& context) {
  int results = 0;
  for (const Program::Leaf& leaf : program.leaves) {
    if (leaf.source != 0) continue;
    FOREBAY_REQUIRE(leaf.offset == 0 && is_dense(program.shape, leaf.strides), invalid,
                    "device_store: source 0 is read with strides {} from {} over {}; the op's own "
                    "result is read dense.",
                    to_string(leaf.strides), leaf.offset, to_string(program.shape));
    ++results;
  }
  FOREBAY_REQUIRE(results == 1, invalid,
                  "device_store: the program does not read source 0, the op's own result.");
  return device_code(name, program, true, context);
}

}  // namespace forebay::expr
