#include <forebay/ops/op.h>

#include <forebay/array/require.h>
#include <forebay/ops/visitors.h>

namespace forebay {

std::string_view Op::name() const { return entry_->def.name; }

std::vector<ArraySpec> Op::infer(std::span<const ArraySpec> inputs) const {
  const OpDef& def = entry_->def;
  const std::size_t most = def.inputs.size();
  const std::size_t least = most - static_cast<std::size_t>(def.optional_inputs);
  if (inputs.size() < least || inputs.size() > most) [[unlikely]] {
    std::string names;
    for (std::string_view name : def.inputs)
      names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name);
    fail(ErrorKind::invalid, "{}: got {} input{}; it takes {}{} ({}).", def.name, inputs.size(),
         inputs.size() == 1 ? "" : "s", least == most ? "" : fmt::format("{} to ", least), most,
         names);
  }
  if (const auto problems = check_fields(def, raw_settings()); !problems.empty()) [[unlikely]] {
    fail(ErrorKind::invalid, "{}: {}", def.name, problems.front().text);
  }
  return def.infer(raw_settings(), inputs);
}

std::vector<expr::Expr> Op::lower(std::span<const expr::Expr> inputs,
                                  Materialise& materialise) const {
  const OpDef& def = entry_->def;
  if (def.lower == nullptr) return {};
  return def.lower(raw_settings(), inputs, materialise);
}

expr::Program Problem::load(std::size_t i) const {
  const expr::Expr plain =
      prologue.empty() ? expr::Expr::leaf(static_cast<int>(i), inputs[i].dtype, inputs[i].shape)
                       : prologue[i];
  return expr::compile({&plain, 1});
}

expr::Program Problem::store() const {
  const expr::Expr plain =
      epilogue.valid() ? epilogue : expr::Expr::leaf(0, outputs[0].dtype, outputs[0].shape);
  return expr::compile({&plain, 1});
}

ArraySpec Problem::stored() const {
  return epilogue.valid() ? ArraySpec{epilogue.dtype(), epilogue.shape()} : outputs[0];
}

}  // namespace forebay
