#include "cli/manifest.h"

#include <algorithm>

#include "api/codec/yaml_reader.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/command.h"

namespace drakkar::cli {
namespace {

using api::Value;

struct Document {
  std::string_view text;
  std::size_t first_line = 1;  // in the file
};

// Splits at lines that start with "---", as kubectl does, so that an error affects only its own
// document.
std::vector<Document> SplitDocuments(std::string_view text) {
  std::vector<Document> documents;
  std::size_t line = 1;
  std::size_t begin = 0;
  std::size_t begin_line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = text.substr(at, end - at);
    const std::size_t next = std::min(end + 1, text.size());
    if (row.starts_with("---") &&
        (row.size() == 3 || row[3] == ' ' || row[3] == '\t' || row[3] == '\r')) {
      documents.push_back({text.substr(begin, at - begin), begin_line});
      begin = next;
      begin_line = line + 1;
    }
    at = next;
    ++line;
  }
  documents.push_back({text.substr(begin), begin_line});
  return documents;
}

bool HasContent(std::string_view text) {
  for (std::string_view line : Split(text, '\n')) {
    const std::string_view content = Trim(line);
    if (!content.empty() && !content.starts_with('#') && !content.starts_with('%')) return true;
  }
  return false;
}

std::size_t FirstContentLine(std::string_view text) {
  std::size_t number = 1;
  for (std::string_view line : Split(text, '\n')) {
    const std::string_view content = Trim(line);
    if (!content.empty() && !content.starts_with('#')) return number;
    ++number;
  }
  return 1;
}

// The key at the start of a line, after any dashes, and its column.
struct LineKey {
  std::string_view key;
  std::size_t column = 0;
  std::optional<std::size_t> dash;  // column of the first dash
};

LineKey ReadLineKey(std::string_view line) {
  LineKey result;
  std::size_t at = line.find_first_not_of(" \t{");
  if (at == std::string_view::npos) return result;
  while (at < line.size() && line[at] == '-' && (at + 1 == line.size() || line[at + 1] == ' ')) {
    if (!result.dash) result.dash = at;
    at = std::min(line.find_first_not_of(' ', at + 1), line.size());
  }
  result.column = at;
  std::string_view rest = line.substr(at);
  if (!rest.empty() && (rest[0] == '"' || rest[0] == '\'')) {
    const std::size_t close = rest.find(rest[0], 1);
    if (close == std::string_view::npos) return result;
    if (Trim(rest.substr(close + 1)).starts_with(':')) result.key = rest.substr(1, close - 1);
    return result;
  }
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) result.key = Trim(rest.substr(0, colon));
  return result;
}

// Moves `line 3, column 7` from the end of a YAML error to the front, relative to the file instead
// of the document.
struct Located {
  std::size_t line = 0;
  std::string message;
};

Located TakeLine(std::string message) {
  Located located;
  const std::size_t at = message.rfind("line ");
  if (at != std::string::npos) {
    const std::string_view rest = std::string_view(message).substr(at + 5);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (std::optional<std::int64_t> line = ParseInt64(rest.substr(0, digits))) {
      located.line = static_cast<std::size_t>(*line);
      std::string_view head = Trim(std::string_view(message).substr(0, at));
      for (std::string_view tail : {" at", ",", ":", " on", " in", "("}) {
        if (head.ends_with(tail)) head.remove_suffix(tail.size());
      }
      located.message = Trim(head);
      return located;
    }
  }
  located.message = std::move(message);
  return located;
}

std::string_view Between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return "";
  const std::size_t start = begin + before.size();
  const std::size_t end = text.find(after, start);
  return end == std::string_view::npos ? text.substr(start) : text.substr(start, end - start);
}

class DocumentReader {
 public:
  DocumentReader(const Document& document, std::string prefix, api::Strictness strictness,
                 bool foreign_kinds, Manifests& out)
      : document_(document),
        prefix_(std::move(prefix)),
        strictness_(strictness),
        foreign_kinds_(foreign_kinds),
        out_(out) {}

  void Read() {
    Result<std::vector<api::TreePtr>> trees = api::ParseYaml(document_.text);
    if (!trees.ok()) {
      const Located located = TakeLine(trees.error().message);
      return Problem(located.line == 0 ? 1 : located.line, located.message);
    }
    for (const api::TreePtr& tree : *trees) ReadObject(tree->root(), "", 0);
  }

 private:
  std::string Where(std::size_t line) const {
    return StrCat(prefix_, ", line ", document_.first_line + line - 1);
  }
  void Problem(std::size_t line, std::string_view what) {
    out_.problems.push_back(InvalidArgument(StrCat(Where(line), ": ", what)));
  }
  std::size_t LineOf(const std::string& path) const { return FindFieldLine(document_.text, path); }

  void ReadObject(Value object, const std::string& at, int depth) {
    const std::string dot = at.empty() ? "" : at + ".";
    const std::size_t start = at.empty() ? FirstContentLine(document_.text) : LineOf(at);
    if (!object.is_object()) {
      return Problem(start, "not an object; a manifest has apiVersion, kind and metadata");
    }
    const std::string_view version = object["apiVersion"].str();
    const std::string_view kind_name = object["kind"].str();
    if (version.empty()) return Problem(start, "apiVersion is missing");
    if (kind_name.empty()) return Problem(start, "kind is missing");
    if (kind_name.ends_with("List") && object["items"].is_array()) {
      // Nested lists are not valid manifests.
      if (depth > 0) return Problem(start, "a list inside a list");
      std::size_t index = 0;
      for (Value item : object["items"].elements()) {
        ReadObject(item, StrCat(dot, "items[", index++, "]"), depth + 1);
      }
      return;
    }
    const api::KindSchema* kind = api::FindKindByApiVersion(version, kind_name);
    const bool is_foreign = kind == nullptr && foreign_kinds_ && IsForeign(version);
    if (!is_foreign && (kind == nullptr || kind->plural.empty())) {
      return UnknownKind(version, kind_name, dot, start);
    }
    if (!object["metadata"].is_object()) return Problem(start, "metadata is missing");
    if (object["metadata"]["name"].str().empty() &&
        object["metadata"]["generateName"].str().empty()) {
      return Problem(object["metadata"]["name"].exists() ? LineOf(dot + "metadata.name")
                                                         : LineOf(dot + "metadata"),
                     "metadata.name is missing or empty");
    }
    if (kind != nullptr && !CheckFields(object, *kind, dot, start)) return;
    out_.objects.push_back({Where(start), kind, api::CopyTree(object)});
  }

  // Whether the group is none of ours: "example.com/v1".
  static bool IsForeign(std::string_view version) {
    const std::size_t slash = version.find('/');
    if (slash == std::string_view::npos) return false;
    return std::ranges::none_of(api::AllKinds(), [&](const api::KindSchema& kind) {
      return kind.group == version.substr(0, slash);
    });
  }

  void UnknownKind(std::string_view version, std::string_view kind_name, const std::string& dot,
                   std::size_t) {
    std::vector<std::string> kinds;
    std::string other_versions;
    for (const api::KindSchema& kind : api::AllKinds()) {
      kinds.emplace_back(kind.kind);
      if (kind.kind != kind_name) continue;
      other_versions += StrCat(other_versions.empty() ? "" : " or ", kind.group,
                               kind.group.empty() ? "" : "/", kind.version);
    }
    std::string hint;
    if (!other_versions.empty()) {
      hint = StrCat(", it is in ", other_versions);
    } else if (const std::string nearest = Nearest(kind_name, kinds); !nearest.empty()) {
      hint = StrCat(", did you mean ", Quote(nearest), "?");
    }
    Problem(LineOf(dot + (other_versions.empty() ? "kind" : "apiVersion")),
            StrCat("no matches for kind ", Quote(kind_name), " in version ", Quote(version), hint));
  }

  // Returns false if the object cannot be used.
  bool CheckFields(Value object, const api::KindSchema& kind, const std::string& dot,
                   std::size_t start) {
    api::ObjectReadOptions options;
    options.strictness = api::Strictness::kWarn;
    Result<api::ObjectReadResult> read = api::ConvertObject(object, *kind.schema, options);
    if (!read.ok()) {
      WrongType(read.error().message, dot, start);
      return false;
    }
    if (strictness_ == api::Strictness::kIgnore) return true;
    for (const std::string& warning : read->warnings) {
      const std::string path(Between(warning, "\"", "\""));
      const std::size_t line = LineOf(dot + path);
      if (strictness_ == api::Strictness::kWarn) {
        out_.warnings.push_back(StrCat(Where(line), ": ", warning));
      } else {
        Problem(line, StrCat(warning, " in ", kind.kind));
      }
    }
    return read->warnings.empty() || strictness_ == api::Strictness::kWarn;
  }

  // Rewrites "json: cannot unmarshal string into Go struct field Pod.spec.x of type int32" for
  // users.
  void WrongType(const std::string& message, const std::string& dot, std::size_t start) {
    const std::string_view found = Between(message, "cannot unmarshal ", " into");
    const std::string_view field = Between(message, "Go struct field ", " of type");
    const std::string_view wanted = Between(message, " of type ", "\n");
    const std::size_t first_dot = field.find('.');
    if (found.empty() || first_dot == std::string_view::npos || wanted.empty()) {
      return Problem(start, message);
    }
    const std::string path(field.substr(first_dot + 1));
    Problem(LineOf(dot + path), StrCat(path, " must be ", wanted, ", not ", found));
  }

  const Document& document_;
  const std::string prefix_;
  const api::Strictness strictness_;
  const bool foreign_kinds_;
  Manifests& out_;
};

void Append(Manifests& to, Manifests from) {
  std::ranges::move(from.objects, std::back_inserter(to.objects));
  std::ranges::move(from.problems, std::back_inserter(to.problems));
  std::ranges::move(from.warnings, std::back_inserter(to.warnings));
}

bool IsManifestName(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

// Deeper nesting is a symlink loop.
constexpr int kMaxDirectoryDepth = 32;

void ReadPath(Console& console, const std::string& path, const ManifestOptions& options, int depth,
              Manifests& out) {
  FileSystem& files = console.files();
  Result<FileInfo> info = files.Stat(path);
  if (!info.ok()) {
    out.problems.push_back(info.error().code == ErrorCode::kNotFound
                               ? NotFound(StrCat("the path ", Quote(path), " does not exist"))
                               : info.error());
    return;
  }
  if (info->type != FileType::kDirectory) {
    Result<std::string> text = files.ReadFile(path);
    if (!text.ok()) {
      out.problems.push_back(text.error());
      return;
    }
    Append(out, ParseManifests(*text, path, options.strictness, options.foreign_kinds));
    return;
  }
  Result<std::vector<std::string>> names = files.ListDirectory(path);
  if (!names.ok()) {
    out.problems.push_back(names.error());
    return;
  }
  const std::size_t before = out.objects.size() + out.problems.size();
  for (const std::string& name : *names) {
    const std::string child = JoinPath(path, name);
    Result<FileInfo> child_info = files.Stat(child);
    const bool is_directory = child_info.ok() && child_info->type == FileType::kDirectory;
    if (is_directory ? options.recursive && depth < kMaxDirectoryDepth : IsManifestName(name)) {
      ReadPath(console, child, options, depth + 1, out);
    }
  }
  if (depth == 0 && out.objects.size() + out.problems.size() == before) {
    out.problems.push_back(InvalidArgument(
        StrCat("directory ", Quote(path), " has no objects in *.yaml, *.yml or *.json files",
               options.recursive ? "" : "; use -R to include subdirectories")));
  }
}

}  // namespace

std::size_t FindFieldLine(std::string_view document, std::string_view path) {
  const std::vector<std::string_view> lines = Split(document, '\n');
  std::size_t at = 0;  // where the search starts
  std::size_t found = FirstContentLine(document) - 1;
  std::size_t min_column = 0;  // children are indented further than their parent
  std::string plain;
  for (char c : path) {
    if (c == '[') {
      plain += ".[";
    } else if (c != ']') {
      plain += c;
    }
  }
  for (std::string_view part : Split(plain, '.')) {
    if (part.empty()) continue;
    if (part[0] == '[') {
      std::int64_t left = ParseInt64(part.substr(1)).value_or(0);
      std::optional<std::size_t> dash_column;
      for (std::size_t i = at; i < lines.size(); ++i) {
        const LineKey key = ReadLineKey(lines[i]);
        if (!key.dash || *key.dash + 1 < min_column) continue;
        if (!dash_column) dash_column = key.dash;
        if (*key.dash != *dash_column || left-- > 0) continue;
        at = found = i;
        min_column = key.column;
        break;
      }
      continue;
    }
    for (std::size_t i = at; i < lines.size(); ++i) {
      const LineKey key = ReadLineKey(lines[i]);
      if (key.key != part || key.column < min_column) continue;
      found = i;
      at = i + 1;
      min_column = key.column + 1;
      break;
    }
  }
  return found + 1;
}

Manifests ParseManifests(std::string_view text, std::string_view name, api::Strictness strictness,
                         bool foreign_kinds) {
  Manifests manifests;
  std::size_t number = 0;
  for (const Document& document : SplitDocuments(text)) {
    if (!HasContent(document.text)) continue;
    ++number;
    DocumentReader(document, StrCat(name, ": document ", number), strictness, foreign_kinds,
                   manifests)
        .Read();
  }
  return manifests;
}

Manifests ReadManifests(Console& console, const std::vector<std::string>& paths,
                        const ManifestOptions& options) {
  Manifests manifests;
  for (const std::string& path : paths) {
    if (path == "-") {
      Result<std::string> text = console.ReadInput();
      if (text.ok()) {
        Append(manifests,
               ParseManifests(*text, "standard input", options.strictness, options.foreign_kinds));
      } else {
        manifests.problems.push_back(text.error());
      }
    } else if (path.starts_with("http://") || path.starts_with("https://")) {
      manifests.problems.push_back(
          InvalidArgument(StrCat(path, ": fetching manifests by URL is not supported; use `curl ",
                                 path, " | drakkar apply -f -`")));
    } else {
      ReadPath(console, path, options, 0, manifests);
    }
  }
  if (manifests.objects.empty() && manifests.problems.empty()) {
    manifests.problems.push_back(InvalidArgument("no objects found in the files given with -f"));
  }
  return manifests;
}

}  // namespace drakkar::cli
