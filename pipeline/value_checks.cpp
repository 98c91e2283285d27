#include <forebay/pipeline/value_checks.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/pipeline/source/columns.h>

namespace forebay {
namespace {

/// As values of T are compared: integers as they are, floats as doubles, which hold them all.
template <class T>
using Compared = std::conditional_t<std::is_integral_v<T>, T, double>;

/// The values that a check lets through; NaN lies in no interval.
template <class T>
struct Interval {
  Compared<T> low, high;

  explicit Interval(const Check& check) {
    if constexpr (std::is_integral_v<T>) {
      const Wide least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
      const Wide min = check.min ? wide(*check.min) : least;
      const Wide max = check.max ? wide(*check.max) : most;
      const bool any = min <= most && max >= least;
      low = any ? static_cast<T>(std::max(min, least)) : T{1};
      high = any ? static_cast<T>(std::min(max, most)) : T{0};
    } else {
      const double end = check.finite ? DBL_MAX : std::numeric_limits<double>::infinity();
      low = check.min ? std::max(check.min->f64(), -end) : -end;
      high = check.max ? std::min(check.max->f64(), end) : end;
    }
  }

  /// The first of `count` values that lies outside; `count` when none does.
  std::int64_t first_outside(const T* values, std::int64_t count) const {
    const auto inside = [&](const T& value) {
      const Compared<T> v = compared(value);
      return (v >= low) & (v <= high);
    };
    bool all = true;  // without a branch, so that the loop vectorises
    for (std::int64_t i = 0; i < count; ++i)
      all &= inside(values[i]);
    return all ? count : std::find_if_not(values, values + count, inside) - values;
  }

  static Compared<T> compared(const T& value) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return static_cast<float>(value);
    } else {
      return value;
    }
  }

 private:
  using Wide = __int128;
  static Wide wide(const Number& number) {
    return number.kind() == Number::Kind::u64 ? static_cast<Wide>(number.u64())
                                              : static_cast<Wide>(number.i64());
  }
};

/// "[0, 2]", of element number `element` of a sample; nothing where a sample is one number.
std::string place_text(const Dims& shape, std::int64_t element) {
  std::string text;
  for (int axis = shape.rank - 1; axis > 0; --axis) {
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ", ", text);
    element /= shape[axis];
  }
  return text.empty() ? text : "[" + text + "]";
}

bool is_right(const Check& check, const Spec& spec, std::string& problem) {
  const std::vector<Column>& columns = spec.source->columns();
  const int number = find_column(columns, check.column);
  if (number < 0) {
    const std::vector<std::string> names = names_of(columns);
    problem = fmt::format("the source has no column `{}`; it has {}.{}", check.column,
                          quoted(names), did_you_mean(check.column, names));
    return false;
  }
  const Dtype dtype = columns[static_cast<std::size_t>(number)].dtype;
  const auto whole = [](const std::optional<Number>& bound) {
    return !bound || bound->is_integer();
  };
  const bool bounded = check.min || check.max;
  if (!check.finite && !bounded) {
    problem = fmt::format("`{}`: nothing is asked of it; give finite, min or max.", check.column);
  } else if (bounded && is_complex(dtype)) {
    problem = fmt::format("`{}` has dtype {}, which has no order; only finite can be asked of it.",
                          check.column, name_of(dtype));
  } else if (!is_float(dtype) && !(whole(check.min) && whole(check.max))) {
    problem = fmt::format("`{}` has dtype {}; its bounds must be whole numbers.", check.column,
                          name_of(dtype));
  } else if ((check.min && std::isnan(check.min->f64())) ||
             (check.max && std::isnan(check.max->f64()))) {
    problem = fmt::format("`{}`: a bound is nan; it must be a number.", check.column);
  } else if (check.min && check.max && !(check.min->f64() <= check.max->f64())) {
    problem = fmt::format("`{}`: min is {} and max {}; min must be at most max.", check.column,
                          to_string(*check.min), to_string(*check.max));
  }
  return problem.empty();
}

void check_on_error(const OnError& asked, const Position& position, Mistakes& mistakes) {
  const auto wrong = [&](const std::string& text) {
    mistakes.add(Mistakes::kSettings, position, "on_error: " + text);
  };
  const bool limited = asked.max_count || asked.max_share;
  if (asked.mode == ErrorMode::fail && (limited || !asked.quarantine.empty()))
    wrong("max_count, max_share and quarantine are for modes skip and replace; leave them out.");
  if (asked.max_count && *asked.max_count < 0)
    wrong(fmt::format("`max_count` is {}; it must be at least 0.", *asked.max_count));
  if (asked.max_share && !(*asked.max_share >= 0 && *asked.max_share <= 1))
    wrong(fmt::format("`max_share` is {}; it must be between 0 and 1.", *asked.max_share));
}

}  // namespace

void check_error_settings(const Spec& spec, Mistakes& mistakes) {
  const auto where = [&](const Position& position) {
    return position.file.empty() ? spec.position : position;
  };
  for (const Check& check : spec.checks) {
    std::string problem;
    if (!is_right(check, spec, problem))
      mistakes.add(Mistakes::kSettings, where(check.position), "checks: " + problem);
  }
  check_on_error(spec.on_error, where(spec.on_error_position), mistakes);
}

std::string to_string(const Check& check) {
  std::string text;
  if (check.min && check.max) {
    text = fmt::format("{} to {}", to_string(*check.min), to_string(*check.max));
  } else if (check.min || check.max) {
    text = check.min ? "at least " + to_string(*check.min) : "at most " + to_string(*check.max);
  }
  if (check.finite) text += text.empty() ? "finite" : ", finite";
  return text;
}

ValueChecks::ValueChecks(const Spec& spec) {
  for (const Check& check : spec.checks) {
    const int column = find_column(spec.source->columns(), check.column);
    bounds_.push_back({static_cast<std::size_t>(column), check});
  }
}

std::optional<std::string> ValueChecks::broken(std::span<const ArrayView> columns,
                                               std::int64_t begin, std::int64_t end) const {
  std::optional<std::string> text;
  for (const auto& [column, check] : bounds_) {
    const ArrayView& view = columns[column];
    const std::int64_t parts = is_complex(view.dtype) ? 2 : 1;
    const std::int64_t each = view.shape[0] > 0 ? count_of(view.shape) / view.shape[0] * parts : 0;
    dispatch(RealTypesAndBool{}, real_of(view.dtype), "checks", check.column.c_str(),
             [&]<class T>(Type<T>) {
               const Interval<T> interval(check);
               const T* values = view.as<T>() + begin * each;
               const std::int64_t count = (end - begin) * each;
               const std::int64_t at = interval.first_outside(values, count);
               if (at == count) return;
               text = fmt::format("`{}`{} is {}; it must be {}", check.column,
                                  place_text(view.shape, at % each / parts),
                                  +Interval<T>::compared(values[at]), to_string(check));
             });
    if (text) return text;
  }
  return text;
}

}  // namespace forebay
