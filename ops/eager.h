#pragma once

#include <vector>

#include <forebay/ops/registry.h>

namespace forebay {

struct Draw;  // ops/random.h

/// Runs one op on arrays: a one-op plan through the same path as a pipeline's. Enqueues on
/// context.stream and returns; results come from context.memory. Inputs of any strides; they must
/// be on the stream's device.
/// Errors: the op's own (see Op::infer); invalid for an input on another device, before
/// anything is enqueued.
std::vector<Array> run_op(const Op& op, const std::vector<Array>& inputs, const Context& context);
/// Of a random op (OpDef::draws). Errors: also invalid for a `draw` whose sample ids do not fit.
std::vector<Array> run_op(const Op& op, const std::vector<Array>& inputs, const Draw& draw,
                          const Context& context);

/// Evaluates an expression whose sources are `sources`, as one kernel.
Array eval(const expr::Expr& expression, const std::vector<Array>& sources, const Context& context);

/// A dense array with the elements of `x`: `x` itself when it is dense.
Array contiguous(const Array& x, const Context& context);

/// The eager form of an op in its own header, such as
/// `Array clip(const Array&, const Clip&, const Context&)`.
template <class S>
Array run_single(std::string_view name, const S& settings, const std::vector<Array>& inputs,
                 const Context& context) {
  return run_op(Op::with(find_op(name), settings), inputs, context).front();
}

}  // namespace forebay
