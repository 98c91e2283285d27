#include <ducc0/fft/fft.h>

#include <algorithm>
#include <complex>
#include <memory>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/expr/tile.h>
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

/// The rows of `block`, whose first element is at `x`, as the engine wants them: [depth, read,
/// width] of type E, cropped or padded.
template <class E, class In>
void pack(const Transform& t, const In* x, const Block& block, E* packed) {
  const std::int64_t kept = std::min(t.extent, t.read());
  const std::int64_t width = block.inner_end - block.inner;
  // Where a block takes whole planes, one row of them is one run of memory.
  const std::int64_t run = width == t.inner ? kept * width : width;
  const std::int64_t runs = width == t.inner ? 1 : kept;
  for (std::int64_t o = block.outer; o < block.outer_end; ++o) {
    for (std::int64_t k = 0; k < runs; ++k) {
      const In* from = x + ((o - block.outer) * t.extent + k) * t.inner;
      std::transform(from, from + run, packed, [](In value) { return convert<E>(value); });
      packed += run;
    }
    packed = std::fill_n(packed, (t.read() - kept) * width, E{});
  }
}

/// Memory for `bytes` that the calling thread keeps for its next block, unless a block is one long
/// row. Blocks of a thread come one after the other; what one holds at a time differs in `Use`.
enum class Use : std::uint8_t { loaded, packed, result };
template <Use>
std::byte* room(std::size_t bytes, std::unique_ptr<std::byte[]>& long_row) {
  constexpr std::size_t kKept = std::size_t{1} << 21;
  thread_local std::unique_ptr<std::byte[]> kept;
  std::unique_ptr<std::byte[]>& memory = bytes <= kKept ? kept : long_row;
  if (bytes > kKept || memory == nullptr) {
    memory = std::make_unique_for_overwrite<std::byte[]>(std::max(bytes, kKept));
  }
  return memory.get();
}

/// Rows of a block. ducc0 vectorises across 16 of them (and within one, where a block has one);
/// about 2^14 points stay in the second-level cache with what is fused around them. The bounds
/// depend on nothing but the shape, so that results are the same bits at every thread count.
std::int64_t rows_of_block(std::int64_t points) {
  constexpr std::int64_t kVector = 16;
  if (points > 4096) return 1;
  return std::max<std::int64_t>((1 << 14) / points / kVector, 1) * kVector;
}

template <class R>
class CpuBody final : public Body {
 public:
  CpuBody(const Transform& transform, const Problem& problem)
      : t_(transform), load_(problem.load(0)), store_(problem.store()) {
    const std::int64_t rows = rows_of_block(t_.points);
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
            inputs, outputs[0],
            {outer, std::min(outer + depth_, t_.outer), inner, std::min(inner + width_, t_.inner)});
      }
    });
  }

 private:
  using C = std::complex<R>;

  void run_block(std::span<const ArrayView> sources, const ArrayView& out,
                 const Block& block) const {
    if (t_.engine == Engine::c2r) {
      with_result<R>(sources, out, block, [&](R* to) {
        with_rows<C>(sources, block, [&](const auto& from) {
          ducc0::c2r(from, written(block, t_.points, to), axes(block), !t_.inverse, scale(), 1);
        });
      });
    } else if (t_.engine == Engine::c2c) {
      with_result<C>(sources, out, block, [&](C* to) {
        with_rows<C>(sources, block, [&](const auto& from) {
          ducc0::c2c(from, written(block, t_.points, to), axes(block), !t_.inverse, scale(), 1);
        });
      });
    } else {
      with_result<C>(sources, out, block, [&](C* to) {
        with_rows<R>(sources, block, [&](const auto& from) {
          ducc0::r2c(from, written(block, t_.half(), to), axes(block), !t_.inverse, scale(), 1);
        });
        if (t_.mirror) mirror(block, to);
      });
    }
  }

  R scale() const { return static_cast<R>(t_.scale); }
  template <class E>
  ducc0::vfmav<E> written(const Block& block, std::int64_t extent, E* to) const {
    return ducc0::vfmav<E>(to, shape(block, extent), strides(block, t_.extent_out));
  }

  /// Calls `transform` with the rows of `block`: in place when they are as the engine wants them,
  /// else packed.
  template <class E, class F>
  void with_rows(std::span<const ArrayView> sources, const Block& block, F&& transform) const {
    std::unique_ptr<std::byte[]> long_loaded, long_packed;
    // Only rows side by side have something fused: others lie in memory.
    const std::int64_t count = t_.inner == 1 ? (block.outer_end - block.outer) * t_.extent : 0;
    void* const loaded =
        load_.is_plain()
            ? nullptr
            : room<Use::loaded>(static_cast<std::size_t>(count) * size_of(t_.in), long_loaded);
    const void* const x = load_.load(sources, at(block, t_.extent), count, loaded);
    if (t_.in == t_.engine_in() && t_.extent >= t_.read()) {
      transform(ducc0::cfmav<E>(static_cast<const E*>(x), shape(block, t_.read()),
                                strides(block, t_.extent)));
      return;
    }
    const auto points = block.depth() * block.width() * static_cast<std::size_t>(t_.read());
    E* const packed = reinterpret_cast<E*>(room<Use::packed>(points * sizeof(E), long_packed));
    dispatch(AllTypes{}, t_.in, t_.name, "x",
             [&]<class In>(Type<In>) { pack(t_, static_cast<const In*>(x), block, packed); });
    transform(ducc0::cfmav<E>(packed, shape(block, t_.read())));
  }

  /// Calls `transform` with the place for the result: in the output, or beside it when something
  /// is fused behind.
  template <class E, class F>
  void with_result(std::span<const ArrayView> sources, const ArrayView& out, const Block& block,
                   F&& transform) const {
    const std::int64_t begin = at(block, t_.extent_out);
    if (store_.is_plain()) {
      transform(out.as<E>() + begin);
      return;
    }
    std::unique_ptr<std::byte[]> long_result;
    const std::int64_t count = (block.outer_end - block.outer) * t_.extent_out;
    E* const result = reinterpret_cast<E*>(
        room<Use::result>(static_cast<std::size_t>(count) * sizeof(E), long_result));
    transform(result);
    store_.store(result, sources, begin, count, out.data);
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
  expr::Tile load_, store_;
  std::int64_t depth_ = 1, width_ = 1;
};

}  // namespace

std::unique_ptr<Body> prepare_cpu(const Transform& transform, const Problem& problem) {
  if (transform.real == Dtype::f64) return std::make_unique<CpuBody<double>>(transform, problem);
  return std::make_unique<CpuBody<float>>(transform, problem);
}

}  // namespace dft

std::unique_ptr<Body> fft_cpu(const Op& op, const Problem& problem, const Context&) {
  return dft::prepare_cpu(dft::resolve(dft::Kind::fft, op.settings<Fft>(), problem.inputs[0]),
                          problem);
}

}  // namespace forebay
