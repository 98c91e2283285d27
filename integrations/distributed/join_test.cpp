// What one process can show: the environment, one rank alone, texts.

#include <ATen/ATen.h>

#include <cstdlib>

#include <forebay/integrations/distributed/environment.h>
#include <forebay/integrations/distributed/impl.h>

#include "launch_test.h"

namespace forebay::distributed {
namespace {

using namespace std::chrono_literals;

/// The variables of a rank, for one test.
class Join : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"RANK",        "WORLD_SIZE",
                                           "LOCAL_RANK",  "MASTER_ADDR",
                                           "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"};
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char* name : kNames)
      unsetenv(name);
  }
  void set(const std::vector<std::pair<const char*, const char*>>& values) {
    for (const auto& [name, value] : values)
      setenv(name, value, 1);
  }
};

TEST_F(Join, WithoutTorchrunThereIsOneRank) {
  Ranks ranks = join();
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
  EXPECT_TRUE(ranks.is_first());
  EXPECT_EQ(ranks.gather("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(ranks.collect("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(ranks.broadcast("a"), "a");
  ranks.barrier();
  const auto metrics = ranks.gather(Metrics{{"x", 2.5}});
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].sum, 2.5);
  at::Tensor parameter = at::zeros({2}).requires_grad_();
  parameter.mutable_grad() = at::ones({2});
  ranks.average_gradients({parameter}, 3);
  EXPECT_TRUE(parameter.grad().equal(at::ones({2})));
  EXPECT_ERROR(ranks.average_gradients({parameter}, -1), invalid,
               "average_gradients: `weight` is -1; it must be at least 0.");
  Spec spec;
  spec.source = array_source({{"x", kit::random({10}, Dtype::f32, 1)}});
  spec.batch_size = 3;
  const Pipeline pipeline = ranks.pipeline(spec);
  EXPECT_EQ(pipeline.device(), ranks.device());
  ranks.check(pipeline);
}

TEST_F(Join, ReadsWhatTorchrunSets) {
  set({{"RANK", "2"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_RANK", "1"},
       {"MASTER_ADDR", "host"},
       {"MASTER_PORT", "123"}});
  EXPECT_EQ(read_environment().rank, 2);
  EXPECT_EQ(read_environment().local_rank, 1);
  EXPECT_EQ(read_environment().address, "host");
  EXPECT_EQ(read_environment().port, 123);
  EXPECT_FALSE(read_environment().keeps_store);
  set({{"RANK", "0"}});
  EXPECT_TRUE(read_environment().keeps_store);
  set({{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_FALSE(read_environment().keeps_store);
}

TEST_F(Join, SaysWhatIsMissingOrWrong) {
  const std::string missing =
      " is not set, but WORLD_SIZE is 4; start the program with torchrun, or set RANK, WORLD_SIZE, "
      "LOCAL_RANK, MASTER_ADDR and MASTER_PORT.";
  set({{"RANK", "2"}, {"WORLD_SIZE", "4"}});
  EXPECT_ERROR(join(), invalid, "the environment variable LOCAL_RANK" + missing);
  set({{"LOCAL_RANK", "x"}});
  EXPECT_ERROR(join(), invalid,
               "the environment variable LOCAL_RANK is `x`; it must be an integer of at least 0.");
  set({{"LOCAL_RANK", "0"}});
  EXPECT_ERROR(join(), invalid, "the environment variable MASTER_ADDR" + missing);
  set({{"MASTER_ADDR", "127.0.0.1"}});
  EXPECT_ERROR(join(), invalid, "the environment variable MASTER_PORT" + missing);
  set({{"MASTER_PORT", "65536"}});
  EXPECT_ERROR(join(), invalid,
               "the environment variable MASTER_PORT is 65536; it must be at most 65535.");
  EXPECT_ERROR(join({.timeout = 99ms}), invalid,
               "join: `timeout` is 99 ms; it must be at least 100 ms.");
}

TEST_F(Join, NamesWhatDoesNotCome) {
  const std::string port = std::to_string(test::free_port());
  set({{"RANK", "1"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_RANK", "0"},
       {"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", port.c_str()}});
  const kit::Caught unreachable = kit::caught([] { join({.start_timeout = 200ms}); });
  EXPECT_EQ(static_cast<int>(unreachable.kind), static_cast<int>(ErrorKind::io));
  EXPECT_TRUE(unreachable.text.starts_with("the store at 127.0.0.1:" + port + ": "))
      << unreachable.text;
  set({{"RANK", "0"}});
  EXPECT_ERROR(join({.start_timeout = 200ms}), io,
               "join: of 4 ranks, ranks 1 to 3 did not come within 0.2 s; see what they say.");
}

TEST(ListOf, JoinsRuns) {
  EXPECT_EQ(list_of({1}), "rank 1");
  EXPECT_EQ(list_of({0, 2}), "ranks 0 and 2");
  EXPECT_EQ(list_of({0, 1, 2, 3, 5, 6}), "ranks 0 to 3, 5 and 6");
}

TEST(RankMetrics, AreATable) {
  EXPECT_EQ(to_text({{"wait_ms", 10.25, 1, 8, 2, 0}}),
            "                             sum             min on rank                max on rank\n"
            "wait_ms                    10.25               1 2                        8 0\n");
}

}  // namespace
}  // namespace forebay::distributed
