#include <forebay/pipeline/source/npy_header.h>

#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include <forebay/array/require.h>

namespace forebay {
namespace {

static_assert(std::endian::native == std::endian::little,
              "byte orders below are named for a little-endian host");

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeCode {
  std::string_view code;  ///< kind and bytes of an element
  Dtype dtype;
};
constexpr TypeCode kTypeCodes[] = {{"b1", Dtype::boolean}, {"u1", Dtype::u8},   {"u2", Dtype::u16},
                                   {"u4", Dtype::u32},     {"u8", Dtype::u64},  {"i1", Dtype::i8},
                                   {"i2", Dtype::i16},     {"i4", Dtype::i32},  {"i8", Dtype::i64},
                                   {"f2", Dtype::f16},     {"f4", Dtype::f32},  {"f8", Dtype::f64},
                                   {"c8", Dtype::c64},     {"c16", Dtype::c128}};

/// One printable line, whatever the bytes are.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return text.size() > 40 ? out + ".." : out;
}

/// The dict literal of a header, `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`:
/// these three keys, each once, in any order. A string, True or False, and a tuple of integers are
/// all that it can hold.
class Literal {
 public:
  Literal(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  struct Result {
    std::string descr;
    bool fortran_order = false;
    Dims shape;
  };

  Result parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        once(has_descr_, key);
        result_.descr = descr();
      } else if (key == "fortran_order") {
        once(has_order_, key);
        result_.fortran_order = boolean();
      } else if (key == "shape") {
        once(has_shape_, key);
        result_.shape = tuple();
      } else {
        malformed(fmt::format("an unknown key `{}`", printable(key)));
      }
      if (!accept(',') && peek() != '}') malformed(found() + " where a comma or `}` belongs");
    }
    skip_blanks();
    if (at_ < text_.size()) malformed(found() + " after the closing brace");
    if (!has_descr_) malformed("no key `descr`");
    if (!has_order_) malformed("no key `fortran_order`");
    if (!has_shape_) malformed("no key `shape`");
    return result_;
  }

 private:
  [[noreturn]] void malformed(const std::string& what) const {
    fail(ErrorKind::io, "{}: malformed .npy header: it has {}. Save the array again with np.save.",
         path_, what);
  }

  std::string found() const {
    if (at_ >= text_.size()) return "its end";
    return fmt::format("`{}` at byte {}", printable(text_.substr(at_, 1)), at_);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }

  /// The next character that is not a blank; 0 at the end, which no header may hold otherwise.
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) malformed(fmt::format("{} where `{}` belongs", found(), c));
  }

  void once(bool& seen, std::string_view key) {
    if (seen) malformed(fmt::format("the key `{}` twice", key));
    seen = true;
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed(found() + " where a string belongs");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n')
      ++at_;
    if (at_ >= text_.size() || text_[at_] != quote) malformed("a string without its closing quote");
    return text_.substr(begin, at_++ - begin);
  }

  std::string descr() {
    if (peek() == '[') {
      fail(ErrorKind::unsupported,
           "{}: it holds records (a structured dtype). Save each field as a .npy file of its own.",
           path_);
    }
    return std::string(string());
  }

  bool word(std::string_view name) {
    if (!text_.substr(at_).starts_with(name)) return false;
    at_ += name.size();
    return true;
  }

  bool boolean() {
    skip_blanks();
    if (word("True")) return true;
    if (word("False")) return false;
    malformed(found() + " where True or False belongs");
  }

  std::int64_t integer() {
    skip_blanks();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) malformed("an extent that does not fit 64 bits");
    if (error != std::errc()) malformed(found() + " where an extent belongs");
    if (value < 0) malformed(fmt::format("the extent {}", value));
    at_ += static_cast<std::size_t>(end - begin);
    word("L");  // Python 2 wrote long integers so
    return value;
  }

  Dims tuple() {
    Dims shape;
    expect('(');
    while (!accept(')')) {
      const std::int64_t extent = integer();
      if (shape.rank == kMaxRank) {
        fail(ErrorKind::unsupported,
             "{}: it has more than {} axes; at most {} are supported. Reshape it.", path_, kMaxRank,
             kMaxRank);
      }
      shape.push_back(extent);
      // `(3)` is a number in Python, so one extent needs its comma as well.
      if (!accept(',') && (shape.rank == 1 || peek() != ')'))
        malformed(found() + " where a comma belongs");
    }
    return shape;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  Result result_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

struct ElementType {
  Dtype dtype;
  bool swapped;
};

/// What kind of data a descr without a Dtype is, and what to do about it.
std::string refusal(std::string_view descr) {
  const char kind = descr.size() > 1 ? descr[1] : '\0';
  if (descr == "O" || kind == 'O')
    return "Python objects, which only unpickling could read. Save a numeric array.";
  if (kind == 'U' || kind == 'S' || kind == 'a') return "strings. Map them to numbers first.";
  if (kind == 'M' || kind == 'm') return "dates or times. Save x.astype('int64').";
  if (kind == 'V') return "raw records (a void dtype). Save a numeric array.";
  return "a dtype that Forebay lacks; supported: bool, integers, f2, f4, f8, c8 and c16.";
}

ElementType element_type(std::string_view descr, const std::string& path) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view code = descr.empty() ? descr : descr.substr(1);
  for (const TypeCode& type : kTypeCodes) {
    if (code != type.code) continue;
    const bool single = size_of(type.dtype) == 1;
    if (order == '<' || order == '=' || (order == '|' && single)) return {type.dtype, false};
    if (order == '>') return {type.dtype, !single};
  }
  fail(ErrorKind::unsupported, "{}: its dtype `{}` is {}", path, printable(descr), refusal(descr));
}

/// Elements and bytes must fit 63 bits even where another extent is 0, so that strides fit too.
void check_size(const Dims& shape, Dtype dtype, const std::string& path) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t extent : shape) {
    FOREBAY_REQUIRE(!__builtin_mul_overflow(bytes, extent == 0 ? 1 : extent, &bytes), io,
                    "{}: malformed .npy header: the shape {} is larger than any memory.", path,
                    to_string(shape));
  }
}

[[noreturn]] void fail_magic(std::string_view start, const std::string& path) {
  const char* hint =
      start.starts_with("PK") ? "It looks like an .npz archive: save each array with np.save."
      : start.starts_with("\x80")
          ? "It looks like a pickle, which is not read since it can run code: use np.save."
          : "Save the array with np.save.";
  fail(ErrorKind::io, "{}: not a .npy file: it starts with `{}`. {}", path,
       printable(start.substr(0, kMagic.size())), hint);
}

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                           const std::string& path) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  FOREBAY_REQUIRE(!start.empty(), io, "{}: the file is empty. Save the array with np.save.", path);
  const std::string_view magic = start.substr(0, kMagic.size());
  if (!kMagic.starts_with(magic)) fail_magic(start, path);
  const auto require_bytes = [&](std::size_t needed) {
    FOREBAY_REQUIRE(
        start.size() >= needed, io,
        "{}: the .npy header is cut off: the file ends after {} bytes. Save the array again.", path,
        file_bytes);
  };
  require_bytes(8);
  const int major = static_cast<unsigned char>(start[6]),
            minor = static_cast<unsigned char>(start[7]);
  FOREBAY_REQUIRE(major >= 1 && major <= 3 && minor == 0, unsupported,
                  "{}: .npy format version {}.{}; supported: 1.0, 2.0 and 3.0.", path, major,
                  minor);
  const std::size_t preamble = major == 1 ? 10 : 12;
  require_bytes(preamble);
  const std::size_t length = little_endian(start.substr(8, preamble - 8));
  FOREBAY_REQUIRE(length <= kMaxNpyHeaderBytes, io,
                  "{}: malformed .npy header: it claims {} bytes; at most {} are read.", path,
                  length, kMaxNpyHeaderBytes);
  require_bytes(preamble + length);

  const Literal::Result literal = Literal(start.substr(preamble, length), path).parse();
  const ElementType type = element_type(literal.descr, path);
  check_size(literal.shape, type.dtype, path);
  int extents_above_1 = 0;
  for (const std::int64_t extent : literal.shape)
    extents_above_1 += extent != 1;
  FOREBAY_REQUIRE(!literal.fortran_order || extents_above_1 <= 1, unsupported,
                  "{}: the array is in Fortran order. Save np.ascontiguousarray(x).", path);

  const NpyHeader header{{type.dtype, literal.shape}, type.swapped, preamble + length};
  const std::uint64_t found = file_bytes - header.data_offset;
  FOREBAY_REQUIRE(
      found == header.data_bytes(), io,
      "{}: {} {} takes {} bytes but {} follow the header; the file is {}. Save the array again.",
      path, name_of(type.dtype), to_string(literal.shape), header.data_bytes(), found,
      found < header.data_bytes() ? "cut off" : "too long");
  return header;
}

std::string make_npy_header(const ArraySpec& spec) {
  std::string_view code;
  for (const TypeCode& type : kTypeCodes) {
    if (type.dtype == spec.dtype) code = type.code;
  }
  const char order = size_of(spec.dtype) == 1 ? '|' : '<';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                                 order, code, to_string(spec.shape));
  constexpr std::size_t kPreamble = 10, kAlignment = 64;
  text.append(kAlignment - (kPreamble + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace forebay
