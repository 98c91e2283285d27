#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <forebay/array/past_cache.h>
#include <forebay/ops/expr/tile.h>
#include <forebay/ops/normalize/normalize_loops.h>
#include <forebay/ops/op.h>
#include <forebay/ops/thread_room.h>

// How elements come to the CPU body of normalize and go from it, whatever is fused: in W, the type
// that it computes in.
namespace forebay::normalize_detail {

/// Elements that are written at once.
inline constexpr std::int64_t kTile = 2048;

/// The input as the body wants it: in W; 64-bit integers as they are, for exact distances.
template <class W>
expr::Expr loaded(const Problem& problem) {
  const ArraySpec& x = problem.inputs[0];
  const expr::Expr input =
      problem.prologue.empty() ? expr::Expr::leaf(0, x.dtype, x.shape) : problem.prologue[0];
  const bool as_is = std::is_same_v<W, double> && is_integer(x.dtype) && size_of(x.dtype) == 8;
  return as_is ? input : expr::cast(input, dtype_of<W>);
}

inline void collect_sources(const expr::Expr& a, std::vector<expr::Expr>& sources) {
  const expr::Node& node = *a.node();
  if (node.opcode == expr::Opcode::leaf && node.source >= 0) {
    const auto source = static_cast<std::size_t>(node.source);
    sources.resize(std::max(sources.size(), source + 1));
    sources[source] = expr::Expr::leaf(node.source, node.dtype, node.shape);
  }
  for (const expr::Expr& arg : node.args) {
    if (arg.valid()) collect_sources(arg, sources);
  }
}

/// What is stored, of a result that is still in W.
template <class W>
expr::Expr stored(const Problem& problem) {
  const ArraySpec& out = problem.outputs[0];
  const expr::Expr result = expr::cast(expr::Expr::leaf(0, dtype_of<W>, out.shape), out.dtype);
  if (!problem.epilogue.valid()) return result;
  std::vector<expr::Expr> sources{result};
  collect_sources(problem.epilogue, sources);
  sources[0] = result;
  return expr::substitute(problem.epilogue, sources);
}

inline expr::Program program_of(const expr::Expr& expression) {
  return expr::compile({&expression, 1});
}

template <class T>
double exact_difference(T x, T pivot) {
  using U = std::make_unsigned_t<T>;
  return x >= pivot ? static_cast<double>(static_cast<U>(x) - static_cast<U>(pivot))
                    : -static_cast<double>(static_cast<U>(pivot) - static_cast<U>(x));
}

/// Elements of the op's input as W: in f32 as they are; in f64 as distances from a pivot of their
/// slice, its first element, unless the mean is given.
template <class W>
class Input {
  static constexpr bool kNarrow = std::is_same_v<W, float>;

 public:
  /// Of some neighbouring slices.
  struct Pivots {
    std::array<double, kNarrow ? 1 : kMostColumns> values;
    std::array<std::int64_t, kNarrow ? 1 : kMostColumns> integers;  ///< of 64-bit integers
  };

  Input(const Problem& problem, bool mean_is_given)
      : load_(program_of(loaded<W>(problem))),
        is_long_integer_(is_integer(problem.inputs[0].dtype) &&
                         size_of(problem.inputs[0].dtype) == 8),
        is_signed_(is_signed(problem.inputs[0].dtype)),
        mean_is_given_(mean_is_given) {}

  /// Whether elements can be read where they lie.
  bool is_in_place() const { return kNarrow && load_.is_plain(); }
  const W* in_place(std::span<const ArrayView> sources, std::int64_t offset) const {
    return reinterpret_cast<const W*>(raw(sources, offset, 0, nullptr));
  }

  /// From the first elements of the slices, which lie at `offset`.
  void set_pivots(std::span<const ArrayView> sources, std::int64_t offset, std::int64_t columns,
                  Pivots& pivots) const {
    if (!kNarrow && !mean_is_given_) {
      set_pivots(raw(sources, offset, columns, thread_room<W>(columns, 3)), columns, pivots);
    }
  }

  /// Rows of `columns` elements that lie dense at `offset`: where they lie, or in `to`.
  const W* at(std::span<const ArrayView> sources, std::int64_t offset, std::int64_t rows,
              std::int64_t columns, const Pivots& pivots, W* to) const {
    const std::int64_t n = rows * columns;
    const char* const x = raw(sources, offset, n, kNarrow ? to : thread_room<W>(n, 3));
    if (kNarrow) return reinterpret_cast<const W*>(x);
    distances(x, rows, columns, pivots, to);
    return to;
  }

  /// Rows `first` .. `first + rows`, slices of `length` elements, until the next call.
  const W* rows(std::span<const ArrayView> sources, std::int64_t first, std::int64_t rows,
                std::int64_t length) const {
    const std::int64_t n = rows * length;
    const char* const x = raw(sources, first * length, n, thread_room<W>(n, 3));
    if (kNarrow) return reinterpret_cast<const W*>(x);
    W* const to = thread_room<W>(n, 2);
    Pivots pivots;
    for (std::int64_t row = 0; row < rows; ++row) {
      const char* const from = x + row * length * static_cast<std::int64_t>(sizeof(W));
      if (!mean_is_given_) set_pivots(from, 1, pivots);
      distances(from, length, 1, pivots, to + row * length);
    }
    return to;
  }

 private:
  /// In W, or 64-bit integers, which are as long: where they lie, or in `room`.
  const char* raw(std::span<const ArrayView> sources, std::int64_t begin, std::int64_t n,
                  W* room) const {
    return static_cast<const char*>(load_.load(sources, begin, n, room));
  }

  void set_pivots(const char* first, std::int64_t columns, Pivots& pivots) const {
    for (std::int64_t c = 0; c < columns; ++c) {
      if (is_long_integer_) {
        pivots.integers[c] = reinterpret_cast<const std::int64_t*>(first)[c];
      } else {
        const double value = reinterpret_cast<const double*>(first)[c];
        pivots.values[c] = std::isfinite(value) ? value : 0;
      }
    }
  }

  void distances(const char* elements, std::int64_t rows, std::int64_t columns,
                 const Pivots& pivots, W* to) const {
    const auto each = [&](const auto* x, const auto& value) {
      for (std::int64_t i = 0; i < rows * columns; i += columns) {
        for (std::int64_t c = 0; c < columns; ++c)
          to[i + c] =
              static_cast<W>(mean_is_given_ ? static_cast<double>(x[i + c]) : value(x[i + c], c));
      }
    };
    const auto of_integers = [&]<class T>(const T* x) {
      each(x, [&](T element, std::int64_t c) {
        return exact_difference(element, static_cast<T>(pivots.integers[c]));
      });
    };
    if (!is_long_integer_) {
      each(reinterpret_cast<const double*>(elements),
           [&](double element, std::int64_t c) { return element - pivots.values[c]; });
    } else if (is_signed_) {
      of_integers(reinterpret_cast<const std::int64_t*>(elements));
    } else {
      of_integers(reinterpret_cast<const std::uint64_t*>(elements));
    }
  }

  expr::Tile load_;
  bool is_long_integer_, is_signed_, mean_is_given_;
};

/// Results in W on their way to memory: through what is stored, in tiles that stay in the
/// first-level cache, and past the caches when there is much of it.
template <class W>
class Sink {
 public:
  Sink(const expr::Tile& store, std::span<const ArrayView> sources, const ArrayView& out)
      : store_(store),
        sources_(sources),
        out_(out.as<char>()),
        size_(static_cast<std::int64_t>(size_of(out.dtype))),
        past_cache_(out.bytes() >= kPastCacheBytes),
        direct_(store.is_plain() && !past_cache_),
        results_(direct_ ? nullptr : thread_room<W>(kTile, 0)) {}

  /// Room for the results `begin` .. `begin + n`, of at most kTile, until the next call.
  W* at(std::int64_t begin, std::int64_t n) {
    if (direct_) return reinterpret_cast<W*>(out_) + begin;
    if (begin != begin_ + count_ || count_ + n > kTile) {
      flush();
      begin_ = begin;
    }
    W* const room = results_ + count_;
    count_ += n;
    return room;
  }

  void flush() {
    if (count_ == 0) return;
    const void* tile = results_;
    if (!past_cache_) {
      store_.store(results_, sources_, begin_, count_, out_);
    } else {
      if (!store_.is_plain()) {  // into the cache first, as if the output began before it
        char* const room = thread_room<char>(kTile * size_, 1);
        store_.store(results_, sources_, begin_, count_, room - begin_ * size_);
        tile = room;
      }
      copy_past_cache(out_ + begin_ * size_, tile, static_cast<std::size_t>(count_ * size_));
    }
    count_ = 0;
  }

 private:
  const expr::Tile& store_;
  std::span<const ArrayView> sources_;
  char* out_;
  std::int64_t size_;
  bool past_cache_, direct_;
  W* results_;
  std::int64_t begin_ = 0, count_ = 0;
};

}  // namespace forebay::normalize_detail
