#include "apiserver/rest/decode.h"

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/yaml_reader.h"
#include "api/json/reader.h"
#include "api/patch/json_patch.h"
#include "api/patch/merge_patch.h"
#include "api/patch/strategic.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/rest/custom_decode.h"
#include "apiserver/rest/field_managers.h"
#include "apiserver/validation/cause.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

std::optional<Failure> CheckKind(const api::KindSchema& kind, api::Value object) {
  const std::string_view given_kind = object["kind"].str();
  const std::string_view given_version = object["apiVersion"].str();
  const bool same_version = given_version.empty() || kind.is_api_version(given_version);
  if (same_version && (given_kind.empty() || given_kind == kind.kind)) return std::nullopt;
  // Evictions from before policy/v1 have the same content, and clients still send them.
  if (kind.kind == "Eviction" && given_kind == kind.kind && given_version == "policy/v1beta1") {
    return std::nullopt;
  }
  const std::string expected = kind.api_version();
  return api::StatusBadRequest(
      StrCat("the API version in the data (", given_version.empty() ? expected : given_version,
             ", Kind=", given_kind.empty() ? kind.kind : given_kind,
             ") does not match the expected API version (", expected, ", Kind=", kind.kind, ")"));
}

api::ObjectReadOptions OptionsFor(const Request& request) {
  api::ObjectReadOptions options;
  switch (request.field_validation) {
    case FieldValidation::kIgnore:
      options.strictness = api::Strictness::kIgnore;
      break;
    case FieldValidation::kWarn:
      options.strictness = api::Strictness::kWarn;
      break;
    case FieldValidation::kStrict:
      options.strictness = api::Strictness::kStrict;
      break;
  }
  return options;
}

Failure CannotBeHandled(const api::KindSchema& kind, const Error& error) {
  return api::StatusBadRequest(StrCat(kind.kind, " in version ", Quote(kind.version),
                                      " cannot be handled as a ", kind.kind, ": ", error.message));
}

std::optional<Failure> Take(const api::KindSchema& kind, Result<api::ObjectReadResult> read,
                            api::TreePtr& tree, std::vector<std::string>& warnings) {
  if (!read.ok()) return CannotBeHandled(kind, read.error());
  if (read->tree->size_bytes() > kMaxTreeBytes) {
    return api::StatusRequestEntityTooLarge(
        StrCat("the object has too many fields and list elements: it takes ",
               read->tree->size_bytes(), " bytes of memory, the limit is ", kMaxTreeBytes));
  }
  tree = std::move(read->tree);
  for (std::string& warning : read->warnings) warnings.push_back(std::move(warning));
  return std::nullopt;
}

// A single YAML document (or JSON, which is YAML) without a schema.
std::optional<Failure> ParseOneYaml(const Request& request, api::TreePtr& tree,
                                    std::vector<std::string>& warnings) {
  std::vector<std::string> duplicates;
  api::YamlReadOptions options;
  if (request.field_validation != FieldValidation::kStrict) options.duplicates = &duplicates;
  Result<std::vector<api::TreePtr>> documents = api::ParseYaml(request.text, options);
  if (!documents.ok()) return api::StatusBadRequest(documents.error().message);
  if (documents->size() != 1) {
    return api::StatusBadRequest(
        StrCat("the body of the request must be one YAML document, not ", documents->size()));
  }
  tree = std::move(documents->front());
  if (request.field_validation == FieldValidation::kWarn) {
    for (std::string& duplicate : duplicates) warnings.push_back(std::move(duplicate));
  }
  return std::nullopt;
}

// A failure for an invalid patch or an invalid result.
Failure InvalidPatch(std::string_view patch, std::string_view why) {
  return api::StatusInvalid("", "", "", {Invalid("patch", patch, why)});
}

// Duplicate members are reported, rejected or ignored, depending on field validation.
std::optional<Failure> ParsePatch(const Request& request, api::TreePtr& patch,
                                  std::vector<std::string>& warnings) {
  if (request.decode_failure != nullptr) return *request.decode_failure;
  if (request.patch_tree != nullptr) {
    patch = request.patch_tree;
    for (const std::string& warning : request.decode_warnings) warnings.push_back(warning);
    return std::nullopt;
  }
  const bool looks = request.field_validation != FieldValidation::kIgnore;
  Result<api::TreePtr> parsed = api::ParseJson(request.text, {.refuse_duplicates = looks});
  if (!parsed.ok() && looks) {
    std::string why = parsed.error().message;
    if (request.patch == PatchKind::kJson) why = StrCat("json patch ", why);
    parsed = api::ParseJson(request.text, {.refuse_duplicates = false});
    if (parsed.ok() && request.field_validation == FieldValidation::kStrict) {
      return InvalidPatch(request.text, StrCat("strict decoding error: ", why));
    }
    if (parsed.ok()) warnings.push_back(std::move(why));
  }
  if (!parsed.ok()) {
    // Kubernetes names the decoding only for the other two patch types.
    const std::string_view prefix =
        request.patch == PatchKind::kStrategicMerge ? "" : "error decoding patch: ";
    return api::StatusBadRequest(StrCat(prefix, parsed.error().message));
  }
  patch = std::move(*parsed);
  return std::nullopt;
}

constexpr std::size_t kMaxPatchOperations = 10'000;

std::optional<Failure> ApplyPatch(const api::KindSchema& kind, const Request& request,
                                  const api::Object& before, api::TreePtr& patched,
                                  std::vector<std::string>& warnings) {
  api::TreePtr patch;
  if (std::optional<Failure> failure = ParsePatch(request, patch, warnings)) return failure;
  const api::Value change = patch->root();
  if (request.patch == PatchKind::kJson) {
    if (!change.is_array()) {
      return api::StatusBadRequest("error decoding patch: a JSON patch is a list of operations");
    }
    if (change.size() > kMaxPatchOperations) {
      return api::StatusRequestEntityTooLarge(
          StrCat("The allowed maximum operations in a JSON patch is ", kMaxPatchOperations,
                 ", got ", change.size()));
    }
  }
  Result<api::TreePtr> result = [&]() -> Result<api::TreePtr> {
    switch (request.patch) {
      case PatchKind::kJson:
        return api::ApplyJsonPatch(before.root(), change);
      case PatchKind::kMerge:
        return api::ApplyMergePatch(before.root(), change);
      case PatchKind::kStrategicMerge:
        return api::ApplyStrategicPatch(before.root(), change, *kind.schema);
      case PatchKind::kApply:
        break;
    }
    return Error{ErrorCode::kUnimplemented, "server-side apply is not supported yet"};
  }();
  if (WorkBudget::IsExceeded()) return TooMuchWorkFailure();
  if (!result.ok()) {
    if (result.error().code == ErrorCode::kUnimplemented) {
      return api::StatusUnsupportedMediaType(result.error().message);
    }
    // A JSON patch that does not apply may be due to the object as well as to the patch.
    Failure failure = request.patch == PatchKind::kJson
                          ? InvalidFailure(kind, request.name, {})
                          : api::StatusBadRequest(result.error().message);
    if (request.patch == PatchKind::kJson) {
      failure.message = StrCat("the server rejected our request due to an error in our request: ",
                               result.error().message);
    }
    return failure;
  }
  patched = std::move(*result);
  if (const std::optional<Failure> other = CheckKind(kind, patched->root())) {
    return InvalidPatch(request.text, other->message);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> DecodeBody(const api::KindSchema& kind, Request& request,
                                  std::vector<std::string>& warnings) {
  if (request.decode_failure != nullptr) return *request.decode_failure;
  if (request.is_decoded) {
    for (const std::string& warning : request.decode_warnings) warnings.push_back(warning);
    return std::nullopt;
  }
  if (kind.family != nullptr) {
    if (request.object == nullptr) {
      if (std::optional<Failure> failure = ParseCustomBody(request, request.object, warnings)) {
        return failure;
      }
    }
    if (std::optional<Failure> failure = CheckKind(kind, request.object->root())) return failure;
    return NormalizeCustom(kind, request, request.object, warnings);
  }
  if (request.object == nullptr) {
    if (request.encoding == Request::Encoding::kProtobuf) {
      Result<api::ProtobufEnvelope> envelope = api::OpenProtobufEnvelope(request.text);
      if (!envelope.ok()) return api::StatusBadRequest(envelope.error().message);
      Result<api::TreePtr> tree = api::ReadProtobuf(envelope->message, *kind.schema);
      if (!tree.ok()) return CannotBeHandled(kind, tree.error());
      api::Draft draft(*tree);
      draft["apiVersion"] = envelope->api_version;
      draft["kind"] = envelope->kind;
      const api::TreePtr named = draft.Freeze();
      if (std::optional<Failure> failure = CheckKind(kind, named->root())) return failure;
      return Take(kind, api::ConvertObject(named, *kind.schema, OptionsFor(request)),
                  request.object, warnings);
    }
    if (request.encoding == Request::Encoding::kYaml) {
      api::TreePtr plain;
      if (std::optional<Failure> failure = ParseOneYaml(request, plain, warnings)) return failure;
      if (std::optional<Failure> failure = CheckKind(kind, plain->root())) return failure;
      return Take(kind, api::ConvertObject(plain, *kind.schema, OptionsFor(request)),
                  request.object, warnings);
    }
    if (std::optional<Failure> failure =
            Take(kind, api::ReadObject(request.text, *kind.schema, OptionsFor(request)),
                 request.object, warnings)) {
      return failure;
    }
    return CheckKind(kind, request.object->root());
  }
  // A tree from this process: normalized like one that was parsed.
  if (std::optional<Failure> failure = CheckKind(kind, request.object->root())) return failure;
  return Take(kind, api::ConvertObject(request.object, *kind.schema, OptionsFor(request)),
              request.object, warnings);
}

namespace {

// The kind of the body that DecodeEarly handles, or null.
const api::KindSchema* KindOfBody(const Request& request) {
  const std::string_view subresource = request.subresource;
  if (subresource == "binding") return api::FindKind("", "v1", "Binding");
  const bool is_whole = subresource.empty() || subresource == "status" || subresource == "resize" ||
                        subresource == "ephemeralcontainers" || subresource == "finalize" ||
                        subresource == "approval";
  return is_whole ? request.kind : nullptr;
}

}  // namespace

bool IsDecodedEarly(const Request& request) {
  switch (request.verb) {
    case Verb::kCreate:
    case Verb::kUpdate:
      return KindOfBody(request) != nullptr;
    case Verb::kPatch:
      return request.subresource != "scale";
    default:
      return false;
  }
}

void DecodeEarly(Request& request) {
  if (!IsDecodedEarly(request)) return;
  std::vector<std::string> warnings;
  std::optional<Failure> failure;
  if (request.verb == Verb::kPatch) {
    failure = request.patch == PatchKind::kApply
                  ? ParseApplied(request, request.patch_tree, warnings)
                  : ParsePatch(request, request.patch_tree, warnings);
  } else {
    failure = DecodeBody(*KindOfBody(request), request, warnings);
    request.is_decoded = !failure;
    if (request.is_decoded) request.text = std::string();
  }
  if (failure) request.decode_failure = std::make_shared<const Failure>(std::move(*failure));
  request.decode_warnings = std::move(warnings);
}

std::optional<Failure> BuildUpdate(const api::KindSchema& kind, Request& request,
                                   const api::ObjectPtr& before, api::TreePtr& asked,
                                   std::vector<std::string>& warnings) {
  if (request.verb == Verb::kUpdate) {
    if (std::optional<Failure> failure = DecodeBody(kind, request, warnings)) return failure;
    asked = request.object;
    return std::nullopt;
  }
  api::TreePtr patched;
  if (std::optional<Failure> failure =
          ApplyPatch(kind, request, *ConvertObjectTo(before, kind), patched, warnings)) {
    return failure;
  }
  if (kind.family != nullptr) {
    asked = std::move(patched);
    return NormalizeCustom(kind, request, asked, warnings);
  }
  return Take(kind, api::ConvertObject(patched, *kind.schema, OptionsFor(request)), asked,
              warnings);
}

}  // namespace drakkar::apiserver
