#include <forebay/ops/op.h>

#include <forebay/array/require.h>
#include <forebay/ops/visitors.h>

namespace forebay {

std::string_view Op::name() const { return entry_->def.name; }

namespace {

void require_fields(const OpDef& def, const void* settings) {
  if (const auto problems = check_fields(def, settings); !problems.empty()) [[unlikely]]
    fail(ErrorKind::invalid, "{}: {}", def.name, problems.front().text);
}

}  // namespace

std::vector<std::string> Op::inputs() const {
  const OpDef& def = entry_->def;
  if (def.names_inputs == nullptr) return {def.inputs.begin(), def.inputs.end()};
  require_fields(def, raw_settings());
  return def.names_inputs(raw_settings());
}

std::size_t Op::required_inputs() const {
  const OpDef& def = entry_->def;
  if (def.names_inputs != nullptr) return inputs().size();
  return def.inputs.size() - static_cast<std::size_t>(def.optional_inputs);
}

std::vector<ArraySpec> Op::infer(std::span<const ArraySpec> given) const {
  const OpDef& def = entry_->def;
  const auto wanted = inputs();
  const std::size_t most = wanted.size(), least = required_inputs();
  if (given.size() < least || given.size() > most) [[unlikely]] {
    std::string names;
    for (const std::string& name : wanted)
      names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name);
    fail(ErrorKind::invalid, "{}: got {} input{}; it takes {}{} ({}).", def.name, given.size(),
         given.size() == 1 ? "" : "s", least == most ? "" : fmt::format("{} to ", least), most,
         names);
  }
  require_fields(def, raw_settings());
  return def.infer(raw_settings(), given);
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
