// Random words are cuRAND's: its Philox with the same key, on the host (which needs no GPU) and on the device.
#include "kit/kit.h"

#include <curand.h>

#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

constexpr std::uint64_t kSeed = 0x123456789ABCDEF0;
// In this order cuRAND has 4 words of each of 65536 sequences, then the next 4 of each, and so on.
constexpr std::int64_t kBlocks = 3, kSequences = 65536;

Array of_curand(curandGenerator_t generator, const Context& context) {
  const Array words = Array::empty({kBlocks, kSequences, 4}, Dtype::u32, context);
  context.stream.synchronize();
  EXPECT_EQ(curandSetPseudoRandomGeneratorSeed(generator, kSeed), CURAND_STATUS_SUCCESS);
  EXPECT_EQ(curandSetGeneratorOrdering(generator, CURAND_ORDERING_PSEUDO_LEGACY),
            CURAND_STATUS_SUCCESS);
  EXPECT_EQ(
      curandGenerate(generator, words.as<unsigned>(), static_cast<std::size_t>(words.count())),
      CURAND_STATUS_SUCCESS);
  EXPECT_EQ(curandDestroyGenerator(generator), CURAND_STATUS_SUCCESS);
  return kit::to_host(words, context);
}

Array ours(const Context& context) {
  return run(philox(Expr::index({kBlocks, 1, 4}), Expr::index({kSequences, 1}),
                    Expr::constant(kSeed, Dtype::u64)),
             {}, context);
}

TEST(Curand, OnTheHostGivesTheSameWords) {
  const Context cpu = kit::context(Device::cpu());
  curandGenerator_t generator = nullptr;
  ASSERT_EQ(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10),
            CURAND_STATUS_SUCCESS);
  EXPECT_TRUE(kit::same_bits(ours(cpu), of_curand(generator, cpu)));
}

TEST(CurandCuda, OnTheDeviceGivesTheSameWords) {
  SKIP_WITHOUT(Device::cuda());
  const Context context = kit::context(Device::cuda());
  curandGenerator_t generator = nullptr;
  ASSERT_EQ(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10),
            CURAND_STATUS_SUCCESS);
  const Array theirs = of_curand(generator, context);
  EXPECT_TRUE(kit::same_bits(ours(context), theirs));
}

}  // namespace
}  // namespace forebay::expr
