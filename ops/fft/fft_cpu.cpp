#include <ducc0/fft/fft.h>

#include <algorithm>
#include <complex>
#include <memory>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/fft/fft.h>

namespace forebay {
namespace dft {
namespace {

using AllTypes = Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double,
                       std::complex<float>, std::complex<double>>;

/// Rows outer begin..end, inner begin..end.
struct Block {
  std::int64_t outer, outer_end, inner, inner_end;
  std::size_t depth() const { return static_cast<std::size_t>(outer_end - outer); }
  std::size_t width() const { return static_cast<std::size_t>(inner_end - inner); }
};

template <class E, class In>
E convert(In value) {
  if constexpr (std::is_same_v<In, E>) {
    return value;
  } else if constexpr (std::is_same_v<In, std::complex<float>> ||
                       std::is_same_v<In, std::complex<double>>) {
    return E{};  // not reached: complex x is never converted to another type
  } else if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>) {
    if constexpr (std::is_same_v<In, Half> || std::is_same_v<In, BFloat16>)
      return static_cast<float>(value);
    else
      return static_cast<E>(value);
  } else {
    return E(convert<typename E::value_type>(value));
  }
}

/// The rows of `block` as the engine wants them: [depth, read, width] of type E, cropped or padded.
template <class E, class In>
void pack(const Transform& t, const In* x, const Block& block, E* packed) {
  const std::int64_t kept = std::min(t.extent, t.read());
  const std::int64_t width = block.inner_end - block.inner;
  // Where a block takes whole planes, one row of them is one run of memory.
  const std::int64_t run = width == t.inner ? kept * width : width;
  const std::int64_t runs = width == t.inner ? 1 : kept;
  for (std::int64_t o = block.outer; o < block.outer_end; ++o) {
    for (std::int64_t k = 0; k < runs; ++k) {
      const In* from = x + (o * t.extent + k) * t.inner + block.inner;
      std::transform(from, from + run, packed, [](In value) { return convert<E>(value); });
      packed += run;
    }
    packed = std::fill_n(packed, (t.read() - kept) * width, E{});
  }
}

template <class R>
class CpuBody final : public Body {
 public:
  explicit CpuBody(const Transform& transform) : t_(transform) {
    // About 2^16 points a block: it stays in the second-level cache, and its bounds depend on
    // nothing but the shape, so that results are the same bits at every thread count.
    const std::int64_t rows = std::max<std::int64_t>((1 << 16) / t_.points / 16 * 16, 1);
    width_ = std::clamp<std::int64_t>(t_.inner, 1, rows);
    depth_ = width_ < t_.inner ? 1 : std::max<std::int64_t>(rows / width_, 1);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch&) override {
    if (t_.rows() == 0) return;
    const std::int64_t across = (t_.inner + width_ - 1) / width_;
    const std::int64_t down = (t_.outer + depth_ - 1) / depth_;
    parallel_blocks(across * down, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t outer = i / across * depth_, inner = i % across * width_;
        run_block(
            inputs[0], outputs[0],
            {outer, std::min(outer + depth_, t_.outer), inner, std::min(inner + width_, t_.inner)});
      }
    });
  }

 private:
  using C = std::complex<R>;

  void run_block(const ArrayView& x, const ArrayView& out, const Block& block) const {
    switch (t_.engine) {
      case Engine::r2c: {
        C* to = out.as<C>() + at(block, t_.extent_out);
        with_rows<R>(x, block, [&](const auto& from) {
          ducc0::r2c(from,
                     ducc0::vfmav<C>(to, shape(block, t_.half()), strides(block, t_.extent_out)),
                     axes(block), !t_.inverse, static_cast<R>(t_.scale), 1);
        });
        if (t_.mirror) mirror(block, to);
        break;
      }
      case Engine::c2r:
        with_rows<C>(x, block, [&](const auto& from) {
          ducc0::c2r(from,
                     ducc0::vfmav<R>(out.as<R>() + at(block, t_.points), shape(block, t_.points),
                                     strides(block, t_.points)),
                     axes(block), !t_.inverse, static_cast<R>(t_.scale), 1);
        });
        break;
      case Engine::c2c:
        with_rows<C>(x, block, [&](const auto& from) {
          ducc0::c2c(from,
                     ducc0::vfmav<C>(out.as<C>() + at(block, t_.points), shape(block, t_.points),
                                     strides(block, t_.points)),
                     axes(block), !t_.inverse, static_cast<R>(t_.scale), 1);
        });
        break;
    }
  }

  /// Calls `transform` with the rows of `block`: in place when they are as the engine wants them,
  /// else packed.
  template <class E, class F>
  void with_rows(const ArrayView& x, const Block& block, F&& transform) const {
    if (t_.in == t_.engine_in() && t_.extent >= t_.read()) {
      transform(ducc0::cfmav<E>(x.as<E>() + at(block, t_.extent), shape(block, t_.read()),
                                strides(block, t_.extent)));
      return;
    }
    const auto count = block.depth() * block.width() * static_cast<std::size_t>(t_.read());
    const auto packed = std::make_unique_for_overwrite<E[]>(count);
    dispatch(AllTypes{}, t_.in, t_.name, "x",
             [&]<class In>(Type<In>) { pack(t_, x.as<In>(), block, packed.get()); });
    transform(ducc0::cfmav<E>(packed.get(), shape(block, t_.read())));
  }

  void mirror(const Block& block, C* out) const {
    const std::int64_t width = block.inner_end - block.inner;
    for (std::size_t o = 0; o < block.depth(); ++o, out += t_.points * t_.inner) {
      for (std::int64_t k = t_.half(); k < t_.points; ++k) {
        const C* from = out + (t_.points - k) * t_.inner;
        std::transform(from, from + width, out + k * t_.inner,
                       [](C value) { return std::conj(value); });
      }
    }
  }

  // A block of one row is given as rank 1: ducc0 then vectorises within the row.
  static bool single(const Block& block) { return block.depth() * block.width() == 1; }
  static ducc0::fmav_info::shape_t axes(const Block& block) {
    return {single(block) ? std::size_t{0} : std::size_t{1}};
  }
  static ducc0::fmav_info::shape_t shape(const Block& block, std::int64_t extent) {
    const auto length = static_cast<std::size_t>(extent);
    if (single(block)) return {length};
    return {block.depth(), length, block.width()};
  }
  ducc0::fmav_info::stride_t strides(const Block& block, std::int64_t extent) const {
    if (single(block)) return {t_.inner};
    return {extent * t_.inner, t_.inner, 1};
  }
  std::int64_t at(const Block& block, std::int64_t extent) const {
    return block.outer * extent * t_.inner + block.inner;
  }

  Transform t_;
  std::int64_t depth_ = 1, width_ = 1;
};

}  // namespace

std::unique_ptr<Body> prepare_cpu(const Transform& transform) {
  if (transform.real == Dtype::f64) return std::make_unique<CpuBody<double>>(transform);
  return std::make_unique<CpuBody<float>>(transform);
}

}  // namespace dft

std::unique_ptr<Body> fft_cpu(const Op& op, const Problem& problem, const Context&) {
  return dft::prepare_cpu(dft::resolve(dft::Kind::fft, op.settings<Fft>(), problem.inputs[0]));
}

}  // namespace forebay
