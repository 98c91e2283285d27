#include <array>
#include <type_traits>

#include <forebay/ops/expr/cpu_levels.h>
#include <forebay/ops/normalize/normalize_loops.h>

// Which of the levels of normalize_loops.cpp this machine runs.
namespace forebay::normalize_detail {

#define FOREBAY_DECLARE_LEVEL(level)      \
  namespace level {                       \
  extern const Loops<float> kNarrowLoops; \
  extern const Loops<double> kWideLoops;  \
  }
FOREBAY_DECLARE_LEVEL(base)
#if defined(__x86_64__)
FOREBAY_DECLARE_LEVEL(v3)
FOREBAY_DECLARE_LEVEL(v4)
#endif

template <class W>
const Loops<W>& loops() {
  static const Loops<W>& highest = []() -> const Loops<W>& {
    constexpr bool kNarrow = std::is_same_v<W, float>;
    [[maybe_unused]] const std::size_t level = expr::cpu_levels().size() - 1;
#if defined(__x86_64__)
    if constexpr (kNarrow) {
      return *std::array{&base::kNarrowLoops, &v3::kNarrowLoops, &v4::kNarrowLoops}[level];
    } else {
      return *std::array{&base::kWideLoops, &v3::kWideLoops, &v4::kWideLoops}[level];
    }
#else
    if constexpr (kNarrow) {
      return base::kNarrowLoops;
    } else {
      return base::kWideLoops;
    }
#endif
  }();
  return highest;
}
template const Loops<float>& loops();
template const Loops<double>& loops();

}  // namespace forebay::normalize_detail
