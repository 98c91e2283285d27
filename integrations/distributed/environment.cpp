#include <forebay/integrations/distributed/environment.h>

#include <cstdlib>
#include <string_view>

#include <forebay/array/require.h>
#include <forebay/pipeline/order/shard.h>
#include <forebay/pipeline/order/variable.h>

namespace forebay::distributed {
namespace {

const char* required(const char* name, int size) {
  const char* text = std::getenv(name);
  FOREBAY_REQUIRE(
      text != nullptr && *text != '\0', invalid,
      "the environment variable {} is not set, but WORLD_SIZE is {}; start the program "
      "with torchrun, or set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT.",
      name, size);
  return text;
}

}  // namespace

Environment read_environment() {
  const Shard shard = Shard::from_environment();
  Environment environment;
  environment.rank = shard.shard_id;
  environment.size = shard.num_shards;
  if (shard.num_shards == 1) return environment;
  environment.local_rank =
      integer_variable("LOCAL_RANK", required("LOCAL_RANK", shard.num_shards), 0);
  environment.address = required("MASTER_ADDR", shard.num_shards);
  const int port = integer_variable("MASTER_PORT", required("MASTER_PORT", shard.num_shards), 1);
  FOREBAY_REQUIRE(port < 1 << 16, invalid,
                  "the environment variable MASTER_PORT is {}; it must be at most 65535.", port);
  environment.port = static_cast<std::uint16_t>(port);
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  environment.keeps_store =
      shard.shard_id == 0 && (agent == nullptr || std::string_view(agent) != "True");
  const char* restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
  if (restarts != nullptr) environment.run = restarts;
  return environment;
}

}  // namespace forebay::distributed
