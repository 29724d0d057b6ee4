#include "cmd/drakkar/why_question.h"

#include "apiserver/request/node_identity.h"
#include "base/text/text.h"
#include "net/http/url.h"

namespace drakkar::cmd {
namespace {

using answers::WhySubject;
using client::AccessReviewer;

constexpr std::int64_t kMaxWidth = 10'000;

Result<AccessReviewer::User> RemoteUser(const net::Headers& headers) {
  AccessReviewer::User user;
  ASSIGN_OR_RETURN(user.name, net::PercentDecode(headers.Get("x-remote-user")));
  ASSIGN_OR_RETURN(user.uid, net::PercentDecode(headers.Get("x-remote-uid")));
  for (const auto& [name, value] : headers) {
    if (!net::EqualsIgnoreCase(name, "x-remote-group")) continue;
    ASSIGN_OR_RETURN(std::string group, net::PercentDecode(value));
    user.groups.push_back(std::move(group));
  }
  if (user.name.empty()) return InvalidArgument("the header X-Remote-User is missing");
  return user;
}

}  // namespace

Result<answers::WhyService::Question> ReadWhyQuestion(const net::ServerRequest& request) {
  answers::WhyService::Question question;
  // "", "why", kind, namespace, name
  const std::vector<std::string_view> parts = Split(request.path, '/');
  const bool is_pod = parts.size() == 5 && parts[2] == "pods";
  if (!is_pod && !(parts.size() == 5 && parts[2] == "resourceclaims")) {
    return InvalidArgument("the path must be /why/pods/NAMESPACE/NAME or /why/resourceclaims/...");
  }
  question.subject = {is_pod ? WhySubject::Kind::kPod : WhySubject::Kind::kClaim,
                      std::string(parts[3]), std::string(parts[4])};
  const Result<net::Query>& query = request.query();
  if (!query.ok()) return query.error();
  question.node = query->Get("node");
  question.verbose = query->Get("verbose") == "true";
  question.headers = query->Get("headers") != "false";
  if (query->Has("width")) {
    const std::optional<std::int64_t> width = ParseInt64(query->Get("width"));
    if (!width || *width < 0 || *width > kMaxWidth) {
      return InvalidArgument(StrCat("width must be a number from 0 to ", kMaxWidth));
    }
    question.width = static_cast<std::size_t>(*width);
  }
  const bool is_server = request.connection != nullptr && request.connection->peer &&
                         request.connection->peer->common_name == apiserver::kNodeClientUser;
  if (is_server) {
    ASSIGN_OR_RETURN(question.user, RemoteUser(request.headers));
  }
  return question;
}

}  // namespace drakkar::cmd
