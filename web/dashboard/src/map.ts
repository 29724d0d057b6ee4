// The map of all devices: a canvas as large as the window, with only the visible nodes drawn.
import { ask } from "./client";
import { debounce, fill, h } from "./dom";
import { count, plural } from "./format";
import { Layout, type Metrics, type Spot } from "./map_layout";
import { drawMark, mark, stateOf, states } from "./marks";
import { deviceAt, type Cluster, type DeviceId, type Row } from "./model";

const sizes: Metrics[] = [
  { cell: 12, label: 92, gutter: 18, font: 10 },
  { cell: 16, label: 116, gutter: 24, font: 11 },
  { cell: 22, label: 140, gutter: 28, font: 12 },
  { cell: 30, label: 168, gutter: 36, font: 13 },
  { cell: 42, label: 190, gutter: 44, font: 14 },
];

interface Free {
  groups: {
    name: string; total: number; free: number; held: number; waiting: number; tainted: number; unhealthy: number; unusable: number;
  }[];
}

export class DeviceMap {
  readonly element: HTMLElement;
  private readonly legend = h("div", { class: "legend", role: "group", "aria-label": "Show only devices that are" });
  private readonly bar = h("div", { class: "bar", "aria-hidden": "true" });
  private readonly search = h("input", {
    type: "search", placeholder: "Find a node or device", "aria-label": "Find a node or device", maxlength: 200,
  }) as HTMLInputElement;
  private readonly canvas = h("canvas", {
    tabindex: 0, role: "grid", "aria-label": "Devices by node. Arrow keys move, Enter shows details.",
    "aria-activedescendant": "map-active",
  }) as HTMLCanvasElement;
  private readonly active = h("div", { id: "map-active", role: "gridcell", class: "hidden-text" });
  private readonly spacer = h("div", { class: "map-spacer" });
  private readonly scroller = h("div", { class: "map-scroll" });
  private readonly line = h("div", { class: "map-line", role: "status" });
  private readonly empty = h("div", { class: "empty" });
  private readonly classes = h("div", { class: "panel classes", hidden: true });
  private asking = false;
  private readonly sprites = new Map<string, HTMLCanvasElement>();
  private layout = new Layout([], 1, sizes[2]!);
  private zoom = -1; // chosen by hand; -1: by the number of devices
  private only = new Set<string>();
  private selected: Spot | null = null;
  private hovered: Spot | null = null;
  private shape = -1;
  private frame = 0;

  constructor(private readonly cluster: Cluster, private readonly open: (id: DeviceId) => void) {
    const zoomBy = (step: number) => () => {
      this.zoom = Math.min(sizes.length - 1, Math.max(0, this.sizeIndex() + step));
      this.arrange();
    };
    this.scroller.append(this.canvas, this.spacer, this.active);
    this.element = h("section", { class: "view map" },
      this.bar,
      h("div", { class: "tools" }, this.legend,
        h("div", { class: "tools-right" }, this.search,
          h("div", { class: "zoom", role: "group", "aria-label": "Size" },
            h("button", { type: "button", "aria-label": "Smaller", onclick: zoomBy(-1) }, "−"),
            h("button", { type: "button", "aria-label": "Larger", onclick: zoomBy(1) }, "+")))),
      h("div", { class: "panel map-panel" }, this.scroller, this.empty, this.line),
      this.classes);
    this.search.addEventListener("input", debounce(120, () => this.arrange()));
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.spotAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("click", (event) => this.click(this.spotAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => {
      if (!this.selected && this.layout.rows.length) this.select({ row: 0, cell: 0 });
      else this.draw();
    });
    this.canvas.addEventListener("blur", () => this.draw());
    new ResizeObserver(() => this.arrange()).observe(this.element);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.restyle());
    }
  }

  focusSearch(): void {
    this.search.focus();
  }

  focus(): void {
    this.canvas.focus();
  }

  /** Shows the cluster's new state. */
  update(): void {
    this.drawLegend();
    if (this.shape !== this.cluster.shape || this.only.size > 0 || this.search.value) {
      this.shape = this.cluster.shape;
      this.arrange();
    } else {
      this.draw();
      void this.showClasses();
    }
    if (this.selected) this.describe(this.selected);
  }

  /** What is free by class, as `drakkar free` counts it, if the map leaves room for it. */
  private async showClasses(): Promise<void> {
    this.classes.hidden = this.layout.rows.length === 0 || this.layout.rows !== this.cluster.rows
      || this.layout.height > this.element.clientHeight / 3;
    if (this.classes.hidden || this.asking) return;
    this.asking = true;
    try {
      const free = await ask<Free>("free", { by: "class" });
      const columns = (["total", "free", "held", "waiting", "tainted", "unhealthy", "unusable"] as const)
        .filter((name, index) => index < 3 || free.groups.some((group) => group[name] > 0));
      fill(this.classes, h("table", { class: "counts" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "class"), ...columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, ...free.groups.map((group) => h("tr", {}, h("th", { scope: "row" }, group.name),
          ...columns.map((name) => h("td", { class: group[name] ? "" : "zero" }, count(group[name]))))))));
    } catch {
      this.classes.hidden = true; // the map says the same per device
    } finally {
      this.asking = false;
    }
  }

  private sizeIndex(): number {
    if (this.zoom >= 0) return this.zoom;
    const rows = this.filtered();
    const total = rows.reduce((sum, row) => sum + row.states.length, 0);
    const narrow = matchMedia("(pointer: coarse)").matches || this.scroller.clientWidth < 600;
    let index = total <= 64 ? 4 : total <= 400 ? 3 : total <= 2_000 ? 2 : total <= 10_000 || narrow ? 1 : 0;
    // Rather smaller cells than a node on two lines.
    const most = rows.reduce((longest, row) => Math.max(longest, row.states.length), 1);
    while (index > 1 && sizes[index]!.cell * Math.min(most, 10) > this.scroller.clientWidth * 2 / 3) --index;
    return index;
  }

  private restyle(): void {
    this.sprites.clear();
    this.draw();
  }

  private drawLegend(): void {
    const counts = this.cluster.head?.counts ?? {};
    const total = this.cluster.total;
    const focused = this.legend.contains(document.activeElement) ? document.activeElement?.getAttribute("data-letter") : null;
    this.legend.replaceChildren(...states.map((state) => {
      const number = counts[state.letter] ?? 0;
      return h("button", {
        type: "button", class: "chip", title: state.means, "data-letter": state.letter,
        "aria-pressed": this.only.has(state.letter) ? "true" : "false", disabled: number === 0 && !this.only.has(state.letter),
        onclick: () => {
          if (!this.only.delete(state.letter)) this.only.add(state.letter);
          this.drawLegend();
          this.arrange();
        },
      }, mark(state.letter), h("span", {}, state.name), h("b", {}, count(number)));
    }));
    if (focused) this.legend.querySelector<HTMLElement>(`[data-letter=${focused}]`)?.focus();
    this.bar.replaceChildren(...states.filter((state) => counts[state.letter]).map((state) => {
      const part = h("i", { class: `part-${state.name.toLowerCase()}` });
      part.style.flexGrow = String(Math.max((counts[state.letter] ?? 0) / Math.max(total, 1), 0.002));
      return part;
    }));
  }

  private filtered(): Row[] {
    const words = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0 && this.only.size === 0) return this.cluster.rows;
    return this.cluster.rows.filter((row) => {
      if (this.only.size > 0 && ![...row.states].some((letter) => this.only.has(letter))) return false;
      return words.every((word) => row.name.toLowerCase().includes(word)
        || row.pools.some((pool) => `${pool.driver}/${pool.pool}`.toLowerCase().includes(word)
          || pool.devices.some((device) => device.toLowerCase().includes(word))));
    });
  }

  private arrange(): void {
    this.scroller.hidden = false; // to measure it
    const width = this.scroller.clientWidth;
    if (width === 0) return; // not shown
    const kept = this.selected ? this.layout.rows[this.selected.row] : null;
    this.layout = new Layout(this.filtered(), width, this.metrics(width));
    if (kept && this.selected) {
      const row = this.layout.rows.findIndex((each) => each.name === kept.name && each.node === kept.node);
      this.selected = row >= 0 && this.selected.cell < this.layout.rows[row]!.states.length
        ? { row, cell: this.selected.cell } : null;
    }
    this.hovered = null;
    this.spacer.style.height = `${this.layout.height}px`;
    this.sayEmpty();
    this.draw();
    this.describe(this.selected);
    void this.showClasses();
  }

  /** The names get a third of a narrow page at most. */
  private metrics(width: number): Metrics {
    const size = sizes[this.sizeIndex()]!;
    return { ...size, label: Math.min(size.label, Math.floor(width / 3)) };
  }

  private sayEmpty(): void {
    const none = this.layout.rows.length === 0;
    this.scroller.hidden = none;
    this.empty.hidden = !none || !this.cluster.head;
    this.line.hidden = none;
    if (!none || !this.cluster.head) return;
    if (this.cluster.rows.length > 0) {
      this.empty.replaceChildren(h("h2", {}, "Nothing matches"),
        h("p", {}, "No node has a device with this name and state."));
      return;
    }
    this.empty.replaceChildren(h("h2", {}, "No devices yet"),
      h("p", {}, "A device appears here when its driver publishes it in a ResourceSlice."),
      h("p", {}, `The cluster has ${this.cluster.head.nodes ? plural(this.cluster.head.nodes, "node") : "no nodes"}. `,
        h("code", {}, "drakkar get resourceslices"), " lists what drivers have published."));
  }

  private draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private sprite(letter: string, size: number, style: CSSStyleDeclaration): HTMLCanvasElement {
    const key = `${letter}${size}`;
    let sprite = this.sprites.get(key);
    if (!sprite) {
      sprite = document.createElement("canvas");
      sprite.width = sprite.height = size;
      drawMark(sprite.getContext("2d")!, letter, size, style);
      this.sprites.set(key, sprite);
    }
    return sprite;
  }

  private paint(): void {
    const { clientWidth: width, clientHeight: height, scrollTop: top } = this.scroller;
    const context = this.canvas.getContext("2d");
    if (!context || width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.canvas.style.marginBottom = `${-height}px`; // the spacer alone makes the scroll height
    }
    const style = getComputedStyle(this.element);
    const { cell, label, font } = this.layout.metrics;
    const gap = Math.max(2, Math.round(cell / 6));
    const size = Math.round((cell - gap) * ratio);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.font = `${font * ratio}px ${style.fontFamily}`;
    context.textBaseline = "middle";
    const ink = style.getPropertyValue("--muted").trim();
    const bad = style.getPropertyValue("--unhealthy").trim();
    const [first, end] = this.layout.visible(top, top + height);
    for (let index = first; index < end; ++index) {
      const row = this.layout.rows[index]!;
      const corner = this.layout.corner(index);
      context.globalAlpha = 1;
      context.fillStyle = row.problem ? bad : ink;
      const name = row.problem ? `! ${row.name}` : row.name;
      context.fillText(this.shorten(context, name, (label - 10) * ratio),
        corner.x * ratio, (corner.y - top + (cell - gap) / 2) * ratio);
      for (let i = 0; i < row.states.length; ++i) {
        const letter = row.states[i]!;
        const at = this.layout.place({ row: index, cell: i });
        context.globalAlpha = this.only.size > 0 && !this.only.has(letter) ? 0.18 : 1;
        context.drawImage(this.sprite(letter, size, style), Math.round(at.x * ratio), Math.round((at.y - top) * ratio));
      }
    }
    context.globalAlpha = 1;
    const ring = (spot: Spot, colour: string, width: number) => {
      if (spot.cell < 0) return;
      const at = this.layout.place(spot);
      context.strokeStyle = colour;
      context.lineWidth = width * ratio;
      context.strokeRect((at.x - 2) * ratio, (at.y - top - 2) * ratio, (cell - gap + 4) * ratio, (cell - gap + 4) * ratio);
    };
    const text = style.getPropertyValue("--text").trim();
    if (this.hovered) ring(this.hovered, ink, 1);
    if (this.selected) ring(this.selected, text, document.activeElement === this.canvas ? 2.5 : 1.5);
  }

  /** Keeps the end of a name, which tells nodes apart. */
  private shorten(context: CanvasRenderingContext2D, name: string, width: number): string {
    if (context.measureText(name).width <= width) return name;
    let keep = Math.max(4, Math.floor(name.length * width / context.measureText(name).width) - 1);
    const cut = () => `${name.slice(0, Math.ceil(keep / 3))}…${name.slice(name.length - Math.floor(keep * 2 / 3))}`;
    while (keep > 4 && context.measureText(cut()).width > width) --keep;
    return cut();
  }

  private spotAt(event: MouseEvent): Spot | null {
    const box = this.canvas.getBoundingClientRect();
    return this.layout.hit(event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop);
  }

  private hover(spot: Spot | null): void {
    if (spot?.row === this.hovered?.row && spot?.cell === this.hovered?.cell) return;
    this.hovered = spot;
    this.canvas.classList.toggle("pointing", spot !== null && spot.cell >= 0);
    this.describe(spot ?? this.selected);
    this.draw();
  }

  private click(spot: Spot | null): void {
    if (!spot || spot.cell < 0) return;
    this.select(spot);
    this.openSelected();
  }

  private openSelected(): void {
    const row = this.selected ? this.layout.rows[this.selected.row] : null;
    const id = row && this.selected ? deviceAt(row, this.selected.cell) : null;
    if (id) this.open(id);
  }

  private select(spot: Spot): void {
    this.selected = spot;
    const { y } = this.layout.place(spot);
    const { scrollTop: top, clientHeight: height } = this.scroller;
    const { cell } = this.layout.metrics;
    if (y < top + cell) this.scroller.scrollTop = Math.max(0, y - cell);
    else if (y + 2 * cell > top + height) this.scroller.scrollTop = y + 2 * cell - height;
    this.describe(spot);
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    if (event.altKey || event.metaKey || !this.layout.rows.length) return;
    const from = this.selected ?? { row: 0, cell: 0 };
    if (event.key === "Enter" || event.key === " ") {
      if (!this.selected) this.select(from);
      this.openSelected();
    } else if (event.key === "PageDown" || event.key === "PageUp") {
      let to = from;
      const key = event.key === "PageDown" ? "ArrowDown" : "ArrowUp";
      const steps = Math.max(1, Math.floor(this.scroller.clientHeight / this.layout.metrics.cell / 1.4) - 1);
      for (let i = 0; i < steps; ++i) to = this.layout.move(to, key);
      this.select(to);
    } else if (event.ctrlKey && (event.key === "Home" || event.key === "End")) {
      const row = event.key === "Home" ? 0 : this.layout.rows.length - 1;
      this.select(this.layout.move({ row, cell: 0 }, event.key));
    } else if (event.ctrlKey) {
      return;
    } else {
      const to = this.layout.move(from, event.key);
      if (to === from && !/^(Arrow|Home|End)/.test(event.key)) return;
      this.select(this.selected ? to : from);
    }
    event.preventDefault();
  }

  /** Says in words what is under the pointer or the cursor. */
  private describe(spot: Spot | null): void {
    const row = spot ? this.layout.rows[spot.row] : undefined;
    if (!spot || !row) {
      const without = this.cluster.head?.nodesWithoutDevices ?? 0;
      const shown = this.layout.rows.length;
      const nodes = this.layout.rows.filter((each) => each.node).length;
      const places = [nodes && plural(nodes, "node"), shown - nodes && `${count(shown - nodes)} ${shown - nodes === 1 ? "pool" : "pools"} without a node`];
      const text = `${places.filter(Boolean).join(" and ")}, ${plural(this.layout.rows.reduce((sum, each) => sum + each.states.length, 0), "device")}`
        + (without && shown ? `; ${plural(without, "node")} without devices` : "");
      this.line.replaceChildren(shown ? text : "");
      return;
    }
    const problem = row.problem ? ` (${row.problem})` : "";
    if (spot.cell < 0) {
      this.line.replaceChildren(h("b", {}, row.name), `${problem} · ${plural(row.states.length, "device")}`);
      return;
    }
    const state = stateOf(row.states[spot.cell] ?? "N");
    const device = deviceAt(row, spot.cell);
    this.line.replaceChildren(mark(state.letter), h("b", {}, device?.device ?? ""), ` ${state.name} · ${row.name}${problem}`);
    this.active.textContent = `${device?.device ?? ""}, ${state.name}, ${row.node ? "node" : "pool"} ${row.name}${problem}`;
  }
}
