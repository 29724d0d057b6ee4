#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::metadata {

// A file is a stream of JSON documents that all say the same, each in another version, newest
// first; mostly it is one document.

// Larger files are refused. 128 devices with all the attributes the API allows fit many times.
inline constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

bool IsKnownVersion(std::string_view api_version);

// One document per version, in the order given, each ended by a line end. Versions must be known.
// kKubernetes: the fields of the API alone. kKep: networkData also has the keys of the KEP's
// examples, `addresses` and `hwAddress`, which decoders that go by the API ignore.
std::string EncodeMetadata(const DeviceMetadata& metadata, std::span<const std::string> versions,
                           Dialect dialect = Dialect::kKubernetes);

// A document as it was read: fields of its version only, in the form Kubernetes would write.
struct Document {
  std::string api_version;
  api::TreePtr tree;
};

struct DecodeOptions {
  // kKep: networkData may also have the KEP's keys `addresses` and `hwAddress`.
  Dialect dialect = Dialect::kKep;
};

// The first document of a known version; what follows it is not looked at. Documents of unknown
// versions are passed over, unknown fields of a known version are left out. Errors, in the words of
// Kubernetes: text that is no JSON, a document that does not say its version or kind, a value of
// the wrong type, and streams without a document, or with none of a known version.
Result<Document> DecodeDocument(std::string_view stream, const DecodeOptions& options = {});

// The same document in another version, or ("") without one.
api::TreePtr ConvertDocument(const Document& document, std::string_view api_version);

// In plain types. Attributes of a type we do not know are left out; one with several values is an
// error.
Result<DeviceMetadata> ToDeviceMetadata(const Document& document);

// DecodeDocument and ToDeviceMetadata in one.
Result<DeviceMetadata> DecodeMetadata(std::string_view stream, const DecodeOptions& options = {});

// Files of several drivers for one request as one: requests of one name are joined, the first name
// in the pod counts. What is about the claim is taken from the first file; in the dialect of
// Kubernetes it is left out.
DeviceMetadata MergeMetadata(const std::vector<DeviceMetadata>& files,
                             Dialect dialect = Dialect::kKep);

}  // namespace drakkar::metadata
