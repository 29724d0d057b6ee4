#include "apiserver/conversion/skip_operations_form.h"

#include "api/tree/draft.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

constexpr api::FieldName kField = "skipNodeOperations";
constexpr char kTag = 0;  // its address identifies the form

bool IsBoolean(api::Value owner) {
  return owner[kField].kind() == api::ValueKind::kBool;
}

bool HasBoolean(const api::Object& object) {
  if (IsBoolean(object["spec"])) return true;
  for (api::Value result : object["status"]["allocation"]["devices"]["results"].elements()) {
    if (IsBoolean(result)) return true;
  }
  return false;
}

void MakeList(Draft& owner) {
  Draft* field = owner.is_object() ? owner.Find(kField) : nullptr;
  if (field == nullptr || field->kind() != api::ValueKind::kBool) return;
  if (field->boolean()) {
    *field = Draft::Array({Draft("*")});
  } else {
    owner.Remove(kField);
  }
}

}  // namespace

api::ObjectPtr WithSkipOperationsAsList(const api::ObjectPtr& object) {
  const std::string_view kind = object->kind();
  if (kind != "ResourceSlice" && kind != "ResourceClaim") return object;
  // An object without booleans is not copied: its form is null.
  const std::shared_ptr<const void> form =
      object->Form(&kTag, [&]() -> std::shared_ptr<const void> {
        if (!HasBoolean(*object)) return nullptr;
        Draft changed(object->tree());
        if (IsBoolean((*object)["spec"])) MakeList(changed["spec"]);
        if (!(*object)["status"]["allocation"]["devices"]["results"].empty()) {
          for (Draft& result :
               changed["status"]["allocation"]["devices"]["results"].MutableElements()) {
            MakeList(result);
          }
        }
        return std::make_shared<const api::Object>(changed.Freeze());
      });
  return form == nullptr ? object : std::static_pointer_cast<const api::Object>(form);
}

}  // namespace drakkar::apiserver
