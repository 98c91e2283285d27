#include <cstring>

#include <forebay/array/require.h>
#include <forebay/pipeline/source/columns.h>

namespace forebay {
namespace {

/// Copies the elements of `view`, whose data pointer is `from`, to dense memory in row-major order.
/// The innermost axis is a loop over elements of a size that the compiler knows; the axes before it
/// recurse.
template <std::size_t kBytes>
std::byte* gather(const std::byte* from, const ArrayView& view, int axis, std::byte* to) {
  if (axis == view.rank()) {
    std::memcpy(to, from, kBytes);
    return to + kBytes;
  }
  const std::int64_t step = view.strides[axis] * static_cast<std::int64_t>(kBytes);
  const bool innermost = axis == view.rank() - 1;
  for (std::int64_t i = 0; i < view.shape[axis]; ++i, from += step) {
    if (innermost) {
      std::memcpy(to, from, kBytes);
      to += kBytes;
    } else {
      to = gather<kBytes>(from, view, axis + 1, to);
    }
  }
  return to;
}

void copy_strided(const ArrayView& view, std::byte* to) {
  const auto* from = static_cast<const std::byte*>(view.data);
  switch (size_of(view.dtype)) {
    case 1:
      gather<1>(from, view, 0, to);
      break;
    case 2:
      gather<2>(from, view, 0, to);
      break;
    case 4:
      gather<4>(from, view, 0, to);
      break;
    case 8:
      gather<8>(from, view, 0, to);
      break;
    default:
      gather<16>(from, view, 0, to);
  }
}

class ArraySource final : public ColumnwiseSource {
 public:
  explicit ArraySource(std::vector<std::pair<std::string, Array>> columns) {
    for (auto& [name, array] : columns) {
      ArrayView sample = array.view();
      sample.shape = tail(array.shape());
      sample.strides = tail(array.strides());
      columns_.push_back({name, array.dtype(), sample.shape});
      samples_.push_back(sample);
      arrays_.push_back(std::move(array));
    }
  }

  std::int64_t size() const override { return arrays_.front().shape()[0]; }

  std::string describe() const override {
    std::string text = "array ";
    for (std::size_t c = 0; c < columns_.size(); ++c)
      text += (c == 0 ? "" : ", ") + columns_[c].name;
    return text;
  }

  void read_column(int column, std::span<const std::int64_t> indices,
                   const ArrayView& view) const override {
    const auto c = static_cast<std::size_t>(column);
    const std::size_t bytes = sample_bytes(columns_[c]);
    if (bytes == 0) return;
    const std::int64_t step =
        arrays_[c].strides()[0] * static_cast<std::int64_t>(size_of(columns_[c].dtype));
    auto* target = static_cast<std::byte*>(view.data);
    ArrayView sample = samples_[c];
    const bool dense = is_dense(sample);
    for (const std::int64_t index : indices) {
      sample.data = static_cast<std::byte*>(samples_[c].data) + index * step;
      if (dense) {
        std::memcpy(target, sample.data, bytes);
      } else {
        copy_strided(sample, target);
      }
      target += bytes;
    }
  }

 private:
  static Dims tail(const Dims& dims) {
    Dims rest;
    for (int axis = 1; axis < dims.rank; ++axis)
      rest.push_back(dims[axis]);
    return rest;
  }

  std::vector<Array> arrays_;
  std::vector<ArrayView> samples_;  ///< sample 0 of each column
};

}  // namespace

SourcePtr array_source(std::vector<std::pair<std::string, Array>> columns) {
  for (const auto& [name, array] : columns) {
    FOREBAY_REQUIRE(array.rank() > 0, invalid,
                    "array_source: column `{}` has rank 0; axis 0 must run over the samples.",
                    name);
    FOREBAY_REQUIRE(
        !array.device().is_cuda(), invalid,
        "array_source: column `{}` is on {}; it must be on cpu. Copy it to the host first.", name,
        to_string(array.device()));
    const auto& [first_name, first] = columns.front();
    FOREBAY_REQUIRE(
        array.shape()[0] == first.shape()[0], invalid,
        "array_source: column `{}` has {} samples but `{}` has {}; all columns must have as many.",
        name, array.shape()[0], first_name, first.shape()[0]);
  }
  auto source = std::make_shared<ArraySource>(std::move(columns));
  check_columns("array_source", source->columns());
  return source;
}

}  // namespace forebay
