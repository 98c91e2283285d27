#include <cuda.h>  // types only: libcuda is not linked, so that programs start on a machine without a driver

#include <atomic>
#include <string>
#include <vector>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/compile_only.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/require.h>

namespace forebay::cuda {
namespace {

struct Presence {
  int count = 0;
  std::string reason;
};

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Presence find_devices() {
  Presence found;
  const cudaError_t status = cudaGetDeviceCount(&found.count);
  if (status == cudaSuccess && found.count > 0) return found;
  cudaGetLastError();
  found.count = 0;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    found.reason = "no CUDA driver is installed";
  } else if (status == cudaErrorInsufficientDriver) {
    found.reason = fmt::format("the driver is for CUDA {}, and this build needs {} or newer",
                               version_text(driver), version_text(CUDART_VERSION));
  } else if (status == cudaSuccess || status == cudaErrorNoDevice) {
    found.reason = "no CUDA device is visible";
  } else {
    found.reason = fmt::format("CUDA does not start: {}", cudaGetErrorString(status));
  }
  return found;
}

const Presence& presence() {
  // never destroyed: asked for during exit too
  static const Presence& found = *new Presence(find_devices());
  return found;
}

/// The driver's context functions, found through the runtime.
struct Driver {
  CUresult (*current)(CUcontext*);
  CUresult (*push)(CUcontext);
  CUresult (*pop)(CUcontext*);
  CUresult (*retain_primary)(CUcontext*, CUdevice);
};

template <class Function>
void find_entry(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(driver_function(name));
}

const Driver& driver() {
  static const Driver found = [] {
    Driver d;
    find_entry("cuCtxGetCurrent", d.current);
    find_entry("cuCtxPushCurrent", d.push);
    find_entry("cuCtxPopCurrent", d.pop);
    find_entry("cuDevicePrimaryCtxRetain", d.retain_primary);
    return d;
  }();
  return found;
}

/// A driver error as the runtime's: their numbers agree.
void check_driver(CUresult status, const char* call) {
  check(static_cast<cudaError_t>(status), call);
}

/// The primary contexts retained so far, one place for each device; never released.
std::vector<std::atomic<CUcontext>>& contexts() {
  static auto& found =
      *new std::vector<std::atomic<CUcontext>>(static_cast<std::size_t>(device_count()));
  return found;
}

CUcontext primary_context(int device) {
  std::atomic<CUcontext>& place = contexts()[static_cast<std::size_t>(device)];
  CUcontext context = place.load();
  if (context == nullptr) {
    check_driver(driver().retain_primary(&context, device), "cuDevicePrimaryCtxRetain");
    place = context;
  }
  return context;
}

std::vector<DeviceLimits> read_limits() {
  std::vector<DeviceLimits> all;
  for (int device = 0; device < device_count(); ++device) {
    const auto attribute = [device](cudaDeviceAttr which) {
      int value = 0;
      check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
      return value;
    };
    all.push_back({.architecture = attribute(cudaDevAttrComputeCapabilityMajor) * 10 +
                                   attribute(cudaDevAttrComputeCapabilityMinor),
                   .multiprocessors = attribute(cudaDevAttrMultiProcessorCount),
                   .shared_memory_per_block =
                       static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
                   .l2_bytes = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize))});
  }
  return all;
}

}  // namespace

int device_count() { return presence().count; }
const char* absence_reason() { return presence().reason.c_str(); }

const DeviceLimits& limits(Device device) {
  static constexpr DeviceLimits kH100{90, 132, 227 * 1024, 50 << 20};
  if (compile_only()) return kH100;
  require_device(device);
  static const std::vector<DeviceLimits> all = read_limits();
  return all[static_cast<std::size_t>(device.index)];
}

DeviceGuard::DeviceGuard(int device) {
  const CUcontext wanted = primary_context(device);
  CUcontext current = nullptr;
  check_driver(driver().current(&current), "cuCtxGetCurrent");
  if (current == wanted) return;
  check_driver(driver().push(wanted), "cuCtxPushCurrent");
  pushed_ = true;
}

DeviceGuard::~DeviceGuard() {
  CUcontext popped;
  if (pushed_) driver().pop(&popped);
}

int device_in_use() {
  for (std::size_t device = 0; device < contexts().size(); ++device) {
    if (contexts()[device].load() != nullptr) return static_cast<int>(device);
  }
  return 0;
}

void* driver_function(const char* name) {
  void* entry = nullptr;
  check(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, nullptr),
        "cudaGetDriverEntryPointByVersion");
  FOREBAY_REQUIRE(entry != nullptr, device,
                  "the CUDA driver has no function {}; update the driver.", name);
  return entry;
}

}  // namespace forebay::cuda
