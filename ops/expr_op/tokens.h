#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forebay::expr {

/// The text of an expression, token by token: a name, a number, an operator or a parenthesis; empty
/// at the end.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  std::string_view token() const { return token_; }
  bool is_name() const;
  bool is_number() const;
  /// Where the token begins: characters, from 1.
  int column() const;
  void advance();
  /// Whether the token is this one; goes on to the next if so.
  bool accept(std::string_view token);

  /// The token for an error: "`*`.", with what to write instead of another language's operators.
  std::string found() const;

 private:
  std::string_view text_, token_;
  std::size_t at_ = 0;
};

}  // namespace forebay::expr
