#include "api/meta/semver.h"

#include <charconv>
#include <optional>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

bool IsIdentifierChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

bool AllDigits(std::string_view text) {
  for (const char c : text) {
    if (!IsDigit(c)) return false;
  }
  return true;
}

bool AllIdentifierChars(std::string_view text) {
  for (const char c : text) {
    if (!IsIdentifierChar(c)) return false;
  }
  return true;
}

bool HasLeadingZero(std::string_view text) {
  return text.size() > 1 && text[0] == '0';
}

Result<std::uint64_t> ParseUint(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty()) return InvalidArgument("strconv.ParseUint: parsing \"\": invalid syntax");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    return InvalidArgument(
        StrCat("strconv.ParseUint: parsing ", Quote(text), ": value out of range"));
  }
  return value;
}

struct NumberNames {
  std::string_view lower;
  std::string_view upper;
};

Result<std::uint64_t> ParseNumber(std::string_view text, NumberNames names) {
  if (!AllDigits(text)) {
    return InvalidArgument(
        StrCat("Invalid character(s) found in ", names.lower, " number ", Quote(text)));
  }
  if (HasLeadingZero(text)) {
    return InvalidArgument(
        StrCat(names.upper, " number must not contain leading zeroes ", Quote(text)));
  }
  return ParseUint(text);
}

Result<Semver::Identifier> ParsePrerelease(std::string_view text) {
  if (text.empty()) return InvalidArgument("Prerelease is empty");
  Semver::Identifier identifier;
  if (AllDigits(text)) {
    if (HasLeadingZero(text)) {
      return InvalidArgument(
          StrCat("Numeric PreRelease version must not contain leading zeroes ", Quote(text)));
    }
    ASSIGN_OR_RETURN(identifier.number, ParseUint(text));
    identifier.is_number = true;
    return identifier;
  }
  if (!AllIdentifierChars(text)) {
    return InvalidArgument(StrCat("Invalid character(s) found in prerelease ", Quote(text)));
  }
  identifier.text = text;
  return identifier;
}

// Splits at the first two dots only.
std::vector<std::string_view> SplitThree(std::string_view text) {
  std::vector<std::string_view> parts;
  while (parts.size() < 2) {
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) break;
    parts.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  parts.push_back(text);
  return parts;
}

int CompareIdentifier(const Semver::Identifier& a, const Semver::Identifier& b) {
  if (a.is_number != b.is_number) return a.is_number ? -1 : 1;
  if (a.is_number) return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  const int order = a.text.compare(b.text);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

}  // namespace

Result<Semver> Semver::Parse(std::string_view text) {
  if (text.empty()) return InvalidArgument("Version string empty");
  const std::vector<std::string_view> parts = SplitThree(text);
  if (parts.size() != 3) return InvalidArgument("No Major.Minor.Patch elements found");
  Semver version;
  ASSIGN_OR_RETURN(version.major, ParseNumber(parts[0], {"major", "Major"}));
  ASSIGN_OR_RETURN(version.minor, ParseNumber(parts[1], {"minor", "Minor"}));

  std::string_view patch = parts[2];
  std::optional<std::string_view> build;
  std::optional<std::string_view> prerelease;
  if (const std::size_t plus = patch.find('+'); plus != std::string_view::npos) {
    build = patch.substr(plus + 1);
    patch = patch.substr(0, plus);
  }
  if (const std::size_t dash = patch.find('-'); dash != std::string_view::npos) {
    prerelease = patch.substr(dash + 1);
    patch = patch.substr(0, dash);
  }
  ASSIGN_OR_RETURN(version.patch, ParseNumber(patch, {"patch", "Patch"}));
  if (prerelease) {
    for (const std::string_view part : Split(*prerelease, '.')) {
      ASSIGN_OR_RETURN(Identifier identifier, ParsePrerelease(part));
      version.prerelease.push_back(std::move(identifier));
    }
  }
  if (build) {
    for (const std::string_view part : Split(*build, '.')) {
      if (part.empty()) return InvalidArgument("Build meta data is empty");
      if (!AllIdentifierChars(part)) {
        return InvalidArgument(
            StrCat("Invalid character(s) found in build meta data ", Quote(part)));
      }
      version.build.emplace_back(part);
    }
  }
  return version;
}

Result<Semver> Semver::ParseNormalized(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const std::vector<std::string_view> parts = SplitThree(text);
  if (parts.size() < 3 && parts.back().find_first_of("+-") != std::string_view::npos) {
    return InvalidArgument("short version cannot contain PreRelease/Build meta data");
  }
  std::string normalized;
  for (std::size_t i = 0; i < 3; ++i) {
    if (i > 0) normalized += '.';
    if (i >= parts.size()) {
      normalized += '0';
      continue;
    }
    std::string_view part = parts[i];
    if (part.size() > 1) {
      while (part.starts_with('0')) part.remove_prefix(1);
      if (part.empty() || !IsDigit(part[0])) normalized += '0';
    }
    normalized += part;
  }
  return Parse(normalized);
}

int Semver::ComparePrerelease(const Semver& other) const {
  if (prerelease.empty()) return other.prerelease.empty() ? 0 : 1;
  if (other.prerelease.empty()) return -1;
  const std::size_t common = std::min(prerelease.size(), other.prerelease.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (const int order = CompareIdentifier(prerelease[i], other.prerelease[i]); order != 0)
      return order;
  }
  if (prerelease.size() == other.prerelease.size()) return 0;
  return prerelease.size() < other.prerelease.size() ? -1 : 1;
}

std::string Semver::ToString() const {
  std::string text = StrCat(major, ".", minor, ".", patch);
  for (std::size_t i = 0; i < prerelease.size(); ++i) {
    text += i == 0 ? '-' : '.';
    text += prerelease[i].is_number ? std::to_string(prerelease[i].number) : prerelease[i].text;
  }
  for (std::size_t i = 0; i < build.size(); ++i) {
    text += i == 0 ? '+' : '.';
    text += build[i];
  }
  return text;
}

}  // namespace drakkar::api
