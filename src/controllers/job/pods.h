#pragma once

#include <cstdint>
#include <optional>

#include "api/meta/object.h"

namespace drakkar::controllers {

// A pod for a Job: its template with the tracking finalizer and, for an index, its name, label,
// annotation, hostname and environment variable. `replaced` is the failed pod of this index, if
// failures are counted per index; the new pod continues its count.
api::TreePtr JobPod(const api::ObjectPtr& job, std::optional<std::int64_t> index,
                    const api::Object* replaced);

}  // namespace drakkar::controllers
