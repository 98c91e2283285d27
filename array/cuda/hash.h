#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forebay::cuda {

/// FNV-1a with 128 bits over a list of texts; each counts with its length, so that ("ab", "c") is
/// not ("a", "bc").
class Hash {
 public:
  void add(std::string_view text) {
    const std::uint64_t length = text.size();
    add_bytes({reinterpret_cast<const char*>(&length), sizeof length});
    add_bytes(text);
  }
  /// 32 hexadecimal digits.
  std::string text() const {
    std::string digits;
    for (int shift = 124; shift >= 0; shift -= 4) {
      digits += "0123456789abcdef"[static_cast<unsigned>(state_ >> shift) & 15];
    }
    return digits;
  }

 private:
  using Word = unsigned __int128;
  static constexpr Word word(std::uint64_t high, std::uint64_t low) {
    return Word{high} << 64 | low;
  }
  void add_bytes(std::string_view bytes) {
    for (unsigned char byte : bytes)
      state_ = (state_ ^ byte) * word(0x0000000001000000, 0x000000000000013b);
  }
  Word state_ = word(0x6c62272e07bb0142, 0x62b821756295c58d);
};

}  // namespace forebay::cuda
