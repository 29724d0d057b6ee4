// Small charts as SVG: bars, and lines over the same time.
import { h } from "./dom";

export interface Series {
  name: string;
  className: string;
  /** Seconds since the epoch, and the value. */
  points: [number, number][];
}

export interface Frame {
  title: string;
  unit: string;
  from: number;
  to: number;
  step: number;
  bars?: boolean;
  series: Series[];
}

const width = 720;
const height = 180;
const left = 46;
const bottom = 26;
const top = 10;

/** 1, 2 or 4 times a power of ten that is at least `value`. */
export function niceCeiling(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 4, 10]) if (value <= factor * power) return factor * power;
  return 10 * power;
}

export function chart(frame: Frame): HTMLElement {
  const most = niceCeiling(Math.max(1, ...frame.series.flatMap((each) => each.points.map((point) => point[1]))));
  const x = (time: number) => left + ((time - frame.from) / (frame.to - frame.from)) * (width - left);
  const y = (value: number) => top + (1 - value / most) * (height - top - bottom);
  const parts: HTMLElement[] = [];
  for (const value of most === 1 ? [0, 1] : [0, most / 2, most]) {
    parts.push(h("line", { class: "grid", x1: left, x2: width, y1: y(value), y2: y(value) }),
      h("text", { class: "axis", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
  }
  for (let minutes = 60; minutes >= 0; minutes -= 15) {
    const time = frame.to - minutes * 60;
    if (time < frame.from) continue;
    parts.push(h("text", { class: "axis", x: x(time), y: height - 4, "text-anchor": minutes === 0 ? "end" : minutes === 60 ? "start" : "middle" },
      minutes === 0 ? "now" : `−${minutes} min`));
  }
  for (const series of frame.series) {
    if (frame.bars) {
      const barWidth = Math.max(1, (width - left) / ((frame.to - frame.from) / frame.step) - 0.6);
      for (const [time, value] of series.points) {
        if (time < frame.from) continue;
        parts.push(h("rect", { class: series.className, x: x(time), y: y(value), width: barWidth, height: Math.max(0, y(0) - y(value)) }));
      }
    } else {
      for (const [time, value] of series.points) {
        if (time < frame.from) continue;
        parts.push(series.className === "p99"
          ? h("rect", { class: series.className, x: x(time) - 2, y: y(value) - 2, width: 4, height: 4 })
          : h("circle", { class: series.className, cx: x(time), cy: y(value), r: 2.4 }));
      }
    }
  }
  const summary = frame.series.map((each) => `${each.name}: ${each.points.length ? `latest ${each.points[each.points.length - 1]![1]} ${frame.unit}` : "nothing yet"}`);
  return h("figure", { class: "chart" },
    h("figcaption", {}, h("b", {}, frame.title), frame.series.length > 1 && h("span", { class: "keys" },
      ...frame.series.map((each) => h("span", { class: `key ${each.className}` }, each.name)))),
    h("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${frame.title}. ${summary.join("; ")}` }, ...parts));
}
