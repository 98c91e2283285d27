#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include <forebay/array/require.h>
#include <forebay/pipeline/failure.h>
#include <forebay/pipeline/source/columns.h>
#include <forebay/pipeline/source/parts.h>

namespace forebay {
namespace {

/// Where rows of a batch are read to: straight to their places if these follow one another, else to
/// memory from which `deliver` brings them there.
class Rows {
 public:
  Rows(const ArrayView& batch, std::span<const std::size_t> rows)
      : batch_(batch),
        rows_(rows),
        bytes_(static_cast<std::size_t>(batch.strides[0]) * size_of(batch.dtype)),
        view_(batch) {
    view_.shape[0] = static_cast<std::int64_t>(rows.size());
    if (rows.back() - rows.front() + 1 == rows.size()) {
      view_.data = place(rows.front());
    } else {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(rows.size() * bytes_);
      view_.data = memory_.get();
    }
  }
  const ArrayView& view() const { return view_; }
  void deliver() const {
    if (memory_ == nullptr) return;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      std::memcpy(place(rows_[i]), memory_.get() + i * bytes_, bytes_);
  }

 private:
  std::byte* place(std::size_t row) const {
    return static_cast<std::byte*>(batch_.data) + row * bytes_;
  }

  ArrayView batch_;
  std::span<const std::size_t> rows_;
  std::size_t bytes_;  // of a row
  ArrayView view_;
  std::unique_ptr<std::byte[]> memory_;
};

class ConcatSource final : public Source {
 public:
  ConcatSource(std::vector<SourcePart> parts, const std::string& source_field)
      : parts_(std::move(parts)), columns_(parts_.front().source->columns()) {
    for (SourcePart& part : parts_) {
      part.first = size_;
      size_ += part.source->size();
      for (const Column& column : columns_)
        numbers_.push_back(
            static_cast<std::size_t>(find_column(part.source->columns(), column.name)));
    }
    for (const Column& column : columns_)
      bytes_ += sample_bytes(column);
    if (!source_field.empty()) columns_.push_back({source_field, Dtype::i64, {}});
  }

  std::int64_t size() const override { return size_; }
  const std::vector<Column>& columns() const override { return columns_; }
  std::span<const SourcePart> parts() const override { return parts_; }

  std::string describe() const override {
    std::string text;
    for (const SourcePart& part : parts_)
      text += fmt::format("{}{} ({})", text.empty() ? "concat " : ", ", part.name,
                          part.source->describe());
    return text;
  }

  SampleOrigin origin(std::int64_t index) const override {
    const SourcePart& from = part(number_of_part(parts_, index));
    return {from.name, index - from.first};
  }

  std::string fingerprint() const override {
    std::string text;
    for (const SourcePart& part : parts_)
      text += (text.empty() ? "" : ", ") + part.source->fingerprint();
    return text;
  }

  std::int64_t grain() const override {
    std::int64_t least = parts_.front().source->grain();
    for (const SourcePart& part : parts_)
      least = std::min(least, part.source->grain());
    return least;
  }

  void read(std::span<const std::int64_t> indices,
            std::span<const ArrayView> targets) const override {
    by_part(indices, [&](int number, std::span<const std::int64_t> samples,
                         std::span<const std::size_t> rows) {
      std::vector<Rows> to;
      std::vector<ArrayView> of_part(fields());
      for (std::size_t c = 0; c < fields(); ++c)
        of_part[index_in(number, c)] = to.emplace_back(targets[c], rows).view();
      part(number).source->read(samples, of_part);
      for (const Rows& column : to)
        column.deliver();
      if (fields() < columns_.size()) write_number(number, targets.back(), rows);
    });
  }

  void read_column(int column, std::span<const std::int64_t> indices,
                   const ArrayView& target) const override {
    const auto c = static_cast<std::size_t>(column);
    by_part(indices, [&](int number, std::span<const std::int64_t> samples,
                         std::span<const std::size_t> rows) {
      if (c == fields()) return write_number(number, target, rows);
      const Rows to(target, rows);
      part(number).source->read_column(static_cast<int>(index_in(number, c)), samples, to.view());
      to.deliver();
    });
  }

 private:
  /// Columns that are read from the parts.
  std::size_t fields() const { return numbers_.size() / parts_.size(); }
  const SourcePart& part(int number) const { return parts_[static_cast<std::size_t>(number)]; }
  std::size_t index_in(int number, std::size_t column) const {
    return numbers_[static_cast<std::size_t>(number) * fields() + column];
  }

  static void write_number(int number, const ArrayView& target, std::span<const std::size_t> rows) {
    for (const std::size_t row : rows)
      target.as<std::int64_t>()[row] = number;
  }

  /// Calls `read(part, samples, rows)` for each part that has any of `indices`: their indices in
  /// the part, and where they stand, in order. Large samples come in as many calls as it takes for
  /// their rows to follow one another: a call costs less than to copy them once more.
  template <class F>
  void by_part(std::span<const std::int64_t> indices, F read) const {
    std::vector<std::pair<int, std::size_t>> order;
    order.reserve(indices.size());
    for (std::size_t row = 0; row < indices.size(); ++row)
      order.emplace_back(number_of_part(parts_, indices[row]), row);
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> samples;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < order.size(); i += rows.size()) {
      const int number = order[i].first;
      samples.clear();
      rows.clear();
      for (std::size_t k = i; k < order.size() && order[k].first == number; ++k) {
        if (bytes_ > kCopied && k > i && order[k].second != rows.back() + 1) break;
        rows.push_back(order[k].second);
        samples.push_back(indices[rows.back()] - part(number).first);
      }
      try {
        read(number, samples, rows);
      } catch (...) {
        rethrow_at(fmt::format("{} of {}", sample_title(samples), part(number).name),
                   ErrorKind::io);
      }
    }
  }

  static constexpr std::size_t kCopied = 2048;

  std::vector<SourcePart> parts_;
  std::vector<Column> columns_;
  std::vector<std::size_t> numbers_;  // for each part, its number of each column
  std::int64_t size_ = 0;
  std::size_t bytes_ = 0;  // of a sample of the parts
};

std::string column_text(const Column& column) {
  return fmt::format("{} {}", name_of(column.dtype), to_string(column.shape));
}

void check_names(const std::vector<SourcePart>& parts, const std::string& source_field) {
  FOREBAY_REQUIRE(!parts.empty(), invalid, "concat_source: it has no parts; give at least one.");
  std::set<std::string> names;
  for (const SourcePart& part : parts) {
    FOREBAY_REQUIRE(!part.name.empty(), invalid,
                    "concat_source: a source has an empty name; give it one.");
    FOREBAY_REQUIRE(names.insert(part.name).second, invalid,
                    "concat_source: two sources are called `{}`; names must differ.", part.name);
    FOREBAY_REQUIRE(part.source != nullptr, invalid, "concat_source: `{}` is null; give a source.",
                    part.name);
  }
  FOREBAY_REQUIRE(find_column(parts.front().source->columns(), source_field) < 0, invalid,
                  "concat_source: `source_field` is `{}`, which is a column of the sources; take "
                  "another name.",
                  source_field);
}

}  // namespace

int number_of_part(std::span<const SourcePart> parts, std::int64_t sample) {
  const auto behind =
      std::upper_bound(parts.begin(), parts.end(), sample,
                       [](std::int64_t s, const SourcePart& part) { return s < part.first; });
  return static_cast<int>(behind - parts.begin()) - 1;
}

std::vector<std::string> column_mistakes(const SourcePart& first, const SourcePart& other) {
  std::vector<std::string> mistakes;
  const std::vector<Column>& wanted = first.source->columns();
  for (const Column& column : wanted) {
    const int number = find_column(other.source->columns(), column.name);
    if (number < 0) {
      mistakes.push_back(fmt::format("`{}` has no column `{}`, which is {} in `{}`", other.name,
                                     column.name, column_text(column), first.name));
      continue;
    }
    const Column& found = other.source->columns()[static_cast<std::size_t>(number)];
    if (found.dtype != column.dtype || found.shape != column.shape)
      mistakes.push_back(fmt::format("column `{}` is {} in `{}`, but {} in `{}`", column.name,
                                     column_text(found), other.name, column_text(column),
                                     first.name));
  }
  for (const Column& column : other.source->columns()) {
    if (find_column(wanted, column.name) < 0)
      mistakes.push_back(fmt::format("column `{}` is {} in `{}`, but `{}` has none", column.name,
                                     column_text(column), other.name, first.name));
  }
  for (std::string& mistake : mistakes)
    mistake += "; sources that are put together have the same columns.";
  return mistakes;
}

SourcePtr concat_source(std::vector<SourcePart> parts, const std::string& source_field) {
  check_names(parts, source_field);
  std::string mistakes;
  for (const SourcePart& part : parts) {
    for (const std::string& mistake : column_mistakes(parts.front(), part))
      mistakes += (mistakes.empty() ? "concat_source: " : "\nconcat_source: ") + mistake;
  }
  if (!mistakes.empty()) fail(ErrorKind::invalid, "{}", mistakes);
  auto source = std::make_shared<ConcatSource>(std::move(parts), source_field);
  check_columns("concat_source", source->columns());
  return source;
}

}  // namespace forebay
