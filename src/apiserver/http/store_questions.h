#pragma once

#include <functional>
#include <map>
#include <string>

#include "apiserver/http/frontend.h"
#include "apiserver/watch/store_layout.h"
#include "storage/store.h"

namespace drakkar::apiserver {

// What `drakkar store` asks of a running server. The paths need a rule for them in RBAC, which only
// administrators have: a page shows every Secret.
//
// /drakkar/store/page?revision=R&after=KEY: the next page of a backup, as EncodeBackupPage. Without
// a revision, of the newest state; the client repeats the revision of the answer, so that all pages
// show one state.
// /drakkar/store/check?from=F: the next slice of a check, as EncodeVerifyResult.
// Both are refused in Kubernetes' layout, where etcd's own tools do this.
std::map<std::string, Frontend::Options::Question, std::less<>> StoreQuestions(
    storage::Store& store, const StoreLayout& layout = {});

inline constexpr const char* kStorePagePath = "/drakkar/store/page";
inline constexpr const char* kStoreCheckPath = "/drakkar/store/check";

// A page ends after this many entries or bytes, so that its encoding does not keep other requests
// waiting.
inline constexpr std::size_t kMaxPageEntries = 500;
inline constexpr std::size_t kMaxPageBytes = std::size_t{1} << 20;

}  // namespace drakkar::apiserver
