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

// A file is a stream of JSON documents with the same content in different versions, newest first.
// Most files have one document.

// Larger files are rejected. 128 devices with every attribute the API allows fit many times over.
inline constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

bool IsKnownVersion(std::string_view api_version);

// One document per version, in the order given, each ended by a line end. Versions must be known.
// kKubernetes: the fields of the API alone. kKep: networkData also has the keys of the KEP's
// examples, `addresses` and `hwAddress`, which decoders that go by the API ignore.
std::string EncodeMetadata(const DeviceMetadata& metadata, std::span<const std::string> versions,
                           Dialect dialect = Dialect::kKubernetes);

// A document as it was read: only fields of its version, in the form Kubernetes would write.
struct Document {
  std::string api_version;
  api::TreePtr tree;
};

struct DecodeOptions {
  // kKep: networkData may also have the KEP's keys `addresses` and `hwAddress`.
  Dialect dialect = Dialect::kKep;
};

// The first document of a known version; later ones are ignored. Documents of unknown versions are
// skipped, and so are unknown fields of a known version. Errors, in Kubernetes' words: invalid
// JSON, a document without version or kind, a value of the wrong type, and a stream without a
// document of a known version.
Result<Document> DecodeDocument(std::string_view stream, const DecodeOptions& options = {});

// The same document in another version, or ("") without a version.
api::TreePtr ConvertDocument(const Document& document, std::string_view api_version);

// Converts to plain types. Attributes of unknown types are dropped; one with several values is an
// error.
Result<DeviceMetadata> ToDeviceMetadata(const Document& document);

// DecodeDocument and ToDeviceMetadata in one.
Result<DeviceMetadata> DecodeMetadata(std::string_view stream, const DecodeOptions& options = {});

// Merges the files of several drivers for one request: requests of the same name are joined, and
// the first file's name in the pod counts. Claim data is taken from the first file; in the
// Kubernetes dialect it is omitted.
DeviceMetadata MergeMetadata(const std::vector<DeviceMetadata>& files,
                             Dialect dialect = Dialect::kKep);

}  // namespace drakkar::metadata
