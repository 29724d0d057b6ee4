#pragma once

#include <string>
#include <string_view>

#include "answers/cluster/snapshot.h"
#include "answers/why/why.h"
#include "base/result/result.h"
#include "dashboard/board/view.h"
#include "dashboard/model/history.h"
#include "net/http/url.h"

namespace drakkar::dashboard {

// The answers to the page's questions as JSON. Errors say which parameter is wrong.

// Lists return at most this many entries at a time; the page asks for the next ones.
inline constexpr std::size_t kMaxListed = 500;

// ?driver=&pool=&device=
Result<std::string> DeviceReply(const View& view, const History& history, const net::Query& query);
// ?filter=&offset=&limit=
Result<std::string> PendingReply(const View& view, const net::Query& query);
// ?filter=&state=&offset=&limit=
Result<std::string> ClaimsReply(const View& view, const net::Query& query);
// The claim in ?namespace=&name=, which the caller has found.
std::string ClaimReply(const View& view, const api::ObjectPtr& claim, answers::Objects events);
// ?filter=&offset=&limit=; newest first.
Result<std::string> HealthReply(const View& view, const History& history, const net::Query& query);
std::string SchedulerReply(const View& view, const History& history);
// ?by=class
Result<std::string> FreeReply(const View& view, const net::Query& query);

// ?kind=pod|claim&namespace=&name=
Result<answers::WhySubject> SubjectOf(const net::Query& query);
// Null if there is none.
api::ObjectPtr FindClaim(const View& view, std::string_view ns, std::string_view name);

}  // namespace drakkar::dashboard
