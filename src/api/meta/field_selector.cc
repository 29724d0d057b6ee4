#include "api/meta/field_selector.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

// Splits at commas that are not escaped with a backslash.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t start = 0;
  bool escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (escaped) {
      escaped = false;
    } else if (text[i] == '\\') {
      escaped = true;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  terms.push_back(text.substr(start));
  return terms;
}

Result<std::string> UnescapeValue(std::string_view value) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '\\') {
      const std::string_view escaped = value.substr(i + 1, 1);
      if (escaped != "\\" && escaped != "," && escaped != "=") {
        return InvalidArgument(
            StrCat("invalid field selector: invalid escape sequence: \\", escaped));
      }
      out += escaped;
      ++i;
    } else if (c == ',' || c == '=') {
      return InvalidArgument(
          StrCat("invalid field selector: unescaped character in value: ", static_cast<int>(c)));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string EscapeFieldValue(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

Result<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  std::vector<std::string_view> terms = SplitTerms(text);
  std::ranges::sort(terms);
  for (const std::string_view term : terms) {
    if (term.empty()) continue;
    std::size_t at = 0;
    std::size_t operator_size = 0;
    for (; at < term.size() && operator_size == 0; ++at) {
      const std::string_view two = term.substr(at, 2);
      operator_size = two == "!=" || two == "==" ? 2 : term[at] == '=' ? 1 : 0;
    }
    if (operator_size == 0) {
      return InvalidArgument(
          StrCat("invalid selector: '", text, "'; can't understand '", term, "'"));
    }
    --at;
    ASSIGN_OR_RETURN(std::string value, UnescapeValue(term.substr(at + operator_size)));
    selector.requirements_.push_back(
        {std::string(term.substr(0, at)), std::move(value), term[at] != '!'});
  }
  return selector;
}

bool FieldSelector::Matches(const std::function<std::string_view(std::string_view)>& lookup) const {
  return std::ranges::all_of(requirements_, [&](const FieldRequirement& requirement) {
    return (lookup(requirement.field) == requirement.value) == requirement.equals;
  });
}

std::optional<std::string_view> FieldSelector::RequiresExactMatch(std::string_view field) const {
  for (const FieldRequirement& requirement : requirements_) {
    if (requirement.equals && requirement.field == field) return requirement.value;
  }
  return std::nullopt;
}

std::string FieldSelector::ToString() const {
  std::vector<std::string> texts;
  for (const FieldRequirement& requirement : requirements_) {
    texts.push_back(StrCat(requirement.field,
                           requirement.equals ? "=" : "!=", EscapeFieldValue(requirement.value)));
  }
  return Join(texts, ",");
}

}  // namespace drakkar::api
