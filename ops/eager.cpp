#include <forebay/ops/eager.h>

#include <utility>

#include <forebay/array/require.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/random.h>

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
    if (leaf.source != expr::kTable || leaf.table.device() != context.device()) continue;
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

/// The results of a pointwise op; empty when the op with these settings is none. `sources` are what
/// `lower` gets.
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

std::vector<ArraySpec> specs_of(std::span<const Array> arrays) {
  std::vector<ArraySpec> specs;
  for (const Array& array : arrays)
    specs.push_back({array.dtype(), array.shape()});
  return specs;
}

/// `inputs` are those of `infer`, and behind them what else `lower` and bodies get.
std::vector<Array> run(const Op& op, const std::vector<ArraySpec>& results,
                       const std::vector<Array>& inputs, const Context& context) {
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
  enqueue(prepare(op, {specs_of(inputs), results}, context), dense, outputs, context);
  return outputs;
}

/// The position of BatchInfo, on the stream's device.
Array position_of(const Draw& draw, const Context& context) {
  return copy_to(Array::from<std::int64_t>(
                     {3}, std::vector{draw.epoch, std::int64_t{0},
                                      static_cast<std::int64_t>(draw.seed)}),
                 context);
}

void check_draw(std::string_view op, const Draw& draw, const Array& x, const Context& context) {
  const Array& ids = draw.sample_ids;
  FOREBAY_REQUIRE(ids.dtype() == Dtype::i64 && ids.rank() == 1, invalid,
                  "{}: the sample ids are {} {}; they must be i64 (n,).", op, name_of(ids.dtype()),
                  to_string(ids.shape()));
  FOREBAY_REQUIRE(ids.device() == context.device(), invalid,
                  "{}: the sample ids are on {} but the stream on {}; copy them with `copy_to` "
                  "before.",
                  op, to_string(ids.device()), to_string(context.device()));
  check_samples(op, x.shape(), ids.count());
}

}  // namespace

std::vector<Array> run_op(const Op& op, const std::vector<Array>& inputs, const Context& context) {
  const std::vector<ArraySpec> results = op.infer(specs_of(inputs));
  FOREBAY_REQUIRE(op.entry().def.draws == 0, invalid,
                  "{}: it is random; give the Draw that says of which samples and epoch.",
                  op.name());
  check_devices(op.name(), inputs, context);
  return run(op, results, inputs, context);
}

std::vector<Array> run_op(const Op& op, const std::vector<Array>& inputs, const Draw& draw,
                          const Context& context) {
  const std::vector<ArraySpec> results = op.infer(specs_of(inputs));
  if (op.entry().def.draws == 0) return run_op(op, inputs, context);
  check_devices(op.name(), inputs, context);
  check_draw(op.name(), draw, inputs[0], context);
  std::vector<Array> all = inputs;
  all.push_back(draw.sample_ids);
  all.push_back(position_of(draw, context));
  return run(op, results, all, context);
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
