#pragma once

namespace forebay {

/// Which part of every global batch this process gets: shard `shard_id` of `num_shards`.
struct Shard {
  int shard_id = 0;
  int num_shards = 1;
  friend bool operator==(const Shard&, const Shard&) = default;

  /// From RANK and WORLD_SIZE, which torchrun sets; shard 0 of 1 when neither is set.
  /// Errors: invalid when only one is set, or they are no integers with 0 <= RANK < WORLD_SIZE.
  static Shard from_environment();
};

}  // namespace forebay
