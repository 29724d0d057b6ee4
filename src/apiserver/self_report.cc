#include "apiserver/self_report.h"

#include "api/json/json_writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/pki/pki.h"
#include "apiserver/registry/unattended.h"
#include "apiserver/rest/core.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

// Objects that the server creates itself do not count.
bool IsOwn(const api::Object& object) {
  return object.name().starts_with("system-") || object.qualified_name() == "default/kubernetes";
}

std::size_t CountUnattended(const Unattended& line, const WatchCache& cache) {
  std::size_t count = 0;
  for (const auto& [name, object] : cache.objects()) {
    if (IsOwn(*object)) continue;
    if (line.concerns == nullptr || line.concerns(object->root())) ++count;
  }
  return count;
}

}  // namespace

std::string SelfReport(const Core& core, const FeatureGates& gates, const Pki& pki, WallTime now) {
  api::JsonWriter json({.indent = 0, .escape_html = false, .final_newline = false});
  json.BeginObject().Key("now").String(api::FormatTime(now));
  json.Key("emulatedVersion").String(gates.emulated().ToString());
  json.Key("featureGates").BeginObject();
  for (std::size_t i = 0; i < static_cast<std::size_t>(Gate::kCount); ++i) {
    const Gate gate = static_cast<Gate>(i);
    if (gates.Known(gate)) json.Key(GateName(gate)).Bool(gates.Enabled(gate));
  }
  json.EndObject().Key("certificates").BeginArray();
  const auto add = [&](std::string_view name, const std::string& pem, std::string_view renewal) {
    const Result<net::CertificateInfo> info = net::ParseCertificate(pem);
    if (!info.ok()) return;
    json.BeginObject().Key("name").String(name);
    json.Key("notAfter").String(api::FormatTime(info->validity.not_after));
    json.Key("renewal").String(renewal).EndObject();
  };
  constexpr std::string_view kNewCa =
      "the cluster needs a new CA, and every client its certificate";
  add("CA of the cluster", pki.ca().certificate_pem, kNewCa);
  add("CA for front proxies", pki.front_proxy_ca().certificate_pem, kNewCa);
  add("certificate of the API server", pki.server_source()->Current()->certificate_pem,
      "the server renews it by itself");
  json.EndArray().Key("unattended").BeginArray();
  for (const Unattended& line : UnattendedKinds()) {
    const api::KindSchema* kind = nullptr;
    core.ForEachCache([&](const api::KindSchema& each, const WatchCache&) {
      if (each.group == line.group && each.kind == line.kind) kind = &each;
    });
    const WatchCache* cache = kind == nullptr ? nullptr : core.FindCache(kind->group, kind->plural);
    const std::size_t count = cache == nullptr ? 0 : CountUnattended(line, *cache);
    if (count == 0) continue;
    json.BeginObject().Key("kind").String(line.kind);
    json.Key("count").Integer(static_cast<std::int64_t>(count));
    json.Key("warning").String(line.warning).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace drakkar::apiserver
