#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forebay/pipeline/order/order.h>

namespace forebay {

/// An endless sequence of draws from several sources in stated proportions, computed, not stored:
/// number -> which source, and how many of its draws came before. Nothing is random in it: among
/// the first n draws, for every n, a source has its share of n to less than 2, with three sources
/// to less than 1, and with two to 1/2 at most.
///
/// The sources are the leaves of a Huffman tree. Of the first m draws of a node with weight w its
/// left child, of weight v, has floor(m v / w + 1/2). A node that is further off by e than its
/// share hands on at most e times its child's part of its weight, which in a Huffman tree is at
/// most 2/3 for all but leaves.
class Mixture {
 public:
  struct Draw {
    int source;
    std::int64_t number;  ///< among the draws of that source, from 0
  };
  static constexpr std::int64_t kMostDraws = std::int64_t{1} << 62;

  /// `proportions`: finite and above 0; they need no sum of 1. They are held to 2^-53 of their sum,
  /// small integers exactly. Errors: invalid.
  explicit Mixture(std::span<const double> proportions);
  /// 0 <= number < kMostDraws.
  Draw draw(std::int64_t number) const;
  /// Of the first `draws`, how many are of each source.
  std::vector<std::int64_t> counts(std::int64_t draws) const;
  /// The most draws of which no source of `sizes` samples has, or has a share of, more than those.
  std::int64_t until_first_exhausted(std::span<const std::int64_t> sizes) const;
  /// The fewest draws that have all samples of every source, and of which its share is as many.
  /// Errors: invalid when these are more than kMostDraws.
  std::int64_t until_all_exhausted(std::span<const std::int64_t> sizes) const;

 private:
  struct Node {
    std::uint64_t weight, left_weight;
    int left, right;  ///< nodes, or leaves as ~source
  };
  struct Split {
    std::int64_t left;  ///< of the first m draws
    bool next_is_left;
  };
  static Split split(const Node& node, std::int64_t m);
  int compare_share(std::size_t source, std::int64_t draws, std::int64_t size) const;

  std::vector<std::uint64_t> weights_;  // of the sources
  std::uint64_t total_;
  std::vector<Node> nodes_;  // children before their parents
  int root_;                 // as a child
};

/// One source of a mix.
struct MixPart {
  std::string name;
  OrderPtr order;          ///< of its samples; its epochs are the passes over the source
  std::int64_t first = 0;  ///< added to its samples
  double proportion = 0;
};

/// Epochs of `length` draws of the Mixture of `parts`, one behind the other: position i of epoch e
/// is draw e * length + i. The draws of each part go through pass after pass of its order, across
/// epochs: each of its samples comes once before one comes again.
/// Errors: invalid for a negative length, an order without samples, and as Mixture; from `samples`
/// for an epoch behind draw kMostDraws.
OrderPtr mixed_order(std::vector<MixPart> parts, std::int64_t length);

}  // namespace forebay
