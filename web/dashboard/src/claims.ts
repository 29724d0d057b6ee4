// All claims; each opens to its timeline.
import { h } from "./dom";
import { age, plural } from "./format";
import { List } from "./list";

interface Claim {
  namespace: string;
  name: string;
  state: string;
  since: string;
  created: string;
  devices: number;
  pods: string[];
}

const claimStates = ["Pending", "Waiting", "Allocated", "InUse", "Deleting"];

export class Claims {
  readonly element: HTMLElement;
  private readonly list: List<Claim>;

  constructor(open: (namespace: string, name: string) => void) {
    const state = h("select", { "aria-label": "State" }, h("option", { value: "" }, "Any state"),
      ...claimStates.map((each) => h("option", { value: each }, each === "InUse" ? "In use" : each))) as HTMLSelectElement;
    this.list = new List<Claim>({
      path: "claims",
      noun: "claim",
      placeholder: "Find a claim or pod",
      empty: "There are no claims.",
      query: () => (state.value ? { state: state.value } : ({} as Record<string, string>)),
      tools: [state],
      key: (claim) => `${claim.namespace}/${claim.name}`,
      row: (claim) => h("div", { class: "row claim" },
        h("button", { type: "button", class: "row-head", onclick: () => open(claim.namespace, claim.name) },
          h("span", { class: `stage stage-${claim.state.toLowerCase()}` }, claim.state === "InUse" ? "In use" : claim.state),
          h("span", { class: "name" }, h("span", { class: "muted" }, `${claim.namespace}/`), h("b", {}, claim.name)),
          h("span", { class: "owner muted" }, claim.pods[0] ?? "no pod", claim.pods.length > 1 && ` and ${claim.pods.length - 1} more`),
          h("span", { class: "amount muted" }, claim.devices ? plural(claim.devices, "device") : "no devices"),
          age(claim.since))),
    });
    state.addEventListener("change", () => void this.list.refresh());
    this.element = h("section", { class: "view" }, this.list.element);
  }

  refresh(): void {
    void this.list.refresh();
  }

  focusSearch(): void {
    this.list.focusSearch();
  }
}
