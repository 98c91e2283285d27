// A recursive-descent parser: one function for each level of Python's precedence, from comparisons,
// which bind least.
#include <forebay/ops/expr_op/formula.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>
#include <optional>

#include <forebay/array/require.h>
#include <forebay/ops/expr_op/tokens.h>
#include <forebay/ops/registry.h>

namespace forebay::expr {
namespace {

using numpy::Operand;
using Term = Formula::Term;

constexpr int kMaxDepth = 200;

std::optional<Number> constant_called(std::string_view name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<Dtype> dtype_called(std::string_view name) {
  try {
    return dtype_from_name(name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// An operator, the opcode that it is, and whether its operands change places (a > b is b < a).
struct Operator {
  std::string_view text;
  Opcode opcode;
  bool swapped = false;
};
constexpr Operator kComparisons[] = {{"<", Opcode::lt},       {"<=", Opcode::le},
                                     {">", Opcode::lt, true}, {">=", Opcode::le, true},
                                     {"==", Opcode::eq},      {"!=", Opcode::ne}};
constexpr Operator kOr[] = {{"|", Opcode::logical_or}};
constexpr Operator kAnd[] = {{"&", Opcode::logical_and}};
constexpr Operator kSums[] = {{"+", Opcode::add}, {"-", Opcode::sub}};
constexpr Operator kProducts[] = {{"*", Opcode::mul}, {"/", Opcode::div}};
constexpr Operator kPower[] = {{"**", Opcode::pow}};
constexpr Operator kSigns[] = {{"-", Opcode::neg}, {"~", Opcode::logical_not}};

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& names) : tokens_(text), names_(names) {}

  Term whole() {
    Term result = comparison();
    if (!tokens_.token().empty())
      fail_at(column(), "expected an operator, found {}", tokens_.found());
    return result;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_at(int column, fmt::format_string<Args...> text, Args&&... args) const {
    fail(ErrorKind::invalid, "column {}: {}", column,
         fmt::format(text, std::forward<Args>(args)...));
  }
  int column() const { return tokens_.column(); }
  bool accept(std::string_view token) { return tokens_.accept(token); }
  /// The operator of this level that comes next, if one does.
  const Operator* accept(std::span<const Operator> level) {
    const auto next = std::ranges::find(level, tokens_.token(), &Operator::text);
    if (next == level.end()) return nullptr;
    tokens_.advance();
    return &*next;
  }

  Term term(int column, decltype(Term::apply) apply, std::vector<Term> operands) {
    Term result{.column = column, .number = {}, .apply = std::move(apply), .operands = {}};
    for (const Term& operand : operands)
      result.depth = std::max(result.depth, operand.depth + 1);
    if (result.depth > kMaxDepth) {
      fail_at(column, "the expression is more than {} operations deep; make it two stages.",
              kMaxDepth);
    }
    result.operands = std::move(operands);
    return result;
  }
  Term two(int column, const Operator& op, Term a, Term b) {
    if (op.swapped) std::swap(a, b);
    std::vector<Term> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return term(
        column,
        [opcode = op.opcode](std::span<const Operand> x) {
          return numpy::binary(opcode, x[0], x[1]);
        },
        std::move(operands));
  }

  /// Operators of one level, from left to right; `next` is the level that binds more.
  Term left_to_right(std::span<const Operator> level, Term (Parser::*next)()) {
    Term result = (this->*next)();
    for (int at = column(); const Operator* op = accept(level); at = column())
      result = two(at, *op, std::move(result), (this->*next)());
    return result;
  }

  Term comparison() {
    Term left = either();
    const int at = column();
    const Operator* op = accept(kComparisons);
    if (op == nullptr) return left;
    Term result = two(at, *op, std::move(left), either());
    if (std::ranges::find(kComparisons, tokens_.token(), &Operator::text) != std::end(kComparisons))
      fail_at(column(), "comparisons do not chain; write (a < b) & (b < c).");
    return result;
  }
  Term either() { return left_to_right(kOr, &Parser::both); }
  Term both() { return left_to_right(kAnd, &Parser::sum); }
  Term sum() { return left_to_right(kSums, &Parser::product); }
  Term product() { return left_to_right(kProducts, &Parser::factor); }

  Term factor() {
    // The one level that calls itself, with parentheses and arguments: bounded for the stack's
    // sake.
    if (++nesting_ > kMaxDepth)
      fail_at(column(), "the expression is more than {} operations deep; make it two stages.",
              kMaxDepth);
    Term result = signed_power();
    --nesting_;
    return result;
  }
  Term signed_power() {
    const int at = column();
    if (accept("+")) return factor();
    if (const Operator* sign = accept(kSigns)) {
      std::vector<Term> operands;
      operands.push_back(factor());
      return term(
          at,
          [opcode = sign->opcode](std::span<const Operand> x) {
            return numpy::unary(opcode, x[0]);
          },
          std::move(operands));
    }
    Term base = primary();
    const int power_at = column();
    const Operator* op = accept(kPower);
    return op == nullptr ? std::move(base) : two(power_at, *op, std::move(base), factor());
  }

  Term primary() {
    const int at = column();
    if (accept("(")) {
      Term inside = comparison();
      if (!accept(")"))
        fail_at(at, "`(` is not closed: at column {} comes {}", column(), tokens_.found());
      return inside;
    }
    if (tokens_.is_number()) return number();
    if (!tokens_.is_name()) fail_at(at, "expected a value, found {}", tokens_.found());
    const std::string_view name = tokens_.token();
    tokens_.advance();
    if (accept("(")) return call(at, name);
    Term result = term(at, {}, {});
    if (const auto constant = constant_called(name)) {
      result.number = *constant;
      return result;
    }
    const auto known = std::ranges::find(names_, name);
    result.name = static_cast<int>(known - names_.begin());
    if (known == names_.end()) names_.emplace_back(name);
    return result;
  }

  Term number() {
    Term result = term(column(), {}, {});
    const std::string_view token = tokens_.token();
    const char *begin = token.data(), *end = begin + token.size();
    std::uint64_t whole = 0;
    double real = 0;
    if (const auto read = std::from_chars(begin, end, whole); read.ptr == end) {
      if (read.ec != std::errc())
        fail_at(column(), "{} does not fit 64 bits; write {}.0.", token, token);
      result.number = whole;
    } else if (const auto rest = std::from_chars(begin, end, real); rest.ptr == end) {
      if (rest.ec != std::errc()) fail_at(column(), "{} is outside the range of f64.", token);
      result.number = real;
    } else {
      fail_at(column(), "expected a number, found {}", tokens_.found());
    }
    tokens_.advance();
    return result;
  }

  /// What comes behind `name(`.
  Term call(int at, std::string_view name) {
    std::vector<Term> operands;
    if (!accept(")")) {
      do {
        operands.push_back(comparison());
      } while (accept(","));
      if (!accept(")"))
        fail_at(at, "the arguments of `{}` are not closed: at column {} comes {}", name, column(),
                tokens_.found());
    }
    const auto check_count = [&](int takes) {
      if (std::ssize(operands) != takes)
        fail_at(at, "`{}` takes {} argument{}; it is given {}.", name, takes, takes == 1 ? "" : "s",
                operands.size());
    };
    const auto known = std::ranges::find(numpy::functions(), name, &numpy::Function::name);
    if (known != numpy::functions().end()) {
      check_count(known->operands);
      return term(at, known->apply, std::move(operands));
    }
    const auto dtype = dtype_called(name);
    if (!dtype) fail_unknown(at, name);
    check_count(1);
    return term(
        at, [to = *dtype](std::span<const Operand> x) { return numpy::astype(x[0], to); },
        std::move(operands));
  }

  [[noreturn]] void fail_unknown(int at, std::string_view name) const {
    std::vector<std::string_view> all;
    std::string list;
    for (const numpy::Function& function : numpy::functions()) {
      all.push_back(function.name);
      list += fmt::format("{}, ", function.name);
    }
    for (const Dtype dtype : kAllDtypes)
      all.push_back(name_of(dtype));
    const std::string_view nearest = nearest_name(name, all);
    if (!nearest.empty()) fail_at(at, "unknown function `{}`; did you mean `{}`?", name, nearest);
    fail_at(at, "unknown function `{}`; there are {}and the dtypes, such as f32(x).", name, list);
  }

  Tokens tokens_;
  std::vector<std::string>& names_;
  int nesting_ = 0;
};

Operand evaluate_term(const Term& term, std::span<const Expr> values) {
  if (term.name >= 0) return values[static_cast<std::size_t>(term.name)];
  if (!term.apply) return term.number;
  std::vector<Operand> operands;
  for (const Term& operand : term.operands)
    operands.push_back(evaluate_term(operand, values));
  try {
    return term.apply(operands);
  } catch (const Error& error) {
    fail(error.kind(), "column {}: {}", term.column, error.what());
  }
}

}  // namespace

Formula::Formula(std::string_view text) : root_(Parser(text, names_).whole()) {
  FOREBAY_REQUIRE(!names_.empty(), invalid,
                  "column 1: it reads no field; name one, as in `x * 2`.");
}

Expr Formula::evaluate(std::span<const Expr> values) const {
  return evaluate_term(root_, values).expr();
}

}  // namespace forebay::expr
