#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/pipeline/order/members.h>

namespace forebay {

/// The order of the samples of an epoch: (epoch, position) -> sample. A pure function, the same on
/// every machine, whatever is read ahead and whoever asks. Safe to use from any thread.
class Order {
 public:
  virtual ~Order() = default;
  /// Positions of an epoch: 0..length()-1.
  virtual std::int64_t length() const = 0;
  /// Writes the samples at positions `first`, `first + 1`, ... of `epoch`, as indices of the source.
  virtual void samples(std::int64_t epoch, std::int64_t first,
                       std::span<std::int64_t> indices) const = 0;
  /// A sample that can stand in for the one at `position`: any of the epoch's positions, chosen by 64
  /// random bits; a mix takes one of the same source, so that proportions hold.
  virtual std::int64_t stand_in(std::int64_t epoch, std::int64_t position,
                                std::uint64_t bits) const;
  /// As in "an epoch has 10 samples, shuffled".
  virtual std::string describe() const = 0;
};
using OrderPtr = std::shared_ptr<const Order>;

/// The samples one after another, as the source has them.
OrderPtr source_order(std::int64_t size);
/// All samples in an order drawn anew in each epoch (a Permutation). Nothing is stored.
OrderPtr shuffled_order(std::int64_t size, std::uint64_t seed);
/// The same within windows of `window` positions, which follow one another: no sample moves further
/// than a window, so that reading stays nearly sequential. Where windows begin is drawn anew in each
/// epoch. A window of `size` or more is a full shuffle. Errors: invalid for a window below 1.
OrderPtr windowed_order(std::int64_t size, std::int64_t window, std::uint64_t seed);
/// `length` samples, each drawn from all alike, so that some come twice and others not at all.
/// Errors: invalid when there are none to draw from.
OrderPtr drawn_order(std::int64_t size, std::int64_t length, std::uint64_t seed);
/// `length` samples, sample i drawn with probability weights[i] / sum(weights), f64 sums from the
/// first to the last. Takes 10 bytes of memory a sample.
/// Errors: invalid for a weight that is negative or not finite, or when none is above 0.
OrderPtr weighted_order(std::vector<double> weights, std::int64_t length, std::uint64_t seed);
/// `order` over the numbers of `members`, as samples.
OrderPtr order_of_members(OrderPtr order, MembersPtr members);
/// Positions begin..end-1 of `order`. Errors: invalid for those that it has not.
OrderPtr order_of_positions(OrderPtr order, std::int64_t begin, std::int64_t end);

}  // namespace forebay
