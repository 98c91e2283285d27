#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/array/number.h>

namespace forebay {

/// One real value, or one for each index of an axis.
struct Reals {
  std::vector<double> values;
  Reals() = default;
  Reals(double value) : values{value} {}  // NOLINT(google-explicit-constructor): `.mean = 0.13`
  Reals(std::initializer_list<double> list) : values(list) {}
};

/// An array that belongs to the settings: given directly in C++, as the path of a .npy file
/// in YAML.
struct ConstantArray {
  Array array;
  std::string path;
  ConstantArray() = default;
  ConstantArray(Array value) : array(std::move(value)) {}  // NOLINT(google-explicit-constructor)
};

/// What there is to know of one setting. `min` and `max` bound every number in it.
struct Field {
  std::string_view name = {};
  std::string_view doc = {};    ///< one sentence, with the unit
  std::string_view alias = {};  ///< another library's name for it, accepted with a note
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool required = false;
  /// Of a text: says what is wrong with it; empty when nothing is.
  std::string (*problem)(std::string_view text) = nullptr;
};

/// Walks the settings of an op: YAML binding, bounds, `explain`, the JSON schema, printing and
/// hashing are each one subclass. A settings struct is an aggregate with one member
/// `void fields(FieldVisitor&)`.
///
/// An enum is visited through `std::span<const std::string_view> names_of(E)`, found by its
/// namespace, whose entries stand in the order of the enumerators 0, 1, ...
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  virtual void on(const Field& field, bool& value) = 0;
  virtual void on(const Field& field, std::int64_t& value) = 0;
  virtual void on(const Field& field, double& value) = 0;
  virtual void on(const Field& field, Number& value) = 0;
  virtual void on(const Field& field, Dtype& value) = 0;
  virtual void on(const Field& field, std::string& value) = 0;
  virtual void on(const Field& field, std::vector<std::int64_t>& value) = 0;
  virtual void on(const Field& field, Reals& value) = 0;
  virtual void on(const Field& field, ConstantArray& value) = 0;
  virtual void on_choice(const Field& field, int& index,
                         std::span<const std::string_view> names) = 0;

  /// An optional setting: visited as its content where `visit_optional` says so. Here and below
  /// nothing is written that is not changed: threads share settings that others print.
  template <class T>
  void on(const Field& field, std::optional<T>& value) {
    if (!visit_optional(field, value.has_value())) return;
    if (value.has_value()) return on(field, *value);
    T content{};
    on(field, content);
    value = std::move(content);
  }
  template <class E>
  requires std::is_enum_v<E>
  void on(const Field& field, E& value) {
    int index = static_cast<int>(value);
    on_choice(field, index, names_of(E{}));
    if (index != static_cast<int>(value)) value = static_cast<E>(index);
  }

 protected:
  /// A reader says whether the setting was given; a printer, whether it has a value.
  virtual bool visit_optional(const Field& field, bool has_value) = 0;
};

}  // namespace forebay
