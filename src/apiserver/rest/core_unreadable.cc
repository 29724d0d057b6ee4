// Stored objects that cannot be read, and a store that accepts no writes.
#include "apiserver/rest/core_resource.h"

namespace drakkar::apiserver {
namespace {

constexpr int kInsufficientStorageCode = 507;
// Maximum number of them that a list names.
constexpr std::size_t kMaxNamed = 3;
// As in Kubernetes: the permission to delete an object that cannot be read.
constexpr std::string_view kUnsafeDelete = "unsafe-delete-ignore-read-errors";

}  // namespace

void Core::SetUnreadable(std::string key, storage::Revision revision, const Error& why) {
  if (options_.on_unreadable) options_.on_unreadable(key, why);
  unreadable_.insert_or_assign(std::move(key), Unreadable{revision, why.message});
}

std::optional<Failure> Core::FindUnreadable(const Resource& resource,
                                            const std::string& key) const {
  if (unreadable_.empty()) return std::nullopt;
  const auto found = unreadable_.find(resource.prefix + key);
  if (found == unreadable_.end()) return std::nullopt;
  Failure failure = api::StatusInternalError(
      StrCat("the stored object ", found->first, " cannot be read: ", found->second.reason,
             "; repair it with `drakkar store repair`, restore it from a backup, or delete it with "
             "ignoreStoreReadErrorWithClusterBreakingPotential"));
  failure.reason = kStoreReadError;
  return failure;
}

void Core::WarnOfUnreadable(const Resource& resource, const Request& request,
                            std::vector<std::string>& warnings) const {
  const std::string prefix =
      resource.prefix + (request.namespace_.empty() ? "" : request.namespace_ + "/");
  std::size_t count = 0;
  std::string names;
  for (auto each = unreadable_.lower_bound(prefix);
       each != unreadable_.end() && each->first.starts_with(prefix); ++each) {
    if (++count <= kMaxNamed) {
      names += StrCat(names.empty() ? "" : ", ", each->first.substr(resource.prefix.size()));
    }
  }
  if (count == 0) return;
  warnings.push_back(StrCat(count,
                            count == 1 ? " stored object cannot be read and is"
                                       : " stored objects cannot be read and are",
                            " missing from this list: ", names, count > kMaxNamed ? ", ..." : ""));
}

void Core::DeleteUnreadable(Resource& resource, const Request& request,
                            std::function<void(Response)> done) {
  const Decision decision = Authorize({request.user,
                                       kUnsafeDelete,
                                       request.kind->group,
                                       request.kind->plural,
                                       {},
                                       request.namespace_,
                                       request.name,
                                       {}});
  if (!decision.allowed) {
    return done(Response::Failed(ForbiddenFailure(
        *request.kind, request.name,
        StrCat("User ", Quote(request.user.name), " cannot ", kUnsafeDelete, " resource ",
               Quote(request.kind->plural), " in API group ", Quote(request.kind->group)))));
  }
  const std::string key = resource.prefix + KeyOf(request.namespace_, request.name);
  Response response;
  response.object = std::make_shared<const api::Object>(
      api::StatusSuccess({request.kind->group, request.kind->plural}, request.name, "").ToTree());
  response.revision = revision();
  if (request.dry_run) return done(std::move(response));
  storage::Transaction transaction;
  transaction.conditions.push_back({key, unreadable_.at(key).revision});
  transaction.operations.push_back({key, nullptr});
  options_.store.Commit(std::move(transaction),
                        lifetime_.Guard([this, key, kind = request.kind, name = request.name,
                                         response = std::move(response), done = std::move(done)](
                                            Result<storage::TransactionResult> result) mutable {
                          if (!result.ok())
                            return done(Response::Failed(WriteFailure(result.error())));
                          if (!result->succeeded)
                            return done(Response::Failed(ModifiedFailure(*kind, name)));
                          unreadable_.erase(key);
                          response.revision = result->revision;
                          done(std::move(response));
                        }),
                        nullptr);
}

Failure Core::WriteFailure(const Error& error) {
  if (error.code == ErrorCode::kCancelled) {
    return api::StatusFromError({ErrorCode::kConflict, error.message});
  }
  Failure failure = api::StatusServiceUnavailable(error.message);
  if (error.code == ErrorCode::kResourceExhausted && options_.store.outage()) {
    failure.code = kInsufficientStorageCode;
    failure.reason = kInsufficientStorage;
    if (!std::exchange(told_full_, true) && options_.on_store_full) options_.on_store_full(error);
  }
  return failure;
}

void Core::OnStalled(const Error& why) {
  const Lifetime::Observer self = lifetime_.Observe();
  stalled_ = WriteFailure(why);
  const std::multimap<storage::Revision, Waiter> waiters = std::move(durable_waiters_);
  durable_waiters_.clear();
  for (const auto& [revision, done] : waiters) {
    if (self.alive()) done(stalled_);
  }
}

}  // namespace drakkar::apiserver
