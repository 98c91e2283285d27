#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

/// What the example programs share.
namespace kit {

/// The folder that the running program lies in; its files are beside it.
inline std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// `--name value` pairs over defaults; anything else ends the program with the list of names.
class Arguments {
 public:
  Arguments(int argc, char** argv, std::map<std::string, std::string> defaults)
      : values_(std::move(defaults)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      const bool known = name.starts_with("--") && values_.contains(name.substr(2));
      if (known && i + 1 < argc) {
        values_[name.substr(2)] = argv[i + 1];
        continue;
      }
      std::ostream& out = name == "--help" ? std::cout : std::cerr;
      out << "usage: " << argv[0];
      for (const auto& [key, value] : values_)
        out << " [--" << key << ' ' << value << ']';
      out << '\n';
      std::exit(name == "--help" ? 0 : 2);
    }
  }
  const std::string& operator[](const std::string& name) const { return values_.at(name); }
  int number(const std::string& name) const { return std::stoi(values_.at(name)); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace kit
