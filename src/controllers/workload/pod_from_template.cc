#include "controllers/workload/pod_from_template.h"

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"

namespace drakkar::controllers {

namespace {

constexpr std::size_t kMaxName = 253;

// FNV-1a, 32 bits.
std::uint32_t HashBytes(std::string_view bytes, std::uint32_t hash = 2166136261u) {
  for (const char c : bytes) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return hash;
}

}  // namespace

std::string PodNamePrefix(std::string_view owner) {
  return owner.size() < kMaxName ? StrCat(owner, "-") : std::string(owner);
}

api::Draft PodFromTemplate(const api::ObjectPtr& owner, const api::KindSchema& owner_kind,
                           api::Value pod_template) {
  api::Draft pod = api::Draft::Object();
  pod.KeepAlive(owner->tree());
  api::Draft& metadata = pod["metadata"];
  metadata["generateName"] = PodNamePrefix(owner->name());
  metadata["namespace"] = owner->namespace_();
  const api::Value given = pod_template["metadata"];
  for (const api::FieldName part : api::FieldNames{"labels", "annotations", "finalizers"}) {
    if (given[part].empty()) continue;
    metadata[part] = api::Draft(given[part]);
    metadata[part].KeepAlive(owner->tree());
  }
  metadata["ownerReferences"].Append(ControllerReference(*owner, owner_kind));
  pod["spec"] = api::Draft(pod_template["spec"]);
  pod["spec"].KeepAlive(owner->tree());
  return pod;
}

std::string TemplateHash(api::Value pod_template, std::int64_t collisions) {
  std::uint32_t hash = HashBytes(api::WriteJson(pod_template));
  if (collisions > 0) hash = HashBytes(StrCat(collisions), hash);
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string text = StrCat(hash);
  for (char& c : text) c = kAlphabet[static_cast<std::uint8_t>(c) % kAlphabet.size()];
  return text;
}

}  // namespace drakkar::controllers
