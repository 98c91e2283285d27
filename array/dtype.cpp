#include <iterator>

#include <forebay/array/dtype.h>
#include <forebay/array/require.h>

namespace forebay {
namespace {

struct Names {
  std::string_view name, numpy;
  std::size_t size;
};

// In the order of Dtype.
constexpr Names kNames[] = {
    {"bool", "bool_", 1},  {"u8", "uint8", 1},      {"u16", "uint16", 2},
    {"u32", "uint32", 4},  {"u64", "uint64", 8},    {"i8", "int8", 1},
    {"i16", "int16", 2},   {"i32", "int32", 4},     {"i64", "int64", 8},
    {"f16", "float16", 2}, {"bf16", "bfloat16", 2}, {"f32", "float32", 4},
    {"f64", "float64", 8}, {"c64", "complex64", 8}, {"c128", "complex128", 16},
};
static_assert(std::size(kNames) == std::size(kAllDtypes));

const Names& names_of(Dtype dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(Dtype dtype) { return names_of(dtype).size; }
std::string_view name_of(Dtype dtype) { return names_of(dtype).name; }

Dtype dtype_from_name(std::string_view name) {
  for (Dtype dtype : kAllDtypes) {
    if (name == names_of(dtype).name || name == names_of(dtype).numpy) return dtype;
  }
  std::string known;
  for (const Names& names : kNames)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", names.name);
  fail(ErrorKind::invalid, "dtype `{}` is not known; use one of {}, or NumPy's names for them.",
       name, known);
}

}  // namespace forebay
