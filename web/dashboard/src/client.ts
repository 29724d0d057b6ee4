// Talks to the server that served this page, and to nothing else.
import type { Change, Full } from "./model";

const storageKey = "drakkar-dashboard-token";
let token = "";

/** Takes the token from the address, where the first redirect put it, or from an earlier visit. */
export function findToken(): boolean {
  const match = /^#token=([0-9a-f]+)$/.exec(location.hash);
  try {
    if (match?.[1]) localStorage.setItem(storageKey, match[1]);
    token = match?.[1] ?? localStorage.getItem(storageKey) ?? "";
  } catch {
    token = match?.[1] ?? ""; // storage is disabled: the token lives as long as the tab
  }
  if (match) history.replaceState(null, "", "/");
  return token !== "";
}

export class Refused extends Error {}

async function request(path: string, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, {
    headers: { Authorization: `Bearer ${token}` },
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    signal: signal ?? null,
  });
  if (response.status === 401 || response.status === 403) throw new Refused(await errorOf(response));
  if (!response.ok) throw new Error(await errorOf(response));
  return response;
}

async function errorOf(response: Response): Promise<string> {
  try {
    return ((await response.json()) as { error: string }).error;
  } catch {
    return `the dashboard answered with status ${response.status}`;
  }
}

export async function ask<T>(path: string, query: Record<string, string | number> = {}): Promise<T> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value));
  return (await (await request(`/api/${path}?${parameters.toString()}`)).json()) as T;
}

export interface StreamEvents {
  onFull(full: Full): void;
  onChange(change: Change): void;
  /** "live", or why not. */
  onStatus(status: "live" | "connecting" | "refused", why: string): void;
}

/**
 * The stream of updates. Connects again after failures, and pauses while the page is hidden: browsers allow only six
 * connections per server.
 */
export class Stream {
  private abort: AbortController | null = null;
  private retry = 0;
  private pause = 0;
  private failures = 0;

  constructor(private readonly events: StreamEvents) {
    document.addEventListener("visibilitychange", () => {
      window.clearTimeout(this.pause);
      if (document.hidden) this.pause = window.setTimeout(() => this.stop(), 10_000);
      else if (!this.abort) this.start();
    });
  }

  start(): void {
    this.stop();
    const abort = new AbortController();
    this.abort = abort;
    this.read(abort).catch((error: unknown) => {
      if (abort.signal.aborted) return;
      this.abort = null;
      const why = error instanceof Error ? error.message : String(error);
      if (error instanceof Refused) return this.events.onStatus("refused", why);
      this.events.onStatus("connecting", why);
      const wait = Math.min(15_000, 500 * 2 ** Math.min(this.failures++, 5)) * (0.75 + Math.random() / 2);
      this.retry = window.setTimeout(() => this.start(), wait);
    });
  }

  private stop(): void {
    window.clearTimeout(this.retry);
    this.abort?.abort();
    this.abort = null;
  }

  private async read(abort: AbortController): Promise<void> {
    const response = await request("/api/stream", abort.signal);
    const reader = response.body?.getReader();
    if (!reader) throw new Error("the browser cannot read streams");
    const decoder = new TextDecoder();
    let buffer = "";
    for (;;) {
      // The server sends something every 15 s.
      const silence = window.setTimeout(() => void reader.cancel(), 45_000);
      const { done, value } = await reader.read();
      window.clearTimeout(silence);
      if (done) throw new Error("the dashboard has stopped");
      buffer += decoder.decode(value, { stream: true });
      let end: number;
      while ((end = buffer.indexOf("\n\n")) >= 0) {
        this.take(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
      }
    }
  }

  private take(message: string): void {
    const data = /^event: (\w+)\ndata: ([^]*)$/.exec(message);
    if (!data?.[2]) return; // a comment
    this.failures = 0;
    if (data[1] === "full") this.events.onFull(JSON.parse(data[2]) as Full);
    if (data[1] === "change") this.events.onChange(JSON.parse(data[2]) as Change);
    this.events.onStatus("live", "");
  }
}
