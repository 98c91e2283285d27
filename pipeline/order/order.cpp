#include <forebay/pipeline/order/order.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <forebay/array/require.h>
#include <forebay/pipeline/order/permutation.h>
#include <forebay/pipeline/order/random.h>

namespace forebay {

std::int64_t Order::stand_in(std::int64_t epoch, std::int64_t, std::uint64_t bits) const {
  std::int64_t sample = 0;
  samples(epoch, below(length(), bits), {&sample, 1});
  return sample;
}

namespace {

class SourceOrder final : public Order {
 public:
  explicit SourceOrder(std::int64_t size) : size_(size) {}
  std::int64_t length() const override { return size_; }
  std::string describe() const override { return "as the source has them"; }
  void samples(std::int64_t, std::int64_t first, std::span<std::int64_t> indices) const override {
    std::iota(indices.begin(), indices.end(), first);
  }

 private:
  std::int64_t size_;
};

class ShuffledOrder final : public Order {
 public:
  ShuffledOrder(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}
  std::int64_t length() const override { return size_; }
  std::string describe() const override { return "shuffled"; }
  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    const Permutation permutation(size_, seed_, epoch);
    for (std::int64_t& index : indices)
      index = permutation(first++);
  }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
};

/// Window k of an epoch is the positions k * window - shift and on, cut to 0..size-1.
class WindowedOrder final : public Order {
 public:
  WindowedOrder(std::int64_t size, std::int64_t window, std::uint64_t seed)
      : size_(size), window_(window), seed_(seed) {}
  std::int64_t length() const override { return size_; }
  std::string describe() const override {
    return fmt::format("shuffled in windows of {}", window_);
  }
  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    const std::int64_t shift =
        window_ < size_ ? below(window_, random_bits(seed_, Use::window, epoch, 0)) : 0;
    std::int64_t begin = 0, end = 0;
    std::optional<Permutation> permutation;
    for (std::int64_t& index : indices) {
      if (first >= end || !permutation) {
        const std::int64_t number = (first + shift) / window_;
        begin = std::max<std::int64_t>(number * window_ - shift, 0);
        end = std::min((number + 1) * window_ - shift, size_);
        permutation.emplace(end - begin, seed_, epoch, number + 1);
      }
      index = begin + (*permutation)(first++ - begin);
    }
  }

 private:
  std::int64_t size_, window_;
  std::uint64_t seed_;
};

class DrawnOrder final : public Order {
 public:
  DrawnOrder(std::int64_t size, std::int64_t length, std::uint64_t seed)
      : size_(size), length_(length), seed_(seed) {}
  std::int64_t length() const override { return length_; }
  std::string describe() const override { return "drawn with replacement"; }
  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    for (std::int64_t& index : indices)
      index = below(size_, random_bits(seed_, Use::draw, first++, epoch));
  }

 private:
  std::int64_t size_, length_;
  std::uint64_t seed_;
};

class WeightedOrder final : public Order {
 public:
  /// `sums` does not fall, and ends above 0.
  WeightedOrder(std::vector<double> sums, std::int64_t length, std::uint64_t seed)
      : sums_(std::move(sums)),
        total_(sums_.back()),
        last_(std::lower_bound(sums_.begin(), sums_.end(), total_)),
        length_(length),
        seed_(seed) {
    const std::size_t parts = sums_.size() / 4 + 1;
    auto begin = sums_.cbegin();
    for (std::size_t part = 0; part < parts; ++part) {
      const double border = static_cast<double>(part) / static_cast<double>(parts) * total_;
      begin = std::find_if(begin, last_, [&](double sum) { return sum > border; });
      begins_.push_back(begin - sums_.cbegin());
    }
    begins_.push_back(last_ - sums_.cbegin());
  }
  std::int64_t length() const override { return length_; }
  std::string describe() const override { return "drawn by weight"; }
  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    for (std::int64_t& index : indices) {
      const std::uint64_t bits = random_bits(seed_, Use::draw, first++, epoch);
      index = find(static_cast<double>(bits >> 11) * 0x1p-53);
    }
  }

 private:
  /// The first sum above `share` of the total, looked for where that part of the total begins.
  std::int64_t find(double share) const {
    const double at = share * total_;
    const std::size_t parts = begins_.size() - 1;
    const auto part =
        std::min(static_cast<std::size_t>(share * static_cast<double>(parts)), parts - 1);
    auto begin = sums_.cbegin() + begins_[part], end = sums_.cbegin() + begins_[part + 1];
    // Borders are rounded, as `at` is.
    while (begin != sums_.cbegin() && *(begin - 1) > at)
      --begin;
    while (end != last_ && *end <= at)
      ++end;
    return std::upper_bound(begin, end, at) - sums_.cbegin();
  }

  std::vector<double> sums_;
  double total_;
  std::vector<double>::const_iterator last_;  // the first sum that is the total
  std::vector<std::int64_t> begins_;  // of equal parts of the total: the sample each begins in
  std::int64_t length_;
  std::uint64_t seed_;
};

class OrderOfMembers final : public Order {
 public:
  OrderOfMembers(OrderPtr order, MembersPtr members)
      : order_(std::move(order)), members_(std::move(members)) {}
  std::int64_t length() const override { return order_->length(); }
  std::string describe() const override {
    return order_->describe() + ", of " + members_->describe();
  }
  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    order_->samples(epoch, first, indices);
    members_->to_samples(indices);
  }

 private:
  OrderPtr order_;
  MembersPtr members_;
};

class OrderOfPositions final : public Order {
 public:
  OrderOfPositions(OrderPtr order, std::int64_t begin, std::int64_t end)
      : order_(std::move(order)), begin_(begin), end_(end) {}
  std::int64_t length() const override { return end_ - begin_; }
  std::string describe() const override {
    return fmt::format("{}, positions {} to {}", order_->describe(), begin_, end_ - 1);
  }
  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    order_->samples(epoch, begin_ + first, indices);
  }

 private:
  OrderPtr order_;
  std::int64_t begin_, end_;
};

}  // namespace

OrderPtr source_order(std::int64_t size) { return std::make_shared<SourceOrder>(size); }

OrderPtr shuffled_order(std::int64_t size, std::uint64_t seed) {
  return std::make_shared<ShuffledOrder>(size, seed);
}

OrderPtr windowed_order(std::int64_t size, std::int64_t window, std::uint64_t seed) {
  FOREBAY_REQUIRE(window >= 1, invalid, "`window` is {}; it must be at least 1.", window);
  return std::make_shared<WindowedOrder>(size, window, seed);
}

OrderPtr drawn_order(std::int64_t size, std::int64_t length, std::uint64_t seed) {
  FOREBAY_REQUIRE(size > 0 || length == 0, invalid,
                  "{} samples are to be drawn, but there are none to draw from.", length);
  return std::make_shared<DrawnOrder>(size, length, seed);
}

OrderPtr weighted_order(std::vector<double> weights, std::int64_t length, std::uint64_t seed) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    FOREBAY_REQUIRE(std::isfinite(weights[i]) && weights[i] >= 0, invalid,
                    "weight {} is {}; it must be a finite number of at least 0.", i, weights[i]);
    weights[i] = sum += weights[i];
  }
  FOREBAY_REQUIRE(sum > 0 && std::isfinite(sum), invalid,
                  "the sum of the {} weights is {}; it must be above 0 and finite.", weights.size(),
                  sum);
  return std::make_shared<WeightedOrder>(std::move(weights), length, seed);
}

OrderPtr order_of_members(OrderPtr order, MembersPtr members) {
  return std::make_shared<OrderOfMembers>(std::move(order), std::move(members));
}

OrderPtr order_of_positions(OrderPtr order, std::int64_t begin, std::int64_t end) {
  FOREBAY_REQUIRE(begin >= 0 && begin <= end && end <= order->length(), invalid,
                  "there are no positions {} to {} among {}.", begin, end - 1, order->length());
  return std::make_shared<OrderOfPositions>(std::move(order), begin, end);
}

}  // namespace forebay
