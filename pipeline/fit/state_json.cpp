// A FitPartial as JSON. Tables are texts, "bin:word word,bin:word word" in base 16, so that a file
// of megabytes has few values. JSON is YAML, whose reader is there.

#include <charconv>

#include <forebay/array/require.h>
#include <forebay/pipeline/config/scalar.h>
#include <forebay/pipeline/fit/json_text.h>
#include <forebay/pipeline/fit/state.h>

namespace forebay {
namespace {

using config::Node;
using fit_detail::Channel;
using fit_detail::FieldTables;
using fit_detail::Wide;

constexpr int kVersion = 1;

void put_hex(std::string& text, Wide value) {
  char digits[32];
  int count = 0;
  do {
    digits[count++] = "0123456789abcdef"[static_cast<int>(value & 15)];
    value >>= 4;
  } while (value != 0);
  while (count > 0)
    text += digits[--count];
}

std::string table_text(const Channel& channel, int words) {
  std::string text;
  for (const auto& [bin, sums] : channel.table) {
    if (!text.empty()) text += ',';
    put_hex(text, static_cast<Wide>(bin));
    for (int i = 0; i < words; ++i) {
      text += i == 0 ? ':' : ' ';
      put_hex(text, sums[static_cast<std::size_t>(i)]);
    }
  }
  return text;
}

template <class List>
std::string list_text(const List& values) {
  std::string text = "[";
  for (const auto value : values)
    text += fmt::format("{}{}", text.size() == 1 ? "" : ", ", value);
  return text + "]";
}

std::string field_text(const FieldTables& field) {
  std::string text = fmt::format(
      "    {{\"name\": {}, \"dtype\": \"{}\", \"bits\": {}, \"shape\": {}, \"origins\": {}, "
      "\"channels\": [",
      fit_detail::json_text(field.name), name_of(field.dtype), field.bits, list_text(field.shape),
      list_text(field.origins));
  const int words = field.bins().words();
  for (std::size_t i = 0; i < field.channels.size(); ++i) {
    const Channel& channel = field.channels[i];
    text +=
        fmt::format("{}\n      {{\"extremes\": [{}, {}], \"table\": \"{}\"}}", i == 0 ? "" : ",",
                    channel.extremes[0], channel.extremes[1], table_text(channel, words));
  }
  return text + "]}";
}

/// Reads what to_json wrote; anything else is no state.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  FitPartial::State read(const Node& root) const {
    require(integer(entry(root, "forebay_fit", Node::Kind::scalar)) == kVersion);
    FitPartial::State state;
    state.about = entry(root, "about", Node::Kind::scalar).text;
    state.samples = integer(entry(root, "samples", Node::Kind::scalar));
    if (root.find("bad") != nullptr) state.bad = integer(entry(root, "bad", Node::Kind::scalar));
    for (const Node& range : entry(root, "done", Node::Kind::sequence).items) {
      require(range.items.size() == 2);
      state.done.push_back({integer(range.items[0]), integer(range.items[1])});
    }
    for (const Node& field : entry(root, "fields", Node::Kind::sequence).items)
      state.fields.push_back(read_field(field));
    return state;
  }

 private:
  void require(bool condition) const {
    FOREBAY_REQUIRE(condition, invalid,
                    "{}: it is no state of `forebay fit`, or one of another version.", file_);
  }
  const Node& entry(const Node& node, std::string_view key, Node::Kind kind) const {
    const Node::Entry* found = node.kind == Node::Kind::map ? node.find(key) : nullptr;
    require(found != nullptr && found->value.kind == kind);
    return found->value;
  }
  std::int64_t integer(const Node& node) const {
    std::int64_t value = -1;
    require(config::read(node, value).empty() && value >= 0);
    return value;
  }

  FieldTables read_field(const Node& node) const {
    FieldTables field;
    field.name = entry(node, "name", Node::Kind::scalar).text;
    field.dtype = dtype_from_name(entry(node, "dtype", Node::Kind::scalar).text);
    field.bits = integer(entry(node, "bits", Node::Kind::scalar));
    require(!is_complex(field.dtype) && field.bits <= TallyBins::kMostBits);
    for (const Node& extent : entry(node, "shape", Node::Kind::sequence).items)
      field.shape.push_back(integer(extent));
    for (const Node& origin : entry(node, "origins", Node::Kind::sequence).items)
      require(config::read(origin, field.origins.emplace_back()).empty());
    require(field.origins.empty() ||
            static_cast<std::int64_t>(field.origins.size()) == count_of(field.shape));
    const TallyBins bins = field.bins();
    for (const Node& channel : entry(node, "channels", Node::Kind::sequence).items)
      field.channels.push_back(read_channel(channel, bins));
    require(static_cast<std::int64_t>(field.channels.size()) == count_of(field.shape));
    return field;
  }

  Channel read_channel(const Node& node, const TallyBins& bins) const {
    Channel channel;
    const Node& extremes = entry(node, "extremes", Node::Kind::sequence);
    require(extremes.items.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      Number number;
      require(config::read(extremes.items[i], number).empty() && number.is_integer());
      channel.extremes[i] = number.u64();
    }
    const std::string& table = entry(node, "table", Node::Kind::scalar).text;
    for (const char* at = table.data(); at != table.data() + table.size();) {
      const auto bin = static_cast<std::int64_t>(hex(at));
      require(bin >= 0 && bin < bins.count() && *at == ':');
      fit_detail::Words& words = channel.table[bin];
      for (int i = 0; i < bins.words(); ++i) {
        require(*at == (i == 0 ? ':' : ' '));
        words[static_cast<std::size_t>(i)] = hex(++at);
      }
      require(*at == ',' || *at == '\0');
      if (*at == ',') ++at;
    }
    return channel;
  }

  Wide hex(const char*& at) const {
    Wide value = 0;
    const char* const begin = at;
    for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); ++at)
      value = value << 4 | static_cast<Wide>(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    require(at != begin && at - begin <= 32);
    return value;
  }

  const std::string& file_;
};

}  // namespace

std::string FitPartial::to_json() const {
  std::string text =
      fmt::format("{{\n  \"forebay_fit\": {},\n  \"about\": {},\n  \"samples\": {},\n  \"done\": [",
                  kVersion, fit_detail::json_text(state_->about), state_->samples);
  for (std::size_t i = 0; i < state_->done.size(); ++i)
    text +=
        fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", state_->done[i].begin, state_->done[i].end);
  text += "],\n";
  if (state_->bad > 0) text += fmt::format("  \"bad\": {},\n", state_->bad);
  text += "  \"fields\": [";
  for (std::size_t i = 0; i < state_->fields.size(); ++i)
    text += (i == 0 ? "\n" : ",\n") + field_text(state_->fields[i]);
  return text + "\n  ]\n}\n";
}

FitPartial FitPartial::from_json(const std::string& text, const std::string& file) {
  return FitPartial(std::make_shared<State>(Reader(file).read(config::parse_yaml(text, file))));
}

}  // namespace forebay
