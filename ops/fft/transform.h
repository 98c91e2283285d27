#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <forebay/ops/op.h>

namespace forebay {

/// Which direction carries the factor 1/n: the inverse one, both as 1/sqrt(n), or the forward one.
enum class FftNorm { backward, ortho, forward };
std::span<const std::string_view> names_of(FftNorm);

/// What fft, ifft, rfft and irfft share.
namespace dft {

enum class Kind : std::uint8_t { fft, ifft, rfft, irfft };

/// The transforms that the libraries have: real to half spectrum, half spectrum to real, complex.
enum class Engine : std::uint8_t { r2c, c2r, c2c };

/// One transform of many rows, resolved. `x` is seen as [outer, extent, inner], the result as
/// [outer, extent_out, inner]; a row runs along the middle.
struct Transform {
  const char* name = "";  ///< of the op, for errors
  Engine engine = Engine::c2c;
  bool inverse = false;  ///< exponent +2 pi i
  /// Engine r2c whose result has all `points`: the upper half is the conjugate of the lower.
  bool mirror = false;
  double scale = 1;         ///< factor on the result
  std::int64_t points = 1;  ///< the length n of the transform
  std::int64_t outer = 1, inner = 1;
  /// Of x along the axis; elements past `read()` are cropped, missing ones are zeros.
  std::int64_t extent = 0;
  std::int64_t extent_out = 1;
  Dtype in = Dtype::f32;    ///< of x
  Dtype real = Dtype::f32;  ///< f32 or f64: what the transform computes in
  ArraySpec out;

  std::int64_t rows() const { return outer * inner; }
  std::int64_t half() const { return points / 2 + 1; }
  /// Elements of a row that the engine reads, and that it writes.
  std::int64_t read() const { return engine == Engine::c2r ? half() : points; }
  std::int64_t written() const { return engine == Engine::r2c ? half() : points; }
  /// The dtype that the engine reads.
  Dtype engine_in() const { return engine == Engine::r2c ? real : complex_of(real); }
};

/// Checks and resolves. Errors: invalid and unsupported, with the op's name first.
Transform resolve(Kind kind, const std::optional<std::int64_t>& n, std::int64_t axis, FftNorm norm,
                  const ArraySpec& x);
template <class S>
Transform resolve(Kind kind, const S& settings, const ArraySpec& x) {
  return resolve(kind, settings.n, settings.axis, settings.norm, x);
}

/// Whether the transform runs along axis 0, the batch (OpDef::mixes_samples).
template <class S>
bool along_batch(const void* settings, std::span<const ArraySpec> inputs) {
  const std::int64_t axis = static_cast<const S*>(settings)->axis;
  return axis == 0 || axis == -inputs[0].shape.rank;
}

/// The fields that the four settings structs share.
void visit(FieldVisitor& visitor, std::string_view n_doc, std::optional<std::int64_t>& n,
           std::int64_t& axis, FftNorm& norm);

/// What a body takes in (OpDef::fuses): rows along the last axis; on CUDA where one fits on
/// chip (rows.h).
Fusion fuses(const Transform& transform, DeviceKind device);
template <Kind kind, class S>
Fusion fuses(const void* settings, const Problem& problem, DeviceKind device) {
  return fuses(resolve(kind, *static_cast<const S*>(settings), problem.inputs[0]), device);
}

/// ducc0 on the CPU. On CUDA cuFFT, or one kernel of ours where something is fused.
std::unique_ptr<Body> prepare_cpu(const Transform& transform, const Problem& problem);
std::unique_ptr<Body> prepare_cuda(const Transform& transform, const Problem& problem,
                                   const Context& context);

}  // namespace dft
}  // namespace forebay
