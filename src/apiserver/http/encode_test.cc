#include "apiserver/http/encode.h"

#include <gtest/gtest.h>

#include "api/codec/protobuf_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "apiserver/conversion/skip_operations_form.h"
#include "net/compress/gzip.h"

namespace drakkar::apiserver {
namespace {

api::ObjectPtr MakeObject(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

api::ObjectPtr MakeSlice(std::string_view skip) {
  return MakeObject(
      std::string(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{)") +
      R"("name":"s","resourceVersion":"7"},"spec":{"driver":"d","skipNodeOperations":)" +
      std::string(skip) + "}}");
}

std::string Flat(const net::Body& body) {
  std::string all;
  for (const net::Segment& segment : body) all += *segment;
  return all;
}

// "<apiVersion> <kind> <JSON of the message>".
std::string Decode(std::string_view bytes, const char* type) {
  Result<api::ProtobufEnvelope> envelope = api::OpenProtobufEnvelope(bytes);
  if (!envelope.ok()) return envelope.error().message;
  Result<api::TreePtr> tree = api::ReadProtobuf(envelope->message, *api::FindStruct(type));
  if (!tree.ok()) return tree.error().message;
  return std::string(envelope->api_version) + " " + std::string(envelope->kind) + " " +
         api::WriteJson((*tree)->root());
}

Negotiated Accept(std::string_view accept, bool stream = false) {
  Negotiated negotiated;
  EXPECT_FALSE(NegotiateAccept(accept, stream, negotiated)) << accept;
  return negotiated;
}

TEST(Negotiate, ChoosesTheTypeThatTheClientPrefers) {
  EXPECT_EQ(Accept("").media, MediaType::kJson);
  EXPECT_EQ(Accept("application/vnd.kubernetes.protobuf, */*").media, MediaType::kProtobuf);
  EXPECT_EQ(Accept("application/vnd.kubernetes.protobuf,application/json").media,
            MediaType::kProtobuf);
  EXPECT_EQ(Accept("application/json;q=0.5, application/yaml").media, MediaType::kYaml);
  EXPECT_EQ(Accept("*/*, application/yaml").media, MediaType::kYaml) << "exact before any";
  EXPECT_EQ(Accept("application/yaml;q=0, application/json;q=0.1").media, MediaType::kJson);
}

TEST(Negotiate, TablesAreNotAvailableInProtobuf) {
  const Negotiated table = Accept(
      "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,"
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  EXPECT_EQ(table.media, MediaType::kJson);
  EXPECT_EQ(table.shape, Shape::kTable);
  Negotiated none;
  const std::optional<Failure> refused = NegotiateAccept(
      "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", false, none);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, 406);
  EXPECT_EQ(refused->message,
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
}

TEST(Negotiate, WatchesAreJsonOrProtobuf) {
  EXPECT_EQ(Accept("application/vnd.kubernetes.protobuf;stream=watch", true).media,
            MediaType::kProtobuf);
  EXPECT_EQ(Accept("application/json;stream=watch", true).media, MediaType::kJson);
  EXPECT_EQ(Accept("application/yaml, application/json", true).media, MediaType::kJson);
  Negotiated none;
  EXPECT_TRUE(NegotiateAccept("application/yaml", true, none));
  EXPECT_TRUE(NegotiateAccept("application/json;stream=watch", false, none));
}

TEST(Negotiate, GzipIsUsedUnlessItIsDeclined) {
  EXPECT_TRUE(AcceptsGzip("gzip"));
  EXPECT_TRUE(AcceptsGzip("deflate, gzip;q=0.5"));
  EXPECT_FALSE(AcceptsGzip("gzip;q=0"));
  EXPECT_FALSE(AcceptsGzip("identity"));
}

TEST(Encode, AnObjectIsEncodedOnceForGetListAndWatch) {
  const api::ObjectPtr slice = MakeSlice("true");
  const Negotiated protobuf = Accept("application/vnd.kubernetes.protobuf");
  const EncodedBody one = EncodeObject(protobuf, slice);
  EXPECT_EQ(one.content_type, "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(Decode(Flat(one.body), "io.k8s.api.resource.v1.ResourceSlice"),
            R"(resource.k8s.io/v1 ResourceSlice {"metadata":{"name":"s","resourceVersion":"7"},)"
            R"("spec":{"driver":"d","skipNodeOperations":["*"]}})");
  Response response;
  response.items = {slice, slice};
  response.revision = 9;
  response.continue_token = "t";
  const EncodedBody list =
      EncodeList(protobuf, *api::FindKind("resource.k8s.io", "v1", "ResourceSlice"), response);
  EXPECT_EQ(Decode(Flat(list.body), "io.k8s.api.resource.v1.ResourceSliceList"),
            R"(resource.k8s.io/v1 ResourceSliceList {"metadata":{"resourceVersion":"9",)"
            R"("continue":"t"},"items":[{"metadata":{"name":"s","resourceVersion":"7"},)"
            R"("spec":{"driver":"d","skipNodeOperations":["*"]}},{"metadata":{"name":"s",)"
            R"("resourceVersion":"7"},"spec":{"driver":"d","skipNodeOperations":["*"]}}]})");
  net::Body event;
  AppendEvent(protobuf, "ADDED", slice, event);
  EXPECT_EQ(one.body.back(), list.body.back());
  EXPECT_EQ(one.body.back(), event.back());
}

TEST(Encode, AWatchEventInProtobufIsAFrameWithItsLengthInFront) {
  net::Body body;
  AppendEvent(Accept("application/vnd.kubernetes.protobuf;stream=watch", true), "MODIFIED",
              MakeSlice("[\"NodeUnprepareResources\"]"), body);
  const std::string frame = Flat(body);
  ASSERT_GT(frame.size(), 4u);
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(frame[at]); };
  EXPECT_EQ(byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3), frame.size() - 4);
  // The event itself has no envelope, its object has one.
  const std::string_view event = std::string_view(frame).substr(4);
  EXPECT_EQ(event.substr(0, 10), "\x0a\x08MODIFIED");
  EXPECT_EQ(event[10], '\x12');
  const std::size_t magic = event.find(std::string_view("k8s\0", 4));
  ASSERT_NE(magic, std::string_view::npos);
  EXPECT_EQ(Decode(event.substr(magic), "io.k8s.api.resource.v1.ResourceSlice"),
            R"(resource.k8s.io/v1 ResourceSlice {"metadata":{"name":"s","resourceVersion":"7"},)"
            R"("spec":{"driver":"d","skipNodeOperations":["NodeUnprepareResources"]}})");
}

TEST(Encode, PartialMetadataIsServedInBothFormats) {
  const api::ObjectPtr slice = MakeSlice("false");
  EXPECT_EQ(Flat(EncodeObject(
                     Accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), slice)
                     .body),
            R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)"
            R"("metadata":{"name":"s","resourceVersion":"7"}})");
  const Negotiated protobuf =
      Accept("application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
  Response response;
  response.items = {slice};
  response.revision = 9;
  EXPECT_EQ(
      Decode(Flat(EncodeList(protobuf, *api::FindKind("resource.k8s.io", "v1", "ResourceSlice"),
                             response)
                      .body),
             "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList"),
      R"(meta.k8s.io/v1 PartialObjectMetadataList {"metadata":{"resourceVersion":"9"},)"
      R"("items":[{"metadata":{"name":"s","resourceVersion":"7"}}]})");
}

TEST(Encode, AnExpiredListReturnsATokenToContinueWith) {
  const EncodedBody failed = EncodeFailure(Negotiated{}, api::StatusExpired("too old"), "token");
  EXPECT_NE(Flat(failed.body).find(R"("metadata":{"continue":"token"},"status":"Failure")"),
            std::string::npos);
}

TEST(Encode, FailuresUseTheFormatOfTheClient) {
  const EncodedBody failed =
      EncodeFailure(Accept("application/vnd.kubernetes.protobuf"), api::StatusBadRequest("no"));
  EXPECT_EQ(Decode(Flat(failed.body), "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
            R"(v1 Status {"metadata":{},"status":"Failure","message":"no","reason":"BadRequest",)"
            R"("code":400})");
}

TEST(SkipOperationsForm, TrueBecomesAListFalseIsDroppedAndListsAreKept) {
  const auto skip = [](std::string_view written) {
    return api::WriteJson(
        (*WithSkipOperationsAsList(MakeSlice(written)))["spec"]["skipNodeOperations"]);
  };
  EXPECT_EQ(skip("true"), R"(["*"])");
  EXPECT_EQ(skip(R"(["NodePrepareResources","*"])"), R"(["NodePrepareResources","*"])");
  EXPECT_FALSE(
      (*WithSkipOperationsAsList(MakeSlice("false")))["spec"]["skipNodeOperations"].exists());
  const api::ObjectPtr claim =
      MakeObject(R"({"kind":"ResourceClaim","status":{"allocation":{"devices":{"results":[)"
                 R"({"device":"a"},{"device":"b","skipNodeOperations":true},)"
                 R"({"device":"c","skipNodeOperations":["*"]}]}}}})");
  EXPECT_EQ(api::WriteJson((*WithSkipOperationsAsList(claim))["status"]),
            R"({"allocation":{"devices":{"results":[{"device":"a"},)"
            R"({"device":"b","skipNodeOperations":["*"]},)"
            R"({"device":"c","skipNodeOperations":["*"]}]}}})");
  const api::ObjectPtr list = MakeSlice(R"(["*"])");
  EXPECT_EQ(WithSkipOperationsAsList(list), list);
}

TEST(GzipTest, CompressedBodiesCanBeDecompressed) {
  std::string large;
  for (int i = 0; i < 50'000; ++i) large += std::to_string(i * 7919);
  const net::Body body = {net::MakeSegment("head"), net::MakeSegment(""), net::MakeSegment(large)};
  const std::string packed = net::Gzip(body);
  EXPECT_LT(packed.size(), large.size());
  EXPECT_EQ(net::Gunzip(packed, 1 << 20), "head" + large);
  EXPECT_EQ(net::Gunzip(packed, 1000), std::nullopt) << "more than the caller takes";
  EXPECT_EQ(net::Gunzip(packed.substr(0, packed.size() / 2), 1 << 20), std::nullopt);
}

}  // namespace
}  // namespace drakkar::apiserver
