#include "client/informer.h"

#include <algorithm>

#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("informer");
constexpr Backoff::Options kRetry{
    .initial = std::chrono::milliseconds(50), .max = std::chrono::seconds(10), .jitter = 0.5};

}  // namespace

Informer::Informer(EventLoop& loop, Random& random, Client& client, Options options)
    : loop_(loop), client_(client), options_(std::move(options)), backoff_(kRetry, &random) {}

void Informer::AddHandlers(InformerHandlers handlers) {
  handlers_.push_back(std::move(handlers));
}

void Informer::Start() {
  loop_.AssertInLoop();
  List();
}

void Informer::OnSynced(std::function<void()> callback) {
  if (!synced_) {
    synced_callbacks_.push_back(std::move(callback));
    return;
  }
  loop_.Post(lifetime_.Guard(std::move(callback)));
}

api::ObjectPtr Informer::Find(std::string_view qualified_name) const {
  const api::ObjectPtr* found = objects_.Find(qualified_name);
  return found == nullptr ? nullptr : *found;
}

void Informer::List() {
  retry_.reset();
  watch_.reset();
  const std::uint64_t generation = ++generation_;
  client_.List(options_.collection,
               ListOptions{.label_selector = options_.label_selector,
                           .field_selector = options_.field_selector},
               lifetime_.Guard([this, generation](ListReply reply) {
                 OnListed(generation, std::move(reply));
               }));
}

void Informer::OnListed(std::uint64_t generation, ListReply reply) {
  if (generation != generation_) return;
  if (!reply.ok() && options_.may_be_missing && reply.error->code == ErrorCode::kNotFound) {
    TakeOver({});
    retry_ = loop_.RunAfter(kMissingPause, [this] { List(); });
    return;
  }
  if (!reply.ok()) {
    kLog.Warning("list failed; retrying", {{"error", reply.error->message}});
    RetryLater(&Informer::List);
    return;
  }
  TakeOver(std::move(reply));
  StartWatch();
}

void Informer::TakeOver(ListReply reply) {
  backoff_.Reset();
  resource_version_ = reply.resource_version;
  IndexedMap<api::ObjectPtr>::Ordered gone = objects_.ordered();
  for (api::ObjectPtr& object : reply.items) {
    gone.erase(object->qualified_name());
    Put(std::move(object));
  }
  for (const auto& [key, object] : gone) Erase(key);
  if (!synced_) {
    synced_ = true;
    auto callbacks = std::move(synced_callbacks_);
    synced_callbacks_.clear();
    for (auto& callback : callbacks) callback();
  }
}

void Informer::StartWatch() {
  retry_.reset();
  watch_ = client_.Watch(
      options_.collection,
      WatchOptions{.label_selector = options_.label_selector,
                   .field_selector = options_.field_selector,
                   .resource_version = resource_version_},
      WatchCallbacks{
          .on_events = [this](std::vector<WatchEvent> events) { OnEvents(std::move(events)); },
          .on_closed = [this](Error error) { OnClosed(std::move(error)); }});
}

void Informer::OnEvents(std::vector<WatchEvent> events) {
  backoff_.Reset();
  for (WatchEvent& event : events) {
    resource_version_ = std::max(resource_version_, event.object->resource_version());
    switch (event.type) {
      case EventType::kAdded:
      case EventType::kModified:
        Put(std::move(event.object));
        break;
      case EventType::kDeleted:
        Erase(event.object->qualified_name());
        break;
      case EventType::kBookmark:
        break;
    }
  }
}

void Informer::OnClosed(Error error) {
  if (error.code == ErrorCode::kExpired) {
    List();
    return;
  }
  RetryLater(&Informer::StartWatch);
}

void Informer::RetryLater(void (Informer::*step)()) {
  retry_ = loop_.RunAfter(backoff_.Next(), [this, step] { (this->*step)(); });
}

void Informer::Put(api::ObjectPtr object) {
  api::ObjectPtr& slot = objects_[object->qualified_name()];
  api::ObjectPtr before = slot;
  if (before != nullptr) {
    if (before->resource_version() == object->resource_version()) return;
    // A different UID is a different object that reused the name between two lists.
    if (before->uid() != object->uid()) {
      for (const InformerHandlers& handlers : handlers_) {
        if (handlers.on_delete) handlers.on_delete(before);
      }
      before = nullptr;
    }
  }
  slot = object;
  for (const InformerHandlers& handlers : handlers_) {
    if (before == nullptr) {
      if (handlers.on_add) handlers.on_add(object);
    } else if (handlers.on_update) {
      handlers.on_update(before, object);
    }
  }
}

void Informer::Erase(std::string_view qualified_name) {
  api::ObjectPtr* found = objects_.Find(qualified_name);
  if (found == nullptr) return;
  const api::ObjectPtr last = std::move(*found);
  objects_.Erase(qualified_name);
  for (const InformerHandlers& handlers : handlers_) {
    if (handlers.on_delete) handlers.on_delete(last);
  }
}

}  // namespace drakkar::client
