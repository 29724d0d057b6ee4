#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "quota/usage.h"

namespace drakkar::controllers {

// Keeps the status of ResourceQuotas: what is used of what. The API server enforces quotas without
// it.
//
// Follows only the resources that some quota counts, and recounts a quota at most once per
// kInterval. Loop-bound. As large as the collections that are counted.
class ResourceQuotaController {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(1);
  // Pods whose deletion has taken too long no longer count, and no event announces that.
  static constexpr Duration kRecount = std::chrono::minutes(5);
  // How often the server is asked about resources that are not known yet: a definition of custom
  // resources may come later than the quota.
  static constexpr Duration kDiscovery = std::chrono::seconds(30);

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& quotas;
    // Shared informers of resources that quotas often count. Others are created when needed.
    std::vector<client::Informer*> shared;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit ResourceQuotaController(Options options);

 private:
  using Done = client::WorkQueue::Done;

  // Null if the server does not know the resource.
  client::Informer* Follow(const quota::ResourceName& resource);
  void Watch(const quota::ResourceName& resource, client::Informer& informer);
  void OnObject(const quota::ResourceName& resource, std::string_view name_space);
  // Asks the server for the resources that it has, then counts the quota again.
  void Discover(const std::string& key, Done done);
  // Calls back for every object of the namespace.
  void Visit(const quota::ResourceName& resource, std::string_view ns,
             const std::function<void(const api::Object&)>& each);
  // The DeviceClasses, which are followed once a quota counts claims.
  client::Informer& FollowClasses();
  quota::Surroundings Around();
  void Sync(const std::string& key, Done done);

  const Options options_;
  client::ScopedClient client_;
  std::map<quota::ResourceName, client::Informer*> followed_;
  std::vector<std::unique_ptr<client::Informer>> own_;
  std::map<quota::ResourceName, const api::KindSchema*> custom_;  // those of definitions
  MonotonicTime next_discovery_{};
  client::Informer* classes_ = nullptr;
  std::map<std::string, MonotonicTime> counted_;  // by quota
  client::WorkQueue queue_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
