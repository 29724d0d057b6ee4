// The page: header, tabs, views and the stream that keeps them current.
import { findToken, Stream } from "./client";
import { Claims } from "./claims";
import { Details } from "./details";
import { fill, h } from "./dom";
import { count, plural, refreshAges, setClusterTime } from "./format";
import { Health } from "./health";
import { DeviceMap } from "./map";
import { Cluster } from "./model";
import { Pending } from "./pending";
import { Scheduler } from "./scheduler";

interface View {
  element: HTMLElement;
  refresh(): void;
  focusSearch?(): void;
}

const tabs = ["map", "pending", "claims", "health", "scheduler"] as const;
type Tab = (typeof tabs)[number];
const titles: Record<Tab, string> = { map: "Devices", pending: "Waiting pods", claims: "Claims", health: "Health", scheduler: "Scheduler" };

class Page {
  private readonly cluster = new Cluster();
  private readonly details = new Details();
  private readonly map = new DeviceMap(this.cluster, (id) => this.details.openDevice(id));
  private readonly pending = new Pending();
  private readonly claims = new Claims((namespace, name) => this.details.openClaim(namespace, name));
  private readonly health = new Health((id) => this.details.openDevice(id));
  private readonly scheduler = new Scheduler();
  private readonly views: Record<Tab, View> = {
    map: { element: this.map.element, refresh: () => this.map.update(), focusSearch: () => this.map.focusSearch() },
    pending: this.pending, claims: this.claims, health: this.health, scheduler: this.scheduler,
  };
  private readonly links = new Map<Tab, HTMLElement>();
  private readonly counts = new Map<Tab, HTMLElement>();
  private readonly status = h("span", { class: "status connecting", role: "status" }, "connecting");
  private readonly server = h("span", { class: "server" });
  private readonly notices = h("div", { class: "notices" });
  private readonly content = h("main", {});
  private shown: Tab = "map";

  constructor() {
    const nav = h("nav", { "aria-label": "Views" }, ...tabs.map((tab) => {
      const number = h("span", { class: "number" });
      const link = h("a", { href: `#${tab}` }, titles[tab], number);
      this.links.set(tab, link);
      this.counts.set(tab, number);
      return link;
    }));
    document.body.replaceChildren(
      h("header", { class: "top" },
        h("div", { class: "brand" }, h("img", { src: "/icon.svg", alt: "", width: 26, height: 26 }), h("h1", {}, "Drakkar"), this.server),
        this.status, nav),
      this.notices,
      h("div", { class: "body" }, this.content, this.details.element));
    window.addEventListener("hashchange", () => {
      if (this.details.isOpen) this.details.close();
      this.show();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => this.revealTab());
    window.setInterval(refreshAges, 1000);
    this.show();
  }

  run(): void {
    new Stream({
      onFull: (full) => {
        this.cluster.takeFull(full);
        this.update();
      },
      onChange: (change) => {
        this.cluster.takeChange(change);
        this.update();
      },
      onStatus: (status, why) => {
        if (status === "refused") return tellToOpenTheUrl(why);
        // The page may be connected to a dashboard that is not connected to its cluster.
        const isCurrent = status === "live" && !this.cluster.head?.problem;
        this.status.className = `status ${isCurrent ? "live" : "connecting"}`;
        this.status.textContent = isCurrent ? "live" : status === "live" ? "not current" : "reconnecting";
        this.status.title = why;
        return undefined;
      },
    }).start();
  }

  private show(): void {
    const asked = location.hash.slice(1);
    this.shown = tabs.find((tab) => tab === asked) ?? "map";
    for (const [tab, link] of this.links) {
      if (tab === this.shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.revealTab();
    this.content.replaceChildren(this.views[this.shown].element);
    this.content.dataset["view"] = this.shown;
    document.title = `${titles[this.shown]} · Drakkar`;
    this.views[this.shown].refresh();
  }

  /** On a phone the tabs scroll sideways; the chosen one stays in sight. */
  private revealTab(): void {
    this.links.get(this.shown)?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  private update(): void {
    const head = this.cluster.head;
    if (!head) return;
    setClusterTime(head.now);
    this.server.textContent = this.cluster.server.replace(/^https?:\/\//, "");
    const numbers: Record<Tab, number> = {
      map: this.cluster.total, pending: head.pending, claims: head.claims, health: head.counts["U"] ?? 0, scheduler: 0,
    };
    let wider = false;
    for (const [tab, element] of this.counts) {
      const text = numbers[tab] ? count(numbers[tab]) : "";
      wider ||= element.textContent?.length !== text.length;
      element.textContent = text;
      element.classList.toggle("bad", (tab === "health" && numbers[tab] > 0) || (tab === "pending" && head.unschedulable > 0));
    }
    if (wider) this.revealTab();
    fill(this.notices,
      head.problem && h("p", { class: "problem", role: "alert" }, `Not current: ${head.problem}`),
      head.notes.length > 0 && h("details", {}, h("summary", {}, plural(head.notes.length, "note")),
        ...head.notes.map((note) => h("p", {}, note))));
    this.views[this.shown].refresh();
    void this.details.refresh();
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.key === "Escape" && this.details.isOpen) return this.details.close();
    if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    if (event.key === "/") {
      this.views[this.shown].focusSearch?.();
      event.preventDefault();
    }
    const tab = tabs[Number(event.key) - 1];
    if (tab) location.hash = tab;
  }
}

function tellToOpenTheUrl(why: string): void {
  document.body.replaceChildren(h("main", { class: "empty" }, h("h2", {}, "Open the dashboard again"),
    h("p", {}, "This page's token is missing or no longer valid. Run ", h("code", {}, "drakkar dashboard"), " and open the URL that it prints."),
    h("p", { class: "muted" }, why)));
}

if (findToken()) new Page().run();
else tellToOpenTheUrl("there is no token");
