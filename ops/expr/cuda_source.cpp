#include <forebay/ops/expr/cuda_source.h>

#include <algorithm>
#include <bit>

#include <forebay/ops/expr/cuda_text.h>
#include <forebay/ops/expr/cuda_writer.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/expr/divisor.h>
#include <forebay/ops/expr/execute.h>

namespace forebay::expr {

CudaWriter::CudaWriter(const Program& of_program, CudaSource& of_source)
    : program(of_program), source(of_source), walk(of_source.walk), nest(of_source.walk.nest) {
  const std::vector<bool> widened = leaves_only_widened(program);
  shared_.doubts = true;
  for (std::size_t i = 0; i < leaf_count(); ++i) {
    const std::vector<float>& held = walk.held[i];
    shared_.leaves.push_back({.one_value = walk.is_common(i),
                              .is_known = !held.empty(),
                              .divides = std::all_of(held.begin(), held.end(), may_divide),
                              .shifts = std::all_of(held.begin(), held.end(), may_shift),
                              .is_widened = widened[i]});
  }
  divides_.resize(leaf_count());
  shifts_.resize(leaf_count());
  for (int i = 0; i < static_cast<int>(program.code.size()); ++i) {
    const CudaQuotient quotient = quotient_of(program, i, shared_);
    const bool is_doubted = expr::is_doubted(program, i, shared_);
    is_exact_or_not_ |= is_doubted || quotient.by_inverse;
    has_doubt_ |= is_doubted;
    if (!quotient.by_inverse) continue;
    const auto divisor = static_cast<std::size_t>(quotient.divisor_leaf),
               shift = static_cast<std::size_t>(quotient.shift_leaf);
    if (quotient.divisor_leaf >= 0) divides_[divisor] = true;
    if (quotient.is_small && quotient.shift_leaf >= 0 && !is_held(shift)) shifts_[shift] = true;
    has_doubt_ |= quotient.divisor_leaf >= 0 && !is_held(divisor);
  }
  has_doubt_ |= std::count(shifts_.begin(), shifts_.end(), true) > 0;
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

void CudaWriter::numbers(std::string_view name, std::span<const float> values) {
  line("  alignas(8) f32 {}[{}];", name, values.size());
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const float second = i + 1 < values.size() ? values[i + 1] : 0;
    source.words.push_back(std::bit_cast<std::uint32_t>(values[i]) |
                           std::uint64_t{std::bit_cast<std::uint32_t>(second)} << 32);
  }
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
    if (is_held(i)) {
      numbers(fmt::format("x{}", i), walk.held[i]);
      if (!divides(i)) continue;
      std::vector<float> inverses;
      for (float value : walk.held[i])
        inverses.push_back(1 / value);
      numbers(fmt::format("x{}_inverse", i), inverses);
      continue;
    }
    if (walk.leaves[i] == Way::index) {
      const std::int64_t offset = program.leaves[i].offset;
      if (offset != 0) member(fmt::format("i64 x{}_offset;", i), offset);
      strides(fmt::format("x{}", i), nest.leaves[i], Way::apart);
      continue;
    }
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
  for (std::size_t i = 0; i < leaf_count(); ++i) {
    list += fmt::format("{}{} x{}", list.empty() ? "" : ", ",
                        is_widened(i) ? name_of(Dtype::f32) : leaf_type(i), i);
    if (divides(i)) list += fmt::format(", f32 x{}_inverse", i);
  }
  for (std::size_t k = 0; k < output_count(); ++k)
    list += fmt::format("{}{}& out{}", list.empty() ? "" : ", ", output_type(k), k);
  if (has_doubt_) list += ", Doubt& doubt";
  line("\n{}inline void element({}) {{", is_exact_or_not_ ? "template <bool Exact>\n" : "", list);
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

namespace {

/// Whether computing takes longer than moving: then more elements at once share what an item costs.
bool is_heavy(const Program& program) {
  int functions = 0;
  for (const Program::Instruction& instruction : program.code) {
    const Opcode opcode = instruction.opcode;
    functions += (opcode >= Opcode::exp && opcode <= Opcode::tanh) || opcode == Opcode::pow;
  }
  return functions > 0;
}

/// Whether every array that is moved in packs has 16 bytes in one.
bool is_even(const Program& program, const CudaWalk& walk) {
  bool even = true;
  const auto look = [&](Way way, Dtype dtype) {
    if (way != Way::scalar && way != Way::constant && way != Way::index)
      even &= size_of(dtype) * static_cast<std::size_t>(walk.pack) == 16;
  };
  for (std::size_t i = 0; i < walk.leaves.size(); ++i)
    look(walk.leaves[i], program.leaves[i].dtype);
  for (std::size_t k = 0; k < walk.outputs.size(); ++k)
    look(walk.outputs[k], program.code[static_cast<std::size_t>(program.outputs[k])].dtype);
  return even;
}

/// What measured best on the H200 (README.md): one item a thread where that is much, else enough bytes on the way.
void set_block(const Program& program, CudaSource& source) {
  const CudaWalk& walk = source.walk;
  source.threads = 256;
  source.items = 1;
  if (walk.form == CudaWalk::Form::tiles || walk.together > 1) return;
  const bool heavy = is_heavy(program);
  if (!heavy && walk.pack <= 4 && is_even(program, walk)) return;
  source.threads = 128;
  source.items = heavy ? std::clamp(16 / walk.pack, 1, 3) : 2;
}

}  // namespace

CudaSource cuda_source(const Program& program, CudaWalk walk) {
  CudaSource source;
  source.walk = std::move(walk);
  set_block(program, source);
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
