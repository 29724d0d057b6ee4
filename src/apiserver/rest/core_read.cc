// The core's reads: get, list, watch.
#include "apiserver/conversion/versions.h"
#include "apiserver/rest/core_resource.h"
#include "apiserver/rest/selection.h"

namespace drakkar::apiserver {

// A list that is decoded from the store, in several turns of the loop.
struct Core::StoredList {
  Resource* resource = nullptr;
  Request request;
  Selection selection;
  ContinueToken from;
  std::vector<storage::Entry> entries;
  std::size_t next = 0;  // of `entries`
  bool more = false;     // there are objects behind the page
  std::string last_key;  // of the page
  Response page;
  std::function<void(Response)> done;
};

Response Core::Get(Resource& resource, const Request& request) {
  api::ObjectPtr object = resource.cache.Find(KeyOf(request.namespace_, request.name));
  if (object == nullptr) return Response::Failed(NotFoundFailure(*request.kind, request.name));
  Response response;
  response.revision = object->resource_version();
  response.object = std::move(object);
  return response;
}

namespace {

// Selects a page from objects in key order. `last_key` gets the key of the last one.
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
    if (request.limit > 0 && static_cast<std::int64_t>(response.items.size()) == request.limit) {
      more = true;
      // With a selector the remaining objects are not counted, as in Kubernetes.
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

namespace {

Response ExpiredList(const ContinueToken& from) {
  if (from.last_key.empty()) {
    return Response::Failed(
        api::StatusExpired("The resourceVersion for the provided list is too old."));
  }
  Response response = Response::Failed(api::StatusExpired(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start "
      "a new list without the continue parameter, or use the continue token in this response to "
      "retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first "
      "chunk was returned and now may show up in the list."));
  response.continue_token = EncodeContinue({ContinueToken::kNewest, from.last_key});
  return response;
}

}  // namespace

void Core::List(Resource& resource, Request&& request, std::function<void(Response)> done) {
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
  // A list that expired continues with the current state.
  const storage::Revision wanted = from.revision > 0 ? from.revision : exact ? asked : 0;
  if (asked > revision()) return done(Response::Failed(TooLargeVersionFailure(asked, revision())));
  // The token is for a revision that this store never had (for example after a restore).
  if (wanted > revision()) return done(ExpiredList(from));
  const bool is_cached = resource.cache.holds() == WatchCache::Holds::kObjects;
  if (is_cached && (wanted == 0 || wanted >= resource.cache.last_change())) {
    std::string last_key;
    response.revision = wanted == 0 ? revision() : wanted;
    TakePage(resource.cache.objects(), request, selection, from.last_key, response, last_key);
    if (!last_key.empty()) response.continue_token = EncodeContinue({response.revision, last_key});
    return done(std::move(response));
  }
  // The caches have only the current state, and only the bytes of some objects.
  auto list = std::make_shared<StoredList>();
  list->resource = &resource;
  list->selection = std::move(selection);
  list->from = std::move(from);
  list->done = std::move(done);
  list->page.revision = wanted == 0 ? revision() : wanted;
  storage::RangeOptions range{.prefix = resource.prefix, .revision = list->page.revision};
  if (!request.namespace_.empty()) range.prefix += request.namespace_ + "/";
  if (!list->from.last_key.empty()) range.start_after = resource.prefix + list->from.last_key;
  // If all are selected, the store can count those behind the page.
  if (!list->selection && request.name.empty() && request.limit > 0) {
    range.limit = static_cast<std::size_t>(request.limit);
  }
  list->request = std::move(request);
  options_.store.Range(
      std::move(range), lifetime_.Guard([this, list, begun = options_.loop.clock().Monotonic()](
                                            Result<storage::RangeResult> found) {
        CountStoreCall(*list->resource, "list", begun);
        if (!found.ok()) {
          if (found.error().code == ErrorCode::kExpired) return list->done(ExpiredList(list->from));
          return list->done(Response::Failed(api::StatusServiceUnavailable(found.error().message)));
        }
        list->entries = std::move(found->entries);
        list->more = found->more;
        if (found->more) list->page.remaining_items = static_cast<std::int64_t>(found->remaining);
        DecodeList(list);
      }));
}

void Core::DecodeList(const std::shared_ptr<StoredList>& list) {
  const Request& request = list->request;
  const std::string name = "/" + request.name;
  std::vector<api::ObjectPtr>& items = list->page.items;
  std::size_t decoded_bytes = 0;
  for (; list->next < list->entries.size(); ++list->next) {
    if (decoded_bytes > kMaxDecodedBytesPerTurn) {
      return options_.loop.Post(lifetime_.Guard([this, list] { DecodeList(list); }));
    }
    storage::Entry& entry = list->entries[list->next];
    if (!request.name.empty() && !entry.key.ends_with(name)) continue;
    decoded_bytes += entry.value->size();
    Result<api::ObjectPtr> object = Decode(*entry.value, entry.mod_revision);
    entry.value = nullptr;
    if (!object.ok() || (list->selection && !list->selection(**object))) continue;
    if (request.limit > 0 && static_cast<std::int64_t>(items.size()) == request.limit) {
      list->more = true;  // not counted with a selector, as in Kubernetes
      break;
    }
    items.push_back(*std::move(object));
    list->last_key = entry.key.substr(list->resource->prefix.size());
  }
  if (list->more && !list->last_key.empty()) {
    list->page.continue_token = EncodeContinue({list->page.revision, list->last_key});
  }
  list->done(std::move(list->page));
}

std::optional<Failure> Core::PlanWatch(const Request& request, storage::Mark mark,
                                       WatchPlan& plan) {
  options_.loop.AssertInLoop();
  if (std::optional<Failure> failure = CheckAuthorized(request)) return failure;
  Resource* resource = FindResource(*request.kind);
  if (resource == nullptr) return MethodNotAllowedFailure(*request.kind, "watch");
  plan.cache = &resource->cache;
  plan.options.namespace_ = request.namespace_;
  plan.options.name = request.name;
  plan.options.mark = mark;
  if (std::optional<Failure> failure = BuildSelection(request, plan.options.selection)) {
    return failure;
  }
  storage::Revision after = 0;
  if (std::optional<Failure> failure = ParseResourceVersion(request.resource_version, after)) {
    return failure;
  }
  if (after > revision()) return TooLargeVersionFailure(after, revision());
  if (mark == storage::Mark::kDurable && store_failure_) return store_failure_;
  if (after != 0 && after < plan.cache->oldest_watchable()) {
    return api::StatusExpired(
        StrCat("too old resource version: ", after, " (", plan.cache->oldest_watchable(), ")"));
  }
  plan.options.after = after == 0 ? plan.cache->last_change() : after;
  if (IsConverted(*request.kind, *resource)) plan.version = request.kind;
  return std::nullopt;
}

Core::WatchStart Core::StartWatch(const Request& request, storage::Mark mark,
                                  std::function<void(const std::vector<Change>&)> on_changes,
                                  std::function<void(const Error& why)> on_closed) {
  WatchStart start;
  WatchPlan plan;
  if ((start.failure = PlanWatch(request, mark, plan))) return start;
  if (plan.version != nullptr) {
    on_changes = [kind = plan.version,
                  on_changes = std::move(on_changes)](const std::vector<Change>& changes) {
      std::vector<Change> converted = changes;
      for (Change& change : converted) {
        // Without the webhook's answer as it is stored: components in this process look at the
        // metadata of custom resources only.
        if (api::ObjectPtr shown = ConvertObjectTo(change.object, *kind)) {
          change.object = std::move(shown);
        }
        change.previous = nullptr;  // not used after the cache
      }
      on_changes(converted);
    };
  }
  start.watcher = plan.cache->StartWatch(
      std::move(plan.options), CacheWatchCallbacks{std::move(on_changes), std::move(on_closed)});
  return start;
}

}  // namespace drakkar::apiserver
