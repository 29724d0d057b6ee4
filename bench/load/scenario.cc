#include "bench/load/scenario.h"

#include "base/text/text.h"
#include "bench/load/objects.h"
#include "bench/load/watcher.h"

namespace drakkar::load {

std::size_t Context::Count(const std::string& name, std::size_t otherwise) const {
  const auto found = settings.find(name);
  if (found == settings.end()) return otherwise;
  return static_cast<std::size_t>(
      ParseInt64(found->second).value_or(static_cast<std::int64_t>(otherwise)));
}

Result<void> Create(Api& api, std::string_view path, std::string body) {
  RETURN_IF_ERROR(
      api.Do({.method = net::Method::kPost, .path = std::string(path), .body = std::move(body)}));
  return Ok();
}

Result<void> CreateNodes(Api& api, std::size_t count) {
  RETURN_IF_ERROR(api.Run(count, 8, [](std::size_t i) {
    return Call{.method = net::Method::kPost, .path = std::string(kNodes), .body = NodeJson(i)};
  }));
  return Ok();
}

Result<std::string> VersionOf(Api& api, std::string_view path) {
  ASSIGN_OR_RETURN(const net::Response list, api.Do({.path = StrCat(path, "?limit=1")}));
  return std::string(TextIn(list.body, "resourceVersion"));
}

std::string BoundPodsWatch(const std::string& version) {
  return StrCat(kPods, "?watch=1&fieldSelector=spec.nodeName%21%3D&resourceVersion=", version);
}

Result<BurstResult> Burst(Api& api, std::size_t count,
                          const std::function<std::string(std::size_t)>& pod) {
  ASSIGN_OR_RETURN(const std::string version, VersionOf(api, kPods));
  BurstResult result;
  MonotonicTime last{};
  Watcher watch(api, 0, BoundPodsWatch(version), [&](std::string_view event) {
    if (TypeOf(event) != EventType::kAdded) return;
    result.pods.emplace_back(NameIn(event));
    last = api.now();
    if (result.pods.size() == count) api.Wake();
  });
  RETURN_IF_ERROR(api.RunUntil("watch", [&] { return watch.is_open(); }));
  const MonotonicTime start = api.now();
  RETURN_IF_ERROR(api.Run(count, 16, [&](std::size_t i) {
    return Call{.method = net::Method::kPost, .path = std::string(kPods), .body = pod(i)};
  }));
  const Result<void> bound = api.RunUntil(
      "pods bound", [&] { return result.pods.size() == count; }, std::chrono::minutes(10));
  if (!bound.ok()) {
    return bound.error().Prefixed(StrCat(result.pods.size(), " of ", count, " pods are bound"));
  }
  result.elapsed = last - start;
  return result;
}

Result<void> DeletePods(Api& api, const std::vector<std::string>& names) {
  RETURN_IF_ERROR(api.Run(names.size(), 8, [&](std::size_t i) {
    return Call{.method = net::Method::kDelete,
                .path = StrCat(kPods, "/", names[i], "?gracePeriodSeconds=0")};
  }));
  return Ok();
}

}  // namespace drakkar::load
