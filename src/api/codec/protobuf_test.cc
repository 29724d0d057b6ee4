#include <gtest/gtest.h>

#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"

namespace drakkar::api {
namespace {

// Builds messages by hand, so that a mistake in the reader does not cancel out.
std::string Varint(std::uint64_t value) {
  std::string out;
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  return out + static_cast<char>(value);
}
std::string Bytes(int number, std::string_view content) {
  return Varint(static_cast<std::uint64_t>(number) << 3 | 2) + Varint(content.size()) +
         std::string(content);
}
std::string Number(int number, std::uint64_t value) {
  return Varint(static_cast<std::uint64_t>(number) << 3) + Varint(value);
}
std::string Entry(std::string_view key, std::string_view value) {
  return Bytes(1, key) + Bytes(2, value);
}

std::string Read(const char* kind, std::string_view message) {
  Result<TreePtr> tree = ReadProtobuf(message, *FindKind("", "v1", kind)->schema);
  return tree.ok() ? WriteJson((*tree)->root()) : tree.error().message;
}

TEST(Protobuf, ReadsTextsMapsListsNumbersAndNestedMessages) {
  const std::string metadata = Bytes(1, "a") + Bytes(11, Entry("k", "v")) +
                               Bytes(11, Entry("l", "")) +
                               Bytes(8, Number(1, 1'700'000'000) + Number(2, 0));
  const std::string port = Bytes(1, "web") + Number(3, 8080);
  const std::string container = Bytes(1, "c") + Bytes(2, "i:1") + Bytes(3, "sh") + Bytes(3, "-c") +
                                Bytes(6, port) + Bytes(8, Bytes(2, Entry("cpu", Bytes(1, "500m"))));
  const std::string spec = Bytes(2, container) + Number(4, 30) + Bytes(3, "Never");
  EXPECT_EQ(Read("Pod", Bytes(1, metadata) + Bytes(2, spec)),
            R"({"metadata":{"name":"a","labels":{"k":"v","l":""},"creationTimestamp":)"
            R"("2023-11-14T22:13:20Z"},"spec":{"containers":[{"name":"c","image":"i:1",)"
            R"("command":["sh","-c"],"ports":[{"name":"web","containerPort":8080}],)"
            R"("resources":{"requests":{"cpu":"500m"}}}],"terminationGracePeriodSeconds":30,)"
            R"("restartPolicy":"Never"}})");
}

TEST(Protobuf, ReadsFieldsOfInlinedMessages) {
  // A volume's source lies in a message of its own: name = 1, source = 2 { emptyDir = 2 }.
  const std::string volume = Bytes(1, "v") + Bytes(2, Bytes(2, Bytes(1, "Memory")));
  EXPECT_EQ(Read("Pod", Bytes(2, Bytes(1, volume))),
            R"({"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}]}})");
}

TEST(Protobuf, ReadsAndWritesFieldsThatAreInlinedTwice) {
  // resourceNames = 1, ruleWithOperations = 2 { operations = 1, rule = 2 { apiGroups = 1 ... } }.
  const std::string rule =
      Bytes(1, "a") + Bytes(2, Bytes(1, "CREATE") + Bytes(2, Bytes(1, "apps") + Bytes(3, "x")));
  const std::string policy = Bytes(2, Bytes(2, Bytes(3, rule)));
  const StructSchema& schema =
      *FindKind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy")->schema;
  Result<TreePtr> tree = ReadProtobuf(policy, schema);
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_EQ(WriteJson((*tree)->root()),
            R"({"spec":{"matchConstraints":{"resourceRules":[{"resourceNames":["a"],)"
            R"("operations":["CREATE"],"apiGroups":["apps"],"resources":["x"]}]}}})");
  EXPECT_EQ(WriteProtobuf((*tree)->root(), schema), policy);
}

TEST(Protobuf, NegativeNumbersAndBytesSurvive) {
  EXPECT_EQ(Read("Secret", Bytes(2, Entry("k", std::string("\0\xff", 2)))),
            R"({"data":{"k":"AP8="}})");
  EXPECT_EQ(Read("Pod", Bytes(2, Number(4, static_cast<std::uint64_t>(-5)))),
            R"({"spec":{"terminationGracePeriodSeconds":-5}})");
}

TEST(Protobuf, UnknownFieldsAreSkipped) {
  EXPECT_EQ(Read("ConfigMap", Bytes(999, "x") + Number(998, 7) + Bytes(2, Entry("a", "b"))),
            R"({"data":{"a":"b"}})");
}

TEST(Protobuf, MalformedInputIsAnErrorAtEveryCut) {
  const std::string whole = Bytes(1, Bytes(1, "a")) + Bytes(2, Entry("a", "b"));
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == Bytes(1, Bytes(1, "a")).size()) continue;  // a message that ends between fields
    EXPECT_FALSE(ReadProtobuf(whole.substr(0, size), *FindKind("", "v1", "ConfigMap")->schema).ok())
        << size;
  }
  EXPECT_FALSE(ReadProtobuf("\x0b", *FindKind("", "v1", "Pod")->schema).ok());
}

TEST(Protobuf, TheEnvelopeNamesTheType) {
  const std::string bytes =
      std::string("k8s\0", 4) + Bytes(1, Bytes(1, "v1") + Bytes(2, "Pod")) + Bytes(2, "body");
  Result<ProtobufEnvelope> envelope = OpenProtobufEnvelope(bytes);
  ASSERT_TRUE(envelope.ok());
  EXPECT_EQ(envelope->api_version, "v1");
  EXPECT_EQ(envelope->kind, "Pod");
  EXPECT_EQ(envelope->message, "body");
  EXPECT_FALSE(OpenProtobufEnvelope("{}").ok());
}

// A Go server compares it byte by byte with what it reads and writes again.
TEST(Protobuf, OpaqueJsonIsWrittenWithoutSpaces) {
  const StructSchema& schema = *FindKind("apps", "v1", "ControllerRevision")->schema;
  const TreePtr spaced =
      Draft{{"data", Draft::Raw("{\"a\": [1,\n \"b c\"]}")}, {"revision", 3}}.Freeze();
  const Result<TreePtr> again = ReadProtobuf(WriteProtobuf(spaced->root(), schema), schema);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->root()["data"].str(), R"({"a":[1,"b c"]})");
}

}  // namespace
}  // namespace drakkar::api
