#include <forebay/pipeline/order/shard.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <forebay/array/require.h>

namespace forebay {
namespace {

int read_variable(const char* name, std::string_view text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  FOREBAY_REQUIRE(error == std::errc() && end == text.data() + text.size() && value >= least,
                  invalid,
                  "the environment variable {} is `{}`; it must be an integer of at least {}.",
                  name, text, least);
  return value;
}

}  // namespace

Shard Shard::from_environment() {
  const char* rank = std::getenv("RANK");
  const char* world = std::getenv("WORLD_SIZE");
  if (rank == nullptr && world == nullptr) return {};
  FOREBAY_REQUIRE(rank != nullptr && world != nullptr, invalid,
                  "the environment variable {} is set, but {} is not; set both, as torchrun does.",
                  rank != nullptr ? "RANK" : "WORLD_SIZE", rank != nullptr ? "WORLD_SIZE" : "RANK");
  const Shard shard{read_variable("RANK", rank, 0), read_variable("WORLD_SIZE", world, 1)};
  FOREBAY_REQUIRE(shard.shard_id < shard.num_shards, invalid,
                  "the environment variable RANK is {} but WORLD_SIZE is {}; it must be below.",
                  shard.shard_id, shard.num_shards);
  return shard;
}

}  // namespace forebay
