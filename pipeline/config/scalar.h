#pragma once

#include <string>

#include <forebay/array/number.h>
#include <forebay/pipeline/config/node.h>

namespace forebay::config {

// Each reads a scalar by the rules of YAML 1.2's core schema and returns what is wrong with it,
// such as "it must be an integer", or an empty text.

std::string read(const Node& node, bool& value);
std::string read(const Node& node, std::int64_t& value);
/// Integers become the nearest double.
std::string read(const Node& node, double& value);
/// Integers stay exact: `3` is an integer, `3.0` a float.
std::string read(const Node& node, Number& value);
/// Any scalar as it is written.
std::string read(const Node& node, std::string& value);

}  // namespace forebay::config
