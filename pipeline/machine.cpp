#include <forebay/pipeline/machine.h>

#include <forebay/array/cuda/graph.h>

namespace forebay {
namespace {

Array shared_block(std::size_t bytes, const Context& context) {
  return Array::empty({static_cast<std::int64_t>(bytes)}, Dtype::u8, context.memory,
                      context.stream);
}

}  // namespace

Machine make_machine(const Plan& plan, const MemoryMap& map, const Options& options) {
  const MemoryPtr memory = options.memory != nullptr ? options.memory : device_memory(plan.device);
  const bool gpu = plan.device.is_cuda();
  const MemoryPtr host = gpu ? host_memory() : memory;
  Machine machine{.cpu = {Stream::create(Device::cpu(), plan.spec->num_threads), host, host},
                  .gpu = {},
                  .shared_host = {},
                  .shared_device = {},
                  .time_steps = options.time_steps,
                  .cuda_graphs = options.cuda_graphs};
  machine.shared_host = shared_block(map.shared_host, machine.cpu);
  if (gpu) {
    machine.gpu = Context{Stream::create(plan.device), memory, memory};
    machine.shared_device = shared_block(map.shared_device, *machine.gpu);
    machine.cpu.stream.enqueue([] {
      try {
        cuda::relax_capture_mode_of_this_thread();
      } catch (...) {  // then a capture of this thread may fail, and says so itself
      }
    });
  }
  return machine;
}

}  // namespace forebay
