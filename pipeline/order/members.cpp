#include <forebay/pipeline/order/members.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/pipeline/hash.h>
#include <forebay/pipeline/mistakes.h>
#include <forebay/pipeline/order/random.h>
#include <forebay/pipeline/source.h>
#include <forebay/pipeline/source/columns.h>

namespace forebay {
namespace {

class Subset final : public Members {
 public:
  explicit Subset(std::vector<std::int64_t> samples) : samples_(std::move(samples)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  std::string describe() const override { return fmt::format("a subset of {}", size()); }
  void to_samples(std::span<std::int64_t> numbers) const override {
    for (std::int64_t& number : numbers)
      number = samples_[static_cast<std::size_t>(number)];
  }

 private:
  std::vector<std::int64_t> samples_;
};

using IndexTypes = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                         std::int16_t, std::int32_t, std::int64_t>;

std::string part_text(const Split& split) {
  return fmt::format("the {} part, {}{}", split.part == SplitPart::train ? "train" : "validation",
                     split.part == SplitPart::train ? 1 - split.validation : split.validation,
                     split.by.empty() ? "" : fmt::format(" by `{}`", split.by));
}

void check_share(const Split& split) {
  FOREBAY_REQUIRE(split.validation > 0 && split.validation < 1, invalid,
                  "`validation` is {}; it must be above 0 and below 1.", split.validation);
}

/// Runs of 1 / share samples, `share` that of the smaller part: one of each is drawn for it. All
/// but the draw is arithmetic, so that the other part is enumerated as fast.
class Strata final : public Members {
 public:
  Strata(const Split& split, std::int64_t size)
      : text_(part_text(split)),
        seed_(split.seed),
        share_(std::min(split.validation, 1 - split.validation)),
        drawn_((split.part == SplitPart::validation) == (split.validation <= 0.5)) {
    auto strata = static_cast<std::int64_t>(static_cast<double>(size) * share_);
    while (begin(strata) > size)
      --strata;
    while (begin(strata + 1) <= size)
      ++strata;
    const bool one_more = begin(strata) < size && draw(strata) < size;
    const std::int64_t drawn = strata + (one_more ? 1 : 0);
    size_ = drawn_ ? drawn : size - drawn;
  }
  std::int64_t size() const override { return size_; }
  std::string describe() const override { return text_; }
  void to_samples(std::span<std::int64_t> numbers) const override {
    for (std::int64_t& number : numbers)
      number = drawn_ ? draw(number) : rest(number);
  }

 private:
  std::int64_t begin(std::int64_t stratum) const {
    return static_cast<std::int64_t>(static_cast<double>(stratum) / share_);
  }
  std::int64_t draw(std::int64_t stratum) const {
    const std::int64_t first = begin(stratum);
    return first + below(begin(stratum + 1) - first, random_bits(seed_, Use::split, stratum, 0));
  }
  /// Before stratum k lie begin(k) - k samples that are not drawn.
  std::int64_t rest(std::int64_t number) const {
    auto stratum = static_cast<std::int64_t>(static_cast<double>(number) * share_ / (1 - share_));
    while (begin(stratum) - stratum > number)
      --stratum;
    while (begin(stratum + 1) - (stratum + 1) <= number)
      ++stratum;
    const std::int64_t sample = number + stratum;
    return sample < draw(stratum) ? sample : sample + 1;
  }

  std::string text_;
  std::uint64_t seed_;
  double share_;
  bool drawn_;  // the part is the drawn one
  std::int64_t size_ = 0;
};

/// A bit for each sample that takes part, and how many there are before each block of bits.
class Marked final : public Members {
 public:
  Marked(std::string text, std::vector<std::uint64_t> bits)
      : text_(std::move(text)), bits_(std::move(bits)) {
    for (std::size_t word = 0; word < bits_.size(); ++word) {
      if (word % kBlock == 0) before_.push_back(size_);
      size_ += std::popcount(bits_[word]);
    }
  }
  std::int64_t size() const override { return size_; }
  std::string describe() const override { return text_; }
  void to_samples(std::span<std::int64_t> numbers) const override {
    for (std::int64_t& number : numbers)
      number = find(number);
  }

 private:
  static constexpr std::size_t kBlock = 8;  // words

  std::int64_t find(std::int64_t number) const {
    const auto block = std::upper_bound(before_.begin(), before_.end(), number) - 1;
    std::int64_t left = number - *block;
    auto word = static_cast<std::size_t>(block - before_.begin()) * kBlock;
    for (; left >= std::popcount(bits_[word]); ++word)
      left -= std::popcount(bits_[word]);
    std::uint64_t bits = bits_[word];
    for (; left > 0; --left)
      bits &= bits - 1;  // without its lowest bit
    return static_cast<std::int64_t>(word) * 64 + std::countr_zero(bits);
  }

  std::string text_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::int64_t> before_;
  std::int64_t size_ = 0;
};

int key_column(const Source& source, const std::string& name) {
  const int column = find_column(source.columns(), name);
  FOREBAY_REQUIRE(column >= 0, invalid, "`by` is {}; it must be a column of the source: {}.", name,
                  quoted(names_of(source.columns())));
  return column;
}

class MembersOfMembers final : public Members {
 public:
  MembersOfMembers(MembersPtr inner, MembersPtr outer)
      : inner_(std::move(inner)), outer_(std::move(outer)) {}
  std::int64_t size() const override { return inner_->size(); }
  std::string describe() const override {
    return inner_->describe() + ", of " + outer_->describe();
  }
  void to_samples(std::span<std::int64_t> numbers) const override {
    inner_->to_samples(numbers);
    outer_->to_samples(numbers);
  }

 private:
  MembersPtr inner_, outer_;
};

class JoinedMembers final : public Members {
 public:
  explicit JoinedMembers(std::vector<std::pair<MembersPtr, std::int64_t>> parts)
      : parts_(std::move(parts)) {
    for (const auto& [members, first] : parts_) {
      begins_.push_back(size_);
      size_ += members->size();
    }
  }
  std::int64_t size() const override { return size_; }
  std::string describe() const override {
    std::string text;
    for (const auto& [members, first] : parts_) {
      const std::string one = members->describe();
      if (text.find(one) == std::string::npos) text += (text.empty() ? "" : " and ") + one;
    }
    return text;
  }
  void to_samples(std::span<std::int64_t> numbers) const override {
    for (std::int64_t& number : numbers) {
      const auto behind = std::upper_bound(begins_.begin(), begins_.end(), number);
      const auto part = static_cast<std::size_t>(behind - begins_.begin()) - 1;
      number -= begins_[part];
      parts_[part].first->to_samples({&number, 1});
      number += parts_[part].second;
    }
  }

 private:
  std::vector<std::pair<MembersPtr, std::int64_t>> parts_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0;
};

}  // namespace

MembersPtr subset(const Array& indices, std::int64_t size) {
  return subset(indices, size, {0, size});
}

MembersPtr subset(const Array& indices, std::int64_t size, const SampleRange& range) {
  FOREBAY_REQUIRE(indices.rank() == 1 && is_integer(indices.dtype()), invalid,
                  "it is {} {}; it must be integers of shape (count,).", name_of(indices.dtype()),
                  to_string(indices.shape()));
  std::vector<std::int64_t> samples;
  dispatch(IndexTypes{}, indices.dtype(), "subset", "indices", [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < indices.count(); ++i) {
      const T index = indices.as<T>()[i * indices.strides()[0]];
      const auto sample = static_cast<std::int64_t>(index);
      FOREBAY_REQUIRE(sample >= 0 && sample < size, invalid,
                      "index {} is {}; the source has {} samples, so it must be in 0..{}.", i,
                      sample, size, size - 1);
      if (sample >= range.begin && sample < range.end) samples.push_back(sample - range.begin);
    }
  });
  return std::make_shared<Subset>(std::move(samples));
}

MembersPtr split_part(const Split& split, std::int64_t size) {
  check_share(split);
  return std::make_shared<Strata>(split, size);
}

MembersPtr split_part(const Split& split, const Source& source, const Members* within) {
  check_share(split);
  const int column = key_column(source, split.by);
  const Column& key = source.columns()[static_cast<std::size_t>(column)];
  const std::size_t bytes = sample_bytes(key);
  const std::int64_t size = within != nullptr ? within->size() : source.size();
  const auto threshold = static_cast<std::uint64_t>(split.validation * 0x1p64);
  const bool validation = split.part == SplitPart::validation;
  std::vector<std::uint64_t> bits(static_cast<std::size_t>((size + 63) / 64));
  const std::int64_t block = 64 * grain_of({key});
  std::vector<std::int64_t> samples;
  std::vector<std::byte> keys;
  for (std::int64_t first = 0; first < size; first += block) {
    const std::int64_t count = std::min(block, size - first);
    samples.resize(static_cast<std::size_t>(count));
    std::iota(samples.begin(), samples.end(), first);
    if (within != nullptr) within->to_samples(samples);
    keys.resize(samples.size() * bytes);
    source.read_column(column, samples, samples_at(keys.data(), key, count));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const bool drawn = hash_bytes({keys.data() + i * bytes, bytes}, split.seed) < threshold;
      const auto number = static_cast<std::size_t>(first) + i;
      if (drawn == validation) bits[number / 64] |= std::uint64_t{1} << number % 64;
    }
  }
  return std::make_shared<Marked>(part_text(split), std::move(bits));
}

MembersPtr members_of_members(MembersPtr inner, MembersPtr outer) {
  return std::make_shared<MembersOfMembers>(std::move(inner), std::move(outer));
}

MembersPtr joined_members(std::vector<std::pair<MembersPtr, std::int64_t>> parts) {
  if (parts.size() == 1 && parts.front().second == 0) return parts.front().first;
  return std::make_shared<JoinedMembers>(std::move(parts));
}

}  // namespace forebay
