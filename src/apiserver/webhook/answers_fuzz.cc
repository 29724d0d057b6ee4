// Answers of admission and conversion webhooks. The first byte chooses the kind and version.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/webhook/conversion_review.h"
#include "apiserver/webhook/review.h"
#include "base/result/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::apiserver;
  if (size == 0) return 0;
  const auto review =
      api::ParseJson(std::string_view(reinterpret_cast<const char*>(data + 1), size - 1),
                     {.refuse_duplicates = false});
  if (!review.ok()) return 0;
  const bool is_v1 = (data[0] & 1) != 0;
  if ((data[0] & 2) != 0) {
    const bool may_mutate = (data[0] & 4) != 0;
    const auto verdict =
        ReadAdmissionAnswer((*review)->root(), is_v1 ? ReviewVersion::kV1 : ReviewVersion::kV1beta1,
                            "hook.example.com", "u", may_mutate);
    if (!verdict.ok()) return 0;
    CHECK(verdict->is_allowed == !verdict->denial.has_value());
    CHECK(verdict->warnings.size() <= kMaxWebhookWarnings);
    CHECK(verdict->annotations.size() <= kMaxWebhookAnnotations);
    CHECK(verdict->patch == nullptr || (may_mutate && verdict->patch->root().is_array()));
    if (verdict->denial) {
      CHECK(verdict->denial->code >= 400 && verdict->denial->code < 600);
      CHECK(verdict->denial->message.size() <= kMaxWebhookMessageBytes + 4096);
    }
    return 0;
  }
  static const api::TreePtr original =
      api::Draft{{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "n"}, {"namespace", "d"}, {"uid", "1"}}}}
          .Freeze();
  const auto objects =
      ReadConversionAnswer((*review)->root(), is_v1 ? "v1" : "v1beta1", "u",
                           *api::FindKind("", "v1", "ConfigMap"), {original, original});
  if (!objects.ok()) return 0;
  CHECK(objects->size() == 2);
  for (const api::TreePtr& each : *objects) {
    CHECK(each->root()["metadata"]["name"].str() == "n");
    CHECK(each->root()["metadata"]["uid"].str() == "1");
    CHECK(each->root()["metadata"]["ownerReferences"].empty());
  }
  return 0;
}
