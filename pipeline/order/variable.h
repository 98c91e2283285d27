#pragma once

// Internal.

namespace forebay {

/// `text`, the value of the environment variable `name`, as an integer.
/// Errors: invalid, naming the variable, when it is none or below `least`.
int integer_variable(const char* name, const char* text, int least);

}  // namespace forebay
