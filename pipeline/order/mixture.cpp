#include <forebay/pipeline/order/mixture.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include <forebay/array/require.h>

namespace forebay {
namespace {

/// Integers in the proportions given, with a sum below 2^62.
std::vector<std::uint64_t> weights_of(std::span<const double> proportions) {
  FOREBAY_REQUIRE(!proportions.empty(), invalid, "a mix of no sources is asked for; give one.");
  double most = 0;
  for (const double proportion : proportions) {
    FOREBAY_REQUIRE(std::isfinite(proportion) && proportion > 0, invalid,
                    "a proportion is {}; it must be a finite number above 0.", proportion);
    most = std::max(most, proportion);
  }
  // A power of two changes no proportion.
  const int spare = std::ilogb(static_cast<double>(proportions.size())) + 1;
  const int exponent = 60 - std::ilogb(most) - spare;
  std::vector<std::uint64_t> weights;
  for (const double proportion : proportions)
    weights.push_back(static_cast<std::uint64_t>(std::max(std::ldexp(proportion, exponent), 1.0)));
  return weights;
}

/// The least number of draws that `reaches`, or one more than there are. More draws reach more.
template <class F>
std::int64_t fewest(F reaches) {
  std::int64_t low = 0, high = Mixture::kMostDraws + 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (reaches(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

Mixture::Mixture(std::span<const double> proportions)
    : weights_(weights_of(proportions)), total_(std::reduce(weights_.begin(), weights_.end())) {
  // The lightest first. Of equals sources before nodes, the last source first, so that the first
  // one becomes the left child, which is drawn first.
  struct Item {
    std::uint64_t weight;
    std::size_t number;
    int child;
    bool operator<(const Item& other) const {
      return std::pair(weight, number) > std::pair(other.weight, other.number);
    }
  };
  std::priority_queue<Item> items;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    items.push({weights_[i], weights_.size() - i, ~static_cast<int>(i)});
  const auto pop = [&] {
    const Item item = items.top();
    items.pop();
    return item;
  };
  while (items.size() > 1) {
    const Item light = pop(), heavy = pop();
    const std::uint64_t weight = light.weight + heavy.weight;
    items.push({weight, weights_.size() + 1 + nodes_.size(), static_cast<int>(nodes_.size())});
    nodes_.push_back({weight, heavy.weight, heavy.child, light.child});
  }
  root_ = items.top().child;
}

Mixture::Split Mixture::split(const Node& node, std::int64_t m) {
  using Wide = unsigned __int128;
  const Wide rounded = Wide{2} * static_cast<std::uint64_t>(m) * node.left_weight + node.weight;
  const Wide divisor = Wide{2} * node.weight;
  const Wide left = rounded / divisor, rest = rounded - left * divisor;
  return {static_cast<std::int64_t>(left), rest + Wide{2} * node.left_weight >= divisor};
}

Mixture::Draw Mixture::draw(std::int64_t number) const {
  int child = root_;
  while (child >= 0) {
    const Node& node = nodes_[static_cast<std::size_t>(child)];
    const Split at = split(node, number);
    child = at.next_is_left ? node.left : node.right;
    number = at.next_is_left ? at.left : number - at.left;
  }
  return {~child, number};
}

std::vector<std::int64_t> Mixture::counts(std::int64_t draws) const {
  std::vector<std::int64_t> of_sources(weights_.size());
  std::vector<std::int64_t> of_nodes(nodes_.size());
  const auto of = [&](int child) -> std::int64_t& {
    return child >= 0 ? of_nodes[static_cast<std::size_t>(child)]
                      : of_sources[static_cast<std::size_t>(~child)];
  };
  of(root_) = draws;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const std::int64_t left = split(nodes_[i], of_nodes[i]).left;
    of(nodes_[i].left) = left;
    of(nodes_[i].right) = of_nodes[i] - left;
  }
  return of_sources;
}

/// Whether the share of `draws` that a source has is less than `size` (-1), as many (0) or more (1),
/// to 2^-16 of a sample: 0.7 and 0.3 of 100 are 70 and 30.
int Mixture::compare_share(std::size_t source, std::int64_t draws, std::int64_t size) const {
  using Wide = unsigned __int128;
  const Wide share = Wide{weights_[source]} * static_cast<std::uint64_t>(draws);
  const Wide wanted = Wide{total_} * static_cast<std::uint64_t>(size), nearly = total_ >> 16;
  return share > wanted + nearly ? 1 : share + nearly < wanted ? -1 : 0;
}

std::int64_t Mixture::until_first_exhausted(std::span<const std::int64_t> sizes) const {
  const auto exceeds = [&](std::int64_t draws) {
    const std::vector<std::int64_t> drawn = counts(draws);
    for (std::size_t s = 0; s < drawn.size(); ++s) {
      if (drawn[s] > sizes[s] || compare_share(s, draws, sizes[s]) > 0) return true;
    }
    return false;
  };
  return fewest(exceeds) - 1;
}

std::int64_t Mixture::until_all_exhausted(std::span<const std::int64_t> sizes) const {
  const auto has_all = [&](std::int64_t draws) {
    const std::vector<std::int64_t> drawn = counts(draws);
    for (std::size_t s = 0; s < drawn.size(); ++s) {
      if (drawn[s] < sizes[s] || compare_share(s, draws, sizes[s]) < 0) return false;
    }
    return true;
  };
  const std::int64_t draws = fewest(has_all);
  FOREBAY_REQUIRE(draws <= kMostDraws, invalid,
                  "to go through every source takes more than 2^62 samples; give a number of "
                  "`samples`, or other proportions.");
  return draws;
}

namespace {

class MixedOrder final : public Order {
 public:
  MixedOrder(std::vector<MixPart> parts, std::int64_t length, Mixture mixture)
      : parts_(std::move(parts)), length_(length), mixture_(std::move(mixture)) {}

  std::int64_t length() const override { return length_; }

  std::string describe() const override {
    double sum = 0;
    for (const MixPart& part : parts_)
      sum += part.proportion;
    std::string text;
    for (const MixPart& part : parts_) {
      const double share = part.proportion / sum;
      const double passes =
          share * static_cast<double>(length_) / static_cast<double>(part.order->length());
      text += fmt::format("{}{:.4g} from {} ({}; {:.3g} passes an epoch)",
                          text.empty() ? "mixed: " : ", ", share, part.name, part.order->describe(),
                          passes);
    }
    return text;
  }

  void samples(std::int64_t epoch, std::int64_t first,
               std::span<std::int64_t> indices) const override {
    const std::int64_t start = first_draw(epoch) + first;
    // The draws of each source follow one another, so that its order is asked once a pass.
    std::vector<Run> runs(parts_.size());
    std::vector<int> sources(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto [source, number] = mixture_.draw(start + static_cast<std::int64_t>(i));
      Run& run = runs[static_cast<std::size_t>(source)];
      if (run.count++ == 0) run.first = number;
      sources[i] = source;
    }
    std::vector<std::int64_t> drawn(indices.size());
    std::size_t begin = 0;
    for (std::size_t s = 0; s < runs.size(); ++s) {
      read(parts_[s], runs[s].first, {drawn.data() + begin, runs[s].count});
      runs[s].next = begin;
      begin += runs[s].count;
    }
    for (std::size_t i = 0; i < indices.size(); ++i)
      indices[i] = drawn[runs[static_cast<std::size_t>(sources[i])].next++];
  }

  std::int64_t stand_in(std::int64_t epoch, std::int64_t position,
                        std::uint64_t bits) const override {
    const auto [source, number] = mixture_.draw(first_draw(epoch) + position);
    const MixPart& part = parts_[static_cast<std::size_t>(source)];
    const std::int64_t size = part.order->length();
    return part.first + part.order->stand_in(number / size, number % size, bits);
  }

 private:
  /// Draws of one source.
  struct Run {
    std::int64_t first = 0;
    std::size_t count = 0, next = 0;
  };

  std::int64_t first_draw(std::int64_t epoch) const {
    std::int64_t draws = 0;
    const bool overflows = __builtin_mul_overflow(epoch, length_, &draws);
    FOREBAY_REQUIRE(!overflows && draws <= Mixture::kMostDraws - length_, invalid,
                    "epoch {} of a mix with epochs of {} samples is behind sample 2^62 of it.",
                    epoch, length_);
    return draws;
  }

  /// The draws of a part from number `first` on.
  static void read(const MixPart& part, std::int64_t first, std::span<std::int64_t> samples) {
    while (!samples.empty()) {
      const std::int64_t size = part.order->length(), pass = first / size, at = first % size;
      const auto count = std::min(samples.size(), static_cast<std::size_t>(size - at));
      part.order->samples(pass, at, samples.first(count));
      for (std::int64_t& sample : samples.first(count))
        sample += part.first;
      samples = samples.subspan(count);
      first += static_cast<std::int64_t>(count);
    }
  }

  std::vector<MixPart> parts_;
  std::int64_t length_;
  Mixture mixture_;
};

}  // namespace

OrderPtr mixed_order(std::vector<MixPart> parts, std::int64_t length) {
  FOREBAY_REQUIRE(length >= 0 && length <= Mixture::kMostDraws, invalid,
                  "an epoch of {} samples is asked for; it must be between 0 and 2^62.", length);
  std::vector<double> proportions;
  for (const MixPart& part : parts) {
    FOREBAY_REQUIRE(part.order->length() > 0, invalid,
                    "source `{}` has no samples to mix in; make its proportion 0.", part.name);
    proportions.push_back(part.proportion);
  }
  Mixture mixture(proportions);
  return std::make_shared<MixedOrder>(std::move(parts), length, std::move(mixture));
}

}  // namespace forebay
