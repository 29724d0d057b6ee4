#include "cmd/drakkar/store_source.h"

#include <future>
#include <set>
#include <utility>

#include "api/json/reader.h"
#include "api/meta/status.h"
#include "apiserver/http/store_questions.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "net/http/url.h"

namespace drakkar::cmd {
namespace {

constexpr Duration kRequestTimeout = std::chrono::seconds(60);

class ServerStore final : public StoreSource {
 public:
  explicit ServerStore(const client::ClusterAccess& access)
      : thread_("store"), server_(access.server), token_(access.token) {
    thread_.RunSync([&] {
      http_ = std::make_unique<net::HttpClient>(thread_.loop(), client::HttpOptionsFor(access));
    });
  }
  ~ServerStore() override {
    thread_.RunSync([this] { http_.reset(); });
  }

  Result<storage::BackupPage> Page(storage::Revision revision, const std::string& after) override {
    std::string path = StrCat(apiserver::kStorePagePath, "?after=", net::PercentEncode(after));
    if (revision != 0) path += StrCat("&revision=", revision);
    ASSIGN_OR_RETURN(const std::string body, Get(path));
    return storage::DecodeBackupPage(body);
  }

  Result<storage::VerifyResult> Check(const std::string& from) override {
    ASSIGN_OR_RETURN(const std::string body,
                     Get(StrCat(apiserver::kStoreCheckPath, "?from=", net::PercentEncode(from))));
    return storage::DecodeVerifyResult(body);
  }

 private:
  Result<std::string> Get(const std::string& path) {
    std::promise<Result<net::Response>> promise;
    thread_.RunSync([&] {
      net::ClientRequest request;
      request.url = server_ + path;
      request.timeout = kRequestTimeout;
      if (!token_.empty()) request.headers.Set("Authorization", "Bearer " + token_);
      http_->Do(std::move(request), [&promise](Result<net::Response> response) {
        promise.set_value(std::move(response));
      });
    });
    ASSIGN_OR_RETURN(net::Response response, promise.get_future().get());
    if (response.status < 400) return std::move(response.body);
    if (response.status == 404) {
      return Error{ErrorCode::kUnimplemented,
                   StrCat(server_, " has no ", path.substr(0, path.find('?')),
                          ": it is not a drakkar API server, or an older one")};
    }
    const Result<api::TreePtr> status = api::ParseJson(response.body);
    if (!status.ok()) return Unavailable(StrCat(server_, " answered ", response.status));
    return api::ErrorFromStatus(api::Status::FromTree((*status)->root()));
  }

  LoopThread thread_;
  const std::string server_;
  const std::string token_;
  std::unique_ptr<net::HttpClient> http_;
};

class OwnStore final : public StoreSource {
 public:
  explicit OwnStore(std::string prefix) : thread_("store"), prefix_(std::move(prefix)) {}
  ~OwnStore() override {
    if (store_ == nullptr) return;
    std::promise<void> stopped;
    thread_.RunSync([&] { store_->Stop([&stopped] { stopped.set_value(); }); });
    stopped.get_future().wait();
    thread_.RunSync([this] { store_.reset(); });
  }

  Result<void> Open(const storage::StoreLocation& location) {
    Result<void> result = Ok();
    thread_.RunSync([&] {
      Result<std::unique_ptr<storage::Store>> opened = storage::OpenStore(thread_.loop(), location);
      if (!opened.ok()) result = std::move(opened).error();
      if (opened.ok()) store_ = *std::move(opened);
    });
    return result;
  }

  Result<storage::BackupPage> Page(storage::Revision revision, const std::string& after) override {
    std::promise<Result<storage::RangeResult>> promise;
    thread_.RunSync([&] {
      storage::RangeOptions options;
      options.prefix = prefix_;
      options.start_after = after;
      options.limit = apiserver::kMaxPageEntries;
      options.revision = revision;
      options.count_remaining = after.empty();
      store_->Range(std::move(options), [&promise](Result<storage::RangeResult> range) {
        promise.set_value(std::move(range));
      });
    });
    ASSIGN_OR_RETURN(storage::RangeResult range, promise.get_future().get());
    storage::BackupPage page;
    page.entries = std::move(range.entries);
    page.unreadable = std::move(range.unreadable);
    page.revision = range.revision;
    page.remaining = range.remaining;
    page.more = range.more;
    return page;
  }

  Result<storage::VerifyResult> Check(const std::string& from) override {
    std::promise<Result<storage::VerifyResult>> promise;
    thread_.RunSync([&] {
      store_->Verify(from, [&promise](Result<storage::VerifyResult> slice) {
        promise.set_value(std::move(slice));
      });
    });
    return promise.get_future().get();
  }

 private:
  LoopThread thread_;
  const std::string prefix_;
  std::unique_ptr<storage::Store> store_;
};

}  // namespace

Result<std::unique_ptr<StoreSource>> OpenServerStore(const std::string& kubeconfig) {
  ASSIGN_OR_RETURN(const client::ClusterAccess access,
                   client::LoadKubeconfig(RealFileSystem(), kubeconfig));
  return std::unique_ptr<StoreSource>(std::make_unique<ServerStore>(access));
}

Result<std::unique_ptr<StoreSource>> OpenOwnStore(const storage::StoreLocation& location,
                                                  std::string prefix) {
  auto store = std::make_unique<OwnStore>(std::move(prefix));
  RETURN_IF_ERROR(store->Open(location));
  return std::unique_ptr<StoreSource>(std::move(store));
}

Result<storage::Revision> CopyStore(StoreSource& source, const CopyOptions& options,
                                    const std::function<Result<void>(const storage::Entry&)>& each,
                                    const std::function<void(const CopyProgress&)>& progress,
                                    CopyProgress& total) {
  storage::Revision revision = 0;
  std::string after;
  std::set<std::string> seen;
  const MonotonicTime begun = options.clock.Monotonic();
  while (true) {
    Result<storage::BackupPage> page = source.Page(revision, after);
    if (!page.ok()) {
      if (page.error().code != ErrorCode::kExpired) return std::move(page).error();
      return Error{ErrorCode::kExpired,
                   StrCat("the copy took longer than the store keeps the state it started from (",
                          page.error().message, "); repeat it with a higher --rate")};
    }
    if (revision == 0) total.entries_expected = page->entries.size() + page->remaining;
    revision = page->revision;
    for (storage::UnreadableEntry& entry : page->unreadable) {
      // The next page may list those behind this page again.
      if (seen.insert(entry.key).second) total.unreadable.push_back(std::move(entry));
    }
    for (const storage::Entry& entry : page->entries) {
      RETURN_IF_ERROR(each(entry));
      ++total.entries;
      total.bytes += entry.key.size() + entry.value->size();
    }
    if (progress) progress(total);
    if (!page->more || page->entries.empty()) return revision;
    after = page->entries.back().key;
    if (options.bytes_per_second_max == 0) continue;
    const Duration due = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
        static_cast<double>(total.bytes) / static_cast<double>(options.bytes_per_second_max)));
    const Duration taken = options.clock.Monotonic() - begun;
    if (due > taken) options.pause.For(due - taken);
  }
}

}  // namespace drakkar::cmd
