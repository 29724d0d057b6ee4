#include "answers/render/doctor.h"

#include <algorithm>

#include "answers/render/columns.h"
#include "answers/render/json.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

std::string_view NameOf(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

// Two spaces before the first line, four before the others.
std::string Indented(const std::string& text, std::size_t width) {
  return "  " + Wrap(text, width == 0 ? 0 : width - 2, 4);
}

std::string Plural(std::size_t count, std::string_view word) {
  return StrCat(count, " ", word, count == 1 ? "" : "s");
}

}  // namespace

std::string RenderDoctor(const DoctorAnswer& answer, const RenderOptions& options) {
  std::string text = RenderNotes(answer.notes, options.width);
  if (answer.findings.empty()) {
    return text +
           Wrap(StrCat("no problems found by ", Plural(answer.checks, "check")), options.width);
  }
  text += Wrap(StrCat(Plural(answer.CountOf(Severity::kError), "error"), ", ",
                      Plural(answer.CountOf(Severity::kWarning), "warning"), " in ",
                      Plural(answer.checks, "check")),
               options.width);
  for (const Finding& finding : answer.findings) {
    text += "\n" + Wrap(StrCat(NameOf(finding.severity), " ", finding.check, ": ", finding.what),
                        options.width, 2);
    const std::size_t shown =
        options.wide ? finding.objects.size() : std::min(kShownObjects, finding.objects.size());
    for (std::size_t i = 0; i < shown; ++i) {
      text += Indented(StrCat("- ", finding.objects[i]), options.width);
    }
    if (shown < finding.objects.size() || finding.objects.size() == Finding::kMaxObjects) {
      text += StrCat("  - ... (-o json shows up to ", Finding::kMaxObjects, ")\n");
    }
    text += Indented(StrCat("what to do: ", finding.advice), options.width);
  }
  return text;
}

std::string DoctorToJson(const DoctorAnswer& answer) {
  JsonOut json;
  json.BeginObject()
      .Field("checks", answer.checks)
      .Field("errors", answer.CountOf(Severity::kError))
      .Field("warnings", answer.CountOf(Severity::kWarning))
      .Key("findings")
      .BeginArray();
  for (const Finding& finding : answer.findings) {
    json.BeginObject()
        .Field("severity", NameOf(finding.severity))
        .Field("check", finding.check)
        .Field("what", finding.what)
        .Field("advice", finding.advice)
        .Field("count", finding.count)
        .Texts("objects", finding.objects)
        .EndObject();
  }
  return json.EndArray().Texts("notes", answer.notes).EndObject().Take();
}

}  // namespace drakkar::answers
