#include <forebay/ops/expr/cuda_source.h>

#include <algorithm>

#include <forebay/ops/expr/cuda_text.h>
#include <forebay/ops/expr/cuda_writer.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/expr/divisor.h>
#include <forebay/ops/expr/execute.h>

namespace forebay::expr {

CudaWriter::CudaWriter(const Program& of_program, CudaSource& of_source)
    : program(of_program), source(of_source), walk(of_source.walk), nest(of_source.walk.nest) {
  shared_.quotients = true;
  for (Way way : walk.leaves)
    shared_.one_value.push_back(way == Way::scalar || way == Way::constant);
  shared_.widened = leaves_only_widened(program);
  for (int i = 0; i < static_cast<int>(program.code.size()); ++i) {
    const int leaf = quotient_leaf(program, i, shared_);
    has_doubt_ |= is_quotient(program, i, shared_);
    if (leaf >= 0 && std::count(inverses_.begin(), inverses_.end(), leaf) == 0)
      inverses_.push_back(leaf);
  }
}

std::string_view CudaWriter::leaf_type(std::size_t i) const {
  return cuda_memory_type(program.leaves[i].dtype);
}

std::string_view CudaWriter::output_type(std::size_t k) const {
  return name_of(program.code[static_cast<std::size_t>(program.outputs[k])].dtype);
}

std::string CudaWriter::guard(std::size_t k) const {
  return output_count() > 1 ? fmt::format("if (p.out{} != nullptr) ", k) : std::string();
}

void CudaWriter::member(std::string_view text, std::int64_t value) {
  line("  {}", text);
  source.words.push_back(static_cast<std::uint64_t>(value));
}

void CudaWriter::divisor(std::string_view name, std::int64_t value) {
  line("  Divisor<Index> {};", name);
  const Divisor divisor(std::max<std::int64_t>(value, 1), walk.wide);
  source.words.insert(source.words.end(), {divisor.multiplier, divisor.shift});
}

void CudaWriter::arrays() {
  for (int axis = 1; axis < walk.row_rank(); ++axis) {
    member(fmt::format("i64 extent{};", axis), nest.shape[axis]);
    divisor(fmt::format("by_extent{}", axis), nest.shape[axis]);
  }
  const auto strides = [&](const std::string& name, const Dims& of, Way way) {
    for (int axis = 0; axis < of.rank && !walk.flat && way != Way::scalar; ++axis) {
      const bool plain = way == Way::interleaved && axis >= walk.outer_rank();
      if (of[axis] != 0 && of[axis] != 1 && !plain)
        member(fmt::format("i64 {}_stride{};", name, axis), of[axis]);
    }
  };
  for (std::size_t i = 0; i < leaf_count(); ++i) {
    source.leaf_words.push_back(source.words.size());
    const int number = program.leaves[i].source;
    member(fmt::format("const {}* x{};  // {}", leaf_type(i), i,
                       number < 0 ? "a table" : fmt::format("source {}", number)),
           0);
    strides(fmt::format("x{}", i), nest.leaves[i], walk.leaves[i]);
  }
  for (std::size_t k = 0; k < output_count(); ++k) {
    source.output_words.push_back(source.words.size());
    member(fmt::format("{}* out{};", output_type(k), k), 0);
    strides(fmt::format("out{}", k), nest.outputs[k], walk.outputs[k]);
  }
}

void CudaWriter::element() {
  std::string list;
  for (std::size_t i = 0; i < leaf_count(); ++i)
    list += fmt::format("{}{} x{}", list.empty() ? "" : ", ",
                        is_widened(i) ? name_of(Dtype::f32) : leaf_type(i), i);
  for (int leaf : inverses_)
    list += fmt::format(", f32 x{}_inverse", leaf);
  for (std::size_t k = 0; k < output_count(); ++k)
    list += fmt::format("{}{}& out{}", list.empty() ? "" : ", ", output_type(k), k);
  if (has_doubt_) list += ", Doubt& doubt";
  line("\n{}inline void element({}) {{", has_doubt_ ? "template <bool Exact>\n" : "", list);
  source.text += cuda_statements(program, "  ", shared_);
  for (std::size_t k = 0; k < output_count(); ++k)
    line("  out{} = {};", k, cuda_value(program, program.outputs[k]));
  line("}}");
}

void CudaWriter::outer_indices(std::string_view indent, std::string_view to) {
  std::string rest = "r";
  for (int axis = walk.row_rank() - 1; axis > 0; --axis) {
    const std::string next = fmt::format("r{}", axis);
    line("{}const Index {} = p.by_extent{}.quotient({});", indent, next, axis, rest);
    line("{0}{1}i{2} = {3} - {4} * Index(p.extent{2});", indent, to, axis, rest, next);
    rest = next;
  }
  line("{}{}i0 = {};", indent, to, rest);
}

std::string CudaWriter::outer_place(std::string_view array, const Dims& strides,
                                    std::string_view of) const {
  std::string text;
  for (int axis = 0; axis < walk.outer_rank(); ++axis) {
    if (strides[axis] == 1) text += fmt::format(" + {}i{}", of, axis);
    if (strides[axis] != 0 && strides[axis] != 1)
      text += fmt::format(" + {0}i{1} * Index(p.{2}_stride{1})", of, axis, array);
  }
  return text;
}

CudaSource cuda_source(const Program& program, CudaWalk walk) {
  CudaSource source;
  source.walk = std::move(walk);
  source.text = kPackText;
  CudaWriter writer(program, source);
  if (!source.walk.flat)
    writer.line("\nusing Index = {};  // holds every offset", source.walk.wide ? "i64" : "i32");
  writer.element();
  if (source.walk.form == CudaWalk::Form::tiles) {
    write_tiles(writer);
  } else {
    write_items(writer);
  }
  return source;
}

std::string cuda_source(const Program& program) {
  return cuda_source(program, cuda_walk(program)).text;
}

}  // namespace forebay::expr
