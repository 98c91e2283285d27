#include <forebay/ops/eager.h>

#include <utility>

#include <forebay/array/require.h>
#include <forebay/ops/expr/execute.h>

namespace forebay {
namespace {

using expr::Expr;

/// Takes what an op's body, its inputs and its outputs need to the stream, in its order.
void enqueue(std::shared_ptr<Body> body, const std::vector<Array>& inputs,
             const std::vector<Array>& outputs, const Context& context) {
  const Array scratch = Array::empty({static_cast<std::int64_t>(body->scratch_bytes())}, Dtype::u8,
                                     context.scratch, context.stream);
  const auto run = [](Body& prepared, const std::vector<Array>& in, const std::vector<Array>& out,
                      const Array& work, const Stream& stream) {
    std::vector<ArrayView> in_views, out_views;
    for (const Array& array : in)
      in_views.push_back(array.view());
    for (const Array& array : out)
      out_views.push_back(array.view());
    prepared.run(in_views, out_views, {.stream = stream, .scratch = work.data()});
  };
  const Stream& stream = context.stream;
  if (context.device().is_cuda()) {
    run(*body, inputs, outputs, scratch, stream);
    // The caller may drop its inputs at once, and their memory may belong to another stream.
    for (const Array& input : inputs)
      stream.keep(input.owner());
    stream.keep(std::move(body));
    return;
  }
  // The task holds its own stream no longer than it runs, so that the last owner outside closes it.
  stream.enqueue([=, body = std::move(body)] { run(*body, inputs, outputs, scratch, stream); });
}

Array evaluate(const Expr& expression, std::vector<Array> sources, const Context& context) {
  Array result = Array::empty(expression.shape(), expression.dtype(), context);
  if (result.count() == 0) return result;
  expr::Program program = expr::compile({&expression, 1});
  // Arrays of the expression's own are read where they are; only those on another device have to be
  // copied.
  for (expr::Program::Leaf& leaf : program.leaves) {
    if (leaf.source >= 0 || leaf.table.device() != context.device()) continue;
    leaf.source = static_cast<int>(sources.size());
    sources.push_back(std::exchange(leaf.table, {}));
  }
  enqueue(expr::prepare(program, context), sources, {result}, context);
  return result;
}

Expr leaf_of(const Array& array, std::size_t source) {
  return Expr::leaf(static_cast<int>(source), array.dtype(), array.shape(), array.strides());
}

/// Evaluates on the spot, and adds the result to the sources.
class EagerMaterialise final : public Materialise {
 public:
  EagerMaterialise(std::vector<Array>& sources, const Context& context)
      : sources_(sources), context_(context) {}
  Expr operator()(const Expr& expression) override {
    sources_.push_back(evaluate(expression, sources_, context_));
    return leaf_of(sources_.back(), sources_.size() - 1);
  }

 private:
  std::vector<Array>& sources_;
  const Context& context_;
};

void check_devices(std::string_view subject, std::span<const Array> arrays,
                   const Context& context) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    FOREBAY_REQUIRE(arrays[i].device() == context.device(), invalid,
                    "{}: input {} is on {} but the stream on {}; copy it with `copy_to` before.",
                    subject, i, to_string(arrays[i].device()), to_string(context.device()));
  }
}

/// The results of a pointwise op; empty when the op with these settings is none.
std::vector<Array> run_pointwise(const Op& op, std::vector<Array> sources, const Context& context) {
  std::vector<Expr> inputs;
  for (std::size_t i = 0; i < sources.size(); ++i)
    inputs.push_back(leaf_of(sources[i], i));
  EagerMaterialise materialise(sources, context);
  const std::vector<Expr> lowered = op.lower(inputs, materialise);
  bool one_shape = true;
  for (const Expr& output : lowered)
    one_shape &= output.shape() == lowered.front().shape();
  std::vector<Array> outputs;
  if (!one_shape || lowered.size() == 1) {
    for (const Expr& output : lowered)
      outputs.push_back(evaluate(output, sources, context));
  } else if (!lowered.empty()) {
    for (const Expr& output : lowered)
      outputs.push_back(Array::empty(output.shape(), output.dtype(), context));
    enqueue(expr::prepare(expr::compile(lowered), context), sources, outputs, context);
  }
  return outputs;
}

}  // namespace

std::vector<Array> run_op(const Op& op, const std::vector<Array>& inputs, const Context& context) {
  std::vector<ArraySpec> specs;
  for (const Array& input : inputs)
    specs.push_back({input.dtype(), input.shape()});
  const std::vector<ArraySpec> results = op.infer(specs);
  check_devices(op.name(), inputs, context);

  std::vector<Array> outputs;
  bool empty = true;
  for (const ArraySpec& result : results)
    empty &= count_of(result.shape) == 0;
  if (!empty) outputs = run_pointwise(op, inputs, context);
  if (!outputs.empty()) return outputs;
  for (const ArraySpec& result : results)
    outputs.push_back(Array::empty(result.shape, result.dtype, context));
  if (empty) return outputs;

  PrepareFn* const prepare = op.entry().body(context.device().kind);
  FOREBAY_REQUIRE(prepare != nullptr, unsupported, "{}: this build has no body for {}.", op.name(),
                  to_string(context.device()));
  std::vector<Array> dense;
  for (const Array& input : inputs)
    dense.push_back(contiguous(input, context));
  enqueue(prepare(op, {specs, results}, context), dense, outputs, context);
  return outputs;
}

Array eval(const Expr& expression, const std::vector<Array>& sources, const Context& context) {
  check_devices("eval", sources, context);
  return evaluate(expression, sources, context);
}

Array contiguous(const Array& x, const Context& context) {
  if (is_dense(x.view())) return x;
  return evaluate(leaf_of(x, 0), {x}, context);
}

}  // namespace forebay
