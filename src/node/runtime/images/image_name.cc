#include "node/runtime/images/image_name.h"

#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {
namespace {

constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMaxTagBytes = 128;

bool IsLowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Lower-case words joined by single '.', '_', '__' or any number of '-'.
bool IsPathComponent(std::string_view text) {
  if (text.empty() || !IsLowerOrDigit(text.front()) || !IsLowerOrDigit(text.back())) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (IsLowerOrDigit(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && !IsLowerOrDigit(text[end])) ++end;
    const std::string_view joint = text.substr(i, end - i);
    const bool dashes = std::all_of(joint.begin(), joint.end(), [](char c) { return c == '-'; });
    if (!dashes && joint != "." && joint != "_" && joint != "__") return false;
    i = end;
  }
  return true;
}

bool IsTag(std::string_view text) {
  if (text.empty() || text.size() > kMaxTagBytes) return false;
  auto is_word = [](char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (!is_word(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_word(c) || c == '.' || c == '-'; });
}

bool IsDomain(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || port.size() > 5 ||
        !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    text = text.substr(0, colon);
  }
  if (text.empty()) return false;
  for (std::string_view label : Split(text, '.')) {
    if (label.empty() || label.front() == '-' || label.back() == '-') return false;
    for (char c : label) {
      if (!IsLowerOrDigit(c) && !(c >= 'A' && c <= 'Z') && c != '-') return false;
    }
  }
  return true;
}

}  // namespace

bool IsSha256Digest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + 64) return false;
  text.remove_prefix(kPrefix.size());
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string_view RepositoryOf(std::string_view full_name) {
  const std::string_view name = full_name.substr(0, full_name.find('@'));
  const std::size_t colon = name.rfind(':');
  const bool is_tag =
      colon != std::string_view::npos && name.find('/', colon) == std::string_view::npos;
  return is_tag ? name.substr(0, colon) : name;
}

std::string ReferenceTo(const Image& image, std::string_view name) {
  if (image.digests.empty()) return image.id;
  if (const auto full = NormalizeImageName(name); full.ok()) {
    for (const std::string& digest : image.digests) {
      if (RepositoryOf(digest) == RepositoryOf(*full)) return digest;
    }
  }
  return image.digests.front();
}

Result<std::string> NormalizeImageName(std::string_view name) {
  auto refuse = [&](std::string_view why) {
    return InvalidArgument(StrCat("image name ", Quote(name), ": ", why));
  };
  if (name.empty()) return InvalidArgument("image name is empty");
  if (name.size() > kMaxNameBytes + kMaxTagBytes + 72) return refuse("too long");
  std::string_view rest = name;
  std::string suffix = ":latest";
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    if (!IsSha256Digest(rest.substr(at + 1)))
      return refuse("expected sha256:<64 hex digits> after '@'");
    suffix = std::string(rest.substr(at));
    rest = rest.substr(0, at);
  }
  const std::size_t slash = rest.rfind('/');
  const std::size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    if (!IsTag(rest.substr(colon + 1))) return refuse("the tag is not valid");
    if (suffix[0] == ':') suffix = std::string(rest.substr(colon));
    rest = rest.substr(0, colon);
  }
  std::string domain = "docker.io";
  std::string path(rest);
  if (const std::size_t first = rest.find('/'); first != std::string_view::npos) {
    const std::string_view head = rest.substr(0, first);
    if (head == "localhost" || head.find_first_of(".:") != std::string_view::npos) {
      if (!IsDomain(head)) return refuse("the registry host is not valid");
      domain = head == "index.docker.io" ? "docker.io" : std::string(head);
      path = std::string(rest.substr(first + 1));
    }
  }
  if (domain == "docker.io" && path.find('/') == std::string::npos) path = "library/" + path;
  for (std::string_view component : Split(path, '/')) {
    if (!IsPathComponent(component)) {
      return refuse("use lower-case letters, digits and single separators");
    }
  }
  if (domain.size() + 1 + path.size() > kMaxNameBytes) return refuse("too long");
  return domain + "/" + path + suffix;
}

}  // namespace drakkar::node
