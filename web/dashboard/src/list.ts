// A list that the server filters and cuts: a search field, rows, and "show more".
import { ask } from "./client";
import { debounce, h } from "./dom";
import { count, plural } from "./format";

interface Page<T> {
  total: number;
  items: T[];
}

const step = 100;

/** One list of the page. Rows keep their elements as long as their text stays the same. */
export class List<T, Extra = unknown> {
  readonly element: HTMLElement;
  private readonly search: HTMLInputElement;
  private readonly rows = h("div", { class: "rows" });
  private readonly foot = h("p", { class: "foot muted" });
  private readonly known = new Map<string, { text: string; element: HTMLElement }>();
  private shown = step;
  private running = false;
  private again = false;

  constructor(private readonly options: {
    path: string;
    noun: string;
    placeholder: string;
    empty: string;
    key: (item: T) => string;
    row: (item: T) => HTMLElement;
    query?: () => Record<string, string>;
    onPage?: (page: Page<T> & Extra) => void;
    tools?: HTMLElement[];
  }) {
    this.search = h("input", {
      type: "search", placeholder: options.placeholder, "aria-label": options.placeholder, maxlength: 200,
    }) as HTMLInputElement;
    this.search.addEventListener("input", debounce(150, () => {
      this.shown = step;
      void this.refresh();
    }));
    this.element = h("div", { class: "list" },
      h("div", { class: "tools" }, this.search, ...(options.tools ?? [])),
      h("div", { class: "panel" }, this.rows, this.foot));
  }

  focusSearch(): void {
    this.search.focus();
  }

  /** Reads the list again; a call during a read makes it read once more. */
  async refresh(): Promise<void> {
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = true;
    try {
      do {
        this.again = false;
        const page = await ask<Page<T> & Extra>(this.options.path, {
          filter: this.search.value.trim(), limit: this.shown, ...this.options.query?.(),
        });
        this.show(page);
        this.options.onPage?.(page);
      } while (this.again);
    } catch (error) {
      this.foot.replaceChildren(error instanceof Error ? error.message : String(error));
    } finally {
      this.running = false;
    }
  }

  private show(page: Page<T>): void {
    const elements: HTMLElement[] = [];
    const keys = new Set<string>();
    for (const item of page.items) {
      const key = this.options.key(item);
      const text = JSON.stringify(item);
      keys.add(key);
      let known = this.known.get(key);
      if (!known || known.text !== text) {
        known = { text, element: this.options.row(item) };
        this.known.set(key, known);
      }
      elements.push(known.element);
    }
    for (const key of this.known.keys()) if (!keys.has(key)) this.known.delete(key);
    const same = elements.length === this.rows.childElementCount && elements.every((each, i) => this.rows.children[i] === each);
    if (!same) {
      const focused = document.activeElement;
      this.rows.replaceChildren(...elements);
      if (focused instanceof HTMLElement && this.rows.contains(focused)) focused.focus();
    }
    if (page.total === 0) {
      this.foot.replaceChildren(this.search.value ? "Nothing matches." : this.options.empty);
    } else if (page.items.length < page.total) {
      this.foot.replaceChildren(`${count(page.items.length)} of ${plural(page.total, this.options.noun)}. `, this.shown < 500
        ? h("button", { type: "button", class: "link", onclick: () => {
          this.shown = Math.min(500, this.shown * 2);
          void this.refresh();
        } }, "Show more") : "Search to see others.");
    } else {
      this.foot.replaceChildren(plural(page.total, this.options.noun));
    }
  }
}
