#include <forebay/pipeline/quarantine.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <forebay/array/require.h>

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// How each line begins; no other file has a first line like that by chance.
constexpr std::string_view kBegin = R"({"source":)";

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
/// What makes two lines the same sample.
std::string key_of(const Json& line) {
  return text_of(Json::array({line.at("source"), line.at("index")}));
}

/// One process at a time. Where the file system has no locks, lines are whole all the same, but two
/// processes may add one sample each.
class Lock {
 public:
  explicit Lock(int file) : file_(file) {
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() { flock(file_, LOCK_UN); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

}  // namespace

Quarantine::Quarantine(std::string path)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  FOREBAY_REQUIRE(file_ >= 0, io, "{}: bad samples cannot be listed in it: {}.", path_,
                  std::strerror(errno));
  try {
    struct stat status = {};
    FOREBAY_REQUIRE(fstat(file_, &status) == 0 && S_ISREG(status.st_mode), io,
                    "{}: bad samples cannot be listed in it: it is not a file.", path_);
    const Lock lock(file_);
    read_on();
  } catch (...) {
    close(file_);
    throw;
  }
}

Quarantine::~Quarantine() { close(file_); }

/// Takes in what has been added since, and takes away a line without its end: its writer was ended,
/// since this process has the lock.
void Quarantine::read_on() {
  std::string text;
  for (char buffer[1 << 14];;) {
    const ssize_t count =
        pread(file_, buffer, sizeof buffer, known_bytes_ + static_cast<std::int64_t>(text.size()));
    FOREBAY_REQUIRE(count >= 0, io, "{}: it cannot be read: {}.", path_, std::strerror(errno));
    if (count == 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    take_line(text.substr(begin, end - begin));
  const std::string_view rest = std::string_view(text).substr(begin);
  const auto begun = std::min(rest.size(), kBegin.size());
  FOREBAY_REQUIRE(rest.substr(0, begun) == kBegin.substr(0, begun), invalid,
                  "{}: it ends with something else than a bad sample; name another file as "
                  "`quarantine`.",
                  path_);
  known_bytes_ += static_cast<std::int64_t>(begin);
  FOREBAY_REQUIRE(rest.empty() || ftruncate(file_, known_bytes_) == 0, io,
                  "{}: it cannot be written: {}.", path_, std::strerror(errno));
}

void Quarantine::take_line(const std::string& line) {
  ++lines_;
  const Json json = Json::parse(line, nullptr, false);
  FOREBAY_REQUIRE(json.is_object() && json.contains("source") && json.contains("index"), invalid,
                  "{}:{}: this is no line about a bad sample; name another file as `quarantine`.",
                  path_, lines_);
  known_.insert(key_of(json));
}

void Quarantine::add(std::span<const BadSample> samples) {
  const Lock lock(file_);
  read_on();
  std::unordered_set<std::string> added;
  std::string lines;
  for (const BadSample& sample : samples) {
    const Json line = {
        {"source", sample.source}, {"index", sample.index}, {"reason", sample.reason}};
    const std::string text = text_of(line), key = key_of(Json::parse(text));
    if (!known_.contains(key) && added.insert(key).second) lines += text + "\n";
  }
  append(lines);
  known_.merge(added);
}

void Quarantine::append(const std::string& lines) {
  for (std::size_t done = 0; done < lines.size();) {
    const ssize_t count = write(file_, lines.data() + done, lines.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      if (ftruncate(file_, known_bytes_) != 0) {
        // What is left of a line is taken away by the next who reads it.
      }
      fail(ErrorKind::io, "{}: bad samples cannot be listed in it: {}.", path_,
           std::strerror(error));
    }
    done += static_cast<std::size_t>(count);
  }
  known_bytes_ += static_cast<std::int64_t>(lines.size());
  lines_ += std::count(lines.begin(), lines.end(), '\n');
}

}  // namespace forebay
