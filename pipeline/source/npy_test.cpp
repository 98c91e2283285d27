#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <forebay/pipeline/source.h>
#include <forebay/pipeline/source/npy_header.h>

#include "kit/kit.h"

namespace forebay {
namespace {

using namespace std::literals;

std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::string in_folder(const std::string& name, const std::string& bytes) {
  static const std::string folder = kit::temporary_folder();
  const std::string path = folder + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string little(std::size_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

/// The bytes of a .npy file of any format version with this dict and data.
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  return "\x93NUMPY"s + static_cast<char>(version) + '\0' +
         little(dict.size(), version == 1 ? 2 : 4) + dict + data;
}

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape +
         ", }      \n";
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.begin(), out.size());
  return out;
}

/// What reading `bytes` throws, without the folder in front of the file's name.
kit::Caught refused(const std::string& bytes) {
  const std::string path = in_folder("x.npy", bytes);
  kit::Caught caught = kit::caught([&] { read_npy(path); });
  if (caught.text.starts_with(path)) caught.text.replace(0, path.size(), "x.npy");
  return caught;
}

#define EXPECT_REFUSED(bytes, error_kind, error_text)              \
  do {                                                             \
    const auto refused_ = refused(bytes);                          \
    EXPECT_EQ(refused_.text, error_text);                          \
    EXPECT_EQ(static_cast<int>(refused_.kind),                     \
              static_cast<int>(::forebay::ErrorKind::error_kind)); \
  } while (false)

class NpyRoundTrip : public testing::TestWithParam<Dtype> {};

TEST_P(NpyRoundTrip, KeepsEveryBitDtypeAndShape) {
  for (const Dims& shape :
       {Dims(), Dims(0), Dims(7), Dims(3, 0, 2), Dims(2, 3, 4), Dims(1, 2, 1, 2, 1, 2, 1, 2)}) {
    const Array x = kit::random(shape, GetParam(), 5);
    const std::string path = in_folder("round.npy", "");
    write_npy(path, x.view());
    const Array y = read_npy(path);
    EXPECT_TRUE(kit::same_bits(x, y));
    EXPECT_EQ((bytes_of_file(path).size() - x.bytes()) % 64, 0u);
  }
}

std::vector<Dtype> dtypes_of_numpy() {
  std::vector<Dtype> dtypes;
  for (const Dtype dtype : kAllDtypes) {
    if (dtype != Dtype::bf16) dtypes.push_back(dtype);
  }
  return dtypes;
}

INSTANTIATE_TEST_SUITE_P(Dtypes, NpyRoundTrip, testing::ValuesIn(dtypes_of_numpy()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Npy, WritesBf16AsTheSameNumbersInF32) {
  const Array x = kit::random({5}, Dtype::bf16, 1);
  const std::string path = in_folder("bf16.npy", "");
  write_npy(path, x.view());
  const Array y = read_npy(path);
  EXPECT_EQ(y.dtype(), Dtype::f32);
  EXPECT_EQ(kit::values(x), kit::values(y));
}

TEST(Npy, WritesWhatNumPyWrites) {
  const std::string path = in_folder("golden.npy", "");
  write_npy(path, Array::from({2, 3}, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}).view());
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  EXPECT_EQ(bytes_of_file(path), npy(header + "\n", raw<std::int32_t>({1, 2, 3, 4, 5, 6})));
}

TEST(Npy, ReadsEveryFormatVersion) {
  for (const int version : {1, 2, 3}) {
    const Array x = read_npy(
        in_folder("v.npy", npy(dict("<u2", "(3,)"), raw<std::uint16_t>({1, 2, 515}), version)));
    EXPECT_EQ(kit::values(x), (std::vector<double>{1, 2, 515}));
  }
}

TEST(Npy, ReadsOtherSpellingsOfTheDict) {
  for (const std::string& text :
       {R"({"shape":(2,),"fortran_order":False,"descr":"<i2"})"s,
        "{'descr':'=i2','shape':(2L,),'fortran_order':False}"s,
        " {'fortran_order' : False ,\t'shape' : ( 2 , ) , 'descr' : '<i2' , } \n \n"s}) {
    EXPECT_EQ(kit::values(read_npy(in_folder("s.npy", npy(text, raw<std::int16_t>({-7, 9}))))),
              (std::vector<double>{-7, 9}));
  }
}

TEST(Npy, SwapsBigEndianElements) {
  const auto read = [](const std::string& descr, const std::string& data) {
    return kit::complex_values(read_npy(in_folder("big.npy", npy(dict(descr, "(1,)"), data))));
  };
  using Values = std::vector<std::complex<double>>;
  EXPECT_EQ(read(">u2", "\x01\x02"s), Values{258});
  EXPECT_EQ(read(">i4", "\xff\xff\xff\xfe"s), Values{-2});
  EXPECT_EQ(read(">i8", "\0\0\0\1\0\0\0\0"s), Values{4294967296.0});
  EXPECT_EQ(read(">f2", "\x3e\x00"s), Values{1.5});
  EXPECT_EQ(read(">f4", "\x3f\xc0\0\0"s), Values{1.5});
  EXPECT_EQ(read(">f8", "\x3f\xf8\0\0\0\0\0\0"s), Values{1.5});
  EXPECT_EQ(read(">c8", "\x3f\xc0\0\0\xc0\0\0\0"s), (Values{{1.5, -2}}));
  EXPECT_EQ(read(">c16", "\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0"s), (Values{{1.5, -2}}));
  EXPECT_EQ(read(">u1", "\xc8"s), Values{200});
  EXPECT_EQ(read(">b1", "\1"s), Values{1});
}

TEST(Npy, ReadsAnyNonzeroByteOfABoolAsTrue) {
  const Array x = read_npy(in_folder("b.npy", npy(dict("|b1", "(4,)"), "\0\1\2\xff"s)));
  const auto* bytes = x.as<const std::uint8_t>();
  EXPECT_EQ(std::vector<int>(bytes, bytes + 4), (std::vector<int>{0, 1, 1, 1}));
}

TEST(Npy, TakesFortranOrderWhereItIsTheSameOrder) {
  const std::string data = raw<std::int16_t>({4, 5});
  EXPECT_EQ(kit::values(read_npy(in_folder("f.npy", npy(dict("<i2", "(1, 2, 1)", "True"), data)))),
            (std::vector<double>{4, 5}));
}

TEST(NpyErrors, SayWhatIsUnsupportedAndWhatToDo) {
  EXPECT_REFUSED(npy(dict("<f4", "(2, 3)", "True"), std::string(24, 'x')), unsupported,
                 "x.npy: the array is in Fortran order. Save np.ascontiguousarray(x).");
  EXPECT_REFUSED(npy(dict("|O", "(2,)"), "\x80\x04"), unsupported,
                 "x.npy: its dtype `|O` is Python objects, which only unpickling could read. Save "
                 "a numeric array.");
  EXPECT_REFUSED(npy(dict("<U5", "(2,)"), ""), unsupported,
                 "x.npy: its dtype `<U5` is strings. Map them to numbers first.");
  EXPECT_REFUSED(npy(dict("|S5", "(2,)"), ""), unsupported,
                 "x.npy: its dtype `|S5` is strings. Map them to numbers first.");
  EXPECT_REFUSED(npy(dict("<M8[ns]", "(2,)"), ""), unsupported,
                 "x.npy: its dtype `<M8[ns]` is dates or times. Save x.astype('int64').");
  EXPECT_REFUSED(npy(dict("<m8[s]", "(2,)"), ""), unsupported,
                 "x.npy: its dtype `<m8[s]` is dates or times. Save x.astype('int64').");
  EXPECT_REFUSED(npy(dict("|V2", "(2,)"), ""), unsupported,
                 "x.npy: its dtype `|V2` is raw records (a void dtype). Save a numeric array.");
  const std::string other =
      "a dtype that Forebay lacks; supported: bool, integers, f2, f4, f8, c8 and c16.";
  EXPECT_REFUSED(npy(dict("<f16", "(2,)"), ""), unsupported, "x.npy: its dtype `<f16` is " + other);
  EXPECT_REFUSED(npy(dict("|f4", "(2,)"), ""), unsupported, "x.npy: its dtype `|f4` is " + other);
  EXPECT_REFUSED(npy(dict("", "(2,)"), ""), unsupported, "x.npy: its dtype `` is " + other);
  EXPECT_REFUSED(
      npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", ""), unsupported,
      "x.npy: it holds records (a structured dtype). Save each field as a .npy file of its own.");
  EXPECT_REFUSED(npy(dict("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "abcd"), unsupported,
                 "x.npy: it has more than 8 axes; at most 8 are supported. Reshape it.");
  EXPECT_REFUSED("\x93NUMPY\x04\0abcdefgh"s, unsupported,
                 "x.npy: .npy format version 4.0; supported: 1.0, 2.0 and 3.0.");
  EXPECT_REFUSED("\x93NUMPY\x01\x01"s, unsupported,
                 "x.npy: .npy format version 1.1; supported: 1.0, 2.0 and 3.0.");
}

TEST(NpyErrors, SayWhatTheFileIsInstead) {
  EXPECT_REFUSED("", io, "x.npy: the file is empty. Save the array with np.save.");
  EXPECT_REFUSED("PK\x03\x04 and so on", io,
                 "x.npy: not a .npy file: it starts with `PK\\x03\\x04 a`. It looks like an .npz "
                 "archive: save each "
                 "array with np.save.");
  EXPECT_REFUSED("\x80\x04\x95", io,
                 "x.npy: not a .npy file: it starts with `\\x80\\x04\\x95`. It looks like a "
                 "pickle, which is not read "
                 "since it can run code: use np.save.");
  EXPECT_REFUSED(
      "1,2,3\n4,5,6\n", io,
      "x.npy: not a .npy file: it starts with `1,2,3\\x0a`. Save the array with np.save.");
}

TEST(NpyErrors, RefuseEveryTruncationOfTheHeader) {
  const std::string whole = npy(dict("<f4", "(2,)"), raw<float>({1, 2}));
  const std::size_t header = whole.size() - 8;
  for (std::size_t length = 1; length < header; ++length) {
    EXPECT_REFUSED(whole.substr(0, length), io,
                   "x.npy: the .npy header is cut off: the file ends after " +
                       std::to_string(length) + " bytes. Save the array again.");
  }
}

TEST(NpyErrors, RefuseALengthThatIsNotTheDatas) {
  const std::string eight = raw<float>({1, 2});
  EXPECT_REFUSED(npy(dict("<f4", "(3,)"), eight), io,
                 "x.npy: f32 (3,) takes 12 bytes but 8 follow the header; the file is cut off. "
                 "Save the array again.");
  EXPECT_REFUSED(npy(dict("<f4", "(1,)"), eight), io,
                 "x.npy: f32 (1,) takes 4 bytes but 8 follow the header; the file is too long. "
                 "Save the array again.");
  EXPECT_REFUSED(npy(dict("<f4", "()"), ""), io,
                 "x.npy: f32 () takes 4 bytes but 0 follow the header; the file is cut off. Save "
                 "the array again.");
  EXPECT_REFUSED(npy(dict("<f4", "(0, 5)"), "x"), io,
                 "x.npy: f32 (0, 5) takes 0 bytes but 1 follow the header; the file is too long. "
                 "Save the array again.");
  EXPECT_REFUSED(npy(dict("<f8", "(1000000, 1000000)"), eight), io,
                 "x.npy: f64 (1000000, 1000000) takes 8000000000000 bytes but 8 follow the header; "
                 "the file is cut off. "
                 "Save the array again.");
}

TEST(NpyErrors, RefuseShapesThatOverflow) {
  EXPECT_REFUSED(npy(dict("<f8", "(4294967296, 4294967296)"), ""), io,
                 "x.npy: malformed .npy header: the shape (4294967296, 4294967296) is larger than "
                 "any memory.");
  EXPECT_REFUSED(
      npy(dict("<f8", "(2305843009213693952,)"), ""), io,
      "x.npy: malformed .npy header: the shape (2305843009213693952,) is larger than any memory.");
  EXPECT_REFUSED(npy(dict("|u1", "(0, 9223372036854775807, 2)"), ""), io,
                 "x.npy: malformed .npy header: the shape (0, 9223372036854775807, 2) is larger "
                 "than any memory.");
}

TEST(NpyErrors, RefuseAMalformedDict) {
  const auto expect = [](const std::string& text, const std::string& what) {
    EXPECT_REFUSED(
        npy(text, ""), io,
        "x.npy: malformed .npy header: it has " + what + ". Save the array again with np.save.");
  };
  expect("", "its end where `{` belongs");
  expect("\n", "its end where `{` belongs");
  expect("[1]", "`[` at byte 0 where `{` belongs");
  expect("{", "its end where a string belongs");
  expect("{}", "no key `descr`");
  expect("{'descr': '<f4'}", "no key `fortran_order`");
  expect("{'descr': '<f4', 'fortran_order': False}", "no key `shape`");
  expect("{'descr': '<f4', 'descr': '<f4'}", "the key `descr` twice");
  expect("{'fortran_order': False, 'fortran_order': False}", "the key `fortran_order` twice");
  expect("{'shape': (1,), 'shape': (1,)}", "the key `shape` twice");
  expect("{'dtype': '<f4'}", "an unknown key `dtype`");
  expect("{'descr' '<f4'}", "`'` at byte 9 where `:` belongs");
  expect("{'descr': 4}", "`4` at byte 10 where a string belongs");
  expect("{'descr': '<f4}", "a string without its closing quote");
  expect("{'descr': '<\\x66'}", "a string without its closing quote");
  expect("{'descr': '<f4' 'shape': (1,)}", "`'` at byte 16 where a comma or `}` belongs");
  expect("{'fortran_order': 0}", "`0` at byte 18 where True or False belongs");
  expect("{'fortran_order': Falsely}", "`l` at byte 23 where a comma or `}` belongs");
  expect("{'shape': 3}", "`3` at byte 10 where `(` belongs");
  expect("{'shape': (3)}", "`)` at byte 12 where a comma belongs");
  expect("{'shape': (3 4)}", "`4` at byte 13 where a comma belongs");
  expect("{'shape': (3, x)}", "`x` at byte 14 where an extent belongs");
  expect("{'shape': (3, -1)}", "the extent -1");
  expect("{'shape': (3, 1.5)}", "`.` at byte 15 where a comma belongs");
  expect("{'shape': (99999999999999999999,)}", "an extent that does not fit 64 bits");
  expect("{'shape': (3,", "its end where an extent belongs");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
         "`x` at byte 56 after the closing brace");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\0"s,
         "`\\x00` at byte 55 after the closing brace");
  expect("{\0'descr': '<f4'}"s, "`\\x00` at byte 1 where a string belongs");
}

TEST(NpyErrors, RefuseAHeaderLengthThatLies) {
  EXPECT_REFUSED(
      "\x93NUMPY\x02\0\xff\xff\xff\xff{'descr'"s, io,
      "x.npy: malformed .npy header: it claims 4294967295 bytes; at most 65536 are read.");
  EXPECT_REFUSED(
      "\x93NUMPY\x01\0\xff\xff{'descr'"s, io,
      "x.npy: the .npy header is cut off: the file ends after 18 bytes. Save the array again.");
}

TEST(NpyErrors, NameAFileThatIsNotThere) {
  const std::string folder = kit::temporary_folder();
  EXPECT_ERROR(read_npy(folder + "/none.npy"), io,
               folder + "/none.npy: cannot be opened: No such file or directory.");
  EXPECT_ERROR(read_npy(folder), io, folder + ": it is not a file.");
  EXPECT_ERROR(write_npy(folder + "/no/x.npy", kit::random({2}, Dtype::f32, 1).view()), io,
               folder + "/no/x.npy: cannot be written: No such file or directory.");
}

TEST(NpyErrors, WriteOnlyDenseArrays) {
  const Array x = kit::random({2, 3}, Dtype::f32, 1);
  EXPECT_ERROR(
      write_npy("x.npy", x.permute({1, 0}).view()), invalid,
      "write_npy: `array` has the strides (1, 3) and is not dense; use contiguous() first.");
  ArrayView elsewhere = x.view();
  elsewhere.device = Device::cuda(1);
  EXPECT_ERROR(write_npy("x.npy", elsewhere), invalid,
               "write_npy: `array` is on cuda:1; it must be on cpu. Copy it to the host first.");
}

/// Whatever bytes a header holds, reading ends with an array of the length that the file has, or
/// with an Error.
TEST(NpyFuzz, AnyHeaderIsReadOrRefused) {
  std::mt19937 random(11);
  const std::string seeds[] = {npy(dict("<f4", "(3, 4)"), std::string(48, 'd')),
                               npy(dict(">c16", "(1, 2)"), std::string(32, 'd'), 2),
                               npy(dict("|b1", "()", "True"), "d", 3)};
  const std::string_view spice =
      "{}()[]'\":,.-0123456789LTFalse<>=|fiucbOUVSMm \n\\\x93\xff\x80\0"sv;
  int read = 0, refused = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string bytes = seeds[round % 3];
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % bytes.size();
      const char c =
          random() % 4 == 0 ? static_cast<char>(random()) : spice[random() % spice.size()];
      switch (random() % 5) {
        case 0:
          bytes.erase(at, 1 + random() % 5);
          break;
        case 1:
          bytes.insert(at, 1, c);
          break;
        case 2:
          bytes.resize(at);
          break;
        default:
          bytes[at] = c;
      }
      if (bytes.empty()) bytes.assign(1, 'x');
    }
    try {
      const NpyHeader header =
          parse_npy_header(std::as_bytes(std::span(bytes)), bytes.size(), "x.npy");
      ASSERT_EQ(header.data_offset + header.data_bytes(), bytes.size());
      ++read;
    } catch (const Error& error) {
      ASSERT_TRUE(std::string(error.what()).starts_with("x.npy: ")) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace forebay
