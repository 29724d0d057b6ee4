#include "cli/session.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "api/json/reader.h"
#include "api/meta/status.h"
#include "api/scheme/scheme.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cli/remote_command.h"
#include "client/discovery.h"
#include "client/http_client.h"
#include "client/kubeconfig.h"
#include "net/http/url.h"

namespace drakkar::cli {
namespace {

// The text of a Warning header: 299 - "text", with quotes and backslashes escaped.
std::string WarningText(std::string_view header) {
  const std::size_t quote = header.find('"');
  if (quote == std::string_view::npos) return std::string(header);
  std::string text;
  for (std::size_t i = quote + 1; i < header.size() && header[i] != '"'; ++i) {
    if (header[i] == '\\' && i + 1 < header.size()) ++i;
    text += header[i];
  }
  return text;
}

constexpr std::string_view kDataDirectoryKubeconfig = "/var/lib/drakkar/admin.kubeconfig";
constexpr Duration kProgressAfter = std::chrono::seconds(2);
constexpr Duration kProgressEvery = std::chrono::seconds(10);
constexpr Duration kCallTimeout = std::chrono::seconds(60);
// Servers limit object sizes, so a longer watch line cannot be valid.
constexpr std::size_t kMaxLineBytes = 64u << 20;
constexpr std::string_view kServerError = "Error from server";

// The kubeconfig to use. Fails if the given file does not exist, or if none is given and no default
// exists.
Result<std::string> ChooseKubeconfig(const Arguments& arguments, Console& console) {
  if (arguments.Has("kubeconfig")) return arguments.Text("kubeconfig");
  if (const auto named = console.Environment("KUBECONFIG"); named && !named->empty()) {
    // kubectl merges the files of a list; we use the first that exists.
    for (std::string_view path : Split(*named, ':')) {
      if (!path.empty() && console.files().Exists(std::string(path))) return std::string(path);
    }
    return InvalidArgument(
        StrCat("the kubeconfig file ", Quote(*named), " from $KUBECONFIG does not exist"));
  }
  std::string home_file;
  if (const auto home = console.Environment("HOME")) {
    home_file = JoinPath(*home, ".kube/config");
    if (console.files().Exists(home_file)) return home_file;
  }
  if (console.files().Exists(std::string(kDataDirectoryKubeconfig))) {
    return std::string(kDataDirectoryKubeconfig);
  }
  return InvalidArgument(StrCat("no kubeconfig found: neither ", home_file,
                                home_file.empty() ? "" : " nor ", kDataDirectoryKubeconfig,
                                " exists; run `drakkar up`, or use --kubeconfig"));
}

// Formats a Status as kubectl does.
Error FromStatus(const api::Status& status) {
  Error error = api::ErrorFromStatus(status);
  if (status.reason == "Invalid" || (status.reason.empty() && status.code == 422)) {
    error.message = StrCat("The ", status.message);
  } else if (status.reason.empty()) {
    error.message = StrCat(kServerError, ": ", status.message);
  } else {
    error.message = StrCat(kServerError, " (", status.reason, "): ", status.message);
  }
  return error;
}

Error FromTransport(Error error, const std::string& server) {
  if (error.message.find("TLS: certificate") != std::string::npos) {
    error.message = StrCat("the kubeconfig does not trust the certificate of server ", server, " (",
                           error.message, "); check its certificate-authority");
  } else if (error.code == ErrorCode::kUnavailable) {
    error.message = StrCat("cannot reach server ", server, " (", error.message,
                           "); is it running? `drakkar up` starts one");
  }
  return error;
}

}  // namespace

struct Session::Impl {
  Impl(Console& the_console, client::ClusterAccess the_access, bool progress, bool verbose)
      : console(the_console),
        access(std::move(the_access)),
        shows_progress(progress),
        shows_requests(verbose),
        thread("client") {
    thread.RunSync([this] {
      client = client::MakeHttpClient(thread.loop(), access, "drakkar", RealFileSystem(),
                                      client::FieldSets::kRead);
      http = std::make_unique<net::HttpClient>(thread.loop(), client::HttpOptionsFor(access));
    });
  }
  ~Impl() {
    thread.RunSync([this] {
      client.reset();
      http.reset();
    });
  }

  // Waits for the result and, if that takes long, reports what it waits for; an empty `what` means
  // the server's response. The callback that delivered the result has returned by then, so what it
  // refers to may be destroyed.
  template <typename T>
  T Await(std::future<T> future, std::string_view what) {
    if (shows_progress) ShowProgress(future, what);
    T answer = future.get();
    thread.RunSync([] {});
    return answer;
  }

  template <typename T>
  void ShowProgress(std::future<T>& future, std::string_view what) {
    Duration waited{0};
    Duration step = kProgressAfter;
    while (future.wait_for(step) != std::future_status::ready) {
      waited += step;
      step = kProgressEvery;
      console.Err(StrCat("waiting for ", what.empty() ? "the server's response" : what, " (",
                         std::chrono::duration_cast<std::chrono::seconds>(waited).count(), "s)\n"));
    }
  }

  void Trace(std::string_view method, const std::string& path) {
    if (shows_requests) console.Err(StrCat(method, " ", access.server, path, "\n"));
  }

  Result<api::ObjectPtr> Call(std::string_view method, const client::ResourceRef& ref,
                              std::function<void(client::ReplyCallback)> start) {
    Trace(method, client::PathOf(ref));
    std::promise<client::Reply> promise;
    auto future = promise.get_future();
    thread.RunSync(
        [&] { start([&promise](client::Reply reply) { promise.set_value(std::move(reply)); }); });
    client::Reply reply = Await(std::move(future), "");
    for (const std::string& warning : reply.warnings) {
      console.Err(StrCat("Warning: ", WarningText(warning), "\n"));
    }
    if (reply.ok()) return reply.object;
    if (reply.object != nullptr && reply.object->kind() == "Status") {
      return FromStatus(api::Status::FromTree(reply.object->root()));
    }
    if (reply.http_status >= 400) {
      return Error{reply.error->code, StrCat(kServerError, ": ", reply.error->message)};
    }
    return FromTransport(*reply.error, access.server);
  }

  net::ClientRequest MakeRequest(const std::string& path, std::string_view accept) const {
    net::ClientRequest request;
    request.url = access.server + path;
    request.headers.Add("Accept", accept.empty() ? "application/json" : std::string(accept));
    request.headers.Add("User-Agent", "drakkar");
    if (!access.token.empty()) request.headers.Add("Authorization", "Bearer " + access.token);
    return request;
  }

  Error FromResponse(int http_status, const std::string& body) const {
    Result<api::TreePtr> tree = api::ParseJson(body);
    if (tree.ok() && (*tree)->root()["kind"].str() == "Status") {
      return FromStatus(api::Status::FromTree((*tree)->root()));
    }
    return Error{http_status == 404 ? ErrorCode::kNotFound : ErrorCode::kInternal,
                 StrCat(kServerError, ": unexpected status ", http_status, " ",
                        Trim(std::string_view(body).substr(0, 200)))};
  }

  Result<api::TreePtr> ReadAnswer(Result<net::Response> response, const std::string& path) const {
    if (!response.ok()) return FromTransport(response.error(), access.server);
    if (response->status >= 400) return FromResponse(response->status, response->body);
    Result<api::TreePtr> tree = api::ParseJson(response->body);
    if (!tree.ok()) return tree.error().Prefixed(StrCat("the server's response to ", path));
    return tree;
  }

  Console& console;
  const client::ClusterAccess access;
  std::string namespace_;
  const bool shows_progress;
  const bool shows_requests;
  LoopThread thread;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<net::HttpClient> http;
  client::KindCatalog catalog;
  std::optional<std::vector<const api::KindSchema*>> foreign;  // as of the last time we asked
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Open(const Arguments& arguments, Console& console) {
  ASSIGN_OR_RETURN(const std::string path, ChooseKubeconfig(arguments, console));
  ASSIGN_OR_RETURN(client::ClusterAccess access,
                   client::LoadKubeconfig(console.files(), path, arguments.Text("context")));
  if (const auto why = client::WhyExpired(access, RealClock().Now(), path)) return *why;
  auto impl = std::make_unique<Impl>(console, std::move(access),
                                     console.err_is_terminal() || arguments.Bool("progress"),
                                     arguments.Int("v") >= 6);
  impl->namespace_ =
      arguments.Has("namespace") ? arguments.Text("namespace") : impl->access.namespace_;
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<std::unique_ptr<Session>> Session::Connect(const std::string& kubeconfig, Console& console) {
  ASSIGN_OR_RETURN(client::ClusterAccess access,
                   client::LoadKubeconfig(console.files(), kubeconfig));
  auto impl = std::make_unique<Impl>(console, std::move(access), /*progress=*/false,
                                     /*verbose=*/false);
  impl->namespace_ = impl->access.namespace_;
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

const std::string& Session::namespace_() const {
  return impl_->namespace_;
}
const std::string& Session::server() const {
  return impl_->access.server;
}
const client::ClusterAccess& Session::access() const {
  return impl_->access;
}

const Clock& Session::clock() const {
  return impl_->thread.loop().clock();
}

client::ResourceRef Session::Ref(const api::KindSchema& kind, std::string name, bool all) const {
  return {&kind, kind.namespaced && !all ? impl_->namespace_ : "", std::move(name), ""};
}

Result<api::ObjectPtr> Session::Get(const client::ResourceRef& ref) {
  return impl_->Call("GET", ref,
                     [&](client::ReplyCallback done) { impl_->client->Get(ref, std::move(done)); });
}

Result<api::ObjectPtr> Session::Create(const client::ResourceRef& ref, api::TreePtr body,
                                       client::WriteOptions options) {
  return impl_->Call("POST", ref, [&](client::ReplyCallback done) {
    impl_->client->Create(ref, std::move(body), std::move(options), std::move(done));
  });
}

Result<api::ObjectPtr> Session::Patch(const client::ResourceRef& ref, client::PatchType type,
                                      std::string body, client::WriteOptions options) {
  return impl_->Call("PATCH", ref, [&](client::ReplyCallback done) {
    impl_->client->Patch(ref, type, std::move(body), std::move(options), std::move(done));
  });
}

Result<api::ObjectPtr> Session::Delete(const client::ResourceRef& ref,
                                       client::DeleteOptions options) {
  return impl_->Call("DELETE", ref, [&](client::ReplyCallback done) {
    impl_->client->Delete(ref, std::move(options), std::move(done));
  });
}

void Session::OnLoop(const std::function<void(EventLoop&, client::Client&)>& work) {
  impl_->thread.RunSync([&] { work(impl_->thread.loop(), *impl_->client); });
}

std::vector<Result<api::TreePtr>> Session::GetPaths(const std::vector<std::string>& paths) {
  // Bodies arrive on the loop's thread and are parsed here, so that parsing overlaps with reading.
  struct Arrived {
    std::size_t index;
    Result<net::Response> response;
  };
  std::mutex mutex;
  std::condition_variable came;
  std::deque<Arrived> arrived;
  std::size_t next = 0;  // touched on the loop only
  std::function<void()> start = [&] {
    const std::size_t index = next++;
    impl_->Trace("GET", paths[index]);
    net::ClientRequest request = impl_->MakeRequest(paths[index], "");
    request.timeout = kCallTimeout;
    impl_->http->Do(std::move(request), [&, index](Result<net::Response> response) {
      if (next < paths.size()) start();
      const std::lock_guard lock(mutex);
      arrived.push_back({index, std::move(response)});
      came.notify_one();
    });
  };
  impl_->thread.RunSync([&] {
    for (std::size_t i = 0; i < std::min(paths.size(), kMaxParallelGets); ++i) start();
  });
  std::vector<Result<api::TreePtr>> answers(paths.size(), Internal("no answer"));
  for (std::size_t taken = 0; taken < paths.size(); ++taken) {
    std::unique_lock lock(mutex);
    came.wait(lock, [&] { return !arrived.empty(); });
    Arrived each = std::move(arrived.front());
    arrived.pop_front();
    lock.unlock();
    answers[each.index] = impl_->ReadAnswer(std::move(each.response), paths[each.index]);
  }
  impl_->thread.RunSync([] {});  // the last callback has returned
  return answers;
}

Result<std::vector<const api::KindSchema*>> Session::ForeignKinds(bool again) {
  if (!impl_->foreign || again) {
    ASSIGN_OR_RETURN(const api::TreePtr list, GetPath("/apis", client::kDiscoveryType));
    client::ServedKinds served;
    RETURN_IF_ERROR(impl_->catalog.Read(list->root(), served, client::KindCatalog::Versions::kAll));
    std::erase_if(served.kinds,
                  [](const api::KindSchema* kind) { return kind->schema != nullptr; });
    impl_->foreign = std::move(served.kinds);
  }
  return *impl_->foreign;
}

Result<api::TreePtr> Session::GetPath(const std::string& path, std::string_view accept) {
  impl_->Trace("GET", path);
  std::promise<Result<net::Response>> promise;
  auto future = promise.get_future();
  impl_->thread.RunSync([&] {
    net::ClientRequest request = impl_->MakeRequest(path, accept);
    request.timeout = kCallTimeout;
    impl_->http->Do(std::move(request), [&promise](Result<net::Response> response) {
      promise.set_value(std::move(response));
    });
  });
  return impl_->ReadAnswer(impl_->Await(std::move(future), ""), path);
}

Result<api::TreePtr> Session::List(const client::ResourceRef& ref, std::string_view label_selector,
                                   std::string_view field_selector, std::string_view accept,
                                   std::string_view include_object) {
  return GetPath(client::PathOf(ref) + QueryText({{"labelSelector", std::string(label_selector)},
                                                  {"fieldSelector", std::string(field_selector)},
                                                  {"includeObject", std::string(include_object)}}),
                 accept);
}

WatchEnd Session::Watch(const client::ResourceRef& ref, client::WatchOptions options,
                        std::optional<Duration> timeout, std::string_view what,
                        std::function<bool(const client::WatchEvent&)> on_event) {
  impl_->Trace("WATCH", client::PathOf(ref));
  std::promise<WatchEnd> promise;
  auto future = promise.get_future();
  bool ended = false;  // accessed only on the loop
  auto end = [&](WatchEnd how) {
    if (std::exchange(ended, true)) return;
    promise.set_value(how);
  };
  std::unique_ptr<client::WatchHandle> watch;
  TimerHandle timer;
  impl_->thread.RunSync([&] {
    if (timeout) timer = impl_->thread.loop().RunAfter(*timeout, [&] { end(WatchEnd::kTimeout); });
    client::WatchCallbacks callbacks;
    callbacks.on_events = [&](std::vector<client::WatchEvent> events) {
      for (const client::WatchEvent& event : events) {
        if (!ended && on_event(event)) end(WatchEnd::kDone);
      }
    };
    callbacks.on_closed = [&](Error) { end(WatchEnd::kClosed); };
    watch = impl_->client->Watch(ref, std::move(options), std::move(callbacks));
  });
  const WatchEnd how = impl_->Await(std::move(future), what);
  impl_->thread.RunSync([&] {
    watch.reset();
    timer.reset();
  });
  return how;
}

void Session::Pause(Duration duration) {
  std::promise<void> promise;
  TimerHandle timer;
  impl_->thread.RunSync([&] {
    timer = impl_->thread.loop().RunAfter(duration, [&promise] { promise.set_value(); });
  });
  promise.get_future().wait();
  impl_->thread.RunSync([&] { timer.reset(); });
}

namespace {

class CallbackSink final : public net::StreamSink {
 public:
  explicit CallbackSink(std::function<bool(std::string_view)> on_data)
      : on_data_(std::move(on_data)) {}

  void OnResponse(int status, const net::Headers&) override { status_ = status; }
  void OnData(std::string_view bytes) override {
    if (ended_) return;
    if (status_ >= 400) {
      if (body_.size() < kMaxLineBytes) body_ += bytes;
    } else if (!on_data_(bytes)) {
      End(Ok());
    }
  }
  void OnEnd(Result<void> result) override { End(std::move(result)); }

  std::future<Result<void>> ended() { return promise_.get_future(); }
  int status() const { return status_; }
  const std::string& body() const { return body_; }

 private:
  void End(Result<void> result) {
    if (std::exchange(ended_, true)) return;
    promise_.set_value(std::move(result));
  }

  std::function<bool(std::string_view)> on_data_;
  std::promise<Result<void>> promise_;
  bool ended_ = false;
  int status_ = 0;
  std::string body_;
};

}  // namespace

Result<void> Session::Stream(const std::string& path, std::string_view accept,
                             std::function<bool(std::string_view)> on_data) {
  impl_->Trace("GET", path);
  CallbackSink sink(std::move(on_data));
  std::future<Result<void>> future = sink.ended();
  std::unique_ptr<net::RequestHandle> handle;
  impl_->thread.RunSync(
      [&] { handle = impl_->http->Stream(impl_->MakeRequest(path, accept), sink); });
  // Streams print no progress lines between their data.
  Result<void> result = future.get();
  impl_->thread.RunSync([&] { handle.reset(); });
  if (sink.status() >= 400) return impl_->FromResponse(sink.status(), sink.body());
  if (!result.ok()) return FromTransport(result.error(), impl_->access.server);
  return Ok();
}

Result<int> Session::RunCommand(const std::string& path, const RemoteCommandOptions& options) {
  impl_->Trace("GET", path);
  std::promise<Result<int>> promise;
  std::future<Result<int>> future = promise.get_future();
  std::unique_ptr<RemoteCommand> command;
  impl_->thread.RunSync([&] {
    command = RemoteCommand::Start(
        impl_->thread.loop(), *impl_->http, impl_->console, impl_->MakeRequest(path, "*/*"),
        options,
        [this](int status, const std::string& body) { return impl_->FromResponse(status, body); },
        [&promise](Result<int> code) { promise.set_value(std::move(code)); });
  });
  Result<int> code = future.get();
  impl_->thread.RunSync([&] { command.reset(); });
  return code;
}

Result<void> Session::StreamLines(const std::string& path, std::string_view accept,
                                  std::function<bool(std::string_view)> on_line) {
  std::string buffer;
  bool too_long = false;
  Result<void> result = Stream(path, accept, [&](std::string_view bytes) {
    buffer += bytes;
    std::size_t begin = 0;
    for (std::size_t end; (end = buffer.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (!on_line(std::string_view(buffer).substr(begin, end - begin))) return false;
    }
    buffer.erase(0, begin);
    too_long = buffer.size() > kMaxLineBytes;
    return !too_long;
  });
  if (too_long) return InvalidArgument("the server sent a line that is too long");
  return result;
}

std::string QueryText(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    text += StrCat(text.empty() ? "?" : "&", name, "=", net::PercentEncode(value));
  }
  return text;
}

void Report(Console& console, const Error& error) {
  if (error.message.starts_with(kServerError) || error.message.starts_with("The ")) {
    console.Err(error.message + "\n");
  } else {
    console.Error(error.message);
  }
}

}  // namespace drakkar::cli
