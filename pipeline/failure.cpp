#include <forebay/pipeline/failure.h>

#include <algorithm>
#include <new>

#include <forebay/array/require.h>
#include <forebay/pipeline/mistakes.h>

namespace forebay {

void rethrow_at(const std::string& where, ErrorKind otherwise, std::string_view op) {
  try {
    throw;
  } catch (const Error& error) {
    throw Error(error.kind(), where + ": " + without_op_name(error.what(), op));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::resource, where + ": the host has no memory left.");
  } catch (const std::exception& error) {
    throw Error(otherwise, where + ": " + error.what());
  } catch (...) {
    throw Error(otherwise, where + ": an exception that is no std::exception.");
  }
}

std::string sample_title(std::span<const std::int64_t> samples) {
  constexpr std::size_t kNamed = 16;
  if (samples.size() == 1) return fmt::format("sample {}", samples[0]);
  const auto apart = [](std::int64_t a, std::int64_t b) { return b != a + 1; };
  if (std::adjacent_find(samples.begin(), samples.end(), apart) == samples.end() &&
      !samples.empty()) {
    return fmt::format("samples {}..{}", samples.front(), samples.back());
  }
  std::string text = "samples ";
  for (std::size_t i = 0; i < std::min(samples.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(samples[i]);
  }
  if (samples.size() > kNamed) text += fmt::format(" and {} more", samples.size() - kNamed);
  return text;
}

}  // namespace forebay
