#pragma once

#include <string>

#include <forebay/pipeline/source/npy_header.h>

namespace forebay {

/// A file mapped into memory, read-only; unmapped and closed with its owner. Move-only.
class MappedFile {
 public:
  /// Errors: io for a file that is missing, not a regular file, or cannot be mapped.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {map_, size_}; }
  /// The file's length now.
  std::size_t length() const;

 private:
  int descriptor_ = -1;
  std::size_t size_ = 0;
  std::byte* map_ = nullptr;
};

/// A .npy file whose header has been checked against its length.
class NpyFile {
 public:
  /// Errors: as MappedFile and parse_npy_header.
  explicit NpyFile(std::string path);

  const std::string& path() const { return path_; }
  const ArraySpec& spec() const { return header_.spec; }

  /// Tells the system that pages are wanted in no order.
  void advise_random() const;

  /// A page that a shrunken file no longer has ends the process with SIGBUS, so this is asked
  /// before data is read. A file that shrinks while it is read cannot be caught: replace files by
  /// renaming, do not cut them. Errors: io when the file is shorter than it was.
  void require_whole() const;

  /// Copies `bytes` bytes of the data from `offset` to `target`: host byte order, bools as 0 or 1.
  void read(std::size_t offset, std::size_t bytes, std::byte* target) const;

 private:
  std::string path_;
  MappedFile file_;
  NpyHeader header_;
};

}  // namespace forebay
