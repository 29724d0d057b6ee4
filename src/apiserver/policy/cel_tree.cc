#include "apiserver/policy/cel_tree.h"

#include <string>

#include "base/exec/work_budget.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "cel/value/record.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using cel::Kind;

constexpr int kMaxDepth = 100;
constexpr std::size_t kStepsPerNode = 200;
// Its value starts a path of its own.
constexpr std::string_view kPatchType = "JSONPatch";

class Converter {
 public:
  Result<Draft> Convert(const cel::Value& value, const std::string& path, int depth) {
    WorkBudget::Charge(kStepsPerNode);
    if (++nodes_ > kMaxCelTreeNodes || bytes_ > kMaxCelTreeBytes || depth > kMaxDepth) {
      return InvalidArgument("the value is too large");
    }
    switch (value.kind) {
      case Kind::kNull:
        return Draft(nullptr);
      case Kind::kBool:
        return Draft(value.boolean);
      case Kind::kInt:
        return Draft(value.integer);
      case Kind::kUint:
        if (value.unsigned_integer > static_cast<std::uint64_t>(INT64_MAX)) {
          return InvalidArgument("a number is out of range");
        }
        return Draft(static_cast<std::int64_t>(value.unsigned_integer));
      case Kind::kDouble:
        return Draft(value.number);
      case Kind::kString:
        bytes_ += value.size;
        return Draft(value.text());
      case Kind::kBytes:
        bytes_ += value.size;
        return Draft(Base64Encode(value.text()));
      case Kind::kList:
        return List(value, path, depth);
      case Kind::kMap:
        return Map(value, path, depth);
      case Kind::kOptional:
        if (value.optional == nullptr) return Draft(nullptr);
        return Convert(*value.optional, path, depth + 1);
      default:
        return InvalidArgument(
            StrCat("a value of type ", cel::TypeName(value), " cannot be written to an object"));
    }
  }

 private:
  Result<Draft> List(const cel::Value& value, const std::string& path, int depth) {
    Draft list = Draft::Array();
    for (std::uint32_t i = 0; i < value.size; ++i) {
      ASSIGN_OR_RETURN(Draft element, Convert(cel::ListItems(value)[i], path, depth + 1));
      list.Append(std::move(element));
    }
    return list;
  }

  Result<Draft> Map(const cel::Value& value, const std::string& path, int depth) {
    const auto* record = dynamic_cast<const cel::RecordValue*>(value.map);
    if (record != nullptr && !path.empty() && record->type_name() != path) {
      return InvalidArgument(StrCat("type mismatch: unexpected type name ",
                                    Quote(record->type_name()), ", expected ", Quote(path),
                                    ", which matches field name path from root Object type"));
    }
    const bool is_patch = record != nullptr && record->type_name() == kPatchType;
    Draft map = Draft::Object();
    for (std::uint32_t i = 0; i < value.size; ++i) {
      const cel::Value key = value.map->KeyAt(i);
      if (key.kind != Kind::kString) {
        return InvalidArgument(StrCat("map key ", cel::DebugText(key), " is not a string"));
      }
      bytes_ += key.size;
      const std::string below = is_patch            ? std::string()
                                : record != nullptr ? StrCat(record->type_name(), ".", key.text())
                                                    : path;
      ASSIGN_OR_RETURN(Draft member, Convert(value.map->ValueAt(i), below, depth + 1));
      map.Entry(key.text()) = std::move(member);
    }
    return map;
  }

  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

Result<Draft> CelTree(const cel::Value& value) {
  return Converter().Convert(value, "", 0);
}

}  // namespace drakkar::apiserver
