#include "kit/kit.h"

#include <array>
#include <map>
#include <set>

#include <forebay/ops/registry.h>

namespace forebay {
namespace {

TEST(Registry, IsSortedCompleteAndUnambiguous) {
  std::set<std::string_view> names;
  std::string_view before;
  for (const OpEntry& entry : registry()) {
    const OpDef& def = entry.def;
    EXPECT_LT(before, def.name);
    before = def.name;
    EXPECT_TRUE(names.insert(def.name).second) << def.name;
    if (!def.alias.empty()) {
      EXPECT_TRUE(names.insert(def.alias).second) << def.alias;
    }
    EXPECT_FALSE(def.summary.empty()) << def.name;
    EXPECT_FALSE(def.example.empty()) << def.name;
    EXPECT_TRUE(def.make != nullptr && def.fields != nullptr && def.infer != nullptr) << def.name;
    EXPECT_TRUE(def.lower != nullptr || entry.cpu != nullptr) << def.name;
  }
  EXPECT_GE(registry().size(), 9U);
}

// No two random ops draw the same words, whatever stages there are. The numbers are in every run.
TEST(Registry, RandomOpsHaveNumbersOfTheirOwn) {
  std::map<int, std::string_view> ops;
  for (const OpEntry& entry : registry()) {
    if (entry.def.draws == 0) continue;
    EXPECT_GE(entry.def.draws, 1) << entry.def.name;
    EXPECT_LE(entry.def.draws, 255) << entry.def.name;
    EXPECT_NE(entry.def.with_stream, nullptr) << entry.def.name << " has no setting `stream`";
    EXPECT_TRUE(ops.emplace(entry.def.draws, entry.def.name).second)
        << entry.def.name << " has the number of " << ops[entry.def.draws];
  }
  EXPECT_EQ(ops[1], "noise");
  EXPECT_EQ(ops[2], "dropout_mask");
  EXPECT_EQ(ops[3], "random_flip");
  EXPECT_EQ(ops[4], "random_crop");
}

TEST(Registry, FindsByNameAndAlias) {
  EXPECT_EQ(find_op("clip").def.name, "clip");
  EXPECT_EQ(find_op("clamp").def.name, "clip");
  EXPECT_EQ(find_op("transpose").def.name, "permute");
}

TEST(Registry, SaysWhatWasMeant) {
  EXPECT_ERROR(find_op("clmp"), invalid, "unknown op `clmp`; did you mean `clip`?");
  EXPECT_ERROR(find_op("permut"), invalid, "unknown op `permut`; did you mean `permute`?");
  const std::string text = kit::caught([] { find_op("zzzzzzzzzzzz"); }).text;
  EXPECT_EQ(text.find("unknown op `zzzzzzzzzzzz`; there are: abs, "), 0U) << text;
}

TEST(NearestName, TakesSlipsAndPartsOfNamesOnly) {
  constexpr std::array<std::string_view, 4> names = {"min", "max", "mean", "epsilon"};
  EXPECT_EQ(nearest_name("maximum", names), "max");
  EXPECT_EQ(nearest_name("mena", names), "mean");
  EXPECT_EQ(nearest_name("eps", names), "epsilon");
  EXPECT_EQ(nearest_name("epsilno", names), "epsilon");
  EXPECT_EQ(nearest_name("bins", names), "");
  EXPECT_EQ(nearest_name("range", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace forebay
