#include <benchmark/benchmark.h>

#include <string>

#include "api/json/reader.h"
#include "api/json/writer.h"

namespace drakkar::api {
namespace {

// A pod with a claim as the API server returns it, about 2 KB.
const char kPod[] = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-with-gpu-0001","generateName":"pod-with-gpu-","namespace":"default","uid":"6f4b0c9e-8a53-4f5c-a9ad-2b3f6a5c1d11","resourceVersion":"123456","generation":1,"creationTimestamp":"2025-06-07T08:09:10Z","labels":{"app":"training","app.kubernetes.io/name":"resnet","pod-template-hash":"5f7d9c7b6d"},"annotations":{"example.com/owner":"team-a"},"managedFields":[{"manager":"kubectl-create","operation":"Update","apiVersion":"v1","time":"2025-06-07T08:09:10Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}}}]},"spec":{"volumes":[{"name":"kube-api-access-x7x5r","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}],"defaultMode":420}}],"containers":[{"name":"main","image":"registry.example.com/train:1.2.3","command":["train","--epochs=10"],"resources":{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"1","memory":"2Gi"},"claims":[{"name":"gpu"}]},"volumeMounts":[{"name":"kube-api-access-x7x5r","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"worker-0042","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority","resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"gpu-template"}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2025-06-07T08:09:11Z"}],"qosClass":"Burstable"}})";

void BM_ParsePod(benchmark::State& state) {
  const std::string json = kPod;
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(json));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * json.size()));
}
BENCHMARK(BM_ParsePod);

void BM_WritePod(benchmark::State& state) {
  const TreePtr pod = *ParseJson(kPod);
  for (auto _ : state) benchmark::DoNotOptimize(WriteJson(pod->root()));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * sizeof(kPod)));
}
BENCHMARK(BM_WritePod);

void BM_CopyPod(benchmark::State& state) {
  const TreePtr pod = *ParseJson(kPod);
  for (auto _ : state) benchmark::DoNotOptimize(CopyTree(pod->root()));
}
BENCHMARK(BM_CopyPod);

}  // namespace
}  // namespace drakkar::api
