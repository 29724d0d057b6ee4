#include "sdk/driver/prepare/announced_claims.h"

#include <algorithm>
#include <utility>

#include "api/json/reader.h"

namespace drakkar::driver {
namespace {

AnnouncedClaims::Answers ToAnswers(std::vector<Result<api::ObjectPtr>> objects) {
  AnnouncedClaims::Answers answers;
  answers.reserve(objects.size());
  for (Result<api::ObjectPtr>& object : objects) {
    if (object.ok()) {
      answers.push_back(AnnouncedClaims::Claim{*std::move(object), std::nullopt});
    } else {
      answers.push_back(std::move(object).error());
    }
  }
  return answers;
}

// Returns nothing unless the node sent the object of every claim.
std::optional<AnnouncedClaims::Answers> ReadSentObjects(
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
  return ToAnswers(std::move(claims));
}

}  // namespace

// NUL is a safe separator: the API accepts it in none of the parts.
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
  // A second announcement is for a second call, which needs a newer read than the first.
  batches_.erase(key);
  if (claims.empty() || batches_.size() >= kMaxBatches) return done();
  auto batch = std::make_shared<Batch>(std::move(done));
  batch->expiry = loop_.RunAfter(kKeptFor, [this, key] { batches_.erase(key); });
  batches_.emplace(std::move(key), batch);
  if (auto sent = ReadSentObjects(announced)) return Keep(*batch, *std::move(sent));
  FetchNow(claims, [this, batch, claims](Answers answers) {
    if (batch->waiting) return Deliver(std::move(answers), claims, std::move(batch->waiting));
    Keep(*batch, std::move(answers));
  });
}

void AnnouncedClaims::FetchNow(std::vector<rpc::ClaimReference> claims, EachDone done) {
  fetcher_.FetchEach(std::move(claims),
                     [done = std::move(done)](std::vector<Result<api::ObjectPtr>> objects) {
                       done(ToAnswers(std::move(objects)));
                     });
}

void AnnouncedClaims::Keep(Batch& batch, Answers answers) {
  for (Result<Claim>& claim : answers) {
    if (claim.ok()) claim->plan = plan_ahead_(*claim->object);
  }
  batch.answers = std::move(answers);
}

void AnnouncedClaims::FetchEach(std::vector<rpc::ClaimReference> claims, EachDone done) {
  loop_.AssertInLoop();
  const auto found = batches_.find(KeyOf(claims));
  if (found == batches_.end()) return FetchNow(std::move(claims), std::move(done));
  const std::shared_ptr<Batch> batch = std::move(found->second);
  batches_.erase(found);
  batch->expiry = nullptr;
  if (batch->answers)
    return Deliver(*std::move(batch->answers), std::move(claims), std::move(done));
  batch->waiting = std::move(done);
}

void AnnouncedClaims::Deliver(Answers answers, std::vector<rpc::ClaimReference> claims,
                              EachDone done) {
  const bool complete =
      std::ranges::all_of(answers, [](const auto& answer) { return answer.ok(); });
  if (complete) return done(std::move(answers));
  FetchNow(std::move(claims), std::move(done));
}

}  // namespace drakkar::driver
