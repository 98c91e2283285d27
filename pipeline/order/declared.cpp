#include <forebay/pipeline/order/declared.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/order/mixture.h>
#include <forebay/pipeline/order/random.h>

namespace forebay {
namespace {

bool is_given(const Array& array) { return array.owner() != nullptr; }

void require_on_host(const Array& array, const char* name) {
  FOREBAY_REQUIRE(!array.device().is_cuda(), invalid, "`{}` is on {}; it must be on cpu.", name,
                  to_string(array.device()));
}

using WeightTypes = Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                          std::int8_t, std::int16_t, std::int32_t, std::int64_t, float, double>;

/// The weights of all `size` samples of the source.
std::vector<double> read_weights(const Array& array, std::int64_t size) {
  require_on_host(array, "weights");
  FOREBAY_REQUIRE(array.rank() == 1 && array.count() == size, invalid,
                  "`weights` have the shape {}; it must be {}, one for each sample.",
                  to_string(array.shape()), to_string(Dims(size)));
  std::vector<double> weights(static_cast<std::size_t>(size));
  dispatch(WeightTypes{}, array.dtype(), "sampling", "weights", [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < size; ++i)
      weights[static_cast<std::size_t>(i)] =
          static_cast<double>(array.as<T>()[i * array.strides()[0]]);
  });
  return weights;
}

class Declaration {
 public:
  Declaration(const Spec& spec, Mistakes& mistakes) : spec_(spec), mistakes_(mistakes) {
    for (const SourcePart& part : spec.source->parts())
      parts_.push_back({part.name, part.source.get(), part.first, nullptr});
    if (parts_.empty()) parts_.push_back({"", spec.source.get(), 0, nullptr});
  }

  OrderPtr order() {
    bool right = attempt("subset", spec_.subset_position, [&] { add_subset(); });
    right = right && attempt("split", spec_.split_position, [&] { add_split(); });
    right &= attempt("sampling", spec_.sampling_position, [&] { check_sampling(); });
    right &= attempt("shuffle", spec_.shuffle_position, [&] { check_shuffle(); });
    OrderPtr result;
    right = right && attempt("sampling", spec_.sampling_position, [&] { result = sampled(); });
    if (!right) return nullptr;
    right = attempt("positions", spec_.position, [&] {
      if (const auto& given = spec_.positions)
        result = order_of_positions(std::move(result), given->begin, given->end);
    });
    return right ? result : nullptr;
  }

 private:
  /// A source, alone or one of several.
  struct Part {
    std::string name;
    const Source* source;
    std::int64_t first;
    MembersPtr members;  // null: all of its samples
    std::int64_t size() const { return members ? members->size() : source->size(); }
  };

  template <class F>
  bool attempt(const char* title, const Position& position, F&& body) {
    try {
      body();
      return true;
    } catch (const Error& error) {
      mistakes_.add(Mistakes::kSettings, position.file.empty() ? spec_.position : position,
                    fmt::format("{}: {}", title, error.what()));
      return false;
    }
  }

  std::int64_t size() const { return members_ ? members_->size() : spec_.source->size(); }

  void add_subset() {
    if (!spec_.subset) return;
    require_on_host(*spec_.subset, "subset");
    const std::int64_t size = spec_.source->size();
    members_ = subset(*spec_.subset, size);
    for (Part& part : parts_) {
      const bool whole = part.source->size() == size;
      const SampleRange range{part.first, part.first + part.source->size()};
      part.members = whole ? members_ : subset(*spec_.subset, size, range);
    }
  }

  /// Each source by itself: so it has the same parts wherever else it is used.
  void add_split() {
    if (!spec_.split) return;
    const bool by_key = !spec_.split->by.empty();
    std::vector<std::pair<MembersPtr, std::int64_t>> parts;
    for (Part& part : parts_) {
      const MembersPtr all = std::move(part.members);
      part.members = by_key ? split_part(*spec_.split, *part.source, all.get())
                            : split_part(*spec_.split, all ? all->size() : part.source->size());
      if (all != nullptr) part.members = members_of_members(part.members, all);
      parts.emplace_back(part.members, part.first);
    }
    members_ = joined_members(std::move(parts));
    FOREBAY_REQUIRE(members_->size() > 0 || spec_.source->size() == 0, invalid,
                    "no sample is in {}; take another `validation`{}.", members_->describe(),
                    by_key ? " or `seed`, as there are few keys" : "");
  }

  void check_sampling() const {
    const Sampling& sampling = spec_.sampling;
    const bool mix = sampling.mode == SamplingMode::mix;
    const bool weights = is_given(sampling.weights);
    FOREBAY_REQUIRE(sampling.mode != SamplingMode::once || (sampling.samples == 0 && !weights),
                    invalid,
                    "mode once has no `samples` and no `weights`; make it replacement or "
                    "weighted, or leave them out.");
    FOREBAY_REQUIRE(sampling.samples >= 0, invalid, "`samples` is {}; it must be at least 1.",
                    sampling.samples);
    FOREBAY_REQUIRE(sampling.mode == SamplingMode::weighted || !weights, invalid,
                    "`weights` are for mode weighted; leave them out.");
    FOREBAY_REQUIRE(mix || sampling.proportions.empty(), invalid,
                    "`proportions` are for mode mix; leave them out.");
    FOREBAY_REQUIRE(mix || sampling.stopping == StoppingStrategy::samples, invalid,
                    "`samples` is {}, which is for mode mix; give a number.", stopping());
    FOREBAY_REQUIRE(sampling.stopping == StoppingStrategy::samples || sampling.samples == 0,
                    invalid, "`samples` is {}, but an epoch ends at {}; leave one of them out.",
                    sampling.samples, stopping());
  }

  std::string_view stopping() const {
    const auto strategy = spec_.sampling.stopping;
    return strategy == StoppingStrategy::samples
               ? "samples"
               : config::kStoppingStrategies[static_cast<int>(strategy) - 1];
  }

  void check_shuffle() const {
    FOREBAY_REQUIRE(spec_.shuffle == ShuffleMode::window || spec_.shuffle_window == 0, invalid,
                    "`window` is {}, but only mode window has one; leave it out.",
                    spec_.shuffle_window);
    FOREBAY_REQUIRE(spec_.shuffle != ShuffleMode::window || spec_.shuffle_window >= 1, invalid,
                    "`window` is {}; it must be at least 1.", spec_.shuffle_window);
  }

  OrderPtr sampled() const {
    const SamplingMode mode = spec_.sampling.mode;
    if (mode == SamplingMode::mix) return mixed();
    OrderPtr order = mode == SamplingMode::once ? shuffled(size(), spec_.seed) : drawn();
    return members_ == nullptr ? order : order_of_members(std::move(order), members_);
  }

  OrderPtr shuffled(std::int64_t size, std::uint64_t seed) const {
    switch (spec_.shuffle) {
      case ShuffleMode::full:
        return shuffled_order(size, seed);
      case ShuffleMode::window:
        return windowed_order(size, spec_.shuffle_window, seed);
      default:
        return source_order(size);
    }
  }

  OrderPtr mixed() const {
    FOREBAY_REQUIRE(!spec_.source->parts().empty(), invalid,
                    "mode mix draws from several sources, but there is one; make it one of type "
                    "concat.");
    const std::vector<double> proportions = proportions_of_parts();
    std::vector<MixPart> parts;
    std::vector<double> shares;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (proportions[i] == 0) continue;
      const Part& part = parts_[i];
      const auto number = static_cast<std::int64_t>(i);
      OrderPtr order = shuffled(part.size(), random_bits(spec_.seed, Use::mix, number, 0));
      if (part.members != nullptr) order = order_of_members(std::move(order), part.members);
      parts.push_back({part.name, std::move(order), part.first, proportions[i]});
      shares.push_back(proportions[i]);
      sizes.push_back(part.size());
    }
    FOREBAY_REQUIRE(!parts.empty(), invalid, "no proportion is above 0; make one.");
    return mixed_order(std::move(parts), length_of_mix(Mixture(shares), sizes));
  }

  std::int64_t length_of_mix(const Mixture& mixture, const std::vector<std::int64_t>& sizes) const {
    const Sampling& sampling = spec_.sampling;
    if (sampling.stopping == StoppingStrategy::samples)
      return sampling.samples != 0 ? sampling.samples : size();
    return sampling.stopping == StoppingStrategy::first_exhausted
               ? mixture.until_first_exhausted(sizes)
               : mixture.until_all_exhausted(sizes);
  }

  /// As they are given, by name.
  std::vector<double> proportions_of_parts() const {
    std::vector<std::string> names;
    for (const Part& part : parts_)
      names.push_back(part.name);
    std::vector<double> proportions(names.size(), -1);
    for (const auto& [name, proportion] : spec_.sampling.proportions) {
      const auto found = std::find(names.begin(), names.end(), name);
      FOREBAY_REQUIRE(found != names.end(), invalid,
                      "`proportions` has `{}`, which is no source; there are {}.{}", name,
                      quoted(names), did_you_mean(name, names));
      FOREBAY_REQUIRE(std::isfinite(proportion) && proportion >= 0, invalid,
                      "the proportion of `{}` is {}; it must be a finite number of at least 0.",
                      name, proportion);
      proportions[static_cast<std::size_t>(found - names.begin())] = proportion;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      FOREBAY_REQUIRE(proportions[i] >= 0, invalid,
                      "`proportions` has no `{}`; give every source one, 0 to leave it out.",
                      names[i]);
    return proportions;
  }

  OrderPtr drawn() const {
    const Sampling& sampling = spec_.sampling;
    FOREBAY_REQUIRE(spec_.shuffle == ShuffleMode::none, invalid,
                    "samples that are drawn come in any order; leave `shuffle` out.");
    const std::int64_t length = sampling.samples > 0 ? sampling.samples : size();
    const bool weighted = sampling.mode == SamplingMode::weighted;
    FOREBAY_REQUIRE(is_given(sampling.weights) || !weighted, invalid,
                    "mode weighted needs `weights`, one for each sample.");
    if (!weighted) return drawn_order(size(), length, spec_.seed);
    std::vector<double> weights = read_weights(sampling.weights, spec_.source->size());
    if (members_ != nullptr) weights = of_members(weights);
    return weighted_order(std::move(weights), length, spec_.seed);
  }

  std::vector<double> of_members(const std::vector<double>& weights) const {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(size()));
    std::iota(samples.begin(), samples.end(), 0);
    members_->to_samples(samples);
    std::vector<double> chosen;
    chosen.reserve(samples.size());
    for (const std::int64_t sample : samples)
      chosen.push_back(weights[static_cast<std::size_t>(sample)]);
    return chosen;
  }

  const Spec& spec_;
  Mistakes& mistakes_;
  std::vector<Part> parts_;
  MembersPtr members_;  // of all parts; null: all samples
};

}  // namespace

OrderPtr declared_order(const Spec& spec, Mistakes& mistakes) {
  return Declaration(spec, mistakes).order();
}

Sampler declared_sampler(const Spec& spec, OrderPtr order) {
  return Sampler({.order = std::move(order),
                  .batch_size = spec.batch_size,
                  .last_batch = spec.last_batch_policy,
                  .shard = spec.shard});
}

}  // namespace forebay
