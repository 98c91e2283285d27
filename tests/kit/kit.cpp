#include "kit/kit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>

namespace forebay {

void PrintTo(Dtype dtype, std::ostream* out) { *out << name_of(dtype); }
void PrintTo(const Device& device, std::ostream* out) { *out << to_string(device); }
void PrintTo(const Dims& dims, std::ostream* out) { *out << to_string(dims); }

namespace kit {
namespace {

using AllTypes = Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double,
                       std::complex<float>, std::complex<double>>;

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return T(static_cast<typename T::value_type>(value), 0);
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
std::complex<double> to_complex(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
  } else {
    return static_cast<double>(value);
  }
}

/// Elements from the data pointer to row-major element `i`.
std::int64_t offset_of(const ArrayView& view, std::int64_t i) {
  std::int64_t offset = 0;
  for (int axis = view.rank() - 1; axis >= 0; --axis) {
    offset += i % view.shape[axis] * view.strides[axis];
    i /= view.shape[axis];
  }
  return offset;
}

char* element(const ArrayView& view, std::int64_t i) {
  return view.as<char>() + offset_of(view, i) * static_cast<std::int64_t>(size_of(view.dtype));
}

Array host_empty(const Dims& shape, Dtype dtype) {
  const auto bytes = static_cast<std::size_t>(count_of(shape)) * size_of(dtype);
  std::shared_ptr<void> memory(::operator new (bytes + 1, std::align_val_t{256}),
                               [](void* p) { ::operator delete (p, std::align_val_t{256}); });
  return Array({memory.get(), dtype, Device::cpu(), shape, dense_strides(shape)}, memory);
}

bool equal(std::complex<double> a, std::complex<double> b, double relative, double absolute) {
  const auto part = [&](double x, double y, double scale) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    return std::abs(x - y) <= absolute + relative * scale;
  };
  // The other part may still be finite.
  const double scale = std::isfinite(std::abs(b)) ? std::abs(b) : 0;
  return part(a.real(), b.real(), scale) && part(a.imag(), b.imag(), scale);
}

template <class Want>
testing::AssertionResult compare(const Array& host, std::span<const Want> want, double relative,
                                 double absolute) {
  if (host.count() != static_cast<std::int64_t>(want.size())) {
    return testing::AssertionFailure()
           << "has " << host.count() << " elements, not " << want.size();
  }
  for (std::int64_t i = 0; i < host.count(); ++i) {
    const auto got = complex_value(host.view(), i);
    const std::complex<double> wanted = want[static_cast<std::size_t>(i)];
    if (!equal(got, wanted, relative, absolute)) {
      return testing::AssertionFailure()
             << fmt::format("element {} of {} {} is ({:.17g}, {:.17g}), not ({:.17g}, {:.17g})", i,
                            name_of(host.dtype()), to_string(host.shape()), got.real(), got.imag(),
                            wanted.real(), wanted.imag());
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace

std::vector<Device> devices() { return {Device::cpu(), Device::cuda()}; }

std::string absence(Device device) {
  if (device.is_cuda() && cuda_device_count() <= device.index) return cuda_absence_reason();
  return {};
}

bool DeviceTest::add(const char* suite, const char* name, const char* file, int line,
                     Factory make) {
  for (const Device device : devices()) {
    const std::string on_device = std::string(name) + (device.is_cuda() ? "/cuda" : "/cpu");
    testing::RegisterTest(suite, on_device.c_str(), nullptr, nullptr, file, line, [=] {
      DeviceTest* test = make();
      test->device_ = device;
      return test;
    });
  }
  return true;
}

bool DeviceTest::skips() const {
  const std::string reason = absence(device_);
  if (!reason.empty()) [&] { GTEST_SKIP() << reason; }();
  return !reason.empty();
}

Context context(Device device) { return Context::create(device); }

Array random(const Dims& shape, Dtype dtype, std::uint64_t seed, double low, double high) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  Array result = host_empty(shape, dtype);
  dispatch(AllTypes{}, dtype, "random", "dtype", [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < result.count(); ++i) {
      const double value = uniform(engine);
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>) {
        using Real = typename T::value_type;
        result.as<T>()[i] = T(static_cast<Real>(value), static_cast<Real>(uniform(engine)));
      } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const double least = std::max(low, static_cast<double>(std::numeric_limits<T>::min()));
        result.as<T>()[i] = static_cast<T>(std::max(least, std::floor(value)));
      } else if constexpr (std::is_same_v<T, bool>) {
        result.as<T>()[i] = value > (low + high) / 2;
      } else {
        result.as<T>()[i] = from_double<T>(value);
      }
    }
  });
  return result;
}

Array generate(const Dims& shape, Dtype dtype,
               const std::function<double(std::int64_t)>& value_at) {
  Array result = host_empty(shape, dtype);
  dispatch(AllTypes{}, dtype, "generate", "dtype", [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < result.count(); ++i)
      result.as<T>()[i] = from_double<T>(value_at(i));
  });
  return result;
}

std::vector<Layout> layouts() {
  return {Layout::dense, Layout::transposed, Layout::sliced, Layout::reversed, Layout::offset};
}

Array with_layout(const Array& x, Layout layout) {
  const int rank = x.rank();
  Array result;
  if (layout == Layout::dense || (rank == 0 && layout != Layout::offset)) return x;
  if (layout == Layout::offset) {
    const Array memory = host_empty({x.count() + 1}, x.dtype());
    ArrayView view = x.view();
    view.data = memory.as<char>() + size_of(x.dtype());
    view.strides = dense_strides(x.shape());
    result = memory.with_view(view);
  } else if (layout == Layout::transposed) {
    Dims reversed_shape, axes;
    for (int axis = rank - 1; axis >= 0; --axis) {
      reversed_shape.push_back(x.shape()[axis]);
      axes.push_back(axis);
    }
    result = host_empty(reversed_shape, x.dtype()).permute(axes);
  } else {
    Dims larger = x.shape();
    larger[rank - 1] *= 2;
    const Array memory = host_empty(layout == Layout::sliced ? larger : x.shape(), x.dtype());
    ArrayView view = memory.view();
    view.shape = x.shape();
    if (layout == Layout::sliced) {
      view.strides[rank - 1] = 2;
    } else if (x.count() > 0) {
      view.data = element(view, view.shape[rank - 1] - 1);
      view.strides[rank - 1] = -view.strides[rank - 1];
    }
    result = memory.with_view(view);
  }
  for (std::int64_t i = 0; i < x.count(); ++i) {
    std::memcpy(element(result.view(), i), element(x.view(), i), size_of(x.dtype()));
  }
  return result;
}

Array to_device(const Array& x, const Context& context) {
  if (x.count() == 0) {
    ArrayView view = x.view();
    view.device = context.device();
    return x.with_view(view);
  }
  // The span of memory that the strides reach, as bytes.
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t reach = (x.shape()[axis] - 1) * x.strides()[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
  const std::int64_t lead =
      std::int64_t(reinterpret_cast<std::uintptr_t>(x.as<char>() + low * size) % 16);
  const std::int64_t bytes = (high - low + 1) * size;
  // The first byte keeps its address modulo 16, so that alignment is the same on the device.
  const Array memory = Array::empty({bytes + lead}, Dtype::u8, context);
  char* target = memory.as<char>() + lead;
  copy({x.as<char>() + low * size, Dtype::u8, Device::cpu(), {bytes}, {1}},
       {target, Dtype::u8, context.device(), {bytes}, {1}}, context.stream);
  context.stream.synchronize();
  ArrayView view = x.view();
  view.device = context.device();
  view.data = target - low * size;
  return memory.with_view(view);
}

Array to_host(const Array& x, const Context& context) {
  context.stream.synchronize();
  Array strided = x;
  if (x.device().is_cuda() && x.count() > 0) {
    std::int64_t low = 0, high = 0;
    for (int axis = 0; axis < x.rank(); ++axis) {
      const std::int64_t reach = (x.shape()[axis] - 1) * x.strides()[axis];
      (reach < 0 ? low : high) += reach;
    }
    const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    const std::int64_t bytes = (high - low + 1) * size;
    const Array memory = host_empty({bytes}, Dtype::u8);
    copy({x.as<char>() + low * size, Dtype::u8, x.device(), {bytes}, {1}}, memory.view(),
         context.stream);
    context.stream.synchronize();
    ArrayView view = x.view();
    view.device = Device::cpu();
    view.data = memory.as<char>() - low * size;
    strided = memory.with_view(view);
  }
  Array dense = host_empty(x.shape(), x.dtype());
  for (std::int64_t i = 0; i < x.count(); ++i) {
    std::memcpy(element(dense.view(), i), element(strided.view(), i), size_of(x.dtype()));
  }
  return dense;
}

std::complex<double> complex_value(const ArrayView& host, std::int64_t i) {
  std::complex<double> result;
  dispatch(AllTypes{}, host.dtype, "value", "host", [&]<class T>(Type<T>) {
    T content;
    std::memcpy(&content, element(host, i), sizeof(T));
    result = to_complex(content);
  });
  return result;
}

double value(const ArrayView& host, std::int64_t i) { return complex_value(host, i).real(); }

std::vector<double> values(const Array& host) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < host.count(); ++i)
    result.push_back(value(host.view(), i));
  return result;
}

std::vector<std::complex<double>> complex_values(const Array& host) {
  std::vector<std::complex<double>> result;
  for (std::int64_t i = 0; i < host.count(); ++i)
    result.push_back(complex_value(host.view(), i));
  return result;
}

testing::AssertionResult near(const Array& host, std::span<const double> want, double relative,
                              double absolute) {
  return compare(host, want, relative, absolute);
}
testing::AssertionResult near(const Array& host, std::span<const std::complex<double>> want,
                              double relative, double absolute) {
  return compare(host, want, relative, absolute);
}

testing::AssertionResult same_bits(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
    return testing::AssertionFailure()
           << name_of(a.dtype()) << " " << to_string(a.shape()) << " is not " << name_of(b.dtype())
           << " " << to_string(b.shape());
  }
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (std::memcmp(element(a.view(), i), element(b.view(), i), size_of(a.dtype())) == 0) continue;
    const auto x = complex_value(a.view(), i), y = complex_value(b.view(), i);
    const auto both = [](double p, double q) { return (std::isnan(p) && std::isnan(q)) || p == q; };
    const bool has_nan = std::isnan(x.real()) || std::isnan(x.imag());
    if (has_nan && both(x.real(), y.real()) && both(x.imag(), y.imag())) continue;
    return testing::AssertionFailure()
           << fmt::format("element {} is ({:.17g}, {:.17g}) and ({:.17g}, {:.17g})", i, x.real(),
                          x.imag(), y.real(), y.imag());
  }
  return testing::AssertionSuccess();
}

double epsilon(Dtype dtype) {
  switch (real_of(dtype)) {
    case Dtype::f16:
      return std::ldexp(1.0, -11);
    case Dtype::bf16:
      return std::ldexp(1.0, -8);
    case Dtype::f32:
      return std::ldexp(1.0, -24);
    case Dtype::f64:
      return std::ldexp(1.0, -53);
    default:
      return 0;
  }
}

Caught caught(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

std::string temporary_folder() {
  namespace fs = std::filesystem;
  struct Folders {
    std::vector<fs::path> made;
    ~Folders() {
      for (const auto& folder : made) {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
      }
    }
  };
  static Folders folders;
  std::string pattern = (fs::temp_directory_path() / "forebay_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    fail(ErrorKind::io, "cannot make a temporary folder {}", pattern);
  folders.made.emplace_back(pattern);
  return pattern;
}

}  // namespace kit
}  // namespace forebay
