#include <forebay/pipeline/order/sampler.h>

#include <algorithm>
#include <limits>

#include <forebay/pipeline/order/random.h>

namespace forebay {
namespace {

/// Of a batch larger than any dataset it does not matter how large it is.
std::int64_t product(std::int64_t batch_size, int shards) {
  std::int64_t result = 0;
  const bool overflows = __builtin_mul_overflow(batch_size, shards, &result);
  return overflows ? std::numeric_limits<std::int64_t>::max() : result;
}

}  // namespace

Sampler::Sampler(Settings settings)
    : settings_(std::move(settings)),
      length_(settings_.order->length()),
      global_batch_(product(settings_.batch_size, settings_.shard.num_shards)) {}

std::int64_t Sampler::steps_from(std::int64_t cursor) const {
  const std::int64_t left = length_ - cursor;
  const bool rest = left % global_batch_ != 0;
  return left / global_batch_ + (rest && settings_.last_batch != LastBatchPolicy::drop ? 1 : 0);
}

bool Sampler::ends_at(std::int64_t cursor) const {
  const std::int64_t least = settings_.last_batch == LastBatchPolicy::drop ? global_batch_ : 1;
  return length_ - cursor < least;
}

Sampler::Part Sampler::part(std::int64_t cursor) const {
  const std::int64_t left = length_ - cursor, shard = settings_.shard.shard_id;
  const std::int64_t size = settings_.batch_size, shards = settings_.shard.num_shards;
  if (left < global_batch_ && settings_.last_batch == LastBatchPolicy::partial) {
    const std::int64_t least = left / shards, more = left % shards;
    return {cursor + shard * least + std::min(shard, more), least + (more > 0 ? 1 : 0),
            least + (shard < more ? 1 : 0)};
  }
  return {cursor + shard * size, size, std::clamp<std::int64_t>(left - shard * size, 0, size)};
}

std::int64_t Sampler::rows(std::int64_t cursor) const { return part(cursor).rows; }
std::int64_t Sampler::real_rows(std::int64_t cursor) const { return part(cursor).real; }

void Sampler::indices(const BatchPosition& position, std::int64_t* indices) const {
  const Part mine = part(position.cursor);
  for (std::int64_t row = 0; row < mine.rows;) {
    const std::int64_t first = (mine.begin + row) % length_;
    const std::int64_t count = std::min(mine.rows - row, length_ - first);
    settings_.order->samples(position.epoch, first,
                             {indices + row, static_cast<std::size_t>(count)});
    row += count;
  }
}

std::int64_t Sampler::substitute(const BatchPosition& position, std::int64_t row,
                                 std::uint64_t seed, std::int64_t attempt) const {
  const std::int64_t place = (part(position.cursor).begin + row) % length_;
  const std::uint64_t bits =
      random_bits(seed, Use::substitute, place, position.epoch * kMostAttempts + attempt);
  return settings_.order->stand_in(position.epoch, place, bits);
}

std::int64_t Sampler::samples_of_shard() const {
  return (length_ + settings_.shard.num_shards - 1) / settings_.shard.num_shards;
}

BatchPosition Sampler::after(const BatchPosition& position) const {
  const std::int64_t delivered = std::min(global_batch_, length_ - position.cursor);
  return {position.epoch, position.step + 1, position.cursor + delivered};
}

BatchPosition Sampler::at(std::int64_t epoch, std::int64_t cursor) const {
  return {epoch, cursor / global_batch_, cursor};
}

std::int64_t Sampler::tail_rows(std::int64_t cursor) const {
  if (settings_.last_batch != LastBatchPolicy::partial) return 0;
  const std::int64_t left = (length_ - cursor) % global_batch_;
  const std::int64_t last = left == 0 ? 0 : rows(length_ - left);
  return last < settings_.batch_size ? last : 0;
}

}  // namespace forebay
