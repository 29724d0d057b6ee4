#include "tests/vectors/vector_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/env/file_system.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::vectors {
namespace {

constexpr std::string_view kDeviationsFile = "tests/vectors/deviations.txt";
constexpr std::string_view kNow = "2025-06-07T08:09:10Z";
// Failures that are shown in full; the rest is only counted.
constexpr int kMaxShown = 25;

api::Key MakeKey(std::string_view text) {
  return {0, static_cast<std::uint32_t>(text.size()), text.data()};
}

// A line with unparsed objects, because their bytes matter.
const api::StructSchema& LineSchema() {
  static const api::Key kObject = MakeKey("object");
  static const api::Key kOldObject = MakeKey("oldObject");
  static const std::vector<api::FieldSchema> fields = [] {
    std::vector<api::FieldSchema> list(2);
    list[0].key = api::FindKey("object") != nullptr ? api::FindKey("object") : &kObject;
    list[1].key = api::FindKey("oldObject") != nullptr ? api::FindKey("oldObject") : &kOldObject;
    for (api::FieldSchema& field : list) {
      field.type.kind = api::FieldKind::kRaw;
      field.pointer = true;
    }
    return list;
  }();
  static const api::StructSchema schema{.name = "line", .fields = fields};
  return schema;
}

std::string ReplaceAll(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Bytes that are not JSON are written as an object with one member.
void RestoreInvalidRaw(api::Draft& draft) {
  if (draft.kind() == api::ValueKind::kRaw) {
    // The inputs for the size limit had a space after the colon, which is lost in the vectors.
    constexpr std::string_view kLong = "{\"str\":\"";
    if (draft.str().starts_with(kLong) && draft.str().size() > 10'000) {
      draft = api::Draft::Raw(StrCat("{\"str\": \"", draft.str().substr(kLong.size())));
      return;
    }
    constexpr std::string_view kMark = "\"$invalidRawBase64\"";
    if (draft.str().find(kMark) == std::string_view::npos) return;
    const Result<api::TreePtr> parsed = api::ParseJson(draft.str());
    if (!parsed.ok()) return;
    const auto bytes = Base64Decode((*parsed)->root()["$invalidRawBase64"].str());
    draft = api::Draft::Raw(std::string(bytes->begin(), bytes->end()));
    return;
  }
  if (draft.is_object()) {
    for (auto& [key, member] : draft.MutableMembers()) RestoreInvalidRaw(member);
  } else if (draft.is_array()) {
    for (api::Draft& element : draft.MutableElements()) RestoreInvalidRaw(element);
  }
}

std::string Shown(std::string_view type, std::string_view field, std::string_view value,
                  std::string_view detail) {
  return StrCat(type, " ", field, " [", value.substr(0, 200), "] ", detail);
}

}  // namespace

std::string Root() {
  const char* root = std::getenv("DRAKKAR_VECTORS");
  return root != nullptr ? root : "../shared/vectors";
}

bool Available(std::string_view area) {
  return RealFileSystem().ListDirectory(StrCat(Root(), "/", area)).ok();
}

std::vector<std::string> FilesOf(std::string_view area, std::string_view extension) {
  std::vector<std::string> files;
  const auto entries = RealFileSystem().ListDirectory(StrCat(Root(), "/", area));
  if (!entries.ok()) return files;
  for (const auto& entry : *entries) {
    if (entry.ends_with(extension)) files.push_back(entry);
  }
  std::ranges::sort(files);
  return files;
}

std::string ReadText(std::string_view area, std::string_view file) {
  const auto text = RealFileSystem().ReadFile(StrCat(Root(), "/", area, "/", file));
  return text.ok() ? std::string(text->begin(), text->end()) : std::string();
}

api::TreePtr ReadApiObject(std::string_view json, std::string& failure, bool zero_values) {
  const Result<api::TreePtr> plain = api::ParseJson(json);
  if (!plain.ok()) {
    failure = plain.error().message;
    return nullptr;
  }
  const api::Value root = (*plain)->root();
  const api::KindSchema* kind =
      api::FindKindByApiVersion(root["apiVersion"].str(), root["kind"].str());
  if (kind == nullptr) {
    failure = StrCat("no kind ", root["apiVersion"].str(), " ", root["kind"].str());
    return nullptr;
  }
  const std::string text =
      ReplaceAll(ReplaceAll(std::string(json), "<now>", kNow), "\\u003cnow\\u003e", kNow);
  Result<api::ObjectReadResult> read =
      api::ReadObject(text, *kind->schema, {.zero_values = zero_values});
  if (!read.ok()) {
    failure = read.error().message;
    return nullptr;
  }
  api::Draft draft(read->tree);
  RestoreInvalidRaw(draft);
  return draft.Freeze();
}

void HideInvalidRaw(api::Draft& draft) {
  if (draft.kind() == api::ValueKind::kRaw) {
    if (!api::ParseJson(draft.str()).ok()) {
      const std::string encoded = Base64Encode(draft.str());
      draft = api::Draft::Raw(StrCat("{\"$invalidRawBase64\":\"", encoded, "\"}"));
    }
  } else if (draft.is_object()) {
    for (auto& [key, member] : draft.MutableMembers()) HideInvalidRaw(member);
  } else if (draft.is_array()) {
    for (api::Draft& element : draft.MutableElements()) HideInvalidRaw(element);
  }
}

std::string WriteApiObject(api::Value object) {
  api::Draft draft(object);
  HideInvalidRaw(draft);
  return api::WriteJson(draft.Freeze()->root());
}

std::optional<Case> ReadCase(const std::string& file, const std::string& text,
                             std::string& failure) {
  Case result;
  result.file = file;
  Result<api::TreePtr> line = api::ParseJson(text);
  Result<api::ObjectReadResult> raw =
      api::ReadObject(text, LineSchema(), {.strictness = api::Strictness::kIgnore});
  if (!line.ok() || !raw.ok()) {
    failure = line.ok() ? raw.error().message : line.error().message;
    return std::nullopt;
  }
  result.line = *line;
  const api::Value root = raw->tree->root();
  if (root["object"].has_value()) {
    result.object = ReadApiObject(root["object"].str(), failure);
    if (result.object == nullptr) return std::nullopt;
  }
  if (root["oldObject"].has_value()) {
    result.before = ReadApiObject(root["oldObject"].str(), failure);
    if (result.before == nullptr) return std::nullopt;
  }
  return result;
}

FeatureGates GatesOf(api::Value feature_gates) {
  FeatureGates gates;
  for (const auto& [key, name, on] : feature_gates.members()) {
    if (const std::optional<Gate> gate = FindGate(name)) gates = gates.With(*gate, on.boolean());
  }
  return gates;
}

std::string CompareErrors(api::Value expected, const api::FieldErrors& actual, bool once) {
  struct Entry {
    std::string text;   // with the value
    std::string plain;  // without
    bool value_counts;
  };
  std::vector<Entry> wanted;
  for (const api::Value error : expected.elements()) {
    const std::string_view raw = error["badValue"].str();
    const std::string_view value = raw == "<nil>" ? "null" : raw;
    const std::string_view type = error["type"].str();
    // Structs and lists are printed in the form of Go's own types.
    const bool counts = !value.starts_with('{') && !value.starts_with('[') &&
                        type != "FieldValueTooLong" && type != "InternalError";
    wanted.push_back({Shown(type, error["field"].str(), value, error["detail"].str()),
                      Shown(type, error["field"].str(), "", error["detail"].str()), counts});
  }
  std::vector<Entry> got;
  for (const api::FieldError& error : actual) {
    const std::string_view type = api::FieldErrorReason(error.type);
    got.push_back({Shown(type, error.field, error.value.text, error.detail),
                   Shown(type, error.field, "", error.detail), true});
  }
  if (once) {
    auto unique = [](std::vector<Entry>& list) {
      std::set<std::string> seen;
      std::erase_if(list, [&](const Entry& entry) { return !seen.insert(entry.text).second; });
    };
    unique(wanted);
    unique(got);
  }
  std::string difference;
  std::size_t dropped = actual.dropped();  // found, but not kept: each may be any that is missing
  std::vector<bool> used(got.size(), false);
  for (const Entry& entry : wanted) {
    bool found = false;
    for (std::size_t i = 0; i < got.size() && !found; ++i) {
      if (used[i]) continue;
      found = entry.value_counts ? got[i].text == entry.text : got[i].plain == entry.plain;
      if (found) used[i] = true;
    }
    if (found) continue;
    if (dropped > 0) {
      --dropped;
    } else {
      difference += StrCat("\n    missing ", entry.text);
    }
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!used[i]) difference += StrCat("\n    extra   ", got[i].text);
  }
  return difference;
}

Deviations::Deviations(std::string_view area) {
  const auto text = RealFileSystem().ReadFile(std::string(kDeviationsFile));
  if (!text.ok()) return;
  const std::string content(text->begin(), text->end());
  for (const std::string_view line : Split(content, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string_view> parts = Split(line, '\t');
    EXPECT_EQ(parts.size(), 4u) << "deviations.txt: area, file, case and row: " << line;
    if (parts.size() != 4 || parts[0] != area) continue;
    rows_.emplace(StrCat(parts[1], "\t", parts[2]), std::string(parts[3]));
  }
}

std::string Deviations::RowOf(const std::string& file, const std::string& name) const {
  auto found = rows_.find(StrCat(file, "\t", name));
  return found == rows_.end() ? "" : found->second;
}

namespace {

// The text of an error that differs because of a row. Without this, a listed case could hide any
// other difference.
std::string_view MarkOf(std::string_view row) {
  if (row == "5945 gate off, API server") {
    return "while the feature gate DRAOptionalNodePreparation is disabled";
  }
  if (row == "5007 condition lists") return "are required to use binding";
  return "";
}

bool DiffersOnlyBy(std::string_view row, const std::string& problem) {
  const std::string_view mark = MarkOf(row);
  if (mark.empty()) return false;
  bool any = false;
  for (const std::string_view line : Split(problem, '\n')) {
    if (!line.starts_with("    missing ") && !line.starts_with("    extra ")) continue;
    if (line.find(mark) == std::string_view::npos) return false;
    any = true;
  }
  return any;
}

}  // namespace

void Tally::Count(const std::string& file, const std::string& name, const std::string& problem) {
  const std::string row = deviations_.RowOf(file, name);
  const bool listed = !row.empty();
  if (problem.empty() && !listed) {
    ++passed_;
  } else if (problem.empty()) {
    agreeing_.push_back(StrCat(file, " ", name));
  } else if (listed && DiffersOnlyBy(row, problem)) {
    ++deviating_;
  } else {
    if (++failed_ <= kMaxShown) {
      std::printf("  %s %s %s:%s\n", area_.c_str(), file.c_str(), name.c_str(), problem.c_str());
    }
  }
}

void Tally::Finish() {
  std::printf("%s: %d passed, %d failed, %d listed deviations\n", area_.c_str(), passed_, failed_,
              deviating_);
  for (const std::string& name : agreeing_) {
    ADD_FAILURE() << name << " is listed as a deviation and agrees";
  }
  EXPECT_EQ(failed_, 0) << area_ << ": cases differ and are not listed";
  EXPECT_GT(passed_, 0) << area_ << ": no case was compared";
}

}  // namespace drakkar::vectors
