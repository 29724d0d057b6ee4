#include "client/access_reviewer.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

using Access = AccessReviewer::Access;
using Refusal = AccessReviewer::Refusal;
using User = AccessReviewer::User;

// Members may do everything, even if the server cannot be reached.
constexpr std::string_view kMasters = "system:masters";
constexpr std::string_view kBearer = "Bearer ";

Refusal Unauthorized() {
  return {401, "Unauthorized"};
}

Refusal Unanswered(const Error& error) {
  return {500, StrCat("could not check access: ", error.message)};
}

// Worded as Kubernetes components word it and, for nodes, as a kubelet does.
Refusal Forbidden(const User& user, const std::vector<Access>& any_of) {
  const Access& first = any_of.front();
  if (!first.path.empty()) {
    return {403, StrCat("forbidden: User ", Quote(user.name), " cannot ", first.verb, " path ",
                        Quote(first.path))};
  }
  std::vector<std::string_view> subresources;
  for (const Access& each : any_of) subresources.push_back(each.subresource);
  return {403, StrCat("Forbidden (user=", user.name, ", verb=", first.verb,
                      ", resource=nodes, subresource(s)=[", Join(subresources, " "), "])")};
}

User UserIn(api::Value user) {
  User read{std::string(user["username"].str()), {}, std::string(user["uid"].str())};
  for (api::Value group : user["groups"].elements()) read.groups.emplace_back(group.str());
  for (const api::MemberView& each : user["extra"].members()) {
    std::vector<std::string>& values = read.extra[std::string(each.name)];
    for (api::Value value : each.value.elements()) values.emplace_back(value.str());
  }
  return read;
}

// The cache key of a decision. It is a hash, because user names have no limit.
std::string IdOf(const User& user, const Access& access) {
  std::string text;
  auto add = [&](std::string_view part) { text += StrCat(part.size(), ":", part); };
  for (std::string_view part :
       {std::string_view(access.verb), std::string_view(access.path), std::string_view(access.node),
        std::string_view(access.subresource), std::string_view(access.resource),
        std::string_view(access.namespace_), std::string_view(user.name),
        std::string_view(user.uid)}) {
    add(part);
  }
  for (const std::string& group : user.groups) add(group);
  for (const auto& [key, values] : user.extra) {
    add("");  // ends the list of groups, as no group is named ""
    add(key);
    for (const std::string& value : values) add(value);
  }
  return Sha256Hex(text);
}

api::TreePtr ReviewOf(const User& user, const Access& access) {
  api::Draft review{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}};
  api::Draft& spec = review["spec"];
  spec["user"] = user.name;
  if (!user.uid.empty()) spec["uid"] = user.uid;
  for (const std::string& group : user.groups) spec["groups"].Append(group);
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) spec["extra"].Entry(key).Append(value);
  }
  if (!access.path.empty()) {
    spec["nonResourceAttributes"]["path"] = access.path;
    spec["nonResourceAttributes"]["verb"] = access.verb;
  } else {
    api::Draft& attributes = spec["resourceAttributes"];
    attributes["verb"] = access.verb;
    attributes["version"] = "v1";
    attributes["resource"] = access.resource;
    if (!access.subresource.empty()) attributes["subresource"] = access.subresource;
    if (!access.node.empty()) attributes["name"] = access.node;
    if (!access.namespace_.empty()) attributes["namespace"] = access.namespace_;
  }
  return review.Freeze();
}

}  // namespace

AccessReviewer::Credentials AccessReviewer::CredentialsOf(const net::ServerRequest& request) {
  Credentials credentials;
  if (request.connection != nullptr) {
    if (const auto& peer = request.connection->peer) {
      credentials.certificate = {peer->common_name, peer->organizations};
    }
    credentials.invalid = !request.connection->peer_error.empty();
  }
  const std::string_view header = request.headers.Get("authorization");
  if (header.size() > kBearer.size() &&
      net::EqualsIgnoreCase(header.substr(0, kBearer.size()), kBearer)) {
    credentials.token = header.substr(kBearer.size());
  } else if (!header.empty()) {
    credentials.invalid = true;
  }
  return credentials;
}

template <typename T>
const T* AccessReviewer::Find(const std::map<std::string, Kept<T>>& kept,
                              const std::string& id) const {
  const auto found = kept.find(id);
  if (found == kept.end() || found->second.until <= loop_.clock().Monotonic()) return nullptr;
  return &found->second.answer;
}

template <typename T>
void AccessReviewer::Keep(std::map<std::string, Kept<T>>& kept, std::string id, T answer) {
  if (kept.size() >= kMaxKept) kept.clear();
  kept.insert_or_assign(std::move(id),
                        Kept<T>{std::move(answer), loop_.clock().Monotonic() + kKept});
}

void AccessReviewer::Review(Credentials credentials, std::vector<Access> any_of, Done done) {
  if (credentials.certificate) {
    User user = std::move(*credentials.certificate);
    user.groups.emplace_back("system:authenticated");
    return ReviewAccess(std::move(user), std::move(any_of), std::move(done));
  }
  if (credentials.invalid || credentials.token.size() > kMaxTokenBytes) {
    return done(Unauthorized());
  }
  if (!credentials.token.empty()) {
    return ReviewToken(std::move(credentials.token), std::move(any_of), std::move(done));
  }
  if (nobody_ == Nobody::kIsRefused) return done(Unauthorized());
  ReviewAccess({"system:anonymous", {"system:unauthenticated"}}, std::move(any_of),
               std::move(done));
}

void AccessReviewer::ReviewToken(std::string token, std::vector<Access> any_of, Done done) {
  std::string id = Sha256Hex(token);  // the token itself is not stored
  if (const std::optional<User>* user = Find(tokens_, id)) {
    if (!*user) return done(Unauthorized());
    return ReviewAccess(**user, std::move(any_of), std::move(done));
  }
  const api::KindSchema* kind = api::FindKind("authentication.k8s.io", "v1", "TokenReview");
  api::Draft review{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}};
  review["spec"]["token"] = token;
  client_.Create({kind, "", "", ""}, review.Freeze(), {},
                 lifetime_.Guard([this, id = std::move(id), any_of = std::move(any_of),
                                  done = std::move(done)](Reply reply) mutable {
                   if (!reply.ok()) return done(Unanswered(*reply.error));
                   const api::Value status = reply.object->root()["status"];
                   std::optional<User> user;
                   if (status["authenticated"].boolean()) user = UserIn(status["user"]);
                   Keep(tokens_, std::move(id), user);
                   if (!user) return done(Unauthorized());
                   ReviewAccess(std::move(*user), std::move(any_of), std::move(done));
                 }));
}

void AccessReviewer::ReviewAccess(User user, std::vector<Access> any_of, Done done) {
  if (std::find(user.groups.begin(), user.groups.end(), kMasters) != user.groups.end()) {
    return done(std::nullopt);
  }
  Ask({std::move(user), std::move(any_of), 0, std::move(done)});
}

void AccessReviewer::Ask(Question question) {
  while (question.next < question.any_of.size()) {
    const Access& access = question.any_of[question.next];
    std::string id = IdOf(question.user, access);
    const bool* known = Find(decisions_, id);
    if (known != nullptr && *known) return question.done(std::nullopt);
    if (known != nullptr) {
      ++question.next;
      continue;
    }
    const api::KindSchema* kind =
        api::FindKind("authorization.k8s.io", "v1", "SubjectAccessReview");
    const api::TreePtr review = ReviewOf(question.user, access);
    return client_.Create(
        {kind, "", "", ""}, review, {},
        lifetime_.Guard(
            [this, id = std::move(id), question = std::move(question)](Reply reply) mutable {
              if (!reply.ok()) return question.done(Unanswered(*reply.error));
              Keep(decisions_, std::move(id), reply.object->root()["status"]["allowed"].boolean());
              Ask(std::move(question));
            }));
  }
  question.done(Forbidden(question.user, question.any_of));
}

}  // namespace drakkar::client
