#include <forebay/pipeline/order/shard.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include <forebay/array/require.h>
#include <forebay/pipeline/order/variable.h>

namespace forebay {

int integer_variable(const char* name, const char* text, int least) {
  int value = 0;
  const char* const last = text + std::strlen(text);
  const auto [end, error] = std::from_chars(text, last, value);
  FOREBAY_REQUIRE(error == std::errc() && end == last && value >= least, invalid,
                  "the environment variable {} is `{}`; it must be an integer of at least {}.",
                  name, text, least);
  return value;
}

Shard Shard::from_environment() {
  const char* rank = std::getenv("RANK");
  const char* world = std::getenv("WORLD_SIZE");
  if (rank == nullptr && world == nullptr) return {};
  FOREBAY_REQUIRE(rank != nullptr && world != nullptr, invalid,
                  "the environment variable {} is set, but {} is not; set both, as torchrun does.",
                  rank != nullptr ? "RANK" : "WORLD_SIZE", rank != nullptr ? "WORLD_SIZE" : "RANK");
  const Shard shard{integer_variable("RANK", rank, 0), integer_variable("WORLD_SIZE", world, 1)};
  FOREBAY_REQUIRE(shard.shard_id < shard.num_shards, invalid,
                  "the environment variable RANK is {} but WORLD_SIZE is {}; it must be below.",
                  shard.shard_id, shard.num_shards);
  return shard;
}

}  // namespace forebay
