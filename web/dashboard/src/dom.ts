// Builds elements without HTML strings: text from the cluster is never parsed.

type Child = Node | string | number | null | undefined | false;
type Handler = (event: Event) => void;
type Value = string | number | boolean | null | undefined | Handler;

const svgTags = new Set(["svg", "path", "rect", "circle", "line", "polyline", "g", "text", "title"]);

/** An element with attributes ("onclick" etc. are listeners; false and null are left out) and children. */
export function h(tag: string, attributes: Record<string, Value> = {}, ...children: Child[]): HTMLElement {
  const element = svgTags.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element as HTMLElement;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces the children, unless they would look the same: a focused element keeps its focus. */
export function fill(parent: Element, ...children: Child[]): void {
  const next = document.createElement(parent.tagName);
  append(next, children);
  if (next.isEqualNode(parent)) return;
  parent.replaceChildren(...Array.from(next.childNodes));
}

/** Calls `work` once the caller has paused for `milliseconds`. */
export function debounce(milliseconds: number, work: () => void): () => void {
  let timer = 0;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(work, milliseconds);
  };
}
