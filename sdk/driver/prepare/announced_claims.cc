#include "sdk/driver/prepare/announced_claims.h"

#include <algorithm>
#include <utility>

#include "api/json/reader.h"

namespace drakkar::driver {
namespace {

// Nothing unless the node said of each what it says.
std::optional<std::vector<Result<api::ObjectPtr>>> ReadPassedOn(
    const std::vector<rpc::AnnouncedClaim>& announced) {
  std::vector<Result<api::ObjectPtr>> claims;
  for (const rpc::AnnouncedClaim& claim : announced) {
    if (claim.object.empty()) return std::nullopt;
    auto tree = api::ParseJson(claim.object, {.opaque_field_sets = true});
    if (!tree.ok()) return std::nullopt;
    auto object = std::make_shared<const api::Object>(*std::move(tree));
    if (object->namespace_() != claim.reference.namespace_name ||
        object->name() != claim.reference.name) {
      return std::nullopt;
    }
    claims.push_back(CheckClaim(claim.reference, std::move(object)));
  }
  return claims;
}

}  // namespace

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

void AnnouncedClaims::Announce(std::vector<rpc::AnnouncedClaim> announced, rpc::AnnounceDone done) {
  loop_.AssertInLoop();
  std::vector<rpc::ClaimReference> claims;
  for (const rpc::AnnouncedClaim& claim : announced) claims.push_back(claim.reference);
  std::string key = KeyOf(claims);
  // A second announcement is of a second call: what was read for the first may be too old for it.
  batches_.erase(key);
  if (claims.empty() || batches_.size() >= kMaxBatches) return done();
  auto batch = std::make_shared<Batch>(std::move(done));
  batch->forget = loop_.RunAfter(kKeptFor, [this, key] { batches_.erase(key); });
  batches_.emplace(std::move(key), batch);
  if (auto passed_on = ReadPassedOn(announced)) return Keep(*batch, *std::move(passed_on));
  fetcher_.FetchEach(claims, [this, batch, claims](std::vector<Result<api::ObjectPtr>> answers) {
    if (batch->waiting) return Deliver(std::move(answers), claims, std::move(batch->waiting));
    Keep(*batch, std::move(answers));
  });
}

void AnnouncedClaims::Keep(Batch& batch, std::vector<Result<api::ObjectPtr>> answers) {
  for (const Result<api::ObjectPtr>& claim : answers) {
    if (claim.ok()) on_at_hand_(*claim);
  }
  batch.answers = std::move(answers);
}

void AnnouncedClaims::FetchEach(std::vector<rpc::ClaimReference> claims,
                                ClaimFetcher::EachDone done) {
  loop_.AssertInLoop();
  const auto found = batches_.find(KeyOf(claims));
  if (found == batches_.end()) return fetcher_.FetchEach(std::move(claims), std::move(done));
  const std::shared_ptr<Batch> batch = std::move(found->second);
  batches_.erase(found);
  batch->forget = nullptr;
  if (batch->answers)
    return Deliver(*std::move(batch->answers), std::move(claims), std::move(done));
  batch->waiting = std::move(done);
}

void AnnouncedClaims::Deliver(std::vector<Result<api::ObjectPtr>> answers,
                              std::vector<rpc::ClaimReference> claims,
                              ClaimFetcher::EachDone done) {
  const bool complete =
      std::ranges::all_of(answers, [](const auto& answer) { return answer.ok(); });
  if (complete) return done(std::move(answers));
  fetcher_.FetchEach(std::move(claims), std::move(done));
}

}  // namespace drakkar::driver
