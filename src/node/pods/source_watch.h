#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"

namespace drakkar::node {

// A ConfigMap or a Secret.
struct SourceKey {
  bool is_secret = false;
  std::string namespace_name;
  std::string name;
  auto operator<=>(const SourceKey&) const = default;
};
// What a pod's volumes show: the objects with their versions, 0 for those that do not exist.
using ShownSources = std::map<SourceKey, std::int64_t>;

// Says when the ConfigMaps and Secrets in volumes have changed. Each is watched by itself, because
// a node may read only those of its pods. Pods that show the same object share the watch.
//
// Loop-bound. Watches at most kMaxWatched objects; volumes with others show changes when they are
// refreshed next.
class SourceWatch {
 public:
  static constexpr std::size_t kMaxWatched = 4'096;

  // `on_changed` gets the uid of a pod that shows another version than the current one. It is never
  // called inside Show.
  SourceWatch(EventLoop& loop, Random& random, client::Client& client,
              std::function<void(const std::string& pod_uid)> on_changed);
  ~SourceWatch();
  SourceWatch(const SourceWatch&) = delete;
  SourceWatch& operator=(const SourceWatch&) = delete;

  // Replaces what the pod shows; nothing if it has ended.
  void Show(const std::string& pod_uid, ShownSources shown);

  std::size_t size() const { return watched_.size(); }

 private:
  struct Watched {
    std::unique_ptr<client::Informer> informer;
    std::set<std::string> pods;
  };
  void Watch(const SourceKey& key);
  void Changed(const SourceKey& key, std::int64_t version);

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  std::function<void(const std::string&)> on_changed_;
  std::map<SourceKey, Watched> watched_;
  std::map<std::string, ShownSources> shown_;  // by pod
  Lifetime lifetime_;
};

}  // namespace drakkar::node
