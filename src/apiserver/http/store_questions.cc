#include "apiserver/http/store_questions.h"

#include <utility>

#include "base/text/text.h"
#include "storage/backup/record.h"

namespace drakkar::apiserver {
namespace {

using Done = std::function<void(Result<std::string>)>;

std::string EncodePage(storage::RangeResult range) {
  storage::BackupPage page;
  page.revision = range.revision;
  page.remaining = range.remaining;
  page.more = range.more;
  page.unreadable = std::move(range.unreadable);
  std::size_t bytes = 0;
  for (storage::Entry& entry : range.entries) {
    if (bytes > kMaxPageBytes) {
      page.remaining += range.entries.size() - page.entries.size();
      page.more = true;
      break;
    }
    bytes += entry.key.size() + entry.value->size();
    page.entries.push_back(std::move(entry));
  }
  return storage::EncodeBackupPage(page);
}

void SendPage(storage::Store& store, storage::Revision revision, std::string after, Done done) {
  storage::RangeOptions options;
  options.revision = revision;
  options.count_remaining = after.empty();
  options.start_after = std::move(after);
  options.limit = kMaxPageEntries;
  store.Range(std::move(options), [done = std::move(done)](Result<storage::RangeResult> range) {
    if (!range.ok()) return done(std::move(range).error());
    done(EncodePage(*std::move(range)));
  });
}

void AnswerPage(storage::Store& store, const net::Query& query, Done done) {
  std::string after(query.Get("after"));
  const std::string_view asked = query.Get("revision");
  if (!asked.empty()) {
    const std::optional<std::int64_t> revision = ParseInt64(asked);
    if (!revision || *revision < 1) {
      return done(InvalidArgument(StrCat("revision: ", Quote(asked), " is not a revision")));
    }
    return SendPage(store, *revision, std::move(after), std::move(done));
  }
  // State that could still be lost must not leave the process.
  if (!store.is_shared()) {
    return SendPage(store, store.durable_revision(), std::move(after), std::move(done));
  }
  store.ReadRevision([&store, after = std::move(after),
                      done = std::move(done)](Result<storage::Revision> newest) mutable {
    if (!newest.ok()) return done(std::move(newest).error());
    SendPage(store, *newest, std::move(after), std::move(done));
  });
}

void AnswerCheck(storage::Store& store, const net::Query& query, Done done) {
  store.Verify(std::string(query.Get("from")),
               [done = std::move(done)](Result<storage::VerifyResult> slice) {
                 if (!slice.ok()) return done(std::move(slice).error());
                 done(storage::EncodeVerifyResult(*slice));
               });
}

}  // namespace

std::map<std::string, Frontend::Options::Question, std::less<>> StoreQuestions(
    storage::Store& store, const StoreLayout& layout) {
  if (layout.is_kubernetes) {
    const auto refuse = [](const net::Query&, const Done& done) {
      done(Error{ErrorCode::kFailedPrecondition,
                 "the cluster's data is in etcd: use `drakkar store` with --etcd-servers, or "
                 "`etcdctl snapshot save`"});
    };
    return {{kStorePagePath, refuse}, {kStoreCheckPath, refuse}};
  }
  return {{kStorePagePath, [&store](const net::Query& query,
                                    Done done) { AnswerPage(store, query, std::move(done)); }},
          {kStoreCheckPath, [&store](const net::Query& query, Done done) {
             AnswerCheck(store, query, std::move(done));
           }}};
}

}  // namespace drakkar::apiserver
