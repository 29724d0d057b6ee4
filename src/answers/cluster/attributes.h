#pragma once

#include <string>
#include <string_view>

#include "device/slice.h"

namespace drakkar::answers {

// Formats a value for people; list elements are separated by commas.
std::string AttributeText(const device::AttributeValue& value);

// The attribute `name` of a device: "domain/id", or a bare id in any domain. Empty if there is
// none.
std::string FindAttributeText(std::string_view driver, const device::Device& device,
                              std::string_view name);

// The attribute that names the model: the first of model, productName, product and type that the
// device has. Empty if it has none.
std::string ModelOf(std::string_view driver, const device::Device& device);

}  // namespace drakkar::answers
