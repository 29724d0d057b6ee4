#pragma once

#include "api/tree/draft.h"

namespace drakkar::apiserver {

// Extends the label selectors of a new pod's affinity terms and topology spread constraints by the
// pod's own values for matchLabelKeys (In) and mismatchLabelKeys (NotIn), so that schedulers need
// only the selectors. A key that the pod has no label for adds nothing, and neither do keys without
// a selector, which matches no pod.
void MergeLabelKeys(api::Draft& pod);

}  // namespace drakkar::apiserver
