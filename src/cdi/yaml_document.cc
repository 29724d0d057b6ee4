#include "api/codec/yaml_reader.h"
#include "api/json/writer.h"
#include "base/text/text.h"
#include "cdi/document.h"

namespace drakkar::cdi {
namespace {

// What aliases may expand a spec to, in bytes of the tree: several times the largest file.
constexpr std::size_t kMaxExpandedBytes = 16u << 20;

// Recursion is bounded by kMaxDocumentDepth, which the YAML reader enforces.
Document Convert(api::Value value) {
  Document document;
  switch (value.kind()) {
    case api::ValueKind::kAbsent:
    case api::ValueKind::kNull:
    case api::ValueKind::kRaw:
      break;
    case api::ValueKind::kBool:
      document.kind = Document::Kind::kBool;
      document.boolean = value.boolean();
      document.text = document.boolean ? "true" : "false";
      document.is_plain = true;
      break;
    case api::ValueKind::kInt:
    case api::ValueKind::kDouble:
      document.kind = Document::Kind::kNumber;
      document.text = api::WriteJson(value);
      document.is_plain = true;
      break;
    case api::ValueKind::kString:
      document.kind = Document::Kind::kString;
      document.text = std::string(value.str());
      break;
    case api::ValueKind::kArray:
      document.kind = Document::Kind::kArray;
      document.items.reserve(value.size());
      for (const api::Value item : value.elements()) document.items.push_back(Convert(item));
      break;
    case api::ValueKind::kObject:
      document.kind = Document::Kind::kObject;
      document.members.reserve(value.size());
      for (const api::MemberView member : value.members()) {
        document.members.emplace_back(std::string(member.name), Convert(member.value));
      }
      break;
  }
  return document;
}

}  // namespace

Result<Document> ParseYamlDocument(std::string_view text) {
  if (text.size() > kMaxSpecBytes) {
    return InvalidArgument(
        StrCat("the document has ", text.size(), " bytes, more than ", kMaxSpecBytes));
  }
  if (!IsValidUtf8(text)) return InvalidArgument("the document is not valid UTF-8");
  ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents,
                   api::ParseYaml(text, {.max_depth = kMaxDocumentDepth,
                                         .max_size_bytes = kMaxSpecBytes,
                                         .max_expanded_bytes = kMaxExpandedBytes}));
  if (documents.empty()) return InvalidArgument("the document is empty");
  return Convert(documents.front()->root());
}

}  // namespace drakkar::cdi
