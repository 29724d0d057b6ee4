#include "storage/etcd/transaction_codec.h"

#include <gtest/gtest.h>

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

Bytes Value(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

CompiledTransaction Compiled(Transaction transaction) {
  Result<CompiledTransaction> compiled = CompileTransaction(std::move(transaction));
  EXPECT_TRUE(compiled.ok());
  return *std::move(compiled);
}

// A failure branch that read these; "" is an absent key.
etcd::TxnResponse Failed(std::vector<etcd::KeyValue> kvs) {
  etcd::TxnResponse response;
  response.header.revision = 50;
  for (etcd::KeyValue& kv : kvs) {
    etcd::RangeResponse range;
    if (!kv.key.empty()) range.kvs.push_back(std::move(kv));
    response.responses.emplace_back(std::move(range));
  }
  return response;
}

etcd::KeyValue Kv(std::string key, std::string value, std::int64_t mod) {
  return {
      .key = std::move(key), .value = std::move(value), .create_revision = 2, .mod_revision = mod};
}

TEST(EtcdTransaction, BecomesComparisonsOperationsAndReadsOfTheConditions) {
  const CompiledTransaction compiled =
      Compiled({{{"a", 7}, {"b", 0}}, {{"a", Value("x")}, {"b", nullptr}}});
  ASSERT_EQ(compiled.request.compare.size(), 2u);
  EXPECT_EQ(compiled.request.compare[0],
            (etcd::Compare{"a", etcd::Compare::Target::kModRevision, 7}));
  EXPECT_EQ(compiled.request.success[0], etcd::RequestOp(etcd::PutRequest{"a", "x"}));
  EXPECT_EQ(compiled.request.success[1], etcd::RequestOp(etcd::DeleteRequest{"b", ""}));
  EXPECT_EQ(compiled.request.failure[0], etcd::RequestOp(etcd::RangeRequest{.key = "a"}));
  EXPECT_EQ(compiled.value_bytes, 1u);
  EXPECT_TRUE(compiled.is_resolvable);
}

TEST(EtcdTransaction, AWriteWithoutAConditionCannotBeResolved) {
  EXPECT_FALSE(Compiled({{}, {{"a", Value("x")}}}).is_resolvable);
  EXPECT_FALSE(Compiled({{{"a", 1}}, {{"a", Value("x")}, {"b", Value("y")}}}).is_resolvable);
  EXPECT_FALSE(Compiled({{{"a", 1}}, {}}).is_resolvable);
}

TEST(EtcdTransaction, MalformedOnesAreRefused) {
  EXPECT_FALSE(CompileTransaction({{}, {{"", Value("x")}}}).ok());
  EXPECT_FALSE(CompileTransaction({{}, {{"a", Value("x")}, {"a", nullptr}}}).ok());
  Transaction large;
  for (int i = 0; i < 129; ++i) large.operations.push_back({"k" + std::to_string(i), Value("x")});
  EXPECT_EQ(CompileTransaction(std::move(large)).error().code, ErrorCode::kInvalidArgument);
}

TEST(EtcdTransaction, ReportsTheConditionsThatFailed) {
  const CompiledTransaction compiled =
      Compiled({{{"a", 7}, {"b", 0}, {"c", 4}}, {{"a", Value("x")}}});
  const Result<TransactionResult> result =
      ReadTransactionResult(compiled, Failed({Kv("a", "v", 7), Kv("b", "w", 9), Kv("", "", 0)}));
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->succeeded);
  EXPECT_EQ(result->revision, 50);
  ASSERT_EQ(result->failed.size(), 2u);
  EXPECT_EQ(result->failed[0].first, "b");
  EXPECT_EQ(result->failed[0].second->mod_revision, 9);
  EXPECT_EQ(result->failed[1].first, "c");
  EXPECT_FALSE(result->failed[1].second.has_value());
  EXPECT_FALSE(ReadTransactionResult(compiled, Failed({Kv("a", "v", 7)})).ok())
      << "a response of another shape";
}

TEST(EtcdTransaction, RecognisesItsOwnWriteByTheValuesItLeaves) {
  const CompiledTransaction update = Compiled({{{"a", 7}}, {{"a", Value("mine")}}});
  EXPECT_EQ(FindOwnWrite(update, Failed({Kv("a", "mine", 12)})), 12);
  EXPECT_EQ(FindOwnWrite(update, Failed({Kv("a", "theirs", 12)})), std::nullopt);
  EXPECT_EQ(FindOwnWrite(update, Failed({Kv("", "", 0)})), std::nullopt);

  const CompiledTransaction two = Compiled(
      {{{"a", 7}, {"b", 8}, {"c", 9}}, {{"a", Value("x")}, {"b", Value("y")}, {"c", nullptr}}});
  EXPECT_EQ(FindOwnWrite(two, Failed({Kv("a", "x", 12), Kv("b", "y", 12), Kv("", "", 0)})), 12);
  EXPECT_EQ(FindOwnWrite(two, Failed({Kv("a", "x", 12), Kv("b", "y", 13), Kv("", "", 0)})),
            std::nullopt)
      << "written at different revisions, so not by one transaction";
  EXPECT_EQ(FindOwnWrite(two, Failed({Kv("a", "x", 12), Kv("b", "y", 12), Kv("c", "z", 9)})),
            std::nullopt);
}

TEST(EtcdTransaction, ADeletionLeavesNothingToRecogniseItBy) {
  const CompiledTransaction deletion = Compiled({{{"a", 7}}, {{"a", nullptr}}});
  EXPECT_EQ(FindOwnWrite(deletion, Failed({Kv("", "", 0)})), std::nullopt);
}

}  // namespace
}  // namespace drakkar::storage
