// Several sources in a YAML file.

#include <fstream>

#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/pipeline.h>

#include "folder_test.h"

namespace forebay {
namespace {

class Sources : public FolderTest {
 protected:
  void SetUp() override {
    save("a.npy", kit::random({10, 4}, Dtype::f32, 1));
    save("b.npy", kit::random({30, 4}, Dtype::f32, 2));
    save("wide.npy", kit::random({30, 5}, Dtype::f64, 2));
  }
  void save(const std::string& name, const Array& x) { write_npy(folder_ + "/" + name, x.view()); }
  Spec load(const std::string& yaml) {
    notes_.clear();
    std::ofstream(folder_ + "/train.yaml") << "version: 1\nbatch_size: 4\n" << yaml;
    return load_spec(folder_ + "/train.yaml", {.notes = &notes_});
  }
  /// What loading and compiling throws, without the folder in front of the files.
  std::string mistakes(const std::string& yaml) {
    return without_folder(kit::caught([&] { Pipeline::from_spec(load(yaml)); }).text);
  }

  std::vector<std::string> notes_;
};

const std::string kTwo =
    "source:\n"
    "  type: concat\n"
    "  source_field: from\n"
    "  sources:\n"
    "    - {name: a, type: npy, columns: {x: a.npy}}\n"
    "    - {name: b, type: npy, columns: {x: b.npy}}\n";

TEST_F(Sources, AreOneAfterAnother) {
  const Spec spec = load(kTwo);
  EXPECT_EQ(spec.source->size(), 40);
  EXPECT_EQ(without_folder(spec.source->describe()), "concat a (npy a.npy), b (npy b.npy)");
  ASSERT_EQ(spec.source->columns().size(), 2u);
  EXPECT_EQ(spec.source->columns()[1].name, "from");
  EXPECT_EQ(spec.sampling.mode, SamplingMode::once);
}

TEST_F(Sources, AreMixed) {
  Spec spec = load(kTwo + "sampling: {mode: mix, proportions: {b: 0.25, a: 3}, samples: 100}\n");
  EXPECT_EQ(spec.sampling.mode, SamplingMode::mix);
  EXPECT_EQ(spec.sampling.proportions,
            (std::vector<std::pair<std::string, double>>{{"b", 0.25}, {"a", 3}}));
  EXPECT_EQ(spec.sampling.samples, 100);
  EXPECT_EQ(spec.sampling.stopping, StoppingStrategy::samples);
  spec =
      load(kTwo + "sampling: {mode: mix, proportions: {a: 1, b: 1}, samples: first_exhausted}\n");
  EXPECT_EQ(spec.sampling.stopping, StoppingStrategy::first_exhausted);
  EXPECT_EQ(Pipeline::from_spec(spec).plan().sampler->order().length(), 20);
}

TEST_F(Sources, TakeTheWordsOfOtherLibraries) {
  const Spec spec = load(
      "source:\n"
      "  type: concat\n"
      "  datasets: [{name: a, type: npy, columns: {x: a.npy}}]\n"
      "sampling: {mode: mix, probabilities: {a: 1}, stopping_strategy: all_exhausted}\n");
  EXPECT_EQ(spec.sampling.stopping, StoppingStrategy::all_exhausted);
  ASSERT_EQ(notes_.size(), 3u);
  EXPECT_EQ(without_folder(notes_[2]),
            "train.yaml:5:3: note: source: `datasets` is called `sources` here.");
  EXPECT_EQ(without_folder(notes_[0]),
            "train.yaml:6:23: note: sampling: `probabilities` is called `proportions` here.");
  EXPECT_EQ(without_folder(notes_[1]),
            "train.yaml:6:46: note: sampling: `stopping_strategy` is called `samples` here.");
}

TEST_F(Sources, ThatDoNotFitAreNamedWithBothSides) {
  EXPECT_EQ(mistakes("source:\n"
                     "  type: concat\n"
                     "  sources:\n"
                     "    - {name: a, type: npy, columns: {x: a.npy}}\n"
                     "    - {name: b, type: npy, columns: {x: wide.npy}}\n"
                     "    - {name: c, type: npy, columns: {y: b.npy}}\n"),
            "train.yaml:7:37: source: column `x` is f64 (5,) in `b`, but f32 (4,) in `a`; sources "
            "that are put together have the same columns.\n"
            "train.yaml:8:37: source: `c` has no column `x`, which is f32 (4,) in `a`; sources "
            "that are put together have the same columns.\n"
            "train.yaml:8:37: source: column `y` is f32 (4,) in `c`, but `a` has none; sources "
            "that are put together have the same columns.");
}

TEST_F(Sources, SayEveryMistakeAtOnce) {
  EXPECT_EQ(mistakes("source:\n"
                     "  type: concat\n"
                     "  columns: {x: a.npy}\n"
                     "  sources:\n"
                     "    - {type: npy, columns: {x: a.npy}}\n"
                     "    - {name: b, type: raw, columns: {x: none.npy}}\n"
                     "    - {name: b, type: npy, colums: {x: a.npy}}\n"
                     "    - a.npy\n"),
            "train.yaml:5:12: source: `columns` is for type npy; name those of each source.\n"
            "train.yaml:7:7: source: `name` is missing; it must be text.\n"
            "train.yaml:8:23: source `b`: `type` is raw; it must be npy.\n"
            "train.yaml:8:41: source `b`: column `x`: none.npy: cannot be opened: No such file or "
            "directory.\n"
            "train.yaml:9:7: source `b`: `columns` is missing; it must be a map of fields to .npy "
            "files, {x: data/x.npy}.\n"
            "train.yaml:9:28: source `b`: unknown key `colums`; did you mean `columns`?\n"
            "train.yaml:10:7: source: `sources` is a.npy; it must be a list of maps such as {name: "
            "a, type: npy, columns: {x: data/x.npy}}.");
  EXPECT_EQ(mistakes("source: {type: concat, sources: []}\n"),
            "train.yaml:3:33: source: `sources` is a list; it must be a list of maps such as "
            "{name: a, type: npy, columns: {x: data/x.npy}}.");
  EXPECT_EQ(mistakes("source: {type: concat}\n"),
            "train.yaml:3:9: source: `sources` is missing; it must be a list of maps such as "
            "{name: a, type: npy, columns: {x: data/x.npy}}.");
  EXPECT_EQ(mistakes("source: {type: npy, columns: {x: a.npy}, sources: [], source_field: f}\n"),
            "train.yaml:3:51: source: `sources` is for type concat; leave it out.\n"
            "train.yaml:3:69: source: `source_field` is for type concat; leave it out.");
  EXPECT_EQ(mistakes("source:\n"
                     "  type: concat\n"
                     "  source_field: x\n"
                     "  sources:\n"
                     "    - {name: a, type: npy, columns: {x: a.npy}}\n"
                     "    - {name: a, type: npy, columns: {x: b.npy}}\n"),
            "train.yaml:8:14: source `a`: another source has this name; names must differ.");
  EXPECT_EQ(mistakes("source:\n"
                     "  type: concat\n"
                     "  source_field: x\n"
                     "  sources: [{name: a, type: npy, columns: {x: a.npy}}]\n"),
            "train.yaml:5:17: source: concat_source: `source_field` is `x`, which is a column of "
            "the sources; take another name.");
}

TEST_F(Sources, InWrongProportionsAreRefused) {
  EXPECT_EQ(mistakes(kTwo + "sampling: {mode: mix, proportions: 0.5}\n"),
            "train.yaml:9:36: sampling: `proportions` is 0.5; it must be a map of sources to "
            "numbers, {a: 0.7, b: 0.3}.");
  EXPECT_EQ(mistakes(kTwo + "sampling: {mode: mix, proportions: {a: x, b: -1}, samples: some}\n"),
            "train.yaml:9:40: sampling: `proportions.a` is x; it must be a number.\n"
            "train.yaml:9:46: sampling: `proportions.b` is -1; it must be a finite number of at "
            "least 0.\n"
            "train.yaml:9:60: sampling: `samples` is some; it must be an integer, first_exhausted "
            "or all_exhausted.");
  EXPECT_EQ(mistakes(kTwo + "sampling: {mode: mix, proportions: {a: 1, c: 1}}\n"),
            "train.yaml:9:11: sampling: `proportions` has `c`, which is no source; there are `a`, "
            "`b`. Did you mean `a`?");
  EXPECT_EQ(mistakes(kTwo + "sampling: {mode: mix}\n"),
            "train.yaml:9:11: sampling: `proportions` has no `a`; give every source one, 0 to "
            "leave it out.");
  EXPECT_EQ(mistakes("source: {type: npy, columns: {x: a.npy}}\n"
                     "sampling: {mode: mix, proportions: {a: 1}}\n"),
            "train.yaml:4:11: sampling: mode mix draws from several sources, but there is one; "
            "make it one of type concat.");
}

}  // namespace
}  // namespace forebay
