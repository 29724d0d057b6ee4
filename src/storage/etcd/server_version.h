#pragma once

#include <string_view>

namespace drakkar::storage {

// Whether this release of etcd ("3.5.21") answers a watch's progress request only after every event
// up to the revision it reports. Earlier ones may overtake events (fixed in 3.4.31 and 3.5.13, the
// releases kube-apiserver requires as well). An unreadable version counts as an old one.
bool HasReliableProgress(std::string_view version);

}  // namespace drakkar::storage
