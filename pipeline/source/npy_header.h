#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <forebay/ops/op.h>

namespace forebay {

/// Where and what the data of a .npy file is.
struct NpyHeader {
  ArraySpec spec;
  bool swapped = false;         ///< stored in the other byte order
  std::size_t data_offset = 0;  ///< bytes from the start of the file

  std::size_t data_bytes() const {
    return static_cast<std::size_t>(count_of(spec.shape)) * size_of(spec.dtype);
  }
};

/// Longest header that is read; NumPy's own are about 120 bytes.
inline constexpr std::size_t kMaxNpyHeaderBytes = 64 << 10;

/// Reads the header of format version 1, 2 or 3 from the first bytes of a file (all of it, or at
/// least kMaxNpyHeaderBytes + 12 bytes) and checks it against the file's length. Trusts nothing in
/// it. Errors: io for a malformed header or a length that is not the data's; unsupported for
/// Fortran order, objects, records, strings, dates and dtypes without a Dtype. Each text starts
/// with `path`.
NpyHeader parse_npy_header(std::span<const std::byte> start, std::uint64_t file_bytes,
                           const std::string& path);

/// A header of format version 1 for dense little-endian data, padded so that the data starts at a
/// multiple of 64. bf16, which NumPy lacks, has no header of its own: the caller widens it.
std::string make_npy_header(const ArraySpec& spec);

}  // namespace forebay
