#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/rest/remote_admission.h"
#include "base/result/result.h"

// AdmissionReview: the request to a webhook and its response.
namespace drakkar::apiserver {

enum class ReviewVersion { kV1, kV1beta1 };

// The review of a question. `shown` is the kind in the version that the webhook's rules match, and
// `object` the object in it (absent for a deletion).
std::string WriteAdmissionReview(ReviewVersion version, std::string_view uid,
                                 const RemoteQuestion& question, const api::KindSchema& shown,
                                 api::Value object);

struct AdmissionVerdict {
  bool is_allowed = false;
  std::optional<Failure> denial;  // of a rejection, with the webhook's name in the message
  api::TreePtr patch;             // a JSON patch; null if there is none or it is empty
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> annotations;
};

// Limits for what one answer may add to a response. The rest is cut off.
inline constexpr std::size_t kMaxWebhookWarnings = 50;
inline constexpr std::size_t kMaxWebhookWarningBytes = 1024;
inline constexpr std::size_t kMaxWebhookAnnotations = 50;
inline constexpr std::size_t kMaxWebhookCauses = 100;
inline constexpr std::size_t kMaxWebhookMessageBytes = std::size_t{16} << 10;
// A patch is parsed on the core's loop. A larger one is an error.
inline constexpr std::size_t kMaxWebhookPatchBytes = std::size_t{1536} << 10;

// Reads the answer of webhook `name` to the review with `uid`. Errors are those of Kubernetes.
Result<AdmissionVerdict> ReadAdmissionAnswer(api::Value review, ReviewVersion version,
                                             std::string_view name, std::string_view uid,
                                             bool may_mutate);

}  // namespace drakkar::apiserver
