#include <forebay/pipeline/order/declared.h>

#include <numeric>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>

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
  Declaration(const Spec& spec, Mistakes& mistakes) : spec_(spec), mistakes_(mistakes) {}

  OrderPtr order() {
    bool right = attempt("subset", spec_.subset_position, [&] { add_subset(); });
    right = right && attempt("split", spec_.split_position, [&] { add_split(); });
    OrderPtr result;
    if (spec_.sampling.mode == SamplingMode::once) {
      right &= attempt("sampling", spec_.sampling_position, [&] { check_once(); });
      right &= attempt("shuffle", spec_.shuffle_position, [&] { result = shuffled(); });
    } else {
      right &= attempt("sampling", spec_.sampling_position, [&] { result = drawn(); });
    }
    if (!right) return nullptr;
    if (members_ != nullptr) result = order_of_members(std::move(result), members_);
    right = attempt("positions", spec_.position, [&] {
      if (const auto& given = spec_.positions)
        result = order_of_positions(std::move(result), given->begin, given->end);
    });
    return right ? result : nullptr;
  }

 private:
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
    members_ = subset(*spec_.subset, spec_.source->size());
  }

  void add_split() {
    if (!spec_.split) return;
    MembersPtr all = std::move(members_);
    const bool by_key = !spec_.split->by.empty();
    members_ = by_key ? split_part(*spec_.split, *spec_.source, all.get())
                      : split_part(*spec_.split, all ? all->size() : spec_.source->size());
    if (all != nullptr) members_ = members_of_members(members_, all);
    FOREBAY_REQUIRE(members_->size() > 0 || spec_.source->size() == 0, invalid,
                    "no sample is in {}; take another `validation`{}.", members_->describe(),
                    by_key ? " or `seed`, as there are few keys" : "");
  }

  void check_once() const {
    FOREBAY_REQUIRE(spec_.sampling.samples == 0 && !is_given(spec_.sampling.weights), invalid,
                    "mode once has no `samples` and no `weights`; make it replacement or "
                    "weighted, or leave them out.");
  }

  OrderPtr shuffled() const {
    FOREBAY_REQUIRE(spec_.shuffle == ShuffleMode::window || spec_.shuffle_window == 0, invalid,
                    "`window` is {}, but only mode window has one; leave it out.",
                    spec_.shuffle_window);
    switch (spec_.shuffle) {
      case ShuffleMode::full:
        return shuffled_order(size(), spec_.seed);
      case ShuffleMode::window:
        return windowed_order(size(), spec_.shuffle_window, spec_.seed);
      default:
        return source_order(size());
    }
  }

  OrderPtr drawn() const {
    const Sampling& sampling = spec_.sampling;
    FOREBAY_REQUIRE(spec_.shuffle == ShuffleMode::none, invalid,
                    "samples that are drawn come in any order; leave `shuffle` out.");
    FOREBAY_REQUIRE(sampling.samples >= 0, invalid, "`samples` is {}; it must be at least 1.",
                    sampling.samples);
    const std::int64_t length = sampling.samples > 0 ? sampling.samples : size();
    const bool weighted = sampling.mode == SamplingMode::weighted;
    FOREBAY_REQUIRE(is_given(sampling.weights) || !weighted, invalid,
                    "mode weighted needs `weights`, one for each sample.");
    FOREBAY_REQUIRE(weighted || !is_given(sampling.weights), invalid,
                    "`weights` are for mode weighted; leave them out.");
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
  MembersPtr members_;  // null: all samples of the source
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
