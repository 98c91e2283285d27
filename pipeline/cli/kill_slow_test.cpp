// The long form of KilledRun.

#include "killer_test.h"

namespace forebay::test {
namespace {

TEST_F(KilledRun, EndsAsOneThatNobodyStoppedAfterManyDeaths) {
  declare(600, 10);
  ASSERT_EQ(forebay({"run", "train.yaml", "--epochs", "3", "--save", "straight"}).exit_code, 0);
  for (const int seed : {1, 2}) {
    fs::remove_all(folder_ + "/killed");
    fs::remove(folder_ + "/state.json");
    EXPECT_GT(run_killed(seed), 10);
    EXPECT_EQ(files_of("killed"), files_of("straight"));
  }
}

}  // namespace
}  // namespace forebay::test
