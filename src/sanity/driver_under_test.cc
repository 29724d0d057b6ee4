#include "sanity/driver_under_test.h"

#include <algorithm>
#include <utility>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::sanity {
namespace {

using api::Draft;

const api::KindSchema* Kind(std::string_view name) {
  return api::FindKind("resource.k8s.io", "v1", name);
}

// Waits for one response of type T. The state is shared, so that a late response is harmless.
template <typename T>
Result<T> WaitFor(const Options& options,
                  const std::function<void(std::function<void(Result<T>)>)>& call) {
  auto answer = std::make_shared<std::optional<Result<T>>>();
  call([answer](Result<T> result) { *answer = std::move(result); });
  if (!options.wait_until([&] { return answer->has_value(); }, options.timeout)) {
    return Error{ErrorCode::kDeadlineExceeded, "no response in time"};
  }
  return std::move(**answer);
}

}  // namespace

DriverUnderTest::DriverUnderTest(const Options& options)
    : driver_name(options.driver_name),
      node_name(options.node_name),
      options_(options),
      registration_(rpc::MakeRegistrationClient(options.transport)),
      run_id_(options.random.NameSuffix(5)) {}

DriverUnderTest::~DriverUnderTest() {
  for (const rpc::ClaimReference& claim : std::exchange(claims_, {})) DeleteClaim(claim);
  if (pod_uid_.empty()) return;
  static_cast<void>(Await([&](client::ReplyCallback done) {
    options_.client.Delete(PodRef(), {.grace_period_seconds = 0, .precondition_uid = pod_uid_},
                           std::move(done));
  }));
}

client::ResourceRef DriverUnderTest::PodRef() const {
  return {.kind = api::FindKind("", "v1", "Pod"),
          .namespace_ = options_.namespace_name,
          .name = "drakkar-sanity-" + run_id_};
}

Result<std::string> DriverUnderTest::PodUid() {
  if (!pod_uid_.empty()) return pod_uid_;
  const client::ResourceRef ref = PodRef();
  Draft pod = {{"apiVersion", "v1"},
               {"kind", "Pod"},
               {"metadata", {{"name", Draft(ref.name)}, {"namespace", Draft(ref.namespace_)}}}};
  Draft& spec = pod["spec"];
  Draft gate = Draft::Object();
  gate["name"] = "drakkar.io/sanity";
  spec["schedulingGates"].Append(std::move(gate));
  spec["automountServiceAccountToken"] = false;
  spec["securityContext"]["runAsNonRoot"] = true;
  spec["securityContext"]["seccompProfile"]["type"] = "RuntimeDefault";
  // Never runs, but a cluster's admission policies may inspect it.
  Draft container = {{"name", "never-runs"}, {"image", "drakkar-sanity"}};
  container["securityContext"]["allowPrivilegeEscalation"] = false;
  container["securityContext"]["capabilities"]["drop"].Append(Draft("ALL"));
  spec["containers"].Append(std::move(container));
  client::ResourceRef collection = ref;
  collection.name.clear();
  const client::Reply reply = Await([&](client::ReplyCallback done) {
    options_.client.Create(collection, pod.Freeze(), {}, std::move(done));
  });
  if (!reply.ok()) return reply.error->Prefixed("create the pod that claims are reserved for");
  pod_uid_ = reply.object->uid();
  return pod_uid_;
}

void DriverUnderTest::Check(const std::string& id, const std::string& title,
                            const std::function<Result<void>()>& check) {
  const Result<void> result = check();
  report_.checks.push_back({id, title, result.ok() ? Outcome::kPassed : Outcome::kFailed,
                            result.ok() ? "" : result.error().message});
  if (options_.on_result) options_.on_result(report_.checks.back());
}

void DriverUnderTest::Skip(const std::string& id, const std::string& title,
                           const std::string& why) {
  report_.checks.push_back({id, title, Outcome::kSkipped, why});
  if (options_.on_result) options_.on_result(report_.checks.back());
}

bool DriverUnderTest::Advertises(std::string_view service) const {
  if (!info) return false;
  const std::vector<std::string>& services = info->supported_versions;
  return std::find(services.begin(), services.end(), service) != services.end();
}

std::vector<rpc::DraVersion> DriverUnderTest::versions() const {
  std::vector<rpc::DraVersion> found;
  for (const rpc::DraVersion version : {rpc::DraVersion::kV1, rpc::DraVersion::kV1beta1}) {
    if (!info || Advertises(rpc::DraServiceName(version))) found.push_back(version);
  }
  return found;
}

Result<rpc::PluginInfo> DriverUnderTest::GetInfo() {
  return WaitFor<rpc::PluginInfo>(options_, [this](auto done) {
    registration_->GetInfo(options_.driver_socket, options_.timeout, done);
  });
}

Result<rpc::PluginInfo> DriverUnderTest::AwaitInfo() {
  constexpr int kAttempts = 50;
  Result<rpc::PluginInfo> found = GetInfo();
  // The socket file appears a moment before the driver listens on it.
  for (int attempt = 0;
       attempt < kAttempts && !found.ok() && found.error().code == ErrorCode::kUnavailable;
       ++attempt) {
    options_.wait_until([] { return false; }, options_.timeout / kAttempts);
    found = GetInfo();
  }
  return found;
}

Result<void> DriverUnderTest::Notify(const rpc::RegistrationStatus& status) {
  auto answer = std::make_shared<std::optional<Result<void>>>();
  registration_->NotifyRegistrationStatus(
      options_.driver_socket, status, options_.timeout,
      [answer](Result<void> result) { *answer = std::move(result); });
  if (!WaitUntil([&] { return answer->has_value(); })) {
    return Error{ErrorCode::kDeadlineExceeded, "no response in time"};
  }
  return std::move(**answer);
}

std::string DriverUnderTest::endpoint() const {
  return info && !info->endpoint.empty() ? info->endpoint : options_.driver_socket;
}

rpc::DraPluginClient& DriverUnderTest::ClientFor(rpc::DraVersion version) {
  std::unique_ptr<rpc::DraPluginClient>& client = clients_[version];
  if (client == nullptr) {
    client =
        rpc::DialDraPlugin(options_.transport, {.endpoint = endpoint(),
                                                .version = version,
                                                .initial_backoff = std::chrono::milliseconds(50),
                                                .max_backoff = std::chrono::milliseconds(500)});
  }
  return *client;
}

Result<void> DriverUnderTest::Connect() {
  clients_.clear();
  for (const rpc::DraVersion version : versions()) {
    rpc::DraPluginClient& client = ClientFor(version);
    if (!WaitUntil([&] { return client.IsConnected(); })) {
      return Unavailable(StrCat("nothing is listening on ", endpoint()));
    }
  }
  return Ok();
}

Result<rpc::PrepareResults> DriverUnderTest::Prepare(const std::vector<rpc::ClaimReference>& claims,
                                                     rpc::DraVersion version) {
  return WaitFor<rpc::PrepareResults>(
      options_, [&](auto done) { ClientFor(version).Prepare(claims, options_.timeout, done); });
}

Result<rpc::UnprepareResults> DriverUnderTest::Unprepare(
    const std::vector<rpc::ClaimReference>& claims, rpc::DraVersion version) {
  return WaitFor<rpc::UnprepareResults>(
      options_, [&](auto done) { ClientFor(version).Unprepare(claims, options_.timeout, done); });
}

std::vector<Result<rpc::PrepareResults>> DriverUnderTest::PrepareAtOnce(
    const std::vector<rpc::ClaimReference>& claims, DriverUnderTest* other) {
  auto answers =
      std::make_shared<std::vector<std::optional<Result<rpc::PrepareResults>>>>(claims.size());
  auto open = std::make_shared<std::size_t>(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    DriverUnderTest& instance = other != nullptr && i % 2 == 1 ? *other : *this;
    instance.ClientFor(versions().front())
        .Prepare({claims[i]}, options_.timeout,
                 [answers, open, i](Result<rpc::PrepareResults> result) {
                   (*answers)[i] = std::move(result);
                   --*open;
                 });
  }
  WaitUntil([&] { return *open == 0; });
  std::vector<Result<rpc::PrepareResults>> results;
  for (auto& answer : *answers) {
    results.push_back(answer ? std::move(*answer)
                             : Result<rpc::PrepareResults>(
                                   Error{ErrorCode::kDeadlineExceeded, "no response in time"}));
  }
  return results;
}

Result<std::vector<rpc::PreparedDevice>> DriverUnderTest::PrepareOne(
    const rpc::ClaimReference& claim, rpc::DraVersion version) {
  ASSIGN_OR_RETURN(rpc::PrepareResults results, Prepare({claim}, version));
  const auto found = results.find(claim.uid);
  if (found == results.end())
    return FailedPrecondition("the response does not contain the claim's UID");
  if (results.size() != 1) return FailedPrecondition("the response contains other claims");
  if (!found->second.error.empty()) return FailedPrecondition(found->second.error);
  return std::move(found->second.devices);
}

Result<void> DriverUnderTest::UnprepareOne(const rpc::ClaimReference& claim,
                                           rpc::DraVersion version) {
  const auto results = Unprepare({claim}, version);
  if (!results.ok()) return results.error();
  const auto found = results->find(claim.uid);
  if (found == results->end()) {
    return FailedPrecondition("the response does not contain the claim's UID");
  }
  if (!found->second.error.empty()) return FailedPrecondition(found->second.error);
  return Ok();
}

Result<rpc::HealthReport> DriverUnderTest::FirstHealthReport(rpc::HealthService service) {
  auto answer = std::make_shared<std::optional<Result<rpc::HealthReport>>>();
  auto stream = ClientFor(versions().front())
                    .WatchHealth(service, {.on_report =
                                               [answer](rpc::HealthReport report) {
                                                 if (!*answer) *answer = std::move(report);
                                               },
                                           .on_end =
                                               [answer](Result<void> result) {
                                                 if (*answer) return;
                                                 *answer = result.ok()
                                                               ? Unavailable("the stream ended")
                                                               : result.error();
                                               }});
  if (!WaitUntil([&] { return answer->has_value(); })) {
    return Error{ErrorCode::kDeadlineExceeded, "no report in time"};
  }
  return std::move(**answer);
}

Result<void> DriverUnderTest::AwaitSecondHealthReport(rpc::HealthService service, Duration limit) {
  auto reports = std::make_shared<int>(0);
  auto end = std::make_shared<std::optional<Result<void>>>();
  auto stream =
      ClientFor(versions().front())
          .WatchHealth(service,
                       {.on_report = [reports](rpc::HealthReport) { ++*reports; },
                        .on_end = [end](Result<void> result) { *end = std::move(result); }});
  if (options_.wait_until([&] { return *reports >= 2 || end->has_value(); }, limit) &&
      *reports >= 2)
    return Ok();
  if (*end) return (*end)->ok() ? FailedPrecondition("the stream ended") : (*end)->error();
  return FailedPrecondition(StrCat(*reports, " reports before health expires on the node"));
}

client::Reply DriverUnderTest::Await(const std::function<void(client::ReplyCallback)>& call) {
  auto reply = std::make_shared<std::optional<client::Reply>>();
  call([reply](client::Reply got) { *reply = std::move(got); });
  if (!WaitUntil([&] { return reply->has_value(); })) {
    client::Reply late;
    late.error = Error{ErrorCode::kDeadlineExceeded, "the API server did not respond in time"};
    return late;
  }
  return std::move(**reply);
}

Result<std::vector<api::ObjectPtr>> DriverUnderTest::ListAll(std::string_view kind,
                                                             const std::string& selector) {
  return WaitFor<std::vector<api::ObjectPtr>>(options_, [&](auto done) {
    options_.client.List({.kind = Kind(kind)}, {.field_selector = selector},
                         [done](client::ListReply reply) {
                           if (!reply.ok()) return done(*reply.error);
                           done(std::move(reply.items));
                         });
  });
}

Result<std::vector<api::ObjectPtr>> DriverUnderTest::ListSlices() {
  ASSIGN_OR_RETURN(std::vector<api::ObjectPtr> slices,
                   ListAll("ResourceSlice", "spec.driver=" + driver_name));
  std::erase_if(slices, [this](const api::ObjectPtr& slice) {
    const std::string_view of = (*slice)["spec"]["nodeName"].str();
    return !of.empty() && of != node_name;
  });
  return slices;
}

Result<void> DriverUnderTest::FindNode() {
  if (!node_name.empty()) return Ok();
  ASSIGN_OR_RETURN(const std::vector<api::ObjectPtr> slices,
                   ListAll("ResourceSlice", "spec.driver=" + driver_name));
  std::set<std::string> nodes;
  for (const api::ObjectPtr& slice : slices) {
    if (const std::string_view of = (*slice)["spec"]["nodeName"].str(); !of.empty())
      nodes.emplace(of);
  }
  if (nodes.size() > 1) {
    return FailedPrecondition(StrCat("driver ", driver_name, " has slices for several nodes (",
                                     Join(nodes, ", "), "); choose one with --node-name"));
  }
  if (!nodes.empty()) node_name = *nodes.begin();
  return Ok();
}

Result<std::set<std::pair<std::string, std::string>>> DriverUnderTest::HeldDevices() {
  ASSIGN_OR_RETURN(const std::vector<api::ObjectPtr> claims, ListAll("ResourceClaim", ""));
  std::set<std::pair<std::string, std::string>> held;
  for (const api::ObjectPtr& claim : claims) {
    for (const api::Value result :
         (*claim)["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["driver"].str() != driver_name || result["adminAccess"].boolean()) continue;
      held.emplace(result["pool"].str(), result["device"].str());
    }
  }
  return held;
}

Result<rpc::ClaimReference> DriverUnderTest::MakeUnallocatedClaim() {
  const std::string name = StrCat("drakkar-sanity-", run_id_, "-", next_claim_++);
  const Draft request = {{"name", "sanity"}, {"exactly", {{"deviceClassName", "drakkar-sanity"}}}};
  Draft claim = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceClaim"},
      {"metadata", {{"name", Draft(name)}, {"namespace", Draft(options_.namespace_name)}}}};
  claim["spec"]["devices"]["requests"].Append(request);
  const client::Reply reply = Await([&](client::ReplyCallback done) {
    options_.client.Create({.kind = Kind("ResourceClaim"), .namespace_ = options_.namespace_name},
                           claim.Freeze(), {}, std::move(done));
  });
  if (!reply.ok()) return reply.error->Prefixed("create a claim");
  claims_.push_back({options_.namespace_name, std::string(reply.object->uid()), name});
  return claims_.back();
}

Result<rpc::ClaimReference> DriverUnderTest::MakeClaim(const PublishedDevice& device) {
  ASSIGN_OR_RETURN(const rpc::ClaimReference claim, MakeUnallocatedClaim());
  const client::ResourceRef ref = {
      .kind = Kind("ResourceClaim"), .namespace_ = claim.namespace_name, .name = claim.name};
  const client::Reply read =
      Await([&](client::ReplyCallback done) { options_.client.Get(ref, std::move(done)); });
  if (!read.ok()) return read.error->Prefixed("read the claim");
  Draft object(read.object->tree());
  Draft& allocation = object["status"]["allocation"];
  allocation["devices"]["results"].Append({{"request", "sanity"},
                                           {"driver", Draft(driver_name)},
                                           {"pool", Draft(device.pool)},
                                           {"device", Draft(device.device)}});
  if (!node_name.empty()) {
    Draft field = {{"key", "metadata.name"}, {"operator", "In"}};
    field["values"].Append(Draft(node_name));
    Draft term = Draft::Object();
    term["matchFields"].Append(std::move(field));
    allocation["nodeSelector"]["nodeSelectorTerms"].Append(std::move(term));
  }
  ASSIGN_OR_RETURN(const std::string pod_uid, PodUid());
  object["status"]["reservedFor"].Append(
      {{"resource", "pods"}, {"name", Draft(PodRef().name)}, {"uid", Draft(pod_uid)}});
  client::ResourceRef status = ref;
  status.subresource = "status";
  const client::Reply written = Await([&](client::ReplyCallback done) {
    options_.client.Update(status, object.Freeze(), {}, std::move(done));
  });
  if (!written.ok()) return written.error->Prefixed("allocate the claim");
  return claim;
}

void DriverUnderTest::DeleteClaim(const rpc::ClaimReference& claim) {
  std::erase(claims_, claim);
  static_cast<void>(Await([&](client::ReplyCallback done) {
    options_.client.Delete(
        {.kind = Kind("ResourceClaim"), .namespace_ = claim.namespace_name, .name = claim.name}, {},
        std::move(done));
  }));
}

}  // namespace drakkar::sanity
