#include "answers/doctor/doctor.h"

#include <algorithm>

#include "answers/doctor/checks.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

using Check = Finding (*)(const DoctorInput&, const DeviceTable&);
constexpr Check kChecks[] = {
    CheckDrivers,          CheckClasses,      CheckPools,      CheckLostNodes, CheckHeldButGone,
    CheckUnusedClaims,     CheckTerminating,  CheckCdi,        CheckClocks,    CheckGates,
    CheckDeclaredFeatures, CheckCertificates, CheckUnattended,
};

}  // namespace

std::string Count(std::size_t count, std::string_view one, std::string_view many) {
  if (count == 1) return StrCat("1 ", one);
  return many.empty() ? StrCat(count, " ", one, "s") : StrCat(count, " ", many);
}

void Add(Finding& finding, std::string object) {
  ++finding.count;
  if (finding.objects.size() < Finding::kMaxObjects) finding.objects.push_back(std::move(object));
}

std::size_t DoctorAnswer::CountOf(Severity severity) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& each) { return each.severity == severity; }));
}

DoctorAnswer Diagnose(const DoctorInput& input) {
  DoctorAnswer answer;
  answer.notes = input.snapshot.notes;
  answer.notes.insert(answer.notes.end(), input.notes.begin(), input.notes.end());
  const DeviceTable table(input.snapshot, {.compiler = &input.compiler});
  answer.notes.insert(answer.notes.end(), table.notes().begin(), table.notes().end());
  for (const Check check : kChecks) {
    Finding finding = check(input, table);
    ++answer.checks;
    if (finding.count > 0) answer.findings.push_back(std::move(finding));
  }
  std::stable_sort(answer.findings.begin(), answer.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     if (a.severity != b.severity) return a.severity < b.severity;
                     return a.count > b.count;
                   });
  return answer;
}

std::optional<ServerFacts> ReadServerFacts(api::Value status) {
  const Result<WallTime> now = api::ParseTime(status["now"].str());
  if (!now.ok()) return std::nullopt;
  ServerFacts facts;
  facts.now = *now;
  for (const api::MemberView& gate : status["featureGates"].members()) {
    facts.gates[std::string(gate.name)] = gate.value.boolean();
  }
  for (api::Value each : status["unattended"].elements()) {
    facts.unattended.push_back(
        {std::string(each["kind"].str()),
         static_cast<std::size_t>(std::max<std::int64_t>(each["count"].integer(), 0)),
         std::string(each["warning"].str())});
  }
  for (api::Value each : status["certificates"].elements()) {
    const Result<WallTime> not_after = api::ParseTime(each["notAfter"].str());
    if (!not_after.ok()) continue;
    facts.certificates.push_back(
        {std::string(each["name"].str()), *not_after, std::string(each["renewal"].str())});
  }
  return facts;
}

NodeDrivers ReadNodeDrivers(api::Value answer) {
  NodeDrivers node;
  for (api::Value each : answer["drivers"].elements()) {
    node.drivers[std::string(each["name"].str())] = each["connected"].boolean();
  }
  for (api::Value each : answer["cdiErrors"].elements()) {
    node.cdi_errors.emplace_back(each["file"].str(), each["error"].str());
  }
  return node;
}

}  // namespace drakkar::answers
