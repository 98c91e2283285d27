#include <exception>

#include <forebay/array/require.h>
#include <forebay/pipeline/source/columns.h>

namespace forebay {
namespace {

using Read = std::function<void(std::int64_t index, std::span<const ArrayView> sample)>;

class CallbackSource final : public Source {
 public:
  CallbackSource(std::int64_t size, std::vector<Column> columns, Read read, std::string description)
      : size_(size),
        columns_(std::move(columns)),
        read_(std::move(read)),
        description_(std::move(description)) {}

  std::int64_t size() const override { return size_; }
  const std::vector<Column>& columns() const override { return columns_; }
  std::string describe() const override { return description_; }
  /// What the function costs is unknown; a callback that wants larger tasks is a Source of its own.
  std::int64_t grain() const override { return 1; }

  void read(std::span<const std::int64_t> indices,
            std::span<const ArrayView> targets) const override {
    std::vector<ArrayView> sample(columns_.size());
    for (std::size_t row = 0; row < indices.size(); ++row) {
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        sample[c] = {static_cast<std::byte*>(targets[c].data) + row * sample_bytes(columns_[c]),
                     columns_[c].dtype, Device::cpu(), columns_[c].shape,
                     dense_strides(columns_[c].shape)};
      }
      call(indices[row], sample);
    }
  }

 private:
  /// The batch is named by the executor; which of its samples it was is known only here.
  void call(std::int64_t index, std::span<const ArrayView> sample) const {
    try {
      read_(index, sample);
    } catch (const Error& error) {
      fail(error.kind(), "sample {}: {}", index, error.what());
    } catch (const std::exception& error) {
      fail(ErrorKind::io, "sample {}: {}", index, error.what());
    }
  }

  std::int64_t size_;
  std::vector<Column> columns_;
  Read read_;
  std::string description_;
};

}  // namespace

SourcePtr callback_source(std::int64_t size, std::vector<Column> columns, Read read,
                          std::string description) {
  FOREBAY_REQUIRE(size >= 0, invalid, "callback_source: `size` is {}; it must be at least 0.",
                  size);
  FOREBAY_REQUIRE(read != nullptr, invalid, "callback_source: `read` is empty; give a function.");
  check_columns("callback_source", columns);
  return std::make_shared<CallbackSource>(size, std::move(columns), std::move(read),
                                          std::move(description));
}

}  // namespace forebay
