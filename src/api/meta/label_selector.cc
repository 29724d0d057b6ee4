#include "api/meta/label_selector.h"

#include <algorithm>

#include "api/meta/field_error.h"
#include "api/meta/names.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

// What one requirement costs per object, in steps of the work budget.
constexpr std::size_t kStepsPerRequirement = 32;

void CheckKey(std::string_view key, const FieldPath& path, FieldErrors& errors) {
  const Problems problems = CheckLabelKey(key);
  if (!problems.empty()) errors.push_back(FieldError::Invalid(path, key, Join(problems, "; ")));
}

Result<LabelRequirement> MakeRequirement(std::string key, LabelOperator op,
                                         std::vector<std::string> values) {
  FieldErrors errors;
  CheckKey(key, FieldPath("key"), errors);
  const FieldPath path("values");
  const auto show = [&]() -> BadValue {
    if (values.empty()) return nullptr;
    std::vector<std::string> quoted;
    for (const std::string& value : values) quoted.push_back(Quote(value));
    return BadValue::Literal("[" + Join(quoted, ",") + "]");
  };
  switch (op) {
    case LabelOperator::kIn:
    case LabelOperator::kNotIn:
      if (values.empty()) {
        errors.push_back(FieldError::Invalid(
            path, show(), "for 'in', 'notin' operators, values set can't be empty"));
      }
      break;
    case LabelOperator::kEquals:
    case LabelOperator::kDoubleEquals:
    case LabelOperator::kNotEquals:
      if (values.size() != 1) {
        errors.push_back(FieldError::Invalid(
            path, show(), "exact-match compatibility requires one single value"));
      }
      break;
    case LabelOperator::kExists:
    case LabelOperator::kDoesNotExist:
      if (!values.empty()) {
        errors.push_back(FieldError::Invalid(
            path, show(), "values set must be empty for exists and does not exist"));
      }
      break;
    case LabelOperator::kGreaterThan:
    case LabelOperator::kLessThan:
      if (values.size() != 1) {
        errors.push_back(FieldError::Invalid(
            path, show(), "for 'Gt', 'Lt' operators, exactly one value is required"));
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        // A sign is not part of a label value; the check below rejects it.
        if (ParseInt64(values[i])) continue;
        errors.push_back(FieldError::Invalid(
            path.Index(i), values[i], "for 'Gt', 'Lt' operators, the value must be an integer"));
      }
      break;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Problems problems = CheckLabelValue(values[i]);
    if (problems.empty()) continue;
    errors.push_back(FieldError::Invalid(path.Index(i).Key(key), values[i], Join(problems, "; ")));
  }
  if (!errors.empty()) return InvalidArgument(JoinFieldErrors(errors));
  return LabelRequirement{std::move(key), op, std::move(values)};
}

enum class Token : std::uint8_t {
  kEnd,
  kError,
  kIdentifier,
  kIn,
  kNotIn,
  kNot,
  kComma,
  kOpen,
  kClose,
  kEquals,
  kDoubleEquals,
  kNotEquals,
  kGreater,
  kLess,
};

struct Item {
  Token token;
  std::string_view text;
};

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
bool IsSymbol(char c) {
  return std::string_view("=!(),><").find(c) != std::string_view::npos;
}

Token SymbolToken(std::string_view text) {
  if (text == "=") return Token::kEquals;
  if (text == "==") return Token::kDoubleEquals;
  if (text == "!=") return Token::kNotEquals;
  if (text == "!") return Token::kNot;
  if (text == ",") return Token::kComma;
  if (text == "(") return Token::kOpen;
  if (text == ")") return Token::kClose;
  if (text == ">") return Token::kGreater;
  if (text == "<") return Token::kLess;
  return Token::kError;
}

std::vector<Item> Scan(std::string_view text) {
  std::vector<Item> items;
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && IsSpace(text[at])) ++at;
    if (at == text.size()) break;
    std::size_t size = 1;
    if (IsSymbol(text[at])) {
      // The longest symbol: "==" and "!=" have two characters, all others one.
      if (SymbolToken(text.substr(at, 2)) != Token::kError)
        size = std::min<std::size_t>(2, text.size() - at);
      const std::string_view symbol = text.substr(at, size);
      items.push_back({SymbolToken(symbol), symbol});
    } else {
      while (at + size < text.size() && !IsSpace(text[at + size]) && !IsSymbol(text[at + size])) {
        ++size;
      }
      const std::string_view word = text.substr(at, size);
      items.push_back({word == "in"      ? Token::kIn
                       : word == "notin" ? Token::kNotIn
                                         : Token::kIdentifier,
                       word});
    }
    at += size;
  }
  items.push_back({Token::kEnd, ""});
  return items;
}

// The grammar. Errors are those of k8s.io/apimachinery/pkg/labels.
class Parser {
 public:
  explicit Parser(std::string_view text) : items_(Scan(text)) {}

  Result<std::vector<LabelRequirement>> Parse() {
    std::vector<LabelRequirement> requirements;
    while (true) {
      const Item next = Peek();
      if (next.token == Token::kEnd) return requirements;
      if (next.token != Token::kIdentifier && next.token != Token::kNot) {
        return Found(next, ", expected: !, identifier, or 'end of string'");
      }
      auto requirement = ParseRequirement();
      if (!requirement.ok()) {
        return std::move(requirement).error().Prefixed("unable to parse requirement");
      }
      requirements.push_back(*std::move(requirement));
      const Item separator = Take();
      if (separator.token == Token::kEnd) return requirements;
      if (separator.token != Token::kComma)
        return Found(separator, ", expected: ',' or 'end of string'");
      const Item after = Peek();
      if (after.token != Token::kIdentifier && after.token != Token::kNot) {
        return Found(after, ", expected: identifier after ','");
      }
    }
  }

 private:
  static Error Found(const Item& item, std::string_view expected) {
    return InvalidArgument(StrCat("found '", item.text, "'", expected));
  }

  // Where a key or a value is expected, "in" and "notin" are ordinary words.
  Item Peek() const {
    Item item = items_[at_];
    if (item.token == Token::kIn || item.token == Token::kNotIn) item.token = Token::kIdentifier;
    return item;
  }
  Item TakeAsIs() {
    const Item item = items_[at_];
    if (at_ + 1 < items_.size()) ++at_;
    return item;
  }
  Item Take() {
    const Item item = Peek();
    TakeAsIs();
    return item;
  }

  Result<LabelRequirement> ParseRequirement() {
    Item key = Take();
    const bool negated = key.token == Token::kNot;
    if (negated) key = Take();
    if (key.token != Token::kIdentifier) return Found(key, ", expected: identifier");
    FieldErrors errors;
    CheckKey(key.text, FieldPath(), errors);
    if (!errors.empty()) return InvalidArgument(JoinFieldErrors(errors));
    std::string name(key.text);
    if (negated) return MakeRequirement(std::move(name), LabelOperator::kDoesNotExist, {});
    const Token next = Peek().token;
    if (next == Token::kEnd || next == Token::kComma) {
      return MakeRequirement(std::move(name), LabelOperator::kExists, {});
    }
    const Item item = TakeAsIs();
    LabelOperator op;
    switch (item.token) {
      case Token::kIn:
        op = LabelOperator::kIn;
        break;
      case Token::kNotIn:
        op = LabelOperator::kNotIn;
        break;
      case Token::kEquals:
        op = LabelOperator::kEquals;
        break;
      case Token::kDoubleEquals:
        op = LabelOperator::kDoubleEquals;
        break;
      case Token::kNotEquals:
        op = LabelOperator::kNotEquals;
        break;
      case Token::kGreater:
        op = LabelOperator::kGreaterThan;
        break;
      case Token::kLess:
        op = LabelOperator::kLessThan;
        break;
      default:
        return Found(item, ", expected: in, notin, =, ==, !=, gt, lt");
    }
    const bool set = op == LabelOperator::kIn || op == LabelOperator::kNotIn;
    ASSIGN_OR_RETURN(auto values, set ? ParseValues() : ParseExactValue());
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return MakeRequirement(std::move(name), op, std::move(values));
  }

  using Values = std::vector<std::string>;

  Result<Values> ParseExactValue() {
    const Token next = Peek().token;
    if (next == Token::kEnd || next == Token::kComma) return Values{""};
    const Item item = Take();
    if (item.token != Token::kIdentifier) return Found(item, ", expected: identifier");
    return Values{std::string(item.text)};
  }

  Result<Values> ParseValues() {
    const Item open = Take();
    if (open.token != Token::kOpen) return Found(open, " expected: '('");
    const Item first = Peek();
    if (first.token == Token::kClose) {
      Take();
      return Values{""};
    }
    if (first.token != Token::kIdentifier && first.token != Token::kComma) {
      return Found(first, ", expected: ',', ')' or identifier");
    }
    ASSIGN_OR_RETURN(Values values, ParseList());
    const Item close = Take();
    if (close.token != Token::kClose) return Found(close, ", expected: ')'");
    return values;
  }

  // Reads up to the closing parenthesis. Adjacent commas enclose an empty value.
  Result<Values> ParseList() {
    Values values;
    while (true) {
      const Item item = Take();
      if (item.token == Token::kIdentifier) {
        values.emplace_back(item.text);
        const Item next = Peek();
        if (next.token == Token::kClose) return values;
        if (next.token != Token::kComma) return Found(next, ", expected: ',' or ')'");
      } else if (item.token == Token::kComma) {
        if (values.empty()) values.emplace_back();
        const Token next = Peek().token;
        if (next == Token::kClose) {
          values.emplace_back();
          return values;
        }
        if (next == Token::kComma) {
          Take();
          values.emplace_back();
        }
      } else {
        return Found(item, ", expected: ',', or identifier");
      }
    }
  }

  const std::vector<Item> items_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view LabelOperatorText(LabelOperator op) {
  switch (op) {
    case LabelOperator::kEquals:
      return "=";
    case LabelOperator::kDoubleEquals:
      return "==";
    case LabelOperator::kNotEquals:
      return "!=";
    case LabelOperator::kIn:
      return "in";
    case LabelOperator::kNotIn:
      return "notin";
    case LabelOperator::kExists:
      return "exists";
    case LabelOperator::kDoesNotExist:
      return "!";
    case LabelOperator::kGreaterThan:
      return "gt";
    case LabelOperator::kLessThan:
      return "lt";
  }
  return "";
}

bool LabelRequirement::Matches(Value labels) const {
  const Value label = labels.Entry(key);
  const bool has = label.exists();
  // Sorted by both makers of requirements.
  const auto is_listed = [&] { return std::ranges::binary_search(values, label.str()); };
  switch (op) {
    case LabelOperator::kEquals:
    case LabelOperator::kDoubleEquals:
    case LabelOperator::kIn:
      return has && is_listed();
    case LabelOperator::kNotEquals:
    case LabelOperator::kNotIn:
      return !has || !is_listed();
    case LabelOperator::kExists:
      return has;
    case LabelOperator::kDoesNotExist:
      return !has;
    case LabelOperator::kGreaterThan:
    case LabelOperator::kLessThan: {
      const auto actual = ParseInt64(label.str());
      const auto bound = ParseInt64(values[0]);
      if (!has || !actual || !bound) return false;
      return op == LabelOperator::kGreaterThan ? *actual > *bound : *actual < *bound;
    }
  }
  return false;
}

std::string LabelRequirement::ToString() const {
  switch (op) {
    case LabelOperator::kExists:
      return key;
    case LabelOperator::kDoesNotExist:
      return "!" + key;
    case LabelOperator::kIn:
      return StrCat(key, " in (", Join(values, ","), ")");
    case LabelOperator::kNotIn:
      return StrCat(key, " notin (", Join(values, ","), ")");
    case LabelOperator::kGreaterThan:
      return StrCat(key, ">", values[0]);
    case LabelOperator::kLessThan:
      return StrCat(key, "<", values[0]);
    default:
      return StrCat(key, LabelOperatorText(op), values[0]);
  }
}

LabelSelector::LabelSelector(std::vector<LabelRequirement> requirements)
    : requirements_(std::move(requirements)) {
  std::ranges::stable_sort(requirements_, {}, &LabelRequirement::key);
}

LabelSelector LabelSelector::Nothing() {
  LabelSelector selector;
  selector.nothing_ = true;
  return selector;
}

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  ASSIGN_OR_RETURN(auto requirements, Parser(text).Parse());
  return LabelSelector(std::move(requirements));
}

Result<LabelSelector> LabelSelector::FromObject(Value selector) {
  if (!selector.has_value()) return Nothing();
  std::vector<LabelRequirement> requirements;
  for (const MemberView label : selector["matchLabels"].members()) {
    ASSIGN_OR_RETURN(auto requirement,
                     MakeRequirement(std::string(label.name), LabelOperator::kEquals,
                                     {std::string(label.value.str())}));
    requirements.push_back(std::move(requirement));
  }
  for (const Value expression : selector["matchExpressions"].elements()) {
    const std::string_view name = expression["operator"].str();
    LabelOperator op;
    if (name == "In") {
      op = LabelOperator::kIn;
    } else if (name == "NotIn") {
      op = LabelOperator::kNotIn;
    } else if (name == "Exists") {
      op = LabelOperator::kExists;
    } else if (name == "DoesNotExist") {
      op = LabelOperator::kDoesNotExist;
    } else {
      return InvalidArgument(Quote(name) + " is not a valid label selector operator");
    }
    std::vector<std::string> values;
    for (const Value value : expression["values"].elements()) values.emplace_back(value.str());
    ASSIGN_OR_RETURN(auto requirement,
                     MakeRequirement(std::string(expression["key"].str()), op, values));
    std::ranges::sort(requirement.values);
    const auto repeated = std::ranges::unique(requirement.values);
    requirement.values.erase(repeated.begin(), repeated.end());
    requirements.push_back(std::move(requirement));
  }
  return LabelSelector(std::move(requirements));
}

bool LabelSelector::Matches(Value labels) const {
  WorkBudget::Charge(kStepsPerRequirement * requirements_.size());
  if (WorkBudget::IsExceeded()) return false;
  return !nothing_ && std::ranges::all_of(requirements_, [&](const LabelRequirement& requirement) {
    return requirement.Matches(labels);
  });
}

std::string LabelSelector::ToString() const {
  std::vector<std::string> texts;
  for (const LabelRequirement& requirement : requirements_) texts.push_back(requirement.ToString());
  return Join(texts, ",");
}

std::string FormatLabelSelector(Value selector) {
  const auto parsed = LabelSelector::FromObject(selector);
  if (!parsed.ok()) return "<error>";
  std::string text = parsed->ToString();
  return text.empty() ? "<none>" : text;
}

}  // namespace drakkar::api
