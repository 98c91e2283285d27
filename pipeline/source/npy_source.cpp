#include <forebay/array/require.h>
#include <forebay/pipeline/source/columns.h>
#include <forebay/pipeline/source/npy_file.h>

namespace forebay {
namespace {

class NpySource final : public ColumnwiseSource {
 public:
  explicit NpySource(const std::vector<std::pair<std::string, std::string>>& columns_and_paths) {
    for (const auto& [name, path] : columns_and_paths) {
      const NpyFile& file = files_.emplace_back(path);
      const Dims& shape = file.spec().shape;
      FOREBAY_REQUIRE(shape.rank > 0, invalid,
                      "{}: it holds one number; axis 0 must run over the samples.", path);
      const Dims& first = files_.front().spec().shape;
      FOREBAY_REQUIRE(shape[0] == first[0], invalid,
                      "{}: it has {} samples but {} has {}; all columns must have as many.", path,
                      shape[0], files_.front().path(), first[0]);
      Column column{name, file.spec().dtype, {}};
      for (int axis = 1; axis < shape.rank; ++axis)
        column.shape.push_back(shape[axis]);
      columns_.push_back(column);
      file.advise_random();
    }
  }

  std::int64_t size() const override { return files_.front().spec().shape[0]; }

  std::string describe() const override {
    std::string text = "npy ";
    for (std::size_t c = 0; c < files_.size(); ++c)
      text += (c == 0 ? "" : ", ") + files_[c].path();
    return text;
  }

  void read_column(int column, std::span<const std::int64_t> indices,
                   const ArrayView& view) const override {
    const auto c = static_cast<std::size_t>(column);
    const std::size_t bytes = sample_bytes(columns_[c]);
    if (bytes == 0) return;
    files_[c].require_whole();
    auto* target = static_cast<std::byte*>(view.data);
    for (std::size_t i = 0, run = 1; i < indices.size(); i += run) {
      // Samples that follow one another in the file are one copy.
      for (run = 1; i + run < indices.size() &&
                    indices[i + run] == indices[i] + static_cast<std::int64_t>(run);)
        ++run;
      files_[c].read(static_cast<std::size_t>(indices[i]) * bytes, run * bytes, target);
      target += run * bytes;
    }
  }

 private:
  std::vector<NpyFile> files_;
};

}  // namespace

SourcePtr npy_source(std::vector<std::pair<std::string, std::string>> columns_and_paths) {
  auto source = std::make_shared<NpySource>(columns_and_paths);
  check_columns("npy_source", source->columns());
  return source;
}

}  // namespace forebay
