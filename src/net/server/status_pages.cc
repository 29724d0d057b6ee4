#include "net/server/status_pages.h"

#include "base/text/text.h"

namespace drakkar::net {

StatusPages::Answer StatusPages::Health(std::string_view page, std::string_view only,
                                        bool verbose) const {
  std::string lines;
  bool fine = true;
  bool found = only.empty();
  for (const Check& check : options_.checks) {
    if (check.only_ready && page != "readyz") continue;
    if (!only.empty() && only != check.name) continue;
    found = true;
    const Result<void> result = check.run();
    fine = fine && result.ok();
    lines += result.ok() ? StrCat("[+]", check.name, " ok\n")
                         : StrCat("[-]", check.name, " failed: ", result.error().message, "\n");
  }
  if (!found) return {404, "404 page not found\n"};
  if (!fine) return {500, StrCat(lines, page, " check failed\n")};
  return {200, verbose ? StrCat(lines, page, " check passed\n") : "ok"};
}

StatusPages::Answer StatusPages::Find(const ServerRequest& request) const {
  if (request.method != Method::kGet) return {405, "only GET is supported\n"};
  for (const std::string_view page : {"healthz", "livez", "readyz"}) {
    std::string_view path = request.path;
    if (!path.starts_with(StrCat("/", page))) continue;
    path.remove_prefix(page.size() + 1);
    if (!path.empty() && path[0] != '/') continue;
    if (!path.empty()) path.remove_prefix(1);
    const Result<Query>& query = request.query();
    return Health(page, path, query.ok() && query->Has("verbose"));
  }
  const bool is_metrics = request.path == "/metrics";
  if (!is_metrics && (request.path != "/configz" || !options_.configz)) {
    return {404, "404 page not found\n"};
  }
  if (is_metrics) return {200, options_.metrics(), "text/plain; version=0.0.4; charset=utf-8"};
  return {200, options_.configz(), "application/json"};
}

bool StatusPages::IsGuarded(const ServerRequest& request) const {
  return options_.authorize && request.method == Method::kGet &&
         (request.path == "/metrics" || request.path == "/configz" || FindPage(request) != nullptr);
}

const StatusPages::Page* StatusPages::FindPage(const ServerRequest& request) const {
  for (const Page& page : options_.pages) {
    if (request.path.starts_with(StrCat(page.prefix, "/"))) return &page;
  }
  return nullptr;
}

void StatusPages::Handle(ServerRequest request, std::shared_ptr<ResponseWriter> writer) {
  const auto answer = [this, writer](const ServerRequest& asked) {
    const Page* page = asked.method == Method::kGet ? FindPage(asked) : nullptr;
    if (page != nullptr) return page->handle(asked, writer);
    Answer found = Find(asked);
    writer->Send(found.status, {{"Content-Type", found.type}}, std::move(found.text));
  };
  const auto prepare = [this, answer](const std::shared_ptr<const ServerRequest>& asked) {
    if (asked->path != "/metrics" || !options_.before_metrics) return answer(*asked);
    options_.before_metrics([asked, answer] { answer(*asked); });
  };
  const bool is_guarded = IsGuarded(request);
  const auto kept = std::make_shared<const ServerRequest>(std::move(request));
  if (!is_guarded) return prepare(kept);
  options_.authorize(*kept, [kept, writer, prepare](int status, std::string text) {
    if (status == 0) return prepare(kept);
    writer->Send(status, {{"Content-Type", "text/plain; charset=utf-8"}}, StrCat(text, "\n"));
  });
}

}  // namespace drakkar::net
