#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "client/client.h"

namespace drakkar::node {

// The ConfigMaps and Secrets a pod's environment and volumes refer to, as they were when fetched.
struct PodSources {
  // By audience and lifetime. Only their pod can use them: they end with it.
  struct Token {
    std::string text;
    WallTime renew_at{};
  };
  using Tokens = std::map<std::pair<std::string, std::int64_t>, Token>;
  Tokens tokens;

  // Null: there is none of that name.
  std::map<std::string, api::ObjectPtr> config_maps;
  std::map<std::string, api::ObjectPtr> secrets;

  // One key, decoded. Nothing if object or key is missing and `optional`; kNotFound if not.
  Result<std::optional<std::string>> ConfigMapKey(const std::string& name, const std::string& key,
                                                  bool optional) const;
  Result<std::optional<std::string>> SecretKey(const std::string& name, const std::string& key,
                                               bool optional) const;
  // All keys, decoded; empty if the object is missing and `optional`.
  Result<std::map<std::string, std::string>> ConfigMapData(const std::string& name,
                                                           bool optional) const;
  Result<std::map<std::string, std::string>> SecretData(const std::string& name,
                                                        bool optional) const;
};

// What a pod has already.
struct KnownSources {
  const PodSources::Tokens&
      tokens;  // asked for again when 80 % of their lifetime, or a day, has gone
  WallTime now{};
};

// What they are fetched for. Every pod has a volume with a token, few have an environment that
// needs anything: containers start without a round trip.
enum class SourceUse { kVolumes, kEnvironment };

// Reads them all. Objects that do not exist are no failure here: whether one is needed is decided
// where it is used. `done` runs once, inside the call only when all is known.
void FetchPodSources(client::Client& client, const api::ObjectPtr& pod, SourceUse use,
                     const KnownSources& known, std::function<void(Result<PodSources>)> done);
// Whether there is anything to fetch.
bool NeedsSources(api::Value pod, SourceUse use);
// Whether any of its volumes follows something that may change.
bool HasChangingVolumes(api::Value pod);
// How a token is found: what the source asks for, with the defaults.
std::pair<std::string, std::int64_t> TokenKey(api::Value source);

}  // namespace drakkar::node
