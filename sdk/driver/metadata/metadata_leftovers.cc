#include "sdk/driver/metadata/metadata_leftovers.h"

#include <utility>

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");

}  // namespace

void MetadataLeftovers::Start() {
  if (auto replayed = store_.Replay(); !replayed.ok()) {
    on_error_(replayed.error().Prefixed("complete an update of device metadata"));
  }
  if (auto removed = store_.RemoveStraySpecs(); !removed.ok()) {
    on_error_(removed.error().Prefixed("remove CDI specs of device metadata"));
  }
  auto claims = store_.Claims();
  if (!claims.ok()) return on_error_(claims.error().Prefixed("look for old device metadata"));
  open_ = claims->size();
  for (const rpc::ClaimReference& claim : *claims) Look(claim);
}

void MetadataLeftovers::Look(const rpc::ClaimReference& claim) {
  fetcher_.Fetch({claim}, [this, claim](Result<std::vector<api::ObjectPtr>> objects) {
    if (objects.ok()) {
      if ((*objects->front())["status"]["reservedFor"].empty()) Remove(claim, "it is not reserved");
    } else if (objects.error().code == ErrorCode::kNotFound) {
      Remove(claim, "it is gone");
    } else if (objects.error().code == ErrorCode::kFailedPrecondition && !claim.uid.empty()) {
      Remove(claim, objects.error().message);  // replaced, or not allocated
    }
    // Any other error says nothing about the claim.
    if (--open_ == 0) in_use_.clear();
  });
}

void MetadataLeftovers::Remove(const rpc::ClaimReference& claim, const std::string& why) {
  if (in_use_.contains(claim.uid)) return;
  kLog.Info("removing device metadata of a claim",
            {{"claim", StrCat(claim.namespace_name, "/", claim.name)},
             {"uid", claim.uid},
             {"reason", why}});
  if (auto removed = store_.Remove(claim); !removed.ok()) {
    on_error_(removed.error().Prefixed(
        StrCat("remove device metadata of claim ", claim.namespace_name, "/", claim.name)));
  }
}

}  // namespace drakkar::driver
