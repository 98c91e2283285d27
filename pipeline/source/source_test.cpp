#include <filesystem>
#include <numeric>
#include <thread>

#include <forebay/array/require.h>
#include <forebay/pipeline/source.h>

#include "kit/kit.h"

namespace forebay {
namespace {

/// Reads samples into dense host arrays that were filled with another byte before.
std::vector<Array> read(const Source& source, const std::vector<std::int64_t>& indices) {
  std::vector<Array> arrays;
  std::vector<ArrayView> targets;
  for (const Column& column : source.columns()) {
    Dims shape(static_cast<std::int64_t>(indices.size()));
    for (const std::int64_t extent : column.shape)
      shape.push_back(extent);
    arrays.push_back(kit::generate(shape, column.dtype, [](std::int64_t) { return 1; }));
    targets.push_back(arrays.back().view());
  }
  source.read(indices, targets);
  return arrays;
}

/// Rows of `x` as a dense array, element by element.
Array rows(const Array& x, const std::vector<std::int64_t>& indices) {
  Dims shape = x.shape();
  shape[0] = static_cast<std::int64_t>(indices.size());
  const std::int64_t per_row = count_of(shape) / std::max<std::int64_t>(shape[0], 1);
  return kit::generate(shape, x.dtype(), [&](std::int64_t i) {
    return kit::value(x.view(),
                      indices[static_cast<std::size_t>(i / per_row)] * per_row + i % per_row);
  });
}

const std::vector<std::vector<std::int64_t>> kOrders = {
    {}, {0}, {6}, {3, 3, 3}, {0, 1, 2, 3, 4, 5, 6}, {5, 2, 3, 4, 0, 6, 1}};

TEST(ArraySource, GivesTheSamplesOfAnyLayout) {
  for (const Dtype dtype : {Dtype::boolean, Dtype::u8, Dtype::f16, Dtype::f32, Dtype::i64}) {
    const Array dense = kit::random({7, 3, 5}, dtype, 3, 0, 100);
    for (const kit::Layout layout : kit::layouts()) {
      const SourcePtr source = array_source({{"x", kit::with_layout(dense, layout)}});
      for (const auto& order : kOrders)
        EXPECT_TRUE(kit::same_bits(read(*source, order)[0], rows(dense, order)));
    }
  }
}

TEST(ArraySource, GivesComplexSamplesOfAnyLayout) {
  const Array dense = kit::random({4, 6}, Dtype::c128, 3);
  for (const kit::Layout layout : kit::layouts()) {
    const SourcePtr source = array_source({{"x", kit::with_layout(dense, layout)}});
    EXPECT_TRUE(kit::same_bits(read(*source, {0, 1, 2, 3})[0], dense));
  }
}

TEST(ArraySource, RepeatsABroadcastAxis) {
  const Array one = kit::random({1, 4}, Dtype::f32, 2);
  const SourcePtr source = array_source({{"x", one.broadcast_to({1000, 4})}});
  EXPECT_EQ(source->size(), 1000);
  EXPECT_TRUE(kit::same_bits(read(*source, {999, 0})[0], rows(one, {0, 0})));
}

TEST(ArraySource, ReadsSeveralColumnsAndScalars) {
  const Array x = kit::random({7, 2}, Dtype::f32, 1), y = kit::random({7}, Dtype::i64, 2),
              z = kit::random({7, 0}, Dtype::u8, 3);
  const SourcePtr source = array_source({{"x", x}, {"y", y}, {"z", z}});
  EXPECT_EQ(source->size(), 7);
  EXPECT_EQ(source->describe(), "array x, y, z");
  ASSERT_EQ(source->columns().size(), 3u);
  EXPECT_EQ(source->columns()[0].shape, Dims(2));
  EXPECT_EQ(source->columns()[1].shape, Dims());
  const auto got = read(*source, {6, 1});
  EXPECT_TRUE(kit::same_bits(got[0], rows(x, {6, 1})));
  EXPECT_TRUE(kit::same_bits(got[1], rows(y, {6, 1})));
  EXPECT_EQ(got[2].shape(), Dims(2, 0));
}

TEST(ArraySource, KeepsTheMemoryAlive) {
  SourcePtr source;
  Array copy;
  {
    const Array x = kit::random({7, 2}, Dtype::f32, 1);
    copy = rows(x, {0, 1, 2, 3, 4, 5, 6});
    source = array_source({{"x", x}});
  }
  EXPECT_TRUE(kit::same_bits(read(*source, {0, 1, 2, 3, 4, 5, 6})[0], copy));
}

TEST(ArraySourceErrors, SayWhichColumn) {
  const Array x = kit::random({7, 2}, Dtype::f32, 1), y = kit::random({6}, Dtype::i64, 2);
  EXPECT_ERROR(array_source({}), invalid, "array_source: it has no columns; give at least one.");
  EXPECT_ERROR(
      array_source({{"x", x}, {"y", y}}), invalid,
      "array_source: column `y` has 6 samples but `x` has 7; all columns must have as many.");
  EXPECT_ERROR(array_source({{"x", x}, {"x", x}}), invalid,
               "array_source: there are two columns `x`; names must differ.");
  EXPECT_ERROR(array_source({{"", x}}), invalid,
               "array_source: a column has an empty name; give it one.");
  EXPECT_ERROR(array_source({{"s", kit::random({}, Dtype::f32, 1)}}), invalid,
               "array_source: column `s` has rank 0; axis 0 must run over the samples.");
  ArrayView elsewhere = x.view();
  elsewhere.device = Device::cuda(0);
  EXPECT_ERROR(
      array_source({{"x", x.with_view(elsewhere)}}), invalid,
      "array_source: column `x` is on cuda:0; it must be on cpu. Copy it to the host first.");
}

TEST(CallbackSource, WritesEachSampleInItsRow) {
  const SourcePtr source = callback_source(
      7, {{"x", Dtype::f32, {2, 2}}, {"y", Dtype::i64, {}}},
      [](std::int64_t index, std::span<const ArrayView> sample) {
        EXPECT_EQ(sample[0].shape, Dims(2, 2));
        EXPECT_EQ(sample[0].strides, Dims(2, 1));
        EXPECT_EQ(sample[1].rank(), 0);
        for (int i = 0; i < 4; ++i)
          sample[0].as<float>()[i] = static_cast<float>(index * 10 + i);
        *sample[1].as<std::int64_t>() = -index;
      },
      "radar");
  EXPECT_EQ(source->describe(), "radar");
  EXPECT_EQ(source->size(), 7);
  const auto got = read(*source, {5, 2});
  EXPECT_EQ(kit::values(got[0]), (std::vector<double>{50, 51, 52, 53, 20, 21, 22, 23}));
  EXPECT_EQ(kit::values(got[1]), (std::vector<double>{-5, -2}));
}

TEST(CallbackSource, NamesTheSampleThatFailed) {
  const auto source = [](std::function<void()> action) {
    return callback_source(9, {{"x", Dtype::f32, {}}},
                           [action](std::int64_t index, std::span<const ArrayView>) {
                             if (index == 4) action();
                           });
  };
  EXPECT_ERROR(read(*source([] { throw std::runtime_error("the sensor is gone"); }), {3, 4, 5}), io,
               "sample 4: the sensor is gone");
  EXPECT_ERROR(read(*source([] { fail(ErrorKind::resource, "out of tape."); }), {3, 4, 5}),
               resource, "sample 4: out of tape.");
}

TEST(CallbackSourceErrors, SayWhichArgument) {
  const auto nothing = [](std::int64_t, std::span<const ArrayView>) {};
  EXPECT_ERROR(callback_source(-1, {{"x", Dtype::f32, {}}}, nothing), invalid,
               "callback_source: `size` is -1; it must be at least 0.");
  EXPECT_ERROR(callback_source(1, {{"x", Dtype::f32, {}}}, nullptr), invalid,
               "callback_source: `read` is empty; give a function.");
  EXPECT_ERROR(callback_source(1, {}, nothing), invalid,
               "callback_source: it has no columns; give at least one.");
  EXPECT_ERROR(
      callback_source(1, {{"x", Dtype::f32, {-1}}}, nothing), invalid,
      "callback_source: samples of column `x` have the shape (-1,); extents must be at least 0.");
  EXPECT_ERROR(callback_source(1, {{"x", Dtype::f32, {1, 1, 1, 1, 1, 1, 1, 1}}}, nothing), invalid,
               "callback_source: samples of column `x` have rank 8; it must be at most 7, since "
               "the batch adds an axis.");
}

class NpySource : public testing::Test {
 protected:
  std::string save(const std::string& name, const Array& x) {
    const std::string path = folder_ + "/" + name;
    write_npy(path, x.view());
    return path;
  }
  const std::string folder_ = kit::temporary_folder();
};

TEST_F(NpySource, GivesTheSamplesInAnyOrder) {
  for (const Dtype dtype : {Dtype::boolean, Dtype::u8, Dtype::f16, Dtype::f32, Dtype::i64}) {
    const Array x = kit::random({7, 3, 5}, dtype, 3, 0, 100),
                y = kit::random({7}, Dtype::u16, 4, 0, 9);
    const SourcePtr source = npy_source({{"x", save("x.npy", x)}, {"y", save("y.npy", y)}});
    EXPECT_EQ(source->size(), 7);
    EXPECT_EQ(source->columns()[0].dtype, dtype);
    EXPECT_EQ(source->columns()[0].shape, Dims(3, 5));
    EXPECT_EQ(source->columns()[1].shape, Dims());
    for (const auto& order : kOrders) {
      const auto got = read(*source, order);
      EXPECT_TRUE(kit::same_bits(got[0], rows(x, order)));
      EXPECT_TRUE(kit::same_bits(got[1], rows(y, order)));
    }
  }
}

TEST_F(NpySource, ReadsSamplesLargerThanTheReadAhead) {
  const Array x = kit::random({5, 50001}, Dtype::f32, 3);
  const SourcePtr source = npy_source({{"x", save("x.npy", x)}});
  EXPECT_EQ(source->grain(), 1);
  EXPECT_TRUE(kit::same_bits(read(*source, {4, 0, 1, 2, 3})[0], rows(x, {4, 0, 1, 2, 3})));
}

TEST_F(NpySource, IsReadByManyThreadsAtOnce) {
  const Array x = kit::random({1000, 16}, Dtype::f32, 3);
  const SourcePtr source = npy_source({{"x", save("x.npy", x)}});
  std::vector<int> equal(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::int64_t> order(1000);
      std::iota(order.begin(), order.end(), 0);
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(t * 17), order.end());
      equal[t] = static_cast<bool>(kit::same_bits(read(*source, order)[0], rows(x, order)));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 1));
}

TEST(Fingerprint, SaysWhichSamplesThereAre) {
  const std::string folder = kit::temporary_folder();
  const Array x = kit::random({1000, 3}, Dtype::f32, 1),
              y = kit::random({1000}, Dtype::i64, 2, 0, 9);
  const auto of_arrays = [](const Array& a, const Array& b) {
    return array_source({{"x", a}, {"y", b}})->fingerprint();
  };
  const std::string fingerprint = of_arrays(x, y);
  EXPECT_EQ(fingerprint.size(), 16u);
  write_npy(folder + "/x.npy", x.view());
  write_npy(folder + "/y.npy", y.view());
  EXPECT_EQ(npy_source({{"x", folder + "/x.npy"}, {"y", folder + "/y.npy"}})->fingerprint(),
            fingerprint);
  const auto with = [&](std::int64_t sample, double to) {
    return of_arrays(x, kit::generate({1000}, Dtype::i64, [&](std::int64_t i) {
                       return i == sample ? to : kit::value(y.view(), i);
                     }));
  };
  EXPECT_NE(with(0, 1 << 20), fingerprint);
  EXPECT_NE(with(999, 1 << 20), fingerprint);
  EXPECT_EQ(with(1, 1 << 20), fingerprint);  // not one of the 64 that are looked at
  EXPECT_NE(of_arrays(x.slice(0, 0, 999), y.slice(0, 0, 999)), fingerprint);
  EXPECT_EQ(of_arrays(x.slice(0, 0, 0), y.slice(0, 0, 0)).size(), 16u);
  EXPECT_EQ(callback_source(1, {{"x", Dtype::f32, {}}}, [](auto, auto) {})->fingerprint(), "");
}

TEST_F(NpySource, DescribesItsFiles) {
  const std::string x = save("x.npy", kit::random({7}, Dtype::f32, 1)),
                    y = save("y.npy", kit::random({7}, Dtype::f32, 1));
  EXPECT_EQ(npy_source({{"x", x}, {"y", y}})->describe(), "npy " + x + ", " + y);
}

TEST_F(NpySource, AnswersAFileThatShrankWithAnError) {
  const std::string path = save("x.npy", kit::random({4096, 16}, Dtype::f32, 1));
  const SourcePtr source = npy_source({{"x", path}});
  read(*source, {4095});
  std::filesystem::resize_file(path, 1000);
  EXPECT_ERROR(read(*source, {4095}), io,
               path + ": the file has shrunk from 262272 to 1000 bytes since it was opened.");
}

TEST_F(NpySource, KeepsReadingAFileThatWasReplaced) {
  const Array x = kit::random({7, 2}, Dtype::f32, 1);
  const std::string path = save("x.npy", x);
  const SourcePtr source = npy_source({{"x", path}});
  std::filesystem::remove(path);
  save("x.npy", kit::random({1}, Dtype::u8, 2));
  EXPECT_TRUE(kit::same_bits(read(*source, {6, 0})[0], rows(x, {6, 0})));
}

TEST_F(NpySource, SaysWhichFileIsWrong) {
  const std::string x = save("x.npy", kit::random({7, 2}, Dtype::f32, 1)),
                    y = save("y.npy", kit::random({6}, Dtype::f32, 1));
  const std::string scalar = save("scalar.npy", kit::random({}, Dtype::f32, 1));
  EXPECT_ERROR(npy_source({{"x", x}, {"y", y}}), invalid,
               y + ": it has 6 samples but " + x + " has 7; all columns must have as many.");
  EXPECT_ERROR(npy_source({{"x", scalar}}), invalid,
               scalar + ": it holds one number; axis 0 must run over the samples.");
  EXPECT_ERROR(npy_source({{"x", x}, {"x", x}}), invalid,
               "npy_source: there are two columns `x`; names must differ.");
  EXPECT_ERROR(npy_source({}), invalid, "npy_source: it has no columns; give at least one.");
  EXPECT_ERROR(npy_source({{"x", folder_ + "/none.npy"}}), io,
               folder_ + "/none.npy: cannot be opened: No such file or directory.");
}

}  // namespace
}  // namespace forebay
