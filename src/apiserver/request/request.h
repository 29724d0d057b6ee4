#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "apiserver/request/failure.h"
#include "storage/store.h"

namespace drakkar::apiserver {

enum class Verb {
  kGet,
  kList,
  kWatch,
  kCreate,
  kUpdate,
  kPatch,
  kDelete,
  kDeleteCollection,
  kNone,  // a method without a verb (OPTIONS): only roles with all verbs allow it
};
// "get", ... as in authorization and metrics; "" for kNone.
std::string_view VerbName(Verb verb);

struct UserInfo {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

enum class PatchKind { kJson, kMerge, kStrategicMerge, kApply };
enum class FieldValidation { kIgnore, kWarn, kStrict };

// A request as the verbs see it, whether it came over HTTP or from a component in this process.
struct Request {
  UserInfo user;
  Verb verb = Verb::kGet;
  const api::KindSchema* kind = nullptr;
  std::string namespace_;
  std::string name;
  std::string subresource;

  // The body: a tree (direct calls) or text.
  api::TreePtr object;
  bool is_decoded = false;  // the tree has passed DecodeBody
  // What DecodeEarly found: the parsed patch or applied configuration, why the body is rejected, or
  // warnings about it.
  api::TreePtr patch_tree;
  std::shared_ptr<const Failure> decode_failure;
  std::vector<std::string> decode_warnings;
  std::string text;
  enum class Encoding { kJson, kYaml, kProtobuf };
  Encoding encoding = Encoding::kJson;
  PatchKind patch = PatchKind::kMerge;

  FieldValidation field_validation = FieldValidation::kWarn;
  bool dry_run = false;
  bool force = false;
  std::string field_manager;
  std::string user_agent;  // names the field manager if field_manager is empty
  // "NAMESPACE/LEASE HOLDER": the write happens only while the holder has the Lease. Empty: always.
  std::string fence;

  bool skips_webhooks = false;  // part of a request that they have already admitted
  bool skips_policies = false;  // likewise

  // Delete.
  std::optional<std::int64_t> grace_period_seconds;
  std::string propagation_policy;
  std::string precondition_uid;
  std::string precondition_resource_version;
  bool ignore_read_error = false;  // delete an object that cannot be read

  // List and watch.
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;        // as given: "", "0" or a number
  std::string resource_version_match;  // "", "NotOlderThan", "Exact"
  std::int64_t limit = 0;
  std::string continue_token;
};

// The outcome of a request. The response is based on `revision`, which must be durable before the
// response leaves the process.
struct Response {
  int http_status = 200;
  std::optional<Failure> failure;
  std::vector<std::string> warnings;
  storage::Revision revision = 0;

  api::ObjectPtr object;              // everything but lists
  std::vector<api::ObjectPtr> items;  // lists
  std::string continue_token;
  std::optional<std::int64_t> remaining_items;

  static Response Failed(Failure failure) {
    Response response;
    response.http_status = failure.code;
    response.failure = std::move(failure);
    return response;
  }
};

}  // namespace drakkar::apiserver
