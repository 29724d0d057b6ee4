#include "node/pods/source_watch.h"

#include <utility>

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::node {

SourceWatch::SourceWatch(EventLoop& loop, Random& random, client::Client& client,
                         std::function<void(const std::string& pod_uid)> on_changed)
    : loop_(loop), random_(random), client_(client), on_changed_(std::move(on_changed)) {}

SourceWatch::~SourceWatch() = default;

void SourceWatch::Show(const std::string& pod_uid, ShownSources shown) {
  loop_.AssertInLoop();
  const ShownSources before = std::exchange(shown_[pod_uid], std::move(shown));
  const ShownSources& now = shown_[pod_uid];
  for (const auto& [key, version] : before) {
    const auto found = watched_.find(key);
    if (now.contains(key) || found == watched_.end()) continue;
    found->second.pods.erase(pod_uid);
    if (found->second.pods.empty()) watched_.erase(found);
  }
  for (const auto& [key, version] : now) {
    auto found = watched_.find(key);
    if (found == watched_.end()) {
      if (watched_.size() >= kMaxWatched) continue;
      Watch(key);
      found = watched_.find(key);
    } else if (found->second.informer->has_synced()) {
      // Whoever joins a watch late may show an older version.
      const auto object = found->second.informer->Find(StrCat(key.namespace_name, "/", key.name));
      Changed(key, object == nullptr ? 0 : object->resource_version());
    }
    found->second.pods.insert(pod_uid);
  }
  if (now.empty()) shown_.erase(pod_uid);
}

void SourceWatch::Watch(const SourceKey& key) {
  Watched& watched = watched_[key];
  watched.informer = std::make_unique<client::Informer>(
      loop_, random_, client_,
      client::Informer::Options{
          .collection = {api::FindKind("", "v1", key.is_secret ? "Secret" : "ConfigMap"),
                         key.namespace_name, "", ""},
          .field_selector = StrCat("metadata.name=", key.name)});
  watched.informer->AddHandlers(
      {.on_add = [this,
                  key](const api::ObjectPtr& object) { Changed(key, object->resource_version()); },
       .on_update = [this, key](
                        const api::ObjectPtr&,
                        const api::ObjectPtr& after) { Changed(key, after->resource_version()); },
       .on_delete = [this, key](const api::ObjectPtr&) { Changed(key, 0); }});
  watched.informer->Start();
}

// Posted, because the pods may then show something else, which ends watches.
void SourceWatch::Changed(const SourceKey& key, std::int64_t version) {
  loop_.Post(lifetime_.Guard([this, key, version] {
    const auto found = watched_.find(key);
    if (found == watched_.end()) return;
    const std::set<std::string> pods = found->second.pods;
    for (const std::string& pod : pods) {
      const auto shown = shown_.find(pod);
      if (shown == shown_.end()) continue;
      const auto seen = shown->second.find(key);
      if (seen != shown->second.end() && seen->second != version) on_changed_(pod);
    }
  }));
}

}  // namespace drakkar::node
