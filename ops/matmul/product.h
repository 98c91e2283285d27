#pragma once

#include <cstdint>
#include <span>

#include <forebay/ops/matmul/matmul.h>

namespace forebay {

/// A matmul with its shapes and dtypes resolved: `count_of(batch)` products of [m, k] by [k, n].
struct Product {
  ArraySpec out;
  ArraySpec x, other;          ///< as given
  Dtype operand = Dtype::f32;  ///< what both operands are rounded or widened to
  Dtype sum = Dtype::f32;      ///< what is summed in
  bool tf32 = false;
  bool transposed = false;  ///< other is [n, k]
  std::int64_t m = 1, n = 1, k = 0;
  /// The leading axes, merged where both operands allow it; the strides, in elements, are 0 where
  /// an operand is broadcast. The result is dense: product b of it starts at b * m * n.
  Dims batch, x_strides, other_strides;

  bool empty() const { return count_of(out.shape) == 0; }
  /// Where product `b` starts in x and in other.
  std::int64_t x_offset(std::int64_t b) const { return offset(b, x_strides); }
  std::int64_t other_offset(std::int64_t b) const { return offset(b, other_strides); }

 private:
  std::int64_t offset(std::int64_t b, const Dims& strides) const {
    std::int64_t result = 0;
    for (int i = batch.rank - 1; i >= 0; --i) {
      result += b % batch[i] * strides[i];
      b /= batch[i];
    }
    return result;
  }
};

/// Errors: invalid and unsupported, "matmul: ...".
Product resolve(const Matmul& settings, std::span<const ArraySpec> inputs);

/// What the multiplication on a device takes its operands in, and what it gives its result in.
struct KernelDtypes {
  Dtype taken, given;
};
KernelDtypes dtypes_on(DeviceKind device, const Product& product);

/// An operand that is rounded or widened before it is multiplied is so in one pass with the
/// pointwise stages before it.
Fusion product_fuses(const void* settings, const Problem& problem, DeviceKind device);

/// Input `i` with what is fused before it, rounded as the product wants its operands, of dtype `to`.
expr::Expr operand_of(const Product& product, const Problem& problem, std::size_t i, Dtype to);

/// Whether `other` comes from the settings.
bool is_given(const ConstantArray& other);

/// The constant on the device of `context`, dense, of dtype `to` after a rounding to `via`, ready for every stream.
Array made_constant(const Array& array, Dtype via, Dtype to, const Context& context);

/// The part that is the same on every device: operands made the type that the multiplication takes,
/// its result made the op's, a constant operand made once.
class ProductBody : public Body {
 public:
  std::size_t scratch_bytes() const final;
  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) final;

 protected:
  ProductBody(const Product& product, const Matmul& settings, const Problem& problem,
              const Context& context);
  /// Of the dtypes that dtypes_on says. `scratch` has work_bytes().
  virtual void multiply(const void* x, const void* other, void* out, void* scratch,
                        const Launch& launch) = 0;
  virtual std::size_t work_bytes() const { return 0; }

  Product product_;
  KernelDtypes dtypes_;

 private:
  /// How an operand becomes what is multiplied.
  struct Operand {
    Dims shape;
    int source = 0;              ///< the step's source that is multiplied as it is, without `make`
    std::unique_ptr<Body> make;  ///< from the step's sources
    std::size_t bytes = 0;       ///< of what it makes
  };
  Operand operand(std::size_t i, const Problem& problem, const Context& context) const;

  Array constant_;  ///< other, when it comes from the settings
  bool has_constant_ = false;
  Operand x_, other_;
  std::unique_ptr<Body> cast_out_;  ///< null where there is nothing to do
  std::size_t out_bytes_ = 0, cast_bytes_ = 0;
};

}  // namespace forebay
