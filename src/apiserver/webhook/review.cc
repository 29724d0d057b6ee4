#include "apiserver/webhook/review.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft_view.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/policy/admission_request.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

std::string_view ApiVersionOf(ReviewVersion version) {
  return version == ReviewVersion::kV1 ? "admission.k8s.io/v1" : "admission.k8s.io/v1beta1";
}

std::string Cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  // Do not cut in the middle of a character.
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit));
}

// "admission.k8s.io/v1, Kind=AdmissionReview", as Go shows it.
std::string ShownKind(std::string_view api_version, std::string_view kind) {
  return StrCat(api_version.find('/') == std::string_view::npos ? "/" : "", api_version,
                ", Kind=", kind);
}

Failure Denial(std::string_view name, Value status) {
  Failure denial;
  if (status.is_object()) denial = api::Status::FromTree(status);
  const std::int64_t code = status["code"].integer();  // FromTree has a default of its own
  denial.code = code < 400 || code > 599 ? 400 : static_cast<int>(code);
  for (std::string* each :
       {&denial.reason, &denial.name, &denial.group, &denial.kind, &denial.uid}) {
    *each = Cut(*each, kMaxWebhookWarningBytes);
  }
  if (denial.causes.size() > kMaxWebhookCauses) denial.causes.resize(kMaxWebhookCauses);
  for (auto& cause : denial.causes) {
    for (std::string* each : {&cause.reason, &cause.message, &cause.field}) {
      *each = Cut(*each, kMaxWebhookWarningBytes);
    }
  }
  const std::string by = StrCat("admission webhook ", Quote(name), " denied the request");
  if (!denial.message.empty()) {
    denial.message = StrCat(by, ": ", Cut(denial.message, kMaxWebhookMessageBytes));
  } else if (!denial.reason.empty()) {
    denial.message = StrCat(by, ": ", denial.reason);
  } else {
    denial.message = StrCat(by, " without explanation");
  }
  return denial;
}

}  // namespace

std::string WriteAdmissionReview(ReviewVersion version, std::string_view uid,
                                 const RemoteQuestion& question, const api::KindSchema& shown,
                                 Value object) {
  const AdmissionRequestTree described(*question.request, question.operation, shown,
                                       question.is_body ? question.kind : nullptr, question.name);
  Draft request(described.tree());
  request["uid"] = uid;
  request["object"] = object.has_value() ? Draft(object) : Draft(nullptr);
  if (question.before == nullptr) {
    request["oldObject"] = nullptr;
  } else {
    const api::ObjectPtr before =
        question.is_body ? question.before : ConvertObjectTo(question.before, shown);
    request["oldObject"] = Draft(before->tree());
  }
  Draft review{{"kind", "AdmissionReview"},
               {"apiVersion", ApiVersionOf(version)},
               {"request", std::move(request)}};
  return api::WriteJson(api::DraftView(review).root());
}

Result<AdmissionVerdict> ReadAdmissionAnswer(Value review, ReviewVersion version,
                                             std::string_view name, std::string_view uid,
                                             bool may_mutate) {
  const Value response = review["response"];
  if (!response.is_object()) return InvalidArgument("webhook response was absent");
  const bool is_strict = version == ReviewVersion::kV1;
  if (is_strict) {
    if (response["uid"].str() != uid) {
      return InvalidArgument(
          StrCat("expected response.uid=", Quote(uid), ", got ", Quote(response["uid"].str())));
    }
    const std::string_view expected = ApiVersionOf(version);
    if (review["apiVersion"].str() != expected || review["kind"].str() != "AdmissionReview") {
      return InvalidArgument(StrCat("expected webhook response of ",
                                    ShownKind(expected, "AdmissionReview"), ", got ",
                                    ShownKind(review["apiVersion"].str(), review["kind"].str())));
    }
  }
  const std::string_view encoded = response["patch"].str();
  const Value type = response["patchType"];
  if (is_strict && may_mutate) {
    if (!encoded.empty() && !type.has_value()) {
      return InvalidArgument("webhook returned response.patch but not response.patchType");
    }
    if (encoded.empty() && type.has_value()) {
      return InvalidArgument("webhook returned response.patchType but not response.patch");
    }
    if (type.has_value() && type.str().empty()) {
      return InvalidArgument("webhook returned invalid response.patchType of \"\"");
    }
  } else if (is_strict) {
    if (!encoded.empty()) {
      return InvalidArgument("validating webhook may not return response.patch");
    }
    if (type.has_value()) {
      return InvalidArgument("validating webhook may not return response.patchType");
    }
  }

  AdmissionVerdict verdict;
  verdict.is_allowed = response["allowed"].boolean();
  for (Value warning : response["warnings"].elements()) {
    if (verdict.warnings.size() >= kMaxWebhookWarnings) break;
    verdict.warnings.push_back(Cut(warning.str(), kMaxWebhookWarningBytes));
  }
  for (const auto& [key, annotation, value] : response["auditAnnotations"].members()) {
    if (verdict.annotations.size() >= kMaxWebhookAnnotations) break;
    verdict.annotations.emplace_back(Cut(annotation, kMaxWebhookWarningBytes),
                                     Cut(value.str(), kMaxWebhookWarningBytes));
  }
  if (!verdict.is_allowed) {
    verdict.denial = Denial(name, response["status"]);
    return verdict;
  }
  if (encoded.empty() || !may_mutate) return verdict;
  if (is_strict && type.str() != "JSONPatch") {
    return InvalidArgument(StrCat("unsupported patch type ", Quote(type.str())));
  }
  const Result<std::string> text = Base64Decode(encoded);
  if (!text.ok()) {
    return text.error().Prefixed("received undecodable patch in webhook response");
  }
  if (text->size() > kMaxWebhookPatchBytes) {
    return InvalidArgument(StrCat("the patch in the webhook response is larger than ",
                                  kMaxWebhookPatchBytes, " bytes"));
  }
  Result<api::TreePtr> patch = api::ParseJson(*text, {.refuse_duplicates = false});
  if (!patch.ok()) {
    return patch.error().Prefixed("received undecodable patch in webhook response");
  }
  if (!(*patch)->root().is_array() && (*patch)->root().has_value()) {
    return InvalidArgument(
        "received undecodable patch in webhook response: a JSON patch is a list of operations");
  }
  if ((*patch)->root().size() > 0) verdict.patch = *std::move(patch);
  return verdict;
}

}  // namespace drakkar::apiserver
