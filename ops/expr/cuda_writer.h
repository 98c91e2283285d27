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
  /// Extents and divisors of the outer axes, and every array: `x0`, `x0_stride1`, .. where it is not 0.
  void arrays();

  /// The program for one element, as a function.
  void element();
  /// The call of it with each leaf and output as these write it; `exact` counts where has_doubt().
  template <class Leaf, class Output>
  std::string element_call(std::string_view exact, const Leaf& leaf, const Output& output) const {
    std::string list;
    for (std::size_t i = 0; i < leaf_count(); ++i)
      list += (list.empty() ? "" : ", ") + leaf(i);
    for (int leaf_number : inverses_)
      list += fmt::format(", x{}_inverse", leaf_number);
    for (std::size_t k = 0; k < output_count(); ++k)
      list += (list.empty() ? "" : ", ") + output(k);
    if (!has_doubt()) return fmt::format("element({});", list);
    return fmt::format("element<{}>({}, doubt);", exact, list);
  }
  /// Whether elements are computed with quotients by inverses, which have to be looked at; and the leaves that divide.
  bool has_doubt() const { return has_doubt_; }
  const std::vector<int>& inverses() const { return inverses_; }
  bool is_widened(std::size_t i) const { return shared_.widened[i]; }

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
  bool has_doubt_ = false;
  std::vector<int> inverses_;
};

/// `struct Place` and `struct Item`, of `struct Parameters` and, in form tiles, `struct Tiles`.
void write_item(CudaWriter& writer);
void write_items(CudaWriter& writer);
void write_tiles(CudaWriter& writer);

}  // namespace forebay::expr
