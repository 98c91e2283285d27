#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <forebay/array/require.h>
#include <forebay/pipeline/source.h>
#include <forebay/pipeline/source/npy_file.h>

namespace forebay {
namespace {

/// NumPy has no bfloat16; widening it is exact.
std::vector<float> widened(const ArrayView& array) {
  const auto* values = array.as<const BFloat16>();
  std::vector<float> wide(static_cast<std::size_t>(array.count()));
  for (std::size_t i = 0; i < wide.size(); ++i)
    wide[i] = static_cast<float>(values[i]);
  return wide;
}

void write_file(const std::string& path, const ArraySpec& spec, const void* data,
                std::size_t bytes) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
  FOREBAY_REQUIRE(file != nullptr, io, "{}: cannot be written: {}.", path, std::strerror(errno));
  const std::string header = make_npy_header(spec);
  bool written = std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
  written = written && (bytes == 0 || std::fwrite(data, 1, bytes, file.get()) == bytes);
  written = std::fclose(file.release()) == 0 && written;  // a full disk can show only here
  FOREBAY_REQUIRE(written, io, "{}: cannot be written: {}.", path, std::strerror(errno));
}

}  // namespace

Array read_npy(const std::string& path) {
  const NpyFile file(path);
  const auto& [dtype, shape] = file.spec();
  ArrayView view{nullptr, dtype, Device::cpu(), shape, dense_strides(shape)};
  // Not from host_memory(): memory without a stream behind it needs no thread.
  constexpr std::align_val_t kAlignment{256};
  view.data = ::operator new(std::max<std::size_t>(view.bytes(), 1), kAlignment);
  Array array(view, {view.data, [](void* data) { ::operator delete(data, kAlignment); }});
  file.read(0, view.bytes(), static_cast<std::byte*>(view.data));
  return array;
}

void write_npy(const std::string& path, const ArrayView& array) {
  FOREBAY_REQUIRE(!array.device.is_cuda(), invalid,
                  "write_npy: `array` is on {}; it must be on cpu. Copy it to the host first.",
                  to_string(array.device));
  FOREBAY_REQUIRE(is_dense(array), invalid,
                  "write_npy: `array` has the strides {} and is not dense; use contiguous() first.",
                  to_string(array.strides));
  if (array.dtype == Dtype::bf16) {
    const std::vector<float> wide = widened(array);
    return write_file(path, {Dtype::f32, array.shape}, wide.data(), wide.size() * sizeof(float));
  }
  write_file(path, {array.dtype, array.shape}, array.data, array.bytes());
}

}  // namespace forebay
