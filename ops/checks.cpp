#include <forebay/ops/checks.h>

#include <algorithm>

#include <forebay/array/require.h>

namespace forebay {

std::string to_string(DtypeSet dtypes) {
  std::string text;
  const auto add = [&text](std::string_view word) {
    if (!text.empty()) text += ", ";
    text += word;
  };
  const auto has_all = [&](DtypeSet group) {
    for (Dtype dtype : kAllDtypes) {
      if (group.has(dtype) && !dtypes.has(dtype)) return false;
    }
    return true;
  };
  const bool integers = has_all(kIntegers);
  for (Dtype dtype : kAllDtypes) {
    if (!dtypes.has(dtype)) continue;
    if (integers && is_integer(dtype)) {
      if (dtype == Dtype::u8) add("integers");
    } else {
      add(name_of(dtype));
    }
  }
  return text;
}

void check_dtype(std::string_view op, std::string_view argument, Dtype dtype, DtypeSet supported) {
  FOREBAY_REQUIRE(supported.has(dtype), unsupported,
                  "{}: `{}` has dtype {}; supported: {}. Add {} stage before it.", op, argument,
                  name_of(dtype), to_string(supported),
                  is_complex(dtype) ? "an `abs`" : "a `cast`");
}

Dtype float_result(std::string_view op, Dtype input, const std::optional<Dtype>& wanted) {
  FOREBAY_REQUIRE(!wanted || is_float(*wanted), invalid,
                  "{}: `dtype` is {}; it must be f16, bf16, f32 or f64.", op, name_of(*wanted));
  return wanted.value_or(is_float(input) ? input : Dtype::f32);
}

int axis_of(std::string_view op, std::int64_t axis, const Dims& shape) {
  FOREBAY_REQUIRE(shape.rank > 0, invalid, "{}: `x` is a scalar, shape (); it has no axis.", op);
  FOREBAY_REQUIRE(axis >= -shape.rank && axis < shape.rank, invalid,
                  "{}: `axis` is {}, but `x` has shape {}; it must be from {} to {}.", op, axis,
                  to_string(shape), -shape.rank, shape.rank - 1);
  return static_cast<int>(axis < 0 ? axis + shape.rank : axis);
}

std::vector<int> axes_of(std::string_view op, const std::vector<std::int64_t>& axes,
                         const Dims& shape) {
  FOREBAY_REQUIRE(!axes.empty(), invalid, "{}: `axes` is empty; name at least one axis.", op);
  std::vector<int> result;
  for (const std::int64_t axis : axes) {
    FOREBAY_REQUIRE(axis >= -shape.rank && axis < shape.rank, invalid,
                    "{}: `axes` has {}, but `x` has shape {}; its axes are {} to {}.", op, axis,
                    to_string(shape), -shape.rank, shape.rank - 1);
    const int place = static_cast<int>(axis < 0 ? axis + shape.rank : axis);
    FOREBAY_REQUIRE(std::ranges::count(result, place) == 0, invalid,
                    "{}: `axes` names axis {} twice; give each axis once.", op, place);
    result.push_back(place);
  }
  return result;
}

std::int64_t entry_of(std::string_view op, std::string_view argument,
                      const std::vector<std::int64_t>& list, std::size_t i, std::size_t count) {
  FOREBAY_REQUIRE(list.size() == 1 || list.size() == count, invalid,
                  "{}: `{}` has {} entries for {} axes; give one for each, or one for all.", op,
                  argument, list.size(), count);
  return list[list.size() == 1 ? 0 : i];
}

Dims dims_of(std::string_view op, std::string_view argument,
             const std::vector<std::int64_t>& list) {
  FOREBAY_REQUIRE(list.size() <= kMaxRank, invalid,
                  "{}: `{}` has {} entries; arrays have at most {} axes.", op, argument,
                  list.size(), kMaxRank);
  Dims dims;
  for (std::int64_t value : list)
    dims.push_back(value);
  return dims;
}

int checked_axis(std::string_view op, std::string_view argument, std::int64_t axis,
                 const Dims& shape) {
  FOREBAY_REQUIRE(shape.rank > 0, invalid,
                  "{}: `{}` names axis {}, but `x` is a scalar, shape (); it must have at least "
                  "one axis.",
                  op, argument, axis);
  FOREBAY_REQUIRE(axis >= -shape.rank && axis < shape.rank, invalid,
                  "{}: `{}` names axis {}, but `x` has shape {}; its axes are {} to {}.", op,
                  argument, axis, to_string(shape), -shape.rank, shape.rank - 1);
  return static_cast<int>(axis < 0 ? axis + shape.rank : axis);
}

}  // namespace forebay
