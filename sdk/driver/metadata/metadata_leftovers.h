#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/result/error.h"
#include "client/client.h"
#include "sdk/driver/metadata/metadata_store.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar::driver {

// What a driver does about metadata files when it starts: updates that a crash cut off are completed,
// and files of claims that are gone, were replaced or are not reserved any more are removed. Where
// the server cannot be reached, or does not say, files are kept. Loop-bound; destroying it ends it.
class MetadataLeftovers {
 public:
  MetadataLeftovers(client::Client& client, MetadataStore& store,
                    std::function<void(const Error& error)> on_error)
      : fetcher_(client), store_(store), on_error_(std::move(on_error)) {}

  void Start();
  // The claim is in use: whatever the server answered before that is out of date.
  void Keep(const std::string& claim_uid) {
    if (open_ != 0) in_use_.insert(claim_uid);
  }

 private:
  void Look(const rpc::ClaimReference& claim);
  void Remove(const rpc::ClaimReference& claim, const std::string& why);

  ClaimFetcher fetcher_;
  MetadataStore& store_;
  std::function<void(const Error& error)> on_error_;
  std::set<std::string> in_use_;  // only while answers are awaited
  std::size_t open_ = 0;
};

}  // namespace drakkar::driver
