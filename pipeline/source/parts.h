#pragma once

// Internal: sources that are put together.

#include <span>
#include <string>
#include <vector>

#include <forebay/pipeline/source.h>

namespace forebay {

/// The number of the part that has `sample`, which is one of theirs.
int number_of_part(std::span<const SourcePart> parts, std::int64_t sample);

/// Everything in which the columns of `other` are not those of `first`, each with both sides.
std::vector<std::string> column_mistakes(const SourcePart& first, const SourcePart& other);

}  // namespace forebay
