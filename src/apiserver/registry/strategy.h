#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/names.h"
#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "apiserver/rest/request.h"
#include "base/env/clock.h"
#include "base/env/random.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// What a strategy may look at besides the object itself.
struct StrategyContext {
  const Clock& clock;
  Random& random;
  const FeatureGates& gates;
  const UserInfo& user;
  Verb verb = Verb::kCreate;
  // The current object of any kind, by group, plural and "namespace/name"; null if there is none.
  std::function<api::ObjectPtr(std::string_view group, std::string_view plural,
                               const std::string& key)>
      lookup;
  // Asks the authorizer about a permission beyond the request's own: nothing if the user has it,
  // else the reason why not.
  std::function<std::optional<std::string>(std::string_view verb, std::string_view group,
                                           std::string_view resource, std::string_view subresource,
                                           std::string_view namespace_, std::string_view name)>
      authorize;
  // The first object of a resource, in the order of names, that `matches`; null if none does.
  std::function<api::ObjectPtr(std::string_view group, std::string_view plural,
                               const std::function<bool(const api::Object&)>& matches)>
      find_first = {};
  // Each object of a resource in a namespace, in the order of names.
  std::function<void(std::string_view group, std::string_view plural, std::string_view namespace_,
                     const std::function<void(const api::ObjectPtr&)>& each)>
      visit = {};
  // The API version the client speaks; objects here are always in the version they are stored in.
  std::string_view version = "v1";
  std::string_view group = {};  // likewise
};

// What is particular to one kind. The verbs do all that is common: names, uid, timestamps,
// generation, status against spec, finalizers, preconditions.
//
// Order on create: Default, PrepareForCreate, Validate. On update: Default, PrepareForUpdate,
// ValidateUpdate. Default gets the object in the client's version, everything else gets it in the
// version it is stored in. `subresource` is "" or "status" (or another one the strategy serves).
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Fills in what the client left out.
  virtual void Default(api::Draft& object, const StrategyContext& context) const;
  // The same for an object of which only the status counts.
  virtual void DefaultStatus(api::Draft& object, const StrategyContext& context) const {
    Default(object, context);
  }
  virtual void PrepareForCreate(api::Draft& object, const StrategyContext& context) const;
  virtual void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                                const StrategyContext& context) const;
  // All errors at once, as Kubernetes words them.
  virtual api::FieldErrors Validate(api::Value object, const StrategyContext& context) const;
  virtual api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                          std::string_view subresource,
                                          const StrategyContext& context) const;
  virtual std::vector<std::string> Warnings(api::Value object,
                                            const StrategyContext& context) const;

  // metadata.generation counts changes of spec.
  virtual bool MaintainsGeneration() const { return false; }
  // An update in this version may leave out resourceVersion.
  virtual bool AllowsUnconditionalUpdate(std::string_view /*version*/) const { return true; }
  // Somebody besides the finalizers in metadata has to finish a deletion (namespaces).
  virtual bool HoldsDeletion(api::Value) const { return false; }
  // Why this object may not be deleted (403); empty: it may.
  virtual std::string_view WhyKept(std::string_view /*name*/) const { return {}; }
  // Deleting in this version answers with the object as it last was, not with a Status.
  virtual bool ReturnsDeletedObject(std::string_view /*version*/) const { return false; }
  // A status update may also change labels and annotations (pods, nodes).
  virtual bool StatusUpdateKeepsMetadata() const { return false; }
  // Names are DNS subdomains unless the kind says otherwise (for example RBAC path segments).
  virtual api::Problems CheckName(std::string_view name, bool prefix) const;
  // The name's rule is one of the declared ones (see MetadataRules::name_is_declared).
  virtual bool NameIsDeclared() const { return false; }
  // How long deleting waits for somebody to finish it; nullopt: the object goes at once.
  virtual std::optional<std::int64_t> GracePeriod(api::Value object,
                                                  std::optional<std::int64_t> asked) const;
};

// The strategy of a kind; the generic one where nothing special is registered. Listed in
// registry/strategies.cc.
const Strategy& StrategyFor(const api::KindSchema& kind);

}  // namespace drakkar::apiserver
