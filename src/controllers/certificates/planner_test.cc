#include "controllers/certificates/planner.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

using net::CertificateSubject;
using std::chrono::hours;
using std::chrono::minutes;
using Step = ApprovalPlan::Step;

const WallTime kNow(std::chrono::seconds(1'800'000'000));
constexpr std::string_view kClientUsages = R"(["digital signature","client auth"])";
constexpr std::string_view kServingUsages =
    R"(["digital signature","key encipherment","server auth"])";

api::ObjectPtr Parse(const std::string& json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

std::string Encoded(const CertificateSubject& subject) {
  static const std::string* const kKey = new std::string(net::GenerateKeyPem().value());
  return Base64Encode(net::CreateSigningRequest(*kKey, subject).value());
}

struct Asked {
  std::string_view signer;
  CertificateSubject subject;
  std::string_view usages;
  std::string_view user = "system:bootstrap:abcdef";
  std::string_view groups = R"(["system:bootstrappers"])";
  std::string_view status = "{}";
  std::string_view more = "";
};

api::ObjectPtr Request(const Asked& asked) {
  return Parse(StrCat(
      R"({"apiVersion":"certificates.k8s.io/v1",)",
      R"("kind":"CertificateSigningRequest","metadata":{"name":"x",)", R"("creationTimestamp":")",
      api::FormatTime(kNow), R"("},"spec":{"signerName":")", asked.signer, R"(","request":")",
      Encoded(asked.subject), R"(","usages":)", asked.usages, R"(,"username":")", asked.user,
      R"(","groups":)", asked.groups, asked.more, R"(},"status":)", asked.status, "}"));
}

api::ObjectPtr Node(std::string_view name, std::string_view address, bool ready = true) {
  return Parse(StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name,
                      R"("},"status":{"addresses":[{"type":"InternalIP","address":")", address,
                      R"("},{"type":"Hostname","address":")", name,
                      R"("}],"conditions":[{"type":"Ready","status":")", ready ? "True" : "False",
                      R"("}]}})"));
}

const CertificateSubject kNode{"system:node:n1", {"system:nodes"}, {}, {}};

TEST(CertificatePlanner, ChecksWhatTheSignersOfNodesIssue) {
  const Usages client{"digital signature", "client auth"};
  const Usages serving{"digital signature", "key encipherment", "server auth"};
  EXPECT_TRUE(CheckNodeClient(kNode, client).ok());
  const auto client_error = [&](const CertificateSubject& subject, const Usages& usages) {
    const Result<void> checked = CheckNodeClient(subject, usages);
    return checked.ok() ? "ok" : checked.error().message;
  };
  CertificateSubject wrong = kNode;
  wrong.organizations = {"system:nodes", "system:masters"};
  EXPECT_EQ(client_error(wrong, client), "subject organization is not system:nodes");
  wrong = kNode;
  wrong.common_name = "admin";
  EXPECT_EQ(client_error(wrong, client), "subject common name does not begin with system:node:");
  wrong = kNode;
  wrong.dns_names = {"a"};
  EXPECT_EQ(client_error(wrong, client), "DNS subjectAltNames are not allowed");
  wrong = kNode;
  wrong.ip_addresses = {"10.0.0.1"};
  EXPECT_EQ(client_error(wrong, client), "IP subjectAltNames are not allowed");
  wrong = kNode;
  wrong.email_addresses = {"a@b"};
  EXPECT_EQ(client_error(wrong, client), "Email subjectAltNames are not allowed");
  wrong = kNode;
  wrong.uris = {"a:b"};
  EXPECT_EQ(client_error(wrong, client), "URI subjectAltNames are not allowed");
  EXPECT_EQ(client_error(kNode, serving),
            "usages did not match [client auth digital signature key encipherment]");
  EXPECT_EQ(client_error(kNode, {"client auth"}),
            "usages did not match [client auth digital signature key encipherment]");

  CertificateSubject server = kNode;
  EXPECT_EQ(CheckNodeServing(server, serving).error().message,
            "DNS or IP subjectAltName is required");
  server.ip_addresses = {"10.0.0.1"};
  EXPECT_TRUE(CheckNodeServing(server, serving).ok());
  EXPECT_FALSE(CheckNodeServing(server, client).ok());

  EXPECT_TRUE(CheckApiServerClient({"client auth"}).ok());
  EXPECT_EQ(CheckApiServerClient({"client auth", "server auth"}).error().message,
            "invalid usage for client certificate: server auth");
  EXPECT_EQ(CheckApiServerClient({"digital signature"}).error().message,
            "missing required usage for client certificate: client auth");
}

TEST(CertificatePlanner, ClientCertificatesOfNodesAreReviewed) {
  const ApprovalPlan first =
      PlanApproval(*Request({kNodeClientSigner, kNode, kClientUsages}), {}, {});
  ASSERT_EQ(first.step, Step::kReview);
  ASSERT_EQ(first.reviews.size(), 1u);
  EXPECT_EQ(first.reviews[0].subresource, "nodeclient");
  const ApprovalPlan renewal = PlanApproval(
      *Request({kNodeClientSigner, kNode, kClientUsages, "system:node:n1", R"(["system:nodes"])"}),
      {{"n1", Node("n1", "10.0.0.1")}}, {});
  ASSERT_EQ(renewal.step, Step::kReview);
  EXPECT_EQ(renewal.reviews[0].subresource, "selfnodeclient");
}

TEST(CertificatePlanner, NoNodeGetsTheCertificateOfAnother) {
  // n2 asks for n1. It has the permission selfnodeclient only, which is not asked for here.
  const Asked foreign{kNodeClientSigner, kNode, kClientUsages, "system:node:n2",
                      R"(["system:nodes"])"};
  const ApprovalPlan plan = PlanApproval(*Request(foreign), {}, {});
  ASSERT_EQ(plan.reviews.size(), 1u);
  EXPECT_EQ(plan.reviews[0].subresource, "nodeclient");
  // While n1 is ready, not even the holder of a token gets its identity.
  const NodesByName nodes{{"n1", Node("n1", "10.0.0.1")}};
  EXPECT_EQ(PlanApproval(*Request({kNodeClientSigner, kNode, kClientUsages}), nodes, {}).step,
            Step::kWait);
  const NodesByName down{{"n1", Node("n1", "10.0.0.1", false)}};
  EXPECT_EQ(PlanApproval(*Request({kNodeClientSigner, kNode, kClientUsages}), down, {}).step,
            Step::kReview);
}

TEST(CertificatePlanner, ServingCertificatesAreForTheNodesOwnNamesAndAddresses) {
  const NodesByName nodes{{"n1", Node("n1", "10.0.0.1")},
                          {"n2", Node("n2", "fd00:0::2")},
                          {"n4", Node("n4", "10.0.0.3")},
                          {"api.example.com", Node("api.example.com", "10.0.0.5")},
                          {"kubernetes.default.svc", Node("kubernetes.default.svc", "10.0.0.6")}};
  const auto ask = [&](std::string_view node, std::vector<std::string> names,
                       std::vector<std::string> addresses, std::string_view user,
                       std::string_view groups = R"(["system:nodes"])") {
    const CertificateSubject subject{
        StrCat("system:node:", node), {"system:nodes"}, std::move(names), std::move(addresses)};
    return PlanApproval(*Request({kNodeServingSigner, subject, kServingUsages, user, groups}),
                        nodes, {"10.0.0.3", "api.example.com"});
  };
  EXPECT_EQ(ask("n1", {"n1"}, {"10.0.0.1"}, "system:node:n1").step, Step::kApprove);
  EXPECT_EQ(ask("n2", {}, {"fd00::2"}, "system:node:n2").step, Step::kApprove);
  // Names and addresses of others, or of nobody.
  EXPECT_EQ(ask("n1", {"n2"}, {}, "system:node:n1").step, Step::kWait);
  EXPECT_EQ(ask("n1", {}, {"10.0.0.9"}, "system:node:n1").message,
            "node \"n1\" does not have the address \"10.0.0.9\"");
  // In another node's name, by somebody who only has the name, or by an administrator: by hand.
  EXPECT_EQ(ask("n1", {"n1"}, {}, "system:node:n2").step, Step::kNothing);
  EXPECT_EQ(ask("n1", {"n1"}, {}, "system:node:n1", "[]").step, Step::kNothing);
  EXPECT_EQ(ask("n1", {"n1"}, {}, "admin").step, Step::kNothing);
  // Names of the API server, though the node claims to have them.
  EXPECT_EQ(ask("api.example.com", {"api.example.com"}, {}, "system:node:api.example.com").step,
            Step::kWait);
  EXPECT_EQ(ask("n4", {}, {"10.0.0.3"}, "system:node:n4").message,
            "\"10.0.0.3\" belongs to the API server or a Service; if the node runs on the API "
            "server's machine, approve the request by hand");
  EXPECT_EQ(ask("kubernetes.default.svc", {"kubernetes.default.svc"}, {},
                "system:node:kubernetes.default.svc")
                .step,
            Step::kWait);
  // A node that is not registered yet.
  EXPECT_EQ(ask("n3", {"n3"}, {}, "system:node:n3").step, Step::kWait);
}

TEST(CertificatePlanner, AnAddressThatTwoNodesClaimIsForAnAdministrator) {
  const NodesByName nodes{{"n1", Node("n1", "10.0.0.1")}, {"n2", Node("n2", "10.0.0.1")}};
  const CertificateSubject subject{"system:node:n2", {"system:nodes"}, {}, {"10.0.0.1"}};
  const ApprovalPlan plan = PlanApproval(*Request({kNodeServingSigner, subject, kServingUsages,
                                                   "system:node:n2", R"(["system:nodes"])"}),
                                         nodes, {});
  EXPECT_EQ(plan.step, Step::kWait);
  EXPECT_EQ(plan.message, "\"10.0.0.1\" belongs to node \"n1\" as well");
}

TEST(CertificatePlanner, OtherSignersAndDecidedRequestsAreLeftAlone) {
  EXPECT_EQ(PlanApproval(*Request({kClientSigner, kNode, kClientUsages}), {}, {}).step,
            Step::kNothing);
  for (const char* type : {"Approved", "Denied"}) {
    const std::string status =
        StrCat(R"({"conditions":[{"type":")", type, R"(","status":"True"}]})");
    EXPECT_EQ(PlanApproval(*Request({.signer = kNodeClientSigner,
                                     .subject = kNode,
                                     .usages = kClientUsages,
                                     .status = status}),
                           {}, {})
                  .step,
              Step::kNothing);
  }
}

constexpr std::string_view kApproved = R"({"conditions":[{"type":"Approved","status":"True"}]})";
const SigningTerms kTerms{kNow, kNow + hours(24 * 3650), hours(24 * 365)};

SigningPlan Signing(std::string_view signer, const CertificateSubject& subject,
                    std::string_view usages, std::string_view more = "",
                    std::string_view status = kApproved) {
  return PlanSigning(
      *Request(
          {.signer = signer, .subject = subject, .usages = usages, .status = status, .more = more}),
      kTerms);
}

TEST(CertificatePlanner, ApprovedRequestsAreSignedOnceWithinTheirSignersRules) {
  using SStep = SigningPlan::Step;
  EXPECT_EQ(Signing(kNodeClientSigner, kNode, kClientUsages).step, SStep::kSign);
  EXPECT_EQ(Signing(kNodeClientSigner, kNode, kClientUsages, "", "{}").step, SStep::kNothing);
  EXPECT_EQ(Signing("example.com/mine", kNode, kClientUsages).step, SStep::kNothing);
  for (const char* type : {"Denied", "Failed"}) {
    EXPECT_EQ(Signing(kNodeClientSigner, kNode, kClientUsages, "",
                      StrCat(R"({"conditions":[{"type":"Approved","status":"True"},{"type":")",
                             type, R"(","status":"True"}]})"))
                  .step,
              SStep::kNothing);
  }
  EXPECT_EQ(Signing(kNodeClientSigner, kNode, kClientUsages, "",
                    R"({"certificate":"eA==","conditions":[{"type":"Approved","status":"True"}]})")
                .step,
            SStep::kNothing);
  const SigningPlan failed = Signing(kNodeClientSigner, kNode, kServingUsages);
  EXPECT_EQ(failed.step, SStep::kFail);
  EXPECT_EQ(failed.message,
            "usages did not match [client auth digital signature key encipherment]");
  // The older signer has no rules.
  const SigningPlan legacy =
      Signing(kLegacySigner, {"any", {"group"}, {}, {}}, R"(["signing","any","s/mime"])");
  EXPECT_EQ(legacy.step, SStep::kSign);
  EXPECT_EQ(legacy.usages.key, std::vector<std::string>{"digitalSignature"});
  EXPECT_EQ(legacy.usages.extended,
            (std::vector<std::string>{"anyExtendedKeyUsage", "emailProtection"}));
}

TEST(CertificatePlanner, LifetimesAreBounded) {
  const auto end = [](std::string_view more) {
    return Signing(kNodeClientSigner, kNode, kClientUsages, more).validity.not_after - kNow;
  };
  EXPECT_EQ(end(""), hours(24 * 365) - minutes(5));
  EXPECT_EQ(end(R"(,"expirationSeconds":864000)"), hours(240) - minutes(5));
  EXPECT_EQ(end(R"(,"expirationSeconds":3600)"), hours(1));
  EXPECT_EQ(end(R"(,"expirationSeconds":1)"), minutes(10));
  EXPECT_EQ(end(R"(,"expirationSeconds":2000000000)"), hours(24 * 365) - minutes(5));
  // Not longer than the CA.
  SigningTerms terms = kTerms;
  terms.ca_expires = kNow + hours(5);
  const SigningPlan plan = PlanSigning(*Request({.signer = kNodeClientSigner,
                                                 .subject = kNode,
                                                 .usages = kClientUsages,
                                                 .status = kApproved}),
                                       terms);
  EXPECT_EQ(plan.validity.not_after, terms.ca_expires);
  EXPECT_EQ(plan.validity.not_before, kNow - minutes(5));
}

TEST(CertificatePlanner, RequestsAreDeletedWhenTheyAreOver) {
  const auto left = [](std::string_view status) {
    const std::string text(status);
    const std::optional<WallTime> due = DeletionTime(*Request(
        {.signer = kClientSigner, .subject = kNode, .usages = kClientUsages, .status = text}));
    return due ? *due - kNow : Duration(-1);
  };
  const auto with = [](std::string_view type, std::string_view more = "") {
    return StrCat(R"({"conditions":[{"type":")", type, R"(","status":"True","lastUpdateTime":")",
                  api::FormatTime(kNow), R"("}])", more, "}");
  };
  EXPECT_EQ(left("{}"), hours(24));
  EXPECT_EQ(left(with("Denied")), hours(1));
  EXPECT_EQ(left(with("Failed")), hours(1));
  EXPECT_EQ(left(with("Approved")), hours(24));
  const std::string soon = net::CreateCa("x", {kNow, kNow + minutes(20)}).value().certificate_pem;
  const std::string late = net::CreateCa("x", {kNow, kNow + hours(20)}).value().certificate_pem;
  const auto issued = [&](const std::string& pem) {
    return with("Approved", StrCat(R"(,"certificate":")", Base64Encode(pem), "\""));
  };
  EXPECT_EQ(left(issued(late)), hours(1));
  EXPECT_EQ(left(issued(soon)), minutes(20));
}

}  // namespace
}  // namespace drakkar::controllers
