// Times and numbers for people.
import { h } from "./dom";

let offset = 0; // the cluster's clock minus ours, in milliseconds

export function setClusterTime(now: string): void {
  const time = Date.parse(now);
  if (!Number.isNaN(time)) offset = time - Date.now();
}

export function clusterNow(): number {
  return Date.now() + offset;
}

/** "3h12m", as kubectl writes ages. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 10) return s % 60 ? `${minutes}m${s % 60}s` : `${minutes}m`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
  return `${days}d`;
}

export function ageOf(since: string): string {
  const time = Date.parse(since);
  return Number.isNaN(time) ? "unknown" : duration((clusterNow() - time) / 1000);
}

/** An age that stays current: refreshAges() rewrites it. */
export function age(since: string | undefined): HTMLElement {
  if (!since) return h("span", { class: "age" }, "unknown");
  return h("time", { class: "age", datetime: since, title: localTime(since) }, ageOf(since));
}

export function refreshAges(): void {
  for (const element of document.querySelectorAll<HTMLTimeElement>("time.age")) {
    const text = ageOf(element.dateTime);
    if (element.textContent !== text) element.textContent = text;
  }
}

export function localTime(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? at : time.toLocaleString();
}

export function clockTime(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  const day = time.toDateString() === new Date(clusterNow()).toDateString();
  return day
    ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
    : time.toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function plural(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}
