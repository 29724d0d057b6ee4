// The drawer beside the views: a device, or a claim with its timeline.
import { ask } from "./client";
import { fill, h } from "./dom";
import { age, clockTime, localTime } from "./format";
import { badge } from "./marks";
import type { DeviceId } from "./model";

interface Device extends DeviceId {
  node?: string;
  state: string;
  free: boolean;
  shareable: boolean;
  unusable?: string;
  listed: boolean;
  model?: string;
  health: { health: string; since?: string; message?: string };
  classes: string[];
  taints: { taint: string; since?: string }[];
  attributes: [string, string][];
  capacity: { name: string; value: string; used?: string }[];
  holders: {
    namespace: string; claim: string; request: string; since: string; waiting: boolean; adminAccess: boolean;
    consumed: Record<string, string>; pods: { name: string; owner?: string; node?: string }[];
  }[];
  history: { at: string; what: string; message?: string }[];
}

interface Claim {
  namespace: string;
  name: string;
  requests: { name: string; class: string; mode: string; count: number; alternatives: number }[];
  devices: (DeviceId & { request: string })[];
  timeline: { at?: string; kind: "done" | "waiting" | "failed"; what: string; detail?: string }[];
}

type Subject = { kind: "device"; id: DeviceId } | { kind: "claim"; namespace: string; name: string };

export class Details {
  readonly element = h("aside", { class: "drawer", hidden: true, "aria-label": "Details" });
  private readonly title = h("h2", { tabindex: -1 });
  private readonly body = h("div", { class: "drawer-body" });
  private subject: Subject | null = null;
  private before: Element | null = null;
  private busy = false;

  constructor() {
    this.element.append(
      h("header", {}, this.title,
        h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.close() }, "×")),
      this.body);
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  get isOpen(): boolean {
    return this.subject !== null;
  }

  openDevice(id: DeviceId): void {
    this.openSubject({ kind: "device", id }, id.device);
  }

  openClaim(namespace: string, name: string): void {
    this.openSubject({ kind: "claim", namespace, name }, name);
  }

  close(): void {
    this.subject = null;
    this.element.hidden = true;
    if (this.before instanceof HTMLElement) this.before.focus();
  }

  private openSubject(subject: Subject, title: string): void {
    if (!this.element.contains(document.activeElement)) this.before = document.activeElement;
    this.subject = subject;
    this.title.textContent = title;
    fill(this.body, h("p", { class: "muted" }, "Reading…"));
    this.element.hidden = false;
    this.title.focus({ preventScroll: true });
    this.busy = false;
    void this.refresh();
  }

  async refresh(): Promise<void> {
    const subject = this.subject;
    if (!subject || this.busy) return;
    this.busy = true;
    try {
      const children = subject.kind === "device"
        ? this.device(await ask<Device>("device", { ...subject.id }))
        : this.claim(await ask<Claim>("claim", { namespace: subject.namespace, name: subject.name }));
      if (this.subject === subject) fill(this.body, ...children);
    } catch (error) {
      if (this.subject === subject) fill(this.body, h("p", { class: "failed" }, error instanceof Error ? error.message : String(error)));
    } finally {
      if (this.subject === subject) this.busy = false;
    }
  }

  private device(device: Device): HTMLElement[] {
    const parts: (HTMLElement | false)[] = [
      h("p", { class: "where" }, badge(device.state),
        device.node ? h("span", {}, "on ", h("b", {}, device.node)) : h("span", {}, "not on one node")),
      !!device.model && h("p", { class: "model" }, device.model),
      !device.listed && h("p", { class: "note" }, "No ResourceSlice lists this device, but a claim holds it."),
      !!device.unusable && h("p", { class: "note" }, device.unusable),
      device.holders.length > 0 && section("Held by", ...device.holders.map((holder) =>
        h("div", { class: "holder" },
          ...holder.pods.map((pod) => h("p", {}, h("b", {}, `${holder.namespace}/${pod.name}`),
            pod.owner && h("span", { class: "muted" }, ` of ${pod.owner}`))),
          h("p", {}, "claim ",
            h("button", { type: "button", class: "link", onclick: () => this.openClaim(holder.namespace, holder.claim) },
              `${holder.namespace}/${holder.claim}`), " for ", age(holder.since)),
          holder.pods.length === 0 && h("p", { class: "muted" }, "No pod uses the claim."),
          holder.waiting && h("p", { class: "note" }, "Waits for binding conditions."),
          holder.adminAccess && h("p", { class: "muted" }, "Admin access: others can hold the device too."),
          ...Object.entries(holder.consumed).map(([name, value]) => h("p", { class: "muted" }, `${name}: ${value}`))))),
      section("Health", h("p", {}, device.health.health,
        device.health.since && h("span", { class: "muted" }, " for ", age(device.health.since))),
        device.health.message ? h("p", { class: "muted" }, device.health.message) : false),
      device.taints.length > 0 && section("Taints", ...device.taints.map((taint) =>
        h("p", {}, h("code", {}, taint.taint), taint.since && h("span", { class: "muted" }, " for ", age(taint.since))))),
      device.capacity.length > 0 && section("Capacity", table(device.capacity.map((each) =>
        [each.name, each.used === undefined ? each.value : `${each.used} of ${each.value} used`]))),
      device.attributes.length > 0 && section("Attributes", table(device.attributes)),
      device.classes.length > 0 && section("Classes", h("p", {}, device.classes.join(", "))),
      device.history.length > 0 && section("History", h("ol", { class: "timeline" }, ...device.history.map((event) =>
        h("li", { class: event.what === "Unhealthy" || event.what === "Tainted" ? "failed" : "done" },
          h("time", { datetime: event.at, title: localTime(event.at) }, clockTime(event.at)),
          h("b", {}, event.what), event.message && h("p", { class: "muted" }, event.message))))),
      section("Driver", h("p", {}, device.driver), h("p", { class: "muted" }, `pool ${device.pool}`)),
    ];
    return parts.filter((part): part is HTMLElement => part !== false);
  }

  private claim(claim: Claim): HTMLElement[] {
    const parts: (HTMLElement | false)[] = [
      h("p", { class: "where" }, "Claim in namespace ", h("b", {}, claim.namespace)),
      section("Asks for", ...claim.requests.map((request) => h("p", {}, h("b", {}, request.name), ": ",
        request.alternatives > 0 ? `the first available of ${request.alternatives} alternatives`
          : `${request.mode === "All" ? "all devices" : request.count} of ${request.class}`))),
      claim.devices.length > 0 && section("Devices", ...claim.devices.map((device) =>
        h("p", {}, h("button", { type: "button", class: "link", onclick: () => this.openDevice(device) }, device.device),
          h("span", { class: "muted" }, ` ${device.pool}`)))),
      section("Timeline", h("ol", { class: "timeline" }, ...claim.timeline.map((entry) =>
        h("li", { class: entry.kind },
          entry.at ? h("time", { datetime: entry.at, title: localTime(entry.at) }, clockTime(entry.at)) : h("span", { class: "time" }, "now"),
          h("b", {}, entry.what), entry.detail && h("p", { class: "muted" }, entry.detail))))),
    ];
    return parts.filter((part): part is HTMLElement => part !== false);
  }
}

function section(title: string, ...children: (HTMLElement | false)[]): HTMLElement {
  return h("section", {}, h("h3", {}, title), ...children);
}

function table(rows: [string, string][] | string[][]): HTMLElement {
  return h("table", { class: "pairs" }, h("tbody", {}, ...rows.map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)))));
}
