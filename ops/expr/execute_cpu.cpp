#include <algorithm>

#include <forebay/array/parallel.h>
#include <forebay/array/past_cache.h>
#include <forebay/ops/expr/execute_devices.h>
#include <forebay/ops/expr/tile_engine.h>

// A whole program on the CPU: its tiles spread over threads.
namespace forebay::expr {
namespace {

constexpr std::int64_t kGrain = 16 << 10;  // elements that are worth another thread

class CpuBody final : public Body {
 public:
  // Tables on a device other than the CPU were copied by `prepare`.
  explicit CpuBody(const Program& program) : engine_(program) {}

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch&) override {
    std::vector<Dims> strides;
    std::vector<std::byte*> targets;
    for (const ArrayView& output : outputs) {
      strides.push_back(output.strides);
      targets.push_back(output.as<std::byte>());
    }
    Traversal traversal = engine_.traversal(strides);
    std::size_t bytes = 0;
    for (const ArrayView& output : outputs)
      bytes += output.data == nullptr ? 0 : output.bytes();
    traversal.past_cache = bytes >= kPastCacheBytes;
    std::vector<const std::byte*> leaves;
    engine_.leaf_addresses(inputs, leaves);
    if (traversal.block_axis >= 0) {
      const std::int64_t blocks = engine_.block_count(traversal);
      const std::int64_t grain = blocks * kGrain / std::max<std::int64_t>(traversal.nest.count, 1);
      parallel_for(blocks, grain, [&](std::int64_t first, std::int64_t last) {
        engine_.run_blocks(traversal, leaves, targets, first, last);
      });
      return;
    }
    const std::int64_t tile = traversal.tile, tiles = (traversal.nest.count + tile - 1) / tile;
    parallel_for(tiles, std::max<std::int64_t>(kGrain / tile, 1),
                 [&](std::int64_t first, std::int64_t last) {
                   engine_.run(traversal, leaves, targets, first * tile,
                               std::min(last * tile, traversal.nest.count) - first * tile);
                 });
  }

 private:
  TileEngine engine_;
};

}  // namespace

std::unique_ptr<Body> prepare_cpu(const Program& program) {
  return std::make_unique<CpuBody>(program);
}

}  // namespace forebay::expr
