#include "sdk/driver/prepare/announced_claims.h"

#include <algorithm>
#include <utility>

namespace drakkar::driver {

// No part has a NUL in it that the API would take.
std::string AnnouncedClaims::KeyOf(const std::vector<rpc::ClaimReference>& claims) {
  std::string key;
  for (const rpc::ClaimReference& claim : claims) {
    for (const std::string* part : {&claim.namespace_name, &claim.name, &claim.uid}) {
      key.append(*part).push_back('\0');
    }
  }
  return key;
}

void AnnouncedClaims::Announce(std::vector<rpc::ClaimReference> claims, rpc::AnnounceDone done) {
  loop_.AssertInLoop();
  std::string key = KeyOf(claims);
  // A second announcement is of a second call: what was read for the first may be too old for it.
  batches_.erase(key);
  if (claims.empty() || batches_.size() >= kMaxBatches) return done();
  auto batch = std::make_shared<Batch>(std::move(done));
  batch->forget = loop_.RunAfter(kKeptFor, [this, key] { batches_.erase(key); });
  batches_.emplace(std::move(key), batch);
  fetcher_.FetchEach(claims, [this, batch, claims](std::vector<Result<api::ObjectPtr>> answers) {
    if (batch->waiting) return Deliver(std::move(answers), claims, std::move(batch->waiting));
    batch->answers = std::move(answers);
  });
}

void AnnouncedClaims::FetchEach(std::vector<rpc::ClaimReference> claims, ClaimFetcher::EachDone done) {
  loop_.AssertInLoop();
  const auto found = batches_.find(KeyOf(claims));
  if (found == batches_.end()) return fetcher_.FetchEach(std::move(claims), std::move(done));
  const std::shared_ptr<Batch> batch = std::move(found->second);
  batches_.erase(found);
  batch->forget = nullptr;
  if (batch->answers) return Deliver(*std::move(batch->answers), std::move(claims), std::move(done));
  batch->waiting = std::move(done);
}

void AnnouncedClaims::Deliver(std::vector<Result<api::ObjectPtr>> answers,
                              std::vector<rpc::ClaimReference> claims, ClaimFetcher::EachDone done) {
  const bool complete = std::ranges::all_of(answers, [](const auto& answer) { return answer.ok(); });
  if (complete) return done(std::move(answers));
  fetcher_.FetchEach(std::move(claims), std::move(done));
}

}  // namespace drakkar::driver
