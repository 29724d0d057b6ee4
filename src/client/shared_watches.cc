#include "client/shared_watches.h"

#include <algorithm>
#include <set>

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

// The text at a path such as "spec.nodeName".
std::string ValueAt(const api::Object& object, std::string_view path) {
  api::Value value = object.root();
  for (std::string_view part : Split(path, '.')) value = value.Entry(part);
  return std::string(value.str());
}

}  // namespace

struct SharedWatches::Subscription {
  Selector rest;
  WatchCallbacks callbacks;
};

struct SharedWatches::Collection {
  Collection(EventLoop& loop, Random& random, Client& client, const api::KindSchema* of,
             std::string by)
      : kind(of),
        field(std::move(by)),
        informer(loop, random, client, {.collection = {of, "", "", ""}, .may_be_missing = true}) {}

  std::string KeyOf(const api::Object& object) const {
    return field.empty() ? std::string() : ValueAt(object, field);
  }

  struct PartOf {
    std::map<std::string, api::ObjectPtr, std::less<>> objects;
    std::set<Subscription*> subscriptions;
    // The collection's version when something last left this part. A list that is older does not
    // reflect that.
    std::int64_t left_at = 0;
  };

  const api::KindSchema* const kind;
  const std::string field;
  std::map<std::string, PartOf> parts;
  Informer informer;
};

class SharedWatches::Handle final : public WatchHandle {
 public:
  Handle(Collection& collection, std::string value, std::unique_ptr<Subscription> subscription,
         Lifetime::Observer owner)
      : collection_(collection),
        value_(std::move(value)),
        subscription_(std::move(subscription)),
        owner_(std::move(owner)) {}
  ~Handle() override {
    if (owner_.alive()) collection_.parts[value_].subscriptions.erase(subscription_.get());
  }

 private:
  Collection& collection_;
  const std::string value_;
  const std::unique_ptr<Subscription> subscription_;
  const Lifetime::Observer owner_;
};

SharedWatches::SharedWatches(EventLoop& loop, Random& random, Client& beneath)
    : loop_(loop), random_(random), beneath_(beneath) {}
SharedWatches::~SharedWatches() = default;

void SharedWatches::Share(const api::KindSchema* kind, std::string field) {
  collections_.push_back(
      std::make_unique<Collection>(loop_, random_, beneath_, kind, std::move(field)));
  Collection& collection = *collections_.back();
  collection.informer.AddHandlers(
      {.on_add =
           [this, &collection](const api::ObjectPtr& object) {
             const std::string value = collection.KeyOf(*object);
             collection.parts[value].objects[std::string(object->qualified_name())] = object;
             Deliver(collection, value, EventType::kAdded, object);
           },
       .on_update =
           [this, &collection](const api::ObjectPtr& before, const api::ObjectPtr& after) {
             const std::string old_value = collection.KeyOf(*before);
             const std::string value = collection.KeyOf(*after);
             const std::string name(after->qualified_name());
             if (old_value != value) {
               Collection::PartOf& left = collection.parts[old_value];
               left.objects.erase(name);
               left.left_at = collection.informer.resource_version();
               Deliver(collection, old_value, EventType::kDeleted, after);
             }
             collection.parts[value].objects[name] = after;
             Deliver(collection, value,
                     old_value == value ? EventType::kModified : EventType::kAdded, after);
           },
       .on_delete =
           [this, &collection](const api::ObjectPtr& last) {
             const std::string value = collection.KeyOf(*last);
             Collection::PartOf& left = collection.parts[value];
             left.objects.erase(std::string(last->qualified_name()));
             left.left_at = collection.informer.resource_version();
             Deliver(collection, value, EventType::kDeleted, last);
           }});
  collection.informer.Start();
}

void SharedWatches::Deliver(Collection& collection, const std::string& value, EventType type,
                            const api::ObjectPtr& object) {
  // A callback may end any subscription.
  const std::vector<Subscription*> all(collection.parts[value].subscriptions.begin(),
                                       collection.parts[value].subscriptions.end());
  const Lifetime::Observer self = lifetime_.Observe();
  for (Subscription* each : all) {
    if (!self.alive()) return;
    if (!collection.parts[value].subscriptions.contains(each)) continue;
    const bool matches = std::all_of(each->rest.begin(), each->rest.end(), [&](const auto& field) {
      return ValueAt(*object, field.first) == field.second;
    });
    if (matches) each->callbacks.on_events({{type, object}});
  }
}

SharedWatches::Collection* SharedWatches::Find(const ResourceRef& ref,
                                               const std::string& label_selector,
                                               const std::string& field_selector, Selector& rest,
                                               std::string& value) {
  if (!label_selector.empty() || !ref.namespace_.empty() || !ref.name.empty()) return nullptr;
  for (const auto& collection : collections_) {
    if (collection->kind != ref.kind) continue;
    rest.clear();
    bool found = collection->field.empty();
    bool simple = true;
    for (std::string_view requirement : Split(field_selector, ',')) {
      if (requirement.empty()) continue;
      const std::size_t sign = requirement.find('=');
      simple = simple && sign != std::string_view::npos && sign > 0 &&
               requirement[sign - 1] != '!' &&
               requirement.find('=', sign + 1) == std::string_view::npos;
      if (!simple) break;
      std::string field(requirement.substr(0, sign));
      std::string wanted(requirement.substr(sign + 1));
      if (field == collection->field) {
        found = true;
        value = std::move(wanted);
      } else {
        rest.emplace_back(std::move(field), std::move(wanted));
      }
    }
    if (found && simple) return collection.get();
  }
  return nullptr;
}

void SharedWatches::List(ResourceRef ref, ListOptions options,
                         std::function<void(ListReply)> done) {
  Selector rest;
  std::string value;
  Collection* collection = Find(ref, options.label_selector, options.field_selector, rest, value);
  // A continued list goes to the server.
  if (collection == nullptr || !options.continue_token.empty()) {
    return beneath_.List(std::move(ref), std::move(options), std::move(done));
  }
  collection->informer.OnSynced(
      [this, collection, rest = std::move(rest), value, done = std::move(done)] {
        loop_.Post(lifetime_.Guard([collection, rest, value, done] {
          ListReply reply;
          reply.resource_version = collection->informer.resource_version();
          for (const auto& [name, object] : collection->parts[value].objects) {
            const bool matches =
                std::all_of(rest.begin(), rest.end(), [&object = object](const auto& field) {
                  return ValueAt(*object, field.first) == field.second;
                });
            if (matches) reply.items.push_back(object);
          }
          done(std::move(reply));
        }));
      });
}

std::unique_ptr<WatchHandle> SharedWatches::Watch(ResourceRef ref, WatchOptions options,
                                                  WatchCallbacks callbacks) {
  Selector rest;
  std::string value;
  Collection* collection = Find(ref, options.label_selector, options.field_selector, rest, value);
  if (collection == nullptr) {
    return beneath_.Watch(std::move(ref), std::move(options), std::move(callbacks));
  }
  auto subscription = std::make_unique<Subscription>(std::move(rest), std::move(callbacks));
  Subscription* const started = subscription.get();
  // First deliver what happened since the list, then anything newer.
  loop_.Post(lifetime_.Guard([collection, value, started, since = options.resource_version] {
    Collection::PartOf& part = collection->parts[value];
    if (!part.subscriptions.contains(started)) return;
    if (part.left_at > since) {
      part.subscriptions.erase(started);
      return started->callbacks.on_closed(Error{ErrorCode::kExpired, "list again"});
    }
    std::vector<WatchEvent> missed;
    for (const auto& [name, object] : part.objects) {
      const bool matches = std::all_of(started->rest.begin(), started->rest.end(),
                                       [&object = object](const auto& field) {
                                         return ValueAt(*object, field.first) == field.second;
                                       });
      if (object->resource_version() > since && matches) {
        missed.push_back({EventType::kAdded, object});
      }
    }
    if (!missed.empty()) started->callbacks.on_events(std::move(missed));
  }));
  collection->parts[value].subscriptions.insert(started);
  return std::make_unique<Handle>(*collection, value, std::move(subscription), lifetime_.Observe());
}

void SharedWatches::Get(ResourceRef ref, ReplyCallback done) {
  beneath_.Get(std::move(ref), std::move(done));
}
void SharedWatches::Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
                           ReplyCallback done) {
  beneath_.Create(std::move(ref), std::move(body), std::move(options), std::move(done));
}
void SharedWatches::Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
                           ReplyCallback done) {
  beneath_.Update(std::move(ref), std::move(body), std::move(options), std::move(done));
}
void SharedWatches::Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
                          ReplyCallback done) {
  beneath_.Patch(std::move(ref), type, std::move(body), std::move(options), std::move(done));
}
void SharedWatches::Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) {
  beneath_.Delete(std::move(ref), std::move(options), std::move(done));
}
void SharedWatches::DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                                     ReplyCallback done) {
  beneath_.DeleteCollection(std::move(ref), std::move(list), std::move(options), std::move(done));
}
void SharedWatches::Discover(std::function<void(Result<ServedKinds>)> done) {
  beneath_.Discover(std::move(done));
}

}  // namespace drakkar::client
