#pragma once

#include "base/result/result.h"
#include "cel/value/value.h"
#include "device/device_input.h"

namespace drakkar::device {

// The attribute an expression's value stands for. Lists must have one kind of element; an empty
// list is a list of strings.
Result<AttributeValue> ToAttributeValue(const cel::Value& value);

}  // namespace drakkar::device
