#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/result/result.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::client {

// Names a resource, a collection of it, or a subresource.
struct ResourceRef {
  const api::KindSchema* kind = nullptr;
  std::string
      namespace_;    // empty for cluster-scoped kinds, and for collections over all namespaces
  std::string name;  // empty for collections
  std::string subresource;  // "status", "binding" ... or empty
};

// The server's reply. A failure carries the server's Status object, if there is one.
struct Reply {
  int http_status = 0;
  api::ObjectPtr object;       // the object, or the Status of a failure; may be null
  std::optional<Error> error;  // set on failure; the code follows the Status reason
  std::vector<std::string> warnings;
  std::optional<int> retry_after_seconds;

  bool ok() const { return !error.has_value(); }
};
using ReplyCallback = std::function<void(Reply)>;

enum class PatchType { kJson, kMerge, kStrategicMerge, kApply };

struct WriteOptions {
  std::string field_manager;
  bool dry_run = false;
  bool force = false;  // apply only
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds;
  std::string propagation_policy;  // empty: the kind's default
  std::string precondition_uid;
  std::string precondition_resource_version;
};

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  std::int64_t limit = 0;
  std::string continue_token;
};

struct ListReply {
  std::vector<api::ObjectPtr> items;
  std::int64_t resource_version = 0;
  std::string continue_token;
  std::optional<Error> error;
  bool ok() const { return !error.has_value(); }
};

enum class EventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  EventType type = EventType::kAdded;
  api::ObjectPtr object;
};

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  std::int64_t resource_version = 0;  // events after it
  bool bookmarks = true;
};

struct WatchCallbacks {
  std::function<void(std::vector<WatchEvent>)> on_events;
  // The watch has ended. After kExpired list again; after any other error watch again from the last
  // version seen.
  std::function<void(Error)> on_closed;
};

// Destroying it ends the watch; no callback runs afterwards.
class WatchHandle {
 public:
  virtual ~WatchHandle() = default;
};

// What a server serves: each resource once, in its preferred version. Kinds that our schema does
// not have are included, with `schema` null; they live as long as the client.
struct ServedKinds {
  std::vector<const api::KindSchema*> kinds;
  bool fixed = true;        // never changes: no need to ask again
  std::string unreachable;  // "group/version, ..." whose server did not respond; empty: all did
};

// A client of the API server: over HTTP, or, in the same process, as a direct call that goes
// through the same authentication, authorization, admission and validation. One contract test
// covers both.
//
// Loop-bound: calls and callbacks happen on the client's loop. A callback never runs inside the
// call that it answers, nor after the client is destroyed.
class Client {
 public:
  virtual ~Client() = default;

  virtual void Get(ResourceRef ref, ReplyCallback done) = 0;
  virtual void List(ResourceRef ref, ListOptions options, std::function<void(ListReply)> done) = 0;
  virtual void Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
                      ReplyCallback done) = 0;
  virtual void Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
                      ReplyCallback done) = 0;
  // `body` is the patch as JSON; for kApply it may be YAML.
  virtual void Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
                     ReplyCallback done) = 0;
  virtual void Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) = 0;
  virtual void DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                                ReplyCallback done) = 0;
  virtual std::unique_ptr<WatchHandle> Watch(ResourceRef ref, WatchOptions options,
                                             WatchCallbacks callbacks) = 0;
  // The default is for a server of our own version: it returns the kinds of our schema, inside the
  // call.
  virtual void Discover(std::function<void(Result<ServedKinds>)> done);
};

}  // namespace drakkar::client
