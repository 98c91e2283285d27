#pragma once

#include <optional>

#include <forebay/array/view.h>

namespace forebay::cli {

/// Bytes/s, read and written together, of copies within `device` by everything that it has,
/// measured now (some 20 ms). Nothing when the device is not there.
std::optional<double> copy_bandwidth(Device device);

}  // namespace forebay::cli
