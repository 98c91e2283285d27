#include <algorithm>
#include <cstring>

#include <forebay/array/parallel.h>
#include <forebay/array/philox.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/tile.h>
#include <forebay/ops/sample_move.h>

namespace forebay {
namespace {

constexpr std::int64_t kPieceElements = 8192;  // of the output, at most: what is stored at once

/// Where axes of one sample are read.
struct Drawn {
  std::int64_t start[SampleMove::kMaxAxes] = {};
  bool reversed[SampleMove::kMaxAxes] = {};

  /// `position` as in BatchInfo.
  Drawn(const SampleMove& move, std::int64_t sample, const std::int64_t* position) {
    const std::uint64_t sequence = static_cast<std::uint64_t>(sample) + move.sequence;
    for (std::int64_t k = 0; k < move.rank; ++k) {
      const SampleMove::Axis& axis = move.axes[k];
      if (axis.word < 0) continue;
      const auto word = static_cast<std::uint32_t>(axis.word);
      const std::uint64_t bits =
          philox({word / 4, static_cast<std::uint32_t>(position[0]),
                  static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
                 static_cast<std::uint64_t>(position[2]))[word % 4];
      start[k] = static_cast<std::int64_t>((static_cast<unsigned __int128>(bits) *
                                            static_cast<std::uint64_t>(axis.places)) >>
                                           32) -
                 axis.padding;
      reversed[k] = bits < axis.threshold;
    }
  }
  /// The index of the input that index `i` of axis `k` comes from.
  std::int64_t place(const SampleMove& move, std::int64_t k, std::int64_t i) const {
    const std::int64_t at = start[k] + i;
    return reversed[k] ? move.axes[k].in - 1 - at : at;
  }
};

/// An element as bytes, so that one copy serves every dtype of a size.
template <std::size_t Size>
struct Bytes {
  unsigned char bytes[Size];
};

/// The output in pieces: whole lines, or parts of one; of the axes before `outer` one index each.
template <class T>
class MoveCpu final : public Body {
 public:
  MoveCpu(const SampleMove& move, const Fill& fill, const Problem& problem)
      : move_(move), load_(problem.load(0)), store_(problem.store()) {
    std::memcpy(&fill_, fill.words, sizeof fill_);
    std::tie(ids_, position_) = draw_sources(problem);
    if (move.out_elements == 0) return;
    outer_ = move.rank - 1;
    piece_ = move.line().out * move.inner;
    while (outer_ > 0 && piece_ * move.axes[outer_ - 1].out <= kPieceElements)
      piece_ *= move.axes[--outer_].out;
    if (outer_ == move.rank - 1) {
      const std::int64_t blocks = std::max(kPieceElements / move.inner, std::int64_t{1});
      piece_ = std::min(piece_, blocks * move.inner);
    }
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch&) override {
    if (move_.samples * move_.out_elements == 0) return;
    const auto* const ids = inputs[ids_].as<std::int64_t>();
    const auto* const position = inputs[position_].as<std::int64_t>();
    const std::int64_t line = move_.line().out * move_.inner;
    const std::int64_t whole = std::max(piece_, line);  // of the axes from `outer_` on
    const std::int64_t parts = (whole + piece_ - 1) / piece_;
    const std::int64_t outer = move_.out_elements / whole;
    const std::int64_t pieces = move_.samples * outer * parts;
    parallel_for(pieces, kPieceElements / piece_, [&](std::int64_t first, std::int64_t last) {
      Room room;
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t sample = i / parts / outer;
        const std::int64_t begin = i % parts * piece_;
        const Drawn drawn(move_, ids[sample], position);
        piece(inputs, outputs[0], drawn, sample, i / parts % outer, begin,
              std::min(piece_, whole - begin), whole, room);
      }
    });
  }

 private:
  struct Room {
    std::vector<T> loaded, result;
    static T* of(std::vector<T>& room, std::int64_t count) {
      if (room.size() < static_cast<std::size_t>(count))
        room.resize(static_cast<std::size_t>(count));
      return room.data();
    }
  };

  /// Elements begin .. begin + n of what index `outer` of the outer axes has.
  void piece(std::span<const ArrayView> inputs, const ArrayView& out, const Drawn& drawn,
             std::int64_t sample, std::int64_t outer, std::int64_t begin, std::int64_t n,
             std::int64_t whole, Room& room) const {
    std::int64_t from = sample * move_.in_elements;
    const std::int64_t to = sample * move_.out_elements + outer * whole + begin;
    bool inside = true;
    for (std::int64_t k = outer_ - 1; k >= 0; --k) {
      const SampleMove::Axis& axis = move_.axes[k];
      const std::int64_t place = drawn.place(move_, k, outer % axis.out);
      inside &= place >= 0 && place < axis.in;
      from += place * axis.stride;
      outer /= axis.out;
    }
    T* const result = store_.is_plain() ? out.as<T>() + to : Room::of(room.result, n);
    if (!inside) {
      std::fill_n(result, n, fill_);
    } else if (outer_ == move_.rank - 1) {
      part_of_line(inputs, drawn, from, begin, n, result, room);
    } else {
      lines(inputs, drawn, outer_, from, result, room);
    }
    if (!store_.is_plain()) store_.store(result, inputs, to, n, out.data);
  }

  /// All of axes `k` and after, the input of which starts at `from`. Returns where it ended.
  T* lines(std::span<const ArrayView> inputs, const Drawn& drawn, std::int64_t k, std::int64_t from,
           T* result, Room& room) const {
    const SampleMove::Axis& axis = move_.axes[k];
    if (k == move_.rank - 1) {
      part_of_line(inputs, drawn, from, 0, axis.out * move_.inner, result, room);
      return result + axis.out * move_.inner;
    }
    for (std::int64_t i = 0; i < axis.out; ++i) {
      const std::int64_t place = drawn.place(move_, k, i);
      if (place >= 0 && place < axis.in) {
        result = lines(inputs, drawn, k + 1, from + place * axis.stride, result, room);
        continue;
      }
      std::int64_t count = move_.inner;
      for (std::int64_t next = k + 1; next < move_.rank; ++next)
        count *= move_.axes[next].out;
      result = std::fill_n(result, count, fill_);
    }
    return result;
  }

  /// Elements begin .. begin + n of a line; `begin` and `n` are whole blocks.
  void part_of_line(std::span<const ArrayView> inputs, const Drawn& drawn, std::int64_t from,
                    std::int64_t begin, std::int64_t n, T* result, Room& room) const {
    const std::int64_t k = move_.rank - 1, inner = move_.inner, in = move_.line().in;
    // Blocks first .. last of the output are in the input.
    const std::int64_t low = begin / inner, high = low + n / inner;
    const std::int64_t first = std::clamp(-drawn.start[k], low, high);
    const std::int64_t last = std::clamp(in - drawn.start[k], first, high);
    std::fill_n(result, (first - low) * inner, fill_);
    std::fill_n(result + (last - low) * inner, (high - last) * inner, fill_);
    if (first == last) return;
    const std::int64_t count = (last - first) * inner;
    const bool reversed = drawn.reversed[k];
    const std::int64_t lowest = drawn.place(move_, k, reversed ? last - 1 : first);
    T* const target = result + (first - low) * inner;
    // A load that computes may write where it is wanted.
    T* const buffer = reversed ? Room::of(room.loaded, count) : target;
    const auto* const loaded =
        static_cast<const T*>(load_.load(inputs, from + lowest * inner, count, buffer));
    if (!reversed) {
      if (loaded != target)
        std::memcpy(target, loaded, static_cast<std::size_t>(count) * sizeof(T));
    } else if (inner == 1) {
      std::reverse_copy(loaded, loaded + count, target);
    } else {
      for (std::int64_t i = 0; i < count; i += inner)
        std::copy_n(loaded + count - inner - i, inner, target + i);
    }
  }

  SampleMove move_;
  expr::Tile load_, store_;
  T fill_;
  std::size_t ids_ = 1, position_ = 2;
  std::int64_t outer_ = 0, piece_ = 1;
};

}  // namespace

std::unique_ptr<Body> move_samples_cpu(const SampleMove& move, const Fill& fill,
                                       const Problem& problem) {
  switch (size_of(problem.inputs[0].dtype)) {
    case 1:
      return std::make_unique<MoveCpu<Bytes<1>>>(move, fill, problem);
    case 2:
      return std::make_unique<MoveCpu<std::uint16_t>>(move, fill, problem);
    case 4:
      return std::make_unique<MoveCpu<std::uint32_t>>(move, fill, problem);
    case 8:
      return std::make_unique<MoveCpu<std::uint64_t>>(move, fill, problem);
    default:
      return std::make_unique<MoveCpu<Bytes<16>>>(move, fill, problem);
  }
}

}  // namespace forebay
