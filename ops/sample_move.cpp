#include <forebay/ops/sample_move.h>

#include <algorithm>
#include <cstring>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/ops/checks.h>
#include <forebay/ops/expr/convert.h>

namespace forebay {

SampleMove::SampleMove(const Dims& shape, std::span<const MovedAxis> moved,
                       std::uint64_t op_sequence)
    : samples(shape[0]), sequence(op_sequence) {
  rank = 0;
  bool last_is_moved = true;
  for (int axis = 1; axis < shape.rank; ++axis) {
    const auto found = std::find_if(moved.begin(), moved.end(),
                                    [&](const MovedAxis& m) { return m.axis == axis; });
    const bool is_moved = found != moved.end();
    if (!is_moved && !last_is_moved) {
      axes[rank - 1].in *= shape[axis];
      axes[rank - 1].out *= shape[axis];
    } else if (is_moved) {
      axes[rank++] = {.in = shape[axis],
                      .out = found->extent,
                      .word = axis,
                      .places = found->places,
                      .padding = found->padding,
                      .threshold = found->threshold};
    } else {
      axes[rank++] = {.in = shape[axis], .out = shape[axis]};
    }
    last_is_moved = is_moved;
  }
  // What lies behind the last axis that is moved moves with it.
  if (!last_is_moved) inner = axes[--rank].in;
  in_elements = out_elements = inner;
  for (int k = static_cast<int>(rank) - 1; k >= 0; --k) {
    axes[k].stride = in_elements;
    in_elements *= axes[k].in;
    out_elements *= axes[k].out;
  }
}

Fill::Fill(const Number& value, Dtype dtype) {
  using All = Types<expr::Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                    std::int8_t, std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float,
                    double, std::complex<float>, std::complex<double>>;
  dispatch(All{}, dtype, "fill", "value", [&]<class T>(Type<T>) {
    const T element = expr::from_number<T>(value);
    std::memcpy(words, &element, sizeof element);
  });
}

std::vector<int> sample_axes_of(std::string_view op, const std::vector<std::int64_t>& axes,
                                const Dims& shape) {
  std::vector<int> result = axes_of(op, axes, shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    FOREBAY_REQUIRE(result[i] != 0, invalid,
                    "{}: `axes` has {}, which is the batch; it moves elements within samples, "
                    "along axes 1 to {}.",
                    op, axes[i], shape.rank - 1);
  }
  return result;
}

std::pair<std::size_t, std::size_t> draw_sources(const Problem& problem) {
  if (problem.prologue.empty()) return {1, 2};
  const auto number = [&](std::size_t input) {
    return static_cast<std::size_t>(problem.prologue[input].node()->source);
  };
  return {number(1), number(2)};
}

}  // namespace forebay
