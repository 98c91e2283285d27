// The long form of pipeline/determinism_test.cpp: all settings against all others, and every random
// op by itself with every dtype.
#include <forebay/pipeline/determinism_test.h>

#include <forebay/pipeline/config/config.h>

namespace forebay::test {
namespace {

class DeterminismLong : public PipelineTest {};

/// Each way of one dimension with each of another.
Way both(const Way& a, const Way& b) {
  return {a.name + ", " + b.name,
          [=](Spec& spec) {
            a.change(spec);
            b.change(spec);
          },
          std::max(a.shards, b.shards)};
}

DEVICE_TEST(DeterminismLong, SamplesAreTheSameUnderAllPairsOfSettings) {
  const Samples want = run(random_spec(Device::cpu()), {});
  const auto all = dimensions();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      for (const Way& a : all[i]) {
        for (const Way& b : all[k])
          EXPECT_TRUE(same(run(random_spec(device()), both(a, b)), want)) << both(a, b).name;
      }
    }
  }
}

DEVICE_TEST(DeterminismLong, EveryRandomOpIsTheSameWithEveryDtype) {
  for (const OpEntry& entry : registry()) {
    if (entry.def.draws == 0) continue;
    for (const Dtype dtype : kAllDtypes) {
      const auto spec_of = [&](Device device) {
        Spec spec =
            counting_spec(device, array_source({{"x", kit::random({23, 6, 8}, dtype, 1, 0, 99)}}));
        spec.stages = {parse_stage(entry.def.example)};
        return spec;
      };
      try {
        plan_of(spec_of(Device::cpu()));
      } catch (const Error&) {
        continue;  // a dtype that it does not take
      }
      const Samples want = run(spec_of(Device::cpu()), {});
      EXPECT_TRUE(same(run(spec_of(device()), {}), want))
          << entry.def.name << " " << name_of(dtype);
      for (const Way& way : batch_sizes())
        EXPECT_TRUE(same(run(spec_of(device()), way), want)) << entry.def.name << " " << way.name;
    }
  }
}

}  // namespace
}  // namespace forebay::test
