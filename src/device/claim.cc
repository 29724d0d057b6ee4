#include "device/claim.h"

#include "base/text/text.h"

namespace drakkar::device {

std::string Claim::ToString() const {
  return ns.empty() ? name : StrCat(ns, "/", name);
}

}  // namespace drakkar::device
