#include "apiserver/rest/core.h"

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/rest/decode.h"
#include "apiserver/rest/object_meta.h"
#include "apiserver/rest/selection.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// A transaction that lost a race is built again from the newest state this often before the client
// is told; with one API server nobody races.
constexpr int kMaxAttempts = 5;
constexpr int kMaxGeneratedNames = 8;

std::string KeyOf(std::string_view namespace_, std::string_view name) {
  return namespace_.empty() ? std::string(name) : StrCat(namespace_, "/", name);
}

bool HasSubresource(const api::KindSchema& kind, std::string_view name) {
  for (std::string_view each : kind.subresources) {
    if (each == name) return true;
  }
  return false;
}

bool HasVerb(const api::KindSchema& kind, std::string_view verb) {
  for (std::string_view each : kind.verbs) {
    if (each == verb) return true;
  }
  return false;
}

}  // namespace

std::string_view VerbName(Verb verb) {
  switch (verb) {
    case Verb::kGet: return "get";
    case Verb::kList: return "list";
    case Verb::kWatch: return "watch";
    case Verb::kCreate: return "create";
    case Verb::kUpdate: return "update";
    case Verb::kPatch: return "patch";
    case Verb::kDelete: return "delete";
    case Verb::kDeleteCollection: return "deletecollection";
  }
  return "";
}

struct Core::Resource {
  const api::KindSchema* kind = nullptr;  // in the version it is stored in
  const Strategy* strategy = nullptr;
  std::string prefix;                     // of its keys in the store
  WatchCache cache;
};

Core::Core(Options options) : options_(std::move(options)) {
  for (const api::KindSchema& kind : api::AllKinds()) {
    // Kinds without "get" are questions, not objects (reviews, bindings): nothing is stored.
    if (!kind.storage_version || !HasVerb(kind, "get")) continue;
    auto resource = std::make_unique<Resource>();
    resource->kind = &kind;
    resource->strategy = &StrategyFor(kind);
    resource->prefix =
        StrCat("/registry/", kind.group.empty() ? "core" : kind.group, "/", kind.plural, "/");
    resources_.emplace(std::pair(std::string(kind.group), std::string(kind.plural)),
                       std::move(resource));
  }
}

Core::~Core() {
  *alive_ = false;
}

void Core::Start(std::function<void(Result<void>)> ready) {
  options_.loop.AssertInLoop();
  options_.store.Range(
      {.prefix = "/registry/"},
      [this, alive = alive_, ready = std::move(ready)](Result<storage::RangeResult> range) {
        if (!*alive) return;
        if (!range.ok()) {
          ready(range.error().Prefixed("read the store"));
          return;
        }
        for (storage::Entry& entry : range->entries) {
          // "/registry/<group>/<plural>/<key>"
          std::vector<std::string_view> parts = Split(entry.key, '/');
          if (parts.size() < 5) continue;
          auto found = resources_.find(
              std::pair(std::string(parts[2] == "core" ? "" : parts[2]), std::string(parts[3])));
          if (found == resources_.end()) continue;  // a kind of a newer version: left alone
          Result<api::TreePtr> tree = api::ParseJson(*entry.value);
          if (!tree.ok()) {
            ready(Error{ErrorCode::kDataLoss, StrCat("stored object ", entry.key, " is corrupt: ",
                                                     tree.error().message)});
            return;
          }
          api::Draft draft(*tree);
          draft["metadata"]["resourceVersion"] = std::to_string(entry.mod_revision);
          found->second->cache.Load(entry.key.substr(found->second->prefix.size()),
                                    std::make_shared<const api::Object>(draft.Freeze()));
        }
        for (auto& [name, resource] : resources_) resource->cache.FinishLoad(range->revision);
        durable_seen_ = options_.store.durable_revision();
        ready(Ok());
      });
}

Core::Resource* Core::FindResource(const api::KindSchema& kind) {
  auto found = resources_.find(std::pair(std::string(kind.group), std::string(kind.plural)));
  return found == resources_.end() ? nullptr : found->second.get();
}

api::ObjectPtr Core::Find(std::string_view group, std::string_view plural,
                          const std::string& key) const {
  const WatchCache* cache = FindCache(group, plural);
  return cache == nullptr ? nullptr : cache->Find(key);
}

const WatchCache* Core::FindCache(std::string_view group, std::string_view plural) const {
  auto found = resources_.find(std::pair(std::string(group), std::string(plural)));
  return found == resources_.end() ? nullptr : &found->second->cache;
}

StrategyContext Core::ContextFor(const Request& request) {
  return StrategyContext{
      .clock = options_.loop.clock(),
      .random = options_.random,
      .gates = options_.gates,
      .user = request.user,
      .verb = request.verb,
      .lookup = [this](std::string_view group, std::string_view plural,
                       const std::string& key) { return Find(group, plural, key); },
      .authorize =
          [this, &request](std::string_view verb, std::string_view group,
                           std::string_view resource, std::string_view subresource,
                           std::string_view namespace_, std::string_view name) {
            return Authorize(
                {request.user, verb, group, resource, subresource, namespace_, name, {}});
          },
      .version = request.kind->version,
  };
}

std::optional<std::string> Core::Authorize(const Authorizer::Attributes& attributes) {
  if (options_.authorizer == nullptr) return std::nullopt;
  return options_.authorizer->Check(attributes);
}

std::optional<Failure> Core::CheckAuthorized(const Request& request) {
  std::optional<std::string> why =
      Authorize({request.user, VerbName(request.verb), request.kind->group, request.kind->plural,
                 request.subresource, request.namespace_, request.name, request.field_selector});
  if (!why) return std::nullopt;
  const std::string resource =
      request.subresource.empty()
          ? std::string(request.kind->plural)
          : StrCat(request.kind->plural, "/", request.subresource);
  std::string text =
      StrCat("User ", Quote(request.user.name), " cannot ", VerbName(request.verb), " resource ",
             Quote(resource), " in API group ", Quote(request.kind->group));
  if (!request.namespace_.empty()) {
    text += StrCat(" in the namespace ", Quote(request.namespace_));
  } else {
    text += " at the cluster scope";
  }
  if (!why->empty()) text += StrCat(": ", *why);
  return ForbiddenFailure(*request.kind, request.name, text);
}

std::optional<Failure> Core::Admit(const Request& request, api::Draft* object, api::Value before) {
  const StrategyContext context = ContextFor(request);
  for (const auto& step : options_.admission) {
    if (std::optional<Failure> failure = step->Admit(request, object, before, context)) {
      return failure;
    }
  }
  return std::nullopt;
}

void Core::Handle(Request request, std::function<void(Response)> done) {
  options_.loop.AssertInLoop();
  if (std::optional<Failure> failure = CheckAuthorized(request)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  Resource* resource = FindResource(*request.kind);
  if (resource == nullptr) {
    done(Response::Failed(MethodNotAllowedFailure(*request.kind, VerbName(request.verb))));
    return;
  }
  if (!request.subresource.empty() && !HasSubresource(*request.kind, request.subresource)) {
    done(Response::Failed(api::StatusNoSuchPath()));
    return;
  }
  const bool plain = request.subresource.empty() || request.subresource == "status";
  switch (request.verb) {
    case Verb::kGet:
      if (plain) return done(Get(*resource, request));
      break;
    case Verb::kList:
      if (request.subresource.empty()) {
        return List(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kCreate:
      if (request.subresource == "binding") {
        return Bind(*resource, std::move(request), std::move(done));
      }
      if (request.subresource.empty()) {
        return Create(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kUpdate:
    case Verb::kPatch:
      if (request.verb == Verb::kPatch && request.patch == PatchKind::kApply) {
        return done(Response::Failed(api::StatusUnsupportedMediaType(
            "server-side apply is not supported yet: apply without --server-side")));
      }
      if (plain || request.subresource == "finalize" || request.subresource == "resize") {
        return Update(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kDelete:
      if (request.subresource.empty()) {
        return Delete(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kDeleteCollection:
      if (request.subresource.empty()) {
        return DeleteCollection(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kWatch: break;
  }
  done(Response::Failed(MethodNotAllowedFailure(*request.kind, VerbName(request.verb))));
}

Response Core::Get(Resource& resource, const Request& request) {
  api::ObjectPtr object = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (object == nullptr) return Response::Failed(NotFoundFailure(*request.kind, request.name));
  Response response;
  response.revision = object->resource_version();
  response.object = std::move(object);
  return response;
}

namespace {

// Picks a page out of objects in key order. `last_key` gets the key of the last one taken.
template <typename Objects>
void TakePage(const Objects& objects, const Request& request, const Selection& selection,
              const std::string& after, Response& response, std::string& last_key) {
  const std::string prefix = request.namespace_.empty() ? "" : request.namespace_ + "/";
  auto it = after.empty() ? objects.lower_bound(prefix) : objects.upper_bound(after);
  std::int64_t behind = 0;
  bool more = false;
  for (; it != objects.end(); ++it) {
    const auto& [key, object] = *it;
    if (key.compare(0, prefix.size(), prefix) != 0) break;
    if (!request.name.empty() && object->name() != request.name) continue;
    if (selection && !selection(*object)) continue;
    if (request.limit > 0 &&
        static_cast<std::int64_t>(response.items.size()) == request.limit) {
      more = true;
      // With a selector the rest is not counted: Kubernetes does not either.
      if (selection) break;
      ++behind;
      continue;
    }
    response.items.push_back(object);
    last_key = key;
  }
  if (!more) {
    last_key.clear();
  } else if (!selection) {
    response.remaining_items = behind;
  }
}

}  // namespace

void Core::List(Resource& resource, Request request, std::function<void(Response)> done) {
  Response response;
  Selection selection;
  if (std::optional<Failure> failure = BuildSelection(request, selection)) {
    return done(Response::Failed(std::move(*failure)));
  }
  storage::Revision asked = 0;
  if (std::optional<Failure> failure = ParseResourceVersion(request.resource_version, asked)) {
    return done(Response::Failed(std::move(*failure)));
  }
  ContinueToken from;
  if (!request.continue_token.empty()) {
    if (std::optional<Failure> failure = DecodeContinue(request.continue_token, from)) {
      return done(Response::Failed(std::move(*failure)));
    }
  }
  const bool exact = request.resource_version_match == "Exact" && asked > 0;
  const storage::Revision wanted = from.revision > 0 ? from.revision : exact ? asked : 0;
  if (asked > revision()) {
    return done(Response::Failed(api::StatusTimeout(
        StrCat("Too large resource version: ", asked, ", current: ", revision()), 1)));
  }
  std::string last_key;
  if (wanted == 0 || wanted >= resource.cache.last_change()) {
    response.revision = wanted == 0 ? revision() : wanted;
    TakePage(resource.cache.objects(), request, selection, from.last_key, response, last_key);
    if (!last_key.empty()) response.continue_token = EncodeContinue({response.revision, last_key});
    return done(std::move(response));
  }
  // The state of then: the caches only know now.
  options_.store.Range(
      {.prefix = resource.prefix, .revision = wanted},
      [&resource, wanted, selection = std::move(selection), from = std::move(from),
       request = std::move(request),
       done = std::move(done)](Result<storage::RangeResult> range) {
        if (!range.ok()) {
          if (range.error().code == ErrorCode::kExpired) {
            return done(Response::Failed(api::StatusExpired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter.")));
          }
          return done(Response::Failed(api::StatusServiceUnavailable(range.error().message)));
        }
        std::map<std::string, api::ObjectPtr> objects;
        for (const storage::Entry& entry : range->entries) {
          Result<api::TreePtr> tree = api::ParseJson(*entry.value);
          if (!tree.ok()) continue;
          api::Draft draft(*tree);
          draft["metadata"]["resourceVersion"] = std::to_string(entry.mod_revision);
          objects.emplace(entry.key.substr(resource.prefix.size()),
                          std::make_shared<const api::Object>(draft.Freeze()));
        }
        Response page;
        std::string last;
        page.revision = wanted;
        TakePage(objects, request, selection, from.last_key, page, last);
        if (!last.empty()) page.continue_token = EncodeContinue({wanted, last});
        done(std::move(page));
      });
}

Core::WatchStart Core::StartWatch(const Request& request, storage::Mark mark,
                                  std::function<void(const std::vector<Change>&)> on_changes) {
  options_.loop.AssertInLoop();
  WatchStart start;
  if ((start.failure = CheckAuthorized(request))) return start;
  Resource* resource = FindResource(*request.kind);
  if (resource == nullptr) {
    start.failure = MethodNotAllowedFailure(*request.kind, "watch");
    return start;
  }
  CacheWatchOptions options;
  options.namespace_ = request.namespace_;
  options.name = request.name;
  options.mark = mark;
  if ((start.failure = BuildSelection(request, options.selection))) return start;
  storage::Revision after = 0;
  if ((start.failure = ParseResourceVersion(request.resource_version, after))) return start;
  if (after > revision()) {
    start.failure = api::StatusTooManyRequests(
        StrCat("Too large resource version: ", after, ", current: ", revision()), 1);
    return start;
  }
  options.after = after;
  start.watcher = resource->cache.StartWatch(std::move(options),
                                             CacheWatchCallbacks{std::move(on_changes)});
  if (start.watcher == nullptr) {
    start.failure = api::StatusExpired(StrCat("too old resource version: ", after, " (",
                                          resource->cache.oldest_watchable(), ")"));
  }
  return start;
}

void Core::Create(Resource& resource, Request request, std::function<void(Response)> done) {
  Response response;
  if (std::optional<Failure> failure = DecodeBody(*resource.kind, request, response.warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  const StrategyContext context = ContextFor(request);
  api::Draft object(request.object);
  if (std::optional<Failure> failure = PrepareMetaForCreate(*resource.kind, request, object)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  resource.strategy->Default(object, context);
  resource.strategy->PrepareForCreate(object, context);
  api::Draft& metadata = object["metadata"];
  if (resource.strategy->MaintainsGeneration()) metadata["generation"] = 1;
  metadata["uid"] = NewUuid(options_.random);
  metadata["creationTimestamp"] = api::FormatTime(options_.loop.clock().Now());

  if (resource.kind->namespaced) {
    api::ObjectPtr home = Find("", "namespaces", request.namespace_);
    if (home == nullptr) {
      done(Response::Failed(
          NotFoundFailure(*api::FindKind("", "v1", "Namespace"), request.namespace_)));
      return;
    }
    if (home->is_being_deleted()) {
      Failure failure = ForbiddenFailure(
          *resource.kind, object["metadata"]["name"].str(),
          StrCat("unable to create new content in namespace ", request.namespace_,
                 " because it is being terminated"));
      failure.causes.push_back(api::StatusCause{"NamespaceTerminating",
                                     StrCat("namespace ", request.namespace_, " is being terminated"),
                                     "metadata.namespace"});
      done(Response::Failed(std::move(failure)));
      return;
    }
  }

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
  request.name = name;
  if (std::optional<Failure> failure = Admit(request, &object, api::Value())) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  const api::TreePtr candidate = object.Freeze();
  api::FieldErrors causes = ValidateMeta(*resource.kind, *resource.strategy, candidate->root());
  for (api::FieldError& cause : resource.strategy->Validate(candidate->root(), context)) {
    causes.push_back(std::move(cause));
  }
  if (!causes.empty()) {
    done(Response::Failed(InvalidFailure(*resource.kind, name, causes)));
    return;
  }
  for (std::string& warning : resource.strategy->Warnings(candidate->root(), context)) {
    response.warnings.push_back(std::move(warning));
  }
  const std::string key = KeyOf(request.namespace_, name);
  if (resource.cache.Find(key) != nullptr) {
    done(Response::Failed(AlreadyExistsFailure(*resource.kind, name)));
    return;
  }
  response.http_status = 201;
  CommitObject(resource, key, &object, nullptr, request.dry_run,
               [this, kind = resource.kind, name, response = std::move(response),
                done = std::move(done)](Result<storage::Revision> revision,
                                        api::ObjectPtr stored) mutable {
                 if (!revision.ok()) {
                   done(Response::Failed(revision.error().code == ErrorCode::kConflict
                                             ? AlreadyExistsFailure(*kind, name)
                                             : api::StatusServiceUnavailable(revision.error().message)));
                   return;
                 }
                 response.object = std::move(stored);
                 response.revision = *revision;
                 done(std::move(response));
               });
}

void Core::Update(Resource& resource, Request request, std::function<void(Response)> done,
                  int attempt) {
  Response response;
  const std::string key = KeyOf(request.namespace_, request.name);
  api::ObjectPtr before = resource.cache.Find(key);
  if (before == nullptr) {
    done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
    return;
  }
  api::TreePtr asked;
  if (std::optional<Failure> failure =
          BuildUpdate(*resource.kind, request, *before, asked, response.warnings)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  const StrategyContext context = ContextFor(request);
  api::Draft object(asked);
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
  resource.strategy->Default(object, context);
  resource.strategy->PrepareForUpdate(object, before->root(), request.subresource, context);
  if (resource.strategy->MaintainsGeneration()) UpdateGeneration(before->root(), object);
  if (std::optional<Failure> failure = Admit(request, &object, before->root())) {
    done(Response::Failed(std::move(*failure)));
    return;
  }

  const api::TreePtr candidate = object.Freeze();
  api::FieldErrors causes =
      ValidateMetaUpdate(*resource.kind, candidate->root(), before->root());
  for (api::FieldError& cause : resource.strategy->ValidateUpdate(candidate->root(), before->root(),
                                                        request.subresource, context)) {
    causes.push_back(std::move(cause));
  }
  if (!causes.empty()) {
    done(Response::Failed(InvalidFailure(*resource.kind, request.name, causes)));
    return;
  }
  for (std::string& warning : resource.strategy->Warnings(candidate->root(), context)) {
    response.warnings.push_back(std::move(warning));
  }
  if (EqualButForVersion(candidate->root(), before->root())) {
    response.object = before;
    response.revision = before->resource_version();
    done(std::move(response));
    return;
  }
  // The last finalizer of an object that is going away: this update is its end.
  const bool ends = IsReadyToGo(*resource.strategy, candidate->root());
  CommitObject(
      resource, key, ends ? nullptr : &object, before, request.dry_run,
      [this, &resource, candidate, ends, attempt, request = std::move(request),
       response = std::move(response),
       done = std::move(done)](Result<storage::Revision> revision, api::ObjectPtr stored) mutable {
        if (!revision.ok()) {
          if (revision.error().code != ErrorCode::kConflict) {
            done(Response::Failed(api::StatusServiceUnavailable(revision.error().message)));
          } else if (attempt + 1 < kMaxAttempts) {
            Update(resource, std::move(request), std::move(done), attempt + 1);
          } else {
            done(Response::Failed(ModifiedFailure(*resource.kind, request.name)));
          }
          return;
        }
        response.object = ends ? std::make_shared<const api::Object>(candidate) : std::move(stored);
        response.revision = *revision;
        done(std::move(response));
      });
}

void Core::Delete(Resource& resource, Request request, std::function<void(Response)> done,
                  int attempt) {
  const std::string key = KeyOf(request.namespace_, request.name);
  api::ObjectPtr before = resource.cache.Find(key);
  if (before == nullptr) {
    done(Response::Failed(NotFoundFailure(*request.kind, request.name)));
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
  const bool now = plan == DeletionPlan::kNow;
  CommitObject(
      resource, key, now ? nullptr : &object, before, request.dry_run,
      [this, &resource, now, before, attempt, request = std::move(request),
       done = std::move(done)](Result<storage::Revision> revision, api::ObjectPtr stored) mutable {
        if (!revision.ok()) {
          if (revision.error().code != ErrorCode::kConflict) {
            done(Response::Failed(api::StatusServiceUnavailable(revision.error().message)));
          } else if (attempt + 1 < kMaxAttempts) {
            Delete(resource, std::move(request), std::move(done), attempt + 1);
          } else {
            done(Response::Failed(ModifiedFailure(*resource.kind, request.name)));
          }
          return;
        }
        Response response;
        response.revision = *revision;
        if (!now || resource.strategy->ReturnsDeletedObject()) {
          response.object = now ? before : std::move(stored);
        } else {
          response.object = std::make_shared<const api::Object>(SuccessStatus(*resource.kind, *before));
        }
        done(std::move(response));
      });
}

void Core::DeleteCollection(Resource& resource, Request request,
                            std::function<void(Response)> done) {
  Selection selection;
  if (std::optional<Failure> failure = BuildSelection(request, selection)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  // A list answer: what was deleted, as Kubernetes returns it.
  struct Progress {
    Response response;
    std::size_t waiting = 1;
    std::function<void(Response)> done;
    void Finish() {
      if (--waiting == 0) done(std::move(response));
    }
  };
  auto progress = std::make_shared<Progress>();
  progress->done = std::move(done);
  progress->response.revision = revision();
  std::vector<api::ObjectPtr> chosen;
  for (const auto& [key, object] : resource.cache.objects()) {
    if (!request.namespace_.empty() && object->namespace_() != request.namespace_) continue;
    if (selection && !selection(*object)) continue;
    chosen.push_back(object);
  }
  for (const api::ObjectPtr& object : chosen) {
    Request one = request;
    one.verb = Verb::kDelete;
    one.namespace_ = object->namespace_();
    one.name = object->name();
    ++progress->waiting;
    Delete(resource, std::move(one), [progress, object](Response response) {
      // Gone already is what was asked for.
      if (response.failure && response.failure->code != 404 &&
          !progress->response.failure) {
        progress->response.http_status = response.http_status;
        progress->response.failure = std::move(response.failure);
      }
      if (!response.failure) progress->response.items.push_back(object);
      progress->response.revision = std::max(progress->response.revision, response.revision);
      progress->Finish();
    });
  }
  progress->Finish();
}

void Core::Bind(Resource& resource, Request request, std::function<void(Response)> done) {
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
  if (std::optional<Failure> failure = ApplyBinding(
          *resource.kind, request, *before, options_.loop.clock().Now(), object)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  response.http_status = 201;
  CommitObject(resource, key, &object, before, request.dry_run,
               [kind = resource.kind, before, response = std::move(response),
                done = std::move(done)](Result<storage::Revision> revision,
                                        api::ObjectPtr) mutable {
                 if (!revision.ok()) {
                   done(Response::Failed(revision.error().code == ErrorCode::kConflict
                                             ? ModifiedFailure(*kind, before->name())
                                             : api::StatusServiceUnavailable(revision.error().message)));
                   return;
                 }
                 api::Draft status = api::Draft::Object();
                 status["kind"] = "Status";
                 status["apiVersion"] = "v1";
                 status["metadata"] = api::Draft::Object();
                 status["status"] = "Success";
                 status["code"] = 201;
                 response.object = std::make_shared<const api::Object>(status.Freeze());
                 response.revision = *revision;
                 done(std::move(response));
               });
}

void Core::CommitObject(
    Resource& resource, const std::string& key, api::Draft* object, api::ObjectPtr before,
    bool dry_run,
    std::function<void(Result<storage::Revision>, api::ObjectPtr stored)> done) {
  if (dry_run) {
    if (object == nullptr) return done(before->resource_version(), before);
    // A dry run answers with what would be stored; a version that does not exist is left out.
    if (before != nullptr) {
      (*object)["metadata"]["resourceVersion"] = std::to_string(before->resource_version());
    }
    return done(revision(), std::make_shared<const api::Object>(object->Freeze()));
  }
  // The object carries its own version, so the stored bytes are the bytes served. With one writer
  // the next revision is known; where another server may come first, the stored version is only a
  // guess that reading replaces with the entry's revision.
  const storage::Revision expected = options_.store.applied_revision() + 1;
  api::ObjectPtr stored;
  if (object != nullptr) {
    (*object)["metadata"]["resourceVersion"] = std::to_string(expected);
    stored = std::make_shared<const api::Object>(object->Freeze());
  }
  storage::Transaction transaction;
  transaction.conditions.push_back(
      {resource.prefix + key, before == nullptr ? 0 : before->resource_version()});
  transaction.operations.push_back(
      {resource.prefix + key, stored == nullptr ? nullptr : stored->json()});
  options_.store.Commit(
      std::move(transaction),
      [this, alive = alive_, &resource, key, before, stored, expected,
       done = std::move(done)](Result<storage::TransactionResult> result) mutable {
        if (!*alive) return;
        if (!result.ok()) return done(result.error(), nullptr);
        if (!result->succeeded) {
          return done(Error{ErrorCode::kConflict, "the object has been modified"}, nullptr);
        }
        Change change;
        change.revision = result->revision;
        change.previous = before;
        if (stored == nullptr) {
          change.type = ChangeType::kDeleted;
          api::Draft last(before->tree());
          last["metadata"]["resourceVersion"] = std::to_string(result->revision);
          change.object = std::make_shared<const api::Object>(last.Freeze());
        } else {
          if (result->revision != expected) {
            api::Draft renumbered(stored->tree());
            renumbered["metadata"]["resourceVersion"] = std::to_string(result->revision);
            stored = std::make_shared<const api::Object>(renumbered.Freeze());
          }
          change.type = before == nullptr ? ChangeType::kAdded : ChangeType::kModified;
          change.object = stored;
        }
        const storage::Revision revision = result->revision;
        resource.cache.Apply(key, std::move(change));
        done(revision, stored);
      },
      [this, alive = alive_](Result<storage::Revision> revision) {
        if (*alive && revision.ok()) OnDurable(*revision);
      });
}

void Core::OnDurable(storage::Revision revision) {
  if (revision <= durable_seen_) return;
  durable_seen_ = revision;
  for (auto& [name, resource] : resources_) resource->cache.AdvanceDurable(revision);
  while (!durable_waiters_.empty() && durable_waiters_.begin()->first <= durable_seen_) {
    std::function<void()> done = std::move(durable_waiters_.begin()->second);
    durable_waiters_.erase(durable_waiters_.begin());
    done();
  }
}

void Core::WhenDurable(storage::Revision revision, std::function<void()> done) {
  if (revision <= durable_seen_) return done();
  durable_waiters_.emplace(revision, std::move(done));
}

}  // namespace drakkar::apiserver
