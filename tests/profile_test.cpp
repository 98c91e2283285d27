// A profiler sees which batch is read, copied, computed and waited for.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <forebay/pipeline.h>

#include "kit/kit.h"

namespace forebay {
namespace {

using Labels = std::vector<std::string>;

class ProfileTest : public kit::DeviceTest {};

/// The ranges in the program's threads while `action` ran.
Labels heard(const std::function<void()>& action) {
  const auto path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "profile_listener.so";
  setenv("NVTX_INJECTION64_PATH", path.c_str(), 1);  // NVTX looks at the first range
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return {};
  }
  const auto take = reinterpret_cast<void (*)(Labels&)>(dlsym(library, "take_labels"));
  Labels labels;
  take(labels);
  action();
  take(labels);
  return labels;
}

DEVICE_TEST(ProfileTest, ShowsBatches) {
  const bool gpu = device().is_cuda();
  const Labels labels = heard([&] {
    Pipeline pipeline = Pipeline::build()
                            .source(array_source({{"x", kit::random({12, 3}, Dtype::f32, 1)}}))
                            .device(device())
                            .batch_size(4)
                            .clip({.min = -1, .max = 1})
                            .create();
    for (int epoch = 0; epoch < 2; ++epoch) {
      pipeline.start_epoch(epoch);
      while (pipeline.next()) {
      }
    }
  });
  const auto count = [&](const std::string& label) {
    return std::count(labels.begin(), labels.end(), label);
  };
  const std::string first = ", epoch 0, batch 0", last = ", epoch 1, batch 2";
  for (const std::string& batch : {first, last}) {
    EXPECT_EQ(count("forebay: next" + batch), 1);
    EXPECT_EQ(count("forebay: read" + batch), 1);
    EXPECT_EQ(count("forebay: copy" + batch), gpu ? 1 : 0);
  }
  EXPECT_EQ(count("forebay: clip" + first), 1);
  EXPECT_EQ(count((gpu ? "forebay: graph of clip" : "forebay: clip") + last), 1);
  EXPECT_EQ(count("end") * 2, static_cast<std::ptrdiff_t>(labels.size()));
}

}  // namespace
}  // namespace forebay
