#pragma once

#include <forebay/array/memory.h>
#include <forebay/array/stream.h>

namespace forebay {

/// Where work runs and where its memory comes from. Passed explicitly, last, never defaulted, never
/// global. `memory` holds results; `scratch` holds what an op needs while it runs. Both belong to
/// the stream's device.
struct Context {
  Stream stream;
  MemoryPtr memory;
  MemoryPtr scratch;

  /// A new stream on `device` with that device's default pool for both.
  static Context create(Device device, int num_threads = 0);
  Device device() const { return stream.device(); }
};

}  // namespace forebay
