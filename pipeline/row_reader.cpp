#include <forebay/pipeline/row_reader.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include <forebay/array/parallel.h>
#include <forebay/array/require.h>
#include <forebay/pipeline/failure.h>

namespace forebay {
namespace {

constexpr double kDefaultShare = 0.1;

using Rows = RowReader::Rows;

std::span<const std::int64_t> samples_of(const Rows& rows, std::int64_t begin, std::int64_t end) {
  return {rows.ids + begin, static_cast<std::size_t>(end - begin)};
}

/// Bytes of a row.
std::size_t pitch(const ArrayView& column) {
  return static_cast<std::size_t>(column.strides[0]) * size_of(column.dtype);
}

std::byte* row_of(const ArrayView& column, std::int64_t row) {
  return static_cast<std::byte*>(column.data) + static_cast<std::size_t>(row) * pitch(column);
}

std::vector<ArrayView> part_of(const Rows& rows, std::int64_t begin, std::int64_t end) {
  std::vector<ArrayView> targets = rows.columns;
  for (ArrayView& target : targets) {
    target.data = row_of(target, begin);
    target.shape[0] = end - begin;
  }
  return targets;
}

std::string title_of(const Source& source, const BatchPosition& position,
                     std::span<const std::int64_t> samples) {
  return fmt::format("source {}, epoch {}, batch {}, {}", source.describe(), position.epoch,
                     position.step, sample_title(samples));
}

/// Other samples would fail likewise.
bool is_the_machines(ErrorKind kind) {
  return kind == ErrorKind::resource || kind == ErrorKind::device || kind == ErrorKind::cancelled;
}

/// The rows behind each of `bad` move up to where the gap is; their order stays.
void close_gaps(const Rows& rows, std::span<const std::pair<std::int64_t, std::string>> bad) {
  std::int64_t to = bad[0].first;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const std::int64_t begin = bad[i].first + 1;
    const std::int64_t end = i + 1 < bad.size() ? bad[i + 1].first : rows.count;
    const auto count = static_cast<std::size_t>(end - begin);
    for (const ArrayView& column : rows.columns) {
      if (count > 0 && pitch(column) > 0)
        std::memmove(row_of(column, to), row_of(column, begin), count * pitch(column));
    }
    std::memmove(rows.ids + to, rows.ids + begin, count * sizeof(std::int64_t));
    to += end - begin;
  }
}

}  // namespace

std::int64_t limit_of(const OnError& on_error, const Sampler& sampler) {
  const std::int64_t samples = sampler.samples_of_shard();
  const auto share = [&](double part) {
    return static_cast<std::int64_t>(std::floor(part * static_cast<double>(samples)));
  };
  if (!on_error.max_count) return share(on_error.max_share.value_or(kDefaultShare));
  return std::min(*on_error.max_count, share(on_error.max_share.value_or(1)));
}

RowReader::RowReader(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)),
      source_(*plan_->spec->source),
      on_error_(plan_->spec->on_error),
      checks_(*plan_->spec),
      limit_(limit_of(on_error_, *plan_->sampler)) {}

Losses RowReader::read(const BatchPosition& position, const Rows& rows,
                       const std::function<void()>& go_on) const {
  if (on_error_.mode == ErrorMode::fail) {
    // Blocks of fixed size, so that a failure names the same samples whatever the number of threads.
    parallel_blocks(rows.count, source_.grain(), [&](std::int64_t begin, std::int64_t end) {
      go_on();
      read_block(position, rows, begin, end);
    });
    return {};
  }
  const std::vector<BadRow> bad = find_bad(position, rows, go_on);
  if (bad.empty()) return {};
  Losses losses;
  for (const auto& [row, reason] : bad) {
    // Another row or shard has those that are not real at their own positions.
    if (row >= plan_->sampler->real_rows(position.cursor)) break;
    const auto [source, index] = source_.origin(rows.ids[row]);
    losses.samples.push_back({source, index, reason});
  }
  if (!allows(losses)) return losses;
  if (on_error_.mode == ErrorMode::skip) close_gaps(rows, bad);
  losses.hopeless = substitute(position, rows, bad, go_on);
  return losses;
}

void RowReader::read_block(const BatchPosition& position, const Rows& rows, std::int64_t begin,
                           std::int64_t end) const {
  const auto samples = samples_of(rows, begin, end);
  try {
    source_.read(samples, part_of(rows, begin, end));
  } catch (...) {
    rethrow_at(title_of(source_, position, samples), ErrorKind::io);
  }
  if (!checks_.broken(rows.columns, begin, end)) return;
  for (std::int64_t row = begin; row < end; ++row) {
    if (const auto reason = checks_.broken(rows.columns, row, row + 1))
      fail(ErrorKind::invalid, "{}: {}.",
           title_of(source_, position, samples_of(rows, row, row + 1)), *reason);
  }
}

/// Reads one sample alone; returns why it is bad, or nothing.
std::string RowReader::read_row(const BatchPosition& position, const Rows& rows,
                                std::int64_t row) const {
  const auto sample = samples_of(rows, row, row + 1);
  try {
    source_.read(sample, part_of(rows, row, row + 1));
  } catch (...) {
    const std::string title = title_of(source_, position, sample);
    try {
      rethrow_at(title, ErrorKind::io, sample_title(sample));
    } catch (const Error& error) {
      if (is_the_machines(error.kind())) throw;
      return without_op_name(error.what(), title);
    }
  }
  return checks_.broken(rows.columns, row, row + 1).value_or("");
}

std::vector<RowReader::BadRow> RowReader::find_bad(const BatchPosition& position, const Rows& rows,
                                                   const std::function<void()>& go_on) const {
  std::mutex mutex;
  std::vector<BadRow> bad;
  parallel_blocks(rows.count, source_.grain(), [&](std::int64_t begin, std::int64_t end) {
    go_on();
    try {
      source_.read(samples_of(rows, begin, end), part_of(rows, begin, end));
      if (!checks_.broken(rows.columns, begin, end)) return;
    } catch (...) {
      // Which of them it was, and whether it is the sample's fault, is found out below.
    }
    for (std::int64_t row = begin; row < end; ++row) {
      go_on();
      const std::string reason = read_row(position, rows, row);
      if (reason.empty()) continue;
      const std::lock_guard lock(mutex);
      bad.emplace_back(row, reason);
    }
  });
  std::sort(bad.begin(), bad.end());
  return bad;
}

/// Fills the rows of `bad`, or in mode skip as many at the end. Returns what is hopeless.
std::string RowReader::substitute(const BatchPosition& position, const Rows& rows,
                                  const std::vector<BadRow>& bad,
                                  const std::function<void()>& go_on) const {
  const auto count = static_cast<std::int64_t>(bad.size());
  std::atomic<std::int64_t> first_hopeless{count};
  std::mutex mutex;
  std::string hopeless;
  parallel_blocks(count, 1, [&](std::int64_t i, std::int64_t) {
    const auto& [original, reason] = bad[static_cast<std::size_t>(i)];
    const std::int64_t row = on_error_.mode == ErrorMode::skip ? rows.count - count + i : original;
    std::string last;
    for (std::int64_t attempt = 0; attempt < Sampler::kMostAttempts; ++attempt) {
      if (i > first_hopeless) return;
      go_on();
      rows.ids[row] = plan_->sampler->substitute(position, original, plan_->spec->seed, attempt);
      last = read_row(position, rows, row);
      if (last.empty()) return;
    }
    const std::lock_guard lock(mutex);
    if (i > first_hopeless) return;
    first_hopeless = i;
    hopeless = fmt::format(
        "{} samples were drawn in the place of one that is bad ({}), and all of "
        "them are bad too; the last, sample {}: {}",
        Sampler::kMostAttempts, reason, rows.ids[row], last);
  });
  return hopeless;
}

}  // namespace forebay
