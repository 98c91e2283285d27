#include <cstdio>

#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/pipeline.h>

namespace forebay {

Pipeline Pipeline::from_file(const std::string& path, const Options& options) {
  std::vector<std::string> notes;
  Spec spec = load_spec(path, {.notes = &notes});
  for (const std::string& note : notes)
    std::fprintf(stderr, "%s\n", note.c_str());
  return from_spec(std::move(spec), options);
}

}  // namespace forebay
