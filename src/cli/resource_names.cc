#include "cli/resource_names.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/command.h"

namespace drakkar::cli {
namespace {

using api::KindSchema;

bool HasName(const KindSchema& kind, std::string_view word) {
  const std::string lower = ToLower(word);
  return lower == kind.plural || lower == kind.singular || lower == ToLower(kind.kind) ||
         std::ranges::find(kind.short_names, lower) != kind.short_names.end();
}

// Whether what follows the name of a type in "boats.v1.example.com" means this kind.
enum class Suffix { kOther, kGroup, kVersion };
Suffix SuffixOf(const KindSchema& kind, std::string_view rest) {
  if (rest == kind.group) return Suffix::kGroup;
  const std::string versioned = StrCat(kind.version, ".", kind.group);
  return rest == versioned || StrCat(rest, ".") == versioned ? Suffix::kVersion : Suffix::kOther;
}

bool CanBeListed(const KindSchema& kind) {
  return std::ranges::find(kind.verbs, "list") != kind.verbs.end();
}

}  // namespace

Result<const KindSchema*> FindType(std::string_view word, ForeignKinds foreign) {
  // "resourceclaims.resource.k8s.io", or with a version "resourceclaims.v1.resource.k8s.io".
  const std::size_t dot = word.find('.');
  const std::string_view name = word.substr(0, dot);
  const std::string_view rest = dot == std::string_view::npos ? "" : word.substr(dot + 1);
  const KindSchema* found = nullptr;
  for (const KindSchema& kind : api::AllKinds()) {
    if (!HasName(kind, name)) continue;
    if (dot != std::string_view::npos) {
      const Suffix suffix = SuffixOf(kind, rest);
      if (suffix == Suffix::kOther) continue;
      if (suffix == Suffix::kVersion) return &kind;
    }
    // Prefer the storage version, as servers do, and core over other groups.
    if (found == nullptr ||
        (kind.group == found->group && kind.storage == &kind && found->storage != found)) {
      found = &kind;
    }
  }
  if (found != nullptr) return found;
  for (const KindSchema* kind : foreign) {
    if (!HasName(*kind, name)) continue;
    if (dot == std::string_view::npos || SuffixOf(*kind, rest) != Suffix::kOther) return kind;
  }
  const std::string nearest = Nearest(word, AllTypeNames());
  return InvalidArgument(
      StrCat("the server doesn't have a resource type ", Quote(word),
             nearest.empty() ? "" : StrCat(", did you mean ", Quote(nearest), "?")));
}

Result<std::vector<const KindSchema*>> FindTypes(std::string_view word, ForeignKinds foreign) {
  std::vector<const KindSchema*> kinds;
  auto add = [&](const KindSchema* kind) {
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  };
  for (std::string_view part : Split(word, ',')) {
    if (part.empty()) return InvalidArgument(StrCat("empty resource type in ", Quote(word)));
    bool is_category = false;
    for (const KindSchema& kind : api::AllKinds()) {
      if (std::ranges::find(kind.categories, part) == kind.categories.end()) continue;
      is_category = true;
      if (kind.storage == &kind) add(&kind);
    }
    if (is_category) continue;
    ASSIGN_OR_RETURN(const KindSchema* kind, FindType(part, foreign));
    add(kind);
  }
  return kinds;
}

std::vector<std::string> AllTypeNames() {
  std::vector<std::string> names;
  auto add = [&](std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  };
  for (const KindSchema& kind : api::AllKinds()) {
    if (CanBeListed(kind)) add(kind.plural);
  }
  for (const KindSchema& kind : api::AllKinds()) {
    if (!CanBeListed(kind)) continue;
    add(kind.singular);
    for (std::string_view name : kind.short_names) add(name);
  }
  return names;
}

Result<ResourceSelection> ParseSelection(const std::vector<std::string>& words,
                                         ForeignKinds foreign) {
  ResourceSelection selection;
  if (words.empty()) {
    return InvalidArgument("no resource type given; use for example `pods` or `pod/NAME`");
  }
  const bool has_slash = words[0].find('/') != std::string::npos;
  if (has_slash) {
    selection.names_given = true;
    for (const std::string& word : words) {
      const std::size_t slash = word.find('/');
      if (slash == std::string::npos || slash == 0 || slash + 1 == word.size() ||
          word.find('/', slash + 1) != std::string::npos) {
        return InvalidArgument(StrCat("TYPE/NAME cannot be mixed with other forms: ", Quote(word),
                                      " is not TYPE/NAME"));
      }
      ASSIGN_OR_RETURN(const KindSchema* kind,
                       FindType(std::string_view(word).substr(0, slash), foreign));
      if (std::ranges::find(selection.kinds, kind) == selection.kinds.end()) {
        selection.kinds.push_back(kind);
      }
      selection.items.push_back({kind, word.substr(slash + 1)});
    }
    return selection;
  }
  ASSIGN_OR_RETURN(selection.kinds, FindTypes(words[0], foreign));
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].empty()) return InvalidArgument("a resource name must not be empty");
    if (words[i].find('/') != std::string::npos) {
      return InvalidArgument(StrCat(Quote(words[i]), " is not a name; only names may follow TYPE"));
    }
    selection.names_given = true;
    for (const KindSchema* kind : selection.kinds) selection.items.push_back({kind, words[i]});
  }
  return selection;
}

std::string SingularName(const KindSchema& kind) {
  return kind.group.empty() ? std::string(kind.singular) : StrCat(kind.singular, ".", kind.group);
}

std::string PluralName(const KindSchema& kind) {
  return kind.group.empty() ? std::string(kind.plural) : StrCat(kind.plural, ".", kind.group);
}

std::string ObjectName(const KindSchema& kind, std::string_view name) {
  return StrCat(SingularName(kind), "/", name);
}

}  // namespace drakkar::cli
