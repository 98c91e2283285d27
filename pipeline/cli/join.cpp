#include <dlfcn.h>

#include <cstdlib>

#include <forebay/array/require.h>
#include <forebay/pipeline/cli/join.h>
#include <forebay/pipeline/order/shard.h>

namespace forebay::cli {

std::unique_ptr<RankGroup> join_ranks() {
  if (std::getenv("MASTER_ADDR") == nullptr || Shard::from_environment().num_shards == 1)
    return nullptr;
  void* library = dlopen("libforebay_distributed.so.0", RTLD_NOW | RTLD_GLOBAL);
  FOREBAY_REQUIRE(
      library != nullptr, unsupported,
      "torchrun has started {} ranks, but what joins them, libforebay_distributed.so, is "
      "not there: {}. Build with LibTorch, or run each part with --shard and --partial "
      "and put them together with --merge.",
      Shard::from_environment().num_shards, dlerror());
  const auto join = reinterpret_cast<RankGroup* (*)()>(dlsym(library, "forebay_join_ranks"));
  FOREBAY_REQUIRE(join != nullptr, unsupported,
                  "libforebay_distributed.so is of another version of Forebay: {}.", dlerror());
  return std::unique_ptr<RankGroup>(join());
}

}  // namespace forebay::cli
