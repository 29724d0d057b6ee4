// @kubernetes/client-node against one API server: list, watch and patch.
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const api = config.makeApiClient(k8s.CoreV1Api);

function fail(message) {
  console.error(`FAIL ${message}`);
  process.exit(1);
}

const nodes = await api.listNode();
if (!nodes.items.some((node) => node.metadata.name === 'n1')) fail('listNode: n1 is not there');
console.log('ok   list');

const seen = [];
let wake = () => {};
const watch = new k8s.Watch(config);
const controller = await watch.watch('/api/v1/namespaces/default/configmaps', {}, (type, object) => {
  if (object.metadata?.name === 'from-js') {
    seen.push(`${type} ${object.data?.step}`);
    wake();
  }
}, (error) => { if (error && error.name !== 'AbortError') fail(`watch: ${error}`); });

await api.createNamespacedConfigMap({namespace: 'default', body: {metadata: {name: 'from-js'}, data: {step: '1'}}});
const patched = await api.patchNamespacedConfigMap(
  {namespace: 'default', name: 'from-js', body: [{op: 'replace', path: '/data/step', value: '2'}]},
  k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.JsonPatch));
if (patched.data.step !== '2') fail(`patch: ${JSON.stringify(patched.data)}`);
const merged = await api.patchNamespacedConfigMap(
  {namespace: 'default', name: 'from-js', body: {data: {step: '3'}}},
  k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.StrategicMergePatch));
if (merged.data.step !== '3') fail(`strategic merge patch: ${JSON.stringify(merged.data)}`);
console.log('ok   patch');
await api.deleteNamespacedConfigMap({namespace: 'default', name: 'from-js'});

const deadline = setTimeout(() => fail(`watch saw only ${seen}`), 20000);
while (seen.length < 4) await new Promise((resolve) => { wake = resolve; });
clearTimeout(deadline);
const wanted = 'ADDED 1,MODIFIED 2,MODIFIED 3,DELETED 3';
if (seen.join() !== wanted) fail(`watch saw ${seen}, not ${wanted}`);
console.log('ok   watch');
controller.abort();
