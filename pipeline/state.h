#pragma once

// Internal: the text of a saved state.

#include <string>
#include <string_view>

#include <forebay/pipeline/feed.h>
#include <forebay/pipeline/identity.h>

namespace forebay {

/// JSON: the version of the format, epoch and cursor, where bad samples are not failures their
/// count, and `identity` with its hashes.
std::string write_state(const Identity& identity, const Standing& standing);

/// Where the run stood. Errors: invalid for text that is no state or of another version; unless
/// `allow_changes`, invalid when it is of another pipeline or dataset than `identity`, naming each
/// part that differs, with what it was and what it is.
Standing read_state(std::string_view text, const Identity& identity, bool allow_changes);

}  // namespace forebay
