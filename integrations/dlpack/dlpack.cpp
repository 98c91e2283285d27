#include <forebay/integrations/dlpack/dlpack.h>

#include <dlpack/dlpack.h>

#include <algorithm>
#include <string>

#include <forebay/array/require.h>

namespace forebay {
namespace {

DLDataType to_dl(Dtype dtype) {
  const DLDataTypeCode code = dtype == Dtype::boolean ? kDLBool
                              : dtype == Dtype::bf16  ? kDLBfloat
                              : is_complex(dtype)     ? kDLComplex
                              : is_float(dtype)       ? kDLFloat
                              : is_unsigned(dtype)    ? kDLUInt
                                                      : kDLInt;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

/// What a managed tensor of ours points into.
template <class Managed>
struct Export {
  explicit Export(const Array& source)
      : array(source), shape(source.shape()), strides(source.strides()) {}
  Managed managed{};
  Array array;
  Dims shape, strides;
};

template <class Managed>
Managed* export_as(const Array& array) {
  auto exported = std::make_unique<Export<Managed>>(array);
  const Dims dense = dense_strides(array.shape());
  for (int axis = 0; axis < array.rank(); ++axis) {
    if (array.strides()[axis] >= 0) continue;
    // The stride of an axis without a second element means nothing, but consumers look at it all
    // the same.
    FOREBAY_REQUIRE(array.count() == 0 || array.shape()[axis] == 1, unsupported,
                    "to_dlpack: `array` of shape {} has strides {}; DLPack's consumers take none "
                    "below 0. Make a dense copy first.",
                    to_string(array.shape()), to_string(array.strides()));
    exported->strides[axis] = dense[axis];
  }
  const Device device = array.device();
  exported->managed.dl_tensor = {
      .data = array.count() == 0 ? nullptr : array.data(),
      .device = {device.is_cuda() ? kDLCUDA : kDLCPU, device.is_cuda() ? device.index : 0},
      .ndim = array.rank(),
      .dtype = to_dl(array.dtype()),
      .shape = exported->shape.values,
      .strides = exported->strides.values,
      .byte_offset = 0};
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<Export<Managed>*>(self->manager_ctx);
  };
  return &exported.release()->managed;
}

template <class Managed>
void release(void* tensor) {
  auto* managed = static_cast<Managed*>(tensor);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

/// Deleter of the owner behind an imported array. Filled last: until then the tensor is the
/// caller's.
struct Import {
  void* tensor = nullptr;
  void (*release)(void* tensor) = nullptr;
  bool read_only = false;
  void operator()(void*) const noexcept {
    if (release != nullptr) release(tensor);
  }
};

bool is_read_only(const Array& array) {
  const auto* import = std::get_deleter<Import>(array.owner());
  return import != nullptr && import->read_only;
}

/// `float32`, `int4`, `float8_e4m3fn`, `float32 in 4 lanes`.
std::string dl_name(const DLDataType& type) {
  static constexpr const char* kNames[] = {"int",
                                           "uint",
                                           "float",
                                           "handle",
                                           "bfloat",
                                           "complex",
                                           "bool",
                                           "float8_e3m4",
                                           "float8_e4m3",
                                           "float8_e4m3b11fnuz",
                                           "float8_e4m3fn",
                                           "float8_e4m3fnuz",
                                           "float8_e5m2",
                                           "float8_e5m2fnuz",
                                           "float8_e8m0fnu",
                                           "float6_e2m3fn",
                                           "float6_e3m2fn",
                                           "float4_e2m1fn"};
  const bool known = type.code < std::size(kNames);
  std::string name = known ? kNames[type.code] : fmt::format("code {} of ", type.code);
  if (type.code < kDLFloat8_e3m4) name += fmt::format("{}", type.bits);
  if (!known) name += fmt::format("{} bits", type.bits);
  if (type.lanes != 1) name += fmt::format(" in {} lanes", type.lanes);
  return name;
}

Dtype dtype_of_dl(const DLDataType& type) {
  for (const Dtype dtype : kAllDtypes) {
    const DLDataType known = to_dl(dtype);
    if (known.code == type.code && known.bits == type.bits && known.lanes == type.lanes)
      return dtype;
  }
  fail(ErrorKind::unsupported,
       "from_dlpack: `tensor` has dtype {}; supported: bool, integers, f16, bf16, f32, f64, c64, "
       "c128. Convert it first.",
       dl_name(type));
}

Device device_of(const DLDevice& device) {
  const bool host = device.device_type == kDLCPU || device.device_type == kDLCUDAHost;
  FOREBAY_REQUIRE(
      host || device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged, unsupported,
      "from_dlpack: `tensor` is on a device of DLPack's type {}; supported: CPU (1), "
      "CUDA (2), pinned host memory (3) and CUDA managed memory (13). Copy it there first.",
      static_cast<int>(device.device_type));
  FOREBAY_REQUIRE(host || device.device_id >= 0, invalid,
                  "from_dlpack: `tensor` is on CUDA device {}; devices count from 0.",
                  device.device_id);
  return host ? Device::cpu() : Device::cuda(device.device_id);
}

/// False when the elements, or the bytes that the strides reach, are more than 64 bits can count.
/// Extents of 0 count as 1, so that products over some of the axes fit too.
bool fits(const Dims& shape, const Dims& strides, std::int64_t size) {
  std::int64_t count = 1, below = 0, above = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const std::int64_t extent = std::max<std::int64_t>(shape[axis], 1);
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(count, extent, &count) ||
        __builtin_mul_overflow(extent - 1, strides[axis], &reach) ||
        __builtin_mul_overflow(reach, size, &reach)) {
      return false;
    }
    std::int64_t& side = reach < 0 ? below : above;
    if (__builtin_add_overflow(side, reach, &side)) return false;
  }
  return !__builtin_mul_overflow(count, size, &count) &&
         !__builtin_sub_overflow(above, below, &above);
}

ArrayView checked_view(const DLTensor& tensor) {
  ArrayView view;
  view.dtype = dtype_of_dl(tensor.dtype);
  view.device = device_of(tensor.device);
  FOREBAY_REQUIRE(tensor.ndim >= 0, invalid,
                  "from_dlpack: `tensor` has rank {}; it must be 0 to {}.", tensor.ndim, kMaxRank);
  FOREBAY_REQUIRE(
      tensor.ndim <= kMaxRank, unsupported,
      "from_dlpack: `tensor` has rank {}; at most {} is supported. Merge some of its axes first.",
      tensor.ndim, kMaxRank);
  FOREBAY_REQUIRE(
      tensor.ndim == 0 || tensor.shape != nullptr, invalid,
      "from_dlpack: `tensor` has rank {} and a null shape; a shape is needed above rank 0.",
      tensor.ndim);
  for (int axis = 0; axis < tensor.ndim; ++axis)
    view.shape.push_back(tensor.shape[axis]);
  for (const std::int64_t extent : view.shape) {
    FOREBAY_REQUIRE(extent >= 0, invalid,
                    "from_dlpack: `tensor` has shape {}; extents must be at least 0.",
                    to_string(view.shape));
  }
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  Dims strides;
  strides.rank = view.shape.rank;
  // Null strides are dense ones, which are computed only once the extents are known to fit.
  if (tensor.strides != nullptr) {
    for (int axis = 0; axis < tensor.ndim; ++axis)
      strides[axis] = tensor.strides[axis];
  }
  FOREBAY_REQUIRE(fits(view.shape, strides, size), invalid,
                  "from_dlpack: `tensor` of shape {} and strides {} reaches over more bytes than "
                  "64 bits can count.",
                  to_string(view.shape), tensor.strides == nullptr ? "null" : to_string(strides));
  view.strides = tensor.strides != nullptr ? strides : dense_strides(view.shape);
  if (view.count() == 0) return view;
  FOREBAY_REQUIRE(tensor.data != nullptr, invalid,
                  "from_dlpack: `tensor` of shape {} has null data.", to_string(view.shape));
  view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  FOREBAY_REQUIRE(
      reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(size) == 0, invalid,
      "from_dlpack: the first element of `tensor` ({}, byte offset {}) is not at a multiple of its "
      "{} bytes. Copy it to aligned memory first.",
      name_of(view.dtype), tensor.byte_offset, size);
  return view;
}

template <class Managed>
Array import_from(Managed* tensor, bool read_only) {
  const ArrayView view = checked_view(tensor->dl_tensor);
  std::shared_ptr<void> owner(view.data, Import{});
  *std::get_deleter<Import>(owner) = {tensor, &release<Managed>, read_only};
  return Array(view, std::move(owner));
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const Array& array) {
  auto* managed = export_as<DLManagedTensorVersioned>(array);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = is_read_only(array) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return managed;
}

DLManagedTensor* to_dlpack_unversioned(const Array& array) {
  FOREBAY_REQUIRE(!is_read_only(array), unsupported,
                  "to_dlpack_unversioned: `array` is memory that was imported as read-only; DLPack "
                  "before 1.0 cannot say so. Use to_dlpack, or make a copy first.");
  return export_as<DLManagedTensor>(array);
}

Array from_dlpack(DLManagedTensorVersioned* tensor) {
  FOREBAY_REQUIRE(tensor != nullptr, invalid, "from_dlpack: `tensor` is null.");
  const DLPackVersion version = tensor->version;
  if (version.major != DLPACK_MAJOR_VERSION) {
    // Of another major version, only the fields up to the deleter are known.
    release<DLManagedTensorVersioned>(tensor);
    fail(ErrorKind::unsupported,
         "from_dlpack: `tensor` is of DLPack {}.{}; supported: {}.x. It was deleted.",
         version.major, version.minor, DLPACK_MAJOR_VERSION);
  }
  return import_from(tensor, (tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
}

Array from_dlpack(DLManagedTensor* tensor) {
  FOREBAY_REQUIRE(tensor != nullptr, invalid, "from_dlpack: `tensor` is null.");
  return import_from(tensor, false);
}

}  // namespace forebay
