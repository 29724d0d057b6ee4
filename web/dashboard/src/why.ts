// The answer of `drakkar why`, as the server computed it.
import { h } from "./dom";
import { age, plural } from "./format";

interface Holder {
  namespace?: string;
  pod?: string;
  claim?: string;
  owner?: string;
  since?: string;
  devices?: number;
  hidden?: boolean;
}

export interface Why {
  subject: string;
  fits: boolean;
  sentence: string;
  queue?: string;
  nodeCount: number;
  groups: { reason: string; count: number; nodes: string[]; details: string[] }[];
  closest?: { node?: string; missing: number; holders?: Holder[] };
  conditions?: { device: string; condition: string; message?: string; since?: string; deadline?: string; failed?: boolean }[];
  deletions?: { object: string; since?: string; finalizer?: string; waitsFor?: string }[];
  preparations?: { claim: string; drivers?: string[]; error?: string }[];
  help: { text: string }[];
  notes: string[];
}

export function renderWhy(why: Why): HTMLElement {
  const most = Math.max(1, ...why.groups.map((group) => group.count));
  const holders = (why.closest?.holders ?? []).filter((holder) => holder.claim || holder.pod);
  return h("div", { class: "why" },
    h("p", { class: "sentence" }, why.sentence),
    why.queue && h("p", { class: "muted" }, `Scheduler: ${why.queue}`),
    why.help.length > 0 && h("div", { class: "help" }, h("h4", {}, "What would help"),
      h("ul", {}, ...why.help.map((help) => h("li", {}, help.text)))),
    why.groups.length > 0 && h("div", { class: "groups" }, h("h4", {}, `Why not, by node (${why.nodeCount})`),
      ...why.groups.map((group) => {
        const fillBar = h("i", {});
        fillBar.style.width = `${Math.max(1, group.count / most * 100)}%`;
        return h("details", {}, h("summary", {}, h("b", {}, String(group.count)),
          h("span", { class: "meter", "aria-hidden": "true" }, fillBar), h("span", {}, group.reason)),
          ...group.details.map((detail) => h("p", { class: "muted" }, detail)),
          group.nodes.length > 0 && h("p", { class: "nodes" }, group.nodes.slice(0, 40).join(", "),
            group.nodes.length > 40 && ` and ${group.nodes.length - 40} more`));
      })),
    holders.length > 0 && h("div", {}, h("h4", {}, `Who holds what is missing on ${why.closest?.node ?? "the closest node"}`),
      ...holders.map((holder) => h("p", {}, h("b", {}, `${holder.namespace ?? ""}/${holder.pod || holder.claim || ""}`),
        holder.owner && h("span", { class: "muted" }, ` of ${holder.owner}`),
        holder.devices !== undefined && ` · ${plural(holder.devices, "device")}`,
        holder.since && " · for ", holder.since && age(holder.since)))),
    ...(why.conditions ?? []).map((wait) => h("p", {}, wait.failed ? "Failed: " : "Waits for ", h("b", {}, wait.condition), ` of ${wait.device}`,
      wait.message && h("span", { class: "muted" }, `: ${wait.message}`))),
    ...(why.deletions ?? []).map((wait) => h("p", {}, `${wait.object} is being deleted`, wait.finalizer && ` (finalizer ${wait.finalizer})`,
      wait.waitsFor && h("span", { class: "muted" }, `: waits for ${wait.waitsFor}`))),
    ...(why.preparations ?? []).map((wait) => h("p", {}, `Claim ${wait.claim} is not prepared`,
      wait.drivers?.length ? ` by ${wait.drivers.join(", ")}` : "", wait.error && h("span", { class: "failed" }, `: ${wait.error}`))),
    ...why.notes.map((note) => h("p", { class: "note" }, note)));
}
