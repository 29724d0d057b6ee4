#include "client/bearer_token.h"

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("client");

}  // namespace

const std::string& BearerToken::Get() {
  if (live_ != nullptr) return *live_;
  if (file_.empty()) return token_;
  if (!read_ || clock_.Monotonic() - *read_ >= kTokenAge) Read();
  return token_;
}

bool BearerToken::Replace(const std::string& used) {
  if (live_ != nullptr) return *live_ != used;
  if (file_.empty()) return false;
  // If several requests were rejected, the first has read the new token already.
  if (token_ == used) Read();
  return token_ != used;
}

void BearerToken::Read() {
  read_ = clock_.Monotonic();
  const Result<std::string> text = files_.ReadFile(file_);
  if (!text.ok()) {
    kLog.Warning("could not read the token file; keeping the last token",
                 {{"error", text.error().message}});
    return;
  }
  if (const std::string_view token = Trim(*text); !token.empty()) token_ = token;
}

}  // namespace drakkar::client
