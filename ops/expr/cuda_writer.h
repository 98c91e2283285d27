#pragma once

#include <string>

#include <fmt/format.h>

#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/expr/cuda_text.h>

// Internal: what the forms of generated kernels (cuda_items.cpp, cuda_tiles.cpp) write with.
namespace forebay::expr {

class CudaWriter {
 public:
  CudaWriter(const Program& program, CudaSource& source);

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    source.text += fmt::format(format, std::forward<Args>(args)...);
    source.text += '\n';
  }

  // ---- The parameter: members and the words beside them.
  void member(std::string_view text, std::int64_t value);
  void divisor(std::string_view name, std::int64_t value);
  /// An array of the parameter.
  void numbers(std::string_view name, std::span<const float> values);
  /// Extents and divisors of the outer axes, and every array: `x0`, `x0_stride1`, .. where it is not 0.
  void arrays();

  /// The program for one element, as a function.
  void element();
  /// The call of it with each leaf, its inverse and each output as these write it; `exact` counts where there are
  /// short ways.
  template <class Leaf, class Inverse, class Output>
  std::string element_call(std::string_view exact, const Leaf& leaf, const Inverse& inverse,
                           const Output& output) const {
    std::string list;
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      list += (list.empty() ? "" : ", ") + leaf(i);
      if (divides(i)) list += ", " + inverse(i);
    }
    for (std::size_t k = 0; k < output_count(); ++k)
      list += (list.empty() ? "" : ", ") + output(k);
    if (!is_exact_or_not_) return fmt::format("element({});", list);
    return fmt::format("element<{}>({}{});", exact, list, has_doubt_ ? ", doubt" : "");
  }
  /// Whether there are short ways that have to be looked at; whether a leaf divides many by its inverse, and whether it
  /// is subtracted from integers that are then divided.
  bool has_doubt() const { return has_doubt_; }
  bool divides(std::size_t i) const { return divides_[i]; }
  bool shifts(std::size_t i) const { return shifts_[i]; }
  bool is_widened(std::size_t i) const { return shared_.leaves[i].is_widened; }
  /// Whether the parameter has the values of a leaf.
  bool is_held(std::size_t i) const { return !walk.held[i].empty(); }

  /// Sets `i0`, `i1`, .. of `to` (`corner.` or nothing) on the outer axes, of which there are some, from the row `r`.
  void outer_indices(std::string_view indent, std::string_view to);
  /// Where the row with those indices starts: ` + i0 * Index(p.x0_stride0) + ..`.
  std::string outer_place(std::string_view array, const Dims& strides,
                          std::string_view of = "") const;

  std::size_t leaf_count() const { return program.leaves.size(); }
  std::size_t output_count() const { return program.outputs.size(); }
  std::string_view leaf_type(std::size_t i) const;
  std::string_view output_type(std::size_t k) const;
  /// Of several outputs, those that nobody reads have no memory.
  std::string guard(std::size_t k) const;

  const Program& program;
  CudaSource& source;
  const CudaWalk& walk;
  const LoopNest& nest;

 private:
  CudaShared shared_;
  bool is_exact_or_not_ = false, has_doubt_ = false;
  std::vector<bool> divides_, shifts_;  // for each leaf
};

/// `struct Place` and `struct Item`, of `struct Parameters` and, in form tiles, `struct Tiles`.
void write_item(CudaWriter& writer);
void write_items(CudaWriter& writer);
void write_tiles(CudaWriter& writer);

}  // namespace forebay::expr
