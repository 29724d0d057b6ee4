#include "allocator/testing/simple_expressions.h"

#include <cctype>
#include <optional>
#include <vector>

#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

using device::AttributeValue;

struct Term {
  enum class Kind { kDriver, kMultiple, kAttribute, kCapacity, kLiteral };
  Kind kind;
  std::string domain;
  std::string name;
  std::optional<AttributeValue> equals;  // none: the term itself
  api::Quantity quantity;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool Eat(std::string_view token) {
    Space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string> Quoted() {
    Space();
    if (!rest_.starts_with('"')) return std::nullopt;
    const std::size_t end = rest_.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string Word() {
    Space();
    std::size_t size = 0;
    while (size < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[size])) || rest_[size] == '_')) {
      ++size;
    }
    std::string word(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return word;
  }
  bool AtEnd() {
    Space();
    return rest_.empty();
  }

 private:
  void Space() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

class SimpleExpression final : public device::Expression {
 public:
  explicit SimpleExpression(std::string_view text) {
    Scanner scanner(text);
    if (!Parse(scanner)) {
      compile_error_ = StrCat("compilation failed: ERROR: <input>:1:1: undeclared reference to '",
                              text, "' (in container '')\n | ", text, "\n | ^");
    }
  }

  Result<bool> Matches(std::string_view driver, const device::Device& device) const override {
    if (auto bad = FindBad(device)) return *bad;
    for (const std::vector<Term>& all : any_) {
      bool matches = true;
      for (const Term& term : all) {
        ASSIGN_OR_RETURN(matches, Evaluate(term, driver, device));
        if (!matches) break;
      }
      if (matches) return true;
    }
    return false;
  }

  Result<AttributeValue> Derive(std::string_view driver,
                                const device::Device& device) const override {
    if (auto bad = FindBad(device)) return *bad;
    const Term& term = any_[0][0];
    if (term.kind == Term::Kind::kLiteral) return *term.equals;
    return Lookup(term, driver, device);
  }

 private:
  static std::optional<Error> FindBad(const device::Device& device) {
    for (const device::Attribute& attribute : device.attributes) {
      if (!std::holds_alternative<std::monostate>(attribute.value)) continue;
      return InvalidArgument(StrCat("attribute ", attribute.name, ": unsupported attribute value"));
    }
    return std::nullopt;
  }

  static Result<AttributeValue> Lookup(const Term& term, std::string_view driver,
                                       const device::Device& device) {
    const AttributeValue* value =
        device::FindAttribute(device.attributes, driver, StrCat(term.domain, "/", term.name));
    if (value == nullptr) return InvalidArgument(StrCat("no such key: ", term.name));
    return *value;
  }

  static Result<bool> Evaluate(const Term& term, std::string_view driver,
                               const device::Device& device) {
    switch (term.kind) {
      case Term::Kind::kDriver:
        return *term.equals == AttributeValue(std::string(driver));
      case Term::Kind::kMultiple:
        return *term.equals == AttributeValue(device.allow_multiple_allocations);
      case Term::Kind::kAttribute: {
        ASSIGN_OR_RETURN(const AttributeValue value, Lookup(term, driver, device));
        return value == term.equals.value_or(AttributeValue(true));
      }
      case Term::Kind::kCapacity:
        for (const device::Capacity& capacity : device.capacity) {
          if (capacity.name == term.name) return capacity.value >= term.quantity;
        }
        return InvalidArgument(StrCat("no such key: ", term.name));
      case Term::Kind::kLiteral:
        break;
    }
    return InvalidArgument("no boolean");
  }

  bool Parse(Scanner& scanner) {
    any_.emplace_back();
    while (true) {
      std::optional<Term> term = ParseTerm(scanner);
      if (!term) return false;
      any_.back().push_back(*std::move(term));
      if (scanner.AtEnd()) return true;
      if (scanner.Eat("||")) {
        any_.emplace_back();
      } else if (!scanner.Eat("&&")) {
        return false;
      }
    }
  }

  bool ParseName(Scanner& scanner, Term& term) {
    auto domain = scanner.Quoted();
    if (!domain || !scanner.Eat("]")) return false;
    term.domain = *domain;
    if (scanner.Eat("[")) {
      auto name = scanner.Quoted();
      if (!name || !scanner.Eat("]")) return false;
      term.name = *name;
    } else if (scanner.Eat(".")) {
      term.name = scanner.Word();
    }
    return !term.name.empty();
  }

  static bool ParseEquals(Scanner& scanner, Term& term) {
    if (!scanner.Eat("==")) return false;
    if (auto text = scanner.Quoted()) {
      term.equals = *text;
    } else if (const std::string word = scanner.Word(); word == "true" || word == "false") {
      term.equals = word == "true";
    } else if (const auto number = ParseInt64(word)) {
      term.equals = *number;
    }
    return term.equals.has_value();
  }

  std::optional<Term> ParseTerm(Scanner& scanner) {
    Term term{Term::Kind::kLiteral, "", "", {}, {}};
    if (auto text = scanner.Quoted()) {
      term.equals = *text;
      return term;
    }
    if (scanner.Eat("device.driver")) {
      term.kind = Term::Kind::kDriver;
      if (!ParseEquals(scanner, term)) return std::nullopt;
    } else if (scanner.Eat("device.allowMultipleAllocations")) {
      term.kind = Term::Kind::kMultiple;
      if (!ParseEquals(scanner, term)) return std::nullopt;
    } else if (scanner.Eat("device.attributes[")) {
      term.kind = Term::Kind::kAttribute;
      if (!ParseName(scanner, term)) return std::nullopt;
      ParseEquals(scanner, term);
      reads_.attributes.push_back(StrCat(term.domain, "/", term.name));
    } else if (scanner.Eat("device.capacity[")) {
      term.kind = Term::Kind::kCapacity;
      if (!ParseName(scanner, term) || !scanner.Eat(".compareTo(quantity(")) return std::nullopt;
      const auto quantity = scanner.Quoted();
      if (!quantity || !scanner.Eat(")) >= 0")) return std::nullopt;
      auto parsed = api::Quantity::Parse(*quantity);
      if (!parsed.ok()) return std::nullopt;
      term.quantity = *parsed;
    } else {
      return std::nullopt;
    }
    return term;
  }

  std::vector<std::vector<Term>> any_;
};

}  // namespace

std::shared_ptr<const device::Expression> SimpleExpressions::CompileSelector(
    std::string_view text) {
  return std::make_shared<SimpleExpression>(text);
}

std::shared_ptr<const device::Expression> SimpleExpressions::CompileDerived(std::string_view text) {
  return std::make_shared<SimpleExpression>(text);
}

}  // namespace drakkar::allocator
