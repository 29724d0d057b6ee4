#include "apiserver/custom/definition.h"

#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldKind;
using api::FieldSchema;
using api::MergeKind;
using api::TypeSchema;
using api::Value;
using Type = JsonSchema::Type;

constexpr std::string_view kVerbs[] = {"create", "delete", "deletecollection", "get",
                                       "list",   "patch",  "update",           "watch"};

std::string_view WithoutDot(std::string_view path) {
  return path.starts_with('.') ? path.substr(1) : path;
}

// What the patterns of a schema hold in memory.
std::size_t PatternBytes(const JsonSchema& schema) {
  std::size_t bytes = 0;
  for (const auto& [name, property] : schema.properties) bytes += PatternBytes(*property);
  if (schema.additional != nullptr) bytes += PatternBytes(*schema.additional);
  if (schema.items != nullptr) bytes += PatternBytes(*schema.items);
  const JsonValueRules* values = schema.values.get();
  if (values == nullptr) return bytes;
  if (values->pattern != nullptr) bytes += values->pattern->size_bytes();
  for (const auto* list : {&values->all_of, &values->any_of, &values->one_of}) {
    for (const JsonSchema& each : *list) bytes += PatternBytes(each);
  }
  if (values->negated != nullptr) bytes += PatternBytes(*values->negated);
  return bytes;
}

}  // namespace

// A struct of a schema with everything it refers to.
struct CustomDefinition::Structure {
  std::string name;
  std::vector<FieldSchema> fields;
  std::unordered_map<std::string_view, std::size_t> places;
  api::StructSchema schema;
};

const CustomRules& CustomVersion::rules() const {
  if (rules_ == nullptr) {
    // Accepted rules are compiled once, on first use.
    const WorkBudget unlimited(WorkBudget::kUnlimited);
    rules_ = std::make_unique<const CustomRules>(schema_);
  }
  return *rules_;
}

CustomDefinition::CustomDefinition(api::ObjectPtr definition) : object_(std::move(definition)) {
  const WorkBudget unlimited(WorkBudget::kUnlimited);
  const Value spec = object_->root()["spec"];
  for (Value each : spec["names"]["shortNames"].elements()) short_names_.push_back(each.str());
  for (Value each : spec["names"]["categories"].elements()) categories_.push_back(each.str());
  for (Value version : spec["versions"].elements()) MakeVersion(version);
  for (const auto& version : versions_) {
    version->kind_.storage = &storage_->kind_;
    versions.push_back(&version->kind_);
  }
  constexpr std::size_t kBytesPerField = sizeof(FieldSchema) + sizeof(JsonSchema) + 100;
  size_bytes_ = object_->tree()->size_bytes() + sizeof(*this);
  for (const auto& each : structures_) size_bytes_ += each->fields.size() * kBytesPerField;
  for (const auto& version : versions_) size_bytes_ += PatternBytes(version->schema());
}

CustomDefinition::~CustomDefinition() = default;

void CustomDefinition::MakeVersion(Value source) {
  const Value spec = object_->root()["spec"];
  const Value names = spec["names"];
  CustomVersion& made = *versions_.emplace_back(std::make_unique<CustomVersion>());
  made.source_ = source;
  api::FieldErrors ignored;
  made.schema_ = ReadJsonSchema(source["schema"]["openAPIV3Schema"], api::FieldPath(), ignored);
  if (spec["preserveUnknownFields"].boolean()) made.schema_.preserves_unknown = true;
  made.schema_.is_embedded = true;
  if (source["storage"].boolean() || storage_ == nullptr) storage_ = &made;

  api::KindSchema& kind = made.kind_;
  kind.group = spec["group"].str();
  kind.version = source["name"].str();
  kind.kind = names["kind"].str();
  kind.plural = names["plural"].str();
  kind.singular = names["singular"].str();
  kind.short_names = short_names_;
  kind.categories = categories_;
  kind.namespaced = spec["scope"].str() == "Namespaced";
  kind.storage_version = source["storage"].boolean();
  kind.verbs = kVerbs;
  kind.has_generation = true;
  kind.family = this;
  // "stable.example.com" becomes com.example.stable, as in Kubernetes' OpenAPI documents.
  std::string reversed;
  for (std::string_view part : Split(kind.group, '.')) {
    reversed = reversed.empty() ? std::string(part) : StrCat(part, ".", reversed);
  }
  kind.schema = MakeStruct(made.schema_, StrCat(reversed, ".", kind.version, ".", kind.kind));

  const Value subresources = source["subresources"];
  if (subresources["scale"].has_value()) {
    made.subresources_.push_back("scale");
    made.replicas_path_ = WithoutDot(subresources["scale"]["specReplicasPath"].str());
    made.status_replicas_path_ = WithoutDot(subresources["scale"]["statusReplicasPath"].str());
    made.selector_path_ = WithoutDot(subresources["scale"]["labelSelectorPath"].str());
  }
  if (subresources["status"].has_value()) made.subresources_.push_back("status");
  kind.subresources = made.subresources_;

  const Value columns = source["additionalPrinterColumns"];
  if (!columns.empty()) {
    made.columns_.push_back(
        {"Name", "string", "name", 0, "Name must be unique within its namespace."});
    for (Value column : columns.elements()) {
      Result<api::JsonPath> path = api::JsonPath::ParsePath(column["jsonPath"].str());
      if (!path.ok()) continue;
      made.columns_.push_back({column["name"].str(), column["type"].str(), column["format"].str(),
                               static_cast<int>(column["priority"].integer()),
                               column["description"].str()});
      made.column_paths_.push_back(*std::move(path));
    }
  }
  kind.columns = made.columns_;
  for (Value field : source["selectableFields"].elements()) {
    made.selectors_.push_back(WithoutDot(field["jsonPath"].str()));
  }
  kind.field_selectors = made.selectors_;
  if (source["deprecated"].boolean()) {
    made.deprecation_ = source["deprecationWarning"].str();
    if (made.deprecation_.empty()) {
      made.deprecation_ = StrCat(kind.group, "/", kind.version, " ", kind.kind, " is deprecated");
    }
  }
}

const api::Key* CustomDefinition::MakeKey(std::string_view name) {
  // Parsers use the key of the table for names that are in it.
  if (const api::Key* known = api::FindKey(name)) return known;
  std::unique_ptr<api::Key>& key = keys_[name];
  if (key == nullptr) {
    key = std::make_unique<api::Key>(
        api::Key{0, static_cast<std::uint32_t>(name.size()), name.data()});
  }
  return key.get();
}

TypeSchema CustomDefinition::MakeType(const JsonSchema& schema, const std::string& name) {
  TypeSchema type;
  type.kind = FieldKind::kJson;
  if (schema.int_or_string) return type;
  if (schema.type == Type::kArray && schema.items != nullptr) {
    type.kind = FieldKind::kList;
    type.element = &elements_.emplace_back(MakeType(*schema.items, name));
    if (schema.list_type == JsonSchema::ListType::kSet) type.merge = MergeKind::kSet;
    if (schema.list_type == JsonSchema::ListType::kMap) {
      type.merge = MergeKind::kMapList;
      type.list_keys = schema.list_keys;
    }
    return type;
  }
  if (schema.type != Type::kObject) return type;
  if (schema.additional != nullptr) {
    type.kind = FieldKind::kMap;
    type.element = &elements_.emplace_back(MakeType(*schema.additional, name));
    type.merge = schema.is_atomic ? MergeKind::kAtomic : MergeKind::kGranular;
    return type;
  }
  if (schema.properties.empty() && !schema.is_embedded) return type;
  type.kind = FieldKind::kStruct;
  type.structure = MakeStruct(schema, name);
  type.merge = schema.is_atomic ? MergeKind::kAtomic : MergeKind::kGranular;
  return type;
}

const api::StructSchema* CustomDefinition::MakeStruct(const JsonSchema& schema,
                                                      const std::string& name) {
  Structure& made = *structures_.emplace_back(std::make_unique<Structure>());
  made.name = name;
  const auto add = [&](std::string_view field, TypeSchema type) {
    FieldSchema& added = made.fields.emplace_back();
    added.key = MakeKey(field);
    added.type = std::move(type);
    added.pointer = true;
    added.required = false;
  };
  if (schema.is_embedded) {
    add("apiVersion", TypeSchema{.kind = FieldKind::kString});
    add("kind", TypeSchema{.kind = FieldKind::kString});
    TypeSchema metadata{.kind = FieldKind::kStruct};
    metadata.structure = api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    metadata.merge = MergeKind::kGranular;
    add("metadata", metadata);
  }
  for (const auto& [property, below] : schema.properties) {
    if (schema.is_embedded &&
        (property == "apiVersion" || property == "kind" || property == "metadata")) {
      continue;
    }
    add(property, MakeType(*below, StrCat(name, ".", property)));
  }
  for (std::size_t i = 0; i < made.fields.size(); ++i) {
    made.places.emplace(made.fields[i].key->view(), i);
  }
  made.schema.name = made.name;
  made.schema.fields = made.fields;
  made.schema.names = &made.places;
  made.schema.preserve_unknown = schema.preserves_unknown;
  return &made.schema;
}

bool IsConvertedByWebhook(const api::KindSchema& kind) {
  return kind.family != nullptr &&
         static_cast<const CustomDefinition*>(kind.family)->converts_by_webhook();
}

const CustomVersion* FindCustomVersion(const api::KindSchema& kind) {
  if (kind.family == nullptr) return nullptr;
  for (const auto& version : static_cast<const CustomDefinition*>(kind.family)->custom_versions()) {
    if (&version->kind() == &kind) return version.get();
  }
  return nullptr;
}

CustomKinds::CustomKinds(std::vector<const api::KindSchema*> served) : served_(std::move(served)) {
  for (const api::KindSchema* kind : served_) {
    by_resource_.emplace(StrCat(kind->group, "/", kind->version, "/", kind->plural), kind);
    by_kind_.emplace(StrCat(kind->group, "/", kind->version, "/", kind->kind), kind);
  }
}

const api::KindSchema* CustomKinds::FindResource(std::string_view group, std::string_view version,
                                                 std::string_view plural) const {
  if (served_.empty()) return nullptr;
  const auto found = by_resource_.find(StrCat(group, "/", version, "/", plural));
  return found == by_resource_.end() ? nullptr : found->second;
}

const api::KindSchema* CustomKinds::FindKind(std::string_view api_version,
                                             std::string_view kind) const {
  if (served_.empty()) return nullptr;
  const auto found = by_kind_.find(StrCat(api_version, "/", kind));
  return found == by_kind_.end() ? nullptr : found->second;
}

}  // namespace drakkar::apiserver
