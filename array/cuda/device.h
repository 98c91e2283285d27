#pragma once

#include <cstddef>

#include <forebay/array/view.h>

namespace forebay::cuda {

/// What op bodies size their launches by.
struct DeviceLimits {
  int architecture = 0;  ///< compute capability as one number: 90 for 9.0
  int multiprocessors = 0;
  std::size_t shared_memory_per_block = 0;  ///< bytes, the most that a launch may ask for
  std::size_t l2_bytes = 0;
};

/// The limits of a CUDA device, read once. While a CompileOnly lives: those of an H100, whatever
/// the device. Errors: unsupported when `device` is not there, with the reason.
const DeviceLimits& limits(Device device);

/// Internal: makes `device` the calling thread's current CUDA device; the destructor restores what
/// was there. It pushes the device's primary context instead of calling cudaSetDevice, since going
/// back with that would create a context, of some 500 MB, on a device 0 that this process does not
/// use. Errors: device.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  bool pushed_ = false;
};

/// Internal: a device that a guard has been made for, else 0; for calls that need a context,
/// whichever it is.
int device_in_use();

/// Internal: a function of the CUDA driver (as of 12.0), found through the runtime, since libcuda
/// is not linked.
/// Errors: device when the driver has none of that name.
void* driver_function(const char* name);

}  // namespace forebay::cuda
