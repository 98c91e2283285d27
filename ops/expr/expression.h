#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/array/number.h>

namespace forebay::expr {

/// The primitives of the pointwise language. Arithmetic runs in the dtype of its operands, which
/// are equal; f16 and bf16 operands are computed in f32 and rounded back, so that fused and unfused
/// give the same bits. `+ - * / sqrt` are IEEE and never contracted; exp, log and their kin are
/// within 2 ulp of the true value.
enum class Opcode : std::uint8_t {
  leaf,      ///< an element of a source, through an index map
  constant,  ///< the same number everywhere
  // casts: NaN to integer is 0 and values outside are clamped (saturate); modulo 2^bits (wrap,
  // integer to integer)
  cast_saturate,
  cast_wrap,
  // real, one operand, same dtype
  neg,
  abs,
  sqrt,
  exp,
  expm1,
  log,
  log1p,
  log2,
  log10,
  sin,
  cos,
  tanh,
  floor,
  ceil,
  round_even,
  sign,
  // complex -> real
  real,
  imag,
  norm,  ///< norm is re^2 + im^2; abs of a complex is hypot
  conj,
  // two operands, same dtype
  add,
  sub,
  mul,
  div,
  pow,
  minimum,
  maximum,  ///< NaN in either operand gives NaN, as NumPy's
  // -> bool
  lt,
  le,
  eq,
  ne,
  is_nan,
  logical_and,
  logical_or,
  logical_not,
  select,  ///< a bool and two operands of one dtype
  // random numbers: of words that are functions of their place alone
  philox,   ///< three u64 -> u32: see the function of that name
  uniform,  ///< u32 -> f32, u64 -> f64, in [0, 1): the upper 24 or 53 bits
  normal,   ///< likewise, the standard normal distribution: see draws.inc
};

enum class CastMode : std::uint8_t { saturate, wrap };

struct Node;

/// What a leaf reads when it reads no source: memory that the expression owns, or nothing, since
/// its elements are their own numbers (Expr::index).
inline constexpr int kTable = -1, kIndex = -2;

/// A lazy array: a dtype, a shape and how each element comes from elements of the sources. Cheap to
/// copy. Operators broadcast as NumPy's and need equal dtypes (a Number takes the other operand's
/// dtype); promotion is the caller's, said with `cast`.
/// Errors: invalid for shapes that do not broadcast; unsupported for an operand dtype without
/// the operation.
class Expr {
 public:
  Expr() = default;
  /// Elements of source number `source`, laid out by `strides` (in elements) from its data pointer.
  static Expr leaf(int source, Dtype dtype, const Dims& shape, const Dims& strides);
  /// A dense source.
  static Expr leaf(int source, Dtype dtype, const Dims& shape);
  /// Elements of an array that the expression owns: a table of means, a window.
  static Expr array(const Array& values);
  /// The number of each element in row-major order, u64: a leaf that is in no memory. Index maps
  /// change it as they change others, so an element keeps the number that it had here.
  static Expr index(const Dims& shape);
  static Expr constant(const Number& value, Dtype dtype);

  Dtype dtype() const;
  const Dims& shape() const;
  bool valid() const { return node_ != nullptr; }
  const Node* node() const { return node_.get(); }

  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  const std::shared_ptr<const Node>& shared() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

struct Node {
  Opcode opcode = Opcode::constant;
  Dtype dtype = Dtype::f32;
  Dims shape;
  Expr args[3];
  Number value;             ///< constant
  int source = kTable;      ///< leaf: the source's number, or one of the two below 0
  Array table;              ///< leaf: memory that the expression owns
  std::int64_t offset = 0;  ///< leaf: elements from the source's data pointer to index 0
  Dims strides;             ///< leaf: in elements, one for each axis of `shape`
};

Expr unary(Opcode opcode, const Expr& a);
Expr binary(Opcode opcode, const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr cast(const Expr& a, Dtype dtype, CastMode mode = CastMode::saturate);
/// Word `place` of sequence number `sequence` of the generator with this key: word place % 4 of
/// Philox4x32-10 (array/philox.h) with the counter (place / 4, sequence), two 64-bit numbers. It is
/// what cuRAND gives first after curand_init(key, sequence, place). Operands u64; the result u32.
Expr philox(const Expr& place, const Expr& sequence, const Expr& key);
inline Expr minimum(const Expr& a, const Expr& b) { return binary(Opcode::minimum, a, b); }
inline Expr maximum(const Expr& a, const Expr& b) { return binary(Opcode::maximum, a, b); }
inline Expr operator+(const Expr& a, const Expr& b) { return binary(Opcode::add, a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return binary(Opcode::sub, a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return binary(Opcode::mul, a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return binary(Opcode::div, a, b); }

// Index maps: the same elements at other places. Never a copy.
Expr permute(const Expr& a, const Dims& axes);
Expr broadcast_to(const Expr& a, const Dims& shape);
Expr slice(const Expr& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
/// Pieces of `length` elements along `axis`, `hop` apart, which may overlap: the axis becomes two,
/// (pieces, length). Whole pieces only; `axis` has at least `length` elements.
Expr frame(const Expr& a, int axis, std::int64_t length, std::int64_t hop);
/// Whether `reshape` is an index map of every leaf; otherwise materialise `a` first.
bool can_reshape(const Expr& a, const Dims& shape);
Expr reshape(const Expr& a, const Dims& shape);

/// `a` with each leaf of source `i` read from `sources[i]` instead: how one op's result
/// enters the next.
Expr substitute(const Expr& a, std::span<const Expr> sources);

/// True for a dense leaf: the expression is memory as it is, and needs no kernel.
bool is_dense_leaf(const Expr& a);

/// The leaves and straight-line code of one kernel: common subexpressions once, leaves
/// broadcast to `shape`.
struct Program {
  struct Leaf {
    int source = kTable;  ///< number of the source, kTable or kIndex
    Array table;
    Dtype dtype = Dtype::f32;
    std::int64_t offset = 0;
    Dims strides;  ///< over Program::shape
    bool is_index() const { return source == kIndex; }
  };
  struct Instruction {
    Opcode opcode = Opcode::constant;
    Dtype dtype = Dtype::f32;    ///< of the result
    int args[3] = {-1, -1, -1};  ///< instruction numbers
    int leaf = -1;
    Number value;
  };
  Dims shape;
  std::vector<Leaf> leaves;
  std::vector<Instruction> code;  ///< in order: arguments come before their use
  std::vector<int> outputs;       ///< instruction numbers, one for each output
};

/// One program for outputs of one common shape. Errors: invalid when the shapes differ.
Program compile(std::span<const Expr> outputs);

/// The program in readable form, one instruction a line: what `plan` prints.
std::string to_string(const Program& program);

}  // namespace forebay::expr
