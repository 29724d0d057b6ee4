#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "api/meta/object.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "client/client.h"
#include "rpc/dra/dra.h"

namespace drakkar::driver {

// Returns the claim if it is allocated and has the expected UID; otherwise `claim ns/name not
// allocated` or `claim ns/name got replaced`.
Result<api::ObjectPtr> CheckClaim(const rpc::ClaimReference& wanted, api::ObjectPtr claim);

// Fetches claims from the server and checks them with CheckClaim. Loop-bound; runs no callback once
// destroyed.
class ClaimFetcher {
 public:
  // What an empty UID matches: no claim, or whichever claim has the name.
  enum class EmptyUid { kMatchesNone, kMatchesAny };
  explicit ClaimFetcher(client::Client& client, EmptyUid empty_uid = EmptyUid::kMatchesNone)
      : client_(client), empty_uid_(empty_uid) {}
  ClaimFetcher(const ClaimFetcher&) = delete;
  ClaimFetcher& operator=(const ClaimFetcher&) = delete;

  // One result per claim, in order: the claim, or `retrieve claim ns/name: ...`, `claim ns/name not
  // allocated`, `claim ns/name got replaced`.
  using EachDone = std::function<void(std::vector<Result<api::ObjectPtr>>)>;
  void FetchEach(std::vector<rpc::ClaimReference> claims, EachDone done);
  // All claims in order, or the first failure.
  using Done = std::function<void(Result<std::vector<api::ObjectPtr>>)>;
  void Fetch(std::vector<rpc::ClaimReference> claims, Done done);

 private:
  struct Batch;
  void FetchOne(const std::shared_ptr<Batch>& batch, std::size_t index, std::size_t version);

  client::Client& client_;
  const EmptyUid empty_uid_;
  Lifetime lifetime_;
};

}  // namespace drakkar::driver
