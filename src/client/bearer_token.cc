#include "client/bearer_token.h"

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("client");

}  // namespace

const std::string& BearerToken::Get() {
  if (file_.empty()) return token_;
  if (!read_ || clock_.Monotonic() - *read_ >= kTokenAge) Read();
  return token_;
}

bool BearerToken::Replace(const std::string& used) {
  if (file_.empty()) return false;
  // Of several requests that were refused, the first one has read it already.
  if (token_ == used) Read();
  return token_ != used;
}

void BearerToken::Read() {
  read_ = clock_.Monotonic();
  const Result<std::string> text = files_.ReadFile(file_);
  if (!text.ok()) {
    kLog.Warning("the token stays as it is", {{"error", text.error().message}});
    return;
  }
  if (const std::string_view token = Trim(*text); !token.empty()) token_ = token;
}

}  // namespace drakkar::client
