// The core's writes: create, update, patch, delete, bind.
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft_view.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/custom/definition.h"
#include "apiserver/registry/kept_members.h"
#include "apiserver/registry/schema_defaults.h"
#include "apiserver/rest/core_phases.h"
#include "apiserver/rest/decode.h"
#include "apiserver/rest/eviction.h"
#include "apiserver/rest/field_managers.h"
#include "apiserver/rest/object_meta.h"
#include "apiserver/rest/scale.h"
#include "apiserver/rest/selection.h"
#include "apiserver/validation/schema_rules.h"
#include "base/exec/work_budget.h"
#include "base/ids/uuid.h"

namespace drakkar::apiserver {
namespace {

// How often a transaction that lost a race is rebuilt from the newest state before the client gets
// a conflict. With one API server, only watchers that write while they are being notified race.
constexpr int kMaxAttempts = 5;
// The same for a write that uses up a quota, about which other servers decide, too.
constexpr int kMaxDecisions = 30;
constexpr int kMaxGeneratedNames = 8;

int MostAttempts(bool decides_alone) {
  return decides_alone ? kMaxAttempts : kMaxDecisions;
}

// The response to creating a binding or an eviction.
api::ObjectPtr CreatedStatus() {
  static const api::ObjectPtr* const kStatus =
      new api::ObjectPtr(std::make_shared<const api::Object>(api::Draft{
          {"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", api::Draft::Object()},
          {"status", "Success"},
          {"code", 201}}.Freeze()));
  return *kStatus;
}

}  // namespace

api::Draft Core::ToStored(const Resource& resource, const Request& request,
                          const api::TreePtr& asked, const StrategyContext& context) {
  api::Draft object(asked);
  // Clients may omit these.
  if (!request.kind->is_api_version(asked->root()["apiVersion"].str())) {
    object["apiVersion"] = request.kind->api_version();
  }
  if (asked->root()["kind"].str() != request.kind->kind) object["kind"] = request.kind->kind;
  if (request.subresource == "status") {
    ApplySchemaDefaults(object, *request.kind->schema, "status");
    resource.strategy->DefaultStatus(object, context);
  } else {
    ApplySchemaDefaults(object, *request.kind->schema);
    resource.strategy->Default(object, context);
  }
  if (request.kind == resource.kind || IsConvertedByWebhook(*request.kind)) return object;
  return api::Draft(ConvertTree(object.Freeze(), *resource.kind));
}

void Core::AddWarnings(const Resource& resource, api::Value object, api::Value before,
                       const StrategyContext& context, std::vector<std::string>& warnings) {
  for (std::string& warning : resource.strategy->Warnings(object, context)) {
    warnings.push_back(std::move(warning));
  }
  for (std::string& warning : UnattendedWarnings(resource.unattended, object, before)) {
    warnings.push_back(std::move(warning));
  }
}

std::optional<std::string> Core::AwaitedBy(const Request& request, api::Draft& object,
                                           const StrategyContext& context) {
  if (waiting_.size() >= kMaxWaiting) return std::nullopt;
  for (const auto& step : options_.admission) {
    if (!step->Concerns(request)) continue;
    const auto awaited = step->Awaits(request, object, context);
    if (!awaited) continue;
    const auto found = resources_.find(ByName::Views(awaited->group, awaited->plural));
    if (found != resources_.end()) return found->second->prefix + awaited->key;
  }
  return std::nullopt;
}

void Core::CreateLater(Resource& resource, Request&& request, std::string awaited,
                       std::function<void(Response)> done) {
  const std::uint64_t id = next_waiting_++;
  Waiting& waiting = waiting_[id];
  waiting.awaited = std::move(awaited);
  waiting.go_on = [this, &resource, request = std::move(request),
                   done = std::move(done)]() mutable {
    const WorkBudget budget(kMaxSteps);
    Create(resource, std::move(request), std::move(done), false);
  };
  waiting.timeout = options_.loop.RunAfter(kMaxWait, [this, id] {
    auto node = waiting_.extract(id);
    node.mapped().go_on();
  });
}

void Core::WakeWaiting(const std::string& appeared) {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto next = std::next(each);
    if (each->second.awaited == appeared) {
      auto node = waiting_.extract(each);
      node.mapped().timeout.reset();
      options_.loop.Post(lifetime_.Guard(std::move(node.mapped().go_on)));
    }
    each = next;
  }
}

std::optional<Failure> Core::CheckHome(const Resource& resource, const Request& request,
                                       std::string_view name) const {
  if (!resource.kind->namespaced) return std::nullopt;
  const api::ObjectPtr home = Find("", "namespaces", request.namespace_);
  if (home == nullptr) {
    return NotFoundFailure(*api::FindKind("", "v1", "Namespace"), request.namespace_);
  }
  if (!home->is_being_deleted()) return std::nullopt;
  Failure failure = ForbiddenFailure(*resource.kind, name,
                                     StrCat("unable to create new content in namespace ",
                                            request.namespace_, " because it is being terminated"));
  failure.causes.push_back(api::StatusCause{
      "NamespaceTerminating", StrCat("namespace ", request.namespace_, " is being terminated"),
      "metadata.namespace"});
  return failure;
}

std::optional<Failure> Core::PrepareCreated(Write& write, const StrategyContext& context) {
  const Resource& resource = *write.resource;
  api::Draft& object = write.object;
  if (write.was_suspended || write.policies.is_changed) {
    // What only the server sets, whatever webhooks and policies made of it.
    if (std::optional<Failure> failure =
            PrepareMetaForCreate(*write.schema, write.request, object)) {
      return failure;
    }
    if (const std::string_view given = object["metadata"]["name"].str();
        !given.empty() && given != write.name) {
      write.name = std::string(given);
      write.request.name = write.name;
      write.is_generated = false;
    }
    object["metadata"]["name"] = write.name;
  }
  object["metadata"]["uid"] = write.uid;
  object["metadata"]["creationTimestamp"] = write.created;
  if (HasSubresource(*write.schema, "status") && !resource.strategy->TakesStatusOnCreate()) {
    object.Remove("status");
    ApplySchemaDefaults(object, *write.schema->schema, "status");
  }
  resource.strategy->PrepareForCreate(object, context);
  if (write.schema->has_generation) object["metadata"]["generation"] = 1;
  return std::nullopt;
}

void Core::Create(Resource& resource, Request&& asked, std::function<void(Response)> done,
                  bool may_wait, int attempt) {
  Write write(Write::Kind::kCreate, resource, std::move(asked), std::move(done), attempt);
  write.may_wait = may_wait;
  Request& request = write.request;
  if (std::optional<Failure> failure =
          DecodeBody(*request.kind, request, write.response.warnings)) {
    return write.Fail(std::move(*failure));
  }
  const StrategyContext context = ContextFor(request);
  write.object = ToStored(resource, request, request.object, context);
  api::Draft& object = write.object;
  if (std::optional<Failure> failure = PrepareMetaForCreate(*write.schema, request, object)) {
    return write.Fail(std::move(*failure));
  }
  if (!write.applies()) {
    // Fields that the server adds from here on have no manager.
    PinSentEntries(object);
    const api::DraftView claimed(object);
    TrackManagedFields(*write.schema, *resource.strategy, request, nullptr, claimed.root(),
                       options_.loop.clock().Now(), object);
  }
  write.uid = NewUuid(options_.random);
  write.created = api::FormatTime(options_.loop.clock().Now());
  const std::string generate_name(object["metadata"]["generateName"].str());
  write.is_generated = object["metadata"]["name"].str().empty() && !generate_name.empty();
  write.name = object["metadata"]["name"].str();
  if (write.is_generated) {
    for (int i = 0; i < kMaxGeneratedNames; ++i) {
      write.name = GenerateName(generate_name, options_.random);
      if (resource.cache.Find(KeyOf(request.namespace_, write.name)) == nullptr) break;
    }
    object["metadata"]["name"] = write.name;
  }
  if (std::optional<Failure> failure = PrepareCreated(write, context)) {
    return write.Fail(std::move(*failure));
  }
  if (std::optional<Failure> failure = CheckHome(resource, request, write.name)) {
    return write.Fail(std::move(*failure));
  }
  write.asked_name = std::exchange(request.name, write.name);
  MutateWrite(write);
}

void Core::CheckWrite(Write& write) {
  switch (write.kind) {
    case Write::Kind::kCreate:
      return CheckCreated(write);
    case Write::Kind::kUpdate:
      return CheckUpdated(write);
    case Write::Kind::kDelete:
      return CheckDeleted(write);
  }
}

// Continues a write that validating webhooks have admitted.
void Core::StoreWrite(Write& write) {
  switch (write.kind) {
    case Write::Kind::kCreate: {
      const api::DraftView view(write.object);
      if (WaitsForDecision(write, view.root())) return;
      if (std::optional<Failure> failure = CheckAdmission(Steps::kLast, write.request, view.root(),
                                                          api::Value(), write.response.warnings)) {
        return write.Fail(std::move(*failure));
      }
      break;
    }
    case Write::Kind::kUpdate: {
      PinSentEntries(write.object);
      const api::DraftView view(write.object);
      return StoreUpdated(write, view);
    }
    case Write::Kind::kDelete:
      return StoreDeleted(write);
  }
  StoreCreated(write);
}

bool Core::WaitsForDecision(Write& write, api::Value candidate) {
  write.decisions.clear();
  if (!is_shared_ || write.request.dry_run) return false;
  for (const auto& step : options_.admission) {
    if (!step->comes_last() || !step->Concerns(write.request)) continue;
    const StrategyContext context = ContextFor(write.request);
    for (const std::string& name :
         step->DecidesAbout(write.request, candidate, write.old(), context)) {
      const std::string record = guard_prefix_ + name;
      if (const auto busy = busy_guards_.find(record); busy != busy_guards_.end()) {
        busy->second.push_back([this, resource = write.resource, attempt = write.attempt,
                                creates = write.kind == Write::Kind::kCreate,
                                asked = write.asked_name,
                                request = std::make_shared<Request>(std::move(write.request)),
                                done = std::move(write.done)]() mutable {
          const WorkBudget budget(kMaxSteps);
          if (!creates) return Update(*resource, std::move(*request), std::move(done), attempt);
          request->name = std::move(asked);
          Create(*resource, std::move(*request), std::move(done), false, attempt);
        });
        return true;
      }
      const auto known = guards_.find(record);
      write.decisions.emplace_back(record, known == guards_.end() ? 0 : known->second);
    }
  }
  return false;
}

void Core::CheckCreated(Write& write) {
  const Resource& resource = *write.resource;
  const StrategyContext context = ContextFor(write.request);
  bool is_asking = false;
  {
    const api::DraftView view(write.object);
    const api::Value candidate = view.root();
    api::FieldErrors causes = ValidateMeta(*write.schema, *resource.strategy, candidate);
    CheckSchemaRules(causes, api::FieldPath(), candidate, api::Value(), *write.schema->schema);
    causes.Append(resource.strategy->Validate(candidate, context));
    if (!causes.empty()) {
      return write.Fail(InvalidFailure(*write.schema, write.name, causes));
    }
    if (std::optional<Failure> failure =
            CheckAdmission(Steps::kBeforeWebhooks, write.request, candidate, api::Value(),
                           write.response.warnings)) {
      return write.Fail(std::move(*failure));
    }
    AddWarnings(resource, candidate, api::Value(), context, write.response.warnings);
    is_asking = NeedsWebhooks(/*mutate=*/false, write.request, candidate, api::Value());
    if (!is_asking) {
      if (WaitsForDecision(write, candidate)) return;
      if (std::optional<Failure> failure = CheckAdmission(Steps::kLast, write.request, candidate,
                                                          api::Value(), write.response.warnings)) {
        return write.Fail(std::move(*failure));
      }
    }
  }
  if (is_asking) return SuspendForValidation(write);
  StoreCreated(write);
}

void Core::StoreCreated(Write& write) {
  Resource& resource = *write.resource;
  Request& request = write.request;
  const std::string key = KeyOf(request.namespace_, write.name);
  const auto taken = [kind = write.schema, name = write.name, generated = write.is_generated] {
    return generated ? GeneratedNameTakenFailure(*kind, name) : AlreadyExistsFailure(*kind, name);
  };
  if (resource.cache.Find(key) != nullptr) return write.Fail(taken());
  if (std::optional<Failure> failure = FindUnreadable(resource, key)) {
    return write.Fail(std::move(*failure));
  }
  if (write.was_suspended) {
    if (std::optional<Failure> failure = CheckHome(resource, request, write.name)) {
      return write.Fail(std::move(*failure));
    }
    // Something it depends on, such as an address or a node port, may be gone or taken by now.
    const api::DraftView view(write.object);
    const StrategyContext context = ContextFor(request);
    if (const api::FieldErrors causes = resource.strategy->Validate(view.root(), context);
        !causes.empty()) {
      if (write.attempt + 1 >= kMaxAttempts) {
        return write.Fail(InvalidFailure(*write.schema, write.name, causes));
      }
      request.name = write.asked_name;
      return Create(resource, std::move(request), std::move(write.done), false, write.attempt + 1);
    }
  }
  if (WorkBudget::IsExceeded()) return write.Fail(TooMuchWorkFailure());
  write.response.http_status = 201;
  WriteTerms terms = TermsOf(request);
  terms.decisions = std::move(write.decisions);
  // Kept for a retry, in case the generated name is taken meanwhile, the Lease is renewed, another
  // server gives a Service what this one has chosen, or it decides about the same quota.
  std::shared_ptr<Request> again;
  const bool is_service = resource.kind->group.empty() && resource.kind->kind == "Service";
  const bool can_lose = write.is_generated || !terms.fence.empty() || !terms.decisions.empty() ||
                        (is_shared_ && is_service);
  if (can_lose && write.attempt + 1 < MostAttempts(terms.decisions.empty())) {
    request.name = write.asked_name;
    again = std::make_shared<Request>(std::move(request));
  }
  CommitConverted(
      write, key, /*removes=*/false, terms,
      [this, &resource, attempt = write.attempt, again, taken, response = std::move(write.response),
       done = std::move(write.done)](Result<storage::Revision> revision,
                                     api::ObjectPtr stored) mutable {
        if (!revision.ok()) {
          const bool lost = revision.error().code == ErrorCode::kConflict;
          if (lost && again != nullptr) {
            // Warnings about the body are not repeated when it is decoded again.
            done = [warnings = std::move(response.warnings),
                    done = std::move(done)](Response retried) {
              retried.warnings = warnings;
              done(std::move(retried));
            };
            return Create(resource, std::move(*again), std::move(done), false, attempt + 1);
          }
          return done(Response::Failed(lost ? taken() : WriteFailure(revision.error())));
        }
        response.object = std::move(stored);
        response.revision = *revision;
        done(std::move(response));
      });
}

std::optional<Failure> Core::PrepareUpdated(Write& write, const StrategyContext& context) {
  const Resource& resource = *write.resource;
  const Request& request = write.request;
  api::Draft& object = write.object;
  if (std::optional<Failure> failure = PrepareMetaForUpdate(*write.schema, *resource.strategy,
                                                            request, *write.current, object)) {
    return failure;
  }
  if (request.subresource == "status") {
    KeepAllBut("status", write.old(), object);
  } else if (HasSubresource(*write.schema, "status") && request.subresource.empty()) {
    KeepMember("status", write.old(), object);
  }
  resource.strategy->PrepareForUpdate(object, write.old(), request.subresource, context);
  if (write.schema->has_generation && request.subresource != "status") {
    UpdateGeneration(*resource.strategy, write.old(), object);
  }
  return std::nullopt;
}

void Core::Update(Resource& resource, Request&& asked_request, std::function<void(Response)> done,
                  int attempt) {
  Write write(Write::Kind::kUpdate, resource, std::move(asked_request), std::move(done), attempt);
  Request& request = write.request;
  write.before = resource.cache.Find(KeyOf(request.namespace_, request.name));
  const bool applies = write.applies();
  if (write.before == nullptr && applies && request.subresource.empty()) {
    return CreateByApply(resource, std::move(request), std::move(write.done));
  }
  if (write.before == nullptr) return write.Fail(NotFoundFailure(*request.kind, request.name));
  if (NeedsConversion(write)) return;
  api::TreePtr asked;
  if (std::optional<Failure> failure =
          applies ? BuildApply(*write.schema, *resource.strategy, request, write.current.get(),
                               options_.loop.clock().Now(), asked, write.response.warnings)
                  : BuildUpdate(*request.kind, request, write.current, asked,
                                write.response.warnings)) {
    return write.Fail(std::move(*failure));
  }
  const StrategyContext context = ContextFor(request);
  write.object = ToStored(resource, request, asked, context);
  if (std::optional<Failure> failure = PrepareUpdated(write, context)) {
    return write.Fail(std::move(*failure));
  }
  MutateWrite(write);
}

void Core::CheckUpdated(Write& write) {
  const Resource& resource = *write.resource;
  const Request& request = write.request;
  const StrategyContext context = ContextFor(request);
  PinSentEntries(write.object);
  {
    const api::DraftView view(write.object);
    const api::Value candidate = view.root();
    api::FieldErrors causes = ValidateMetaUpdate(candidate, write.old());
    CheckSchemaRules(causes, api::FieldPath(), candidate, write.old(), *write.schema->schema);
    causes.Append(
        resource.strategy->ValidateUpdate(candidate, write.old(), request.subresource, context));
    if (!causes.empty()) {
      return write.Fail(InvalidFailure(*write.schema, request.name, causes));
    }
    if (std::optional<Failure> failure = CheckAdmission(Steps::kBeforeWebhooks, request, candidate,
                                                        write.old(), write.response.warnings)) {
      return write.Fail(std::move(*failure));
    }
    if (!NeedsWebhooks(/*mutate=*/false, request, candidate, write.old())) {
      return StoreUpdated(write, view);
    }
  }
  SuspendForValidation(write);
}

void Core::StoreUpdated(Write& write, const api::DraftView& view) {
  Resource& resource = *write.resource;
  Request& request = write.request;
  Response& response = write.response;
  const api::ObjectPtr& before = write.before;
  const api::Value candidate = view.root();
  if (WaitsForDecision(write, candidate)) return;
  if (std::optional<Failure> failure =
          CheckAdmission(Steps::kLast, request, candidate, write.old(), response.warnings)) {
    return write.Fail(std::move(*failure));
  }
  if (&resource == claims_) {
    if (std::optional<std::string> busy = FindBusyGuard(resource, write.old(), candidate)) {
      busy_guards_[*busy].push_back([this, &resource, attempt = write.attempt,
                                     request = std::make_shared<Request>(std::move(request)),
                                     done = std::move(write.done)]() mutable {
        const WorkBudget budget(kMaxSteps);
        Update(resource, std::move(*request), std::move(done), attempt);
      });
      return;
    }
    std::optional<std::string> conflict;
    if (arbitrates_) conflict = arbiter_->FindConflict(write.old(), candidate);
    if (conflict.has_value()) {
      return write.Fail(ConflictFailure(*write.schema, request.name, *conflict));
    }
  }
  AddWarnings(resource, candidate, write.old(), ContextFor(request), response.warnings);
  const bool applies = write.applies();
  const api::Value entries = candidate["metadata"]["managedFields"];
  const bool same_entries = (entries.empty() && !applies) ||
                            api::Equal(entries, write.old()["metadata"]["managedFields"]);
  if (same_entries && EqualButForVersion(candidate, write.old())) {
    response.object = before;
    response.revision = before->resource_version();
    return write.done(std::move(response));
  }
  api::TreePtr last;  // its final state, if this request removes it
  // The last finalizer was removed: this update deletes the object.
  if (IsReadyToGo(*resource.strategy, candidate)) {
    last = view.Freeze();
  } else if (!applies) {
    TrackManagedFields(*write.schema, *resource.strategy, request, write.current.get(), candidate,
                       options_.loop.clock().Now(), write.object);
  }
  if (WorkBudget::IsExceeded()) return write.Fail(TooMuchWorkFailure());
  WriteTerms terms = TermsOf(request);
  terms.decisions = std::move(write.decisions);
  const int most = MostAttempts(terms.decisions.empty());
  const std::string key = KeyOf(request.namespace_, request.name);
  CommitConverted(
      write, key, /*removes=*/last != nullptr, terms,
      [this, &resource, last, most, attempt = write.attempt, request = std::move(request),
       response = std::move(response), done = std::move(write.done)](
          Result<storage::Revision> revision, api::ObjectPtr stored) mutable {
        if (!revision.ok()) {
          if (revision.error().code != ErrorCode::kConflict) {
            done(Response::Failed(WriteFailure(revision.error())));
          } else if (attempt + 1 < most) {
            Update(resource, std::move(request), std::move(done), attempt + 1);
          } else {
            done(Response::Failed(ModifiedFailure(*resource.kind, request.name)));
          }
          return;
        }
        response.object =
            last != nullptr ? std::make_shared<const api::Object>(last) : std::move(stored);
        response.revision = *revision;
        done(std::move(response));
      });
}

void Core::CreateByApply(Resource& resource, Request&& request,
                         std::function<void(Response)> done) {
  // Applying an object that does not exist also needs permission to create it.
  Request creation = request;
  creation.verb = Verb::kCreate;
  if (std::optional<Failure> failure = CheckAuthorized(creation)) {
    return done(Response::Failed(std::move(*failure)));
  }
  std::vector<std::string> warnings;
  if (std::optional<Failure> failure =
          BuildApply(*resource.kind, *resource.strategy, request, nullptr,
                     options_.loop.clock().Now(), request.object, warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  if (!warnings.empty()) {
    done = [warnings = std::move(warnings), done = std::move(done)](Response response) {
      response.warnings.insert(response.warnings.begin(), warnings.begin(), warnings.end());
      done(std::move(response));
    };
  }
  const api::Value metadata = request.object->root()["metadata"];
  if (const std::string_view uid = metadata["uid"].str(); !uid.empty()) {
    return done(
        Response::Failed(ConflictFailure(*request.kind, request.name,
                                         StrCat("uid mismatch: the provided object specified uid ",
                                                uid, ", and no existing object was found"))));
  }
  const std::string_view name = metadata["name"].str();
  if (name != request.name) {
    return done(Response::Failed(api::StatusBadRequest(
        name.empty() ? std::string("name must be provided")
                     : StrCat("the name of the object (", name,
                              ") does not match the name on the URL (", request.name, ")"))));
  }
  Create(resource, std::move(request), std::move(done));
}

void Core::Delete(Resource& resource, Request&& asked, std::function<void(Response)> done,
                  int attempt) {
  Write write(Write::Kind::kDelete, resource, std::move(asked), std::move(done), attempt);
  const Request& request = write.request;
  write.before = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (write.before == nullptr) return write.Fail(NotFoundFailure(*request.kind, request.name));
  if (NeedsConversion(write)) return;
  if (const std::string_view why = resource.strategy->WhyKept(request.name); !why.empty()) {
    return write.Fail(ForbiddenFailure(*request.kind, request.name, why));
  }
  if (std::optional<Failure> failure = CheckPreconditions(request, *write.before)) {
    return write.Fail(std::move(*failure));
  }
  MutateWrite(write);
}

void Core::CheckDeleted(Write& write) {
  if (std::optional<Failure> failure =
          CheckAdmission(Steps::kBeforeWebhooks, write.request, api::Value(), write.old(),
                         write.response.warnings)) {
    return write.Fail(std::move(*failure));
  }
  if (NeedsWebhooks(/*mutate=*/false, write.request, api::Value(), write.old())) {
    return SuspendForValidation(write);
  }
  StoreDeleted(write);
}

void Core::StoreDeleted(Write& write) {
  Resource& resource = *write.resource;
  Request& request = write.request;
  const api::ObjectPtr& before = write.before;
  if (std::optional<Failure> failure = CheckAdmission(Steps::kLast, request, api::Value(),
                                                      write.old(), write.response.warnings)) {
    return write.Fail(std::move(*failure));
  }
  api::Draft object(before->tree());
  const DeletionPlan plan =
      PlanDeletion(*resource.strategy, request, *before, options_.loop.clock().Now(), object);
  if (plan == DeletionPlan::kUnchanged) {
    write.response.object = before;
    write.response.revision = before->resource_version();
    return write.done(std::move(write.response));
  }
  if (WorkBudget::IsExceeded()) return write.Fail(TooMuchWorkFailure());
  const bool now = plan == DeletionPlan::kNow;
  const WriteTerms terms = TermsOf(request);
  const std::string key = KeyOf(request.namespace_, request.name);
  CommitObject(
      resource, key, now ? nullptr : &object, before, terms,
      [this, &resource, now, before, attempt = write.attempt, response = std::move(write.response),
       request = std::move(request), done = std::move(write.done)](
          Result<storage::Revision> revision, api::ObjectPtr stored) mutable {
        if (!revision.ok()) {
          if (revision.error().code != ErrorCode::kConflict) {
            done(Response::Failed(WriteFailure(revision.error())));
          } else if (attempt + 1 < kMaxAttempts) {
            Delete(resource, std::move(request), std::move(done), attempt + 1);
          } else {
            done(Response::Failed(ModifiedFailure(*resource.kind, request.name)));
          }
          return;
        }
        response.revision = *revision;
        if (!now || resource.strategy->ReturnsDeletedObject(request.kind->version)) {
          response.object = now ? before : std::move(stored);
        } else {
          response.object =
              std::make_shared<const api::Object>(SuccessStatus(*resource.kind, *before));
        }
        done(std::move(response));
      });
}

void Core::Expire(const api::KindSchema& kind, const std::string& key, storage::Revision revision,
                  std::function<void(bool removed)> done) {
  Resource& resource = *FindResource(kind);
  const api::ObjectPtr before = resource.cache.Find(key);
  if (before == nullptr || before->resource_version() != revision) return done(false);
  CommitObject(resource, key, nullptr, before, WriteTerms{},
               [done = std::move(done)](const Result<storage::Revision>& removed,
                                        const api::ObjectPtr&) { done(removed.ok()); });
}

// The deletion of a collection, in several turns of the loop.
struct Core::CollectionDeletion {
  Resource* resource = nullptr;
  Request request;
  std::vector<api::ObjectPtr> chosen;
  std::size_t next = 0;  // of `chosen`
  std::size_t waiting = 0;
  Response response;  // a list of the deleted objects, as Kubernetes returns it
  std::function<void(Response)> done;
  void Finish() {
    if (--waiting == 0 && next == chosen.size()) done(std::move(response));
  }
};

void Core::DeleteCollection(Resource& resource, Request&& request,
                            std::function<void(Response)> done) {
  auto deletion = std::make_shared<CollectionDeletion>();
  deletion->resource = &resource;
  deletion->request = std::move(request);
  deletion->done = std::move(done);
  deletion->response.revision = revision();
  Request all = deletion->request;
  all.limit = 0;
  all.continue_token.clear();
  all.resource_version.clear();
  all.resource_version_match.clear();
  List(resource, std::move(all), [this, deletion](Response listed) {
    if (listed.failure) return deletion->done(std::move(listed));
    deletion->chosen = std::move(listed.items);
    DeleteNext(deletion);
  });
}

void Core::DeleteNext(const std::shared_ptr<CollectionDeletion>& deletion) {
  const std::size_t end =
      std::min(deletion->chosen.size(), deletion->next + Core::kMaxDeletedPerTurn);
  const std::size_t begin = std::exchange(deletion->next, end);
  ++deletion->waiting;
  for (std::size_t i = begin; i < end; ++i) {
    const api::ObjectPtr& object = deletion->chosen[i];
    Request one = deletion->request;
    one.verb = Verb::kDelete;
    one.namespace_ = object->namespace_();
    one.name = object->name();
    ++deletion->waiting;
    Delete(*deletion->resource, std::move(one), [deletion, object](Response response) {
      Response& whole = deletion->response;
      // Already deleted, as requested.
      if (response.failure && response.failure->code != 404 && !whole.failure) {
        whole.http_status = response.http_status;
        whole.failure = std::move(response.failure);
      }
      if (!response.failure) whole.items.push_back(object);
      whole.revision = std::max(whole.revision, response.revision);
      deletion->Finish();
    });
  }
  if (end < deletion->chosen.size()) {
    options_.loop.Post(lifetime_.Guard([this, deletion] { DeleteNext(deletion); }));
  }
  deletion->Finish();
}

void Core::Rescale(Resource& resource, Request&& request, std::function<void(Response)> done) {
  Response response;
  api::ObjectPtr workload = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (workload == nullptr) {
    return done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
  }
  if (IsConvertedByWebhook(*request.kind)) {
    const api::ObjectPtr stored = workload;
    workload = ConvertObjectTo(stored, *request.kind);
    if (workload == nullptr) {
      const api::KindSchema& kind = *request.kind;
      return ConvertRemotely(
          kind, {stored},
          [this, &resource, request = std::make_shared<Request>(std::move(request)),
           done = std::move(done)](std::optional<Failure> failure) mutable {
            if (failure) return done(Response::Failed(std::move(*failure)));
            Rescale(resource, std::move(*request), std::move(done));
          });
    }
  }
  if (std::optional<Failure> failure = BuildScaleUpdate(request, workload, response.warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  const api::KindSchema* kind = request.kind;
  done = [kind, answer = std::move(done)](Response updated) {
    if (updated.object != nullptr) updated.object = ScaleOf(*kind, *updated.object);
    answer(std::move(updated));
  };
  // Webhooks see the scale, not the workload. An applied one gets there with its subresource.
  if (!IsConcerned(*kind) || !request.subresource.empty()) {
    return Update(resource, std::move(request), std::move(done));
  }
  Request asked = request;
  asked.subresource = "scale";
  asked.object = ScaleOf(*kind, api::Object(request.object))->tree();
  AdmitAction(
      std::move(asked), *api::FindKind("autoscaling", "v1", "Scale"), "UPDATE", std::move(done),
      [this, &resource, kind, change = std::make_shared<Request>(std::move(request))](
          Request&& admitted, std::function<void(Response)> answer) {
        api::Draft scaled(change->object);
        SetReplicas(*kind, scaled, admitted.object->root()["spec"]["replicas"].integer());
        change->object = scaled.Freeze();
        change->skips_webhooks = true;
        Update(resource, std::move(*change), std::move(answer));
      },
      ScaleOf(*kind, *workload));
}

void Core::Evict(Resource& resource, Request&& request, std::function<void(Response)> done) {
  Response response;
  const api::KindSchema& eviction = *api::FindKind("policy", "v1", "Eviction");
  if (std::optional<Failure> failure = DecodeBody(eviction, request, response.warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  AdmitAction(std::move(request), eviction, "CREATE", std::move(done),
              [this, &resource](Request&& admitted, std::function<void(Response)> answer) {
                EvictAdmitted(resource, std::move(admitted), std::move(answer));
              });
}

void Core::EvictAdmitted(Resource& resource, Request&& request,
                         std::function<void(Response)> done) {
  const api::ObjectPtr pod = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (pod == nullptr) {
    return done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
  }
  const WallTime now = options_.loop.clock().Now();
  api::ObjectPtr charged;
  if (std::optional<Failure> failure =
          CheckEviction(request, *pod, *FindCache("policy", "poddisruptionbudgets"), resource.cache,
                        now, charged)) {
    return done(Response::Failed(std::move(*failure)));
  }
  // On an embedded store nothing can happen in between.
  if (!is_shared_ || charged == nullptr || request.dry_run) {
    return DeleteEvicted(resource, pod, std::move(request), std::move(done));
  }
  Request charge;
  charge.user = request.user;
  charge.user_agent = request.user_agent;
  charge.verb = Verb::kUpdate;
  charge.kind = api::FindKind("policy", "v1", "PodDisruptionBudget");
  charge.namespace_ = request.namespace_;
  charge.name = std::string(charged->name());
  charge.subresource = "status";
  charge.skips_webhooks = true;
  charge.object = ChargeBudget(*charged, request.name, now);
  Resource& budgets = *FindResource(*charge.kind);
  Update(budgets, std::move(charge),
         [this, &resource, pod, done = std::move(done),
          eviction = std::make_shared<Request>(std::move(request))](Response written) mutable {
           if (!written.failure) {
             return DeleteEvicted(resource, pod, std::move(*eviction), std::move(done));
           }
           if (written.failure->code != 409 && written.failure->code != 404) {
             return done(Response::Failed(std::move(*written.failure)));
           }
           // Somebody else was quicker, so the budget may be used up.
           EvictAdmitted(resource, std::move(*eviction), std::move(done));
         });
}

// Deletes the pod of an eviction that is allowed.
void Core::DeleteEvicted(Resource& resource, const api::ObjectPtr& pod, Request&& request,
                         std::function<void(Response)> done) {
  request.verb = Verb::kDelete;
  request.subresource.clear();
  request.object = nullptr;
  request.skips_webhooks = request.skips_policies = true;
  // Deletes exactly the version that was checked.
  if (request.precondition_uid.empty()) request.precondition_uid = std::string(pod->uid());
  auto answer = [done = std::move(done)](Response deleted) {
    if (!deleted.failure) {
      deleted.http_status = 201;
      deleted.object = CreatedStatus();
    }
    done(std::move(deleted));
  };
  const std::string version = std::to_string(pod->resource_version());
  const bool is_wanted_version = request.precondition_resource_version.empty() ||
                                 request.precondition_resource_version == version;
  if (request.dry_run || pod->is_being_deleted() || !is_wanted_version) {
    return Delete(resource, std::move(request), std::move(answer));
  }
  Request mark;
  mark.user = request.user;
  mark.user_agent = request.user_agent;
  mark.verb = Verb::kUpdate;
  mark.kind = request.kind;
  mark.namespace_ = request.namespace_;
  mark.name = request.name;
  mark.subresource = "status";
  mark.skips_webhooks = mark.skips_policies = true;
  mark.object = MarkEvicted(*pod, options_.loop.clock().Now());
  // The pod goes even if it could not be marked.
  Update(resource, std::move(mark),
         [this, &resource, answer = std::move(answer),
          deletion = std::make_shared<Request>(std::move(request))](Response marked) mutable {
           if (!deletion->precondition_resource_version.empty() && marked.object != nullptr) {
             deletion->precondition_resource_version =
                 std::to_string(marked.object->resource_version());
           }
           Delete(resource, std::move(*deletion), std::move(answer));
         });
}

void Core::BindNamed(Request&& request, std::function<void(Response)> done) {
  Response response;
  if (std::optional<Failure> failure = DecodeBody(*request.kind, request, response.warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  request.is_decoded = true;
  request.name = request.object->root()["metadata"]["name"].str();
  request.kind = api::FindKind("", "v1", "Pod");
  request.subresource = "binding";
  Bind(*FindResource(*request.kind), std::move(request), std::move(done));
}

void Core::Bind(Resource& resource, Request&& request, std::function<void(Response)> done) {
  Response response;
  const api::KindSchema& binding = *api::FindKind("", "v1", "Binding");
  if (std::optional<Failure> failure = DecodeBody(binding, request, response.warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (options_.webhooks == nullptr && action_steps_.empty()) {
    return BindAdmitted(resource, std::move(request), std::move(response), std::move(done));
  }
  AdmitAction(std::move(request), binding, "CREATE", std::move(done),
              [this, &resource, response = std::move(response)](
                  Request&& admitted, std::function<void(Response)> answer) mutable {
                BindAdmitted(resource, std::move(admitted), std::move(response), std::move(answer));
              });
}

void Core::BindAdmitted(Resource& resource, Request&& request, Response response,
                        std::function<void(Response)> done, int attempt) {
  const std::string key = KeyOf(request.namespace_, request.name);
  api::ObjectPtr before = resource.cache.Find(key);
  if (before == nullptr) {
    done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
    return;
  }
  api::Draft object(before->tree());
  if (std::optional<Failure> failure =
          ApplyBinding(*resource.kind, request, *before, options_.loop.clock().Now(), object)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (std::optional<Failure> failure =
          RunAdmitSteps(request, &object, before->root(), ContextFor(request))) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (WorkBudget::IsExceeded()) return done(Response::Failed(TooMuchWorkFailure()));
  response.http_status = 201;
  const WriteTerms terms = TermsOf(request);
  CommitObject(
      resource, key, &object, before, terms,
      [this, &resource, attempt, request = std::move(request), response = std::move(response),
       done = std::move(done)](Result<storage::Revision> revision, api::ObjectPtr) mutable {
        if (!revision.ok()) {
          if (revision.error().code != ErrorCode::kConflict) {
            done(Response::Failed(WriteFailure(revision.error())));
          } else if (attempt + 1 < kMaxAttempts) {
            BindAdmitted(resource, std::move(request), std::move(response), std::move(done),
                         attempt + 1);
          } else {
            done(Response::Failed(ModifiedFailure(*resource.kind, request.name)));
          }
          return;
        }
        response.object = CreatedStatus();
        response.revision = *revision;
        done(std::move(response));
      });
}

}  // namespace drakkar::apiserver
