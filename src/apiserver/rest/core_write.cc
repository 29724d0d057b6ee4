// The core's writes: create, update, patch, delete, bind.
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft_view.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/registry/kept_members.h"
#include "apiserver/registry/schema_defaults.h"
#include "apiserver/rest/core_resource.h"
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
constexpr int kMaxGeneratedNames = 8;

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
  if (request.kind == resource.kind) return object;
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

void Core::Create(Resource& resource, Request&& request, std::function<void(Response)> done,
                  bool may_wait, int attempt) {
  Response response;
  if (std::optional<Failure> failure = DecodeBody(*request.kind, request, response.warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  const StrategyContext context = ContextFor(request);
  api::Draft object = ToStored(resource, request, request.object, context);
  if (std::optional<Failure> failure = PrepareMetaForCreate(*resource.kind, request, object)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (request.patch != PatchKind::kApply || request.verb != Verb::kPatch) {
    // What the server adds from here on has no field manager.
    PinSentEntries(object);
    const api::DraftView claimed(object);
    TrackManagedFields(*resource.kind, *resource.strategy, request, nullptr, claimed.root(),
                       options_.loop.clock().Now(), object);
  }
  object["metadata"]["uid"] = NewUuid(options_.random);
  object["metadata"]["creationTimestamp"] = api::FormatTime(options_.loop.clock().Now());
  const std::string generate_name(object["metadata"]["generateName"].str());
  const bool generated = object["metadata"]["name"].str().empty() && !generate_name.empty();
  std::string name(object["metadata"]["name"].str());
  if (generated) {
    for (int i = 0; i < kMaxGeneratedNames; ++i) {
      name = GenerateName(generate_name, options_.random);
      if (resource.cache.Find(KeyOf(request.namespace_, name)) == nullptr) break;
    }
    object["metadata"]["name"] = name;
  }
  if (HasSubresource(*resource.kind, "status") && !resource.strategy->TakesStatusOnCreate()) {
    object.Remove("status");
    ApplySchemaDefaults(object, *resource.kind->schema, "status");
  }
  resource.strategy->PrepareForCreate(object, context);
  api::Draft& metadata = object["metadata"];
  if (resource.kind->has_generation) metadata["generation"] = 1;

  if (resource.kind->namespaced) {
    api::ObjectPtr home = Find("", "namespaces", request.namespace_);
    if (home == nullptr) {
      done(Response::Failed(
          NotFoundFailure(*api::FindKind("", "v1", "Namespace"), request.namespace_)));
      return;
    }
    if (home->is_being_deleted()) {
      Failure failure =
          ForbiddenFailure(*resource.kind, object["metadata"]["name"].str(),
                           StrCat("unable to create new content in namespace ", request.namespace_,
                                  " because it is being terminated"));
      failure.causes.push_back(api::StatusCause{
          "NamespaceTerminating", StrCat("namespace ", request.namespace_, " is being terminated"),
          "metadata.namespace"});
      done(Response::Failed(std::move(failure)));
      return;
    }
  }

  const std::string asked_name = std::exchange(request.name, name);
  if (std::optional<Failure> failure = Admit(request, &object, api::Value())) {
    if (std::optional<std::string> awaited =
            may_wait ? AwaitedBy(request, object, context) : std::nullopt) {
      request.name = asked_name;
      return CreateLater(resource, std::move(request), std::move(*awaited), std::move(done));
    }
    done(Response::Failed(std::move(*failure)));
    return;
  }
  {
    const api::DraftView view(object);
    const api::Value candidate = view.root();
    api::FieldErrors causes = ValidateMeta(*resource.kind, *resource.strategy, candidate);
    CheckSchemaRules(causes, api::FieldPath(), candidate, api::Value(), *resource.kind->schema);
    causes.Append(resource.strategy->Validate(candidate, context));
    if (!causes.empty()) {
      done(Response::Failed(InvalidFailure(*resource.kind, name, causes)));
      return;
    }
    if (std::optional<Failure> failure =
            CheckAdmission(request, candidate, api::Value(), response.warnings)) {
      done(Response::Failed(std::move(*failure)));
      return;
    }
    AddWarnings(resource, candidate, api::Value(), context, response.warnings);
  }
  const std::string key = KeyOf(request.namespace_, name);
  const auto taken = [kind = resource.kind, name, generated] {
    return generated ? GeneratedNameTakenFailure(*kind, name) : AlreadyExistsFailure(*kind, name);
  };
  if (resource.cache.Find(key) != nullptr) {
    done(Response::Failed(taken()));
    return;
  }
  if (std::optional<Failure> failure = FindUnreadable(resource, key)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (WorkBudget::IsExceeded()) return done(Response::Failed(TooMuchWorkFailure()));
  response.http_status = 201;
  const WriteTerms terms = TermsOf(request);
  // Kept for a retry, in case the generated name is taken meanwhile or the Lease is renewed.
  std::shared_ptr<Request> again;
  if ((generated || !terms.fence.empty()) && attempt + 1 < kMaxAttempts) {
    request.name = asked_name;
    again = std::make_shared<Request>(std::move(request));
  }
  CommitObject(
      resource, key, &object, nullptr, terms,
      [this, &resource, attempt, again, taken, response = std::move(response),
       done = std::move(done)](Result<storage::Revision> revision, api::ObjectPtr stored) mutable {
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

void Core::Update(Resource& resource, Request&& request, std::function<void(Response)> done,
                  int attempt) {
  Response response;
  const std::string key = KeyOf(request.namespace_, request.name);
  api::ObjectPtr before = resource.cache.Find(key);
  const bool applies = request.verb == Verb::kPatch && request.patch == PatchKind::kApply;
  if (before == nullptr && applies && request.subresource.empty()) {
    return CreateByApply(resource, std::move(request), std::move(done));
  }
  if (before == nullptr) {
    done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
    return;
  }
  api::TreePtr asked;
  if (std::optional<Failure> failure =
          applies ? BuildApply(*resource.kind, *resource.strategy, request, before.get(),
                               options_.loop.clock().Now(), asked, response.warnings)
                  : BuildUpdate(*request.kind, request, before, asked, response.warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  const StrategyContext context = ContextFor(request);
  api::Draft object = ToStored(resource, request, asked, context);
  const bool has_status = HasSubresource(*resource.kind, "status");
  if (std::optional<Failure> failure =
          PrepareMetaForUpdate(*resource.kind, *resource.strategy, request, *before, object)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (request.subresource == "status") {
    KeepAllBut("status", before->root(), object);
  } else if (has_status && request.subresource.empty()) {
    KeepMember("status", before->root(), object);
  }
  resource.strategy->PrepareForUpdate(object, before->root(), request.subresource, context);
  if (resource.kind->has_generation && request.subresource != "status") {
    UpdateGeneration(*resource.strategy, before->root(), object);
  }
  if (std::optional<Failure> failure = Admit(request, &object, before->root())) {
    done(Response::Failed(std::move(*failure)));
    return;
  }

  api::TreePtr last;  // its final state, if this request removes it
  {
    PinSentEntries(object);
    const api::DraftView view(object);
    const api::Value candidate = view.root();
    api::FieldErrors causes = ValidateMetaUpdate(candidate, before->root());
    CheckSchemaRules(causes, api::FieldPath(), candidate, before->root(), *resource.kind->schema);
    causes.Append(
        resource.strategy->ValidateUpdate(candidate, before->root(), request.subresource, context));
    if (!causes.empty()) {
      done(Response::Failed(InvalidFailure(*resource.kind, request.name, causes)));
      return;
    }
    if (std::optional<Failure> failure =
            CheckAdmission(request, candidate, before->root(), response.warnings)) {
      done(Response::Failed(std::move(*failure)));
      return;
    }
    if (&resource == claims_) {
      if (std::optional<std::string> busy = FindBusyGuard(resource, before->root(), candidate)) {
        busy_guards_[*busy].push_back([this, &resource, attempt,
                                       request = std::make_shared<Request>(std::move(request)),
                                       done = std::move(done)]() mutable {
          const WorkBudget budget(kMaxSteps);
          Update(resource, std::move(*request), std::move(done), attempt);
        });
        return;
      }
      std::optional<std::string> conflict;
      if (arbitrates_) conflict = arbiter_->FindConflict(before->root(), candidate);
      if (conflict.has_value()) {
        done(Response::Failed(ConflictFailure(*resource.kind, request.name, *conflict)));
        return;
      }
    }
    AddWarnings(resource, candidate, before->root(), context, response.warnings);
    const api::Value entries = candidate["metadata"]["managedFields"];
    const bool same_entries = (entries.empty() && !applies) ||
                              api::Equal(entries, before->root()["metadata"]["managedFields"]);
    if (same_entries && EqualButForVersion(candidate, before->root())) {
      response.object = before;
      response.revision = before->resource_version();
      done(std::move(response));
      return;
    }
    // The last finalizer was removed: this update deletes the object.
    if (IsReadyToGo(*resource.strategy, candidate)) {
      last = view.Freeze();
    } else if (!applies) {
      TrackManagedFields(*resource.kind, *resource.strategy, request, before.get(), candidate,
                         options_.loop.clock().Now(), object);
    }
  }
  if (WorkBudget::IsExceeded()) return done(Response::Failed(TooMuchWorkFailure()));
  const WriteTerms terms = TermsOf(request);
  CommitObject(
      resource, key, last != nullptr ? nullptr : &object, before, terms,
      [this, &resource, last, attempt, request = std::move(request), response = std::move(response),
       done = std::move(done)](Result<storage::Revision> revision, api::ObjectPtr stored) mutable {
        if (!revision.ok()) {
          if (revision.error().code != ErrorCode::kConflict) {
            done(Response::Failed(WriteFailure(revision.error())));
          } else if (attempt + 1 < kMaxAttempts) {
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

void Core::Delete(Resource& resource, Request&& request, std::function<void(Response)> done,
                  int attempt) {
  const std::string key = KeyOf(request.namespace_, request.name);
  api::ObjectPtr before = resource.cache.Find(key);
  if (before == nullptr) {
    done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
    return;
  }
  if (const std::string_view why = resource.strategy->WhyKept(request.name); !why.empty()) {
    done(Response::Failed(ForbiddenFailure(*request.kind, request.name, why)));
    return;
  }
  if (std::optional<Failure> failure = CheckPreconditions(request, *before)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  if (std::optional<Failure> failure = Admit(request, nullptr, before->root())) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  std::vector<std::string> warnings;
  if (std::optional<Failure> failure =
          CheckAdmission(request, api::Value(), before->root(), warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  api::Draft object(before->tree());
  const DeletionPlan plan =
      PlanDeletion(*resource.strategy, request, *before, options_.loop.clock().Now(), object);
  if (plan == DeletionPlan::kUnchanged) {
    Response response;
    response.object = before;
    response.revision = before->resource_version();
    done(std::move(response));
    return;
  }
  if (WorkBudget::IsExceeded()) return done(Response::Failed(TooMuchWorkFailure()));
  const bool now = plan == DeletionPlan::kNow;
  const WriteTerms terms = TermsOf(request);
  CommitObject(
      resource, key, now ? nullptr : &object, before, terms,
      [this, &resource, now, before, attempt, request = std::move(request), done = std::move(done)](
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
        Response response;
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
      // Already gone: that is what was asked for.
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
  const api::ObjectPtr workload = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (workload == nullptr) {
    return done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
  }
  if (std::optional<Failure> failure = BuildScaleUpdate(request, workload, response.warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  const api::KindSchema* kind = request.kind;
  Update(resource, std::move(request), [kind, done = std::move(done)](Response updated) {
    if (updated.object != nullptr) updated.object = ScaleOf(*kind, *updated.object);
    done(std::move(updated));
  });
}

void Core::Evict(Resource& resource, Request&& request, std::function<void(Response)> done) {
  Response response;
  if (std::optional<Failure> failure =
          DecodeBody(*api::FindKind("policy", "v1", "Eviction"), request, response.warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  const api::ObjectPtr pod = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (pod == nullptr) {
    return done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
  }
  if (std::optional<Failure> failure = CheckEviction(
          request, *pod, *FindCache("policy", "poddisruptionbudgets"), resource.cache)) {
    return done(Response::Failed(std::move(*failure)));
  }
  request.verb = Verb::kDelete;
  request.subresource.clear();
  request.object = nullptr;
  // Deletes exactly the version that was checked.
  if (request.precondition_uid.empty()) request.precondition_uid = std::string(pod->uid());
  Delete(resource, std::move(request), [done = std::move(done)](Response deleted) {
    if (!deleted.failure) {
      deleted.http_status = 201;
      deleted.object = CreatedStatus();
    }
    done(std::move(deleted));
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

void Core::Bind(Resource& resource, Request&& request, std::function<void(Response)> done,
                int attempt) {
  Response response;
  const api::KindSchema& binding = *api::FindKind("", "v1", "Binding");
  if (std::optional<Failure> failure = DecodeBody(binding, request, response.warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
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
  if (std::optional<Failure> failure = Admit(request, &object, before->root())) {
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
            Bind(resource, std::move(request), std::move(done), attempt + 1);
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
