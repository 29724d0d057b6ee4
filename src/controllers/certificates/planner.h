#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "base/container/indexed_map.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "net/tls/certificates.h"

// The decisions about a CertificateSigningRequest. Pure functions.
namespace drakkar::controllers {

inline constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";
inline constexpr std::string_view kNodeClientSigner = "kubernetes.io/kube-apiserver-client-kubelet";
inline constexpr std::string_view kNodeServingSigner = "kubernetes.io/kubelet-serving";
inline constexpr std::string_view kLegacySigner = "kubernetes.io/legacy-unknown";

using Usages = std::set<std::string, std::less<>>;
// Whether the signer issues certificates for this subject and these usages, as in Kubernetes. An
// error names the violated rule.
Result<void> CheckNodeClient(const net::CertificateSubject& subject, const Usages& usages);
Result<void> CheckNodeServing(const net::CertificateSubject& subject, const Usages& usages);
Result<void> CheckApiServerClient(const Usages& usages);

using NodesByName = IndexedMap<api::ObjectPtr>::Ordered;

// Whether a request is approved without an administrator.
struct ApprovalPlan {
  enum class Step {
    kNothing,  // already decided, or not for our signers
    kReview,   // approve if the requester has one of the permissions
    kApprove,
    kWait,  // for a change of a Node; `message` says why
  };
  // A permission to create certificatesigningrequests/SUBRESOURCE, and the message of the approval.
  struct Review {
    std::string_view subresource;
    std::string_view message;
  };
  Step step = Step::kNothing;
  std::vector<Review> reviews = {};
  std::string message = {};
};
// Names and addresses of the API servers and of Services: a certificate of the cluster's CA for
// them would let a node pretend to be one.
using ReservedNames = std::set<std::string, std::less<>>;

// Approves client certificates of nodes by SubjectAccessReview, as in Kubernetes, except that
// nobody else gets one in the name of a node that is ready. Also approves serving certificates of
// nodes, which Kubernetes leaves to others: if the node itself asks, for its own name and the
// addresses in its status, no other node has them, and none is reserved (loopback addresses never
// are).
ApprovalPlan PlanApproval(const api::Object& request, const NodesByName& nodes,
                          const ReservedNames& reserved);

// The response to an approved request.
struct SigningPlan {
  enum class Step { kNothing, kFail, kSign };
  Step step = Step::kNothing;
  std::string message = {};      // of kFail
  std::string request_pem = {};  // of kSign, with the following
  net::CertificateUsages usages = {};
  net::Validity validity = {};
};
struct SigningTerms {
  WallTime now;
  WallTime ca_expires;
  Duration max_lifetime;
};
SigningPlan PlanSigning(const api::Object& request, const SigningTerms& terms);

// When a request is deleted: an hour after its decision, a day after the last activity, or when its
// certificate has expired.
std::optional<WallTime> DeletionTime(const api::Object& request);

}  // namespace drakkar::controllers
