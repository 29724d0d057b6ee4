#include "sdk/driver/prepare/claim_fetcher.h"

#include <array>
#include <optional>
#include <utility>

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

// Newest first; an older server returns "not found" for versions it does not have.
constexpr std::array<std::string_view, 3> kVersions = {"v1", "v1beta2", "v1beta1"};

std::string Describe(const rpc::ClaimReference& claim) {
  return StrCat("claim ", claim.namespace_name, "/", claim.name);
}

}  // namespace

Result<api::ObjectPtr> CheckClaim(const rpc::ClaimReference& wanted, api::ObjectPtr claim) {
  if (!(*claim)["status"]["allocation"].has_value())
    return FailedPrecondition(Describe(wanted) + " not allocated");
  if (claim->uid() != wanted.uid) return FailedPrecondition(Describe(wanted) + " got replaced");
  return claim;
}

struct ClaimFetcher::Batch {
  std::vector<rpc::ClaimReference> claims;
  std::vector<std::optional<Result<api::ObjectPtr>>> answers;
  std::size_t open = 0;
  EmptyUid empty_uid = EmptyUid::kMatchesNone;
  EachDone done;

  Result<api::ObjectPtr> Check(std::size_t index, client::Reply& reply) const {
    rpc::ClaimReference wanted = claims[index];
    if (!reply.ok()) return reply.error->Prefixed("retrieve " + Describe(wanted));
    if (wanted.uid.empty() && empty_uid == EmptyUid::kMatchesAny) wanted.uid = reply.object->uid();
    return CheckClaim(wanted, std::move(reply.object));
  }

  void Finish() {
    std::vector<Result<api::ObjectPtr>> objects;
    for (std::optional<Result<api::ObjectPtr>>& answer : answers)
      objects.push_back(*std::move(answer));
    done(std::move(objects));
  }
};

void ClaimFetcher::Fetch(std::vector<rpc::ClaimReference> claims, Done done) {
  FetchEach(std::move(claims),
            [done = std::move(done)](std::vector<Result<api::ObjectPtr>> answers) {
              std::vector<api::ObjectPtr> objects;
              for (Result<api::ObjectPtr>& answer : answers) {
                if (!answer.ok()) return done(std::move(answer).error());
                objects.push_back(*std::move(answer));
              }
              done(std::move(objects));
            });
}

void ClaimFetcher::FetchEach(std::vector<rpc::ClaimReference> claims, EachDone done) {
  auto batch = std::make_shared<Batch>();
  batch->claims = std::move(claims);
  batch->answers.resize(batch->claims.size());
  batch->open = batch->claims.size();
  batch->empty_uid = empty_uid_;
  batch->done = std::move(done);
  if (batch->open == 0) return batch->Finish();
  for (std::size_t i = 0; i < batch->claims.size(); ++i) FetchOne(batch, i, 0);
}

void ClaimFetcher::FetchOne(const std::shared_ptr<Batch>& batch, std::size_t index,
                            std::size_t version) {
  const rpc::ClaimReference& claim = batch->claims[index];
  const api::KindSchema* kind =
      api::FindKind("resource.k8s.io", kVersions[version], "ResourceClaim");
  client_.Get({.kind = kind, .namespace_ = claim.namespace_name, .name = claim.name},
              lifetime_.Guard([this, batch, index, version](client::Reply reply) {
                if (!reply.ok() && reply.error->code == ErrorCode::kNotFound &&
                    version + 1 < kVersions.size()) {
                  return FetchOne(batch, index, version + 1);
                }
                batch->answers[index] = batch->Check(index, reply);
                if (--batch->open == 0) batch->Finish();
              }));
}

}  // namespace drakkar::driver
