#pragma once

#include "base/result/result.h"
#include "cel/value/value.h"
#include "device/device_input.h"

namespace drakkar::device {

// Converts an expression's value to an attribute. Lists must have elements of one kind; an empty
// list is a list of strings.
Result<AttributeValue> ToAttributeValue(const cel::Value& value);

}  // namespace drakkar::device
