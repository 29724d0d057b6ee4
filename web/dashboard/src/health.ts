// Health now, and what has changed since the dashboard was started.
import { fill, h } from "./dom";
import { clockTime, count, localTime } from "./format";
import { List } from "./list";
import type { DeviceId } from "./model";

interface Event extends DeviceId {
  at: string;
  what: string;
  message?: string;
  node?: string;
}

interface Totals {
  healthy: number;
  unhealthy: number;
  unknown: number;
}

export class Health {
  readonly element: HTMLElement;
  private readonly tiles = h("div", { class: "tiles" });
  private readonly list: List<Event, Totals>;

  constructor(open: (id: DeviceId) => void) {
    this.list = new List<Event, Totals>({
      path: "health",
      noun: "change",
      placeholder: "Find a device, node or message",
      empty: "No device has changed its health or its taints since the dashboard was started.",
      key: (event) => `${event.at} ${event.driver}/${event.pool}/${event.device} ${event.what}`,
      row: (event) => h("div", { class: "row health" },
        h("button", { type: "button", class: "row-head", onclick: () => open(event) },
          h("time", { datetime: event.at, title: localTime(event.at) }, clockTime(event.at)),
          h("span", { class: `stage stage-${event.what.toLowerCase()}` }, event.what),
          h("span", { class: "name" }, h("b", {}, event.device), h("span", { class: "muted" }, event.node ? ` on ${event.node}` : ` in ${event.pool}`)),
          h("span", { class: "message muted" }, event.message ?? ""))),
      onPage: (page) => fill(this.tiles,
        tile("unhealthy", page.unhealthy, page.unhealthy ? "bad" : ""), tile("healthy", page.healthy),
        tile("unknown", page.unknown)),
    });
    this.element = h("section", { class: "view" }, this.tiles, this.list.element);
  }

  refresh(): void {
    void this.list.refresh();
  }

  focusSearch(): void {
    this.list.focusSearch();
  }
}

export function tile(title: string, value: number | string, kind = ""): HTMLElement {
  return h("div", { class: `tile ${kind}` }, h("b", {}, typeof value === "number" ? count(value) : value), h("span", {}, title));
}
