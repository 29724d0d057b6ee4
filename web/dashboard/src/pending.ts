// Pods that do not run yet; each opens to the answer of `drakkar why`.
import { ask } from "./client";
import { h } from "./dom";
import { age, plural } from "./format";
import { List } from "./list";
import { renderWhy, type Why } from "./why";

interface Pod {
  namespace: string;
  name: string;
  stage: string;
  since: string;
  claims: number;
  node?: string;
  owner?: string;
  message?: string;
}

export class Pending {
  readonly element: HTMLElement;
  private readonly list: List<Pod>;
  /** The rows that are open, with what asks again. */
  private readonly opened = new Map<string, () => void>();
  private asked = 0;

  constructor() {
    this.list = new List<Pod>({
      path: "pending",
      noun: "pod",
      placeholder: "Find a pod, owner or stage",
      empty: "No pod is waiting.",
      key: (pod) => `${pod.namespace}/${pod.name}`,
      row: (pod) => this.row(pod),
    });
    this.element = h("section", { class: "view" }, this.list.element);
  }

  refresh(): void {
    void this.list.refresh();
    // An answer takes the server up to a second in a large cluster.
    if (performance.now() - this.asked < 5_000) return;
    this.asked = performance.now();
    for (const again of this.opened.values()) again();
  }

  focusSearch(): void {
    this.list.focusSearch();
  }

  private row(pod: Pod): HTMLElement {
    const key = `${pod.namespace}/${pod.name}`;
    const answer = h("div", { class: "answer", hidden: true });
    const button = h("button", { type: "button", class: "row-head", "aria-expanded": "false" },
      h("span", { class: `stage stage-${pod.stage.toLowerCase()}` }, pod.stage),
      h("span", { class: "name" }, h("span", { class: "muted" }, `${pod.namespace}/`), h("b", {}, pod.name)),
      h("span", { class: "owner muted" }, pod.owner ?? ""),
      h("span", { class: "amount muted" }, pod.claims ? plural(pod.claims, "claim") : "no claims"),
      age(pod.since),
      h("span", { class: "message muted" }, pod.message ?? (pod.node ? `on ${pod.node}` : "")));
    const again = () => {
      ask<Why>("why", { kind: "pod", namespace: pod.namespace, name: pod.name })
        .then((why) => {
          const unfolded = new Set([...answer.querySelectorAll("details[open] summary")].map((each) => each.lastElementChild?.textContent));
          answer.replaceChildren(renderWhy(why));
          for (const each of answer.querySelectorAll("details")) each.open = unfolded.has(each.querySelector("summary")?.lastElementChild?.textContent);
        })
        .catch((error: unknown) => answer.replaceChildren(h("p", { class: "failed" }, error instanceof Error ? error.message : String(error))));
    };
    const toggle = (open: boolean) => {
      button.setAttribute("aria-expanded", String(open));
      answer.hidden = !open;
      if (!open) {
        this.opened.delete(key);
        return;
      }
      this.opened.set(key, again);
      if (answer.childElementCount === 0) answer.replaceChildren(h("p", { class: "muted" }, "Asking the scheduler's code…"));
      again();
    };
    button.addEventListener("click", () => toggle(answer.hidden));
    if (this.opened.has(key)) toggle(true);
    return h("div", { class: "row pod" }, button, answer);
  }
}
