// forebay_bench: the rows of the table, Forebay's own part. `run.py` drives it.
//
//   forebay_bench list             the rows, one JSON object a line
//   forebay_bench plan [ID ...]    what is timed: the plan of each row, as `forebay plan` prints it
//   forebay_bench serve            measures: a JSON object a line on stdin, an answer a line on stdout
//
// Options: --device auto|cpu|cuda[:N] (auto), --size gpu|cpu|smoke (that of the device).

#include <algorithm>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <forebay/array/require.h>
#include "serve.h"

namespace forebay::bench {
namespace {

struct Arguments {
  std::string command;
  std::vector<std::string> ids;
  Device device;
  Size size = Size::cpu;
};

Arguments parse(std::span<const char* const> words) {
  Arguments arguments;
  std::string device = "auto", size;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word != "--device" && word != "--size") {
      (arguments.command.empty() ? arguments.command : arguments.ids.emplace_back()) = word;
      continue;
    }
    if (++i == words.size()) fail(ErrorKind::invalid, "{} wants a value.", word);
    (word == "--device" ? device : size) = words[i];
  }
  // A plan for a GPU can be made without one.
  arguments.device = device == "cuda" ? Device::cuda() : device_from_name(device.c_str());
  if (size.empty()) size = arguments.device.is_cuda() ? "gpu" : "cpu";
  if (size != "gpu" && size != "cpu" && size != "smoke")
    fail(ErrorKind::invalid, "--size is `{}`; it must be gpu, cpu or smoke.", size);
  arguments.size = size == "gpu" ? Size::gpu : size == "cpu" ? Size::cpu : Size::smoke;
  return arguments;
}

void print_plans(const Arguments& arguments) {
  for (const Row& row : rows()) {
    const auto& ids = arguments.ids;
    if (!ids.empty() && std::find(ids.begin(), ids.end(), row.id) == ids.end()) continue;
    fmt::print("{}\n", to_string(*plan_of(row, arguments.size, arguments.device)));
  }
}

int run(std::span<const char* const> words) {
  const Arguments arguments = parse(words);
  for (const std::string& id : arguments.ids)
    row(id);
  if (arguments.command == "list") {
    for (const Row& row : rows())
      std::cout << describe(row, arguments.size) << '\n';
  } else if (arguments.command == "plan") {
    print_plans(arguments);
  } else if (arguments.command == "serve") {
    serve(std::cin, std::cout, arguments.size, arguments.device);
  } else {
    std::cerr
        << "forebay_bench list | plan [ID ...] | serve, with --device auto|cpu|cuda[:N] and --size "
           "gpu|cpu|smoke\n";
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace forebay::bench

int main(int count, char** words) {
  try {
    return forebay::bench::run(
        std::span<const char* const>(words + 1, static_cast<std::size_t>(count - 1)));
  } catch (const std::exception& error) {
    std::cerr << "forebay_bench: " << error.what() << '\n';
    return 1;
  }
}
