// Where the memory of a run comes from, how much, and when.

#include "fixture_test.h"

namespace forebay::test {
namespace {

class MemoryTest : public PipelineTest {};

int count_intact(Pipeline& pipeline, std::int64_t epoch) {
  int batches = 0;
  for (Batch& batch : pipeline.epoch(epoch))
    batches += static_cast<bool>(is_intact(batch));
  return batches;
}

DEVICE_TEST(MemoryTest, AllocatesNothingInTheSteadyState) {
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  spec.stages.push_back(stage(same_op()));
  auto memory = std::make_shared<CountingMemory>(device_memory(device()));
  {
    Pipeline pipeline = Pipeline::from_spec(spec, {.memory = memory});
    EXPECT_EQ(memory->allocations(), 0u);  // memory starts with the first batch
    for (int epoch = 0; epoch < 2; ++epoch)
      EXPECT_EQ(count_intact(pipeline, epoch), 4);
    const std::size_t after_start = memory->allocations();
    EXPECT_GT(after_start, 0u);
    for (int epoch = 2; epoch < 20; ++epoch)
      EXPECT_EQ(count_intact(pipeline, epoch), 4);
    EXPECT_EQ(memory->allocations(), after_start);
    const Plan& plan = pipeline.plan();
    EXPECT_GE(memory->peak_bytes(),
              static_cast<std::size_t>(plan.slots()) * plan.device_bytes_per_slot());
  }
  EXPECT_EQ(memory->current_bytes(), 0u);
}

DEVICE_TEST(MemoryTest, MemoryComesFromWhereItIsTold) {
  auto memory = std::make_shared<CountingMemory>(device_memory(device()));
  auto other = std::make_shared<CountingMemory>(device_memory(device()));
  Pipeline named = Pipeline::from_spec(counting_spec(device()), {.memory = memory});
  named.set_default_memory(other);
  EXPECT_TRUE(named.next());
  EXPECT_GT(memory->allocations(), 0u);
  EXPECT_EQ(other->allocations(), 0u);
  Pipeline unnamed = Pipeline::from_spec(counting_spec(device()));
  unnamed.set_default_memory(other);
  EXPECT_TRUE(unnamed.next());
  EXPECT_GT(other->allocations(), 0u);
}

TEST(MemoryErrors, MemoryOfAnotherDevice) {
  class Elsewhere final : public MemoryResource {
   public:
    Device device() const override { return Device::cuda(3); }
    void* allocate(std::size_t, const Stream&) override { return nullptr; }
    void deallocate(void*, std::size_t, const Stream&) noexcept override {}
  };
  EXPECT_ERROR(
      Pipeline::from_spec(counting_spec(Device::cpu()), {.memory = std::make_shared<Elsewhere>()}),
      invalid,
      "the memory for slots is on cuda:3, but pipeline test runs on cpu; give it memory of that "
      "device.");
}

TEST(MemoryErrors, MemoryThatDoesNotSuffice) {
  auto memory = std::make_shared<CountingMemory>(host_memory(), 4000);
  Pipeline pipeline = Pipeline::from_spec(counting_spec(Device::cpu()), {.memory = memory});
  const auto caught = kit::caught([&] { pipeline.next(); });
  EXPECT_EQ(caught.kind, ErrorKind::resource);
  EXPECT_NE(caught.text.find("of the limit of"), std::string::npos) << caught.text;
}

}  // namespace
}  // namespace forebay::test
