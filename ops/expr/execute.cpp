#include <forebay/ops/expr/execute.h>

#include <forebay/ops/expr/execute_devices.h>

namespace forebay::expr {
namespace {

/// `table` on the device of `context` with the same strides: the whole span of memory that they
/// reach is copied.
Array table_on(const Array& table, const Context& context) {
  if (table.device() == context.device() || table.count() == 0) return table;
  const auto size = static_cast<std::int64_t>(size_of(table.dtype()));
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < table.rank(); ++axis) {
    const std::int64_t reach = (table.shape()[axis] - 1) * table.strides()[axis];
    (reach < 0 ? low : high) += reach;
  }
  const Dims span{high - low + 1};
  const ArrayView memory{
      table.as<std::byte>() + low * size, table.dtype(), table.device(), span, {1}};
  const Array copied = copy_to(table.with_view(memory), context);
  ArrayView view = table.view();
  view.device = context.device();
  view.data = copied.as<std::byte>() - low * size;
  return copied.with_view(view);
}

}  // namespace

Program on_device(const Program& program, const Context& context) {
  Program here = program;
  for (Program::Leaf& leaf : here.leaves) {
    if (leaf.source == kTable) leaf.table = table_on(leaf.table, context);
  }
  return here;
}

std::unique_ptr<Body> prepare(const Program& program, const Context& context) {
  return context.device().is_cuda() ? prepare_cuda(program, context)
                                    : prepare_cpu(on_device(program, context));
}

}  // namespace forebay::expr
