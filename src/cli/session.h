#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "cli/command.h"
#include "client/client.h"

namespace drakkar {
class EventLoop;
}
namespace drakkar::client {
struct ClusterAccess;
}

namespace drakkar::cli {

struct RemoteCommandOptions;

// How a watch ended.
enum class WatchEnd {
  kDone,  // the callback returned true
  kTimeout,
  kClosed,  // by the server or the connection: list again and resume
};

// Blocking access to an API server, for commands that do one thing after the other. Responses
// arrive on the session's own loop. Slow calls report what they wait for if standard error is a
// terminal.
//
// Errors are worded as in kubectl (`Error from server (NotFound): ...`); print them with Report.
// Used from one thread; callbacks run on the loop while the caller waits.
class Session {
 public:
  // Uses --kubeconfig, --context and --namespace.
  static Result<std::unique_ptr<Session>> Open(const Arguments& arguments, Console& console);
  // Uses this kubeconfig. For a daemon: shows no progress.
  static Result<std::unique_ptr<Session>> Connect(const std::string& kubeconfig, Console& console);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From -n, otherwise from the context.
  const std::string& namespace_() const;
  const std::string& server() const;
  const Clock& clock() const;
  const client::ClusterAccess& access() const;
  // `kind` in the session's namespace, or without one if it is cluster-scoped; with `all`, in all
  // namespaces.
  client::ResourceRef Ref(const api::KindSchema& kind, std::string name = {},
                          bool all = false) const;

  Result<api::ObjectPtr> Get(const client::ResourceRef& ref);
  Result<api::ObjectPtr> Create(const client::ResourceRef& ref, api::TreePtr body,
                                client::WriteOptions options);
  Result<api::ObjectPtr> Patch(const client::ResourceRef& ref, client::PatchType type,
                               std::string body, client::WriteOptions options);
  Result<api::ObjectPtr> Delete(const client::ResourceRef& ref, client::DeleteOptions options);
  // GET of any path with its query. An empty `accept` means JSON.
  Result<api::TreePtr> GetPath(const std::string& path_and_query, std::string_view accept = {});
  // The same for many paths, at most kMaxParallelGets at a time; results in the same order.
  std::vector<Result<api::TreePtr>> GetPaths(const std::vector<std::string>& paths);
  static constexpr std::size_t kMaxParallelGets = 64;
  // The kinds that the server serves and our schema does not have, in all versions; they live as
  // long as the session. Asks the server once, and again with `again`.
  Result<std::vector<const api::KindSchema*>> ForeignKinds(bool again = false);
  // Runs `work` on the session's loop and waits for it; for objects that live there, like
  // informers.
  void OnLoop(const std::function<void(EventLoop&, client::Client&)>& work);
  // The complete list.
  Result<api::TreePtr> List(const client::ResourceRef& ref, std::string_view label_selector = {},
                            std::string_view field_selector = {}, std::string_view accept = {},
                            std::string_view include_object = {});

  // Watches `ref`'s collection until `on_event` returns true, indefinitely without a `timeout`.
  // `what` is for the progress line: "pod/x to be deleted".
  WatchEnd Watch(const client::ResourceRef& ref, client::WatchOptions options,
                 std::optional<Duration> timeout, std::string_view what,
                 std::function<bool(const client::WatchEvent&)> on_event);
  // Waits before a retry.
  void Pause(Duration duration);
  // A GET whose response is passed on as it arrives, until it ends or `on_data` returns false.
  Result<void> Stream(const std::string& path_and_query, std::string_view accept,
                      std::function<bool(std::string_view)> on_data);
  // Runs a command over a WebSocket, connected to the console's streams, and returns its exit code.
  Result<int> RunCommand(const std::string& path_and_query, const RemoteCommandOptions& options);
  // Like Stream, line by line.
  Result<void> StreamLines(const std::string& path_and_query, std::string_view accept,
                           std::function<bool(std::string_view)> on_line);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "?a=b&c=d" from the parameters that have a value.
std::string QueryText(const std::vector<std::pair<std::string, std::string>>& parameters);

// Prints an error of a session's call or of a command's own check.
void Report(Console& console, const Error& error);

}  // namespace drakkar::cli
