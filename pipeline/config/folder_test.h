#pragma once

#include <string>

#include "kit/kit.h"

namespace forebay {

/// A test whose files lie in a folder of its own, and whose texts are compared without its name.
class FolderTest : public testing::Test {
 protected:
  std::string without_folder(std::string text) const {
    for (std::size_t at; (at = text.find(folder_ + "/")) != std::string::npos;)
      text.erase(at, folder_.size() + 1);
    return text;
  }

  const std::string folder_ = kit::temporary_folder();
};

}  // namespace forebay
