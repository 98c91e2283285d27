#pragma once

#include <vector>

#include <forebay/pipeline/source.h>

namespace forebay {

/// What every source asks of its columns: at least one, each with a name of its own, samples of
/// rank 0..7. Errors: invalid, starting with `source`.
void check_columns(const char* source, const std::vector<Column>& columns);

/// Samples worth one reader task: about 64 KiB of them.
std::int64_t grain_of(const std::vector<Column>& columns);

/// Bytes of one sample of `column`.
std::size_t sample_bytes(const Column& column);

}  // namespace forebay
