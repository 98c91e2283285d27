#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/array/context.h>
#include <forebay/ops/expr/expression.h>

// How the kernels of kernel ops (statistics, histogram, FFT) take in their pointwise neighbours: a program becomes a
// struct of device code, passed as one `const __grid_constant__` parameter, that the kernel reads its input through or
// writes its result through, whatever is fused. Plain text, in every build.
namespace forebay::expr {

/// The text of a load, to put before the kernel, and what fills its parameter:
///
///     struct NAME {
///       i64 whole;                               // elements that one access of `pack` may have
///       using Value = f32;                       // what the program gives
///       Value at(i64 i) const;                   // element i of the dense array that it stands for
///       template <int N> Pack<Value, N> pack(i64 p) const;   // elements p * N .. p * N + N - 1
///       template <int N> Pack<Value, N> pack_from(i64 i) const;  // elements i .. i + N - 1
///       static constexpr bool kLoose;            // whether pack_from is better than N times `at`
///       Row row(i64 r) const;                    // row r: the last axis, at a fixed index of the others
///       struct Row {
///         Value at(i64 column) const;
///         template <int N> Pack<Value, N> pack(i64 p) const; // columns p * N .. p * N + N - 1
///         // The same in two steps, for kernels that want all their packs on the way before the first is computed:
///         template <int N> Fetched<N> fetch(i64 p) const;
///         template <int N> Pack<Value, N> values(const Fetched<N>& fetched) const;
///       };
///     };
///
/// and of a store, whose program reads the op's own result as source 0 and the step's sources as 1, 2, ..:
///
///     struct NAME {
///       using Value = c64;                       // what the op computes
///       using Stored = f32;                      // what lies in memory
///       void put(i64 i, Value value) const;      // likewise by row and by pack
///       template <int N> void put_pack(i64 p, const Pack<Value, N>& values) const;
///       Row row(i64 r) const;                    // Row: put, put_pack
///     };
///
/// `pack` and `put_pack` are accesses of up to 16 bytes where every address and pitch of this launch allows them, else
/// N single ones: always right. (A loop may ask once: in a copy whose `whole` is a constant, nothing is asked.) Where
/// kLoose, `pack_from` reads bytes and halves by whole words, wherever they lie. at(i) on strided leaves divides; rows
/// divide once a row. `Pack<T, N>` is in the text (once, however many structs are made: `kPackText`). The index
/// arithmetic is 32-bit where all offsets fit.
struct DeviceCode {
  std::string text;
  /// The parameter: `program` is the one the text was made of, `sources` are the step's, `out` is a store's output.
  /// The result stays valid until the next call.
  std::span<const std::uint64_t> parameter(std::span<const ArrayView> sources,
                                           const void* out = nullptr);

  Program program;
  bool is_store = false;
  std::vector<std::uint64_t> words;
};

/// Tables of the program are uploaded with `context`.
/// Errors: invalid for a store whose program does not read source 0, dense.
DeviceCode device_load(std::string_view name, const Program& program, const Context& context);
DeviceCode device_store(std::string_view name, const Program& program, const Context& context);

/// `template <class T, int N> struct Pack { T at[N]; }` and what else the structs use: put before them, once.
extern const char* const kPackText;

}  // namespace forebay::expr
