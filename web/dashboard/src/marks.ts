// How each state looks. Every state has a shape of its own, so that colour is never the only sign.
import { h } from "./dom";

export interface State {
  letter: string;
  name: string;
  /** CSS variable of its colour. */
  colour: string;
  means: string;
}

/** Worst first: the order of the legend. */
export const states: State[] = [
  { letter: "U", name: "Unhealthy", colour: "--unhealthy", means: "its driver reports a fault" },
  { letter: "T", name: "Tainted", colour: "--tainted", means: "a taint prevents allocation" },
  { letter: "W", name: "Waiting", colour: "--waiting", means: "allocated, and waits for binding conditions" },
  { letter: "H", name: "Held", colour: "--held", means: "a claim holds it" },
  { letter: "N", name: "Unusable", colour: "--unusable", means: "its node, pool or counters prevent allocation" },
  { letter: "F", name: "Free", colour: "--free", means: "a claim could get it now" },
];

const byLetter = new Map(states.map((each) => [each.letter, each]));
const byName = new Map(states.map((each) => [each.name, each]));

export function stateOf(letter: string): State {
  return byLetter.get(letter) ?? states[4]!;
}

export function stateNamed(name: string): State {
  return byName.get(name) ?? states[4]!;
}

/** The shape in a square of side 1: the outline and what is drawn into it. */
interface Shape {
  fill?: string; // path
  line?: string; // path, in the colour of the state
  cut?: string; // path, in the colour of the background
  frame?: boolean;
}

const shapes: Record<string, Shape> = {
  F: { frame: true },
  H: { fill: "M0 0H1V1H0Z" },
  W: { frame: true, fill: "M0 1L1 0V1Z" },
  T: { frame: true, line: "M.06 .94L.94 .06M.06 .47L.47 .06M.53 .94L.94 .53" },
  U: { fill: "M0 0H1V1H0Z", cut: "M.24 .24L.76 .76M.76 .24L.24 .76" },
  N: { fill: "M.34 .34H.66V.66H.34Z" },
};

/** The mark as an inline picture, for legends and lists. */
export function mark(letter: string, size = 14): HTMLElement {
  const shape = shapes[letter] ?? {};
  const colour = `var(${stateOf(letter).colour})`;
  const inner = size - 3;
  const scale = (path: string) => path.replace(/[\d.]+/g, (each) => String(1.5 + Number(each) * inner));
  return h("svg", { class: "mark", width: size, height: size, viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true" },
    shape.fill && h("path", { d: scale(shape.fill), fill: colour }),
    shape.frame && h("rect", { x: 1.5, y: 1.5, width: inner, height: inner, fill: "none", stroke: colour, "stroke-width": 1.5 }),
    shape.line && h("path", { d: scale(shape.line), fill: "none", stroke: colour, "stroke-width": 1.3 }),
    shape.cut && h("path", { d: scale(shape.cut), fill: "none", stroke: "var(--panel)", "stroke-width": 1.8 }));
}

/** Draws the mark into a square of `size` device pixels. */
export function drawMark(context: CanvasRenderingContext2D, letter: string, size: number, style: CSSStyleDeclaration): void {
  const shape = shapes[letter] ?? {};
  const colour = style.getPropertyValue(stateOf(letter).colour).trim();
  const stroke = Math.max(1, Math.round(size / 11));
  const half = stroke / 2;
  context.save();
  if (shape.fill) {
    context.save();
    context.scale(size, size);
    context.fillStyle = colour;
    context.fill(new Path2D(shape.fill));
    context.restore();
  }
  context.lineWidth = stroke;
  context.strokeStyle = colour;
  if (shape.frame) context.strokeRect(half, half, size - stroke, size - stroke);
  const path = (text: string, width: number) => {
    context.scale(size, size);
    context.lineWidth = width / size;
    context.stroke(new Path2D(text));
  };
  if (shape.line) {
    context.save();
    path(shape.line, stroke);
    context.restore();
  }
  if (shape.cut) {
    context.strokeStyle = style.getPropertyValue("--panel").trim();
    path(shape.cut, Math.max(1.4, size / 8));
  }
  context.restore();
}

export function badge(name: string): HTMLElement {
  const state = stateNamed(name);
  return h("span", { class: "badge" }, mark(state.letter), name);
}
