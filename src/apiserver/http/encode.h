#pragma once

#include <string>
#include <vector>

#include "apiserver/http/negotiate.h"
#include "apiserver/rest/request.h"
#include "net/http/message.h"

namespace drakkar::apiserver {

struct EncodedBody {
  std::string content_type;
  net::Body body;
};

// An object as the client wants it. JSON is the object's own bytes, shared.
EncodedBody EncodeObject(const Negotiated& negotiated, const api::Object& object);
// A list: its items are the objects' own bytes, one segment each.
EncodedBody EncodeList(const Negotiated& negotiated, const api::KindSchema& kind,
                       const Response& response);
EncodedBody EncodeFailure(const Negotiated& negotiated, const Failure& failure);

// Only type and metadata, as PartialObjectMetadata.
api::TreePtr ToPartialMetadata(const api::Object& object);

}  // namespace drakkar::apiserver
