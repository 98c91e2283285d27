#include <forebay/array/context.h>

namespace forebay {

Context Context::create(Device device, int num_threads) {
  const MemoryPtr memory = device_memory(device);
  return {Stream::create(device, num_threads), memory, memory};
}

}  // namespace forebay
