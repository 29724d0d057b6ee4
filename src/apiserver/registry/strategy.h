#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/meta/names.h"
#include "api/tree/draft.h"
#include "apiserver/request/strategy_context.h"

namespace drakkar::apiserver {

// The rules of one kind. The verbs do what is common to all: names, UID, timestamps, generation,
// status and spec, finalizers, preconditions.
//
// Order on create: Default, PrepareForCreate, Validate. On update: Default, PrepareForUpdate,
// ValidateUpdate. Default gets the object in the client's version; the others get it in the storage
// version. `subresource` is "", "status", or another one that the strategy serves.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Sets defaults.
  virtual void Default(api::Draft& object, const StrategyContext& context) const;
  // The same for a status update.
  virtual void DefaultStatus(api::Draft& object, const StrategyContext& context) const {
    Default(object, context);
  }
  virtual void PrepareForCreate(api::Draft& object, const StrategyContext& context) const;
  virtual void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                                const StrategyContext& context) const;
  // Returns all errors, worded as in Kubernetes.
  virtual api::FieldErrors Validate(api::Value object, const StrategyContext& context) const;
  virtual api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                          std::string_view subresource,
                                          const StrategyContext& context) const;
  virtual std::vector<std::string> Warnings(api::Value object,
                                            const StrategyContext& context) const;

  // metadata.generation also counts changes to annotations.
  virtual bool AnnotationsRaiseGeneration() const { return false; }
  // The status in a create request is kept (nodes register themselves with theirs). For all other
  // kinds it is cleared, because controllers write it.
  virtual bool TakesStatusOnCreate() const { return false; }
  // An update in this version may leave out resourceVersion.
  virtual bool AllowsUnconditionalUpdate(std::string_view /*version*/) const { return true; }
  // The propagation policy of a delete request that specifies none: "Orphan" for kinds that are
  // older than owner references; otherwise empty, which deletes dependents in the background.
  virtual std::string_view DefaultPropagation() const { return {}; }
  // A deletion is also held up by something other than the finalizers in metadata (namespaces).
  virtual bool HoldsDeletion(api::Value) const { return false; }
  // Why this object may not be deleted (403); empty if it may.
  virtual std::string_view WhyKept(std::string_view /*name*/) const { return {}; }
  // A delete in this version returns the last state of the object instead of a Status.
  virtual bool ReturnsDeletedObject(std::string_view /*version*/) const { return false; }
  // A status update may also change labels and annotations, as most kinds allow.
  virtual bool StatusUpdateKeepsMetadata() const { return true; }
  // Names follow the kind's rule in schema/ unless the strategy overrides it (RBAC path segments).
  virtual api::Problems CheckName(const api::KindSchema& kind, std::string_view name,
                                  bool prefix) const;
  // The name's rule is one of the declared ones (see MetadataRules::name_is_declared).
  virtual bool NameIsDeclared() const { return false; }
  // How long a delete waits for someone to complete it; nullopt deletes at once.
  virtual std::optional<std::int64_t> GracePeriod(api::Value object,
                                                  std::optional<std::int64_t> asked) const;
};

// The strategy of a kind, or the generic one. registry/strategies.cc lists them.
const Strategy& StrategyFor(const api::KindSchema& kind);

}  // namespace drakkar::apiserver
