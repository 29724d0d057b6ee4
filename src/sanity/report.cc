#include "sanity/report.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::sanity {
namespace {

const char* Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "pass";
    case Outcome::kFailed:
      return "FAIL";
    case Outcome::kSkipped:
      return "skip";
  }
  return "";
}

}  // namespace

std::size_t Report::Count(Outcome outcome) const {
  return static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(),
                    [outcome](const CheckResult& check) { return check.outcome == outcome; }));
}

std::string RenderTable(const Report& report) {
  std::size_t width = 5;
  for (const CheckResult& check : report.checks) width = std::max(width, check.id.size());
  const auto row = [&](std::string_view id, std::string_view outcome, std::string_view text) {
    return StrCat(id, std::string(width - id.size() + 3, ' '), outcome,
                  std::string(9 - outcome.size(), ' '), text, "\n");
  };
  std::string text = row("CHECK", "RESULT", "WHAT");
  for (const CheckResult& check : report.checks) {
    text += row(check.id, Name(check.outcome), check.title);
    if (!check.why.empty()) text += row("", "", "  " + check.why);
  }
  text += StrCat("driver ", report.driver.empty() ? "(unknown)" : report.driver, ": ",
                 report.Count(Outcome::kPassed), " passed, ", report.Count(Outcome::kFailed),
                 " failed, ", report.Count(Outcome::kSkipped), " skipped\n");
  return text;
}

std::string RenderJson(const Report& report) {
  using api::Draft;
  Draft checks = Draft::Array();
  for (const CheckResult& check : report.checks) {
    Draft entry = {{"id", Draft(check.id)},
                   {"title", Draft(check.title)},
                   {"result", Draft(ToLower(Name(check.outcome)))}};
    if (!check.why.empty()) entry["why"] = check.why;
    checks.Append(std::move(entry));
  }
  Draft document = {{"driver", Draft(report.driver)},
                    {"passed", Draft(report.Count(Outcome::kPassed))},
                    {"failed", Draft(report.Count(Outcome::kFailed))},
                    {"skipped", Draft(report.Count(Outcome::kSkipped))}};
  document["checks"] = std::move(checks);
  return api::WriteJson(document.Freeze()->root(), {.indent = 2, .final_newline = true});
}

}  // namespace drakkar::sanity
