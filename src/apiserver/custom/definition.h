#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/json/jsonpath.h"
#include "api/meta/object.h"
#include "api/scheme/scheme.h"
#include "apiserver/custom/json_schema.h"
#include "apiserver/custom/rules.h"

namespace drakkar::apiserver {

// One version of a custom resource. Immutable, and safe to read from any thread, except for
// rules().
class CustomVersion {
 public:
  const api::KindSchema& kind() const { return kind_; }
  const JsonSchema& schema() const { return schema_; }
  bool is_served() const { return source_["served"].boolean(); }
  // What to tell clients that use a deprecated version; empty if it is not deprecated.
  const std::string& deprecation() const { return deprecation_; }
  bool has_status() const { return source_["subresources"]["status"].has_value(); }

  // The values of the printer columns, in the order of kind().columns without the name.
  const std::vector<api::JsonPath>& column_paths() const { return column_paths_; }
  // The paths of the scale subresource, ".spec.replicas" without the first dot; empty: none.
  std::string_view replicas_path() const { return replicas_path_; }
  std::string_view status_replicas_path() const { return status_replicas_path_; }
  std::string_view selector_path() const { return selector_path_; }

  // Compiled when first used. On the core's loop only.
  const CustomRules& rules() const;

 private:
  friend class CustomDefinition;
  api::Value source_;
  JsonSchema schema_;
  api::KindSchema kind_;
  std::string deprecation_;
  std::vector<std::string_view> subresources_;
  std::vector<api::ColumnSchema> columns_;
  std::vector<api::JsonPath> column_paths_;
  std::vector<std::string_view> selectors_;
  std::string_view replicas_path_;
  std::string_view status_replicas_path_;
  std::string_view selector_path_;
  mutable std::unique_ptr<const CustomRules> rules_;
};

// The kinds that a CustomResourceDefinition defines: the tables that the same code uses as those
// generated from schema/. Pointers into it stay valid for the life of the process
// (docs/decisions/custom-kinds.md).
class CustomDefinition final : public api::KindFamily {
 public:
  // The definition has passed validation.
  explicit CustomDefinition(api::ObjectPtr definition);
  ~CustomDefinition() override;

  const api::ObjectPtr& object() const { return object_; }
  const std::vector<std::unique_ptr<CustomVersion>>& custom_versions() const { return versions_; }
  const CustomVersion& storage() const { return *storage_; }
  std::size_t size_bytes() const { return size_bytes_; }
  bool converts_by_webhook() const { return converts_by_webhook_; }

 private:
  struct Structure;

  void MakeVersion(api::Value source);
  const api::StructSchema* MakeStruct(const JsonSchema& schema, const std::string& name);
  api::TypeSchema MakeType(const JsonSchema& schema, const std::string& name);
  const api::Key* MakeKey(std::string_view name);

  const api::ObjectPtr object_;
  std::vector<std::string_view> short_names_;
  std::vector<std::string_view> categories_;
  std::vector<std::unique_ptr<CustomVersion>> versions_;
  const CustomVersion* storage_ = nullptr;
  std::vector<std::unique_ptr<Structure>> structures_;
  std::deque<api::TypeSchema> elements_;
  std::unordered_map<std::string_view, std::unique_ptr<api::Key>> keys_;
  std::size_t size_bytes_ = 0;
  const bool converts_by_webhook_ =
      object_->root()["spec"]["conversion"]["strategy"].str() == "Webhook";
};

// Whether the versions of the kind are converted by the webhook of its definition.
bool IsConvertedByWebhook(const api::KindSchema& kind);

// Null for kinds that are not custom resources.
const CustomVersion* FindCustomVersion(const api::KindSchema& kind);

// The kinds that definitions add to those of schema/, at one moment. Immutable.
class CustomKinds {
 public:
  CustomKinds() = default;
  explicit CustomKinds(std::vector<const api::KindSchema*> served);

  const api::KindSchema* FindResource(std::string_view group, std::string_view version,
                                      std::string_view plural) const;
  const api::KindSchema* FindKind(std::string_view api_version, std::string_view kind) const;
  const std::vector<const api::KindSchema*>& served() const { return served_; }

 private:
  std::vector<const api::KindSchema*> served_;
  std::unordered_map<std::string, const api::KindSchema*> by_resource_;  // "group/version/plural"
  std::unordered_map<std::string, const api::KindSchema*> by_kind_;      // "group/version/Kind"
};
using CustomKindsPtr = std::shared_ptr<const CustomKinds>;

// Publishes the kinds to all threads.
class CustomKindsBoard {
 public:
  CustomKindsPtr current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void Publish(CustomKindsPtr kinds) {
    const std::lock_guard lock(mutex_);
    current_ = std::move(kinds);
  }

 private:
  mutable std::mutex mutex_;
  CustomKindsPtr current_ = std::make_shared<const CustomKinds>();
};

}  // namespace drakkar::apiserver
