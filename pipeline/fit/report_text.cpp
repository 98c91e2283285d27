// A report as YAML and as JSON: one tree, two ways to write its leaves.

#include <algorithm>
#include <cmath>
#include <functional>

#include <forebay/array/require.h>
#include <forebay/pipeline/fit.h>
#include <forebay/pipeline/fit/json_text.h>

namespace forebay {
namespace fit_detail {

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace fit_detail

namespace {

class Writer {
 public:
  explicit Writer(bool json) : json_(json) {}

  std::string write(const FitReport& report) const {
    std::string text =
        json_ ? "{"
              : fmt::format(
                    "# Statistics of {} samples, by `forebay fit`{}.\n", report.samples,
                    report.bad > 0 ? fmt::format("; {} bad ones are left out", report.bad) : "");
    for (const FitField& field : report.fields) {
      text += json_ ? fmt::format("{}\n  {}: {{", &field == &report.fields.front() ? "" : ",",
                                  fit_detail::json_text(field.name))
                    : key(field.name) + ":\n";
      text += fields_of(report, field);
      if (json_) text += "\n  }";
    }
    return json_ ? text + "\n}\n" : text;
  }

 private:
  using Get = std::function<std::string(const FitStatistics&)>;

  std::string key(const std::string& name) const {
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
    });
    const bool letter = plain && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
    return json_ || !letter ? fit_detail::json_text(name) : name;
  }

  /// The shortest text that reads back as the same number.
  std::string number(double value) const {
    if (std::isnan(value)) return json_ ? "null" : ".nan";
    return fmt::format("{}", value);
  }
  template <class List, class Text>
  static std::string list(const List& values, Text text) {
    std::string all = "[";
    for (const auto& value : values)
      all += (all.size() == 1 ? "" : ", ") + text(value);
    return all + "]";
  }
  std::string numbers(const std::vector<double>& values) const {
    return list(values, [this](double value) { return number(value); });
  }

  /// One value, or a list of one for each channel.
  static std::string of_channels(const FitField& field, const Get& get) {
    return field.shape.rank == 0 ? get(field.statistics.front()) : list(field.statistics, get);
  }

  std::string fields_of(const FitReport& report, const FitField& field) const {
    std::string text;
    const auto put = [&](const char* name, const std::string& value) {
      text += json_ ? fmt::format("{}\n    \"{}\": {}", text.empty() ? "" : ",", name, value)
                    : fmt::format("  {}: {}\n", name, value);
    };
    const auto put_number = [&](const char* name, auto member) {
      put(name, of_channels(field, [&](const FitStatistics& s) { return number(s.*member); }));
    };
    const auto put_count = [&](const char* name, auto member) {
      put(name,
          of_channels(field, [&](const FitStatistics& s) { return fmt::format("{}", s.*member); }));
    };
    put("dtype",
        json_ ? fit_detail::json_text(name_of(field.dtype)) : std::string(name_of(field.dtype)));
    put_count("count", &FitStatistics::count);
    put_count("nan", &FitStatistics::nan);
    put_count("inf", &FitStatistics::inf);
    put_number("mean", &FitStatistics::mean);
    put_number("std", &FitStatistics::std);
    put_number("min", &FitStatistics::min);
    put_number("max", &FitStatistics::max);
    put("percentiles", percentiles(report, field, &FitStatistics::percentiles));
    put("percentile_errors", percentiles(report, field, &FitStatistics::percentile_errors));
    put("histogram", histogram(field));
    return text;
  }

  std::string percentiles(const FitReport& report, const FitField& field,
                          std::vector<double> FitStatistics::*member) const {
    std::string text = "{";
    for (std::size_t i = 0; i < report.percentiles.size(); ++i) {
      const std::string name = fmt::format("{}", report.percentiles[i]);
      text += fmt::format(
          "{}{}: {}", i == 0 ? "" : ", ", json_ ? fit_detail::json_text(name) : name,
          of_channels(field, [&](const FitStatistics& s) { return number((s.*member)[i]); }));
    }
    return text + "}";
  }

  std::string histogram(const FitField& field) const {
    const std::string edges =
        of_channels(field, [&](const FitStatistics& s) { return numbers(s.edges); });
    const std::string counts = of_channels(field, [](const FitStatistics& s) {
      return list(s.counts, [](std::int64_t count) { return fmt::format("{}", count); });
    });
    return fmt::format("{{{}: {}, {}: {}}}", json_ ? "\"edges\"" : "edges", edges,
                       json_ ? "\"counts\"" : "counts", counts);
  }

  bool json_;
};

}  // namespace

std::string to_yaml(const FitReport& report) { return Writer(false).write(report); }
std::string to_json(const FitReport& report) { return Writer(true).write(report); }

}  // namespace forebay
