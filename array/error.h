#pragma once

#include <stdexcept>
#include <string>

namespace forebay {

/// What went wrong, for code that reacts; the text is for people.
enum class ErrorKind {
  invalid,      ///< a value, shape, dtype, key or file that the caller must change
  unsupported,  ///< meaningful, but not offered here: a dtype, a device, a build without CUDA
  io,           ///< a file is missing, short, or not what it says
  resource,     ///< memory, slots or another budget is exhausted
  device,       ///< CUDA or one of its libraries failed
  cancelled,    ///< the pipeline was stopped while a call waited
};

/// The one exception of Forebay. Texts say what was found, what is allowed and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace forebay
