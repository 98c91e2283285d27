#include <forebay/pipeline/source/npy_file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <forebay/array/require.h>

namespace forebay {
namespace {

template <std::size_t kBytes>
void swap_words(std::byte* data, std::size_t bytes) {
  for (std::byte* end = data + bytes; data != end; data += kBytes)
    std::reverse(data, data + kBytes);
}

/// The two parts of a complex number are swapped each on its own.
void swap_elements(Dtype dtype, std::byte* data, std::size_t bytes) {
  switch (size_of(real_of(dtype))) {
    case 2:
      swap_words<2>(data, bytes);
      break;
    case 4:
      swap_words<4>(data, bytes);
      break;
    case 8:
      swap_words<8>(data, bytes);
      break;
    default:
      break;
  }
}

/// Random access turns the system's read-ahead off; a run of this many bytes asks for its pages
/// itself.
constexpr std::size_t kReadAheadBytes = 32 << 10;

}  // namespace

MappedFile::MappedFile(const std::string& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  FOREBAY_REQUIRE(descriptor_ >= 0, io, "{}: cannot be opened: {}.", path, std::strerror(errno));
  const auto refuse = [&](const char* what) {
    close(descriptor_);
    fail(ErrorKind::io, "{}: {}.", path, what);
  };
  struct stat status = {};
  if (fstat(descriptor_, &status) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse("it is not a file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // nothing can be mapped
  void* const map = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (map == MAP_FAILED) refuse(std::strerror(errno));
  map_ = static_cast<std::byte*>(map);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)),
      map_(std::exchange(other.map_, nullptr)) {}

MappedFile::~MappedFile() {
  if (map_ != nullptr) munmap(map_, size_);
  if (descriptor_ >= 0) close(descriptor_);
}

std::size_t MappedFile::length() const {
  struct stat status = {};
  return fstat(descriptor_, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

NpyFile::NpyFile(std::string path)
    : path_(std::move(path)),
      file_(path_),
      header_(parse_npy_header(file_.bytes(), file_.bytes().size(), path_)) {}

void NpyFile::advise_random() const {
  const auto bytes = file_.bytes();
  madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_RANDOM);
}

void NpyFile::require_whole() const {
  const std::size_t length = file_.length(), opened = file_.bytes().size();
  FOREBAY_REQUIRE(length >= opened, io,
                  "{}: the file has shrunk from {} to {} bytes since it was opened.", path_, opened,
                  length);
}

void NpyFile::read(std::size_t offset, std::size_t bytes, std::byte* target) const {
  const std::byte* source = file_.bytes().data() + header_.data_offset + offset;
  if (bytes >= kReadAheadBytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(source) / page * page;
    const auto end = reinterpret_cast<std::uintptr_t>(source) + bytes;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
  }
  if (header_.spec.dtype == Dtype::boolean) {
    // The file can hold any byte; a bool that is neither 0 nor 1 is undefined behaviour.
    std::transform(source, source + bytes, target,
                   [](std::byte b) { return std::byte{b != std::byte{0}}; });
    return;
  }
  std::memcpy(target, source, bytes);
  if (header_.swapped) swap_elements(header_.spec.dtype, target, bytes);
}

}  // namespace forebay
